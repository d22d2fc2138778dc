// SPDX-License-Identifier: GPL-2.0-or-later
/* A card of several engines, as one of them sees it. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kEngines = 4;

class Engines : public OneCard {
protected:
	explicit Engines(uint32_t engine)
	        : OneCard({.mac = kCardMac, .engine = engine, .engines = kEngines})
	{
		set_up_card();
	}

	/** Whether a packet to @qpn at this card's own address leaves by the wire. */
	bool leaves(uint32_t qpn)
	{
		auto to = connection();
		to.dmac = kCardMac;
		to.dgid = kCardGid;
		to.dest_qpn = qpn;
		qp_ = make_qp();
		qp_->connect(to);
		const uint64_t before = stat(TERN_STAT_RX_FRAMES);
		qp_->post_send({.opcode = TERN_OP_SEND, .sges = {mr_->sge(0, 1)}});
		run();
		const bool left = !host_.wire.take().empty();
		EXPECT_EQ(stat(TERN_STAT_RX_FRAMES), before + (left ? 0 : 1));
		return left;
	}
	static uint32_t qpn_of(uint32_t engine) { return engine << TERN_ENGINE_SHIFT | 0x1234; }
};

class FirstEngine : public Engines {
protected:
	FirstEngine() : Engines(0) {}
};

class ThirdEngine : public Engines {
protected:
	static constexpr uint32_t kEngine = 2;
	ThirdEngine() : Engines(kEngine) {}

	static uint32_t engine_of(uint32_t number) { return number >> TERN_ENGINE_SHIFT; }
};

TEST_F(ThirdEngine, IsInEveryNumber)
{
	EXPECT_EQ(card_.read_register(TERN_REG_ENGINES), kEngines);
	EXPECT_EQ(engine_of(eq_->number), kEngine);
	EXPECT_EQ(engine_of(pd_), kEngine);
	EXPECT_EQ(engine_of(cq_->number), kEngine);
	EXPECT_EQ(engine_of(mr_->key >> 8), kEngine);
	EXPECT_EQ(engine_of(driver_.alloc_xrcd()), kEngine);
	EXPECT_EQ(engine_of(driver_.create_srq({.pd = pd_})->number), kEngine);
	EXPECT_EQ(engine_of(make_qp()->number), kEngine);
}

/* The same number without the engine, or with another one, is nothing here. */
TEST_F(ThirdEngine, KnowsNoOthersObjects)
{
	for (const uint32_t engine : {0u, 1u, 3u, 15u}) {
		const uint32_t pd =
		        (pd_ & ((1u << TERN_ENGINE_SHIFT) - 1)) | engine << TERN_ENGINE_SHIFT;
		EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, pd), TERN_AQ_BAD_OBJECT);
	}
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, driver_.alloc_pd()), TERN_AQ_OK);
}

TEST_F(ThirdEngine, HasNoneOfTheFirstOnesServices)
{
	auto c = make_command(TERN_AQ_CREATE_QP);
	c.create_qp.pages.iova = host_.memory.alloc(8192, 4096);
	c.create_qp.record = host_.memory.alloc(64);
	c.create_qp.rq_offset = 1024;
	c.create_qp.pdn = pd_;
	c.create_qp.send_cqn = c.create_qp.recv_cqn = cq_->number;
	c.create_qp.sq_log_size = c.create_qp.rq_log_size = 4;
	c.create_qp.rq_log_stride = 5;
	for (const auto type : {TERN_QPT_GSI, TERN_QPT_ETH, TERN_QPT_RAW}) {
		c.create_qp.type = type;
		EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	}
	c.create_qp.type = TERN_QPT_UD;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
}

TEST_F(ThirdEngine, ItsOwnPacketsComeBack)
{
	EXPECT_FALSE(leaves(qpn_of(kEngine)));
	for (const uint32_t other : {0u, 1u, 3u})
		EXPECT_TRUE(leaves(qpn_of(other)));
}

/* What names no engine is the first one's. */
TEST_F(ThirdEngine, PacketsToNoEngineLeave)
{
	EXPECT_TRUE(leaves(1));
	EXPECT_TRUE(leaves(qpn_of(kEngines)));
	EXPECT_TRUE(leaves(qpn_of(15)));
}

TEST_F(FirstEngine, TakesWhatNamesNone)
{
	EXPECT_FALSE(leaves(qpn_of(0)));
	EXPECT_FALSE(leaves(qpn_of(kEngines)));
	EXPECT_FALSE(leaves(qpn_of(15)));
	for (const uint32_t other : {1u, 2u, 3u})
		EXPECT_TRUE(leaves(qpn_of(other)));
}

} // namespace
} // namespace tern::test
