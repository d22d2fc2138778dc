// SPDX-License-Identifier: GPL-2.0-or-later
/* The commands of shared receive queues: what they refuse, and what they hold. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

class SrqCommands : public OneCard {
protected:
	void SetUp() override { set_up_card(); }

	tern_hw_aq_cmd create_srq()
	{
		auto c = make_command(TERN_AQ_CREATE_SRQ);
		c.create_srq.pages.iova = host_.memory.alloc(8192, 4096);
		c.create_srq.record = host_.memory.alloc(64);
		c.create_srq.ring_offset = 1024;
		c.create_srq.pdn = pd_;
		c.create_srq.log_size = 4;
		c.create_srq.log_stride = 6;
		return c;
	}
	tern_hw_aq_cmd create_qp(uint32_t srqn)
	{
		auto c = make_command(TERN_AQ_CREATE_QP);
		c.create_qp.pages.iova = host_.memory.alloc(8192, 4096);
		c.create_qp.record = host_.memory.alloc(64);
		c.create_qp.rq_offset = 1024;
		c.create_qp.pdn = pd_;
		c.create_qp.send_cqn = cq_->number;
		c.create_qp.recv_cqn = cq_->number;
		c.create_qp.type = TERN_QPT_RC;
		c.create_qp.sq_log_size = 4;
		c.create_qp.flags = TERN_QP_SRQ;
		c.create_qp.srqn = srqn;
		return c;
	}
	template <typename Field, typename Value>
	tern_hw_aq_status bad(Field tern_hw_create_srq::*member, Value value)
	{
		auto c = create_srq();
		c.create_srq.*member = value;
		return driver_.status_of(c);
	}
	uint32_t id_of(const tern_hw_aq_cmd &c)
	{
		const auto result = driver_.command(c);
		EXPECT_EQ(result.status, TERN_AQ_OK);
		return result.created.id.get();
	}
};

TEST_F(SrqCommands, Create)
{
	EXPECT_EQ(bad(&tern_hw_create_srq::log_size, 17), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_srq::log_size, 255), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_srq::log_stride, 3), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_srq::log_stride, 10), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_srq::ring_offset, 960u), TERN_AQ_BAD_FIELD); /* in a slot */
	EXPECT_EQ(bad(&tern_hw_create_srq::ring_offset, 1028u), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_srq::record, uint64_t{32}), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_srq::pdn, 99u), TERN_AQ_BAD_OBJECT);
	auto c = create_srq();
	c.create_srq.rsvd[2] = 1;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	c = create_srq();
	c.create_srq.pages.levels = 5;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(driver_.status_of(create_srq()), TERN_AQ_OK);
}

TEST_F(SrqCommands, OfAQp)
{
	const uint32_t srqn = id_of(create_srq());
	auto c = create_qp(srqn + 1);
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_OBJECT);
	/* Either a receive queue of its own or a shared one. */
	c = create_qp(srqn);
	c.create_qp.rq_log_stride = 4;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	c = create_qp(srqn);
	c.create_qp.flags = 0;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	/* None at all has no size. */
	c = create_qp(0);
	c.create_qp.flags = 0;
	c.create_qp.rq_log_size = 1;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	c.create_qp.rq_log_size = 0;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);

	const uint32_t qpn = id_of(create_qp(srqn));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_SRQ, srqn), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qpn), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_SRQ, srqn), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_SRQ, srqn), TERN_AQ_BAD_OBJECT);
}

TEST_F(SrqCommands, HoldsItsPd)
{
	auto c = create_srq();
	c.create_srq.pdn = driver_.alloc_pd();
	const uint32_t srqn = id_of(c);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, c.create_srq.pdn.get()), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_SRQ, srqn), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, c.create_srq.pdn.get()), TERN_AQ_OK);
}

TEST_F(SrqCommands, Resize)
{
	const uint32_t srqn = id_of(create_srq());
	auto c = make_command(TERN_AQ_RESIZE_SRQ);
	c.resize_srq.pages.iova = host_.memory.alloc(8192, 4096);
	c.resize_srq.record = host_.memory.alloc(64);
	c.resize_srq.srqn = srqn;
	c.resize_srq.ring_offset = 4096;
	c.resize_srq.log_size = 5;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	const auto with = [&](auto member, auto value) {
		auto spoiled = c;
		spoiled.resize_srq.*member = value;
		return driver_.status_of(spoiled);
	};
	EXPECT_EQ(with(&tern_hw_resize_srq::log_size, 4), TERN_AQ_BAD_FIELD); /* smaller */
	EXPECT_EQ(with(&tern_hw_resize_srq::log_size, 7), TERN_AQ_BAD_FIELD); /* over the ring */
	EXPECT_EQ(with(&tern_hw_resize_srq::record, uint64_t{4}), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(&tern_hw_resize_srq::srqn, 77u), TERN_AQ_BAD_OBJECT);
	c.resize_srq.rsvd[0] = 1;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
}

TEST_F(SrqCommands, Tags)
{
	auto good = create_srq();
	good.create_srq.flags = TERN_SRQ_TAGS;
	good.create_srq.cqn = cq_->number;
	good.create_srq.log_tags = 10;
	good.create_srq.log_tag_ops = 5;
	good.create_srq.tag_ops_offset = 2048;
	const auto with = [&](auto member, auto value) {
		auto c = good;
		c.create_srq.*member = value;
		return driver_.status_of(c);
	};
	EXPECT_EQ(with(&tern_hw_create_srq::flags, 0x03), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(&tern_hw_create_srq::flags, 0), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(&tern_hw_create_srq::log_tags, 11), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(&tern_hw_create_srq::log_tag_ops, 11), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(&tern_hw_create_srq::log_tag_ops, 255), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(&tern_hw_create_srq::tag_ops_offset, 1024u), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(&tern_hw_create_srq::tag_ops_offset, 2052u), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(&tern_hw_create_srq::db_page, 0xffffffu), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(&tern_hw_create_srq::xrcdn, 1u), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(&tern_hw_create_srq::cqn, 0u), TERN_AQ_BAD_OBJECT);
	/* Each of them is zero without the flag. */
	EXPECT_EQ(bad(&tern_hw_create_srq::cqn, cq_->number), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_srq::log_tags, 1), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_srq::log_tag_ops, 1), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_srq::tag_ops_offset, 2048u), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_srq::db_page, 1u), TERN_AQ_BAD_FIELD);

	const uint32_t srqn = id_of(good);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_CQ, cq_->number), TERN_AQ_BUSY);
	auto resize = make_command(TERN_AQ_RESIZE_SRQ);
	resize.resize_srq.pages.iova = host_.memory.alloc(8192, 4096);
	resize.resize_srq.record = host_.memory.alloc(64);
	resize.resize_srq.srqn = srqn;
	resize.resize_srq.ring_offset = 4096;
	resize.resize_srq.log_size = 5;
	EXPECT_EQ(driver_.status_of(resize), TERN_AQ_BAD_OBJECT);
	/* Only RC knows what to do with it. */
	auto qp = create_qp(srqn);
	for (const auto type : {TERN_QPT_UC, TERN_QPT_UD}) {
		qp.create_qp.type = static_cast<uint8_t>(type);
		EXPECT_EQ(driver_.status_of(qp), TERN_AQ_BAD_FIELD);
	}
	EXPECT_EQ(driver_.status_of(create_qp(srqn)), TERN_AQ_OK);
}

/* Lists are memory of the card's host: there are 4096. */
TEST_F(SrqCommands, TooManyLists)
{
	auto c = create_srq();
	c.create_srq.flags = TERN_SRQ_TAGS;
	c.create_srq.cqn = cq_->number;
	c.create_srq.tag_ops_offset = 2048;
	uint32_t srqn = 0;
	for (int i = 0; i < 4096; i++)
		srqn = id_of(c);
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_NO_RESOURCE);
	EXPECT_EQ(driver_.status_of(create_srq()), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_SRQ, srqn), TERN_AQ_OK);
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
}

TEST_F(SrqCommands, NoSuchSrq)
{
	EXPECT_EQ(driver_.destroy(TERN_AQ_QUERY_SRQ, 1), TERN_AQ_BAD_OBJECT);
	auto c = make_command(TERN_AQ_SET_SRQ_LIMIT);
	c.set_srq_limit.srqn = 1u;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_OBJECT);
	for (const auto opcode : {TERN_AQ_QUERY_SRQ, TERN_AQ_DESTROY_SRQ}) {
		c = make_command(opcode);
		c.object.rsvd = 1u;
		EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	}
}

} // namespace
} // namespace tern::test
