/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two hosts with their cards in one process and on one core, with nothing between the cards. */
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "qemu/rnic/formats/gid.h"
#include "qemu/rnic/memory/host_ranges.h"
#include "qemu/rnic/rnic.h"
#include "tests/support/flat_memory.h"
#include "tests/support/host.h"

namespace tern::bench {

/** A host with its card. What its card sends the other receives at once. */
class Host final : private Wire, private Interrupts, private Clock {
public:
	explicit Host(uint8_t number);

	/** An area for data that starts at address zero of its region. */
	test::HostMr make_area(uint64_t size, unsigned page_shift);
	std::unique_ptr<test::HostQp> make_qp(unsigned log_depth);

	Mac mac;
	Gid gid;
	test::FlatMemory memory;
	Rnic card;
	test::Driver driver;
	uint32_t pd = 0;
	std::unique_ptr<test::HostCq> cq;
	Host *peer = nullptr;
	bool borrows = true; /* the wire takes payload where it lies */
	/* A second peer, for which the wire has room for so many frames or bursts; it answers
	 * nothing. */
	std::optional<Mac> slow_peer;
	uint32_t slow_room = 0;
	static constexpr Destination kSlow = 1;
	uint64_t sent = 0; /* packets */
	uint64_t time = 0; /* ns */

private:
	bool transmit(std::span<const std::byte> frame) override;
	Lend lend(std::span<const std::byte> head, std::span<const HostRange> payload,
	          uint32_t segment, const Loan &loan) override;
	/* The destination that had no room last. */
	Destination full() const override { return kSlow; }
	bool is_for_slow_peer(std::span<const std::byte> head) const;
	void raise(unsigned) override {}
	uint64_t now() override { return time; }

	std::array<std::span<const std::byte>, HostRanges::kMax> pieces_; /* on their way */
};

/** What is done again and again. */
struct Job {
	uint8_t opcode = hw::TERN_OP_WRITE;
	uint8_t flags = TERN_WQE_SIGNALED;
	uint32_t size = 8;
	uint32_t slots = 1; /* places of that size that take turns */

	bool operator==(const Job &) const = default;
};

/** Connects two QPs to each other. */
void connect(Host &a, test::HostQp &near, Host &b, test::HostQp &far);

class TwoCards {
public:
	/** @area: bytes of data on each side; @depth: requests that may be outstanding on one QP,
	 * a power of two. */
	TwoCards(uint64_t area, unsigned log_depth, unsigned page_shift = 21, uint32_t qps = 1);

	/** Fills all send queues with @job; so posting is no more than telling. */
	void prepare(const Job &job);
	/** As prepare(), with the region of @rkeys that is next for each request. */
	void prepare(const Job &job, std::span<const uint32_t> rkeys);
	/** Carries out @count requests on QP @qp, and throws when one fails. */
	void perform(uint32_t qp, uint32_t count);
	/** The same bytes, copied by memcpy from the same places to the same places. */
	void copy(uint32_t count);

	Host a{1};
	Host b{2};
	test::HostMr from;
	test::HostMr to;
	/** Keys of @count regions of the other host, each with all of its area. */
	std::vector<uint32_t> make_regions(uint32_t count);

private:
	struct Connection {
		std::unique_ptr<test::HostQp> near;
		std::unique_ptr<test::HostQp> far;
	};

	void connect();
	void post_recvs(Connection &c, uint32_t count);
	void fill(Connection &c, std::span<const uint32_t> rkeys);
	bool takes_recv() const { return job_.opcode == hw::TERN_OP_SEND; }

	unsigned log_depth_;
	uint64_t page_size_;
	Job job_;
	std::vector<Connection> connections_;

	struct Copy {
		std::byte *to;
		const std::byte *from;
		uint64_t size;
	};
	void add_copy(uint64_t offset);
	std::vector<std::vector<Copy>> copies_; /* of each slot */
	size_t next_copy_ = 0;
};

} // namespace tern::bench
