/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "qemu/wire/event_loop.h"
#include "qemu/wire/output_queue.h"
#include "qemu/wire/port.h"

namespace tern::wire {

/** The connection of a QEMU with a stream netdev. */
class StreamPort final : public Port, private Watched {
public:
	StreamPort(EventLoop &loop, FrameSink &sink, Fd fd);
	~StreamPort() override;

	bool deliver(Frame frame) override;
	void flush() override;
	void update_interest() override;
	size_t queued() const override { return queue_.size(); }
	uint64_t consumed() const override { return queue_.written(); }
	bool has_more() const override { return more_ && !dead_; }

private:
	void ready(uint32_t events) override;
	void read();
	void forward_frames() override;

	EventLoop &loop_;
	const Fd fd_;
	FrameReader reader_;
	OutputQueue queue_;
	uint32_t interest_;
	bool more_ = false; /* there may be more in reader_, when forward_frames() returned */
};

} // namespace tern::wire
