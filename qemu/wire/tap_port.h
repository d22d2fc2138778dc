/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <string>

#include "qemu/wire/event_loop.h"
#include "qemu/wire/port.h"

namespace tern::wire {

/** Opens the TAP interface @name, which must exist, for whole frames without a header. Returns an
 * error message, or empty. */
std::string open_tap(const std::string &name, Fd &fd);

/**
 * A TAP interface of this machine, by which the switch is a port of what that is in: a bridge, Open
 * vSwitch, a VXLAN. The kernel takes each frame at once or drops it, so nobody waits for this port.
 */
class TapPort final : public Port, private Watched {
public:
	/** @fd: of open_tap(). */
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
	bool read_ = true; /* whether frames are read, and not left to the kernel's queue */
	std::array<std::byte, kMaxFrame> frame_;
};

} // namespace tern::wire
