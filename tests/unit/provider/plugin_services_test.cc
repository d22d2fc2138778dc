// SPDX-License-Identifier: GPL-2.0-or-later
/* The plugin's datagrams, SRQs, XRC, multicast, flows and windows, through libibverbs. */
#include <arpa/inet.h>

#include "plugin_fixture.h"

namespace tern::provider::test {
namespace {

class PluginServices : public PluginQp {
protected:
	~PluginServices() override
	{
		if (ah_) {
			EXPECT_EQ(ibv_destroy_ah(ah_), 0);
		}
	}

	ibv_qp *create(ibv_qp_type type, ibv_srq *srq = nullptr)
	{
		ibv_qp_init_attr attr = init_attr();
		attr.qp_type = type;
		attr.srq = srq;
		return ready(ibv_create_qp(pd_, &attr));
	}

	ibv_qp *create_ex(ibv_qp_type type, uint64_t ops, ibv_xrcd *xrcd = nullptr,
	                  uint32_t create_flags = 0)
	{
		const ibv_qp_init_attr attr = init_attr();
		ibv_qp_init_attr_ex ex = {};
		ex.qp_type = type;
		ex.cap = attr.cap;
		if (xrcd) {
			ex.comp_mask = IBV_QP_INIT_ATTR_XRCD;
			ex.xrcd = xrcd;
		} else {
			ex.comp_mask = IBV_QP_INIT_ATTR_PD;
			ex.pd = pd_;
			ex.send_cq = send_cq_;
			ex.recv_cq = type == IBV_QPT_XRC_SEND ? nullptr : recv_cq_;
		}
		if (ops) {
			ex.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
			ex.send_ops_flags = ops;
		}
		if (create_flags) {
			ex.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
			ex.create_flags = create_flags;
		}
		return ready(ibv_create_qp_ex(context_, &ex));
	}

	static ibv_ah_attr ah_attr()
	{
		ibv_ah_attr attr = {};
		attr.is_global = 1;
		attr.grh.dgid.raw[15] = 0x77;
		attr.grh.sgid_index = 3;
		attr.grh.hop_limit = 9;
		attr.grh.flow_label = 0xf0012345; /* 20 bits of it are a flow label */
		attr.grh.traffic_class = 0x20;
		attr.sl = 4;
		attr.port_num = 1;
		return attr;
	}

	void make_ah()
	{
		ibv_ah_attr attr = ah_attr();
		ah_ = ibv_create_ah(pd_, &attr);
		ASSERT_NE(ah_, nullptr);
	}

	template <class Segment>
	Segment at(const tern_create_qp_resp &qp, size_t block, size_t seg)
	{
		Segment s;
		std::memcpy(&s, fake_.memory(qp.buf_key) + block * 64 + seg * 16, sizeof(s));
		return s;
	}

	ibv_srq *create_srq(uint32_t max_wr)
	{
		ibv_srq_init_attr attr = {};
		attr.srq_context = this;
		attr.attr = {.max_wr = max_wr, .max_sge = 1, .srq_limit = 0};
		return ibv_create_srq(pd_, &attr);
	}

	int post_srq(ibv_srq *srq, uint64_t wr_id)
	{
		ibv_sge sge = {reinterpret_cast<uint64_t>(buffer_), 16, mr_->lkey};
		ibv_recv_wr wr = {}, *bad;
		wr.wr_id = wr_id;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		return ibv_post_srq_recv(srq, &wr, &bad);
	}

	/* The card completes, to CQE @n of @cq, the WQE that was posted to the last SRQ as @post.
	 */
	void complete_srq(const tern_create_cq_resp &cq, uint32_t n, uint32_t qpn, uint32_t post)
	{
		const tern_srq_buf &srq = fake_.last_srq;
		const uint32_t slot = fake_.at<uint32_t>(
		        srq.buf_key + srq.ring_offset)[post & ((1u << srq.log_size) - 1)];
		fake_.at<tern_hw_cqe>(cq.buf_key)[n].srqn = srq.srqn;
		complete(cq, n, qpn, TERN_CQE_RECV, slot);
	}

	ibv_ah *ah_ = nullptr;
};

/* ---- datagrams -------------------------------------------------------------------------- */

TEST_F(PluginServices, ADatagramGoesWhereItsHandleSays)
{
	make_ah();
	ibv_qp *ud = create(IBV_QPT_UD);
	ASSERT_NE(ud, nullptr);
	const tern_create_qp_resp memory = fake_.last_qp;
	char text[] = "hello";
	ibv_sge sge = {reinterpret_cast<uint64_t>(text), 5, 0};
	ibv_send_wr wr = {}, *bad;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_INLINE;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.wr.ud = {.ah = ah_, .remote_qpn = 0x1234, .remote_qkey = 0x11111111};
	ASSERT_EQ(ibv_post_send(ud, &wr, &bad), 0);

	const auto seg = at<tern_hw_ud_seg>(memory, 0, 1);
	EXPECT_EQ(seg.dgid[15], 0x77);
	EXPECT_EQ(seg.dmac[0], 0x50);
	EXPECT_EQ(seg.dmac[5], 0x55);
	EXPECT_EQ(seg.sgid_index, 3);
	EXPECT_EQ(seg.hop_limit, 17);
	EXPECT_EQ(seg.flow_label.get(), 0x12345u);
	EXPECT_EQ(seg.udp_sport.get(), 0xc123u);
	EXPECT_EQ(seg.traffic_class, 0x20);
	EXPECT_EQ(seg.sl, 4);
	EXPECT_EQ(seg.dest_qpn.get(), 0x1234u);
	EXPECT_EQ(seg.qkey.get(), 0x11111111u);
	EXPECT_EQ(std::memcmp(fake_.memory(memory.buf_key) + 64, text, 5), 0);
	EXPECT_EQ(ibv_destroy_qp(ud), 0);
}

TEST_F(PluginServices, AddressHandlesCanFail)
{
	ibv_ah_attr attr = ah_attr();
	attr.is_global = 0;
	EXPECT_EQ(ibv_create_ah(pd_, &attr), nullptr);
	EXPECT_EQ(errno, EINVAL);
	make_ah();
	fake_.fail(IB_USER_VERBS_CMD_DESTROY_AH, EBUSY);
	EXPECT_EQ(ibv_destroy_ah(ah_), EBUSY);
}

TEST_F(PluginServices, SettersOfDatagramsComeInAnyOrder)
{
	make_ah();
	ibv_qp *ud = create_ex(IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
	ASSERT_NE(ud, nullptr);
	const tern_create_qp_resp memory = fake_.last_qp;
	ibv_qp_ex *qpx = ibv_qp_to_qp_ex(ud);

	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_ud_addr(qpx, ah_, 0x11, 0x21);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	ibv_wr_send_imm(qpx, htonl(9));
	ibv_wr_set_sge(qpx, 4, 5, 6);
	ibv_wr_set_ud_addr(qpx, ah_, 0x12, 0x22);
	ibv_wr_send(qpx);
	ibv_wr_set_ud_addr(qpx, ah_, 0x13, 0x23);
	ASSERT_EQ(ibv_wr_complete(qpx), 0);
	EXPECT_EQ(fake_.doorbell(TERN_DB_SQ) >> 32, 5u);

	const uint32_t blocks[] = {0, 2, 4};
	for (uint32_t i = 0; i < 3; i++) {
		const auto seg = at<tern_hw_ud_seg>(memory, blocks[i], 1);
		EXPECT_EQ(seg.dmac[0], 0x50);
		EXPECT_EQ(seg.dest_qpn.get(), 0x11 + i);
		EXPECT_EQ(seg.qkey.get(), 0x21 + i);
	}
	EXPECT_EQ(at<tern_hw_data_seg>(memory, 1, 0).lkey.get(), 1u);
	EXPECT_EQ(at<tern_hw_data_seg>(memory, 3, 0).lkey.get(), 4u);
	EXPECT_EQ(at<tern_hw_ctrl_seg>(memory, 2, 0).imm.get(), 9u);
	EXPECT_EQ(at<tern_hw_ctrl_seg>(memory, 4, 0).segs, 4);

	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	EXPECT_EQ(ibv_wr_complete(qpx), EINVAL) << "no address";
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_ud_addr(qpx, ah_, 1, 1);
	ibv_wr_set_ud_addr(qpx, ah_, 1, 1);
	EXPECT_EQ(ibv_wr_complete(qpx), EINVAL) << "two addresses";
	ibv_wr_start(qpx);
	ibv_wr_set_ud_addr(qpx, ah_, 1, 1);
	EXPECT_EQ(ibv_wr_complete(qpx), EINVAL) << "of no request";
	EXPECT_EQ(ibv_destroy_qp(ud), 0);
}

TEST_F(PluginServices, Multicast)
{
	ibv_qp *ud = create_ex(IBV_QPT_UD, 0, nullptr, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
	ASSERT_NE(ud, nullptr);
	EXPECT_EQ(fake_.last_create_flags, uint32_t{IBV_QP_CREATE_BLOCK_SELF_MCAST_LB});
	const ibv_gid group = {.raw = {0xff, 0x0e}};
	EXPECT_EQ(ibv_attach_mcast(ud, &group, 0), 0);
	EXPECT_EQ(fake_.groups, 1);
	EXPECT_EQ(ibv_detach_mcast(ud, &group, 0), 0);
	EXPECT_EQ(ibv_destroy_qp(ud), 0);
	EXPECT_EQ(create_ex(IBV_QPT_UD, 0, nullptr, IBV_QP_CREATE_SCATTER_FCS), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
}

/* ---- what a card does not have --------------------------------------------------------- */

TEST_F(PluginServices, ExtendedOperationsAreThoseOfTheService)
{
	const std::pair<ibv_qp_type, uint64_t> refused[] = {
	        {IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE},
	        {IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ},
	        {IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP},
	        {IBV_QPT_RAW_PACKET, IBV_QP_EX_WITH_SEND_WITH_IMM},
	};
	for (const auto &[type, op] : refused) {
		EXPECT_EQ(create_ex(type, IBV_QP_EX_WITH_SEND | op), nullptr);
		EXPECT_EQ(errno, EOPNOTSUPP);
	}
	for (const auto type : {IBV_QPT_UC, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND}) {
		ibv_qp *qp = create_ex(type, IBV_QP_EX_WITH_SEND);
		ASSERT_NE(qp, nullptr);
		EXPECT_NE(ibv_qp_to_qp_ex(qp), nullptr);
		EXPECT_EQ(ibv_destroy_qp(qp), 0);
	}
}

class PluginOldCard : public Plugin {};

TEST_F(PluginOldCard, OnlyRcIsOffered)
{
	fake_.caps = TERN_CAP_RC | TERN_CAP_ATOMIC | TERN_CAP_SHADOW_DB;
	ibv_context *context = open();
	ASSERT_NE(context, nullptr);
	ibv_pd *pd = ibv_alloc_pd(context);
	ibv_cq *cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
	for (const auto type : {IBV_QPT_UD, IBV_QPT_UC, IBV_QPT_RAW_PACKET}) {
		ibv_qp_init_attr attr = {};
		attr.send_cq = attr.recv_cq = cq;
		attr.cap.max_send_wr = 1;
		attr.qp_type = type;
		EXPECT_EQ(ibv_create_qp(pd, &attr), nullptr);
		EXPECT_EQ(errno, EOPNOTSUPP);
	}
	ibv_srq_init_attr srq = {};
	srq.attr.max_wr = 4;
	EXPECT_EQ(ibv_create_srq(pd, &srq), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_EQ(ibv_alloc_mw(pd, IBV_MW_TYPE_1), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	ibv_xrcd_init_attr xrcd = {};
	EXPECT_EQ(ibv_open_xrcd(context, &xrcd), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(context), 0);
}

/* ---- shared receive queues ---------------------------------------------------------------- */

TEST_F(PluginServices, TwoQpsShareAnSrq)
{
	ibv_srq *srq = create_srq(4);
	ASSERT_NE(srq, nullptr);
	EXPECT_EQ(srq->srq_context, this);
	ibv_qp *a = create(IBV_QPT_RC, srq), *b = create(IBV_QPT_UC, srq);
	ASSERT_NE(a, nullptr);
	ASSERT_NE(b, nullptr);
	const unsigned commands = fake_.writes;
	for (uint64_t i = 0; i < 4; i++)
		ASSERT_EQ(post_srq(srq, 20 + i), 0);
	EXPECT_EQ(post_srq(srq, 24), ENOMEM);
	EXPECT_EQ(*fake_.at<uint32_t>(fake_.last_srq.buf_key + fake_.last_srq.record_offset), 4u);

	complete_srq(recv_cq_memory_, 0, b->qp_num, 1);
	complete_srq(recv_cq_memory_, 1, a->qp_num, 0);
	ibv_wc wc[3];
	ASSERT_EQ(ibv_poll_cq(recv_cq_, 3, wc), 2);
	EXPECT_EQ(wc[0].wr_id, 21u);
	EXPECT_EQ(wc[0].qp_num, b->qp_num);
	EXPECT_EQ(wc[1].wr_id, 20u);
	EXPECT_EQ(fake_.writes, commands);

	EXPECT_EQ(post_recv(a, 1), EINVAL) << "it has no receive queue of its own";
	uint32_t number;
	EXPECT_EQ(ibv_get_srq_num(srq, &number), EOPNOTSUPP);
	EXPECT_EQ(ibv_destroy_qp(a), 0);
	EXPECT_EQ(ibv_destroy_qp(b), 0);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(PluginServices, AQpThatGoesOrRestartsGivesItsSlotsBack)
{
	ibv_srq *srq = create_srq(4);
	ibv_qp *qp = create(IBV_QPT_RC, srq);
	ASSERT_NE(qp, nullptr);
	for (uint64_t i = 0; i < 4; i++)
		ASSERT_EQ(post_srq(srq, i), 0);

	complete_srq(recv_cq_memory_, 0, qp->qp_num, 0);
	set_state(qp, IBV_QPS_RESET);
	EXPECT_EQ(post_srq(srq, 4), 0);
	EXPECT_EQ(post_srq(srq, 5), ENOMEM);

	complete_srq(recv_cq_memory_, 1, qp->qp_num, 2);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(post_srq(srq, 5), 0);
	EXPECT_EQ(post_srq(srq, 6), ENOMEM);
	ibv_wc wc;
	EXPECT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 0);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(PluginServices, AnSrqGrows)
{
	ibv_srq *srq = create_srq(4);
	ibv_qp *qp = create(IBV_QPT_RC, srq);
	ASSERT_NE(qp, nullptr);
	for (uint64_t i = 0; i < 4; i++)
		ASSERT_EQ(post_srq(srq, i), 0);
	const int mappings = FakeUverbs::mappings();

	ibv_srq_attr attr = {};
	attr.max_wr = 3;
	ASSERT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0) << "it is that large";
	EXPECT_EQ(post_srq(srq, 4), ENOMEM);
	attr.max_wr = 30;
	attr.srq_limit = 3;
	ASSERT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	EXPECT_EQ(FakeUverbs::mappings(), mappings) << "the old buffer is let go";
	for (uint64_t i = 4; i < 32; i++)
		ASSERT_EQ(post_srq(srq, i), 0);
	EXPECT_EQ(post_srq(srq, 32), ENOMEM);
	ASSERT_EQ(ibv_query_srq(srq, &attr), 0);
	EXPECT_EQ(attr.max_wr, 32u);
	EXPECT_EQ(attr.srq_limit, 3u);

	for (uint32_t i = 0; i < 12; i++)
		complete_srq(recv_cq_memory_, i, qp->qp_num, 2 * i);
	ibv_wc wc[16];
	ASSERT_EQ(ibv_poll_cq(recv_cq_, 16, wc), 12);
	for (uint32_t i = 0; i < 12; i++)
		EXPECT_EQ(wc[i].wr_id, 2 * i);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(PluginServices, SrqsCanFail)
{
	fake_.fail(IB_USER_VERBS_CMD_CREATE_SRQ, ENOSPC);
	EXPECT_EQ(create_srq(4), nullptr);
	EXPECT_EQ(errno, ENOSPC);
	const auto refused = [&](auto spoil) {
		fake_.on_srq = spoil;
		EXPECT_EQ(create_srq(4), nullptr);
		fake_.on_srq = nullptr;
		EXPECT_EQ(fake_.srqs, 0);
	};
	refused([](auto &r) { r.buf_key++; });
	refused([](auto &r) { r.record_offset = r.buf_len; });
	refused([](auto &r) { r.ring_offset = r.buf_len; });
	refused([](auto &r) { r.log_size = 30; });
	refused([](auto &r) { r.log_stride = 3; });

	ibv_srq *srq = create_srq(4);
	ASSERT_NE(srq, nullptr);
	ibv_srq_attr attr = {};
	attr.max_wr = 8;
	fake_.fail(IB_USER_VERBS_CMD_MODIFY_SRQ, EINVAL);
	EXPECT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	EXPECT_EQ(post_srq(srq, 0), 0) << "as before";
	fake_.fail(IB_USER_VERBS_CMD_DESTROY_SRQ, EBUSY);
	EXPECT_EQ(ibv_destroy_srq(srq), EBUSY);
	EXPECT_EQ(post_srq(srq, 1), 0) << "it is still there";
	/* The driver has moved it to where we cannot follow. */
	fake_.on_srq = [](auto &r) { r.buf_key++; };
	EXPECT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	EXPECT_EQ(post_srq(srq, 2), ENOMEM);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

/* ---- XRC ------------------------------------------------------------------------------------ */

class PluginXrc : public PluginServices {
protected:
	PluginXrc()
	{
		ibv_xrcd_init_attr attr = {};
		attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
		attr.fd = -1;
		xrcd_ = ibv_open_xrcd(context_, &attr);
		srq_ = create_xrc_srq();
	}

	~PluginXrc() override
	{
		if (srq_) {
			EXPECT_EQ(ibv_destroy_srq(srq_), 0);
		}
		EXPECT_EQ(ibv_close_xrcd(xrcd_), 0);
	}

	ibv_srq *create_xrc_srq()
	{
		ibv_srq_init_attr_ex attr = {};
		attr.srq_context = this;
		attr.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
		attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
		                 IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		attr.srq_type = IBV_SRQT_XRC;
		attr.pd = pd_;
		attr.xrcd = xrcd_;
		attr.cq = recv_cq_;
		return ibv_create_srq_ex(context_, &attr);
	}

	ibv_xrcd *xrcd_ = nullptr;
	ibv_srq *srq_ = nullptr;
};

TEST_F(PluginXrc, CompletionsComeForQpsOfOthers)
{
	ASSERT_NE(xrcd_, nullptr);
	ASSERT_NE(srq_, nullptr);
	EXPECT_EQ(srq_->srq_context, this);
	EXPECT_EQ(srq_->pd, pd_);
	uint32_t number = 0;
	ASSERT_EQ(ibv_get_srq_num(srq_, &number), 0);
	EXPECT_EQ(number, fake_.last_srq.srqn);
	ASSERT_EQ(post_srq(srq_, 5), 0);
	complete_srq(recv_cq_memory_, 0, 0x900, 0);
	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 5u);
	EXPECT_EQ(wc.qp_num, 0x900u);

	/* What nobody polled goes with the SRQ, also for the next one of its number. */
	ASSERT_EQ(post_srq(srq_, 6), 0);
	complete_srq(recv_cq_memory_, 1, 0x900, 1);
	ASSERT_EQ(ibv_destroy_srq(srq_), 0);
	fake_.next_srqn = number;
	srq_ = create_xrc_srq();
	ASSERT_NE(srq_, nullptr);
	EXPECT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 0);
}

TEST_F(PluginXrc, ATargetHasNoQueues)
{
	const int mappings = FakeUverbs::mappings();
	ibv_qp *target = create_ex(IBV_QPT_XRC_RECV, 0, xrcd_);
	ASSERT_NE(target, nullptr);
	EXPECT_EQ(FakeUverbs::mappings(), mappings);
	EXPECT_EQ(post_send(target, 1), EINVAL);
	EXPECT_EQ(post_recv(target, 1), EINVAL);
	set_state(target, IBV_QPS_RESET);

	ibv_qp_open_attr open = {};
	open.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	open.qp_num = target->qp_num;
	open.xrcd = xrcd_;
	open.qp_type = IBV_QPT_XRC_RECV;
	ibv_qp *again = ibv_open_qp(context_, &open);
	ASSERT_NE(again, nullptr);
	EXPECT_EQ(again->qp_num, target->qp_num);
	EXPECT_EQ(ibv_destroy_qp(again), 0);
	EXPECT_EQ(ibv_destroy_qp(target), 0);
	fake_.fail(IB_USER_VERBS_CMD_OPEN_QP, EINVAL);
	EXPECT_EQ(ibv_open_qp(context_, &open), nullptr);
	EXPECT_EQ(errno, EINVAL);
}

TEST_F(PluginXrc, AnInitiatorNamesTheSrq)
{
	ibv_qp *qp = create_ex(IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_BIND_MW |
	                                                 IBV_QP_EX_WITH_LOCAL_INV);
	ASSERT_NE(qp, nullptr);
	const tern_create_qp_resp memory = fake_.last_qp;
	ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	ibv_wr_set_xrc_srqn(qpx, 0x31);
	ibv_wr_local_inv(qpx, 0x4200);
	ibv_wr_send(qpx);
	ibv_wr_set_xrc_srqn(qpx, 0x32);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	ASSERT_EQ(ibv_wr_complete(qpx), 0);
	EXPECT_EQ(at<tern_hw_ctrl_seg>(memory, 0, 0).srqn.get(), 0x31u);
	EXPECT_EQ(at<tern_hw_ctrl_seg>(memory, 1, 0).srqn.get(), 0u);
	EXPECT_EQ(at<tern_hw_ctrl_seg>(memory, 2, 0).srqn.get(), 0x32u);

	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	EXPECT_EQ(ibv_wr_complete(qpx), EINVAL) << "to no SRQ";
	EXPECT_EQ(post_recv(qp, 1), EINVAL);

	ASSERT_EQ(post_send(qp, 77), 0);
	complete(send_cq_memory_, 0, qp->qp_num, TERN_OP_SEND, 3);
	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(send_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 77u);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(PluginXrc, DomainsCanFail)
{
	ibv_xrcd_init_attr attr = {};
	EXPECT_EQ(ibv_open_xrcd(context_, &attr), nullptr);
	EXPECT_EQ(errno, EINVAL);
	fake_.fail(IB_USER_VERBS_CMD_CLOSE_XRCD, EBUSY);
	EXPECT_EQ(ibv_close_xrcd(xrcd_), EBUSY);
}

/* ---- windows ----------------------------------------------------------------------------------
 */

TEST_F(PluginServices, AWindowIsBoundWithANewKey)
{
	ibv_mw *mw = ibv_alloc_mw(pd_, IBV_MW_TYPE_1);
	ASSERT_NE(mw, nullptr);
	mw->rkey = 0x23ff;
	ibv_qp *qp = create(IBV_QPT_RC);
	const tern_create_qp_resp memory = fake_.last_qp;
	ibv_mw_bind bind = {};
	bind.wr_id = 8;
	bind.send_flags = IBV_SEND_SIGNALED;
	bind.bind_info = {.mr = mr_,
	                  .addr = reinterpret_cast<uint64_t>(buffer_),
	                  .length = 32,
	                  .mw_access_flags = IBV_ACCESS_REMOTE_READ};
	ASSERT_EQ(ibv_bind_mw(qp, mw, &bind), 0);
	EXPECT_EQ(mw->rkey, 0x2300u) << "the index stays";
	const auto seg = at<tern_hw_bind_seg>(memory, 0, 1);
	EXPECT_EQ(seg.rkey.get(), 0x2300u);
	EXPECT_EQ(seg.lkey.get(), mr_->lkey);
	EXPECT_EQ(seg.length.get(), 32u);
	complete(send_cq_memory_, 0, qp->qp_num, TERN_OP_BIND_MW, 0);
	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(send_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 8u);
	EXPECT_EQ(wc.opcode, IBV_WC_BIND_MW);

	bind.bind_info.mw_access_flags = IBV_ACCESS_MW_BIND;
	EXPECT_EQ(ibv_bind_mw(qp, mw, &bind), EINVAL);
	EXPECT_EQ(mw->rkey, 0x2300u);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	fake_.fail(IB_USER_VERBS_CMD_DEALLOC_MW, EBUSY);
	EXPECT_EQ(ibv_dealloc_mw(mw), EBUSY);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(PluginServices, ExtendedWindowOperations)
{
	ibv_mw *mw = ibv_alloc_mw(pd_, IBV_MW_TYPE_2);
	ASSERT_NE(mw, nullptr);
	ibv_qp *qp = create_ex(IBV_QPT_RC, IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
	                                           IBV_QP_EX_WITH_SEND_WITH_INV);
	ASSERT_NE(qp, nullptr);
	const tern_create_qp_resp memory = fake_.last_qp;
	ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);
	ibv_mw_bind_info info = {
	        .mr = mr_, .addr = 0x10, .length = 1, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	ibv_wr_start(qpx);
	ibv_wr_bind_mw(qpx, mw, 0x2305, &info);
	ibv_wr_send_inv(qpx, 0x9900);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	ibv_wr_local_inv(qpx, 0x2305);
	ASSERT_EQ(ibv_wr_complete(qpx), 0);
	EXPECT_EQ(at<tern_hw_bind_seg>(memory, 0, 1).rkey.get(), 0x2305u);
	EXPECT_EQ(at<tern_hw_ctrl_seg>(memory, 1, 0).opcode, TERN_OP_SEND_INV);
	EXPECT_EQ(at<tern_hw_ctrl_seg>(memory, 1, 0).imm.get(), 0x9900u);
	EXPECT_EQ(at<tern_hw_ctrl_seg>(memory, 2, 0).imm.get(), 0x2305u);

	ibv_wr_start(qpx);
	ibv_wr_local_inv(qpx, 1);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	EXPECT_EQ(ibv_wr_complete(qpx), EINVAL) << "it has no data";
	info.mr = nullptr;
	ibv_wr_start(qpx);
	ibv_wr_bind_mw(qpx, mw, 0x2306, &info);
	EXPECT_EQ(ibv_wr_complete(qpx), EINVAL);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

/* ---- raw frames --------------------------------------------------------------------------------
 */

TEST_F(PluginServices, Flows)
{
	ibv_qp *raw = create(IBV_QPT_RAW_PACKET);
	ASSERT_NE(raw, nullptr);
	struct {
		ibv_flow_attr attr;
		ibv_flow_spec_eth eth;
	} flow = {};
	flow.attr.type = IBV_FLOW_ATTR_NORMAL;
	flow.attr.size = sizeof(flow);
	flow.attr.num_of_specs = 1;
	flow.attr.port = 1;
	flow.eth.type = IBV_FLOW_SPEC_ETH;
	flow.eth.size = sizeof(flow.eth);
	ibv_flow *created = ibv_create_flow(raw, &flow.attr);
	ASSERT_NE(created, nullptr);
	EXPECT_EQ(ibv_destroy_flow(created), 0);
	fake_.fail(IB_USER_VERBS_EX_CMD_CREATE_FLOW, EBUSY);
	EXPECT_EQ(ibv_create_flow(raw, &flow.attr), nullptr);
	EXPECT_EQ(errno, EBUSY);
	EXPECT_EQ(ibv_destroy_qp(raw), 0);
}

} // namespace
} // namespace tern::provider::test
