/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <list>
#include <string>

#include "qemu/fabric/plan.h"
#include "qemu/fabric/real_time.h"
#include "qemu/wire/port.h"
#include "qemu/wire/switch.h"

namespace tern::wire {

/** Bytes that a card may send ahead of its link, in the ring of its connection. Much more would be
 * a second queue before the link, with a delay of its own. A process that has to wait some
 * milliseconds for a processor should find the link of a few hundred Mb/s still busy. */
constexpr size_t kInbound = 128 << 10;

/** What all edges share. */
struct EdgeContext {
	fabric::Fabric &fabric;
	fabric::RealTime &time;
	Switch &ethernet;
};

/**
 * The end of a card's link, where frames of its connection enter and leave the fabric.
 *
 * It stands for the card's own port: it sends at the link's rate, obeys pause frames, and has the
 * connection wait rather than drop. A card has one connection, or one for each of its lanes; a new
 * one replaces those of another card.
 */
class Edge final : public FrameSink, private fabric::PortOwner {
public:
	/** The next card of the fabric. What @context refers to must outlive this. */
	explicit Edge(const EdgeContext &context)
	        : context_(context), card_(context.fabric.add_host(*this))
	{
	}

	/* FrameSink */
	Waitable *frame_from(Port &port, Frame frame) override;
	void joined(Port &port) override;
	void left(Port &port) override;

	bool connected() const { return !lanes_.empty(); }
	/** Frames longer than a link of the fabric takes, which were dropped. */
	uint64_t too_long() const { return too_long_; }

private:
	/* A connection of the card. It waits for the queue of its last frame's priority alone:
	 * those of the other lanes may have room, and must not hide that this one has none. */
	struct Lane final : Waitable {
		Lane(const Edge &edge, Port &port) : edge(edge), port(port) {}
		bool congested() const override { return edge.is_full(priority); }

		const Edge &edge;
		Port &port;
		uint8_t priority = 0; /* of the last frame */
	};

	void arrived(fabric::Port &, fabric::FramePtr frame) override { deliver(*frame); }
	void sending(fabric::Port &, fabric::Frame &) override {}
	void departed(fabric::Port &, const fabric::Frame &) override;
	void pause_arrived(fabric::Port &, const fabric::Frame &frame) override { deliver(frame); }
	void deliver(const fabric::Frame &frame);
	Lane &lane_of(const Port &port);
	bool is_full(uint8_t priority) const;
	bool is_for_own_lanes(Frame frame) const;
	fabric::Port &link() const { return context_.fabric.host_port(card_); }

	const EdgeContext context_;
	const unsigned card_;
	/* Those that have joined; the one that resumed last is behind those that waited before it.
	 * Ports refer to them while they wait. */
	std::list<Lane> lanes_;
	uint64_t too_long_ = 0;
};

} // namespace tern::wire
