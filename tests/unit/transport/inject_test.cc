// SPDX-License-Identifier: GPL-2.0-or-later
/* Faults that the embedder injects. */
#include "tests/unit/transport/one_connection.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint64_t kSecond = 1'000'000'000;

class Inject : public OneConnection {
protected:
	SendRequest send(uint32_t length = 10) const
	{
		return {.opcode = TERN_OP_SEND,
		        .flags = TERN_WQE_SIGNALED,
		        .sges = {mr_->sge(0, length)}};
	}
	void ask_for(uint32_t length)
	{
		TestPacket read{.opcode = Opcode::RcReadRequest, .psn = kRqPsn};
		read.ext.reth = {mr_->va, mr_->key, length};
		give(read);
	}
	uint64_t sent_bytes() { return stat(TERN_STAT_TX_BYTES); }
};

TEST_F(Inject, AQpFails)
{
	qp_->post_send(send());
	qp_->post_recv(mr_->sge(0, 100));
	run();
	EXPECT_TRUE(card_.fail_qp(qp_->number));
	run();
	EXPECT_TRUE(event(TERN_EVENT_QP_FATAL, qp_->number));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 2u);
	for (const auto &cqe : cqes)
		EXPECT_EQ(cqe.status, TERN_WC_WR_FLUSH_ERR);
}

TEST_F(Inject, WhatCannotFail)
{
	EXPECT_FALSE(card_.fail_qp(qp_->number + 1));
	EXPECT_TRUE(card_.fail_qp(qp_->number));
	events();
	EXPECT_FALSE(card_.fail_qp(qp_->number));
	ASSERT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	EXPECT_FALSE(card_.fail_qp(qp_->number));
	run();
	EXPECT_TRUE(events().empty());
}

TEST_F(Inject, ASlowQpSends)
{
	ASSERT_TRUE(card_.slow_qp(qp_->number, 800)); /* 100 kB/s */
	const uint64_t before = sent_bytes();
	qp_->post_send(send(0x20000));
	run();
	/* The peer acknowledges what asks for it. */
	for (int ms = 0; ms < 500; ms++) {
		pass(kSecond / 1000);
		while (const auto p = sent()) {
			if (!p->ack_request)
				continue;
			TestPacket ack{.psn = p->psn};
			ack.ext.aeth = {kAethAck | kCreditsInvalid, 0};
			give(ack);
		}
	}
	EXPECT_NEAR(static_cast<double>(sent_bytes() - before), 50e3, 12e3);
	EXPECT_EQ(stat(TERN_STAT_REQ_RETRANSMITS), 0u);
}

/* Other than by the host's rate limit, also what a peer reads is slow. */
TEST_F(Inject, ASlowQpResponds)
{
	ASSERT_TRUE(card_.slow_qp(qp_->number, 800));
	const uint64_t before = sent_bytes();
	ask_for(0x20000);
	pass(kSecond / 2);
	EXPECT_NEAR(static_cast<double>(sent_bytes() - before), 50e3, 12e3);
	/* In the middle of a wait the limit ends. */
	ASSERT_TRUE(card_.slow_qp(qp_->number, 0));
	run();
	EXPECT_GE(sent_bytes() - before, 0x20000u);
}

TEST_F(Inject, ASlowQpUntilItIsReset)
{
	ASSERT_TRUE(card_.slow_qp(qp_->number, 8));
	ASSERT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	qp_->connect(connection());
	const uint64_t before = sent_bytes();
	ask_for(0x20000);
	EXPECT_GE(sent_bytes() - before, 0x20000u);
}

TEST_F(Inject, WhatCannotBeSlow)
{
	EXPECT_FALSE(card_.slow_qp(qp_->number + 1, 8));
}

} // namespace
} // namespace tern::test
