// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include "qemu/rnic/queues/recv_queue.h"
#include "qemu/rnic/queues/send_queue.h"
#include "tests/support/host.h"

namespace tern::test {
namespace {

using namespace hw;

class WorkQueueTest : public ::testing::Test {
protected:
	static constexpr uint8_t kLog = 2; /* four blocks, four receive WQEs of 32 bytes */
	static constexpr uint64_t kRq = 256;

	WorkQueueTest()
	        : rooms_(memory_, 8), buffer_(memory_, 4096, 1), record_(memory_.alloc(64)),
	          pages_(*PageList::make(buffer_.pages(), 0, kRq + 128)),
	          sq_(pages_, kLog, record_, hw::TERN_QPT_RC), rq_(pages_, kRq, kLog, 5, record_)
	{
	}
	void set_rq_pi(uint32_t pi) { memory_.put(record_, Le<uint32_t>(pi)); }
	void set_sq_pi(uint32_t pi) { memory_.put(record_ + 4, Le<uint32_t>(pi)); }
	uint32_t sq_event() { return memory_.get<Le<uint32_t>>(record_ + 32).get(); }
	void put(uint32_t block, const std::vector<std::byte> &blocks)
	{
		for (size_t at = 0; at < blocks.size(); at += 64, block++)
			buffer_.write((block % 4) * 64, std::span(blocks).subspan(at, 64));
	}

	FakeMemory memory_;
	Memory rooms_;
	Buffer buffer_;
	Iova record_;
	PageList pages_;
	SendQueue sq_;
	RecvQueue rq_;
};

/* A WQE over the end of the ring goes on at its start. */
TEST_F(WorkQueueTest, WqeWraps)
{
	SendRequest request{.opcode = TERN_OP_SEND, .flags = TERN_WQE_INLINE};
	request.inline_data = std::vector<std::byte>(100, std::byte{0xcd});
	EXPECT_TRUE(sq_.posted(3));
	sq_.advance(3);
	put(3, encode(request));
	EXPECT_TRUE(sq_.posted(5));
	SendWqe wqe;
	ASSERT_EQ(sq_.fetch(rooms_, 3, wqe), Fetch::Ok);
	EXPECT_EQ(wqe.blocks, 2);
	const auto data = wqe.inline_data();
	EXPECT_EQ(std::vector(data.begin(), data.end()), request.inline_data);
}

/* More blocks than were posted: the rest is not this WQE's. */
TEST_F(WorkQueueTest, WqeBeyondWhatWasPosted)
{
	SendRequest request{.opcode = TERN_OP_SEND, .flags = TERN_WQE_INLINE};
	request.inline_data.resize(100);
	put(0, encode(request));
	EXPECT_TRUE(sq_.posted(1));
	SendWqe wqe;
	wqe.opcode = TERN_OP_READ;
	EXPECT_EQ(sq_.fetch(rooms_, 0, wqe), Fetch::Invalid);
	EXPECT_EQ(wqe.blocks, 0);
	/* It is told as what it says to be, not as what was read before it. */
	EXPECT_EQ(wqe.opcode, TERN_OP_SEND);
}

SendRequest flush_request(uint32_t length, uint8_t type, uint8_t level)
{
	SendRequest request{.opcode = TERN_OP_FLUSH, .remote_addr = 0x1000, .rkey = 0x77};
	request.flush =
	        tern_hw_flush_seg{.length = length, .type = type, .level = level, .rsvd = {}};
	return request;
}

TEST_F(WorkQueueTest, Flush)
{
	EXPECT_TRUE(sq_.posted(1));
	SendWqe wqe;
	for (const uint8_t type : {1, 2, 3})
		for (const uint8_t level : {TERN_FLUSH_RANGE, TERN_FLUSH_MR}) {
			put(0, encode(flush_request(1u << 31, type, level)));
			ASSERT_EQ(sq_.fetch(rooms_, 0, wqe), Fetch::Ok);
			EXPECT_EQ(wqe.flush.length, 1u << 31);
			EXPECT_EQ(wqe.flush.type, type);
			EXPECT_EQ(wqe.flush.level, level);
			EXPECT_EQ(wqe.length, 0u);
			EXPECT_EQ(wqe.rkey, 0x77u);
		}
}

TEST_F(WorkQueueTest, FlushesThatCannotBe)
{
	std::vector<SendRequest> bad = {flush_request((1u << 31) + 1, 1, 0), flush_request(8, 0, 0),
	                                flush_request(8, 4, 0), flush_request(8, 1, 2)};
	for (int i = 0; i < 4; i++)
		bad.push_back(flush_request(8, 1, 0));
	bad[4].flags |= TERN_WQE_INLINE;
	bad[5].sges = {{1, 0, 3}};
	bad[6].flush->rsvd[9] = 1;
	bad[7].flush.reset();
	EXPECT_TRUE(sq_.posted(1));
	SendWqe wqe;
	for (const auto &request : bad) {
		put(0, encode(request));
		EXPECT_EQ(sq_.fetch(rooms_, 0, wqe), Fetch::Invalid) << &request - bad.data();
	}
}

SendRequest masked_request(uint8_t opcode)
{
	SendRequest request{
	        .opcode = opcode, .remote_addr = 0x1000, .rkey = 0x77, .swap_add = 0x11};
	request.sges = {{1, 8, 3}};
	request.masks.emplace();
	request.masks->swap_add = 0xff00u;
	return request;
}

TEST_F(WorkQueueTest, MaskedAtomic)
{
	auto request = masked_request(TERN_OP_MASKED_CMP_SWAP);
	request.compare = 0x22;
	request.masks->compare = 0xf0f0u;
	put(0, encode(request));
	EXPECT_TRUE(sq_.posted(2));
	SendWqe wqe;
	ASSERT_EQ(sq_.fetch(rooms_, 0, wqe), Fetch::Ok);
	EXPECT_EQ(wqe.blocks, 2);
	EXPECT_EQ(wqe.remote_addr, 0x1000u);
	EXPECT_EQ(wqe.rkey, 0x77u);
	EXPECT_EQ(wqe.swap_add, 0x11u);
	EXPECT_EQ(wqe.compare, 0x22u);
	EXPECT_EQ(wqe.swap_add_mask, 0xff00u);
	EXPECT_EQ(wqe.compare_mask, 0xf0f0u);
	EXPECT_EQ(wqe.length, 8u);
	EXPECT_TRUE(wqe.expects_data());
}

TEST_F(WorkQueueTest, MaskedAtomicsThatCannotBe)
{
	std::vector<SendRequest> bad(6, masked_request(TERN_OP_MASKED_FETCH_ADD));
	bad[0].compare = 1;
	bad[1].masks->compare = 1u;
	bad[2].masks.reset();
	bad[3].sges = {{1, 8, 3}, {1, 8, 3}};
	bad[4].sges = {{1, 16, 3}};
	bad[5].flags |= TERN_WQE_INLINE;
	bad[5].inline_data.resize(8);
	EXPECT_TRUE(sq_.posted(2));
	SendWqe wqe;
	put(0, encode(masked_request(TERN_OP_MASKED_FETCH_ADD)));
	EXPECT_EQ(sq_.fetch(rooms_, 0, wqe), Fetch::Ok);
	for (const auto &request : bad) {
		put(0, encode(request));
		EXPECT_EQ(sq_.fetch(rooms_, 0, wqe), Fetch::Invalid) << &request - bad.data();
	}
}

/* The masks of one request are not those of the next. */
TEST_F(WorkQueueTest, AtomicBehindAMaskedOne)
{
	EXPECT_TRUE(sq_.posted(2));
	SendWqe wqe;
	put(0, encode(masked_request(TERN_OP_MASKED_FETCH_ADD)));
	ASSERT_EQ(sq_.fetch(rooms_, 0, wqe), Fetch::Ok);
	auto plain = masked_request(TERN_OP_FETCH_ADD);
	plain.masks.reset();
	put(0, encode(plain));
	ASSERT_EQ(sq_.fetch(rooms_, 0, wqe), Fetch::Ok);
	EXPECT_EQ(wqe.swap_add_mask, 0u);
}

/* QPs of other types refuse masked atomics: only RC has opcodes for them on the wire. */
TEST_F(WorkQueueTest, MaskedAtomicsOfRc)
{
	const auto blocks = encode(masked_request(TERN_OP_MASKED_FETCH_ADD));
	for (const auto type : {TERN_QPT_RC, TERN_QPT_XRC_INI, TERN_QPT_UC, TERN_QPT_UD}) {
		SendWqe wqe;
		std::ranges::copy(blocks, wqe.raw.begin());
		EXPECT_EQ(decode(wqe, 5, type), type == TERN_QPT_RC ? Fetch::Ok : Fetch::Invalid);
	}
}

TEST_F(WorkQueueTest, ImpossibleProducerIndex)
{
	EXPECT_FALSE(sq_.posted(5));
	EXPECT_TRUE(sq_.posted(4));
	/* An old one says nothing new. */
	EXPECT_TRUE(sq_.posted(2));
	SendWqe wqe;
	put(0,
	    encode({.opcode = TERN_OP_SEND, .sges = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {1, 1, 1}}}));
	EXPECT_EQ(sq_.fetch(rooms_, 0, wqe), Fetch::Ok);
	EXPECT_EQ(wqe.length, 2u + 5 + 8 + 1);
}

/* The record told of two posts, both were started, and only then the doorbell of the first gets
 * here. */
TEST_F(WorkQueueTest, LateDoorbell)
{
	set_sq_pi(2);
	sq_.reload(memory_);
	sq_.advance(2);
	EXPECT_TRUE(sq_.posted(1));
	EXPECT_TRUE(sq_.empty());
	EXPECT_TRUE(sq_.posted(3));
	EXPECT_FALSE(sq_.empty());
}

/* Before it sleeps the card says from where on it wants the doorbell, and looks once more. */
TEST_F(WorkQueueTest, Sleep)
{
	EXPECT_TRUE(sq_.sleep(memory_));
	EXPECT_EQ(sq_event(), 0u);
	set_sq_pi(2);
	EXPECT_FALSE(sq_.sleep(memory_));
	sq_.advance(2);
	EXPECT_TRUE(sq_.sleep(memory_));
	EXPECT_EQ(sq_event(), 2u);
}

TEST_F(WorkQueueTest, ReceiveListEnds)
{
	tern_hw_data_seg segs[2]{};
	segs[0].addr = uint64_t{0x1000};
	segs[0].length = 10u;
	segs[0].lkey = 0x100u;
	buffer_.write(kRq, std::as_bytes(std::span(segs)));
	RecvWqe wqe;
	ASSERT_EQ(rq_.fetch(rooms_, 0, wqe), Fetch::Ok);
	EXPECT_EQ(wqe.sges().size(), 1u);
	EXPECT_EQ(wqe.length, 10u);
	/* By the stride. */
	segs[1] = segs[0];
	buffer_.write(kRq, std::as_bytes(std::span(segs)));
	ASSERT_EQ(rq_.fetch(rooms_, 4, wqe), Fetch::Ok);
	EXPECT_EQ(wqe.sges().size(), 2u);
	segs[1].length = (1u << 31) + 1;
	buffer_.write(kRq, std::as_bytes(std::span(segs)));
	EXPECT_EQ(rq_.fetch(rooms_, 0, wqe), Fetch::Invalid);
}

TEST_F(WorkQueueTest, ReceivesPosted)
{
	EXPECT_FALSE(rq_.has_wqe(memory_));
	set_rq_pi(3);
	EXPECT_EQ(rq_.posted(memory_), 3u);
	rq_.advance();
	EXPECT_EQ(rq_.posted(memory_), 2u);
	/* Impossible, or backwards: as if it had not changed. */
	for (const uint32_t pi : {6u, 2u, 0u, UINT32_MAX}) {
		set_rq_pi(pi);
		EXPECT_EQ(rq_.posted(memory_), 2u);
		EXPECT_EQ(rq_.broken(), pi != 2);
	}
	set_rq_pi(4);
	EXPECT_EQ(rq_.posted(memory_), 3u);
	EXPECT_FALSE(rq_.broken());
}

/* A host that does not use the shadow doorbell leaves the index of the record at 0, also when it is
 * 2^31 and more behind. */
TEST_F(WorkQueueTest, RecordNotUsed)
{
	constexpr uint8_t kLogSize = 18;
	SendQueue sq({}, kLogSize, record_, TERN_QPT_RC);
	for (uint32_t pi = 1u << kLogSize; pi != 3u << 30; pi += 1u << kLogSize) {
		ASSERT_TRUE(sq.posted(pi));
		sq.advance(1u << kLogSize);
		sq.reload(memory_);
		ASSERT_TRUE(sq.empty());
	}
	EXPECT_FALSE(sq.broken());
	set_sq_pi((3u << 30) + 1);
	sq.reload(memory_);
	EXPECT_TRUE(sq.broken());
}

} // namespace
} // namespace tern::test
