// SPDX-License-Identifier: GPL-2.0-or-later
/* Rate limits: the token bucket by itself, then QPs of each service under one. */
#include "qemu/rnic/transport/pacer.h"
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMs;
constexpr size_t kMaxFrame = 14 + 4 + 9000;

tern_hw_rate_limit limit(uint32_t rate, uint32_t burst = 0, uint16_t packet = 0)
{
	tern_hw_rate_limit l{};
	l.rate = rate;
	l.burst = burst;
	l.packet = packet;
	return l;
}

/* ---- the bucket ---- */

/** Sends frames of @size as soon as it may, from @now on; how many before it has to wait. */
unsigned burst_of(Pacer &pacer, uint64_t now, uint32_t size)
{
	unsigned frames = 0;
	for (; pacer.next() <= now && frames < 10000; frames++)
		pacer.sent(now, size);
	return frames;
}

TEST(PacerTest, NoRoundingAddsUp)
{
	for (const uint32_t rate : {1u, 7u, 999'983u, 33'333'333u, uint32_t{TERN_MAX_RATE_LIMIT}}) {
		Pacer pacer;
		pacer.set(limit(rate, 1));
		uint64_t now = 1000, bytes = 0;
		for (uint32_t i = 0; i < 100'000; i++) {
			now = std::max(now, pacer.next());
			const uint32_t size = 60 + i * 31 % 1440;
			pacer.sent(now, size);
			bytes += size;
		}
		const double ns = static_cast<double>(pacer.next() - 1000);
		EXPECT_NEAR(ns * rate / 8e6, static_cast<double>(bytes), 1 + 2 * rate / 8e6)
		        << rate;
	}
}

TEST(PacerTest, BurstAfterAPause)
{
	Pacer pacer;
	pacer.set(limit(8000, 10'000)); /* a byte each us */
	EXPECT_EQ(burst_of(pacer, 0, 1000), 10u);
	/* What the pause gives beyond the burst is lost. */
	EXPECT_EQ(burst_of(pacer, 5 * kMs, 1000), 5u);
	EXPECT_EQ(burst_of(pacer, kSecond, 1000), 10u);
}

TEST(PacerTest, AFrameWaitsForSoMuch)
{
	Pacer pacer;
	pacer.set(limit(8000, 10'000, 1500));
	EXPECT_EQ(burst_of(pacer, 0, 1000), 9u);
	EXPECT_EQ(pacer.next(), 500'000u);
	/* More than the bucket holds is a full bucket. */
	pacer.set(limit(8000, 1000, 1500));
	EXPECT_EQ(burst_of(pacer, kSecond, 200), 1u);
	EXPECT_EQ(pacer.next(), kSecond + 200'000);
}

TEST(PacerTest, ALongFrameBorrows)
{
	Pacer pacer;
	pacer.set(limit(8000, 1000));
	EXPECT_EQ(burst_of(pacer, 0, 4000), 1u);
	/* One byte of 4000 must be there again, and 1000 were. */
	EXPECT_EQ(pacer.next(), 3'001'000u);
}

TEST(PacerTest, TheDefaultBurstIsAMillisecondAndAFrame)
{
	Pacer pacer;
	pacer.set(limit(8'000'000));
	EXPECT_EQ(burst_of(pacer, 0, 1000), 1000u);
	pacer.set(limit(80));
	EXPECT_EQ(burst_of(pacer, 0, 1000), (kMaxFrame + 999) / 1000);
}

TEST(PacerTest, KnowsWhenTheNextHasToWait)
{
	Pacer pacer;
	pacer.set(limit(8000, 10'000));
	for (int i = 0; i < 9; i++) {
		EXPECT_FALSE(pacer.exhausted_by(0, 1000));
		pacer.sent(0, 1000);
	}
	EXPECT_TRUE(pacer.exhausted_by(0, 1000));
	EXPECT_FALSE(pacer.exhausted_by(0, 999));
}

TEST(PacerTest, ANewLimitForgetsTheOldDebt)
{
	Pacer pacer;
	pacer.set(limit(1, 1));
	pacer.sent(0, 9000);
	EXPECT_GT(pacer.next(), 70 * kSecond);
	pacer.set(limit(1000));
	EXPECT_EQ(pacer.next(), 0u);
	pacer.set(limit(0));
	EXPECT_FALSE(pacer.limited());
}

/* ---- QPs ---- */

class Pacing : public OneCard {
protected:
	void SetUp() override { set_up_card(10); }

	std::unique_ptr<HostQp> make(uint8_t type)
	{
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = cq_->number;
		options.recv_cqn = type == TERN_QPT_XRC_INI ? 0 : cq_->number;
		options.type = type;
		options.sq_log_size = 8;
		if (type == TERN_QPT_XRC_INI)
			options.rq_log_size = options.rq_log_stride = 0;
		auto qp = driver_.create_qp(options);
		if (type == TERN_QPT_UD)
			qp->start(0x111);
		else if (type == TERN_QPT_RAW)
			for (const auto state : {TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS})
				EXPECT_EQ(qp->set_state(state), TERN_AQ_OK);
		else
			qp->connect(connection());
		return qp;
	}
	static tern_hw_aq_status set(HostQp &qp, const tern_hw_rate_limit &l, uint32_t mask = 0)
	{
		tern_hw_qp_attr attr{};
		attr.state = TERN_QPS_RTS;
		attr.rate_limit = l;
		return qp.modify(mask | TERN_QP_RATE_LIMIT, attr);
	}
	/** Whatever the service sends; @length bytes if it may be as long. */
	SendRequest request(const HostQp &qp, uint32_t length) const
	{
		SendRequest r{.opcode = TERN_OP_SEND, .sges = {mr_->sge(0, length)}};
		switch (qp.options.type) {
		case TERN_QPT_UD: {
			tern_hw_ud_seg to{};
			std::ranges::copy(kPeerGid.bytes, to.dgid);
			std::ranges::copy(kPeerMac, to.dmac);
			to.hop_limit = 7;
			to.dest_qpn = kPeerQpn;
			r.to = to;
			r.sges = {mr_->sge(0, 1024)};
			break;
		}
		case TERN_QPT_RAW:
			r.sges = {mr_->sge(0, 1500)};
			break;
		default:
			break;
		}
		return r;
	}
	uint64_t sent_bytes() { return stat(TERN_STAT_TX_BYTES); }
	/** Lets @ns pass and acknowledges what asks for it; bytes that went meanwhile. */
	uint64_t bytes_in(uint64_t ns)
	{
		const uint64_t before = sent_bytes();
		for (const uint64_t end = host_.clock.now() + ns; host_.clock.now() < end;) {
			pass(kMs);
			answer();
		}
		return sent_bytes() - before;
	}
	/** The peer of RC connections. */
	void answer()
	{
		while (!host_.wire.frames().empty()) {
			const auto frame = host_.wire.take();
			const auto parsed = parse(frame);
			if (!std::holds_alternative<Packet>(parsed))
				continue; /* of a raw QP */
			const Packet &p = std::get<Packet>(parsed);
			if (service_of(p.bth.opcode) != Service::Rc || !p.bth.ack_request)
				continue;
			TestPacket ack{.psn = p.bth.psn.value()};
			ack.ext.aeth = {kAethAck | kCreditsInvalid, 0};
			give(ack);
		}
	}
};

class PacingServices : public Pacing, public ::testing::WithParamInterface<int> {};

TEST_P(PacingServices, KeepsTheRateInTheLongRun)
{
	qp_ = make(static_cast<uint8_t>(GetParam()));
	ASSERT_EQ(set(*qp_, limit(8000, 5000)), TERN_AQ_OK); /* 1 MB/s */
	uint64_t bytes = 0, posted = 0;
	for (int tenth = 0; tenth < 20; tenth++) {
		/* 128 KiB each 100 ms: always some left to send */
		for (; posted < bytes + 200'000 && qp_->send_room() > 8; posted += 1000)
			qp_->post_send(request(*qp_, 1000));
		bytes += bytes_in(100 * kMs);
		for (const auto &cqe : cq_->drain()) {
			EXPECT_EQ(cqe.status, TERN_WC_SUCCESS);
			qp_->sq_ci = cqe.wqe_index.get() + 1;
		}
	}
	EXPECT_NEAR(static_cast<double>(bytes), 2e6, 2e4 + 5000);
	EXPECT_EQ(stat(TERN_STAT_REQ_RETRANSMITS), 0u);
	EXPECT_EQ(stat(TERN_STAT_REQ_TIMEOUTS), 0u);
}

INSTANTIATE_TEST_SUITE_P(All, PacingServices,
                         ::testing::Values(TERN_QPT_RC, TERN_QPT_UC, TERN_QPT_UD, TERN_QPT_RAW));

TEST_P(PacingServices, GoesInBursts)
{
	qp_ = make(static_cast<uint8_t>(GetParam()));
	ASSERT_EQ(set(*qp_, limit(80, 20'000)), TERN_AQ_OK); /* 10 kB/s */
	const uint64_t before = sent_bytes();
	for (int i = 0; i < 60; i++)
		qp_->post_send(request(*qp_, 1000));
	run();
	const uint64_t burst = sent_bytes() - before;
	EXPECT_GE(burst, 20'000u);
	EXPECT_LT(burst, 22'000u);
}

TEST_F(Pacing, ChangesWhileItRuns)
{
	qp_ = make(TERN_QPT_UC);
	ASSERT_EQ(set(*qp_, limit(800, 1000)), TERN_AQ_OK); /* 100 kB/s */
	for (int i = 0; i < 16; i++)
		qp_->post_send(request(*qp_, 0x20000));
	run();
	EXPECT_NEAR(static_cast<double>(bytes_in(kSecond)), 1e5, 1e3);
	ASSERT_EQ(set(*qp_, limit(4000, 1000)), TERN_AQ_OK);
	EXPECT_NEAR(static_cast<double>(bytes_in(kSecond)), 5e5, 5e3);
	/* A slow one, in the middle of its wait. */
	ASSERT_EQ(set(*qp_, limit(1, 1)), TERN_AQ_OK);
	run();
	EXPECT_LT(bytes_in(kSecond), 1000u);
	ASSERT_EQ(set(*qp_, limit(0)), TERN_AQ_OK);
	run();
	EXPECT_EQ(cq_->drain().size(), 16u);
}

TEST_F(Pacing, OthersGoOn)
{
	qp_ = make(TERN_QPT_UC);
	const auto other = make(TERN_QPT_UC);
	ASSERT_EQ(set(*qp_, limit(80)), TERN_AQ_OK);
	qp_->post_send(request(*qp_, 0x20000));
	run();
	other->post_send(request(*other, 0x20000));
	run();
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].qpn.get(), other->number);
}

/* It waits for a timer, and the card has nothing to do until then; idle, it has none. */
TEST_F(Pacing, CostsNothing)
{
	qp_ = make(TERN_QPT_UC);
	ASSERT_EQ(set(*qp_, limit(80)), TERN_AQ_OK);
	run();
	EXPECT_FALSE(card_.next_deadline());
	qp_->post_send(request(*qp_, 0x8000));
	run();
	EXPECT_FALSE(card_.run(64));
	ASSERT_TRUE(card_.next_deadline());
	EXPECT_GT(*card_.next_deadline(), host_.clock.now());
	pass(10 * kSecond);
	EXPECT_EQ(cq_->drain().size(), 1u);
	EXPECT_FALSE(card_.next_deadline());
}

/* A pause is no loss to the ACK timer, however long it is. */
TEST_F(Pacing, AcknowledgementsAreAskedForBeforeAPause)
{
	qp_ = make(TERN_QPT_RC);
	ASSERT_EQ(set(*qp_, limit(80, 1000)), TERN_AQ_OK); /* a packet each 30 ms */
	qp_->post_send(request(*qp_, 0x4000));
	run();
	bytes_in(3 * kSecond);
	EXPECT_EQ(cq_->drain().size(), 1u);
	EXPECT_EQ(stat(TERN_STAT_REQ_TIMEOUTS), 0u);
	EXPECT_EQ(stat(TERN_STAT_REQ_RETRANSMITS), 0u);
}

TEST_F(Pacing, RetransmissionsCount)
{
	qp_ = make(TERN_QPT_RC);
	ASSERT_EQ(set(*qp_, limit(800, 1000)), TERN_AQ_OK); /* 100 kB/s */
	qp_->post_send(request(*qp_, 0x20000));
	run();
	const uint64_t before = sent_bytes();
	for (int ms = 0; ms < 500; ms++) {
		TestPacket nak{.psn = kSqPsn};
		nak.ext.aeth = {nak_syndrome(NakCode::PsnSequenceError), 0};
		if (ms % 50 == 0 && ms < 300)
			give(nak);
		pass(kMs);
		host_.wire.take();
	}
	EXPECT_GT(stat(TERN_STAT_REQ_RETRANSMITS), 5u);
	EXPECT_LT(sent_bytes() - before, 52'000u);
}

/* Nor does what the peer asks for wait behind what the QP sends. */
TEST_F(Pacing, ResponsesGoAtOnce)
{
	qp_ = make(TERN_QPT_RC);
	ASSERT_EQ(set(*qp_, limit(1, 1)), TERN_AQ_OK);
	qp_->post_send(request(*qp_, 0x4000));
	run();
	all_sent();
	TestPacket read{.opcode = Opcode::RcReadRequest, .psn = kRqPsn};
	read.ext.reth = {mr_->va, mr_->key, 0x4000};
	give(read);
	EXPECT_EQ(all_sent().size(), 0x4000u / 256);
}

TEST_F(Pacing, ResetForgetsIt)
{
	qp_ = make(TERN_QPT_UC);
	ASSERT_EQ(set(*qp_, limit(80, 1000, 500)), TERN_AQ_OK);
	const auto told = qp_->query().rate_limit;
	EXPECT_EQ(told.rate.get(), 80u);
	EXPECT_EQ(told.burst.get(), 1000u);
	EXPECT_EQ(told.packet.get(), 500u);
	ASSERT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	EXPECT_EQ(qp_->query().rate_limit.rate.get(), 0u);
}

TEST_P(PacingServices, OnTheWayToRts)
{
	qp_ = make(static_cast<uint8_t>(GetParam()));
	EXPECT_EQ(set(*qp_, limit(80), TERN_QP_STATE), TERN_AQ_OK);
	EXPECT_EQ(qp_->query().rate_limit.rate.get(), 80u);
}

TEST_P(PacingServices, RefusesOtherStatesAndValues)
{
	qp_ = make(static_cast<uint8_t>(GetParam()));
	EXPECT_EQ(set(*qp_, limit(TERN_MAX_RATE_LIMIT)), TERN_AQ_OK);
	EXPECT_EQ(set(*qp_, limit(TERN_MAX_RATE_LIMIT + 1)), TERN_AQ_BAD_FIELD);
	auto reserved = limit(5);
	reserved.rsvd[1] = 1;
	EXPECT_EQ(set(*qp_, reserved), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(qp_->query().rate_limit.rate.get(), uint32_t{TERN_MAX_RATE_LIMIT});
	ASSERT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	EXPECT_EQ(set(*qp_, limit(5)), TERN_AQ_BAD_STATE);
	ASSERT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	EXPECT_EQ(set(*qp_, limit(5)), TERN_AQ_BAD_STATE);
}

/* A QP that goes while it waits leaves no timer behind. */
TEST_F(Pacing, DestroyedWhileItWaits)
{
	qp_ = make(TERN_QPT_UC);
	ASSERT_EQ(set(*qp_, limit(1, 1)), TERN_AQ_OK);
	qp_->post_send(request(*qp_, 0x4000));
	run();
	ASSERT_TRUE(card_.next_deadline());
	ASSERT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qp_->number), TERN_AQ_OK);
	EXPECT_FALSE(card_.next_deadline());
	pass(kSecond);
}

} // namespace
} // namespace tern::test
