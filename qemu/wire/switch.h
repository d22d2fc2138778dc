/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An Ethernet switch without its sockets: it learns addresses, forwards or floods frames, and has
 * faults happen to them.
 *
 * Several ports may be the lanes of one card, one for each of its engines. They share their
 * addresses, which belong to the card's primary: its lowest lane on the wire.
 */
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "qemu/fabric/learned_addresses.h"
#include "qemu/faults/injector.h"
#include "qemu/shm/message.h"
#include "qemu/wire/framing.h"

namespace tern::wire {

using faults::AddressTable;
using faults::FaultEvent;
using faults::FaultSet;
using faults::Injector;
using faults::Passage;
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
		uint64_t filtered = 0; /* for the sender's own segment or link, or too short */
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
	/** Sends @frame, to which no fault happens, to the card with that @primary: to the lane it
	 * is for, or if it is for several to all but @except. */
	void deliver(PortId primary, Frame frame, std::optional<PortId> except = std::nullopt);
	/** The faults of the frame that was forwarded last. */
	const std::vector<FaultEvent> &fault_events() const { return injector_.events(); }

	/** Whether frames are held back, to be overtaken or by a delay; then next_due() is when the
	 * first of them has to go, and release_held() sends those whose time has come. */
	bool holds() const { return injector_.holds(); }
	SteadyTime next_due() const { return SteadyTime(injector_.next_due()); }
	void release_held(SteadyTime now) { injector_.release_due(now.time_since_epoch()); }

	const Place &place_of(PortId id) const { return ports_[id].place; }
	std::vector<Mac> addresses_of(PortId id) const;
	/** Each address with its primary. */
	const AddressTable &addresses() const { return addresses_; }
	/** Whether a frame from @from comes from one of @hosts or goes to one, as do those to a
	 * group or an unknown address. */
	bool concerns(PortId from, Frame frame, const std::vector<uint64_t> &hosts) const;
	/** A version of addresses() and places; never zero. */
	uint64_t address_changes() const { return address_changes_; }
	FaultSet &faults() { return faults_; }
	const Stats &stats() const { return stats_; }

private:
	using Lanes = std::array<std::optional<PortId>, shm::kMaxLanes>;

	struct Port {
		Outlet *outlet = nullptr;
		uint64_t card = 0;
		Place place;
		Lanes lanes;                      /* lanes of its card, unless it is on its own */
		fabric::LearnedAddresses learned; /* if it is a primary */
	};
	class ToOutlet;

	void arrange(uint64_t card);
	void move_learned();
	void learn(PortId from, Frame frame);
	void add_learned(PortId owner, uint64_t address);
	void make_room();
	PortId lane_for(PortId primary, Frame frame) const;
	void flood(PortId from, Frame frame, bool group);
	bool send(PortId from, PortId to, Frame frame);

	std::vector<Port> ports_;
	AddressTable addresses_;
	uint64_t address_changes_ = 1;
	bool has_lanes_ = false; /* some card has several lanes */
	FaultSet faults_;
	Injector injector_{faults_, addresses_};
	SteadyTime now_;
	Stats stats_;
};

} // namespace tern::wire
