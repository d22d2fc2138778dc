// SPDX-License-Identifier: GPL-2.0-or-later
/* A QP in error is flushed in slices, so that others do not wait for it. */
#include "tests/unit/transport/one_connection.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint8_t kLogSq = 10;
constexpr uint32_t kPosted = (1u << kLogSq) - 1;
constexpr uint8_t kAccessNak = nak_syndrome(NakCode::RemoteAccessError);
/* CQEs that one call of the card may write at most. */
constexpr size_t kAtOnce = 16;

class FlushSlices : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card(14);
		qp_ = connected();
		other_ = connected();
		events();
	}
	std::unique_ptr<HostQp> connected()
	{
		auto qp = make_qp(kLogSq, kLogSq);
		qp->connect(connection());
		return qp;
	}
	SendRequest send() const { return {.opcode = TERN_OP_SEND, .sges = {mr_->sge(0, 1)}}; }
	/** Fills both queues of qp_; the card has started what its window takes. */
	void fill()
	{
		for (uint32_t i = 0; i < kPosted; i++) {
			qp_->post_send(send(), false);
			qp_->post_recv(mr_->sge(0, 64));
		}
		qp_->publish();
		run();
		host_.wire.clear();
	}
	/** The peer refuses the first request. */
	void refuse()
	{
		TestPacket nak{.opcode = Opcode::RcAcknowledge, .psn = kSqPsn};
		nak.ext.aeth = {kAccessNak, 0};
		give(nak, path(), false);
	}
	static tern_hw_aq_cmd modify(const HostQp &qp, tern_hw_qp_state state)
	{
		auto c = make_command(TERN_AQ_MODIFY_QP);
		c.modify_qp.qpn = qp.number;
		c.modify_qp.attr_mask = TERN_QP_STATE;
		c.modify_qp.attr.state = static_cast<uint8_t>(state);
		return c;
	}
	/** One call. */
	size_t step()
	{
		card_.run(kAtOnce);
		return cq_->drain().size();
	}

	std::unique_ptr<HostQp> other_;
};

TEST_F(FlushSlices, OneNakAndFullQueues)
{
	fill();
	refuse();
	const auto first = cq_->drain();
	ASSERT_EQ(first.size(), 1u);
	EXPECT_EQ(first[0].status, TERN_WC_REM_ACCESS_ERR);
	uint32_t sends = 1;
	uint32_t recvs = 0;
	for (bool more = true; more;) {
		more = card_.run(kAtOnce);
		const auto cqes = cq_->drain();
		EXPECT_LE(cqes.size(), kAtOnce);
		for (const auto &cqe : cqes) {
			EXPECT_EQ(cqe.status, TERN_WC_WR_FLUSH_ERR);
			EXPECT_EQ(cqe.wqe_index.get(),
			          cqe.opcode == TERN_CQE_RECV ? recvs++ : sends++);
		}
	}
	EXPECT_EQ(sends, kPosted);
	EXPECT_EQ(recvs, kPosted);
	EXPECT_EQ(stat(TERN_STAT_REQ_CQE_FLUSHED), kPosted - 1);
}

/* Another QP has its turn at once, and the flush goes on beside it. */
TEST_F(FlushSlices, AnotherQpSends)
{
	fill();
	refuse();
	other_->post_send(send());
	EXPECT_LE(step(), kAtOnce);
	EXPECT_EQ(all_sent().size(), 1u);
}

/* Neither holds up the other when there is always something to send. */
TEST_F(FlushSlices, GoesOnWhileAnotherQpSends)
{
	fill();
	refuse();
	size_t flushed = 0;
	for (int i = 0; i < 64; i++) {
		for (int j = 0; j < 16 && other_->sq_pi < 200; j++)
			other_->post_send(send());
		flushed += step();
	}
	EXPECT_EQ(all_sent().size(), 200u);
	EXPECT_GE(flushed, 64u);
}

TEST_F(FlushSlices, ModifyToError)
{
	fill();
	const uint32_t command = driver_.submit(modify(*qp_, TERN_QPS_ERR));
	while (!driver_.result(command))
		EXPECT_LE(step(), kAtOnce);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* The wire has no room: that is no reason not to flush. */
TEST_F(FlushSlices, WhileTheWireIsFull)
{
	host_.wire.accept_only(3);
	for (int i = 0; i < 100; i++)
		qp_->post_send(send());
	run();
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	EXPECT_EQ(cq_->drain().size(), 100u);
}

/* When DESTROY_QP has completed, no CQE of the QP follows. */
TEST_F(FlushSlices, DestroyedInBetween)
{
	fill();
	refuse();
	step();
	auto c = make_command(TERN_AQ_DESTROY_QP);
	c.object.id = qp_->number;
	const uint32_t command = driver_.submit(c);
	while (!driver_.result(command))
		step();
	EXPECT_EQ(driver_.result(command)->status, TERN_AQ_OK);
	cq_->drain();
	run();
	pass(1'000'000'000);
	EXPECT_TRUE(cq_->drain().empty());
}

/* RESET drops what is left, and the QP can be used again. */
TEST_F(FlushSlices, ResetInBetween)
{
	fill();
	refuse();
	step();
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	cq_->drain();
	qp_->forget();
	qp_->connect(connection());
	qp_->post_send(send());
	run();
	EXPECT_EQ(all_sent().size(), 1u);
	EXPECT_TRUE(cq_->drain().empty());
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	EXPECT_EQ(cq_->drain().size(), 1u);
}

/* A process that posts without end to QPs in error takes its share, not more. */
TEST_F(FlushSlices, PostsWithoutEnd)
{
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	for (int i = 0; i < 100; i++) {
		for (uint32_t j = 0; j < 100; j++) {
			qp_->post_send(send());
			qp_->post_recv(mr_->sge(0, 64));
		}
		host_.clock.advance(1'000'000);
		EXPECT_LE(step(), kAtOnce);
	}
}

/* The entries of the SRQ's list of a QP with tags, and its event, come all the same. */
TEST_F(FlushSlices, LastWqeEvent)
{
	const auto srq = driver_.create_srq({.pd = pd_});
	qp_ = driver_.create_qp({.pd = pd_,
	                         .send_cqn = cq_->number,
	                         .recv_cqn = cq_->number,
	                         .sq_log_size = kLogSq,
	                         .srqn = srq->number});
	qp_->connect(connection());
	for (uint32_t i = 0; i < 100; i++)
		qp_->post_send(send());
	run();
	events();
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	EXPECT_TRUE(event(TERN_EVENT_LAST_WQE, qp_->number));
	EXPECT_EQ(cq_->drain().size(), 100u);
}

/* ---- datagrams: SQE ---- */

class FlushSlicesUd : public FlushSlices {
protected:
	void SetUp() override
	{
		set_up_card(14);
		qp_ = driver_.create_qp({.pd = pd_,
		                         .send_cqn = cq_->number,
		                         .recv_cqn = cq_->number,
		                         .type = TERN_QPT_UD,
		                         .sq_log_size = kLogSq});
		qp_->start(kQkey, 0);
	}
	SendRequest datagram(uint32_t lkey) const
	{
		tern_hw_ud_seg to{};
		std::ranges::copy(kPeerGid.bytes, to.dgid);
		std::ranges::copy(kPeerMac, to.dmac);
		to.dest_qpn = kPeerQpn;
		to.qkey = kQkey;
		SendRequest request{.opcode = TERN_OP_SEND, .sges = {mr_->sge(0, 1)}, .to = to};
		request.sges[0].lkey = lkey;
		return request;
	}
	static constexpr uint32_t kQkey = 0x11;
};

/* What was posted before the error is flushed, also if the host returns the QP to RTS at once; what
 * is posted after that is sent. */
TEST_F(FlushSlicesUd, BackToRtsAtOnce)
{
	qp_->post_send(datagram(mr_->key ^ 1), false);
	for (uint32_t i = 1; i < 500; i++)
		qp_->post_send(datagram(mr_->key), false);
	qp_->publish();
	const uint32_t command = driver_.submit(modify(*qp_, TERN_QPS_RTS));
	size_t completed = 0;
	while (!driver_.result(command)) {
		const size_t now = step();
		EXPECT_LE(now, 2 * kAtOnce);
		completed += now;
	}
	EXPECT_EQ(driver_.result(command)->status, TERN_AQ_OK);
	EXPECT_EQ(completed, 500u);
	EXPECT_TRUE(all_sent().empty());
	qp_->post_send(datagram(mr_->key));
	run();
	EXPECT_EQ(all_sent().size(), 1u);
	EXPECT_EQ(cq_->drain().at(0).status, TERN_WC_SUCCESS);
}

/* A command that is refused flushes nothing: it is answered before the next slice of the flush. */
TEST_F(FlushSlicesUd, ARefusedCommandDoesNotFlush)
{
	qp_->post_send(datagram(mr_->key ^ 1), false);
	for (uint32_t i = 1; i < 500; i++)
		qp_->post_send(datagram(mr_->key), false);
	qp_->publish();
	const uint32_t command = driver_.submit(modify(*qp_, TERN_QPS_SQD));
	while (!driver_.result(command))
		step();
	EXPECT_EQ(driver_.result(command)->status, TERN_AQ_BAD_STATE);
	run();
	EXPECT_GT(cq_->drain().size(), 400u) << "flushed later";
	EXPECT_EQ(qp_state(), TERN_QPS_SQE);
}

} // namespace
} // namespace tern::test
