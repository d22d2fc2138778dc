/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
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
	static constexpr uint64_t kRegion = 8192;
	/* The Q_Key of the datagram QPs, which no other QP of the simulation has. */
	static constexpr uint32_t kQkey = 0x7e44;
	static constexpr size_t kWqs = 2;
	/* The places in qps_ of two QPs of each of these types. */
	static constexpr size_t kFirstRaw = 0, kFirstEth = 2, kFirstDatagram = 4;
	/* The VLAN of the frames that have a tag. */
	static constexpr uint16_t kFrameVlan = 42;

	/** An Ethernet frame, and where in it TCP or UDP begins. */
	struct Frame {
		Link::Frame bytes;
		size_t l4;
		bool tcp;
	};

	/** The path between a QP and its peer. */
	struct Path {
		const Node &to;
		size_t gid; /* index in the tables of both */
		uint8_t mtu;
	};

	/* ---- numbers and addresses: mostly good ones ---- */

	uint32_t number();
	uint32_t key();
	/** Returns the number of a QP, at times of one that does not exist. */
	uint32_t qpn();
	const Node &victim() { return *victims_[rng_.below(victims_.size())]; }
	/** A page of the arena. */
	Iova somewhere() { return arena_ + rng_.below(kArena / 4096) * 4096; }
	hw::tern_hw_pages pages();
	/** Returns a multicast GID that all vandals use. */
	static Gid group(uint64_t which);

	/* ---- set-up ---- */

	void create_regions(uint32_t pd);
	void create_qps(uint32_t pd, uint32_t xrcd);
	/** Receive queues, a table of them, and a QP that spreads frames over them. */
	void create_spread(uint32_t pd);
	uint32_t create(const hw::tern_hw_aq_cmd &c);
	/** Resets the QP and brings it to RTS, connected with a QP of its type. */
	void bring_up(test::HostQp &qp, Rng &rng);
	Path path_of(const test::HostQp &qp, Rng &rng);
	/** Returns one of the victims, but not its own node. */
	const Node &stranger(Rng &rng);
	uint32_t peer_of(const test::HostQp &qp, Rng &rng);
	hw::tern_hw_qp_attr attributes(const test::HostQp &qp, Rng &rng);
	void control_congestion(Rng &rng);

	/* ---- commands ---- */

	/** A command with plausible fields, or with any. */
	void command();
	bool fill_memory(hw::tern_hw_aq_cmd &c);
	bool fill_queue(hw::tern_hw_aq_cmd &c);
	bool fill_srq(hw::tern_hw_aq_cmd &c);
	bool fill_ethernet(hw::tern_hw_aq_cmd &c);
	bool fill_other(hw::tern_hw_aq_cmd &c);
	void fill_flow(hw::tern_hw_create_flow &flow);
	/** Some QP one step further, towards a QP of the victims. */
	void connect();
	/** Brings or takes a page of the region on demand, and lets a QP go on. */
	void page();
	void submit(const hw::tern_hw_aq_cmd &c);

	/* ---- work requests ---- */

	void post_receives(test::HostQp &qp);
	void post_srq();
	void post_flush(test::HostQp &qp, test::SendRequest &request);
	void post_local(test::HostQp &qp, test::SendRequest &request);
	/** Posts a frame whose checksums or segments the card has to make. */
	void post_frame(test::HostQp &qp);
	hw::tern_hw_ud_seg datagram_address();
	hw::tern_hw_tag_op tag_op();

	/* ---- what arrives ---- */

	/** A packet that its card takes for one of a peer, for some QP and near the PSN it is at.
	 */
	void forge();
	uint8_t forged_opcode(uint8_t type);
	/** The payload again and again, as a burst, or as what is none. */
	void forge_burst(std::span<const std::byte> head, std::span<const std::byte> payload);
	/** Makes a message of @payload that has a tag. */
	void forge_tag(std::span<std::byte> payload);
	Frame make_frame();

	Node &node_;
	Rng &rng_;
	const std::vector<std::unique_ptr<Node>> &victims_;
	Iova arena_;
	uint32_t aq_pi_ = 0;
	std::optional<test::HostMr> plain_;     /* contiguous */
	std::optional<test::HostMr> on_demand_; /* its pages come and go */
	std::array<uint32_t, 2> others_{};      /* regions: of tables, and of device memory */
	std::array<uint32_t, 3> windows_{};     /* of both types, and a fast region */
	std::unique_ptr<test::HostCq> cq_;
	std::vector<std::unique_ptr<test::HostSrq>> srqs_;
	std::vector<std::unique_ptr<test::HostQp>> qps_;
	std::vector<std::unique_ptr<test::HostQp>> wqs_; /* have a receive queue only */
	uint32_t rss_qpn_ = 0;                           /* spreads over these */
};

} // namespace tern::sim
