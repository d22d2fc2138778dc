// SPDX-License-Identifier: GPL-2.0-or-later
/* The plugin's receive WQs, their tables and RSS QPs, through libibverbs. */
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "plugin_fixture.h"

namespace tern::provider::test {
namespace {

class PluginWq : public PluginQp {
protected:
	PluginWq()
	{
		wq_ = create_wq();
		memory_ = fake_.last_wq;
	}

	~PluginWq() override
	{
		if (wq_) {
			EXPECT_EQ(ibv_destroy_wq(wq_), 0);
		}
	}

	ibv_wq_init_attr wq_attr()
	{
		ibv_wq_init_attr attr = {};
		attr.wq_context = this;
		attr.wq_type = IBV_WQT_RQ;
		attr.max_wr = 4;
		attr.max_sge = 1;
		attr.pd = pd_;
		attr.cq = recv_cq_;
		return attr;
	}

	ibv_wq *create_wq(ibv_cq *cq = nullptr)
	{
		ibv_wq_init_attr attr = wq_attr();
		if (cq)
			attr.cq = cq;
		return ibv_create_wq(context_, &attr);
	}

	int refused(const ibv_wq_init_attr &attr)
	{
		ibv_wq_init_attr copy = attr;
		errno = 0;
		EXPECT_EQ(ibv_create_wq(context_, &copy), nullptr);
		return errno;
	}

	static int set_wq_state(ibv_wq *wq, ibv_wq_state state)
	{
		ibv_wq_attr attr = {};
		attr.attr_mask = IBV_WQ_ATTR_STATE;
		attr.wq_state = state;
		return ibv_modify_wq(wq, &attr);
	}

	int post(uint64_t wr_id) { return post(wq_, wr_id); }
	int post(ibv_wq *wq, uint64_t wr_id)
	{
		ibv_sge sge = {reinterpret_cast<uint64_t>(buffer_), 16, mr_->lkey};
		ibv_recv_wr wr = {}, *bad;
		wr.wr_id = wr_id;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		return ibv_post_wq_recv(wq, &wr, &bad);
	}

	/* The card completes WQE @index of the WQ to CQE @n. */
	void frame_arrives(uint32_t n, uint32_t index)
	{
		fake_.at<tern_hw_cqe>(recv_cq_memory_.buf_key)[n].flags = TERN_CQE_WQ;
		complete(recv_cq_memory_, n, memory_.wqn, TERN_CQE_RECV, index);
	}

	uint32_t posted()
	{
		return fake_.at<tern_hw_qp_record>(memory_.buf_key + memory_.record_offset)
		        ->rq_pi.get();
	}

	ibv_rwq_ind_table *create_table()
	{
		ibv_wq *wqs[] = {wq_, wq_};
		ibv_rwq_ind_table_init_attr attr = {};
		attr.log_ind_tbl_size = 1;
		attr.ind_tbl = wqs;
		return ibv_create_rwq_ind_table(context_, &attr);
	}

	ibv_qp_init_attr_ex rss_attr(ibv_rwq_ind_table *table)
	{
		ibv_qp_init_attr_ex attr = {};
		attr.qp_type = IBV_QPT_RAW_PACKET;
		attr.comp_mask =
		        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
		attr.pd = pd_;
		attr.rwq_ind_tbl = table;
		attr.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
		                     .rx_hash_key_len = sizeof(key_),
		                     .rx_hash_key = key_,
		                     .rx_hash_fields_mask =
		                             IBV_RX_HASH_SRC_IPV4 | uint64_t{IBV_RX_HASH_DST_IPV4}};
		return attr;
	}

	ibv_wq *wq_ = nullptr;
	tern_create_wq_resp memory_{};
	uint8_t key_[TERN_HASH_KEY_SIZE] = {0x2c, 0xc6, 0x81};
};

TEST_F(PluginWq, AFrameCompletesWhatWasPosted)
{
	ASSERT_NE(wq_, nullptr);
	EXPECT_EQ(wq_->state, IBV_WQS_RESET);
	EXPECT_EQ(wq_->wq_num, memory_.wqn);
	EXPECT_EQ(wq_->wq_context, this);
	EXPECT_EQ(post(1), EINVAL) << "in RESET";
	ASSERT_EQ(set_wq_state(wq_, IBV_WQS_RDY), 0);
	EXPECT_EQ(wq_->state, IBV_WQS_RDY);
	for (uint64_t i = 0; i < 4; i++)
		ASSERT_EQ(post(i), 0);
	EXPECT_EQ(post(4), ENOMEM);
	EXPECT_EQ(posted(), 4u);
	EXPECT_EQ(fake_.at<tern_hw_data_seg>(memory_.buf_key)->lkey.get(), mr_->lkey);

	frame_arrives(0, 0);
	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 0u);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV);
	EXPECT_EQ(wc.qp_num, memory_.wqn);
	EXPECT_EQ(post(4), 0);
}

TEST_F(PluginWq, ItsNumberIsNotThatOfAQp)
{
	ASSERT_EQ(set_wq_state(wq_, IBV_WQS_RDY), 0);
	fake_.next_qpn = memory_.wqn;
	ibv_qp *qp = create_qp();
	ASSERT_NE(qp, nullptr);
	ASSERT_EQ(qp->qp_num, wq_->wq_num);
	ASSERT_EQ(post(1), 0);
	ASSERT_EQ(post_recv(qp, 2), 0);
	frame_arrives(0, 0);
	complete(recv_cq_memory_, 1, qp->qp_num, TERN_CQE_RECV, 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	ibv_wc wc[2];
	ASSERT_EQ(ibv_poll_cq(recv_cq_, 2, wc), 1) << "the QP's is voided with it";
	EXPECT_EQ(wc[0].wr_id, 1u);
}

TEST_F(PluginWq, ResetForgetsAllThatWasPosted)
{
	ASSERT_EQ(set_wq_state(wq_, IBV_WQS_RDY), 0);
	ASSERT_EQ(post(1), 0);
	frame_arrives(0, 0);
	ASSERT_EQ(set_wq_state(wq_, IBV_WQS_RESET), 0);
	EXPECT_EQ(posted(), 0u);
	ibv_wc wc;
	EXPECT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 0);
	ASSERT_EQ(set_wq_state(wq_, IBV_WQS_RDY), 0);
	ASSERT_EQ(post(2), 0);
	frame_arrives(1, 0);
	ASSERT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 2u);
	fake_.fail(IB_USER_VERBS_EX_CMD_MODIFY_WQ, EINVAL);
	EXPECT_EQ(set_wq_state(wq_, IBV_WQS_RESET), EINVAL);
	EXPECT_EQ(posted(), 1u);
	EXPECT_EQ(post(3), 0);
}

TEST_F(PluginWq, NothingIsPostedWhileItIsReset)
{
	ASSERT_EQ(set_wq_state(wq_, IBV_WQS_RDY), 0);
	fake_.on_modify = [&] { EXPECT_EQ(post(1), EINVAL); };
	ASSERT_EQ(set_wq_state(wq_, IBV_WQS_RESET), 0);
	fake_.on_modify = nullptr;
	ASSERT_EQ(set_wq_state(wq_, IBV_WQS_RDY), 0);
	EXPECT_EQ(post(2), 0);
}

/* A program may post within a poll, also to a WQ that another thread resets meanwhile. */
TEST_F(PluginWq, ResettingAWqThatIsPostedToWithinAPoll)
{
	const Deadline deadline;
	ibv_cq_init_attr_ex attr = {};
	attr.cqe = 4;
	ibv_cq_ex *cq = ibv_create_cq_ex(context_, &attr);
	ASSERT_NE(cq, nullptr);
	const tern_create_cq_resp memory = fake_.last_cq;
	ibv_wq *wq = create_wq(ibv_cq_ex_to_cq(cq));
	ASSERT_NE(wq, nullptr);
	ASSERT_EQ(set_wq_state(wq, IBV_WQS_RDY), 0);
	ASSERT_EQ(post(wq, 0), 0);
	fake_.at<tern_hw_cqe>(memory.buf_key)[0].flags = TERN_CQE_WQ;
	complete(memory, 0, wq->wq_num, TERN_CQE_RECV, 0);

	ibv_poll_cq_attr poll = {};
	ASSERT_EQ(ibv_start_poll(cq, &poll), 0);
	std::thread other =
	        race([&] { EXPECT_EQ(set_wq_state(wq, IBV_WQS_RESET), 0); }, [&] { post(wq, 1); });
	ibv_end_poll(cq);
	other.join();
	EXPECT_EQ(ibv_destroy_wq(wq), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(PluginWq, WhatAWqLeavesIsNotTheNextOnes)
{
	ASSERT_EQ(set_wq_state(wq_, IBV_WQS_RDY), 0);
	ASSERT_EQ(post(1), 0);
	frame_arrives(0, 0);
	ASSERT_EQ(ibv_destroy_wq(wq_), 0);
	fake_.next_wqn = memory_.wqn;
	wq_ = create_wq();
	ASSERT_NE(wq_, nullptr);
	memory_ = fake_.last_wq;
	ibv_wc wc;
	EXPECT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 0);
}

TEST_F(PluginWq, RefusalsAndFailures)
{
	ibv_wq_init_attr attr = wq_attr();
	attr.wq_type = static_cast<ibv_wq_type>(1);
	EXPECT_EQ(refused(attr), EINVAL);
	attr = wq_attr();
	attr.pd = nullptr;
	EXPECT_EQ(refused(attr), EINVAL);
	attr = wq_attr();
	attr.cq = nullptr;
	EXPECT_EQ(refused(attr), EINVAL);
	attr = wq_attr();
	attr.comp_mask = IBV_WQ_INIT_ATTR_RESERVED;
	EXPECT_EQ(refused(attr), EINVAL);
	attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	attr.create_flags = IBV_WQ_FLAGS_SCATTER_FCS;
	EXPECT_EQ(refused(attr), EOPNOTSUPP);
	fake_.fail(IB_USER_VERBS_EX_CMD_CREATE_WQ, ENOSPC);
	EXPECT_EQ(refused(wq_attr()), ENOSPC);
	fake_.on_wq = [](auto &r) { r.log_size = 20; };
	EXPECT_EQ(refused(wq_attr()), EINVAL);
	fake_.on_wq = [](auto &r) { r.record_offset = r.buf_len; };
	EXPECT_EQ(refused(wq_attr()), EPROTO);
	EXPECT_EQ(fake_.wqs, 1);
	fake_.fail(IB_USER_VERBS_EX_CMD_DESTROY_WQ, EBUSY);
	EXPECT_EQ(ibv_destroy_wq(wq_), EBUSY);

	ibv_wq *wqs[] = {wq_, nullptr};
	ibv_rwq_ind_table_init_attr table = {};
	EXPECT_EQ(ibv_create_rwq_ind_table(context_, &table), nullptr);
	EXPECT_EQ(errno, EINVAL);
	table.log_ind_tbl_size = 1;
	table.ind_tbl = wqs;
	EXPECT_EQ(ibv_create_rwq_ind_table(context_, &table), nullptr);
	EXPECT_EQ(errno, EINVAL);
	table.log_ind_tbl_size = 31;
	EXPECT_EQ(ibv_create_rwq_ind_table(context_, &table), nullptr);
	EXPECT_EQ(errno, EINVAL);
}

TEST_F(PluginWq, AnRssQpSpreadsFrames)
{
	ibv_rwq_ind_table *table = create_table();
	ASSERT_NE(table, nullptr);
	EXPECT_EQ(fake_.last_table, (std::vector<uint32_t>{wq_->handle, wq_->handle}));
	ibv_qp_init_attr_ex attr = rss_attr(table);
	ibv_qp *qp = ready(ibv_create_qp_ex(context_, &attr));
	ASSERT_NE(qp, nullptr);
	EXPECT_EQ(fake_.last_rss.hash_fields, 3u);
	EXPECT_EQ(fake_.last_rss.hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
	EXPECT_EQ(fake_.last_rss.key_len, 40);
	EXPECT_EQ(std::memcmp(fake_.last_rss.key, key_, sizeof(key_)), 0);
	EXPECT_EQ(post_send(qp, 1), EINVAL) << "it has no queues";
	EXPECT_EQ(post_recv(qp, 1), EINVAL);
	set_state(qp, IBV_QPS_RESET);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
}

TEST_F(PluginWq, RssQpsWithMoreOrLessAreRefused)
{
	ibv_rwq_ind_table *table = create_table();
	ASSERT_NE(table, nullptr);
	const auto qp_refused = [&](auto spoil) {
		ibv_qp_init_attr_ex attr = rss_attr(table);
		spoil(attr);
		errno = 0;
		EXPECT_EQ(ibv_create_qp_ex(context_, &attr), nullptr);
		return errno;
	};
	EXPECT_EQ(qp_refused([](auto &a) { a.comp_mask &= ~IBV_QP_INIT_ATTR_RX_HASH; }), EINVAL);
	EXPECT_EQ(qp_refused([](auto &a) { a.rwq_ind_tbl = nullptr; }), EINVAL);
	EXPECT_EQ(qp_refused([&](auto &a) { a.send_cq = send_cq_; }), EINVAL);
	EXPECT_EQ(qp_refused([](auto &a) { a.cap.max_send_wr = 1; }), EINVAL);
	EXPECT_EQ(qp_refused([&](auto &a) { a.recv_cq = recv_cq_; }), EINVAL);
	EXPECT_EQ(qp_refused([](auto &a) { a.qp_type = IBV_QPT_UD; }), EOPNOTSUPP);
	EXPECT_EQ(qp_refused([](auto &a) { a.rx_hash_conf.rx_hash_function = 2; }), EOPNOTSUPP);
	EXPECT_EQ(qp_refused([](auto &a) { a.rx_hash_conf.rx_hash_key_len = 39; }), EINVAL);
	EXPECT_EQ(qp_refused([](auto &a) { a.rx_hash_conf.rx_hash_key = nullptr; }), EINVAL);
	EXPECT_EQ(
	        qp_refused([](auto &a) { a.rx_hash_conf.rx_hash_fields_mask = IBV_RX_HASH_INNER; }),
	        EOPNOTSUPP);
	EXPECT_EQ(qp_refused([](auto &a) {
		          a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		          a.send_ops_flags = IBV_QP_EX_WITH_SEND;
	          }),
	          EOPNOTSUPP);
	EXPECT_EQ(fake_.qps, 1);
	EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
}

TEST_F(Plugin, ACardThatSpreadsNothing)
{
	fake_.caps = FakeUverbs::kAllCaps & ~TERN_CAP_RSS;
	ibv_context *context = open();
	ASSERT_NE(context, nullptr);
	ibv_wq_init_attr wq = {};
	EXPECT_EQ(ibv_create_wq(context, &wq), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	ibv_rwq_ind_table_init_attr table = {};
	EXPECT_EQ(ibv_create_rwq_ind_table(context, &table), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	ibv_qp_init_attr_ex qp = {};
	qp.qp_type = IBV_QPT_RAW_PACKET;
	qp.comp_mask = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
	EXPECT_EQ(ibv_create_qp_ex(context, &qp), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_EQ(ibv_close_device(context), 0);
}

TEST_F(Plugin, WhatAFrameCanBeHashedBy)
{
	ibv_context *context = open();
	ASSERT_NE(context, nullptr);
	ibv_device_attr_ex attr;
	ASSERT_EQ(ibv_query_device_ex(context, nullptr, &attr), 0);
	EXPECT_EQ(attr.rss_caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET);
	EXPECT_EQ(attr.rss_caps.rx_hash_fields_mask, 0xffu);
	EXPECT_EQ(attr.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
	EXPECT_EQ(ibv_close_device(context), 0);
}

} // namespace
} // namespace tern::provider::test
