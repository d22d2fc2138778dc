/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/sim/node.h"
#include "tests/sim/rng.h"
#include "tests/support/host.h"

namespace tern::sim {

/** A guest that writes anything anywhere: half nonsense, half nearly right, because only what is
 * nearly right gets far. */
class Vandal {
public:
	/** Sets the card of @node up. @victims: the nodes whose addresses its packets use. */
	Vandal(Node &node, Rng &rng, const std::vector<std::unique_ptr<Node>> &victims);
	/** One act that @rng chooses. */
	void act();
	/** Resets the card and creates objects of each kind again: a card in full use, because with
	 * any other one hardly anything gets past the first check. */
	void set_up();
	/** A WQE that is nearly right, or a receive WQE, or records with nonsense. */
	void post();

private:
	static constexpr uint64_t kArena = 1 << 18;

	uint32_t number();
	/** A page of the arena. */
	Iova somewhere() { return arena_ + rng_.below(kArena / 4096) * 4096; }
	hw::tern_hw_pages pages();
	/** A command with plausible fields, or with any. */
	void command();
	/** Some QP one step further, towards a QP of the victims. */
	void connect();
	void post_flush(test::HostQp &qp, test::SendRequest &request);
	void post_local(test::HostQp &qp, test::SendRequest &request);
	/** A packet that its card takes for one of a peer, for some QP and near the PSN it is at.
	 */
	void forge();
	uint8_t forged_opcode();
	/** The payload again and again, as a burst, or as what is none. */
	void forge_burst(std::span<const std::byte> head, std::span<const std::byte> payload);
	hw::tern_hw_tag_op tag_op();
	/** Makes a message of @payload that has a tag. */
	void forge_tag(std::span<std::byte> payload);
	/** Mostly one that is good. */
	uint32_t key();
	void submit(const hw::tern_hw_aq_cmd &c);

	Node &node_;
	Rng &rng_;
	const std::vector<std::unique_ptr<Node>> &victims_;
	Iova arena_;
	uint32_t aq_pi_ = 0;
	uint32_t key_ = 0;
	std::array<uint32_t, 3> windows_{}; /* of both types, and a fast region */
	std::vector<std::unique_ptr<test::HostSrq>> srqs_;
	std::vector<std::unique_ptr<test::HostQp>> qps_;
};

} // namespace tern::sim
