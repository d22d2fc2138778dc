// SPDX-License-Identifier: GPL-2.0-or-later
/* Producer indices that a ring cannot have, and records that cannot be read, end a QP of any
 * type. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kQkey = 0x11223344;

struct Kind {
	const char *name;
	tern_hw_qp_type type;
	Service service;
};

class BadIndex : public OneCard, public ::testing::WithParamInterface<Kind> {
protected:
	void SetUp() override
	{
		set_up_card();
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.type = static_cast<uint8_t>(GetParam().type);
		qp_ = driver_.create_qp(options);
		start();
		events();
	}
	void start()
	{
		switch (GetParam().type) {
		case TERN_QPT_UD:
			qp_->start(kQkey);
			break;
		case TERN_QPT_ETH:
			for (const auto state : {TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS})
				qp_->set_state(state);
			break;
		default:
			qp_->connect(connection());
			break;
		}
	}
	void set(size_t field, uint32_t index)
	{
		host_.memory.put(qp_->record + field, Le<uint32_t>(index));
	}
	/** Message @n arrives. */
	void receive(uint32_t n)
	{
		if (GetParam().type == TERN_QPT_ETH) {
			std::vector<std::byte> frame(60);
			std::memcpy(frame.data(), kCardMac.data(), kCardMac.size());
			card_.receive(frame);
			return run();
		}
		TestPacket p{.opcode = Opcode::RcSendOnly,
		             .service = GetParam().service,
		             .psn = psn_after(kRqPsn, n),
		             .payload = std::vector<std::byte>(8)};
		p.ext.deth = {kQkey, kPeerQpn};
		give(p);
	}
	/** The card looks at the send queue. */
	void look()
	{
		qp_->ring_doorbell();
		run();
	}
	void expect_fatal()
	{
		EXPECT_TRUE(event(TERN_EVENT_QP_FATAL, qp_->number));
		EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	}
};

TEST_P(BadIndex, ReceiveQueue)
{
	qp_->post_recv(mr_->sge(0x10000, 256));
	set(offsetof(tern_hw_qp_record, rq_pi), (1u << qp_->options.rq_log_size) + 2);
	receive(0);
	expect_fatal();
}

/* What was posted before is used first. */
TEST_P(BadIndex, ReceiveQueueWithWqes)
{
	qp_->post_recv(mr_->sge(0x10000, 256));
	qp_->post_recv(mr_->sge(0x10000, 256));
	receive(0);
	set(offsetof(tern_hw_qp_record, rq_pi), UINT32_MAX);
	receive(1);
	EXPECT_EQ(cq_->drain().size(), 2u);
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	receive(2);
	expect_fatal();
}

TEST_P(BadIndex, ReceiveRecordNotReachable)
{
	host_.memory.fault(qp_->record, 64);
	receive(0);
	host_.memory.heal();
	expect_fatal();
}

TEST_P(BadIndex, FullReceiveQueue)
{
	for (unsigned i = 0; i < 1u << qp_->options.rq_log_size; i++)
		qp_->post_recv(mr_->sge(0x10000, 256));
	receive(0);
	EXPECT_EQ(cq_->drain().size(), 1u);
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
}

TEST_P(BadIndex, SendQueue)
{
	set(offsetof(tern_hw_qp_record, sq_pi), (1u << qp_->options.sq_log_size) + 1);
	look();
	expect_fatal();
}

TEST_P(BadIndex, SendRecordNotReachable)
{
	host_.memory.fault(qp_->record, 64);
	look();
	host_.memory.heal();
	expect_fatal();
}

/* RESET heals it. */
TEST_P(BadIndex, Reset)
{
	set(offsetof(tern_hw_qp_record, sq_pi), 1u << 20);
	look();
	expect_fatal();
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	qp_->forget();
	start();
	look();
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
}

INSTANTIATE_TEST_SUITE_P(All, BadIndex,
                         ::testing::Values(Kind{"Rc", TERN_QPT_RC, Service::Rc},
                                           Kind{"Uc", TERN_QPT_UC, Service::Uc},
                                           Kind{"Ud", TERN_QPT_UD, Service::Ud},
                                           Kind{"Eth", TERN_QPT_ETH, Service::Rc}),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace tern::test
