/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "qemu/faults/link_faults.h"
#include "qemu/sim/flow.h"
#include "qemu/sim/host.h"
#include "qemu/sim/scenario.h"

namespace tern::sim {

/** What a rule did to a packet. */
struct FaultNote {
	uint64_t when; /* ns */
	unsigned link_end;
	faults::Fault fault;
	unsigned rule;
	std::optional<faults::RoceFields> packet;
};

/**
 * The world runs a scenario: it has the cards, the fabric and the flows in simulated time.
 *
 * Each card has an event loop, and all switches share one. A frame reaches a switch one link delay
 * after a card has sent it, and another card two link delays after. So the cards can run until they
 * are one link delay ahead of the switches, and then the switches until they are one ahead of the
 * cards: each loop runs for two link delays at a time. The state of a thousand cards does not fit
 * into a processor's cache, but the state of one card does, and the card handles many packets in
 * that time.
 */
class World : private faults::LinkObserver {
public:
	explicit World(const Scenario &scenario);

	void run();

	/** All that has arrived at cards so far. */
	uint64_t packets() const;
	/** Wire bytes of flow @i after the warm-up, as bits per second. */
	double rate(size_t i) const;
	/** Returns the mean length of queue @i after the warm-up, in bytes. */
	double mean_length(size_t i) const;
	/** Share of the time after the warm-up in which @port has sent; @link: its number, @end: 0
	 * or 1. */
	double utilisation(size_t link, size_t end) const;

	/** What is plotted, a value for each sample, by flow or queue. */
	struct Curves {
		std::vector<std::vector<uint64_t>> rates;   /* bits per second */
		std::vector<std::vector<uint64_t>> lengths; /* bytes */
		std::vector<uint64_t> cnps;                 /* of all flows */
	};

	const Scenario &scenario;

private:
	EventLoop control_; /* faults, samples and the end of the warm-up */
	EventLoop switches_;
	std::vector<EventLoop> cards_; /* empty: all are in switches_, in the order of time */

public:
	fabric::Fabric fabric;
	std::vector<std::unique_ptr<Host>> hosts;
	std::vector<std::unique_ptr<Flow>> flows;
	std::vector<Rotation> rotations; /* of flows that send in turn */
	std::vector<fabric::QueueRef>
	        queues; /* that had anything in them, once run() has returned */
	Curves curves;
	faults::FaultSet faults; /* by the scenario's rules */
	/** What they did, kMaxFaultNotes at most. */
	std::vector<FaultNote> fault_notes;
	static constexpr size_t kMaxFaultNotes = 10'000;

private:
	/* Counters at the end of the warm-up. */
	struct Start {
		std::vector<uint64_t> wire_bytes;             /* flows */
		std::vector<uint64_t> byte_ns;                /* queues */
		std::vector<std::array<uint64_t, 2>> busy_ns; /* links */
	};

	EventLoop &loop_of(unsigned card) { return cards_.empty() ? switches_ : cards_[card]; }
	void build_fabric();
	void build_flows();
	void set_rules();
	void arrived(unsigned link_end, faults::Bytes frame,
	             const std::vector<faults::FaultEvent> &events) override;
	void schedule();
	void sample();
	void end_warmup();
	void run_until(uint64_t end);
	void run_cards();
	std::vector<uint64_t> byte_ns(uint64_t now) const;
	void forget_unused_queues();
	double measured() const { return static_cast<double>(scenario.duration - scenario.warmup); }

	/* The shortest delay of a link from a card to a switch, and to another card, in ns. */
	uint64_t uplink_delay_, direct_delay_;
	uint64_t cards_now_ = 0; /* all cards have run up to this time, ns */
	std::vector<std::unique_ptr<faults::LinkFaults>> links_;
	Start start_;
	std::vector<uint64_t> end_byte_ns_;
	std::vector<uint64_t> sampled_; /* wire bytes of each flow */
	uint64_t sampled_cnps_ = 0;
};

} // namespace tern::sim
