// SPDX-License-Identifier: GPL-2.0-or-later
/* Where messages go, with a data path but without a QP or a card. */
#include "qemu/rnic/transport/recv_claims.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "qemu/rnic/transport/data_path.h"
#include "qemu/rnic/transport/page_waits.h"
#include "tests/support/fake_host.h"
#include "tests/support/page_tables.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kPd = 5;
constexpr uint32_t kSrqPd = 6;
constexpr uint32_t kRecvCqn = 3;
constexpr uint32_t kSrqCqn = 4;
constexpr uint8_t kLogSize = 2;
constexpr uint8_t kLogStride = 6;
constexpr uint32_t kPage = 4096;
constexpr uint32_t kSrqRing = kPage / 2; /* where the ring of slots begins */

std::vector<std::byte> bytes(size_t n, unsigned from = 1)
{
	std::vector<std::byte> data(n);
	for (size_t i = 0; i < n; i++)
		data[i] = static_cast<std::byte>(i * 3 + from);
	return data;
}

class RecvClaimsTest : public ::testing::Test {
protected:
	RecvClaimsTest()
	        : data_({}, host_.ports()), config_{.pdn = kPd, .recv_cqn = kRecvCqn},
	          queue_(host_.memory, kPage), record_(host_.memory.alloc(64)),
	          buffer_(host_.memory, 2 * kPage, 1, 12, true), key_(region(kPd)),
	          recv_(data_, config_, waits_,
	                RecvQueue(*PageList::make(queue_.pages(), 0, kPage), 0, kLogSize,
	                          kLogStride, record_))
	{
		buffer_.bring(0, true);
	}
	/** A region of @pdn over buffer_; its second page is absent. */
	uint32_t region(uint32_t pdn)
	{
		Region region{.length = 2 * kPage, .pdn = pdn, .access = TERN_ACCESS_LOCAL_WRITE};
		region.pages = *PageList::make_region(buffer_.pages(), 0, 2 * kPage, true);
		return *data_.memory.create(std::move(region));
	}
	static void write_wqe(Buffer &queue, uint32_t slot, const std::vector<Sge> &sges)
	{
		std::array<tern_hw_data_seg, 4> segs{};
		for (size_t i = 0; i < sges.size(); i++)
			segs[i] = {sges[i].addr, sges[i].length, sges[i].lkey};
		queue.write(uint64_t{slot} << kLogStride, std::as_bytes(std::span(segs)));
	}
	/** Posts a WQE to the own receive queue. */
	void post(const std::vector<Sge> &sges)
	{
		write_wqe(queue_, pi_++ & ((1u << kLogSize) - 1), sges);
		publish(pi_);
	}
	void post(uint64_t offset, uint32_t length) { post({{offset, length, key_}}); }
	void publish(uint32_t pi)
	{
		host_.memory.put(record_ + offsetof(tern_hw_qp_record, rq_pi), Le<uint32_t>(pi));
	}

	FakeHost host_;
	DataPath data_;
	QpConfig config_;
	PageWaits waits_;
	Buffer queue_;
	Iova record_;
	Buffer buffer_;
	uint32_t key_;
	uint32_t pi_ = 0;
	RecvClaims recv_;
};

/* A message keeps its WQE until it ends, and the next one gets the next WQE. */
TEST_F(RecvClaimsTest, OneAfterTheOther)
{
	EXPECT_EQ(recv_.claim(), RecvResult::Empty);
	EXPECT_FALSE(recv_.claimed());
	post(0, 100);
	post(200, 100);
	EXPECT_EQ(recv_.credits(), 2u);
	for (uint32_t index = 0; index < 2; index++) {
		EXPECT_EQ(recv_.claim(), RecvResult::Done);
		EXPECT_EQ(recv_.claim(), RecvResult::Done);
		EXPECT_TRUE(recv_.claimed());
		EXPECT_EQ(recv_.credits(), 2 - index) << "the claimed WQE counts";
		tern_hw_cqe cqe{};
		EXPECT_EQ(recv_.end(cqe), kRecvCqn);
		EXPECT_EQ(cqe.wqe_index.get(), index);
		EXPECT_EQ(cqe.srqn.get(), 0u);
		EXPECT_FALSE(recv_.claimed());
	}
	EXPECT_EQ(recv_.claim(), RecvResult::Empty);
}

/* The packets of a message, over two buffers. What does not fit leaves the claim. */
TEST_F(RecvClaimsTest, PacketsOfAMessage)
{
	post({{0, 100, key_}, {1000, 50, key_}});
	ASSERT_EQ(recv_.claim(), RecvResult::Done);
	EXPECT_EQ(recv_.place(0, bytes(80)), RecvResult::Done);
	EXPECT_EQ(recv_.place(80, bytes(70, 7)), RecvResult::Done);
	EXPECT_EQ(recv_.place(150, bytes(1)), RecvResult::TooLong);
	EXPECT_EQ(buffer_.read(0, 80), bytes(80));
	EXPECT_EQ(buffer_.read(80, 20), bytes(20, 7));
	EXPECT_EQ(buffer_.read(1000, 50), bytes(50, 7 + 20 * 3));
	/* The WQE is read once for both parts of a datagram. */
	host_.memory.fault(queue_.at(0), 1 << kLogStride);
	EXPECT_EQ(recv_.place_more(0, bytes(40, 9)), RecvResult::Done);
	EXPECT_EQ(buffer_.read(0, 40), bytes(40, 9));
	EXPECT_TRUE(recv_.claimed());
}

TEST_F(RecvClaimsTest, WqesThatFail)
{
	struct Case {
		Sge sge;
		RecvResult result;
		tern_hw_cqe_status status;
	};
	const uint32_t other_pd = region(kPd + 1);
	for (const auto &[sge, result, status] : {
	             Case{{0, (1u << 31) + 1, key_}, RecvResult::InvalidWqe, TERN_WC_LOC_QP_OP_ERR},
	             Case{{0, 7, key_}, RecvResult::TooLong, TERN_WC_LOC_LEN_ERR},
	             Case{{0, 8, other_pd}, RecvResult::BadBuffer, TERN_WC_LOC_PROT_ERR},
	             Case{{kPage, 8, key_}, RecvResult::NeedPages, TERN_WC_SUCCESS},
	             Case{{0, 8, key_}, RecvResult::Done, TERN_WC_SUCCESS},
	     }) {
		post({sge});
		ASSERT_EQ(recv_.claim(), RecvResult::Done);
		const RecvResult placed = recv_.place(0, bytes(8));
		EXPECT_EQ(placed, result);
		EXPECT_EQ(status_of(placed), status);
		tern_hw_cqe cqe{};
		recv_.end(cqe);
	}
	EXPECT_EQ(status_of(RecvResult::QueueFailed), TERN_WC_SUCCESS) << "the flush ends it";
}

/* A producer index that cannot be: the caller has to fail the QP. */
TEST_F(RecvClaimsTest, RecordOutOfRange)
{
	publish((1u << kLogSize) + 1);
	EXPECT_EQ(recv_.claim(), RecvResult::QueueFailed);
	EXPECT_FALSE(recv_.claimed());
}

/* The WQE is claimed, so that the flush completes it. */
TEST_F(RecvClaimsTest, WqeUnreachable)
{
	post(0, 100);
	host_.memory.fault(queue_.at(0), 4);
	EXPECT_EQ(recv_.claim(), RecvResult::Done);
	EXPECT_EQ(recv_.place(0, bytes(8)), RecvResult::QueueFailed);
	EXPECT_TRUE(recv_.claimed());
}

TEST_F(RecvClaimsTest, Reset)
{
	post(0, 100);
	post(0, 100);
	ASSERT_EQ(recv_.claim(), RecvResult::Done);
	publish(0);
	recv_.reset();
	EXPECT_FALSE(recv_.claimed());
	EXPECT_EQ(recv_.claim(), RecvResult::Empty);
}

/* ---- pages on demand ---- */

class RecvClaimsPages : public RecvClaimsTest {
protected:
	/** The QP waits for the pages of the last access. */
	void wait() { waits_.add(QpSide::Responder, data_.memory.fault()); }
};

/* The WQE is at fault until the pages are there, whatever comes meanwhile. */
TEST_F(RecvClaimsPages, UntilTheyAreThere)
{
	post(kPage - 40, 100);
	ASSERT_EQ(recv_.claim(), RecvResult::Done);
	EXPECT_EQ(recv_.place(0, bytes(40)), RecvResult::Done);
	EXPECT_FALSE(recv_.needs_pages());
	EXPECT_EQ(recv_.place(40, bytes(60)), RecvResult::NeedPages);
	EXPECT_TRUE(recv_.needs_pages());
	wait();
	EXPECT_EQ(recv_.place(0, bytes(40)), RecvResult::Done);
	EXPECT_EQ(recv_.place(40, bytes(60)), RecvResult::NeedPages);
	EXPECT_TRUE(recv_.needs_pages());
	buffer_.bring(1, true);
	recv_.resumed();
	EXPECT_FALSE(recv_.needs_pages());
	EXPECT_EQ(recv_.place(40, bytes(60)), RecvResult::Done);
	EXPECT_EQ(buffer_.read(kPage, 60), bytes(60));
}

/* The host is asked for the pages of something else. Its answer is not about this WQE. */
TEST_F(RecvClaimsPages, OfSomethingElse)
{
	wait();
	post(kPage, 100);
	ASSERT_EQ(recv_.claim(), RecvResult::Done);
	EXPECT_EQ(recv_.place(0, bytes(8)), RecvResult::NeedPages);
	EXPECT_FALSE(recv_.needs_pages());
	/* It is asked again. */
	waits_.forget();
	EXPECT_EQ(recv_.place(0, bytes(8)), RecvResult::NeedPages);
	EXPECT_TRUE(recv_.needs_pages());
	/* The next message is not at fault for this one. */
	wait();
	tern_hw_cqe cqe{};
	recv_.end(cqe);
	post(kPage, 100);
	ASSERT_EQ(recv_.claim(), RecvResult::Done);
	EXPECT_FALSE(recv_.needs_pages());
}

/* ---- SRQs ---- */

class RecvClaimsShared : public RecvClaimsTest {
protected:
	RecvClaimsShared()
	        : shared_(host_.memory, 2 * kPage), srq_record_(host_.memory.alloc(64)),
	          srq_key_(region(kSrqPd))
	{
	}
	/** An SRQ whose only posted WQE is in slot 2. */
	uint32_t make_srq(uint32_t cqn, std::optional<TagQueue> tags = std::nullopt)
	{
		const SharedRecvQueue::Place place{*PageList::make(shared_.pages(), 0, kPage),
		                                   kSrqRing, srq_record_, kLogSize, kLogStride};
		const SharedRecvQueue::Config config{.pdn = kSrqPd, .cqn = cqn};
		write_wqe(shared_, 2, {{0, 100, srq_key_}});
		shared_.write(kSrqRing, std::vector{std::byte{2}});
		host_.memory.put(srq_record_ + offsetof(tern_hw_srq_record, pi), Le<uint32_t>(1u));
		return *data_.srqs.insert(
		        std::make_unique<SharedRecvQueue>(config, place, std::move(tags)));
	}
	/** The QP was created with the SRQ. */
	void use_srq(uint32_t cqn, std::optional<TagQueue> tags = std::nullopt)
	{
		config_.srqn = make_srq(cqn, std::move(tags));
	}
	bool raised(tern_hw_event type) const
	{
		return data_.pending_events.contains({type, config_.srqn});
	}

	Buffer shared_;
	Iova srq_record_;
	uint32_t srq_key_;
};

TEST_F(RecvClaimsShared, Slot)
{
	use_srq(0);
	EXPECT_EQ(recv_.credits(), std::nullopt);
	EXPECT_EQ(recv_.claim(0), RecvResult::Empty) << "it has no queue of its own";
	ASSERT_EQ(recv_.claim(), RecvResult::Done);
	EXPECT_EQ(recv_.place(0, bytes(8)), RecvResult::Done) << "by the SRQ's domain";
	EXPECT_EQ(buffer_.read(0, 8), bytes(8));
	tern_hw_cqe cqe{};
	EXPECT_EQ(recv_.end(cqe), kRecvCqn);
	EXPECT_EQ(cqe.wqe_index.get(), 2u);
	EXPECT_EQ(cqe.srqn.get(), config_.srqn);
	EXPECT_EQ(recv_.claim(), RecvResult::Empty);
	EXPECT_FALSE(raised(TERN_EVENT_SRQ_ERR));
}

/* XRC: a packet names the SRQ, and the SRQ the CQ. */
TEST_F(RecvClaimsShared, NamedByThePacket)
{
	config_.type = TERN_QPT_XRC_TGT;
	EXPECT_EQ(recv_.credits(), std::nullopt);
	const uint32_t srqn = make_srq(kSrqCqn);
	ASSERT_EQ(recv_.claim(srqn), RecvResult::Done);
	recv_.forget_srq(srqn + 1);
	EXPECT_TRUE(recv_.claimed());
	tern_hw_cqe cqe{};
	EXPECT_EQ(recv_.end(cqe), kSrqCqn);
	EXPECT_EQ(cqe.srqn.get(), srqn);

	const uint32_t other = make_srq(kSrqCqn);
	ASSERT_EQ(recv_.claim(other), RecvResult::Done);
	recv_.forget_srq(other);
	EXPECT_FALSE(recv_.claimed());
}

TEST_F(RecvClaimsShared, SlotUnreachable)
{
	use_srq(0);
	host_.memory.fault(shared_.at(2u << kLogStride), 4);
	ASSERT_EQ(recv_.claim(), RecvResult::Done);
	EXPECT_EQ(recv_.place(0, bytes(8)), RecvResult::QueueFailed);
	EXPECT_TRUE(recv_.claimed());
	EXPECT_TRUE(raised(TERN_EVENT_SRQ_ERR));
	tern_hw_cqe cqe{};
	recv_.end(cqe);
	EXPECT_EQ(recv_.claim(), RecvResult::QueueFailed) << "for good";
}

TEST_F(RecvClaimsShared, SlotOutOfRange)
{
	use_srq(0);
	shared_.write(kSrqRing, std::vector{std::byte{1u << kLogSize}});
	EXPECT_EQ(recv_.claim(), RecvResult::QueueFailed);
	EXPECT_FALSE(recv_.claimed());
	EXPECT_TRUE(raised(TERN_EVENT_SRQ_ERR));
}

/* ---- tag matching ---- */

constexpr uint32_t kEntry = 3;
constexpr uint64_t kTag = 77;
constexpr TagReport kMatched{
        .opcode = TERN_CQE_TAG_RECV, .flags = TERN_CQE_TAG_MATCH, .tag = kTag, .app_ctx = 9};
constexpr TagReport kAll{
        .opcode = TERN_CQE_TAG_RECV, .flags = TERN_CQE_TAG_MATCH | TERN_CQE_TAG_DATA, .tag = kTag};

class RecvClaimsTags : public RecvClaimsShared {
protected:
	RecvClaimsTags()
	{
		use_srq(kSrqCqn, TagQueue({.pages = {}, .log_list = kLogSize}));
		add();
		EXPECT_EQ(recv_.tags()->match(kTag), kEntry);
	}
	/** Whether the entry is free. */
	bool add() { return recv_.tags()->add(kEntry, kTag, kTag, {200, 50, srq_key_}); }
};

TEST_F(RecvClaimsTags, Entry)
{
	recv_.claim_entry(kEntry, kAll, 16);
	EXPECT_TRUE(recv_.entry_claimed());
	EXPECT_EQ(recv_.header(), 16u);
	EXPECT_EQ(recv_.place(0, bytes(50)), RecvResult::Done);
	EXPECT_EQ(recv_.place(50, bytes(1)), RecvResult::TooLong);
	EXPECT_EQ(buffer_.read(200, 50), bytes(50));
	EXPECT_FALSE(add());
	tern_hw_cqe cqe{};
	cqe.opcode = TERN_CQE_RECV;
	EXPECT_EQ(recv_.end(cqe), kSrqCqn);
	EXPECT_EQ(cqe.wqe_index.get(), kEntry);
	EXPECT_EQ(cqe.opcode, TERN_CQE_TAG_RECV);
	EXPECT_EQ(cqe.flags, TERN_CQE_TAG_MATCH | TERN_CQE_TAG_DATA);
	EXPECT_EQ(cqe.tag.get(), kTag);
	EXPECT_FALSE(recv_.entry_claimed());
	EXPECT_TRUE(add());
}

/* The first CQE of two tells the host of the match. Only the second one gives the entry back. */
TEST_F(RecvClaimsTags, EntryThatIsNotClaimed)
{
	tern_hw_cqe cqe{};
	EXPECT_EQ(recv_.end_entry(kEntry, kMatched, cqe), kSrqCqn);
	EXPECT_EQ(cqe.wqe_index.get(), kEntry);
	EXPECT_EQ(cqe.srqn.get(), config_.srqn);
	EXPECT_EQ(cqe.app_ctx.get(), 9u);
	EXPECT_FALSE(add());
	recv_.end_entry(kEntry, kAll, cqe);
	EXPECT_TRUE(add());
}

/* A message that matches nothing gets a WQE. Its status is that of the report, unless it failed. */
TEST_F(RecvClaimsTags, ReportOfAWqe)
{
	ASSERT_EQ(recv_.claim(), RecvResult::Done);
	EXPECT_FALSE(recv_.entry_claimed());
	recv_.report({.opcode = TERN_CQE_NO_TAG, .status = TERN_WC_TM_RNDV_INCOMPLETE});
	tern_hw_cqe cqe{};
	recv_.end(cqe);
	EXPECT_EQ(cqe.opcode, TERN_CQE_NO_TAG);
	EXPECT_EQ(cqe.status, TERN_WC_TM_RNDV_INCOMPLETE);
	EXPECT_EQ(cqe.wqe_index.get(), 2u);

	cqe.status = TERN_WC_LOC_LEN_ERR;
	recv_.claim_entry(kEntry, {.status = TERN_WC_TM_RNDV_INCOMPLETE}, 0);
	recv_.end(cqe);
	EXPECT_EQ(cqe.status, TERN_WC_LOC_LEN_ERR);
}

/* After a failure of the SRQ nothing matches. A message that has matched goes on. */
TEST_F(RecvClaimsTags, SrqFails)
{
	recv_.claim_entry(kEntry, kAll, 0);
	data_.fail_srq(config_.srqn);
	EXPECT_EQ(recv_.tags(), nullptr);
	EXPECT_EQ(recv_.place(0, bytes(8)), RecvResult::Done);
	tern_hw_cqe cqe{};
	EXPECT_EQ(recv_.end(cqe), kSrqCqn);
}

} // namespace
} // namespace tern::test
