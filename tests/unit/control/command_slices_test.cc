// SPDX-License-Identifier: GPL-2.0-or-later
/* Admin commands that take long are done in slices, and with timers and tag operations share one
 * budget with the packets. */
#include <array>

#include "qemu/rnic/network/scheduler.h"
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

/* The budget of one call, and the accesses to host memory that it may cause at most. */
constexpr unsigned kBudget = 16;
constexpr uint64_t kWrites = 100;

class CommandSlices : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		qp_ = make_qp();
		qp_->connect(connection());
	}
	tern_hw_aq_cmd resize(uint8_t log_size)
	{
		larger_.emplace(driver_, log_size, Layout{});
		auto c = make_command(TERN_AQ_RESIZE_CQ);
		c.resize_cq.pages = larger_->ring.buffer().pages();
		c.resize_cq.record = larger_->record;
		c.resize_cq.cqn = cq_->number;
		c.resize_cq.log_size = log_size;
		return c;
	}
	static tern_hw_aq_cmd object(tern_hw_aq_op opcode, uint32_t id)
	{
		auto c = make_command(opcode);
		c.object.id = id;
		return c;
	}
	bool step()
	{
		const uint64_t before = host_.memory.writes();
		const bool more = card_.run(kBudget);
		EXPECT_LE(host_.memory.writes() - before, kWrites);
		return more;
	}
	/** The number of calls until @command has completed. */
	unsigned finish(uint32_t command)
	{
		unsigned calls = 0;
		while (!driver_.result(command) && calls < 100'000) {
			step();
			calls++;
		}
		EXPECT_EQ(driver_.result(command)->status, TERN_AQ_OK);
		return calls;
	}
	SendRequest send() const { return {.opcode = TERN_OP_SEND, .sges = {mr_->sge(0, 1)}}; }

	std::optional<HostCq> larger_;
};

TEST_F(CommandSlices, HeldCommandsStayUnanswered)
{
	card_.hold_commands(true, 0);
	auto query = object(TERN_AQ_QUERY_QP, qp_->number);
	const uint32_t first = driver_.submit(query), second = driver_.submit(query);
	EXPECT_FALSE(step());
	EXPECT_FALSE(driver_.result(first));
	const auto under_way = R"("running":"QUERY_QP","qpn":)" + std::to_string(qp_->number) + "}";
	EXPECT_NE(card_.describe(std::nullopt).find(under_way), std::string::npos)
	        << card_.describe(std::nullopt);
	card_.hold_commands(false, 0);
	finish(second);
	EXPECT_EQ(driver_.result(first)->status, TERN_AQ_OK);
}

TEST_F(CommandSlices, SomeAreAnsweredBeforeTheHold)
{
	card_.hold_commands(true, 2);
	std::array<uint32_t, 4> queries;
	for (uint32_t &query : queries)
		query = driver_.submit(object(TERN_AQ_QUERY_QP, qp_->number));
	while (step())
		;
	EXPECT_TRUE(driver_.result(queries[1]));
	EXPECT_FALSE(driver_.result(queries[2]));
	card_.hold_commands(true, 1);
	while (step())
		;
	EXPECT_TRUE(driver_.result(queries[2]));
	EXPECT_FALSE(driver_.result(queries[3]));
	EXPECT_NE(card_.describe(std::nullopt).find(R"("running":"QUERY_QP")"), std::string::npos);
	card_.hold_commands(false, 0);
	finish(queries[3]);
}

TEST_F(CommandSlices, AResetEndsTheHold)
{
	card_.hold_commands(true, 0);
	card_.reset();
	set_up_card();
}

TEST_F(CommandSlices, OneCommandIsRefused)
{
	const auto status = [&](const tern_hw_aq_cmd &command) {
		const uint32_t submitted = driver_.submit(command);
		while (!driver_.result(submitted))
			step();
		return driver_.result(submitted)->status;
	};
	const auto alloc = make_command(TERN_AQ_ALLOC_PD);
	const auto query = object(TERN_AQ_QUERY_QP, qp_->number);
	card_.refuse_command(2);
	EXPECT_EQ(status(alloc), TERN_AQ_OK);
	EXPECT_EQ(status(query), TERN_AQ_OK) << "creates nothing";
	EXPECT_EQ(status(alloc), TERN_AQ_NO_RESOURCE);
	EXPECT_EQ(status(alloc), TERN_AQ_OK);
}

/* CQEs that come in between are in the new ring. */
TEST_F(CommandSlices, ResizeCq)
{
	qp_->post_recv(mr_->sge(0, 64));
	qp_->post_recv(mr_->sge(0, 64));
	const auto receive = [&](uint32_t n) {
		give({.opcode = Opcode::RcSendOnly, .psn = psn_after(kRqPsn, n), .payload = {}},
		     path(), false);
	};
	receive(0);
	const uint32_t command = driver_.submit(resize(16));
	step();
	EXPECT_FALSE(driver_.result(command));
	receive(1);
	EXPECT_GE(finish(command), 10u);
	cq_ = std::make_unique<HostCq>(std::move(*larger_));
	EXPECT_EQ(cq_->drain().size(), 2u);
}

/* The ring is in order: what is behind a long command does not begin before it has ended. */
TEST_F(CommandSlices, OneAfterTheOther)
{
	const uint32_t first = driver_.submit(resize(16));
	const uint32_t second = driver_.submit(make_command(TERN_AQ_ALLOC_PD));
	while (!driver_.result(first)) {
		EXPECT_FALSE(driver_.result(second));
		step();
	}
	finish(second);
}

/* A host that changes a command that was begun changes nothing. */
TEST_F(CommandSlices, ReadOnce)
{
	const uint32_t command = driver_.submit(resize(16));
	step();
	const uint64_t slot = command & ((1u << driver_.aq_log_size) - 1);
	host_.memory.put(driver_.aq + slot * TERN_AQ_ENTRY, make_command(TERN_AQ_QUERY_DEVICE));
	EXPECT_GE(finish(command), 10u);
}

TEST_F(CommandSlices, ResetInBetween)
{
	driver_.submit(resize(16));
	step();
	card_.reset();
	SetUp();
	EXPECT_EQ(driver_.status_of(resize(4)), TERN_AQ_OK);
}

/* A QP sends beside a storm of commands, and they go on beside a QP that always sends. */
TEST_F(CommandSlices, BesideAQpThatSends)
{
	for (int i = 0; i < 200; i++)
		qp_->post_send(send(), false);
	qp_->publish();
	for (int i = 0; i < 20; i++)
		driver_.submit(make_command(TERN_AQ_ALLOC_PD));
	card_.run(kBudget);
	EXPECT_GE(all_sent().size() * (1 + Sender::kMessage), kBudget / 2);
	for (int i = 0; i < 20; i++)
		card_.run(kBudget);
	EXPECT_TRUE(driver_.result(driver_.aq_pi - 10));
}

/* ---- windows ---- */

class WindowSlices : public CommandSlices {
protected:
	void SetUp() override
	{
		CommandSlices::SetUp();
		region_.emplace(driver_.create_mr(pd_, kBase, 4096,
		                                  kAllAccess | TERN_ACCESS_MW_BIND, {1, 12}));
		for (uint32_t i = 0; i < kWindows; i++)
			bind(driver_.alloc_mw(pd_, TERN_MW_TYPE_2, 1));
		EXPECT_EQ(cq_->drain().size(), kWindows);
		EXPECT_EQ(destroy_region(), TERN_AQ_BUSY);
	}
	void bind(uint32_t window)
	{
		windows_.push_back(window);
		SendRequest r{.opcode = TERN_OP_BIND_MW};
		r.bind.emplace();
		r.bind->addr = kBase;
		r.bind->length = uint64_t{8};
		r.bind->rkey = window;
		r.bind->lkey = region_->key;
		r.bind->access = TERN_ACCESS_REMOTE_WRITE;
		qp_->post_send(r);
		run();
	}
	tern_hw_aq_status destroy_region()
	{
		return driver_.destroy(TERN_AQ_DESTROY_MR, region_->key);
	}

	static constexpr uint64_t kBase = 0x40000000;
	static constexpr uint32_t kWindows = 100;
	std::optional<HostMr> region_;
	std::vector<uint32_t> windows_;
};

TEST_F(WindowSlices, DestroyQp)
{
	EXPECT_GE(finish(driver_.submit(object(TERN_AQ_DESTROY_QP, qp_->number))), 4u);
	EXPECT_EQ(destroy_region(), TERN_AQ_OK);
}

TEST_F(WindowSlices, ResetQp)
{
	auto c = make_command(TERN_AQ_MODIFY_QP);
	c.modify_qp.qpn = qp_->number;
	c.modify_qp.attr_mask = uint32_t{TERN_QP_STATE};
	c.modify_qp.attr.state = TERN_QPS_RESET;
	EXPECT_GE(finish(driver_.submit(c)), 4u);
	EXPECT_EQ(destroy_region(), TERN_AQ_OK);
}

/* The first, one of the middle and the last of them go before the QP does. */
TEST_F(WindowSlices, SomeAreGone)
{
	for (const uint32_t i : {0u, 50u, kWindows - 1, 49u})
		EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_MW, windows_[i]), TERN_AQ_OK);
	qp_->post_send({.opcode = TERN_OP_LOCAL_INV, .imm = windows_[51]});
	run();
	finish(driver_.submit(object(TERN_AQ_DESTROY_QP, qp_->number)));
	EXPECT_EQ(destroy_region(), TERN_AQ_OK);
}

/* ---- an XRC SRQ that one of many QPs has taken a WQE of ---- */

TEST_F(CommandSlices, DestroySrq)
{
	const uint32_t xrcd = driver_.alloc_xrcd();
	const auto srq = driver_.create_srq({.pd = pd_, .xrcdn = xrcd, .cqn = cq_->number});
	srq->post(mr_->sge(0, 4096));
	for (int i = 0; i < 400; i++)
		driver_.create_qp({.type = TERN_QPT_XRC_TGT, .xrcdn = xrcd});
	qp_ = driver_.create_qp({.type = TERN_QPT_XRC_TGT, .xrcdn = xrcd});
	qp_->connect(connection());
	TestPacket p{.opcode = Opcode::RcSendFirst, .service = Service::Xrc, .psn = kRqPsn};
	p.payload.resize(256);
	p.ext.srqn = srq->number;
	give(p);
	const uint32_t command = driver_.submit(object(TERN_AQ_DESTROY_SRQ, srq->number));
	step();
	EXPECT_FALSE(driver_.result(command));
	/* The message goes on meanwhile: its SRQ is as good as gone. */
	p.opcode = Opcode::RcSendLast;
	p.psn = psn_after(kRqPsn, 1);
	give(p, path(), false);
	finish(command);
	run();
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_XRCD, xrcd), TERN_AQ_BUSY) << "of the QPs";
}

/* ---- what is no command ---- */

TEST_F(CommandSlices, Timers)
{
	std::vector<std::unique_ptr<HostQp>> qps;
	for (int i = 0; i < 300; i++) {
		qps.push_back(make_qp(2, 2));
		EXPECT_EQ(qps.back()->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	}
	for (auto &qp : qps)
		qp->post_recv(mr_->sge(0, 64));
	cq_->drain();
	host_.clock.advance(100'000'000);
	unsigned calls = 0;
	size_t flushed = 0;
	for (bool more = true; more; calls++) {
		more = step();
		const size_t now = cq_->drain().size();
		EXPECT_LE(now, kBudget);
		flushed += now;
	}
	EXPECT_EQ(flushed, qps.size());
	EXPECT_GE(calls, 300 / kBudget);
}

TEST_F(CommandSlices, TagOperations)
{
	const auto tag_cq = driver_.create_cq(*eq_, 10);
	const auto srq = driver_.create_srq(
	        {.pd = pd_, .cqn = tag_cq->number, .tags = true, .log_tags = 8, .log_tag_ops = 8});
	for (uint32_t i = 0; i < 200; i++) {
		tern_hw_tag_op op{};
		op.opcode = TERN_TAG_SYNC;
		op.flags = TERN_TAG_SIGNALED;
		srq->post_tag_op(op, i == 199);
	}
	EXPECT_LE(tag_cq->drain().size(), 4u) << "by the doorbell itself";
	size_t done = 0;
	for (bool more = true; more;) {
		more = step();
		const size_t now = tag_cq->drain().size();
		EXPECT_LE(now, kBudget);
		done += now;
	}
	EXPECT_GE(done, 196u);
	/* It goes with its SRQ. */
	tern_hw_tag_op op{};
	op.opcode = TERN_TAG_SYNC;
	for (uint32_t i = 0; i < 200; i++)
		srq->post_tag_op(op, i == 199);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_SRQ, srq->number), TERN_AQ_OK);
}

/* ---- protection domains count what is in them ---- */

TEST_F(CommandSlices, UsersOfAProtectionDomain)
{
	const uint32_t pd = driver_.alloc_pd();
	const auto dealloc = [&] { return driver_.destroy(TERN_AQ_DEALLOC_PD, pd); };
	const HostMr mr = driver_.create_mr(pd_, 0x1000, 4096, kAllAccess, {1, 12});
	const uint32_t window = driver_.alloc_mw(pd, TERN_MW_TYPE_2, 1);
	EXPECT_EQ(dealloc(), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_MW, window), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_MW, window), TERN_AQ_BAD_OBJECT);
	const uint32_t fast = driver_.create_fast_mr(pd);
	EXPECT_EQ(dealloc(), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, fast), TERN_AQ_OK);
	auto c = make_command(TERN_AQ_MODIFY_MR);
	c.modify_mr.key = mr.key;
	c.modify_mr.mask = TERN_MODIFY_MR_PD;
	c.modify_mr.to.pdn = pd;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	EXPECT_EQ(dealloc(), TERN_AQ_BUSY);
	c.modify_mr.to.pdn = pd_;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	EXPECT_EQ(dealloc(), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, pd_), TERN_AQ_BUSY);
}

} // namespace
} // namespace tern::test
