// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each pair of calls that take locks, repeatedly and at once from two threads, on the same objects.
 * None may wait for ever, and with ThreadSanitizer none may race. The order of the locks is in
 * docs/architecture.md.
 */
#include <atomic>
#include <fcntl.h>
#include <functional>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plugin_fixture.h"

/*
 * ThreadSanitizer asks this function which reports to suppress. A request's wr_id reaches the
 * poller through the card: publish() releases it, and the poller acquires a CQE that the card has
 * written. ThreadSanitizer does not see what the card does.
 */
extern "C" const char *__tsan_default_suppressions()
{
	return "race:tern::provider::RecvQueue::complete\n"
	       "race:tern::provider::SendQueue::complete\n";
}

namespace tern::provider::test {
namespace {

/* Of each call in each pair. */
constexpr int kTimes = 20;

/* An extended CQ for sends and receives of two QPs: what one of them does concerns the other. */
class PluginLocks : public PluginQp {
protected:
	PluginLocks()
	{
		ibv_cq_init_attr_ex attr = {};
		attr.cqe = 16;
		cq_ex_ = ibv_create_cq_ex(context_, &attr);
		cq_ = ibv_cq_ex_to_cq(cq_ex_);
		posted_ = create_on(cq_, cq_);
		reset_ = create_on(send_cq_, cq_);
		ibv_srq_init_attr srq_attr = {};
		srq_attr.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
		srq_ = ibv_create_srq(pd_, &srq_attr);
	}

	~PluginLocks() override
	{
		EXPECT_EQ(ibv_destroy_srq(srq_), 0);
		EXPECT_EQ(ibv_destroy_qp(reset_), 0);
		EXPECT_EQ(ibv_destroy_qp(posted_), 0);
		EXPECT_EQ(ibv_destroy_cq(cq_), 0);
	}

	ibv_qp *create_on(ibv_cq *send, ibv_cq *recv)
	{
		ibv_qp_init_attr_ex attr = {};
		attr.send_cq = send;
		attr.recv_cq = recv;
		attr.qp_type = IBV_QPT_RC;
		attr.cap = init_attr().cap;
		attr.pd = pd_;
		attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
		return ready(ibv_create_qp_ex(context_, &attr));
	}

	/* The card completes what was posted, and at times of a QP that may be in RESET. */
	void card()
	{
		const std::lock_guard guard(card_lock_);
		if (sends_.done < sends_.posted &&
		    fake_.complete(posted_->qp_num, TERN_OP_SEND, sends_.done))
			sends_.done++;
		if (recvs_.done < recvs_.posted &&
		    fake_.complete(posted_->qp_num, TERN_CQE_RECV, recvs_.done))
			recvs_.done++;
		fake_.complete(reset_->qp_num, TERN_CQE_RECV, 0);
	}

	void post()
	{
		sends_.posted += !post_send(posted_, 1);
		recvs_.posted += !post_recv(posted_, 2);
	}

	void post_to_reset()
	{
		post_send(reset_, 1);
		post_recv(reset_, 2);
	}

	void post_list()
	{
		ibv_qp_ex *ex = ibv_qp_to_qp_ex(posted_);
		ibv_wr_start(ex);
		ibv_wr_send(ex);
		ibv_wr_set_sge(ex, mr_->lkey, reinterpret_cast<uint64_t>(buffer_), 8);
		sends_.posted += !ibv_wr_complete(ex);
	}

	void post_srq()
	{
		ibv_sge sge = {reinterpret_cast<uint64_t>(buffer_), 16, mr_->lkey};
		ibv_recv_wr wr = {}, *bad;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		ibv_post_srq_recv(srq_, &wr, &bad);
	}

	/* A poll as it is written for an extended CQ: arms it, and posts for each completion. */
	void poll_and_post()
	{
		ibv_poll_cq_attr attr = {};
		if (ibv_start_poll(cq_ex_, &attr))
			return;
		ibv_req_notify_cq(cq_, 0);
		do {
			post();
			post_to_reset();
		} while (!ibv_next_poll(cq_ex_));
		ibv_end_poll(cq_ex_);
	}

	void make_wq()
	{
		ibv_wq_init_attr attr = {};
		attr.wq_type = IBV_WQT_RQ;
		attr.max_wr = 4;
		attr.max_sge = 1;
		attr.pd = pd_;
		attr.cq = cq_;
		ibv_wq *wq = ibv_create_wq(context_, &attr);
		ibv_wq_attr reset = {};
		reset.attr_mask = IBV_WQ_ATTR_STATE;
		reset.wq_state = IBV_WQS_RESET;
		ibv_modify_wq(wq, &reset);
		ibv_destroy_wq(wq);
	}

	void make_xrc_srq()
	{
		ibv_xrcd_init_attr domain = {};
		domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
		domain.fd = -1;
		domain.oflags = O_CREAT;
		ibv_xrcd *xrcd = ibv_open_xrcd(context_, &domain);
		ibv_srq_init_attr_ex attr = {};
		attr.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
		attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
		                 IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD;
		attr.srq_type = IBV_SRQT_XRC;
		attr.pd = pd_;
		attr.xrcd = xrcd;
		attr.cq = cq_;
		ibv_destroy_srq(ibv_create_srq_ex(context_, &attr));
		ibv_close_xrcd(xrcd);
	}

	void make_domain()
	{
		ibv_parent_domain_init_attr attr = {};
		attr.pd = pd_;
		ibv_dealloc_pd(ibv_alloc_parent_domain(context_, &attr));
	}

	struct Call {
		std::string name;
		std::function<void()> make;
	};

	std::vector<Call> calls()
	{
		ibv_wc wc[4] = {};
		return {
		        {"poll", [=, this]() mutable { ibv_poll_cq(cq_, 4, wc); }},
		        {"poll and post", [this] { poll_and_post(); }},
		        {"arm", [this] { ibv_req_notify_cq(cq_, 0); }},
		        {"resize CQ", [this] { ibv_resize_cq(cq_, 16); }},
		        {"post", [this] { post(); }},
		        {"post to a QP that is reset", [this] { post_to_reset(); }},
		        {"post list", [this] { post_list(); }},
		        {"post to SRQ", [this] { post_srq(); }},
		        {"reset QP",
		         [this] {
			         set_state(reset_, IBV_QPS_RESET);
			         set_state(reset_, IBV_QPS_RTS);
		         }},
		        {"make QP", [this] { ibv_destroy_qp(create_on(cq_, send_cq_)); }},
		        {"make the QP's mirror",
		         [this] { ibv_destroy_qp(create_on(send_cq_, cq_)); }},
		        {"make WQ", [this] { make_wq(); }},
		        {"make XRC SRQ", [this] { make_xrc_srq(); }},
		        {"make domain", [this] { make_domain(); }},
		};
	}

	/* Requests of posted_, each of one block. */
	struct Count {
		std::atomic<uint32_t> posted = 0;
		uint32_t done = 0;
	};

	std::mutex card_lock_;
	Count sends_, recvs_;
	ibv_cq_ex *cq_ex_ = nullptr;
	ibv_cq *cq_ = nullptr;
	ibv_qp *posted_ = nullptr, *reset_ = nullptr;
	ibv_srq *srq_ = nullptr;
};

TEST_F(PluginLocks, AllPairsOfCalls)
{
	const Deadline deadline;
	const auto all = calls();
	const auto repeat = [this](const Call &call) {
		for (int i = 0; i < kTimes; i++) {
			card();
			call.make();
		}
	};
	for (size_t i = 0; i < all.size(); i++)
		for (size_t j = i; j < all.size(); j++) {
			/* The last line names the pair if the deadline ends the process. */
			std::cout << all[i].name << ", " << all[j].name << std::endl;
			std::thread other(repeat, Call(all[i]));
			repeat(Call(all[j]));
			other.join();
		}
}

} // namespace
} // namespace tern::provider::test
