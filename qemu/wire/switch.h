/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An Ethernet switch without its sockets: it learns addresses, forwards or floods frames, and
 * applies faults.
 *
 * Several ports may be the lanes of one card, one for each of its engines. They share their
 * addresses, which belong to the card's primary: its lowest lane on the wire.
 */
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "qemu/shm/message.h"
#include "qemu/wire/faults.h"
#include "qemu/wire/framing.h"
#include "qemu/wire/passage.h"

namespace tern::wire {

using SteadyTime = std::chrono::steady_clock::time_point;
using Mac = std::array<uint8_t, 6>;
std::string to_string(const Mac &mac);

/** A destination of frames. */
class Outlet {
public:
	virtual ~Outlet() = default;

	/** Takes or drops a frame. Returns false if it is congested. */
	virtual bool deliver(Frame frame) = 0;
	/** Whether a frame with several destinations, whose sender does not wait for this one, may
	 * be delivered; if not, it is counted as dropped. */
	virtual bool takes_copy() = 0;
};

class Switch {
public:
	using PortId = unsigned;

	struct Stats {
		uint64_t frames = 0; /* received */
		uint64_t bytes = 0;
		uint64_t flooded = 0;
		uint64_t filtered = 0; /* for the sender's own segment, or too short */
		uint64_t lost = 0;
		uint64_t duplicated = 0;
		uint64_t reordered = 0;
		uint64_t corrupted = 0;
		uint64_t marked = 0; /* as congested */
		uint64_t delayed = 0;
	};

	/* A port's position among the lanes of its card. */
	struct Place {
		PortId primary = 0;
		uint32_t lane = 0;
		uint32_t lanes = 1; /* number of lanes on the wire */
	};

	PortId attach(Outlet &outlet);
	/** Makes port @id, so far on its own, that lane of @card; 0: of no card. Returns why that
	 * is not possible, or empty. */
	std::string place(PortId id, uint64_t card, uint32_t lane);
	void detach(PortId id);

	/**
	 * Forwards a frame at the time @now. Returns the outlet that it congested, if any; the
	 * sender should wait for that.
	 */
	Outlet *forward(PortId from, Frame frame, SteadyTime now = SteadyTime());
	/** Counts a frame that forward() is not to be called for, and learns its source. Returns
	 * false if it is too short for a frame. */
	bool receive(PortId from, Frame frame);
	/** Sends @frame at the time @now to the card with that @primary: to the lane it is for, or
	 * if it is for several to all but @except. */
	void deliver(PortId primary, Frame frame, SteadyTime now,
	             std::optional<PortId> except = std::nullopt);
	/** The faults of the frame that was forwarded or delivered last. */
	const std::vector<FaultEvent> &fault_events() const { return fault_events_; }

	/** Whether frames are held back, to be overtaken or by a delay; then next_due() is when the
	 * first of them has to go, and release_held() sends those whose time has come. */
	bool holds() const { return !held_.empty(); }
	SteadyTime next_due() const { return held_.begin()->first; }
	void release_held(SteadyTime now);

	const Place &place_of(PortId id) const { return ports_[id].place; }
	std::vector<Mac> addresses_of(PortId id) const;
	/** Each address with its primary. */
	const AddressTable &addresses() const { return addresses_; }
	/** Whether a frame from @from comes from one of @hosts or goes to one, as do those to a
	 * group or an unknown address. */
	bool concerns(PortId from, Frame frame, const std::vector<uint64_t> &hosts) const;
	/** A version of addresses() and places; never zero. */
	uint64_t address_changes() const { return address_changes_; }
	Faults &faults() { return faults_; }
	const Stats &stats() const { return stats_; }

private:
	using Lanes = std::array<std::optional<PortId>, shm::kMaxLanes>;

	struct Port {
		Outlet *outlet = nullptr;
		uint64_t card = 0;
		Place place;
		/* frames that were not lost on the way to it, while faults are set */
		uint64_t arrivals = 0;
		/* those held back to be overtaken */
		unsigned to_be_overtaken = 0;
		Lanes lanes; /* lanes of its card, unless it is on its own */
	};

	/* A frame held back. It goes at its time, or behind the last frame that overtakes it. */
	struct Held {
		PortId to;
		std::vector<std::byte> frame;
		unsigned copies;
		std::optional<uint64_t> last_arrival; /* none: held back by a delay */
	};
	/* by time; those of the same time in their order */
	using HeldFrames = std::multimap<SteadyTime, Held>;

	void arrange(uint64_t card);
	void learn(PortId from, Frame frame);
	PortId lane_for(PortId primary, Frame frame) const;
	void flood(PortId from, Frame frame, bool group);
	bool send(PortId from, PortId to, Frame frame);
	bool send_with_faults(PortId from, PortId to, Frame frame);
	Faults::Decision decide(const Passage &passage, const Port &port);
	Frame change(const Passage &passage, const Faults::Decision &decision);
	bool transmit(PortId to, Frame frame, unsigned copies);
	void hold(PortId to, Frame frame, const Faults::Decision &decision);
	bool release_overtaken(PortId to);
	bool release(HeldFrames::iterator held);

	std::vector<Port> ports_;
	AddressTable addresses_;
	uint64_t address_changes_ = 1;
	bool has_lanes_ = false; /* some card has several lanes */
	Faults faults_;
	std::vector<FaultEvent> fault_events_;
	std::vector<std::byte> scratch_;
	SteadyTime now_;
	HeldFrames held_;
	size_t held_bytes_ = 0;
	Stats stats_;
};

} // namespace tern::wire
