// SPDX-License-Identifier: GPL-2.0-or-later
/* The plugin as an application meets it: through libibverbs, on a host with a pretended card. */
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>

#include "plugin_fixture.h"

namespace tern::provider::test {
namespace {

TEST_F(Plugin, TheCardIsFoundAndNothingIsWarnedOf)
{
	testing::internal::CaptureStderr();
	const DeviceList list = devices();
	EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
	ASSERT_NE(list.get()[0], nullptr);
	EXPECT_STREQ(ibv_get_device_name(list.get()[0]), "tern0");
	EXPECT_EQ(list.get()[1], nullptr);
}

TEST_F(Plugin, OtherCardsAreNot)
{
	fake_.reset("pci:v00001234d00007E45sv00001AF4sd00001100bc02sc00i00");
	testing::internal::CaptureStderr();
	const DeviceList list = devices();
	testing::internal::GetCapturedStderr();
	EXPECT_EQ(list.get()[0], nullptr);
}

TEST_F(Plugin, OpeningFailsCleanly)
{
	fake_.fail(IB_USER_VERBS_CMD_GET_CONTEXT, ENOSPC);
	EXPECT_EQ(open(), nullptr);
	EXPECT_EQ(errno, ENOSPC);
	fake_.on_context = [](auto &resp) { resp.db_len = 0; };
	EXPECT_EQ(open(), nullptr);
	EXPECT_EQ(errno, EPROTO);
	fake_.on_context = [](auto &resp) { resp.db_key++; };
	EXPECT_EQ(open(), nullptr);
	EXPECT_EQ(errno, EINVAL);
}

TEST_F(Plugin, Queries)
{
	ibv_context *context = open();
	ASSERT_NE(context, nullptr);
	EXPECT_EQ(context->num_comp_vectors, 2);
	ibv_device_attr attr;
	ASSERT_EQ(ibv_query_device(context, &attr), 0);
	EXPECT_STREQ(attr.fw_ver, "3.14");
	EXPECT_EQ(attr.max_qp, 77);
	ibv_device_attr_ex ex;
	ASSERT_EQ(ibv_query_device_ex(context, nullptr, &ex), 0);
	EXPECT_STREQ(ex.orig_attr.fw_ver, "3.14");
	ibv_port_attr port;
	ASSERT_EQ(ibv_query_port(context, 1, &port), 0);
	EXPECT_EQ(port.gid_tbl_len, 101);
	EXPECT_EQ(ibv_close_device(context), 0);
}

TEST_F(PluginQp, RateLimits)
{
	ibv_qp_rate_limit_attr limit = {.rate_limit = 5000,
	                                .max_burst_sz = 64 << 10,
	                                .typical_pkt_sz = 1500,
	                                .comp_mask = 0};
	ASSERT_EQ(ibv_modify_qp_rate_limit(qp_, &limit), 0);
	EXPECT_EQ(fake_.last_modify.base.attr_mask, uint32_t{IBV_QP_RATE_LIMIT});
	EXPECT_EQ(fake_.last_modify.rate_limit, 5000u);
	EXPECT_EQ(fake_.last_rate.max_burst_sz, 64u << 10);
	EXPECT_EQ(fake_.last_rate.typical_pkt_sz, 1500u);
	limit.comp_mask = 1;
	EXPECT_EQ(ibv_modify_qp_rate_limit(qp_, &limit), EINVAL);

	/* Together with a state, the rest is the card's choice. */
	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_RTS;
	attr.rate_limit = 77;
	ASSERT_EQ(ibv_modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), 0);
	EXPECT_EQ(fake_.last_modify.base.attr_mask, IBV_QP_STATE | IBV_QP_RATE_LIMIT);
	EXPECT_EQ(fake_.last_modify.rate_limit, 77u);
	EXPECT_EQ(fake_.last_rate.max_burst_sz, 0u);

	ibv_device_attr_ex device;
	ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &device), 0);
	EXPECT_EQ(device.packet_pacing_caps.qp_rate_limit_min, 1u);
	EXPECT_EQ(device.packet_pacing_caps.qp_rate_limit_max, uint32_t{TERN_MAX_RATE_LIMIT});
	for (const auto type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET})
		EXPECT_TRUE(ibv_is_qpt_supported(device.packet_pacing_caps.supported_qpts, type));
}

TEST_F(PluginQp, ARequestGoesToTheCardAndComesBackWithoutACommand)
{
	ASSERT_NE(qp_, nullptr);
	const tern_create_qp_resp memory = fake_.last_qp;
	auto *record = fake_.at<tern_hw_qp_record>(memory.buf_key + memory.record_offset);
	const unsigned commands = fake_.writes;

	ASSERT_EQ(post_recv(qp_, 70), 0);
	EXPECT_EQ(record->rq_pi.get(), 1u);
	const auto *data = fake_.at<tern_hw_data_seg>(memory.buf_key + memory.rq_offset);
	EXPECT_EQ(data->lkey.get(), mr_->lkey);

	ASSERT_EQ(post_send(qp_, 71), 0);
	EXPECT_EQ(fake_.doorbell(TERN_DB_SQ), qp_->qp_num | uint64_t{1} << 32);
	EXPECT_EQ(record->sq_pi.get(), 1u);
	EXPECT_EQ(fake_.at<tern_hw_ctrl_seg>(memory.buf_key)->opcode, TERN_OP_SEND);

	ASSERT_EQ(ibv_req_notify_cq(send_cq_, 1), 0);
	EXPECT_EQ(fake_.doorbell(TERN_DB_CQ_ARM), send_cq_memory_.cqn | TERN_DB_CQ_SOLICITED);

	complete(send_cq_memory_, 0, qp_->qp_num, TERN_OP_SEND, 0);
	complete(recv_cq_memory_, 0, qp_->qp_num, TERN_CQE_RECV, 0);
	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(send_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 71u);
	ASSERT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 70u);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV);
	const auto *cq_record = fake_.at<tern_hw_cq_record>(recv_cq_memory_.buf_key +
	                                                    recv_cq_memory_.record_offset);
	EXPECT_EQ(cq_record->ci.get(), 1u);
	EXPECT_EQ(fake_.writes, commands);
}

TEST_F(PluginQp, TheLimitsAreThoseThatTheDriverGranted)
{
	ibv_qp_init_attr attr = init_attr();
	ibv_qp *qp = ready(ibv_create_qp(pd_, &attr));
	ASSERT_NE(qp, nullptr);
	EXPECT_EQ(attr.cap.max_send_sge, 4u);
	EXPECT_EQ(attr.cap.max_inline_data, 64u);

	ibv_sge sges[5] = {};
	ibv_send_wr wr = {}, *bad = nullptr;
	wr.opcode = IBV_WR_SEND;
	wr.sg_list = sges;
	wr.num_sge = 5;
	EXPECT_EQ(ibv_post_send(qp, &wr, &bad), ENOMEM);
	EXPECT_EQ(bad, &wr);
	wr.num_sge = 4;
	EXPECT_EQ(ibv_post_send(qp, &wr, &bad), 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

/* A send queue takes as many requests as the driver has granted, not as many as were asked for. */
TEST_F(PluginQp, TakesAsManySendsAsGranted)
{
	ibv_qp_init_attr attr = init_attr();
	ibv_qp *qp = ready(ibv_create_qp(pd_, &attr));
	ASSERT_NE(qp, nullptr);
	for (uint64_t i = 0; i < attr.cap.max_send_wr; i++)
		ASSERT_EQ(post_send(qp, i), 0);
	EXPECT_EQ(post_send(qp, 99), ENOMEM) << "the ring has room";
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(PluginQp, QpsWithoutAReceiveQueue)
{
	ibv_qp_init_attr attr = init_attr();
	attr.cap.max_recv_wr = 0;
	ibv_qp *qp = ready(ibv_create_qp(pd_, &attr));
	ASSERT_NE(qp, nullptr);
	EXPECT_EQ(post_recv(qp, 1), ENOMEM);
	complete(recv_cq_memory_, 0, qp->qp_num, TERN_CQE_RECV, 0);
	ibv_wc wc;
	EXPECT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(PluginQp, EveryCommandCanFail)
{
	fake_.fail(IB_USER_VERBS_CMD_ALLOC_PD, EMFILE);
	EXPECT_EQ(ibv_alloc_pd(context_), nullptr);
	EXPECT_EQ(errno, EMFILE);
	fake_.fail(IB_USER_VERBS_CMD_REG_MR, EFAULT);
	EXPECT_EQ(ibv_reg_mr(pd_, buffer_, 1, 0), nullptr);
	EXPECT_EQ(errno, EFAULT);
	fake_.fail(IB_USER_VERBS_CMD_CREATE_CQ, ENOSPC);
	EXPECT_EQ(ibv_create_cq(context_, 16, nullptr, nullptr, 0), nullptr);
	EXPECT_EQ(errno, ENOSPC);
	fake_.fail(IB_USER_VERBS_CMD_CREATE_QP, ENOSPC);
	EXPECT_EQ(create_qp(), nullptr);
	EXPECT_EQ(errno, ENOSPC);
	fake_.fail(IB_USER_VERBS_CMD_MODIFY_QP, EINVAL);
	ibv_qp_attr attr = {};
	EXPECT_EQ(ibv_modify_qp(qp_, &attr, IBV_QP_STATE), EINVAL);
	/* The object stays when it could not be destroyed. */
	fake_.fail(IB_USER_VERBS_CMD_DESTROY_QP, EBUSY);
	EXPECT_EQ(ibv_destroy_qp(qp_), EBUSY);
	ASSERT_EQ(post_send(qp_, 5), 0);
	complete(send_cq_memory_, 0, qp_->qp_num, TERN_OP_SEND, 0);
	ibv_wc wc;
	EXPECT_EQ(ibv_poll_cq(send_cq_, 1, &wc), 1);
	fake_.fail(IB_USER_VERBS_CMD_DESTROY_CQ, EBUSY);
	EXPECT_EQ(ibv_destroy_cq(send_cq_), EBUSY);
}

/*
 * As when the device has been removed. libibverbs reports EIO unless the program has asked for
 * something else by RDMAV_ALLOW_DISASSOC_DESTROY. Objects stay as they were, with their CQEs.
 */
TEST_F(PluginQp, NothingIsDestroyedWhenTheDeviceIsGone)
{
	ASSERT_EQ(post_send(qp_, 1), 0);
	ASSERT_EQ(post_recv(qp_, 2), 0);
	complete(send_cq_memory_, 0, qp_->qp_num, TERN_OP_SEND, 0);
	complete(recv_cq_memory_, 0, qp_->qp_num, TERN_CQE_RECV, 0);

	fake_.fail(IB_USER_VERBS_CMD_DESTROY_QP, EIO);
	EXPECT_EQ(ibv_destroy_qp(qp_), EIO);
	fake_.fail(IB_USER_VERBS_CMD_DESTROY_CQ, EIO);
	EXPECT_EQ(ibv_destroy_cq(send_cq_), EIO);
	fake_.fail(IB_USER_VERBS_CMD_DEREG_MR, EIO);
	EXPECT_EQ(ibv_dereg_mr(mr_), EIO);
	fake_.fail(IB_USER_VERBS_CMD_DEALLOC_PD, EIO);
	EXPECT_EQ(ibv_dealloc_pd(pd_), EIO);

	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(send_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 1u);
	ASSERT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 2u);
	EXPECT_EQ(post_send(qp_, 3), 0);
}

TEST_F(PluginQp, NonsenseFromTheDriverIsRefusedAndUndone)
{
	const auto cq_refused = [&](auto spoil) {
		fake_.on_cq = spoil;
		EXPECT_EQ(ibv_create_cq(context_, 16, nullptr, nullptr, 0), nullptr);
		fake_.on_cq = nullptr;
		EXPECT_EQ(fake_.cqs, 2);
	};
	cq_refused([](auto &r) { r.buf_key++; });
	cq_refused([](auto &r) { r.record_offset = r.buf_len - 63; });
	cq_refused([](auto &r) { r.record_offset = 64; });
	cq_refused([](auto &r) { r.log_size = 20; });

	const auto qp_refused = [&](auto spoil) {
		fake_.on_qp = spoil;
		EXPECT_EQ(create_qp(), nullptr);
		fake_.on_qp = nullptr;
		EXPECT_EQ(fake_.qps, 1);
	};
	qp_refused([](auto &r) { r.buf_key++; });
	qp_refused([](auto &r) { r.record_offset = r.buf_len; });
	qp_refused([](auto &r) { r.sq_log_size = 30; });
	qp_refused([](auto &r) { r.rq_log_size = 30; });
	qp_refused([](auto &r) { r.rq_log_stride = 5; });
	qp_refused([](auto &r) { r.rq_offset = r.buf_len; });
}

TEST_F(PluginQp, ResetForgetsAllThatWasPosted)
{
	const tern_create_qp_resp memory = fake_.last_qp;
	auto *record = fake_.at<tern_hw_qp_record>(memory.buf_key + memory.record_offset);
	ASSERT_EQ(post_send(qp_, 1), 0);
	ASSERT_EQ(post_recv(qp_, 2), 0);
	complete(send_cq_memory_, 0, qp_->qp_num, TERN_OP_SEND, 0);

	set_state(qp_, IBV_QPS_RESET);
	ibv_wc wc;
	EXPECT_EQ(ibv_poll_cq(send_cq_, 1, &wc), 0);
	EXPECT_EQ(record->rq_pi.get() | record->sq_pi.get(), 0u);

	set_state(qp_, IBV_QPS_RTS);
	ASSERT_EQ(post_send(qp_, 3), 0);
	EXPECT_EQ(fake_.doorbell(TERN_DB_SQ) >> 32, 1u);
	complete(send_cq_memory_, 1, qp_->qp_num, TERN_OP_SEND, 0);
	ASSERT_EQ(ibv_poll_cq(send_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 3u);
}

/* A doorbell after the card has set its index to 0 would move it ahead of the provider's. */
TEST_F(PluginQp, NothingIsPostedWhileTheQpIsReset)
{
	fake_.on_modify = [&] {
		EXPECT_EQ(post_send(qp_, 1), EINVAL);
		EXPECT_EQ(post_recv(qp_, 2), EINVAL);
	};
	set_state(qp_, IBV_QPS_RESET);
	EXPECT_EQ(fake_.doorbell(TERN_DB_SQ), ~uint64_t{0});
	fake_.on_modify = nullptr;
	ready(qp_);
	EXPECT_EQ(post_send(qp_, 3), 0);
	EXPECT_EQ(fake_.doorbell(TERN_DB_SQ) >> 32, 1u);
}

TEST_F(PluginQp, AResetThatFailsChangesNothing)
{
	const tern_create_qp_resp memory = fake_.last_qp;
	auto *record = fake_.at<tern_hw_qp_record>(memory.buf_key + memory.record_offset);
	const auto fails = [&] {
		ibv_qp_attr attr = {};
		fake_.fail(IB_USER_VERBS_CMD_MODIFY_QP, EBUSY);
		EXPECT_EQ(ibv_modify_qp(qp_, &attr, IBV_QP_STATE), EBUSY);
	};
	ASSERT_EQ(post_send(qp_, 1), 0);
	fails();
	EXPECT_EQ(post_send(qp_, 2), 0);
	EXPECT_EQ(post_recv(qp_, 3), 0);
	EXPECT_EQ(record->sq_pi.get(), 2u);

	set_state(qp_, IBV_QPS_RESET);
	fails();
	EXPECT_EQ(post_recv(qp_, 4), EINVAL);
	set_state(qp_, IBV_QPS_INIT);
	fails();
	EXPECT_EQ(post_send(qp_, 5), EINVAL);
	EXPECT_EQ(post_recv(qp_, 6), 0);
}

TEST_F(PluginQp, RequestsAreTakenWhereTheStateAllowsThem)
{
	const struct {
		ibv_qp_state state;
		bool sends, recvs;
	} cases[] = {
	        {IBV_QPS_RESET, false, false}, {IBV_QPS_INIT, false, true},
	        {IBV_QPS_RTR, false, true},    {IBV_QPS_RTS, true, true},
	        {IBV_QPS_SQD, true, true},     {IBV_QPS_SQE, true, true},
	        {IBV_QPS_ERR, true, true},
	};
	for (const auto &c : cases) {
		set_state(qp_, c.state);
		EXPECT_EQ(post_send(qp_, 1), c.sends ? 0 : EINVAL) << c.state;
		EXPECT_EQ(post_recv(qp_, 1), c.recvs ? 0 : EINVAL) << c.state;
	}
	ibv_sge sge = {};
	ibv_send_wr send = {}, *bad_send = nullptr;
	ibv_recv_wr recv = {}, *bad_recv = nullptr;
	send.sg_list = recv.sg_list = &sge;
	set_state(qp_, IBV_QPS_RESET);
	EXPECT_EQ(ibv_post_send(qp_, &send, &bad_send), EINVAL);
	EXPECT_EQ(bad_send, &send);
	EXPECT_EQ(ibv_post_recv(qp_, &recv, &bad_recv), EINVAL);
	EXPECT_EQ(bad_recv, &recv);
}

/* ibv_query_qp() overwrites libibverbs' state with one that may be out of date when it returns. */
TEST_F(PluginQp, AQueryDoesNotDecideWhatIsTaken)
{
	ibv_qp *qpx = create_qp_ex(IBV_QP_EX_WITH_SEND);
	ASSERT_NE(qpx, nullptr);
	for (ibv_qp *qp : {qp_, qpx}) {
		ibv_qp_attr attr;
		ibv_qp_init_attr init;
		fake_.queried_state = IBV_QPS_RESET; /* as it was before ready() */
		ASSERT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
		ASSERT_EQ(qp->state, IBV_QPS_RESET);
		EXPECT_EQ(post_send(qp, 1), 0);
		EXPECT_EQ(post_recv(qp, 2), 0);
	}
	ibv_wr_start(ibv_qp_to_qp_ex(qpx));
	ibv_wr_send(ibv_qp_to_qp_ex(qpx));
	EXPECT_EQ(ibv_wr_complete(ibv_qp_to_qp_ex(qpx)), 0);

	ibv_qp_attr attr;
	ibv_qp_init_attr init;
	set_state(qpx, IBV_QPS_RESET);
	fake_.queried_state = IBV_QPS_RTS;
	ASSERT_EQ(ibv_query_qp(qpx, &attr, IBV_QP_STATE, &init), 0);
	EXPECT_EQ(post_send(qpx, 3), EINVAL);
	EXPECT_EQ(post_recv(qpx, 4), EINVAL);
	EXPECT_EQ(ibv_destroy_qp(qpx), 0);
}

/* As by a SEND that is too long for the receive WQE. IBA 10.3.1: requests are flushed in ERR. */
TEST_F(PluginQp, AQpThatWentFromRtrToErrTakesSends)
{
	set_state(qp_, IBV_QPS_RESET);
	set_state(qp_, IBV_QPS_INIT);
	set_state(qp_, IBV_QPS_RTR);
	EXPECT_EQ(query_state(IBV_QPS_RTR), 0);
	EXPECT_EQ(post_send(qp_, 1), EINVAL);
	EXPECT_EQ(query_state(IBV_QPS_ERR), 0);
	EXPECT_EQ(post_send(qp_, 2), 0);
	set_state(qp_, IBV_QPS_RESET);
	EXPECT_EQ(post_send(qp_, 3), EINVAL);
}

TEST_F(PluginQp, AQpCanBeQueriedWithinAListOfRequests)
{
	const Deadline deadline;
	ibv_qp *qpx = create_qp_ex(IBV_QP_EX_WITH_SEND);
	ASSERT_NE(qpx, nullptr);
	std::swap(qp_, qpx);
	ibv_wr_start(ibv_qp_to_qp_ex(qp_));
	EXPECT_EQ(query_state(IBV_QPS_ERR), 0);
	ibv_wr_abort(ibv_qp_to_qp_ex(qp_));
	EXPECT_EQ(ibv_destroy_qp(qpx), 0);
}

/* Each would hand over requests that the card takes for others, when the QP is RTS again. */
TEST_F(PluginQp, AnErrorFromBeforeAResetDoesNotOpenTheSendQueue)
{
	fake_.on_query = [&] { set_state(qp_, IBV_QPS_RESET); };
	EXPECT_EQ(query_state(IBV_QPS_ERR), 0);
	EXPECT_EQ(post_send(qp_, 1), EINVAL) << "the reset began after the query";
	fake_.on_query = nullptr;

	ready(qp_);
	fake_.on_modify = [&] { EXPECT_EQ(query_state(IBV_QPS_ERR), 0); };
	set_state(qp_, IBV_QPS_RESET);
	EXPECT_EQ(post_send(qp_, 2), EINVAL) << "the query came within the reset";
	fake_.on_modify = nullptr;

	ready(qp_);
	fake_.on_query = [&] {
		ibv_qp_attr attr = {};
		fake_.fail(IB_USER_VERBS_CMD_MODIFY_QP, EBUSY);
		EXPECT_EQ(ibv_modify_qp(qp_, &attr, IBV_QP_STATE), EBUSY);
	};
	EXPECT_EQ(query_state(IBV_QPS_ERR), 0);
	EXPECT_EQ(post_send(qp_, 3), 0) << "the reset failed";
}

TEST_F(PluginQp, ANumberUsedAgainInheritsNoCompletions)
{
	const uint32_t qpn = qp_->qp_num;
	ASSERT_EQ(post_send(qp_, 1), 0);
	complete(send_cq_memory_, 0, qpn, TERN_OP_SEND, 0);
	complete(recv_cq_memory_, 0, qpn, TERN_CQE_RECV, 0);
	ASSERT_EQ(ibv_destroy_qp(qp_), 0);

	fake_.next_qpn = qpn;
	qp_ = create_qp();
	ASSERT_NE(qp_, nullptr);
	ibv_wc wc;
	EXPECT_EQ(ibv_poll_cq(send_cq_, 1, &wc), 0);
	EXPECT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 0);
	ASSERT_EQ(post_send(qp_, 9), 0);
	complete(send_cq_memory_, 1, qpn, TERN_OP_SEND, 0);
	ASSERT_EQ(ibv_poll_cq(send_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 9u);
}

TEST_F(PluginQp, QueryQp)
{
	ibv_qp_attr attr;
	ibv_qp_init_attr init;
	ASSERT_EQ(ibv_query_qp(qp_, &attr, IBV_QP_SQ_PSN, &init), 0);
	EXPECT_EQ(attr.sq_psn, 0x1234u);
}

/* ---- ibv_wr_* -------------------------------------------------------------------------- */

class PluginSendOps : public PluginQp {
protected:
	PluginSendOps()
	{
		base_ = create_qp_ex(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
		                     IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
		                     IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		                     IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		                     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
		memory_ = fake_.last_qp;
		qpx_ = base_ ? ibv_qp_to_qp_ex(base_) : nullptr;
	}

	~PluginSendOps() override { EXPECT_EQ(ibv_destroy_qp(base_), 0); }

	template <class Segment>
	Segment &segment(size_t n)
	{
		return fake_.at<Segment>(memory_.buf_key)[n];
	}

	ibv_qp *base_ = nullptr;
	ibv_qp_ex *qpx_ = nullptr;
	tern_create_qp_resp memory_{};
};

TEST_F(PluginSendOps, BuildTheSameWqes)
{
	ASSERT_NE(qpx_, nullptr);
	char text[] = "inline";
	ibv_data_buf bufs[2] = {{text, 3}, {text + 3, 3}};
	ibv_sge sges[2] = {{0x100, 1, 2}, {0x200, 3, 4}};

	ibv_wr_start(qpx_);
	qpx_->wr_id = 1;
	qpx_->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(qpx_, htonl(5));
	ibv_wr_set_inline_data_list(qpx_, 2, bufs);
	qpx_->wr_id = 2;
	qpx_->wr_flags = IBV_SEND_FENCE;
	ibv_wr_rdma_write_imm(qpx_, 0x10, 0x20, htonl(6));
	ibv_wr_set_sge_list(qpx_, 2, sges);
	ibv_wr_rdma_read(qpx_, 0x11, 0x21);
	ibv_wr_set_sge(qpx_, 0x12, 0x22, 0x32);
	ibv_wr_atomic_cmp_swp(qpx_, 0x13, 0x23, 0x33, 0x43);
	ibv_wr_set_sge(qpx_, 1, 2, 8);
	ibv_wr_atomic_fetch_add(qpx_, 0x14, 0x24, 0x34);
	ibv_wr_set_sge(qpx_, 1, 2, 8);
	ibv_wr_rdma_write(qpx_, 0x15, 0x25);
	ibv_wr_set_inline_data(qpx_, text, 6);
	ibv_wr_send(qpx_); /* of no data */
	EXPECT_EQ(fake_.doorbell(TERN_DB_SQ), ~uint64_t{0});
	ASSERT_EQ(ibv_wr_complete(qpx_), 0);
	EXPECT_EQ(fake_.doorbell(TERN_DB_SQ), base_->qp_num | uint64_t{7} << 32);

	auto ctrl = [&](size_t n) -> tern_hw_ctrl_seg & {
		return segment<tern_hw_ctrl_seg>(4 * n);
	};
	EXPECT_EQ(ctrl(0).opcode, TERN_OP_SEND_IMM);
	EXPECT_EQ(ctrl(0).imm.get(), 5u);
	EXPECT_EQ(ctrl(0).flags, TERN_WQE_SIGNALED | TERN_WQE_INLINE);
	EXPECT_EQ(std::memcmp(&segment<tern_hw_data_seg>(1), text, 6), 0);
	EXPECT_EQ(ctrl(1).opcode, TERN_OP_WRITE_IMM);
	EXPECT_EQ(ctrl(1).flags, TERN_WQE_FENCE);
	EXPECT_EQ(segment<tern_hw_raddr_seg>(5).rkey.get(), 0x10u);
	EXPECT_EQ(segment<tern_hw_data_seg>(7).lkey.get(), 4u);
	EXPECT_EQ(ctrl(2).opcode, TERN_OP_READ);
	EXPECT_EQ(segment<tern_hw_data_seg>(10).addr.get(), 0x22u);
	EXPECT_EQ(ctrl(3).opcode, TERN_OP_CMP_SWAP);
	EXPECT_EQ(segment<tern_hw_atomic_seg>(14).compare.get(), 0x33u);
	EXPECT_EQ(segment<tern_hw_atomic_seg>(14).swap_add.get(), 0x43u);
	EXPECT_EQ(ctrl(4).opcode, TERN_OP_FETCH_ADD);
	EXPECT_EQ(segment<tern_hw_atomic_seg>(18).swap_add.get(), 0x34u);
	EXPECT_EQ(ctrl(5).opcode, TERN_OP_WRITE);
	EXPECT_EQ(ctrl(5).inline_len.get(), 6u);
	EXPECT_EQ(ctrl(6).opcode, TERN_OP_SEND);
	EXPECT_EQ(ctrl(6).segs, 1);

	complete(send_cq_memory_, 0, base_->qp_num, TERN_OP_SEND_IMM, 0);
	complete(send_cq_memory_, 1, base_->qp_num, TERN_OP_WRITE_IMM, 1);
	ibv_wc wc[2];
	ASSERT_EQ(ibv_poll_cq(send_cq_, 2, wc), 2);
	EXPECT_EQ(wc[0].wr_id, 1u);
	EXPECT_EQ(wc[1].wr_id, 2u);
}

TEST_F(PluginSendOps, AnAtomicWriteBringsItsData)
{
	ibv_qp *qp = create_qp_ex(IBV_QP_EX_WITH_ATOMIC_WRITE);
	ASSERT_NE(qp, nullptr);
	memory_ = fake_.last_qp;
	ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);
	const uint64_t value = 0x1122334455667788;
	ibv_wr_start(qpx);
	ibv_wr_atomic_write(qpx, 0x15, 0x20, &value);
	ASSERT_EQ(ibv_wr_complete(qpx), 0);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(0).opcode, TERN_OP_ATOMIC_WRITE);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(0).inline_len.get(), 8u);
	EXPECT_EQ(segment<tern_hw_raddr_seg>(1).addr.get(), 0x20u);
	EXPECT_EQ(segment<tern_hw_raddr_seg>(1).rkey.get(), 0x15u);
	EXPECT_EQ(std::memcmp(&segment<tern_hw_data_seg>(2), &value, 8), 0);

	ibv_wr_start(qpx);
	ibv_wr_atomic_write(qpx, 0x15, 0x20, &value);
	ibv_wr_set_sge(qpx, 1, 2, 8);
	EXPECT_EQ(ibv_wr_complete(qpx), EINVAL) << "data twice";
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(PluginSendOps, AnErrorDropsTheList)
{
	ibv_sge sges[5] = {};

	ibv_wr_start(qpx_);
	ibv_wr_send(qpx_);
	ibv_wr_send(qpx_);
	ibv_wr_set_sge_list(qpx_, 5, sges);
	EXPECT_EQ(ibv_wr_complete(qpx_), ENOMEM);

	ibv_wr_start(qpx_);
	ibv_wr_set_sge(qpx_, 1, 2, 3);
	EXPECT_EQ(ibv_wr_complete(qpx_), EINVAL) << "data for no request";

	ibv_wr_start(qpx_);
	for (int i = 0; i < 17; i++)
		ibv_wr_send(qpx_);
	EXPECT_EQ(ibv_wr_complete(qpx_), ENOMEM);

	ibv_wr_start(qpx_);
	ibv_wr_send(qpx_);
	ibv_wr_abort(qpx_);
	EXPECT_EQ(fake_.doorbell(TERN_DB_SQ), ~uint64_t{0});

	ibv_wr_start(qpx_);
	ibv_wr_send(qpx_);
	EXPECT_EQ(ibv_wr_complete(qpx_), 0);
	EXPECT_EQ(fake_.doorbell(TERN_DB_SQ) >> 32, 1u);
}

TEST_F(PluginSendOps, NothingIsPostedWhereTheStateForbidsIt)
{
	set_state(base_, IBV_QPS_RESET);
	set_state(base_, IBV_QPS_RTR);
	ibv_wr_start(qpx_);
	ibv_wr_send(qpx_);
	EXPECT_EQ(ibv_wr_complete(qpx_), EINVAL);
	EXPECT_EQ(fake_.doorbell(TERN_DB_SQ), ~uint64_t{0});
	set_state(base_, IBV_QPS_RTS);
	ibv_wr_start(qpx_);
	ibv_wr_send(qpx_);
	EXPECT_EQ(ibv_wr_complete(qpx_), 0);
}

TEST_F(PluginSendOps, OtherOperationsAreRefusedAtCreation)
{
	EXPECT_EQ(create_qp_ex(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_EQ(ibv_qp_to_qp_ex(qp_), nullptr) << "a classic QP has none of them";
}

} // namespace
} // namespace tern::provider::test
