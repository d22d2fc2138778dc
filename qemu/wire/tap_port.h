/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <string>

#include "qemu/wire/event_loop.h"
#include "qemu/wire/port.h"

namespace tern::wire {

/** Opens the TAP interface @name, which must exist, as @fd. Each read() and write() of @fd is one
 * frame. Returns an error message, or empty. */
std::string open_tap(const std::string &name, Fd &fd);

/**
 * A TAP interface of this machine. It connects the switch with the bridge or Open vSwitch that the
 * interface belongs to. The kernel takes or drops each frame at once, so no sender waits for this
 * port.
 */
class TapPort final : public Port, private Watched {
public:
	/** @fd comes from open_tap(). */
	TapPort(EventLoop &loop, FrameSink &sink, Fd fd, std::string name);
	~TapPort() override;

	bool deliver(Frame frame) override;
	void flush() override {}
	void update_interest() override;
	size_t queued() const override { return 0; }
	uint64_t consumed() const override { return 0; }

private:
	void ready(uint32_t) override { forward_frames(); }
	void forward_frames() override;
	void die();

	EventLoop &loop_;
	const Fd fd_;
	const std::string name_;
	bool read_ = true; /* whether the loop watches for frames to read */
	std::array<std::byte, kMaxFrame> frame_;
};

} // namespace tern::wire
