// SPDX-License-Identifier: GPL-2.0-or-later
/* RESIZE_CQ and MODERATE_CQ, with completions that a QP flushes. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

class CqCommands : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card(2);
		qp_ = make_qp();
		qp_->connect(connection());
	}
	/** @n completions in the CQ. */
	void complete(unsigned n)
	{
		for (unsigned i = 0; i < n; i++)
			qp_->post_recv(mr_->sge(0, 64));
		EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
		qp_->set_state(TERN_QPS_RESET);
		qp_->forget();
		qp_->connect(connection());
	}
	/** The next of them, by number; nothing when there is none. */
	std::optional<uint32_t> poll()
	{
		const auto cqe = cq_->poll();
		if (!cqe)
			return std::nullopt;
		return cqe->wqe_index.get();
	}
	tern_hw_aq_cmd resize(uint8_t log_size)
	{
		auto c = make_command(TERN_AQ_RESIZE_CQ);
		c.resize_cq.pages.iova = host_.memory.alloc(sizeof(tern_hw_cqe) << log_size, 4096);
		c.resize_cq.record = host_.memory.alloc(64);
		c.resize_cq.cqn = cq_->number;
		c.resize_cq.log_size = log_size;
		return c;
	}
	template <typename Spoil>
	tern_hw_aq_status with(tern_hw_aq_cmd c, Spoil spoil)
	{
		spoil(c.resize_cq);
		return driver_.status_of(c);
	}
	tern_hw_aq_status moderate(uint32_t cqn, uint16_t count, uint16_t period)
	{
		auto c = make_command(TERN_AQ_MODERATE_CQ);
		c.moderate_cq.cqn = cqn;
		c.moderate_cq.count = count;
		c.moderate_cq.period = period;
		return driver_.status_of(c);
	}
	bool completion_event() { return event(TERN_EVENT_COMP, cq_->number); }
};

TEST_F(CqCommands, Resize)
{
	complete(3);
	EXPECT_EQ(poll(), 0u);
	auto c = resize(4);
	const Iova ring = c.resize_cq.pages.iova.get();
	host_.memory.put(c.resize_cq.record.get(), Le<uint32_t>(1u));
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	complete(6);
	for (uint32_t i = 1; i < 9; i++) {
		const auto cqe = host_.memory.get<tern_hw_cqe>(ring + i * sizeof(tern_hw_cqe));
		EXPECT_EQ(cqe.wqe_index.get(), i < 3 ? i : i - 3);
		EXPECT_EQ(cqe.phase, 1);
	}
	EXPECT_EQ(host_.memory.get<tern_hw_cqe>(ring + 9 * sizeof(tern_hw_cqe)).phase, 0);
	EXPECT_EQ(stat(TERN_STAT_CQ_OVERRUNS), 0u);
}

TEST_F(CqCommands, BadResizes)
{
	EXPECT_EQ(with(resize(4), [](auto &c) { c.cqn = 99u; }), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(with(resize(4), [](auto &c) { c.rsvd[2] = 1; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(resize(4), [](auto &c) { c.record = c.record.get() + 8; }),
	          TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(resize(4), [](auto &c) { c.log_size = 23; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(resize(4), [](auto &c) { c.pages.levels = 5; }), TERN_AQ_BAD_FIELD);
	complete(3);
	EXPECT_EQ(driver_.status_of(resize(1)), TERN_AQ_BAD_STATE);
	const auto away = [this](auto &c) { host_.memory.fault(c.pages.iova.get(), 64); };
	EXPECT_EQ(with(resize(4), away), TERN_AQ_DMA_FAULT);
	for (uint32_t i = 0; i < 3; i++)
		EXPECT_EQ(poll(), i) << "where it was";
}

TEST_F(CqCommands, EventAfterSoManyOrSoLong)
{
	EXPECT_EQ(moderate(99, 1, 1), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(moderate(cq_->number, 2, 100), TERN_AQ_OK);
	cq_->arm();
	complete(2);
	EXPECT_TRUE(completion_event());
	cq_->drain();

	cq_->arm();
	complete(1);
	EXPECT_FALSE(completion_event());
	pass(99'000);
	EXPECT_FALSE(completion_event());
	pass(1'000);
	EXPECT_TRUE(completion_event());
	cq_->drain();

	/* One that waits is raised when nothing is to wait any more. */
	cq_->arm();
	complete(1);
	EXPECT_FALSE(completion_event());
	EXPECT_EQ(moderate(cq_->number, 2, 0), TERN_AQ_OK);
	EXPECT_TRUE(completion_event());
	pass(1'000'000);
	EXPECT_FALSE(completion_event()) << "once";
}

/* The period ends after the CQ did. */
TEST_F(CqCommands, DestroyedWhileAnEventWaits)
{
	EXPECT_EQ(moderate(cq_->number, 9, 100), TERN_AQ_OK);
	cq_->arm();
	complete(1);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qp_->number), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_CQ, cq_->number), TERN_AQ_OK);
	pass(1'000'000);
	EXPECT_FALSE(completion_event());
	EXPECT_EQ(moderate(cq_->number, 9, 100), TERN_AQ_BAD_OBJECT);
}

} // namespace
} // namespace tern::test
