// SPDX-License-Identifier: GPL-2.0-or-later
/* Registers, doorbells, reset and what stops the card. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

class RegistersTest : public OneCard {
protected:
	uint32_t status() { return card_.read_register(TERN_REG_STATUS); }
	void expect_fatal(tern_hw_fatal reason)
	{
		EXPECT_EQ(status(), TERN_STATUS_FATAL | static_cast<uint32_t>(reason)
		                                                << TERN_STATUS_REASON_SHIFT);
	}
};

TEST_F(RegistersTest, Identity)
{
	EXPECT_EQ(card_.read_register(TERN_REG_VERSION), 0x0001000bu);
	EXPECT_EQ(card_.read_register(TERN_REG_MAC_LO), 0x00000002u);
	EXPECT_EQ(card_.read_register(TERN_REG_MAC_HI), 0x0100u);
	EXPECT_EQ(card_.read_register(TERN_REG_LINK), TERN_LINK_UP);
	EXPECT_EQ(card_.read_register(0xffc), 0u);
	EXPECT_EQ(status(), 0u);
}

TEST_F(RegistersTest, EnableThenReset)
{
	set_up_card();
	EXPECT_EQ(status(), TERN_STATUS_READY);
	card_.write_register(TERN_REG_CTRL, TERN_CTRL_RESET);
	EXPECT_EQ(status(), 0u);
	EXPECT_EQ(card_.read_register(TERN_REG_AQ_LOG_SIZE), 0u);
	EXPECT_EQ(card_.read_register(TERN_REG_LINK), TERN_LINK_UP);
	/* All objects are gone. */
	driver_.enable();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, pd_), TERN_AQ_BAD_OBJECT);
}

/* Taking ENABLE back is a reset. */
TEST_F(RegistersTest, DisableResets)
{
	set_up_card();
	card_.write_register(TERN_REG_CTRL, 0);
	EXPECT_EQ(status(), 0u);
	driver_.enable();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, pd_), TERN_AQ_BAD_OBJECT);
}

TEST_F(RegistersTest, BadAdminRing)
{
	for (const auto &[reg, value] : {std::pair(TERN_REG_AQ_LOG_SIZE, 0u),
	                                 {TERN_REG_AQ_LOG_SIZE, 11u},
	                                 {TERN_REG_AQ_BASE_LO, 0x800u},
	                                 {TERN_REG_ACQ_BASE_LO, 0x10u}}) {
		card_.write_register(TERN_REG_AQ_LOG_SIZE, 4);
		card_.write_register(reg, value);
		card_.write_register(TERN_REG_CTRL, TERN_CTRL_ENABLE);
		expect_fatal(TERN_FATAL_AQ_CONFIG);
		card_.write_register(TERN_REG_CTRL, TERN_CTRL_RESET);
		EXPECT_EQ(status(), 0u);
	}
}

TEST_F(RegistersTest, AdminRingNotReachable)
{
	driver_.enable();
	host_.memory.fault(driver_.aq, 4096);
	card_.write_register(TERN_REG_AQ_PI, 1);
	run();
	expect_fatal(TERN_FATAL_AQ_DMA);
}

TEST_F(RegistersTest, AdminCompletionNotReachable)
{
	driver_.enable();
	host_.memory.fault(driver_.acq, 4096);
	card_.write_register(TERN_REG_AQ_PI, 1);
	run();
	expect_fatal(TERN_FATAL_AQ_DMA);
}

TEST_F(RegistersTest, AdminIndexTooFar)
{
	driver_.enable(4);
	card_.write_register(TERN_REG_AQ_PI, 17);
	expect_fatal(TERN_FATAL_AQ_INDEX);
}

TEST_F(RegistersTest, AdminIndexBackwards)
{
	driver_.enable(4);
	card_.write_register(TERN_REG_AQ_PI, UINT32_MAX);
	expect_fatal(TERN_FATAL_AQ_INDEX);
}

TEST_F(RegistersTest, NoEventAfterFatal)
{
	set_up_card();
	card_.write_register(TERN_REG_AQ_PI, driver_.aq_pi + 1000);
	expect_fatal(TERN_FATAL_AQ_INDEX);
	card_.set_link(false);
	EXPECT_FALSE(eq_->ring.poll());
}

TEST_F(RegistersTest, EventRingNotReachable)
{
	set_up_card();
	host_.memory.fault(eq_->ring.buffer().at(0), 4096);
	card_.set_link(false);
	expect_fatal(TERN_FATAL_EQ_DMA);
	/* It takes nothing any more, and does nothing. */
	card_.write_register(TERN_REG_AQ_PI, driver_.aq_pi + 1);
	EXPECT_FALSE(card_.run(10));
	EXPECT_FALSE(card_.next_deadline());
}

TEST_F(RegistersTest, AdminRingWraps)
{
	driver_.enable(1);
	for (int i = 0; i < 9; i++)
		driver_.alloc_pd();
}

TEST_F(RegistersTest, AdminInterrupts)
{
	driver_.enable(4, true);
	driver_.alloc_pd();
	EXPECT_EQ(host_.interrupts.raised(), (std::vector<unsigned>{0}));
	card_.write_register(TERN_REG_CTRL, TERN_CTRL_ENABLE);
	driver_.alloc_pd();
	EXPECT_EQ(host_.interrupts.raised().size(), 1u);
}

/* More commands than one run() does. */
TEST_F(RegistersTest, CommandsInTurns)
{
	driver_.enable(6);
	for (unsigned i = 0; i < 40; i++)
		host_.memory.put(driver_.aq + i * TERN_AQ_ENTRY, make_command(TERN_AQ_ALLOC_PD));
	card_.write_register(TERN_REG_AQ_PI, 40);
	EXPECT_TRUE(card_.run(1));
	run();
	EXPECT_EQ(host_.memory.get<tern_hw_aq_cqe>(driver_.acq + 39 * TERN_AQ_ENTRY).phase,
	          TERN_PHASE);
}

/* ---- doorbells ---- */

/* A page is one process's: queues of others are not to be had through it. */
TEST_F(RegistersTest, DoorbellPageBinding)
{
	set_up_card();
	QpOptions options;
	options.pd = pd_;
	options.send_cqn = options.recv_cqn = cq_->number;
	options.db_page = 3;
	qp_ = driver_.create_qp(options);
	qp_->connect(connection());
	qp_->post_blocks(encode({.sges = {mr_->sge(0, 1)}}), false);
	for (const uint32_t page : {0u, 2u, 4u, 2047u, UINT32_MAX})
		driver_.doorbell(page, TERN_DB_SQ, qp_->number, 1);
	run();
	EXPECT_TRUE(all_sent().empty());
	EXPECT_EQ(stat(TERN_STAT_DB_DROPPED), 5u);
	driver_.doorbell(3, TERN_DB_SQ, qp_->number, 1);
	run();
	EXPECT_EQ(all_sent().size(), 1u);

	driver_.doorbell(1, TERN_DB_CQ_ARM, cq_->number, 0);
	driver_.doorbell(3, TERN_DB_EQ_ARM, eq_->number, 0);
	driver_.doorbell(0, TERN_DB_SQ, 999, 0);
	driver_.doorbell(0, 0x18, qp_->number, 0);
	EXPECT_EQ(stat(TERN_STAT_DB_DROPPED), 9u);
}

/* ---- events ---- */

TEST_F(RegistersTest, LinkEvent)
{
	set_up_card();
	card_.set_link(true); /* as it was */
	EXPECT_TRUE(events().empty());
	card_.set_link(false);
	EXPECT_EQ(host_.interrupts.count(0), 1u);
	EXPECT_TRUE(event(TERN_EVENT_LINK, 0));
}

/* One interrupt for each time it is armed, also when the event came first. */
TEST_F(RegistersTest, InterruptOnlyWhenArmed)
{
	set_up_card();
	for (int i = 0; i < 4; i++)
		card_.set_link(i % 2);
	EXPECT_EQ(host_.interrupts.count(0), 1u);
	driver_.arm(*eq_);
	EXPECT_EQ(host_.interrupts.count(0), 2u);
	events();
	EXPECT_EQ(host_.interrupts.count(0), 2u);
	card_.set_link(false);
	EXPECT_EQ(host_.interrupts.count(0), 3u);
}

/* The ring is full: events wait for room, each once, and are counted. */
TEST_F(RegistersTest, EventQueueOverflow)
{
	driver_.enable();
	eq_.emplace(driver_.create_eq(0, 1));
	driver_.set_gid(0, TERN_GID_ROCE_V2, kCardGid);
	pd_ = driver_.alloc_pd();
	cq_ = driver_.create_cq(*eq_, 4);
	qp_ = make_qp();
	qp_->connect(connection());
	for (int i = 0; i < 4; i++)
		card_.set_link(i % 2);
	EXPECT_EQ(stat(TERN_STAT_EQ_OVERRUNS), 2u);
	cq_->arm();
	qp_->post_recv(std::span<const Sge>{});
	give({.opcode = Opcode::RcSendOnly, .psn = kRqPsn});
	std::vector<int> types;
	for (int i = 0; i < 2; i++)
		for (const auto &e : events())
			types.push_back(e.type);
	EXPECT_EQ(types, (std::vector<int>{TERN_EVENT_LINK, TERN_EVENT_LINK, TERN_EVENT_COMP,
	                                   TERN_EVENT_LINK}));
}

/* Asynchronous events that come before there is an EQ of vector 0. */
class EventsBeforeTheirEq : public OneCard {
protected:
	void SetUp() override { set_up_without_events(); }
	void fail(HostQp &qp) { EXPECT_TRUE(card_.fail_qp(qp.number)); }
	std::vector<std::pair<int, uint32_t>> of_new_eq(unsigned log_size = 8)
	{
		eq_.emplace(driver_.create_eq(0, log_size));
		std::vector<std::pair<int, uint32_t>> all;
		for (const auto &e : events())
			all.emplace_back(e.type, e.id.get());
		return all;
	}
	using Events = std::vector<std::pair<int, uint32_t>>;
};

/* They wait for it, and interrupt when it is armed. */
TEST_F(EventsBeforeTheirEq, Wait)
{
	fail(*qp_);
	run();
	EXPECT_EQ(of_new_eq(), (Events{{TERN_EVENT_QP_FATAL, qp_->number}}));
	EXPECT_EQ(host_.interrupts.count(0), 0u);
}

TEST_F(EventsBeforeTheirEq, InterruptWhenItIsArmed)
{
	fail(*qp_);
	eq_.emplace(driver_.create_eq(0));
	EXPECT_EQ(host_.interrupts.count(0), 0u);
	driver_.arm(*eq_);
	EXPECT_EQ(host_.interrupts.count(0), 1u);
}

/* An object that is destroyed takes them along. */
TEST_F(EventsBeforeTheirEq, OfWhatIsDestroyed)
{
	fail(*qp_);
	run();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qp_->number), TERN_AQ_OK);
	EXPECT_TRUE(of_new_eq().empty());
}

/* The register LINK says what the event would. */
TEST_F(EventsBeforeTheirEq, NotLink)
{
	card_.set_link(false);
	EXPECT_TRUE(of_new_eq().empty());
}

/* If an EQ of vector 0 is destroyed while events wait for room in it, the next EQ gets them. */
TEST_F(EventsBeforeTheirEq, OfADestroyedEq)
{
	eq_.emplace(driver_.create_eq(0, 1));
	for (int i = 0; i < 2; i++)
		card_.set_link(i % 2);
	fail(*qp_);
	EXPECT_EQ(stat(TERN_STAT_EQ_OVERRUNS), 1u);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_EQ, eq_->number), TERN_AQ_OK);
	EXPECT_EQ(of_new_eq(), (Events{{TERN_EVENT_QP_FATAL, qp_->number}}));
}

/* More than it holds: the others come when there is room, as from any EQ. */
TEST_F(EventsBeforeTheirEq, MoreThanItHolds)
{
	std::vector<std::unique_ptr<HostQp>> qps;
	for (int i = 0; i < 3; i++) {
		qps.push_back(make_qp());
		qps.back()->connect(connection());
		fail(*qps.back());
	}
	EXPECT_EQ(of_new_eq(1).size(), 2u);
	EXPECT_EQ(events().size(), 1u);
}

/* A consumer index that the ring cannot have is ignored, and counted. */
TEST_F(RegistersTest, ImpossibleConsumerIndexOfAnEq)
{
	set_up_card();
	const uint64_t before = stat(TERN_STAT_DB_DROPPED);
	driver_.doorbell(0, TERN_DB_EQ_ARM, eq_->number, eq_->ring.ci + 1);
	driver_.doorbell(0, TERN_DB_EQ_ARM, eq_->number, eq_->ring.ci - (1u << 8) - 1);
	EXPECT_EQ(stat(TERN_STAT_DB_DROPPED), before + 2);
	card_.set_link(false);
	EXPECT_EQ(host_.interrupts.count(0), 1u) << "it is armed as it was";
	driver_.doorbell(0, TERN_DB_EQ_ARM, eq_->number, eq_->ring.ci + 2);
	EXPECT_EQ(host_.interrupts.count(0), 1u);
	driver_.arm(*eq_);
	EXPECT_EQ(host_.interrupts.count(0), 2u);
}

/* A QP and a CQ that go take their waiting events along. */
TEST_F(RegistersTest, WaitingEventsOfWhatIsDestroyed)
{
	driver_.enable();
	eq_.emplace(driver_.create_eq(0, 1));
	driver_.set_gid(0, TERN_GID_ROCE_V2, kCardGid);
	pd_ = driver_.alloc_pd();
	cq_ = driver_.create_cq(*eq_, 4);
	qp_ = make_qp();
	qp_->to_init(connection());
	qp_->to_rtr(connection());
	card_.set_link(false);
	card_.set_link(true);
	cq_->arm();
	qp_->post_recv(std::span<const Sge>{});
	give({.opcode = Opcode::RcSendOnly, .psn = kRqPsn});
	EXPECT_EQ(stat(TERN_STAT_EQ_OVERRUNS), 2u); /* COMM_EST and COMP */
	driver_.destroy(TERN_AQ_DESTROY_QP, qp_->number);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_CQ, cq_->number), TERN_AQ_OK);
	EXPECT_EQ(events().size(), 2u);
	EXPECT_TRUE(events().empty());
}

} // namespace
} // namespace tern::test
