// SPDX-License-Identifier: GPL-2.0-or-later
/* An opened card and the objects of a connection, as an application has them. */
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <sched.h>
#include <unistd.h>

#include "fake_uverbs.h"

namespace tern::provider::test {

using namespace tern::hw;

struct FreeList {
	void operator()(ibv_device **list) const { ibv_free_device_list(list); }
};
using DeviceList = std::unique_ptr<ibv_device *, FreeList>;

/* Ends the process when its time is over: threads that wait for each other's spinlock cannot. */
class Deadline {
public:
	Deadline() { alarm(60); }
	~Deadline() { alarm(0); }
};

/* Runs @reset in another thread, and @use repeatedly until the former has had time to get stuck:
 * that is time and not a number of turns, each of which a busy machine may make as long as a time
 * slice of every other process. */
template <class Reset, class Use>
std::thread race(Reset reset, Use use)
{
	using Clock = std::chrono::steady_clock;
	constexpr std::chrono::milliseconds kTime(20);
	constexpr int kTurns = 100; /* at least */
	std::atomic<bool> started = false;
	std::thread other([&started, reset] {
		started = true;
		reset();
	});
	while (!started)
		sched_yield();
	const auto begun = Clock::now();
	for (int turn = 0; turn < kTurns || Clock::now() - begun < kTime; turn++) {
		use();
		sched_yield();
	}
	return other;
}

inline DeviceList devices()
{
	return DeviceList(ibv_get_device_list(nullptr));
}

class Plugin : public ::testing::Test {
protected:
	Plugin() : fake_(FakeUverbs::instance()) { fake_.reset(); }

	~Plugin() override
	{
		EXPECT_EQ(fake_.pds, 0);
		EXPECT_EQ(fake_.mrs, 0);
		EXPECT_EQ(fake_.cqs, 0);
		EXPECT_EQ(fake_.qps, 0);
		EXPECT_EQ(fake_.ahs, 0);
		EXPECT_EQ(fake_.srqs, 0);
		EXPECT_EQ(fake_.xrcds, 0);
		EXPECT_EQ(fake_.mws, 0);
		EXPECT_EQ(fake_.groups, 0);
		EXPECT_EQ(fake_.flows, 0);
		EXPECT_EQ(fake_.wqs, 0);
		EXPECT_EQ(fake_.tables, 0);
		EXPECT_EQ(fake_.dms, 0);
		EXPECT_EQ(FakeUverbs::mappings(), 0);
	}

	static ibv_context *open()
	{
		const DeviceList list = devices();
		return list && *list.get() ? ibv_open_device(*list.get()) : nullptr;
	}

	FakeUverbs &fake_;
};

/* A device, a PD, a region, two CQs and a QP. */
class PluginQp : public Plugin {
protected:
	PluginQp()
	{
		context_ = open();
		pd_ = ibv_alloc_pd(context_);
		mr_ = ibv_reg_mr(pd_, buffer_, sizeof(buffer_), int{IBV_ACCESS_LOCAL_WRITE});
		send_cq_ = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
		send_cq_memory_ = fake_.last_cq;
		recv_cq_ = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
		recv_cq_memory_ = fake_.last_cq;
		qp_ = create_qp();
	}

	~PluginQp() override
	{
		if (qp_) {
			EXPECT_EQ(ibv_destroy_qp(qp_), 0);
		}
		EXPECT_EQ(ibv_destroy_cq(recv_cq_), 0);
		EXPECT_EQ(ibv_destroy_cq(send_cq_), 0);
		EXPECT_EQ(ibv_dereg_mr(mr_), 0);
		EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
		EXPECT_EQ(ibv_close_device(context_), 0);
	}

	ibv_qp_init_attr init_attr() const
	{
		ibv_qp_init_attr attr = {};
		attr.send_cq = send_cq_;
		attr.recv_cq = recv_cq_;
		attr.qp_type = IBV_QPT_RC;
		attr.cap = {.max_send_wr = 8,
		            .max_recv_wr = 8,
		            .max_send_sge = 2,
		            .max_recv_sge = 2,
		            .max_inline_data = 32};
		return attr;
	}

	static void set_state(ibv_qp *qp, ibv_qp_state state)
	{
		ibv_qp_attr attr = {};
		attr.qp_state = state;
		EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	}

	/* A query of qp_ when it is in @state. */
	int query_state(ibv_qp_state state)
	{
		ibv_qp_attr attr;
		ibv_qp_init_attr init;
		fake_.queried_state = static_cast<uint8_t>(state);
		return ibv_query_qp(qp_, &attr, IBV_QP_STATE, &init);
	}

	/* Requests can be posted to it. */
	static ibv_qp *ready(ibv_qp *qp)
	{
		if (qp)
			set_state(qp, IBV_QPS_RTS);
		return qp;
	}

	ibv_qp *create_qp()
	{
		ibv_qp_init_attr attr = init_attr();
		return ready(ibv_create_qp(pd_, &attr));
	}

	ibv_qp *create_qp_ex(uint64_t ops)
	{
		const ibv_qp_init_attr attr = init_attr();
		ibv_qp_init_attr_ex ex = {};
		ex.send_cq = attr.send_cq;
		ex.recv_cq = attr.recv_cq;
		ex.qp_type = attr.qp_type;
		ex.cap = attr.cap;
		ex.pd = pd_;
		ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		ex.send_ops_flags = ops;
		return ready(ibv_create_qp_ex(context_, &ex));
	}

	int post_send(ibv_qp *qp, uint64_t wr_id)
	{
		ibv_sge sge = {reinterpret_cast<uint64_t>(buffer_), 16, mr_->lkey};
		ibv_send_wr wr = {}, *bad;
		wr.wr_id = wr_id;
		wr.opcode = IBV_WR_SEND;
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		return ibv_post_send(qp, &wr, &bad);
	}

	int post_recv(ibv_qp *qp, uint64_t wr_id)
	{
		ibv_sge sge = {reinterpret_cast<uint64_t>(buffer_), 16, mr_->lkey};
		ibv_recv_wr wr = {}, *bad;
		wr.wr_id = wr_id;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		return ibv_post_recv(qp, &wr, &bad);
	}

	/* The card writes CQE @n of that CQ. */
	void complete(const tern_create_cq_resp &cq, uint32_t n, uint32_t qpn, uint8_t opcode,
	              uint32_t wqe_index)
	{
		auto &cqe = fake_.at<tern_hw_cqe>(cq.buf_key)[n];
		cqe.wqe_index = wqe_index;
		cqe.qpn = qpn;
		cqe.opcode = opcode;
		cqe.phase = TERN_PHASE;
	}

	char buffer_[64] = {};
	ibv_context *context_ = nullptr;
	ibv_pd *pd_ = nullptr;
	ibv_mr *mr_ = nullptr;
	ibv_cq *send_cq_ = nullptr, *recv_cq_ = nullptr;
	ibv_qp *qp_ = nullptr;
	tern_create_cq_resp send_cq_memory_{}, recv_cq_memory_{};
};

} // namespace tern::provider::test
