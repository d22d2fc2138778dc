// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/atomics.h"

#include "tests/unit/transport/one_responder.h"

namespace tern::test {
namespace {

/* Computes what masked_sum() returns, one field after the other. */
uint64_t sum_of_fields(uint64_t value, uint64_t add, uint64_t tops)
{
	uint64_t sum = 0;
	for (unsigned at = 0, end; at < 64; at = end) {
		end = at + 1;
		while (end < 64 && !(tops >> (end - 1) & 1))
			end++;
		const uint64_t field = UINT64_MAX >> (64 - (end - at)) << at;
		sum |= ((value & field) + (add & field)) & field;
	}
	return sum;
}

TEST(Atomics, MaskedSum)
{
	EXPECT_EQ(masked_sum(UINT64_MAX, 3, 0), 2u) << "one field";
	EXPECT_EQ(masked_sum(UINT64_MAX, 3, 1ull << 63), 2u);
	EXPECT_EQ(masked_sum(0xffffffff, 1, 1u << 31), 0u) << "no carry leaves the low half";
	EXPECT_EQ(masked_sum(0x7fffffff, 1, 1u << 31), 0x80000000u) << "one within it stays";
	EXPECT_EQ(masked_sum(0xffffffff, 0x300000001, 1u << 31), 0x300000000u);
	EXPECT_EQ(masked_sum(0x0f0f, 0x0101, 0x8888), 0x0000u);
	EXPECT_EQ(masked_sum(0xa5, 0xff, UINT64_MAX), 0x5au) << "fields of a bit";
}

TEST(Atomics, MaskedSumOfAnyFields)
{
	uint64_t state = 1;
	const auto random = [&state] {
		state = state * 6364136223846793005 + 1442695040888963407;
		return state ^ state >> 29;
	};
	for (int i = 0; i < 1000; i++) {
		const uint64_t value = random();
		const uint64_t add = random();
		const uint64_t tops = random() & random();
		ASSERT_EQ(masked_sum(value, add, tops), sum_of_fields(value, add, tops))
		        << std::hex << value << " " << add << " " << tops;
	}
}

TEST(Atomics, MaskedSwap)
{
	const AtomicEth atomic{.swap_add = 0x1111, .compare = 0x12ff};
	EXPECT_EQ(masked_swap(0x1234, atomic, {.swap_add = 0x00ff, .compare = 0xff00}), 0x1211u);
	EXPECT_EQ(masked_swap(0x1234, atomic, {.swap_add = 0x00ff, .compare = 0xffff}), 0x1234u);
	EXPECT_EQ(masked_swap(0x1234, atomic, {.swap_add = UINT64_MAX, .compare = 0}), 0x1111u)
	        << "nothing is compared";
	EXPECT_EQ(masked_swap(0x12ff, atomic, {.swap_add = 0, .compare = UINT64_MAX}), 0x12ffu)
	        << "nothing is replaced";
}

TestPacket masked(TestPacket plain, Opcode opcode, AtomicMasks masks)
{
	plain.opcode = opcode;
	plain.ext.masks = masks;
	return plain;
}

TestPacket masked_add(TestPacket plain, uint64_t tops)
{
	return masked(std::move(plain), Opcode::RcMaskedFetchAdd, {.swap_add = tops});
}

/* The responder answers a duplicate with the first result and does not change the memory. */
TEST_F(Responder, MaskedAtomicPast)
{
	mr_->write_u64(0, 0xffffffff);
	give(masked_add(add(0, 0, 1), 1u << 31));
	EXPECT_EQ(sent()->ext.atomic_ack, 0xffffffffu);
	EXPECT_EQ(mr_->read_u64(0), 0u);
	mr_->write_u64(0, 7777);
	give(masked_add(add(0, 0, 1), 1u << 31));
	const auto p = sent();
	EXPECT_EQ(p->opcode, Opcode::RcAtomicAcknowledge);
	EXPECT_EQ(p->psn, psn(0));
	EXPECT_EQ(p->ext.atomic_ack, 0xffffffffu);
	EXPECT_EQ(mr_->read_u64(0), 7777u);
}

TEST_F(Responder, MaskedAtomicExpected)
{
	mr_->write_u64(8, 0x1234);
	auto p = masked(add(0, 8, 0x1111), Opcode::RcMaskedCompareSwap, {0x00ff, 0xff00});
	p.ext.atomic.compare = 0x12ff;
	give(p);
	EXPECT_EQ(sent()->ext.atomic_ack, 0x1234u);
	EXPECT_EQ(mr_->read_u64(8), 0x1211u);
	/* The compared bits differ, so the word stays. */
	p.psn = psn(1);
	p.ext.masks.compare = 0xffff;
	give(p);
	EXPECT_EQ(sent()->ext.atomic_ack, 0x1211u);
	EXPECT_EQ(mr_->read_u64(8), 0x1211u);
	EXPECT_EQ(stat(TERN_STAT_RESP_ATOMICS), 2u);
}

TEST_F(Responder, MaskedAtomicFuture)
{
	mr_->write_u64(0, 1);
	give(masked_add(add(1, 0, 5), 0));
	expect_aeth(0, kSeqNak);
	EXPECT_EQ(mr_->read_u64(0), 1u);
}

TEST_F(Responder, MaskedAtomicMisaligned)
{
	give(masked_add(add(0, 4, 5), 0));
	expect_error(0, kInvalidNak, TERN_EVENT_QP_REQ_ERR);
}

/* The responder answers a request with a payload by NAK Invalid Request; it does not drop it. */
TEST_F(Responder, MaskedAtomicTooLong)
{
	auto p = masked_add(add(0, 0, 5), 0);
	p.payload = bytes(4);
	give(p);
	expect_error(0, kInvalidNak, TERN_EVENT_QP_REQ_ERR);
}

TEST_F(Responder, MaskedAtomicWithoutTheRight)
{
	auto c = connection();
	c.access &= static_cast<uint8_t>(~TERN_ACCESS_REMOTE_ATOMIC);
	connect(c);
	mr_->write_u64(0, 1);
	give(masked_add(add(0, 0, 5), 0));
	expect_error(0, kInvalidNak, TERN_EVENT_QP_REQ_ERR);
	EXPECT_EQ(mr_->read_u64(0), 1u);
}

TEST_F(Responder, MaskedAtomicOfUnknownKey)
{
	auto p = masked_add(add(0, 0, 5), 0);
	p.ext.atomic.rkey ^= 0x80;
	give(p);
	expect_error(0, kAccessNak, TERN_EVENT_QP_ACCESS_ERR);
}

/* The responder refuses the third atomic, as max_dest_rd_atomic allows two. */
TEST_F(Responder, MaskedAtomicsCountAsOutstanding)
{
	auto c = connection();
	c.max_dest_rd_atomic = 2;
	connect(c);
	for (uint32_t i = 0; i < 3; i++)
		give(masked_add(add(i, 0, 5), 0), path(), false);
	run();
	const auto all = all_sent();
	ASSERT_EQ(all.size(), 3u);
	EXPECT_EQ(all[1].opcode, Opcode::RcAtomicAcknowledge);
	EXPECT_EQ(all[2].ext.aeth.syndrome, kInvalidNak);
}

} // namespace
} // namespace tern::test
