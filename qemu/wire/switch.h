/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an Ethernet switch does, without sockets: learns where addresses live, sends
 * frames there or everywhere, and lets faults happen on the way.
 *
 * Several ports may be the lanes of one card, one for each of its engines. They have their
 * addresses in common, and these are the primary's: of the lowest lane there is.
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

/** One end of the wire. */
class Outlet {
public:
	virtual ~Outlet() = default;

	/** Takes a frame, or drops it. False: it would rather not get more for a while. */
	virtual bool deliver(Frame frame) = 0;
};

class Switch {
public:
	using PortId = unsigned;

	struct Stats {
		uint64_t frames = 0; /* that came in */
		uint64_t bytes = 0;
		uint64_t flooded = 0;
		uint64_t filtered = 0; /* for the side that they came from, or too short */
		uint64_t lost = 0;
		uint64_t duplicated = 0;
		uint64_t reordered = 0;
		uint64_t corrupted = 0;
	};

	/* A port among the lanes of its card. */
	struct Place {
		PortId primary = 0;
		uint32_t lane = 0;
		uint32_t lanes = 1; /* how many there are */
	};

	PortId attach(Outlet &outlet);
	/** Port @id, alone until now, is that lane of @card, or of no card but itself if that is
	 * 0. Why it cannot be, or empty. */
	std::string place(PortId id, uint64_t card, uint32_t lane);
	void detach(PortId id);

	/**
	 * A frame came in. Returns an outlet that would rather not get more, if the frame
	 * went to one: then wait before the next.
	 */
	Outlet *forward(PortId from, Frame frame);

	/** Frames are held back to be overtaken. Those that nothing overtakes need a push. */
	bool holds() const { return held_ != 0; }
	void release_held();

	const Place &place_of(PortId id) const { return ports_[id].place; }
	std::vector<Mac> addresses_of(PortId id) const;
	/** Each as a number, its first byte in 47:40, and the primary that has it. */
	const std::unordered_map<uint64_t, PortId> &addresses() const { return addresses_; }
	/** Another number, never zero, whenever addresses() or places have changed. */
	uint64_t address_changes() const { return address_changes_; }
	Faults &faults() { return faults_; }
	const Stats &stats() const { return stats_; }

private:
	using Lanes = std::array<std::optional<PortId>, shm::kMaxLanes>;

	struct Port {
		Outlet *outlet = nullptr;
		uint64_t card = 0;
		Place place;
		/* a frame held back: empty is none */
		std::vector<std::byte> held;
		unsigned overtaken_by = 0;
		Lanes lanes; /* of its card, unless it is alone */
	};

	void arrange(uint64_t card);
	void learn(PortId from, Frame frame);
	PortId lane_for(PortId primary, Frame frame) const;
	Outlet *flood(PortId from, Frame frame, bool group);
	bool send(Port &port, Frame frame);
	bool send_with_faults(Port &port, Frame frame);
	bool release(Port &port);

	std::vector<Port> ports_;
	std::unordered_map<uint64_t, PortId> addresses_;
	uint64_t address_changes_ = 1;
	bool has_lanes_ = false; /* some card has several */
	Faults faults_;
	std::vector<std::byte> scratch_;
	unsigned held_ = 0;
	Stats stats_;
};

} // namespace tern::wire
