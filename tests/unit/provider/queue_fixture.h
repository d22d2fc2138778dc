// SPDX-License-Identifier: GPL-2.0-or-later
/* Rings, records and a doorbell page in memory, as a QP and its CQ have them. */
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "datapath/completion_queue.h"
#include "datapath/recv_queue.h"
#include "datapath/send_queue.h"
#include "tern/tern_hw.h"

namespace tern::provider::test {

using namespace tern::hw;

constexpr uint32_t kAllCaps = ~0u;
constexpr uint64_t kNoDoorbell = ~uint64_t{0};

struct alignas(64) Page {
	std::byte bytes[TERN_DB_PAGE_SIZE];
};

class QueueFixture : public ::testing::Test {
protected:
	QueueFixture()
	{
		forget_doorbells();
		std::memset(ring_.bytes, 0xee, sizeof(ring_.bytes));
	}

	/** A send queue of @blocks and as many requests, with room for inline data and all SGEs. */
	void make_sq(SendQueue &sq, uint32_t blocks, bool shadow = false)
	{
		SendQueue::Config config = sq_config(blocks);
		config.shadow_doorbell = shadow;
		ASSERT_EQ(sq.init(config), 0);
		sq.open();
	}

	SendQueue::Config sq_config(uint32_t blocks)
	{
		return {
		        .ring = {ring_.bytes, size_t{blocks} * TERN_SQ_BLOCK},
		        .record = QpRecord(&qp_record_),
		        .doorbells = DoorbellPage(doorbells_.bytes),
		        .qpn = 0x123456,
		        .max_wr = blocks,
		        .max_sge = TERN_MAX_SEND_SGE,
		        .max_inline = TERN_MAX_INLINE,
		        .service = Service::kRc,
		        .ops = send_ops_of(Service::kRc, kAllCaps),
		        .shadow_doorbell = false,
		        .signal_all = false,
		};
	}

	void forget_doorbells() { std::memset(doorbells_.bytes, 0xff, sizeof(doorbells_.bytes)); }

	/** What was last stored to a doorbell since forget_doorbells(). */
	uint64_t doorbell(unsigned offset) const
	{
		uint64_t v;
		std::memcpy(&v, doorbells_.bytes + offset, sizeof(v));
		return v;
	}

	/** Segment @n of the ring, modulo nothing. */
	template <class Segment>
	Segment segment(size_t n) const
	{
		static_assert(sizeof(Segment) == TERN_SEG_SIZE);
		Segment s;
		std::memcpy(&s, ring_.bytes + n * TERN_SEG_SIZE, sizeof(s));
		return s;
	}

	/** The bytes of the ring from @offset on. */
	std::vector<uint8_t> bytes(size_t offset, size_t length) const
	{
		const auto *p = reinterpret_cast<const uint8_t *>(ring_.bytes) + offset;
		return {p, p + length};
	}

	Page ring_;
	Page doorbells_;
	alignas(64) tern_hw_qp_record qp_record_{};
};

} // namespace tern::provider::test
