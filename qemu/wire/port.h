/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <chrono>
#include <cstdint>

#include "qemu/wire/framing.h"
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
 * The connection of one host. Frames to it queue up; who sent to a port whose
 * queue is too long (congested) is not read from until that has shrunk. A port
 * that takes nothing for long (its host is stopped) loses frames instead, so that
 * it cannot hold up the others.
 */
class Port : public Outlet {
public:
	/** Passes on what is queued, as far as the host takes it. */
	virtual void flush() = 0;
	/** Tells the loop for what to wait. */
	virtual void update_interest() = 0;
	/** Bytes that the host has still to take. */
	virtual size_t queued() const = 0;

	/** Frames that its host has sent to others without the switch, as it says. */
	virtual uint64_t direct() const { return 0; }

	/** It said nonsense or went away. */
	bool dead() const { return dead_; }

	bool congested() const { return !dead_ && !given_up_ && queued() > low_water_; }
	/** Gives up on it when it is congested and took nothing since before @limit. */
	void give_up_if_idle_since(SteadyTime limit)
	{
		if (congested() && last_progress_ < limit)
			given_up_ = true;
	}

	/** The port for which this one waits with its next frame. */
	Port *waiting_for() const { return waiting_for_; }
	/** Goes on with the frames that are there already. */
	void resume()
	{
		waiting_for_ = nullptr;
		forward_frames();
	}

	Switch::PortId id = 0;

	struct Stats {
		uint64_t received = 0;
		uint64_t sent = 0;
		uint64_t dropped = 0;
	};
	const Stats &stats() const { return stats_; }

protected:
	Port(FrameSink &sink, size_t low_water)
	        : sink_(sink), low_water_(low_water),
	          last_progress_(std::chrono::steady_clock::now())
	{
	}

	/** Hands on the frames that are there, until one has to wait. */
	virtual void forward_frames() = 0;
	void hand_on(Frame frame)
	{
		stats_.received++;
		waiting_for_ = sink_.frame_from(*this, frame);
	}
	/** The host took something, or has nothing to take. */
	void note_progress() { last_progress_ = std::chrono::steady_clock::now(); }
	void hope_again() { given_up_ = given_up_ && queued() > low_water_; }

	Port *waiting_for_ = nullptr;
	bool dead_ = false;
	bool given_up_ = false;
	Stats stats_;

private:
	FrameSink &sink_;
	const size_t low_water_;
	SteadyTime last_progress_;
};

} // namespace tern::wire
