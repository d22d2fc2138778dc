/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <chrono>
#include <cstdint>

#include "qemu/wire/event_loop.h"
#include "qemu/wire/framing.h"
#include "qemu/wire/output_queue.h"
#include "qemu/wire/switch.h"

namespace tern::wire {

using SteadyTime = std::chrono::steady_clock::time_point;

class Port;

/** Where the frames of a port go. */
class FrameSink {
public:
	virtual ~FrameSink() = default;
	/** Returns a port that is too full for more, or nullptr. */
	virtual Port *frame_from(Port &port, Frame frame) = 0;
};

/**
 * The connection of one QEMU. Frames to it queue up; who sent to a port whose
 * queue is too long (congested) is not read from until that has shrunk. A port
 * that takes nothing for long (its host is stopped) loses frames instead, so that
 * it cannot hold up the others.
 */
class Port final : public Outlet, private Watched {
public:
	Port(EventLoop &loop, FrameSink &sink, Fd fd);
	~Port() override;

	bool deliver(Frame frame) override;

	/** Writes what is queued, as far as the socket takes it. */
	void flush();
	/** Tells the loop for what to wait. */
	void update_interest();

	/** It said nonsense or went away. */
	bool dead() const { return dead_; }

	bool congested() const;
	/** Gives up on it when it is congested and took nothing since before @limit. */
	void give_up_if_idle_since(SteadyTime limit);

	/** The port for which this one waits with its next frame. */
	Port *waiting_for() const { return waiting_for_; }
	/** Goes on with the frames that are there already. */
	void resume();

	Switch::PortId id = 0;

	struct Stats {
		uint64_t received = 0;
		uint64_t sent = 0;
		uint64_t dropped = 0;
	};
	const Stats &stats() const { return stats_; }
	size_t queued() const { return queue_.size(); }

private:
	void ready(uint32_t events) override;
	void read();
	void forward_frames();

	EventLoop &loop_;
	FrameSink &sink_;
	const Fd fd_;
	FrameReader reader_;
	OutputQueue queue_;
	Port *waiting_for_ = nullptr;
	uint32_t interest_;
	bool dead_ = false;
	bool given_up_ = false;
	SteadyTime last_progress_;
	Stats stats_;
};

} // namespace tern::wire
