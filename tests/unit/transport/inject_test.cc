// SPDX-License-Identifier: GPL-2.0-or-later
/* Faults that the embedder injects. */
#include <cstring>
#include <span>

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

/* ---- false reports ---- */

/* @told is @truth, but for at most four bytes that follow each other and are not the last. */
template <typename Entry>
void expect_one_change(const Entry &truth, const Entry &told)
{
	const auto a = std::as_bytes(std::span(&truth, 1)), b = std::as_bytes(std::span(&told, 1));
	const auto [first, in_told] = std::ranges::mismatch(a, b);
	const size_t from = static_cast<size_t>(first - a.begin());
	for (size_t i = from + 4; i < a.size(); i++)
		EXPECT_EQ(a[i], b[i]) << "bytes " << from << " and " << i;
	EXPECT_EQ(a.back(), b.back());
}

class Falsify : public Inject {
protected:
	/* The CQEs of @count messages to the host. */
	std::vector<tern_hw_cqe> receive(uint32_t count)
	{
		connect(connection());
		for (uint32_t i = 0; i < count; i++) {
			qp_->post_recv(mr_->sge(0, 100));
			give({.opcode = Opcode::RcSendOnly,
			      .psn = psn_after(kRqPsn, i),
			      .qpn = qp_->number,
			      .payload = std::vector<std::byte>(16)});
		}
		auto cqes = cq_->drain();
		for (auto &cqe : cqes) {
			cqe.phase = 0;
			changed_ += cqe.qpn.get() != qp_->number || cqe.status ||
			            cqe.byte_len.get() != 16;
		}
		return cqes;
	}
	unsigned changed_ = 0; /* CQEs whose status, QPN or length is wrong */
};

TEST_F(Falsify, ChangesEveryCqeInOnePlace)
{
	const auto truth = receive(30);
	for (const uint32_t seed : {1, 2, 3}) {
		card_.falsify(1, seed);
		const auto told = receive(30);
		card_.falsify(0, 0);
		ASSERT_EQ(told.size(), truth.size());
		for (size_t i = 0; i < told.size(); i++) {
			auto expected = truth[i];
			expected.qpn = qp_->number;
			expect_one_change(expected, told[i]);
		}
	}
	EXPECT_GT(changed_, 3u);
}

TEST_F(Falsify, ChangesOneOfSoMany)
{
	card_.falsify(4, 7);
	receive(400);
	/* A quarter, of which each has a chance of about 10 of 63 bytes. */
	EXPECT_GT(changed_, 4u);
	EXPECT_LT(changed_, 60u);
	card_.falsify(0, 7);
	changed_ = 0;
	receive(400);
	EXPECT_EQ(changed_, 0u);
}

TEST_F(Falsify, ASeedChoosesTheChanges)
{
	const auto told = [&](uint32_t seed) {
		card_.falsify(1, seed);
		auto cqes = receive(20);
		card_.falsify(0, 0);
		std::vector<uint32_t> indices;
		for (const auto &cqe : cqes)
			indices.push_back(cqe.byte_len.get() ^ cqe.wqe_index.get());
		return indices;
	};
	const auto first = told(1);
	EXPECT_EQ(told(1), first);
	EXPECT_NE(told(2), first);
}

TEST_F(Falsify, ChangesEvents)
{
	card_.fail_qp(qp_->number);
	run();
	const auto truth = events();
	ASSERT_EQ(truth.size(), 1u);
	connect(connection());
	unsigned changed = 0;
	for (uint32_t seed = 1; seed < 20; seed++) {
		card_.falsify(1, seed);
		card_.fail_qp(qp_->number);
		run();
		card_.falsify(0, 0);
		const auto told = events();
		ASSERT_EQ(told.size(), 1u);
		changed += told[0].type != TERN_EVENT_QP_FATAL || told[0].id.get() != qp_->number;
		ASSERT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
		qp_->forget();
		qp_->connect(connection());
		events();
	}
	EXPECT_GT(changed, 0u);
	EXPECT_LT(changed, 19u);
}

TEST_F(Falsify, ChangesAnswersUntilAReset)
{
	tern_hw_aq_cmd alloc{};
	alloc.opcode = TERN_AQ_ALLOC_PD;
	card_.falsify(1, 1);
	const auto told = driver_.submit(alloc);
	run();
	const auto answer = driver_.result(told);
	ASSERT_TRUE(answer);
	tern_hw_aq_cqe truth{};
	truth.created.id = pd_ + 1;
	truth.id = answer->id;
	truth.phase = answer->phase;
	expect_one_change(truth, *answer);
	EXPECT_NE(std::memcmp(&truth, &*answer, sizeof(truth)), 0);
	card_.reset();
	set_up_card();
	receive(100);
	EXPECT_EQ(changed_, 0u);
}

TEST_F(Inject, WhatCannotBeSlow)
{
	EXPECT_FALSE(card_.slow_qp(qp_->number + 1, 8));
}

} // namespace
} // namespace tern::test
