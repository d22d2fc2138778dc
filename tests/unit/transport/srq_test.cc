// SPDX-License-Identifier: GPL-2.0-or-later
/* QPs that receive into a shared receive queue. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr size_t kMtu = 256;

class SharedRecv : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		make_srq({.pd = pd_, .log_size = 2});
		qp_ = connected();
		other_ = connected();
		events();
	}
	void make_srq(const SrqOptions &options) { srq_ = driver_.create_srq(options); }
	std::unique_ptr<HostQp> connected()
	{
		auto qp = driver_.create_qp({.pd = pd_,
		                             .send_cqn = cq_->number,
		                             .recv_cqn = cq_->number,
		                             .srqn = srq_->number});
		qp->connect(connection());
		return qp;
	}
	TestPacket send(const HostQp &to, Opcode opcode, uint32_t n, size_t size = kMtu) const
	{
		return {.opcode = opcode,
		        .psn = psn_after(kRqPsn, n),
		        .ack_request = true,
		        .qpn = to.number,
		        .payload = std::vector<std::byte>(size, std::byte{0x5a})};
	}
	uint32_t post(uint64_t offset = 0x10000) { return srq_->post(mr_->sge(offset, 4096)); }
	/** The syndrome of the one packet that was sent. */
	uint8_t answer()
	{
		const auto p = sent();
		EXPECT_TRUE(p && host_.wire.frames().empty());
		return p ? p->ext.aeth.syndrome : 0xff;
	}

	std::unique_ptr<HostSrq> srq_;
	std::unique_ptr<HostQp> other_;
};

/* Each message takes the WQE that was posted first, whatever its slot; the CQE names both. */
TEST_F(SharedRecv, InOrderOfPosts)
{
	uint32_t slots[3];
	for (uint32_t &slot : slots)
		slot = post();
	/* Slot 0 is used again behind 1 and 2. */
	give(send(*qp_, Opcode::RcSendOnly, 0, 9));
	srq_->release(slots[0]);
	give(send(*other_, Opcode::RcSendOnly, 0, 10));
	give(send(*qp_, Opcode::RcSendOnly, 1, 11));
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 3u);
	for (uint32_t i = 0; i < 3; i++) {
		EXPECT_EQ(cqes[i].status, TERN_WC_SUCCESS);
		EXPECT_EQ(cqes[i].srqn.get(), srq_->number);
		EXPECT_EQ(cqes[i].wqe_index.get(), slots[i]);
		EXPECT_EQ(cqes[i].byte_len.get(), 9 + i);
		EXPECT_EQ(cqes[i].qpn.get(), i == 1 ? other_->number : qp_->number);
	}
	EXPECT_EQ(mr_->read(0x10000, 11), std::vector<std::byte>(11, std::byte{0x5a}));
}

/* Two messages at once: each keeps the WQE that its first packet took. */
TEST_F(SharedRecv, InterleavedMessages)
{
	const uint32_t first = srq_->post(mr_->sge(0, 600));
	const uint32_t second = srq_->post(mr_->sge(0x8000, 600));
	give(send(*qp_, Opcode::RcSendFirst, 0));
	give(send(*other_, Opcode::RcSendFirst, 0));
	give(send(*other_, Opcode::RcSendLast, 1, 5));
	give(send(*qp_, Opcode::RcSendLast, 1, 6));
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 2u);
	EXPECT_EQ(cqes[0].wqe_index.get(), second);
	EXPECT_EQ(cqes[0].byte_len.get(), kMtu + 5);
	EXPECT_EQ(cqes[1].wqe_index.get(), first);
	EXPECT_EQ(cqes[1].byte_len.get(), kMtu + 6);
}

/* A shared queue promises nothing to anybody (IBA 9.7.7.2). */
TEST_F(SharedRecv, NoCredits)
{
	post();
	give(send(*qp_, Opcode::RcSendOnly, 0));
	EXPECT_EQ(answer(), kAethAck | kCreditsInvalid);
}

TEST_F(SharedRecv, RnrWhenEmpty)
{
	give(send(*qp_, Opcode::RcSendOnly, 0));
	EXPECT_EQ(answer(), kAethRnrNak | connection().min_rnr_timer);
	post();
	give(send(*qp_, Opcode::RcSendOnly, 0));
	EXPECT_EQ(answer(), kAethAck | kCreditsInvalid);
	EXPECT_EQ(cq_->drain().size(), 1u);
}

/* WRITE with immediate takes one too. */
TEST_F(SharedRecv, WriteWithImmediate)
{
	const uint32_t slot = post();
	auto p = send(*qp_, Opcode::RcWriteOnlyImm, 0, 8);
	p.ext.reth = {mr_->va, mr_->key, 8};
	give(p);
	const auto cqe = cq_->poll();
	ASSERT_TRUE(cqe);
	EXPECT_EQ(cqe->opcode, TERN_CQE_RECV_WRITE_IMM);
	EXPECT_EQ(cqe->wqe_index.get(), slot);
	EXPECT_EQ(cqe->srqn.get(), srq_->number);
}

/* In the middle of a message to ERR: the WQE that it took is flushed, those in the queue stay for
 * others, and then the event says that there will be no more (IBA 11.6.3.3). */
TEST_F(SharedRecv, ErrorFlushesOnlyWhatWasTaken)
{
	const uint32_t slot = post();
	post();
	give(send(*qp_, Opcode::RcSendFirst, 0));
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].status, TERN_WC_WR_FLUSH_ERR);
	EXPECT_EQ(cqes[0].wqe_index.get(), slot);
	EXPECT_EQ(cqes[0].srqn.get(), srq_->number);
	EXPECT_TRUE(event(TERN_EVENT_LAST_WQE, qp_->number));
	pass(1'000'000'000);
	EXPECT_FALSE(event(TERN_EVENT_LAST_WQE, qp_->number));
	give(send(*other_, Opcode::RcSendOnly, 0));
	EXPECT_EQ(cq_->drain().size(), 1u);
	/* Anew after RESET. */
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	qp_->forget();
	qp_->connect(connection());
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	EXPECT_TRUE(event(TERN_EVENT_LAST_WQE, qp_->number));
}

TEST_F(SharedRecv, LimitEventOnce)
{
	for (int i = 0; i < 3; i++)
		post();
	EXPECT_EQ(srq_->set_limit(2), TERN_AQ_OK);
	EXPECT_EQ(srq_->query_limit(), 2u);
	give(send(*qp_, Opcode::RcSendOnly, 0));
	EXPECT_FALSE(event(TERN_EVENT_SRQ_LIMIT, srq_->number));
	give(send(*qp_, Opcode::RcSendOnly, 1));
	EXPECT_TRUE(event(TERN_EVENT_SRQ_LIMIT, srq_->number));
	EXPECT_EQ(srq_->query_limit(), 0u);
	give(send(*qp_, Opcode::RcSendOnly, 2));
	EXPECT_FALSE(event(TERN_EVENT_SRQ_LIMIT, srq_->number));
	/* There are fewer than that already. */
	EXPECT_EQ(srq_->set_limit(1), TERN_AQ_OK);
	EXPECT_TRUE(event(TERN_EVENT_SRQ_LIMIT, srq_->number));
	EXPECT_EQ(srq_->set_limit(5), TERN_AQ_BAD_FIELD);
}

/* What was posted since the card looked last counts. */
TEST_F(SharedRecv, LimitSeesLatePosts)
{
	post();
	post();
	EXPECT_EQ(srq_->set_limit(2), TERN_AQ_OK);
	post();
	give(send(*qp_, Opcode::RcSendOnly, 0));
	EXPECT_FALSE(event(TERN_EVENT_SRQ_LIMIT, srq_->number));
	EXPECT_EQ(srq_->query_limit(), 2u);
}

/* Slots keep their numbers in the larger buffer, also those of a message under way. */
TEST_F(SharedRecv, Resize)
{
	std::vector<uint32_t> slots;
	for (int i = 0; i < 4; i++)
		slots.push_back(post());
	give(send(*qp_, Opcode::RcSendFirst, 0));
	EXPECT_EQ(srq_->resize(1), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(srq_->resize(4), TERN_AQ_OK);
	for (int i = 0; i < 12; i++)
		slots.push_back(post());
	EXPECT_TRUE(srq_->full());
	give(send(*qp_, Opcode::RcSendLast, 1, 1));
	for (uint32_t i = 2; i < 17; i++)
		give(send(*qp_, Opcode::RcSendOnly, i, 1));
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 16u);
	for (size_t i = 0; i < 16; i++)
		EXPECT_EQ(cqes[i].wqe_index.get(), slots[i]);
}

/* Another protection domain than the QP's: the buffers are those of the SRQ's. */
TEST_F(SharedRecv, BuffersOfItsOwnDomain)
{
	const uint32_t pd = driver_.alloc_pd();
	const HostMr mr = driver_.create_mr(pd, 0x4000, 4096, TERN_ACCESS_LOCAL_WRITE);
	make_srq({.pd = pd});
	qp_ = connected();
	srq_->post(mr.sge(0, 64));
	post();
	give(send(*qp_, Opcode::RcSendOnly, 0, 64));
	give(send(*qp_, Opcode::RcSendOnly, 1, 64));
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 2u);
	EXPECT_EQ(cqes[0].status, TERN_WC_SUCCESS);
	EXPECT_EQ(cqes[1].status, TERN_WC_LOC_PROT_ERR);
}

/* A queue that cannot be used: one event for it, and ERR for each QP that wants something of it. */
void expect_dead(HostQp &qp, const std::vector<tern_hw_eqe> &events, uint32_t srqn, bool first)
{
	const auto count = [&](tern_hw_event type, uint32_t id) {
		return std::ranges::count_if(
		        events, [&](const auto &e) { return e.type == type && e.id.get() == id; });
	};
	EXPECT_EQ(count(TERN_EVENT_SRQ_ERR, srqn), first);
	EXPECT_EQ(count(TERN_EVENT_QP_FATAL, qp.number), 1);
	EXPECT_EQ(qp.query().state, TERN_QPS_ERR);
}

TEST_F(SharedRecv, SlotOutOfRange)
{
	post();
	srq_->buffer.write(srq_->ring_offset, std::vector<std::byte>{std::byte{4}});
	give(send(*qp_, Opcode::RcSendOnly, 0));
	expect_dead(*qp_, events(), srq_->number, true);
	give(send(*other_, Opcode::RcSendOnly, 0));
	expect_dead(*other_, events(), srq_->number, false);
	EXPECT_TRUE(cq_->drain().empty());
}

TEST_F(SharedRecv, RecordOutOfRange)
{
	host_.memory.put(srq_->record, Le<uint32_t>(5u));
	give(send(*qp_, Opcode::RcSendOnly, 0));
	expect_dead(*qp_, events(), srq_->number, true);
}

TEST_F(SharedRecv, RecordUnreachable)
{
	post();
	host_.memory.fault(srq_->record, 4);
	give(send(*qp_, Opcode::RcSendOnly, 0));
	expect_dead(*qp_, events(), srq_->number, true);
}

/* It was taken, so it completes. */
TEST_F(SharedRecv, SlotUnreachable)
{
	const uint32_t slot = post();
	host_.memory.fault(srq_->buffer.at(uint64_t{slot} << 6), 4);
	give(send(*qp_, Opcode::RcSendOnly, 0));
	expect_dead(*qp_, events(), srq_->number, true);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].status, TERN_WC_WR_FLUSH_ERR);
}

/* A QP without any receive queue is a QP that never has a WQE. */
TEST_F(SharedRecv, NoReceiveQueueAtAll)
{
	qp_ = driver_.create_qp({.pd = pd_,
	                         .send_cqn = cq_->number,
	                         .recv_cqn = cq_->number,
	                         .rq_log_size = 0,
	                         .rq_log_stride = 0});
	qp_->connect(connection());
	host_.memory.put(qp_->record, Le<uint32_t>(1u));
	give(send(*qp_, Opcode::RcSendOnly, 0));
	EXPECT_EQ(answer(), kAethRnrNak | connection().min_rnr_timer);
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	EXPECT_TRUE(cq_->drain().empty());
}

} // namespace
} // namespace tern::test
