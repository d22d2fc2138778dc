// SPDX-License-Identifier: GPL-2.0-or-later
/* The plugin's extended CQs and its clock, through libibverbs. */
#include <atomic>
#include <cerrno>
#include <thread>

#include <arpa/inet.h>
#include <sched.h>
#include <time.h>

#include "plugin_fixture.h"

namespace tern::provider::test {
namespace {

constexpr uint64_t kServed = uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                             IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

uint64_t realtime()
{
	timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

/* A QP whose receives complete to an extended CQ. */
class PluginCqEx : public PluginQp {
protected:
	PluginCqEx()
	{
		cq_ = ibv_create_cq_ex(context_, &attr_);
		memory_ = fake_.last_cq;
		ibv_qp_init_attr attr = init_attr();
		attr.recv_cq = cq_ ? ibv_cq_ex_to_cq(cq_) : nullptr;
		ex_qp_ = cq_ ? ready(ibv_create_qp(pd_, &attr)) : nullptr;
	}

	~PluginCqEx() override
	{
		if (ex_qp_) {
			EXPECT_EQ(ibv_destroy_qp(ex_qp_), 0);
		}
		if (cq_) {
			EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq_)), 0);
		}
	}

	static ibv_cq_init_attr_ex cq_attr(uint64_t wc_flags)
	{
		ibv_cq_init_attr_ex attr = {};
		attr.cqe = 16;
		attr.wc_flags = wc_flags;
		return attr;
	}

	int refused(const ibv_cq_init_attr_ex &attr)
	{
		ibv_cq_init_attr_ex copy = attr;
		errno = 0;
		ibv_cq_ex *cq = ibv_create_cq_ex(context_, &copy);
		EXPECT_EQ(cq, nullptr);
		return errno;
	}

	tern_hw_cqe &cqe(uint32_t n) { return fake_.at<tern_hw_cqe>(memory_.buf_key)[n]; }

	void arrive(uint32_t n, uint64_t wr_id)
	{
		ASSERT_EQ(post_recv(ex_qp_, wr_id), 0);
		complete(memory_, n, ex_qp_->qp_num, TERN_CQE_RECV, n);
	}

	uint32_t consumed()
	{
		return fake_.at<tern_hw_cq_record>(memory_.buf_key + memory_.record_offset)
		        ->ci.get();
	}

	ibv_cq_init_attr_ex attr_ = cq_attr(kServed);
	ibv_poll_cq_attr poll_{};
	ibv_cq_ex *cq_ = nullptr;
	ibv_qp *ex_qp_ = nullptr;
	tern_create_cq_resp memory_{};
};

TEST_F(PluginCqEx, AnEmptyOneSaysSoAndCanBePolledAgain)
{
	ASSERT_NE(cq_, nullptr);
	EXPECT_EQ(ibv_start_poll(cq_, &poll_), ENOENT);
	EXPECT_EQ(ibv_start_poll(cq_, &poll_), ENOENT);
	poll_.comp_mask = 1;
	EXPECT_EQ(ibv_start_poll(cq_, &poll_), EINVAL);
	ibv_wc wc;
	EXPECT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(cq_), 1, &wc), 0);
}

TEST_F(PluginCqEx, CompletionsAreReadOneByOneAndReleasedInTheEnd)
{
	arrive(0, 70);
	arrive(1, 71);
	cqe(1).status = TERN_WC_LOC_LEN_ERR;
	ASSERT_EQ(ibv_start_poll(cq_, &poll_), 0);
	EXPECT_EQ(cq_->wr_id, 70u);
	EXPECT_EQ(cq_->status, IBV_WC_SUCCESS);
	ASSERT_EQ(ibv_next_poll(cq_), 0);
	EXPECT_EQ(cq_->wr_id, 71u);
	EXPECT_EQ(cq_->status, IBV_WC_LOC_LEN_ERR);
	EXPECT_EQ(ibv_next_poll(cq_), ENOENT);
	EXPECT_EQ(consumed(), 0u);
	ibv_end_poll(cq_);
	EXPECT_EQ(consumed(), 2u);

	arrive(2, 72);
	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(cq_), 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 72u);
}

TEST_F(PluginCqEx, EveryFieldOfACqeCanBeRead)
{
	ASSERT_EQ(post_recv(ex_qp_, 1), 0);
	ASSERT_EQ(post_recv(ex_qp_, 2), 0);
	tern_hw_cqe &datagram = cqe(0), &invalidating = cqe(1);
	datagram.byte_len = 41;
	datagram.imm = 0x01020304;
	datagram.flags = TERN_CQE_IMM | TERN_CQE_GRH;
	datagram.src_qpn = 0x123456;
	datagram.net_type = TERN_NET_IPV6;
	datagram.vlan = 0x6123;
	datagram.timestamp = 0x1122334455667788;
	invalidating.imm = 0x11223344;
	invalidating.flags = TERN_CQE_INV;
	invalidating.vlan = 0xffff;
	complete(memory_, 0, ex_qp_->qp_num, TERN_CQE_RECV, 0);
	complete(memory_, 1, ex_qp_->qp_num, TERN_CQE_RECV, 1);

	ASSERT_EQ(ibv_start_poll(cq_, &poll_), 0);
	EXPECT_EQ(ibv_wc_read_opcode(cq_), IBV_WC_RECV);
	EXPECT_EQ(ibv_wc_read_vendor_err(cq_), 0u);
	EXPECT_EQ(ibv_wc_read_byte_len(cq_), 41u);
	EXPECT_EQ(ibv_wc_read_imm_data(cq_), htonl(0x01020304));
	EXPECT_EQ(ibv_wc_read_qp_num(cq_), ex_qp_->qp_num);
	EXPECT_EQ(ibv_wc_read_src_qp(cq_), 0x123456u);
	EXPECT_EQ(ibv_wc_read_wc_flags(cq_), unsigned{IBV_WC_WITH_IMM | IBV_WC_GRH});
	EXPECT_EQ(ibv_wc_read_slid(cq_), 0u);
	EXPECT_EQ(ibv_wc_read_sl(cq_), 0x9);
	EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq_), 0);
	EXPECT_EQ(ibv_wc_read_completion_ts(cq_), 0x1122334455667788u);
	EXPECT_EQ(ibv_wc_read_cvlan(cq_), 0x6123);
	ASSERT_EQ(ibv_next_poll(cq_), 0);
	EXPECT_EQ(ibv_wc_read_wc_flags(cq_), unsigned{IBV_WC_WITH_INV});
	EXPECT_EQ(ibv_wc_read_invalidated_rkey(cq_), 0x11223344u);
	EXPECT_EQ(ibv_wc_read_cvlan(cq_), 0);
	ibv_end_poll(cq_);
}

TEST_F(PluginCqEx, WallClockFollowsTheTimeOfDay)
{
	constexpr uint64_t kMs = 1'000'000;
	const auto wall = [&](uint32_t n, uint64_t timestamp) {
		arrive(n, n);
		cqe(n).timestamp = timestamp;
		EXPECT_EQ(ibv_start_poll(cq_, &poll_), 0);
		const uint64_t ns = ibv_wc_read_completion_wallclock_ns(cq_);
		ibv_end_poll(cq_);
		return ns;
	};

	fake_.set_clock(1000 * kMs);
	const uint64_t before = realtime();
	const uint64_t first = wall(0, 990 * kMs);
	const uint64_t after = realtime();
	EXPECT_GE(first + 10 * kMs, before);
	EXPECT_LE(first + 10 * kMs, after);

	/* No new look at the clocks for what is near, also from before; a new one later. */
	fake_.set_clock(5'000'000 * kMs);
	EXPECT_EQ(wall(1, 1099 * kMs), first + 109 * kMs);
	EXPECT_EQ(wall(2, 980 * kMs), first - 10 * kMs);
	const uint64_t later = wall(3, 1100 * kMs);
	EXPECT_LE(later + (5'000'000 - 1100) * kMs, realtime());
	EXPECT_GE(later + (5'000'000 - 1100) * kMs, after);
}

TEST_F(PluginCqEx, PollersExcludeEachOther)
{
	arrive(0, 0);
	ASSERT_EQ(ibv_start_poll(cq_, &poll_), 0);
	std::atomic<bool> polled = false;
	std::thread other([&] {
		ibv_wc wc;
		EXPECT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(cq_), 1, &wc), 0);
		polled = true;
	});
	for (int i = 0; i < 100; i++)
		sched_yield();
	EXPECT_FALSE(polled);
	ibv_end_poll(cq_);
	other.join();
}

/* What a program may do to a CQ, and to the queues that complete to it, within a poll of its own.
 */
TEST_F(PluginCqEx, CallsWithinAPollOfTheSameThread)
{
	const Deadline deadline;
	ibv_cq *cq = ibv_cq_ex_to_cq(cq_);
	fake_.last_cq = memory_;
	for (uint32_t n = 0; n < 4; n++)
		arrive(n, n);
	ASSERT_EQ(ibv_start_poll(cq_, &poll_), 0);
	EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 1u);
	EXPECT_EQ(cq_->wr_id, 0u) << "still the current one";
	EXPECT_EQ(ibv_resize_cq(cq, 32), 0);
	ASSERT_EQ(ibv_next_poll(cq_), 0);
	EXPECT_EQ(cq_->wr_id, 2u);
	set_state(ex_qp_, IBV_QPS_RESET);
	EXPECT_EQ(ibv_next_poll(cq_), ENOENT) << "dropped";
	EXPECT_EQ(ibv_destroy_qp(ex_qp_), 0);
	ex_qp_ = nullptr;

	/* Another thread still waits for the end. */
	std::atomic<bool> polled = false;
	std::thread other([&] {
		ibv_poll_cq(cq, 1, &wc);
		polled = true;
	});
	for (int i = 0; i < 100; i++)
		sched_yield();
	EXPECT_FALSE(polled);
	ibv_end_poll(cq_);
	other.join();
}

/* A request for an event within a poll is for what the poll has not taken. */
TEST_F(PluginCqEx, ArmingWithinAPoll)
{
	const Deadline deadline;
	arrive(0, 0);
	arrive(1, 1);
	ASSERT_EQ(ibv_start_poll(cq_, &poll_), 0);
	EXPECT_EQ(ibv_req_notify_cq(ibv_cq_ex_to_cq(cq_), 0), 0);
	EXPECT_EQ(fake_.doorbell(TERN_DB_CQ_ARM) >> 32, 1u);
	ibv_end_poll(cq_);
}

/* A program may post within a poll, also to a QP that another thread resets meanwhile. */
TEST_F(PluginCqEx, ResettingAQpThatIsPostedToWithinAPoll)
{
	const Deadline deadline;
	arrive(0, 0);
	ASSERT_EQ(ibv_start_poll(cq_, &poll_), 0);
	std::thread other = race([&] { set_state(ex_qp_, IBV_QPS_RESET); },
	                         [&] {
		                         post_send(ex_qp_, 1);
		                         post_recv(ex_qp_, 1);
	                         });
	ibv_end_poll(cq_);
	other.join();
}

/* A program may poll either CQ of a QP within a poll of the other. */
TEST_F(PluginCqEx, ResettingAQpWhoseCqsArePolledWithinEachOther)
{
	const Deadline deadline;
	ibv_cq_ex *const other_cq = ibv_create_cq_ex(context_, &attr_);
	ASSERT_NE(other_cq, nullptr);
	const tern_create_cq_resp other_memory = fake_.last_cq;
	ibv_qp_init_attr attr = init_attr();
	attr.send_cq = ibv_cq_ex_to_cq(cq_);
	attr.recv_cq = ibv_cq_ex_to_cq(other_cq);
	ibv_qp *qp = ready(ibv_create_qp(pd_, &attr));

	const auto poll_within = [&](ibv_cq_ex *outer, ibv_cq_ex *inner) {
		ASSERT_EQ(ibv_start_poll(outer, &poll_), 0);
		ibv_wc wc;
		std::thread other = race([&] { set_state(qp, IBV_QPS_RESET); },
		                         [&] { ibv_poll_cq(ibv_cq_ex_to_cq(inner), 1, &wc); });
		ibv_end_poll(outer);
		other.join();
	};
	post_send(qp, 1);
	complete(memory_, 0, qp->qp_num, TERN_OP_SEND, 0);
	poll_within(cq_, other_cq);
	ready(qp);
	post_recv(qp, 2);
	complete(other_memory, 0, qp->qp_num, TERN_CQE_RECV, 0);
	poll_within(other_cq, cq_);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(other_cq)), 0);
}

TEST_F(PluginCqEx, ASingleThreadedOneHasNoLock)
{
	ibv_cq_init_attr_ex attr = cq_attr(0);
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	ibv_cq_ex *cq = ibv_create_cq_ex(context_, &attr);
	ASSERT_NE(cq, nullptr);
	const tern_create_cq_resp memory = fake_.last_cq;
	ibv_qp_init_attr init = init_attr();
	init.recv_cq = ibv_cq_ex_to_cq(cq);
	ibv_qp *qp = ready(ibv_create_qp(pd_, &init));
	ASSERT_EQ(post_recv(qp, 5), 0);
	complete(memory, 0, qp->qp_num, TERN_CQE_RECV, 0);
	ASSERT_EQ(ibv_start_poll(cq, &poll_), 0);
	ibv_wc wc;
	EXPECT_EQ(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 0) << "would wait for ever";
	ibv_end_poll(cq);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(PluginCqEx, WhatCannotBeServedIsRefused)
{
	for (const uint64_t flag : {uint64_t{IBV_WC_EX_WITH_FLOW_TAG}, uint64_t{1} << 40})
		EXPECT_EQ(refused(cq_attr(flag)), EOPNOTSUPP);

	ibv_cq_init_attr_ex attr = cq_attr(0);
	attr.comp_mask = 1u << 31;
	EXPECT_EQ(refused(attr), EINVAL);
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = 1u << 31;
	EXPECT_EQ(refused(attr), EINVAL);
	attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	EXPECT_EQ(refused(attr), EOPNOTSUPP);
	fake_.fail(IB_USER_VERBS_CMD_CREATE_CQ, EINVAL);
	EXPECT_EQ(refused(cq_attr(0)), EINVAL);
	fake_.on_cq = [](auto &r) { r.log_size = 20; };
	EXPECT_EQ(refused(cq_attr(0)), EPROTO);
	fake_.on_cq = nullptr;
	EXPECT_EQ(fake_.cqs, 3);
}

TEST_F(PluginCqEx, ItsRingCanBeReplaced)
{
	ibv_cq *cq = ibv_cq_ex_to_cq(cq_);
	fake_.last_cq = memory_;
	for (uint32_t n = 0; n < 3; n++)
		arrive(n, n);
	ibv_wc wc[4];
	ASSERT_EQ(ibv_poll_cq(cq, 1, wc), 1);

	ASSERT_EQ(ibv_resize_cq(cq, 30), 0);
	EXPECT_EQ(cq->cqe, 32);
	memory_ = fake_.last_cq;
	EXPECT_EQ(consumed(), 1u);
	ASSERT_EQ(ibv_start_poll(cq_, &poll_), 0);
	EXPECT_EQ(cq_->wr_id, 1u);
	ibv_end_poll(cq_);
	EXPECT_EQ(consumed(), 2u);
	arrive(3, 3);
	ASSERT_EQ(ibv_poll_cq(cq, 4, wc), 2);
	EXPECT_EQ(wc[0].wr_id, 2u);
	EXPECT_EQ(wc[1].wr_id, 3u);

	/* To fewer, up to what is not polled yet. */
	arrive(4, 4);
	arrive(5, 5);
	EXPECT_EQ(ibv_resize_cq(cq, 1), EINVAL);
	EXPECT_EQ(cq->cqe, 32);
	ASSERT_EQ(ibv_resize_cq(cq, 2), 0);
	memory_ = fake_.last_cq;
	ASSERT_EQ(ibv_poll_cq(cq, 4, wc), 2);
	EXPECT_EQ(wc[0].wr_id, 4u);
	EXPECT_EQ(wc[1].wr_id, 5u);
	EXPECT_EQ(consumed(), 6u);
	EXPECT_EQ(ibv_poll_cq(cq, 4, wc), 0);
}

TEST_F(PluginCqEx, DroppedCompletionsNeedNoRoomInAReplacement)
{
	ibv_cq *cq = ibv_cq_ex_to_cq(cq_);
	fake_.last_cq = memory_;
	for (uint32_t n = 0; n < 4; n++)
		arrive(n, n);
	set_state(ex_qp_, IBV_QPS_RESET);
	EXPECT_EQ(consumed(), 4u);
	EXPECT_EQ(ibv_resize_cq(cq, 1), 0);
}

TEST_F(PluginCqEx, AReplacementThatIsRefusedLosesNothing)
{
	ibv_cq *cq = ibv_cq_ex_to_cq(cq_);
	fake_.last_cq = memory_;
	arrive(0, 7);
	fake_.fail(IB_USER_VERBS_CMD_RESIZE_CQ, ENOMEM);
	EXPECT_EQ(ibv_resize_cq(cq, 64), ENOMEM);
	EXPECT_EQ(cq->cqe, 16);
	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 7u);
	EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
	EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
}

/* The card has moved to a ring that the program does not see: it hears of that at each poll, after
 * what came before. */
TEST_F(PluginCqEx, AReplacementThatCannotBeMappedClosesIt)
{
	ibv_cq *cq = ibv_cq_ex_to_cq(cq_);
	fake_.last_cq = memory_;
	arrive(0, 7);
	arrive(1, 8);
	fake_.on_resize_cq = [](auto &r) { r.buf_key += 1; };
	EXPECT_EQ(ibv_resize_cq(cq, 64), EINVAL) << "from mmap()";
	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 7u);
	ASSERT_EQ(ibv_start_poll(cq_, &poll_), 0);
	EXPECT_EQ(cq_->wr_id, 8u);
	EXPECT_EQ(ibv_next_poll(cq_), EIO);
	ibv_end_poll(cq_);
	EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), -1);
	EXPECT_EQ(ibv_start_poll(cq_, &poll_), EIO);
	EXPECT_EQ(ibv_req_notify_cq(cq, 0), EIO);
	fake_.on_resize_cq = nullptr;
	EXPECT_EQ(ibv_resize_cq(cq, 64), EIO);
}

TEST_F(PluginCqEx, EventsCanBeModerated)
{
	ibv_modify_cq_attr attr = {};
	attr.attr_mask = IBV_CQ_ATTR_MODERATE;
	attr.moderate = {.cq_count = 8, .cq_period = 100};
	ASSERT_EQ(ibv_modify_cq(ibv_cq_ex_to_cq(cq_), &attr), 0);
	EXPECT_EQ(fake_.last_moderation.cq_count, 8);
	EXPECT_EQ(fake_.last_moderation.cq_period, 100);
	attr.attr_mask = 1u << 5;
	EXPECT_EQ(ibv_modify_cq(ibv_cq_ex_to_cq(cq_), &attr), EINVAL);
}

/*
 * The card may hold the event of a CQE back as soon as the driver has told it to, so from then on
 * a CQ is armed from the first CQE that is not polled, and not from behind that of the last event.
 */
TEST_F(PluginCqEx, ArmingKnowsOfModerationBeforeTheCard)
{
	ibv_cq *cq = ibv_cq_ex_to_cq(cq_);
	const auto moderate = [&](uint16_t period) {
		ibv_modify_cq_attr attr = {};
		attr.attr_mask = IBV_CQ_ATTR_MODERATE;
		attr.moderate = {.cq_count = 8, .cq_period = period};
		return ibv_modify_cq(cq, &attr);
	};
	/* The CQE from which the CQ is armed, if one came after it was armed before. */
	const auto armed_from = [&] {
		EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
		EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
		return fake_.doorbell(TERN_DB_CQ_ARM) >> TERN_DB_INDEX_SHIFT;
	};
	uint64_t meanwhile = ~uint64_t{0};

	arrive(0, 1);
	EXPECT_EQ(armed_from(), 1u);
	fake_.fail(IB_USER_VERBS_EX_CMD_MODIFY_CQ, EINVAL);
	EXPECT_EQ(moderate(100), EINVAL);
	EXPECT_EQ(armed_from(), 1u) << "as before";
	fake_.on_moderate = [&] { meanwhile = armed_from(); };
	EXPECT_EQ(moderate(100), 0);
	EXPECT_EQ(meanwhile, 0u);
	EXPECT_EQ(armed_from(), 0u);
	EXPECT_EQ(moderate(0), 0);
	EXPECT_EQ(meanwhile, 0u) << "an event may still be held back";
	EXPECT_EQ(armed_from(), 1u);
	EXPECT_EQ(moderate(100), 0);
	fake_.on_moderate = nullptr;
	fake_.fail(IB_USER_VERBS_EX_CMD_MODIFY_CQ, EINVAL);
	EXPECT_EQ(moderate(0), EINVAL);
	EXPECT_EQ(armed_from(), 0u) << "as before";
}

TEST_F(PluginCqEx, TheClockCanBeRead)
{
	fake_.set_clock(0x123456789abcdef0);
	ibv_values_ex values = {};
	values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	ASSERT_EQ(ibv_query_rt_values_ex(context_, &values), 0);
	EXPECT_EQ(values.comp_mask, uint32_t{IBV_VALUES_MASK_RAW_CLOCK});
	EXPECT_EQ(values.raw_clock.tv_sec, 0);
	EXPECT_EQ(values.raw_clock.tv_nsec, 0x123456789abcdef0);
	values.comp_mask = 1u << 5;
	EXPECT_EQ(ibv_query_rt_values_ex(context_, &values), EINVAL);
}

TEST_F(Plugin, ACardWithoutClockWhoseCqsDoNotChange)
{
	fake_.caps = FakeUverbs::kAllCaps & ~(TERN_CAP_CLOCK | TERN_CAP_MODIFY_CQ);
	ibv_context *context = open();
	ASSERT_NE(context, nullptr);
	ibv_values_ex values = {};
	values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	EXPECT_EQ(ibv_query_rt_values_ex(context, &values), EOPNOTSUPP);
	ibv_cq_init_attr_ex attr = {};
	attr.cqe = 1;
	attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	EXPECT_EQ(ibv_create_cq_ex(context, &attr), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	ibv_cq *cq = ibv_create_cq(context, 4, nullptr, nullptr, 0);
	ASSERT_NE(cq, nullptr);
	EXPECT_EQ(ibv_resize_cq(cq, 8), EOPNOTSUPP);
	ibv_modify_cq_attr modify = {};
	EXPECT_EQ(ibv_modify_cq(cq, &modify), EOPNOTSUPP);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_close_device(context), 0);
}

} // namespace
} // namespace tern::provider::test
