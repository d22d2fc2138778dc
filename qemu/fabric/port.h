/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>

#include "qemu/fabric/egress_queues.h"
#include "qemu/fabric/event_loop.h"
#include "qemu/fabric/frame.h"
#include "qemu/rnic/formats/pause.h"

namespace tern::fabric {

class Port;

struct LinkConfig {
	uint64_t rate = 100'000'000'000; /* bits per second */
	uint64_t delay = 1000;           /* ns, from the last bit sent to the frame received */
	uint64_t jitter = 0;             /* ns, at most, by which the delay of a frame varies */
	double loss = 0;                 /* the share of frames that do not arrive */
};

/** A switch or a host. */
class PortOwner {
public:
	virtual ~PortOwner() = default;

	/** @frame came in by @port. */
	virtual void arrived(Port &port, FramePtr frame) = 0;
	/** @frame, which the owner had given to @port, is sent next. */
	virtual void sending(Port &port, Frame &frame) = 0;
	/** @port no longer holds @frame, which the owner gave it: it was sent or lost. */
	virtual void departed(Port &port, const Frame &frame) = 0;
	/** The link of @port is up again. Neither end remembers what was paused. */
	virtual void link_returned(Port & /* port */) {}
	/** @port has received @frame, a pause frame, and obeys it. */
	virtual void pause_arrived(Port & /* port */, const Frame & /* frame */) {}
};

/** Takes the frames that arrive at a port before the port does. */
class Interceptor {
public:
	/** @frame has arrived. Port::accept() takes it and others like it, now or later. */
	virtual void arrived(FramePtr frame) = 0;

protected:
	~Interceptor() = default;
};

/**
 * One end of a link: queues, the transmitter, and the frames on their way to the other end. It
 * obeys pause frames of its peer, as a MAC does, and does not pass them on.
 */
class alignas(Frame::kCacheLine) Port {
public:
	/* No pause frame is counted here. So tx_frames of one end are rx_frames and lost of the
	 * other, and the frames on their way. */
	struct Counts {
		uint64_t tx_frames = 0;
		uint64_t tx_bytes = 0;
		uint64_t rx_frames = 0;
		uint64_t rx_bytes = 0;
		uint64_t lost = 0; /* frames that the link lost, by chance or because it was down */
		uint64_t busy_ns = 0; /* time spent transmitting */
	};
	/* The port counts these only after guard_against_storms(). */
	struct StormCounts {
		uint64_t pause_storms = 0;
		uint64_t storm_dropped = 0; /* frames */
	};
	struct Stats : Counts, StormCounts {
		std::array<uint64_t, kPriorities> pauses_sent{}; /* not those that end a pause */
		std::array<uint64_t, kPriorities> pauses_received{};
	};
	/** Preamble, FCS and the gap between frames, bytes. */
	static constexpr uint64_t kFrameOverhead = 8 + 4 + 12;

	/** What the references name must outlive the port. The owner numbers its ports. */
	Port(EventLoop &loop, FramePool &pool, PortOwner &owner, uint16_t number,
	     const Weights &weights, const LinkConfig &link)
	        : loop_(loop), owner_(owner), link(link), number(number), queues(weights),
	          pool_(pool)
	{
	}
	/** Plugs one cable into both. Jitter and loss follow from @seed. */
	static void connect(Port &a, Port &b, uint32_t seed = 1);

	/** Queues @frame; the owner has made sure that it may. */
	void send(FramePtr frame);
	/** Asks the peer to stop sending @priority for @quanta; 0 ends the pause. The pause frame
	 * overtakes all queued frames. */
	void pause_peer(uint8_t priority, uint16_t quanta);
	/** Without a link all frames are lost, those in the queues and on their way among them. */
	void set_up(bool up);
	bool up() const { return up_; }
	/**
	 * Takes a pause of one of @priorities for a pause storm if it has kept frames waiting for
	 * @limit ns without a gap. In a storm the port drops the frames of that priority, those
	 * that wait and those that it is given, so that they do not block the frames of others in
	 * the switches before it. The storm is over when the priority has not been paused for
	 * @limit ns.
	 */
	void guard_against_storms(uint8_t priorities, uint64_t limit);
	/** From now on @interceptor, which must outlive the port, gets all frames that arrive. */
	void intercept(Interceptor &interceptor) { interceptor_ = &interceptor; }
	/** Takes a frame that has arrived and was intercepted. */
	void accept(FramePtr frame);
	/** Counts a frame that was intercepted, and then lost with the link. */
	void lose_intercepted(const Frame &frame);
	/** How often the link was cut. What was intercepted before the last time is lost. */
	uint64_t cuts() const { return cuts_; }
	/** The loop in which frames arrive. */
	EventLoop &loop() const { return loop_; }
	/** Returns the priorities that the peer has paused, a bit for each. */
	uint8_t paused() const;
	Stats stats() const { return {counts_, storms_.counts, pauses_sent_, pauses_received_}; }

	/** Prefetches the members that each frame needs: those up to the first queues. */
	void prefetch() const;

private:
	struct Departure;
	struct Arrival;

	void start_next();
	void finish();
	bool happens(double share);
	void launch(FramePtr frame);
	void await_arrival(uint64_t when);
	void arrive(uint64_t when);
	void obey(const PauseTimes &pause);
	void wake_at(uint64_t when);
	void wake();
	uint64_t next_end_of_pause() const;
	void lose(const Frame &frame);
	void watch(unsigned priority);
	void watch_at(unsigned priority, uint64_t when);
	void look_for_storm(unsigned priority);
	void begin_storm(unsigned priority);
	void drop_in_storm(const Frame &frame);

	static constexpr uint64_t kNever = UINT64_MAX;

	/* The members that each frame needs come first, with the start of the queues, so that they
	 * share few cache lines (EventLoop::kPrefetched). */
	EventLoop &loop_;
	PortOwner &owner_;
	Port *peer_ = nullptr;

public:
	const LinkConfig link;
	const uint16_t number;

private:
	bool up_ = true;
	bool cut_ = false; /* the link was down since sending_ began */
	bool sending_pause_ = false;
	uint8_t in_storm_ = 0; /* priorities, a bit for each */
	FramePtr sending_;
	uint64_t remainder_ = 0;    /* of the time on the wire, in ns / rate */
	FrameList pauses_;          /* to be sent */
	FrameList in_flight_;       /* to peer_ */
	uint64_t last_arrival_ = 0; /* of those in flight, or before them */
	uint64_t next_arrival_ = kNever;
	uint64_t unpaused_at_ = 0; /* from then on no priority is paused */
	Counts counts_;

public:
	EgressQueues queues;

private:
	FramePool &pool_;
	Interceptor *interceptor_ = nullptr;
	uint64_t cuts_ = 0;
	/* There is at most one event for each priority, however many pauses a peer begins. */
	struct Storms {
		uint8_t guarded = 0;
		uint8_t watched = 0; /* priorities that have an event */
		uint64_t limit = 0;
		/* since when frames have waited because of the present pause */
		std::array<std::optional<uint64_t>, kPriorities> waiting_since{};
		StormCounts counts;
	} storms_;
	std::array<uint64_t, kPriorities> paused_until_{};
	uint64_t next_wake_ = kNever; /* the first event that is to wake the port */
	unsigned wakes_ = 0;          /* number of those events */
	std::array<uint64_t, kPriorities> pauses_sent_{};
	std::array<uint64_t, kPriorities> pauses_received_{};
	std::minstd_rand random_; /* small: there may be thousands of ports */
};

} // namespace tern::fabric
