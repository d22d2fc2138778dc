// SPDX-License-Identifier: GPL-2.0-or-later
/* The two ends of an XRC connection (annex A14). */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr size_t kMtu = 256;
constexpr uint8_t kAck = kAethAck | kCreditsInvalid;
constexpr uint8_t kInvalidNak = nak_syndrome(NakCode::InvalidRequest);
constexpr uint8_t kAccessNak = nak_syndrome(NakCode::RemoteAccessError);

class XrcTarget : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		srq_cq_ = driver_.create_cq(*eq_);
		xrcd_ = driver_.alloc_xrcd();
		srq_ = make_srq(xrcd_, pd_);
		qp_ = driver_.create_qp({.type = TERN_QPT_XRC_TGT, .xrcdn = xrcd_});
		qp_->connect(connection());
		events();
	}
	std::unique_ptr<HostSrq> make_srq(uint32_t xrcd, uint32_t pd)
	{
		auto srq = driver_.create_srq(
		        {.pd = pd, .xrcdn = xrcd, .cqn = xrcd ? srq_cq_->number : 0});
		srq->post(mr_->sge(0x10000, 4096));
		srq->post(mr_->sge(0x12000, 4096));
		return srq;
	}
	TestPacket request(Opcode opcode, uint32_t n, size_t size = 0) const
	{
		TestPacket p{.opcode = opcode,
		             .service = Service::Xrc,
		             .psn = psn_after(kRqPsn, n),
		             .ack_request = true,
		             .payload = std::vector<std::byte>(size, std::byte{0x33})};
		p.ext.srqn = srq_->number;
		p.ext.reth = {mr_->va, mr_->key, static_cast<uint32_t>(size)};
		return p;
	}
	void expect_answer(uint8_t syndrome)
	{
		const auto p = sent();
		ASSERT_TRUE(p);
		EXPECT_EQ(p->opcode, Opcode::RcAcknowledge);
		EXPECT_EQ(p->service, Service::Xrc);
		EXPECT_EQ(p->ext.aeth.syndrome, syndrome);
		EXPECT_TRUE(host_.wire.frames().empty());
	}
	void expect_invalid(const TestPacket &p)
	{
		give(p);
		expect_answer(kInvalidNak);
		EXPECT_TRUE(event(TERN_EVENT_QP_REQ_ERR, qp_->number));
		EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	}

	std::unique_ptr<HostCq> srq_cq_;
	uint32_t xrcd_ = 0;
	std::unique_ptr<HostSrq> srq_;
};

/* Past: acknowledged again. Expected: into the SRQ that the packet names, to that one's CQ. Future:
 * a NAK. */
TEST_F(XrcTarget, Send)
{
	give(request(Opcode::RcSendOnly, 0, 20));
	expect_answer(kAck);
	give(request(Opcode::RcSendOnly, 0, 20));
	expect_answer(kAck);
	give(request(Opcode::RcSendOnly, 2, 20));
	expect_answer(nak_syndrome(NakCode::PsnSequenceError));
	const auto cqes = srq_cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].status, TERN_WC_SUCCESS);
	EXPECT_EQ(cqes[0].byte_len.get(), 20u);
	EXPECT_EQ(cqes[0].srqn.get(), srq_->number);
	EXPECT_EQ(cqes[0].qpn.get(), qp_->number);
	EXPECT_EQ(mr_->read(0x10000, 20), std::vector<std::byte>(20, std::byte{0x33}));
}

TEST_F(XrcTarget, ReservedOpcode)
{
	expect_invalid(request(static_cast<Opcode>(0x1f), 0, 20));
}

TEST_F(XrcTarget, MessagesToTwoSrqs)
{
	const auto second = make_srq(xrcd_, pd_);
	give(request(Opcode::RcSendFirst, 0, kMtu));
	give(request(Opcode::RcSendLast, 1, 1));
	auto p = request(Opcode::RcSendOnly, 2, 1);
	p.ext.srqn = second->number;
	give(p);
	const auto cqes = srq_cq_->drain();
	ASSERT_EQ(cqes.size(), 2u);
	EXPECT_EQ(cqes[0].srqn.get(), srq_->number);
	EXPECT_EQ(cqes[0].byte_len.get(), kMtu + 1);
	EXPECT_EQ(cqes[1].srqn.get(), second->number);
}

TEST_F(XrcTarget, RnrWhenTheSrqIsEmpty)
{
	give(request(Opcode::RcSendOnly, 0, 1));
	give(request(Opcode::RcSendOnly, 1, 1));
	all_sent();
	give(request(Opcode::RcSendOnly, 2, 1));
	expect_answer(kAethRnrNak | connection().min_rnr_timer);
}

/* Keys are those of the SRQ's protection domain. */
TEST_F(XrcTarget, WriteReadAndAtomic)
{
	give(request(Opcode::RcWriteOnly, 0, 16));
	expect_answer(kAck);
	EXPECT_EQ(mr_->read(0, 16), std::vector<std::byte>(16, std::byte{0x33}));
	auto read = request(Opcode::RcReadRequest, 1);
	read.ext.reth.length = 16;
	give(read);
	const auto data = sent();
	ASSERT_TRUE(data);
	EXPECT_EQ(data->opcode, Opcode::RcReadResponseOnly);
	EXPECT_EQ(data->service, Service::Xrc);
	EXPECT_EQ(data->payload, std::vector<std::byte>(16, std::byte{0x33}));
	auto add = request(Opcode::RcFetchAdd, 2);
	add.ext.atomic = {mr_->va, mr_->key, 1, 0};
	give(add);
	EXPECT_EQ(sent()->opcode, Opcode::RcAtomicAcknowledge);
	EXPECT_EQ(mr_->read_u64(0), 0x3333333333333334u);
}

TEST_F(XrcTarget, KeyOfAnotherDomain)
{
	srq_ = make_srq(xrcd_, driver_.alloc_pd());
	give(request(Opcode::RcWriteOnly, 0, 16));
	expect_answer(kAccessNak);
	EXPECT_TRUE(event(TERN_EVENT_QP_ACCESS_ERR, qp_->number));
}

/* The buffers of its WQEs are those of its own domain, too. */
TEST_F(XrcTarget, BufferOfAnotherDomain)
{
	srq_ = make_srq(xrcd_, driver_.alloc_pd());
	give(request(Opcode::RcSendOnly, 0, 16));
	expect_answer(nak_syndrome(NakCode::RemoteOperationalError));
	const auto cqe = srq_cq_->poll();
	ASSERT_TRUE(cqe);
	EXPECT_EQ(cqe->status, TERN_WC_LOC_PROT_ERR);
}

TEST_F(XrcTarget, NoSuchSrq)
{
	auto p = request(Opcode::RcSendOnly, 0, 1);
	p.ext.srqn = 0xffffff;
	expect_invalid(p);
}

TEST_F(XrcTarget, SrqOfAnotherXrcDomain)
{
	srq_ = make_srq(driver_.alloc_xrcd(), pd_);
	expect_invalid(request(Opcode::RcWriteOnly, 0, 1));
}

TEST_F(XrcTarget, PlainSrq)
{
	srq_ = make_srq(0, pd_);
	expect_invalid(request(Opcode::RcSendOnly, 0, 1));
}

TEST_F(XrcTarget, OtherSrqInTheMiddleOfAMessage)
{
	give(request(Opcode::RcSendFirst, 0, kMtu));
	all_sent();
	srq_ = make_srq(xrcd_, pd_);
	expect_invalid(request(Opcode::RcSendLast, 1, 1));
	/* What the message had taken is not lost. */
	const auto cqe = srq_cq_->poll();
	ASSERT_TRUE(cqe);
	EXPECT_EQ(cqe->status, TERN_WC_WR_FLUSH_ERR);
}

TEST_F(XrcTarget, SrqDestroyedInTheMiddleOfAMessage)
{
	give(request(Opcode::RcSendFirst, 0, kMtu));
	all_sent();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_SRQ, srq_->number), TERN_AQ_OK);
	expect_invalid(request(Opcode::RcSendLast, 1, 1));
	EXPECT_TRUE(srq_cq_->drain().empty());
}

/* A packet of RC, or a response, is not for this QP. */
TEST_F(XrcTarget, PacketsOfOthers)
{
	auto p = request(Opcode::RcSendOnly, 0, 1);
	p.service = Service::Rc;
	give(p);
	give(request(Opcode::RcAcknowledge, 0));
	EXPECT_TRUE(all_sent().empty());
	EXPECT_EQ(stat(TERN_STAT_RX_NO_QP), 2u);
	EXPECT_TRUE(srq_cq_->drain().empty());
}

/* No queue, no record: nothing of that is touched, and no doorbell is its own. */
TEST_F(XrcTarget, HasNoQueues)
{
	const uint64_t faults = stat(TERN_STAT_DMA_FAULTS);
	driver_.doorbell(0, TERN_DB_SQ, qp_->number, 1);
	run();
	EXPECT_EQ(stat(TERN_STAT_DB_DROPPED), 1u);
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	pass(1'000'000'000);
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	EXPECT_EQ(stat(TERN_STAT_DMA_FAULTS), faults);
	/* It is not a QP of a plain SRQ. */
	EXPECT_FALSE(event(TERN_EVENT_LAST_WQE, qp_->number));
}

TEST_F(XrcTarget, Commands)
{
	auto c = make_command(TERN_AQ_CREATE_QP);
	c.create_qp.type = TERN_QPT_XRC_TGT;
	c.create_qp.xrcdn = xrcd_ + 1;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_OBJECT);
	c.create_qp.xrcdn = xrcd_;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	c.create_qp.pdn = pd_;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	/* In use. */
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_XRCD, xrcd_), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_CQ, srq_cq_->number), TERN_AQ_BUSY);
	const uint32_t unused = driver_.alloc_xrcd();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_XRCD, unused), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_XRCD, unused), TERN_AQ_BAD_OBJECT);
	/* An XRC SRQ needs a CQ, a plain one has none. */
	EXPECT_THROW(driver_.create_srq({.pd = pd_, .xrcdn = xrcd_}), std::runtime_error);
	EXPECT_THROW(driver_.create_srq({.pd = pd_, .cqn = cq_->number}), std::runtime_error);
	/* And it is for nobody by itself. */
	const QpOptions direct{
	        .pd = pd_, .send_cqn = cq_->number, .recv_cqn = cq_->number, .srqn = srq_->number};
	EXPECT_THROW(driver_.create_qp(direct), std::runtime_error);
}

class XrcInitiator : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		qp_ = driver_.create_qp(
		        {.pd = pd_, .send_cqn = cq_->number, .type = TERN_QPT_XRC_INI});
		qp_->connect(connection());
	}
	void post(uint8_t opcode, uint32_t length, uint32_t srqn = 0x123)
	{
		const bool atomic = opcode == TERN_OP_FETCH_ADD;
		qp_->post_send({.opcode = opcode,
		                .srqn = srqn,
		                .remote_addr = 0x1000,
		                .rkey = 0x777,
		                .sges = {mr_->sge(0, atomic ? 8 : length)}});
		run();
	}
	void ack(uint32_t n)
	{
		TestPacket p{.service = Service::Xrc, .psn = psn_after(kSqPsn, n)};
		p.ext.aeth = {kAck, n + 1};
		give(p);
	}
};

/* Each request packet names the SRQ (A14.3.3). */
TEST_F(XrcInitiator, Requests)
{
	post(TERN_OP_SEND, 2 * kMtu + 1);
	post(TERN_OP_WRITE, 10, 0x124);
	post(TERN_OP_READ, 10, 0x125);
	post(TERN_OP_FETCH_ADD, 8, 0x126);
	const auto packets = all_sent();
	const std::pair<Opcode, uint32_t> expected[] = {
	        {Opcode::RcSendFirst, 0x123},   {Opcode::RcSendMiddle, 0x123},
	        {Opcode::RcSendLast, 0x123},    {Opcode::RcWriteOnly, 0x124},
	        {Opcode::RcReadRequest, 0x125}, {Opcode::RcFetchAdd, 0x126}};
	ASSERT_EQ(packets.size(), std::size(expected));
	for (size_t i = 0; i < packets.size(); i++) {
		EXPECT_EQ(packets[i].service, Service::Xrc);
		EXPECT_EQ(packets[i].opcode, expected[i].first);
		EXPECT_EQ(packets[i].ext.srqn, expected[i].second);
	}
	ack(3);
	EXPECT_EQ(cq_->drain().size(), 2u);
}

TEST_F(XrcInitiator, BadSrqn)
{
	post(TERN_OP_SEND, 1, 0x1000000);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].status, TERN_WC_LOC_QP_OP_ERR);
}

/* Nobody sends requests to it, nor answers of RC. */
TEST_F(XrcInitiator, PacketsOfOthers)
{
	post(TERN_OP_SEND, 1);
	all_sent();
	TestPacket p{.service = Service::Rc, .psn = kSqPsn};
	p.ext.aeth = {kAck, 1};
	give(p);
	p = {.opcode = Opcode::RcSendOnly, .service = Service::Xrc, .psn = kRqPsn};
	give(p);
	EXPECT_EQ(stat(TERN_STAT_RX_NO_QP), 2u);
	EXPECT_TRUE(all_sent().empty());
	EXPECT_TRUE(cq_->drain().empty());
	ack(0);
	EXPECT_EQ(cq_->drain().size(), 1u);
}

TEST_F(XrcInitiator, Commands)
{
	const auto create = [&](auto change) {
		QpOptions o{.pd = pd_, .send_cqn = cq_->number, .type = TERN_QPT_XRC_INI};
		change(o);
		driver_.create_qp(o);
	};
	EXPECT_NO_THROW(create([](auto &) {}));
	EXPECT_THROW(create([&](auto &o) { o.recv_cqn = cq_->number; }), std::runtime_error);
	EXPECT_THROW(create([&](auto &o) { o.srqn = 1; }), std::runtime_error);
	EXPECT_THROW(create([&](auto &o) { o.xrcdn = 1; }), std::runtime_error);
}

} // namespace
} // namespace tern::test
