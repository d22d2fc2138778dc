/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two hosts with their cards, and between them a neighbour: a program that writes to the other host
 * again and again, while the card does what others ask for. Times are those that the two cards take
 * of the processor, without what the programs of the hosts take and without the clock's own cost.
 */
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/bench/two_cards.h"

namespace tern::bench {

/* As the engine in QEMU has it. */
constexpr unsigned kBudget = 16;
constexpr unsigned kRounds = 3;

/** Median of what is not empty. */
double median(std::vector<double> values);

/** What the neighbour does. */
enum class Neighbour : uint8_t {
	kLatency,   /* writes 8 bytes, waits, and writes again */
	kBandwidth, /* always has a few writes of 64 KiB to send */
};

struct Result {
	double longest = 0;        /* us, of a call of a card */
	double took = 0;           /* us */
	uint64_t writes = 0;       /* of the neighbour */
	std::vector<double> waits; /* us, for each write, of 8 bytes only */
	uint64_t work = 0;         /* what the attackers got done, by their own count */

	double rate() const { return static_cast<double>(writes) / took; }
};

/** Two hosts, and between them the neighbour. */
class World {
public:
	/** @scale: divides all sizes. */
	explicit World(uint32_t scale, Neighbour neighbour = Neighbour::kLatency);

	uint32_t scaled(uint32_t n) const { return std::max(n / scale_, 2u); }
	unsigned log_scaled(unsigned log) const
	{
		return log - static_cast<unsigned>(std::min(31 - __builtin_clz(scale_), 6));
	}
	/** A QP of A with long queues, which completes to a CQ of its own. */
	std::unique_ptr<test::HostQp> make_qp(unsigned log_sq, unsigned log_rq,
	                                      uint8_t type = hw::TERN_QPT_RC);
	/** Returns the number of CQEs of these QPs since the last call. @each is called for each of
	 * them. */
	uint32_t completed(const std::function<void(const hw::tern_hw_cqe &cqe)> &each =
	                           [](const hw::tern_hw_cqe &) {});

	/** Measures @start, which is one call, and what follows until @done, or without it until
	 * the admin commands have completed. */
	Result measure(const std::function<void()> &start, std::function<bool()> done = {});
	/** Counts @call as time of the cards. */
	void timed(const std::function<void()> &call);
	/** The cards' time since measure() was called, us. */
	double now() const { return cards_; }
	uint32_t submit(const hw::tern_hw_aq_cmd &command) { return a.driver.submit(command); }

	Host a{1};
	Host b{2};
	test::HostEq eq = a.driver.create_eq(1);
	std::unique_ptr<test::HostMr> source; /* of A */
	std::unique_ptr<test::HostMr> area;   /* of B */

private:
	void step();
	void post();

	uint32_t scale_;
	Neighbour neighbour_;
	double cards_ = 0;  /* us */
	double posted_ = 0; /* the neighbour's last write */
	std::unique_ptr<test::HostQp> near_;
	std::unique_ptr<test::HostQp> far_;
	std::unique_ptr<test::HostCq> other_cq_;
	Result result_;
};

/** Memory that the host has touched before. */
void touch(test::FlatMemory &memory, Iova from, uint64_t size);

hw::tern_hw_aq_cmd object(hw::tern_hw_aq_op opcode, uint32_t id);
hw::tern_hw_aq_cmd modify(const test::HostQp &qp, hw::tern_hw_qp_state state);

} // namespace tern::bench
