/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "qemu/shm/ring.h"
#include "qemu/wire/framing.h"
#include "qemu/wire/switch.h"

namespace tern::wire {

class Port;

/** What a port may have to wait for before it sends more. */
class Waitable {
public:
	virtual ~Waitable() = default;

	virtual bool congested() const = 0;
	/** Call repeatedly while a port waits: it must not do so for ever. */
	virtual void give_up_if_stalled(SteadyTime /* now */, SteadyTime::duration /* patience */)
	{
	}
};

/** The receiver of a port's frames. */
class FrameSink {
public:
	virtual ~FrameSink() = default;
	/** Returns what is congested by the frame, or nullptr. */
	virtual Waitable *frame_from(Port &port, Frame frame) = 0;
	/** @port can send and receive from now on, until it has left(). */
	virtual void joined(Port & /* port */) {}
	virtual void left(Port & /* port */) {}
};

/**
 * The connection of one host, with a queue of frames to the host. A port is congested when its
 * queue is too long. The switch does not read from a port that has sent to a congested port until
 * that port's queue has shrunk. A congested port whose host consumes too little, for example
 * because the host is stopped, drops frames instead, so that it does not block other ports.
 */
class Port : public Outlet, public Waitable {
public:
	/** Writes queued frames as far as the host takes them. */
	virtual void flush() = 0;
	/** Updates the events to wait for. */
	virtual void update_interest() = 0;
	/** Bytes the host has not consumed yet, and those it has. */
	virtual size_t queued() const = 0;
	virtual uint64_t consumed() const = 0;

	/** Whether resume() is to be called to continue with frames received. */
	virtual bool has_more() const { return false; }
	/** As reported by its host. */
	virtual shm::DirectCounts direct() const { return {}; }

	/** Disconnected, or violated the protocol. */
	bool dead() const { return dead_; }
	void hang_up() { dead_ = true; }

	bool congested() const override
	{
		return !dead_ && !given_up_ && queued() > high_water_ / 2;
	}
	bool takes_copy() override;
	/** Gives up if the host took less than a quarter of high_water_ in @patience. Call
	 * repeatedly while another port waits for this one. */
	void give_up_if_stalled(SteadyTime now, SteadyTime::duration patience) override;

	/** What this port waits for before it sends more. */
	Waitable *waiting_for() const { return waiting_for_; }
	/** Continues with the frames already received. */
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
	FrameSink &sink() const { return sink_; }

protected:
	/** @high_water: when this many bytes are queued, senders wait until at most half as many
	 * are. While one waits, the others do so above half, too. */
	Port(FrameSink &sink, size_t high_water) : sink_(sink), high_water_(high_water) {}

	/** Forwards received frames until one causes waiting. */
	virtual void forward_frames() = 0;
	void hand_on(Frame frame)
	{
		stats_.received++;
		waiting_for_ = sink_.frame_from(*this, frame);
	}
	/** Whether the sender of a frame may go on. While another one waits, it may only do so up
	 * to half of high_water_: a steady sender could otherwise keep the other waiting. */
	bool has_room() const { return awaited_since_ ? !congested() : queued() < high_water_; }
	/** queued() has changed. */
	void note_queued()
	{
		given_up_ = given_up_ && queued() > high_water_ / 2;
		if (!congested())
			awaited_since_.reset();
	}

	Waitable *waiting_for_ = nullptr;
	bool dead_ = false;
	bool given_up_ = false;
	Stats stats_;

private:
	FrameSink &sink_;
	const size_t high_water_;
	/* While others wait: since when, and consumed() then. */
	std::optional<SteadyTime> awaited_since_;
	uint64_t consumed_then_ = 0;
};

using Ports = std::vector<std::unique_ptr<Port>>;
/** Writes queued frames, and resumes ports that no longer need to wait. Does so a limited number of
 * times, as two hosts may go on for ever. Afterwards can_resume() tells whether to do it again. */
void flush_and_resume(const Ports &ports, SteadyTime now);
/** Whether a port waits for what is not congested. */
bool can_resume(const Ports &ports);
/** Whether a port waits for @port, which must not be destroyed then. */
bool is_awaited(const Port &port, const Ports &ports);

} // namespace tern::wire
