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
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "qemu/shm/message.h"
#include "qemu/wire/faults.h"
#include "qemu/wire/framing.h"

namespace tern::wire {

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
	 * Forwards a frame. Returns the outlet that it congested, if any; the sender should wait
	 * for that.
	 */
	Outlet *forward(PortId from, Frame frame);

	/** Whether frames are held back to be overtaken; release_held() sends those that nothing
	 * overtakes. */
	bool holds() const { return held_ != 0; }
	void release_held();

	const Place &place_of(PortId id) const { return ports_[id].place; }
	std::vector<Mac> addresses_of(PortId id) const;
	/** Each address as a number, its first byte in 47:40, with its primary. */
	const std::unordered_map<uint64_t, PortId> &addresses() const { return addresses_; }
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
		/* a frame held back; empty: none */
		std::vector<std::byte> held;
		unsigned overtaken_by = 0;
		Lanes lanes; /* lanes of its card, unless it is on its own */
	};

	void arrange(uint64_t card);
	void learn(PortId from, Frame frame);
	PortId lane_for(PortId primary, Frame frame) const;
	void flood(PortId from, Frame frame, bool group);
	bool send(Port &port, Frame frame);
	bool send_with_faults(Port &port, Frame frame);
	bool release(Port &port);

	std::vector<Port> ports_;
	std::unordered_map<uint64_t, PortId> addresses_;
	uint64_t address_changes_ = 1;
	bool has_lanes_ = false; /* some card has several lanes */
	Faults faults_;
	std::vector<std::byte> scratch_;
	unsigned held_ = 0;
	Stats stats_;
};

} // namespace tern::wire
