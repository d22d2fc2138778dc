// SPDX-License-Identifier: GPL-2.0-or-later
/* A process, which is a doorbell page for the card, leaves numbers of each kind to the others. */
#include "qemu/rnic/limits.h"
#include "qemu/rnic/port/port.h"
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kGreedy = 1;
constexpr uint32_t kOther = 2;

class Shares : public OneCard {
protected:
	void SetUp() override { set_up_card(); }

	static tern_hw_aq_cmd of_page(tern_hw_aq_op opcode, uint32_t page)
	{
		auto c = make_command(opcode);
		c.object.id = page;
		return c;
	}
	uint32_t id_of(const tern_hw_aq_cmd &c)
	{
		const auto result = driver_.command(c);
		EXPECT_EQ(result.status, TERN_AQ_OK);
		return result.created.id.get();
	}
	uint32_t pd_of(uint32_t page) { return id_of(of_page(TERN_AQ_ALLOC_PD, page)); }

	static tern_hw_aq_cmd cq(uint32_t page, uint32_t eqn)
	{
		auto c = make_command(TERN_AQ_CREATE_CQ);
		c.create_cq.eqn = eqn;
		c.create_cq.db_page = page;
		return c;
	}
	static tern_hw_aq_cmd window(uint32_t pdn)
	{
		auto c = make_command(TERN_AQ_ALLOC_MW);
		c.alloc_mw.pdn = pdn;
		c.alloc_mw.type = TERN_MW_TYPE_2;
		return c;
	}
	static tern_hw_aq_cmd srq(uint32_t pdn)
	{
		auto c = make_command(TERN_AQ_CREATE_SRQ);
		c.create_srq.pdn = pdn;
		c.create_srq.log_stride = 4;
		c.create_srq.ring_offset = 64u;
		return c;
	}
	tern_hw_aq_cmd qp(uint32_t page, uint32_t pdn) const
	{
		auto c = make_command(TERN_AQ_CREATE_QP);
		c.create_qp.type = TERN_QPT_RC;
		c.create_qp.pdn = pdn;
		c.create_qp.send_cqn = c.create_qp.recv_cqn = cq_->number;
		c.create_qp.db_page = page;
		c.create_qp.rq_offset = uint32_t{TERN_SQ_BLOCK};
		return c;
	}
	static tern_hw_aq_cmd xrc_target(uint32_t xrcdn)
	{
		auto c = make_command(TERN_AQ_CREATE_QP);
		c.create_qp.type = TERN_QPT_XRC_TGT;
		c.create_qp.xrcdn = xrcdn;
		return c;
	}
	tern_hw_aq_cmd wq(uint32_t pdn) const
	{
		auto c = make_command(TERN_AQ_CREATE_WQ);
		c.create_wq.pdn = pdn;
		c.create_wq.cqn = cq_->number;
		c.create_wq.log_stride = 4;
		return c;
	}
	tern_hw_aq_cmd table(uint32_t wqn)
	{
		auto c = make_command(TERN_AQ_CREATE_WQ_TABLE);
		const Iova at = host_.memory.alloc(sizeof(__le32));
		host_.memory.put(at, Le<uint32_t>(wqn));
		c.create_wq_table.iova = at;
		return c;
	}

	tern_hw_aq_cmd completion_counter(uint32_t page)
	{
		auto c = make_command(TERN_AQ_CREATE_COMP_COUNTER);
		c.create_comp_counter.record = host_.memory.alloc(sizeof(tern_hw_comp_record), 64);
		c.create_comp_counter.db_page = page;
		return c;
	}

	/** Repeats @greedy until it is refused; @other, of another process, then succeeds. */
	void check(const tern_hw_aq_cmd &greedy, const tern_hw_aq_cmd &other, uint32_t capacity)
	{
		uint32_t made = 0;
		tern_hw_aq_status status;
		while ((status = driver_.status_of(greedy)) == TERN_AQ_OK)
			made++;
		EXPECT_EQ(status, TERN_AQ_NO_RESOURCE);
		/* Those of the kernel, and those that the test needs itself, come first. */
		EXPECT_NEAR(made, capacity / 2, 4);
		EXPECT_EQ(driver_.status_of(other), TERN_AQ_OK);
	}
};

TEST_F(Shares, ObjectsWithoutAPd)
{
	for (const auto &[opcode, capacity] :
	     {std::pair(TERN_AQ_ALLOC_PD, kMaxPds), std::pair(TERN_AQ_ALLOC_XRCD, kMaxXrcds),
	      std::pair(TERN_AQ_CREATE_COUNTERS, kMaxFlowCounters)}) {
		SCOPED_TRACE(opcode);
		check(of_page(opcode, kGreedy), of_page(opcode, kOther), capacity);
		EXPECT_EQ(driver_.status_of(of_page(opcode, TERN_DB_PAGE_KERNEL)), TERN_AQ_OK);
		EXPECT_EQ(driver_.status_of(of_page(opcode, 2048)), TERN_AQ_BAD_FIELD);
	}
}

TEST_F(Shares, CompletionQueues)
{
	check(cq(kGreedy, eq_->number), cq(kOther, eq_->number), kMaxCqs);
}

TEST_F(Shares, RegionsAndWindows)
{
	check(window(pd_of(kGreedy)), window(pd_of(kOther)), kMaxRegions);
}

TEST_F(Shares, QueuePairs)
{
	const uint32_t pd = pd_of(kOther);
	const uint32_t xrcd = id_of(of_page(TERN_AQ_ALLOC_XRCD, kGreedy));
	check(qp(kGreedy, pd_of(kGreedy)), qp(kOther, pd), kMaxQps);
	EXPECT_EQ(driver_.status_of(xrc_target(xrcd)), TERN_AQ_NO_RESOURCE);
}

TEST_F(Shares, ReceiveQueues)
{
	const uint32_t greedy = pd_of(kGreedy);
	const uint32_t other = pd_of(kOther);
	check(srq(greedy), srq(other), kMaxSrqs);
	check(wq(greedy), wq(other), kMaxWqs);
}

TEST_F(Shares, TablesOfReceiveQueues)
{
	const auto other = table(id_of(wq(pd_of(kOther))));
	check(table(id_of(wq(pd_of(kGreedy)))), other, kMaxWqTables);
}

TEST_F(Shares, CompletionCounters)
{
	const auto greedy = completion_counter(kGreedy);
	check(greedy, completion_counter(kOther), kMaxCompletionCounters);
	const Iova record = greedy.create_comp_counter.record.get();
	host_.memory.put(record, uint64_t{7});
	EXPECT_EQ(driver_.status_of(greedy), TERN_AQ_NO_RESOURCE);
	EXPECT_EQ(host_.memory.get<uint64_t>(record), 7u);
}

/* What is destroyed may be created again. */
TEST_F(Shares, ComeBack)
{
	const auto alloc = of_page(TERN_AQ_ALLOC_PD, kGreedy);
	const uint32_t first = id_of(alloc);
	while (driver_.status_of(alloc) == TERN_AQ_OK) {
	}
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, first), TERN_AQ_OK);
	EXPECT_EQ(driver_.status_of(alloc), TERN_AQ_OK);
	EXPECT_EQ(driver_.status_of(alloc), TERN_AQ_NO_RESOURCE);
}

} // namespace
} // namespace tern::test
