// SPDX-License-Identifier: GPL-2.0-or-later
/* The plugin's datagrams, multicast, flows and windows, through libibverbs. */
#include <arpa/inet.h>

#include "plugin_services_fixture.h"

namespace tern::provider::test {
namespace {

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
	/* Of the flags that libibverbs knows, the driver says which there are. */
	ibv_qp *other = create_ex(IBV_QPT_UD, 0, nullptr, IBV_QP_CREATE_SCATTER_FCS);
	ASSERT_NE(other, nullptr);
	EXPECT_EQ(fake_.last_create_flags, uint32_t{IBV_QP_CREATE_SCATTER_FCS});
	EXPECT_EQ(ibv_destroy_qp(other), 0);
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

TEST_F(PluginServices, CountersAreWhereTheProgramAttachesThem)
{
	ibv_counters_init_attr init = {};
	ibv_counters *counters = ibv_create_counters(context_, &init);
	ASSERT_NE(counters, nullptr);
	EXPECT_EQ(fake_.counters, 1);
	fake_.counted = {11, 2200};
	std::array<uint64_t, 6> values;
	values.fill(99);
	ASSERT_EQ(ibv_read_counters(counters, values.data(), 2, 0), 0);
	EXPECT_EQ(values, (std::array<uint64_t, 6>{0, 0, 99, 99, 99, 99})) << "nothing attached";

	ibv_counter_attach_attr attach = {IBV_COUNTER_BYTES, 1, 0};
	EXPECT_EQ(ibv_attach_counters_point_flow(counters, &attach, nullptr), 0);
	attach = {IBV_COUNTER_PACKETS, 4, 0};
	EXPECT_EQ(ibv_attach_counters_point_flow(counters, &attach, nullptr), 0);
	ASSERT_EQ(ibv_read_counters(counters, values.data(), values.size(), 0), 0);
	EXPECT_EQ(values, (std::array<uint64_t, 6>{0, 2200, 0, 0, 11, 0}));

	/* ibv_attach_counters_point_flow(3): an index that is set more than once aggregates. */
	attach = {IBV_COUNTER_PACKETS, 1, 0};
	EXPECT_EQ(ibv_attach_counters_point_flow(counters, &attach, nullptr), 0);
	attach = {IBV_COUNTER_PACKETS, 4, 0};
	EXPECT_EQ(ibv_attach_counters_point_flow(counters, &attach, nullptr), 0);
	ASSERT_EQ(ibv_read_counters(counters, values.data(), values.size(), 0), 0);
	EXPECT_EQ(values, (std::array<uint64_t, 6>{0, 2211, 0, 0, 22, 0}));

	attach = {static_cast<ibv_counter_description>(2), 0, 0};
	EXPECT_EQ(ibv_attach_counters_point_flow(counters, &attach, nullptr), EOPNOTSUPP);
	attach = {IBV_COUNTER_BYTES, 32, 0};
	EXPECT_EQ(ibv_attach_counters_point_flow(counters, &attach, nullptr), EINVAL);
	attach = {IBV_COUNTER_BYTES, 0, 1};
	EXPECT_EQ(ibv_attach_counters_point_flow(counters, &attach, nullptr), EOPNOTSUPP);
	ibv_flow flow = {};
	attach = {IBV_COUNTER_BYTES, 0, 0};
	EXPECT_EQ(ibv_attach_counters_point_flow(counters, &attach, &flow), EOPNOTSUPP);
	EXPECT_EQ(ibv_destroy_counters(counters), 0);
	EXPECT_EQ(fake_.counters, 0);
}

class PluginCountedFlows : public PluginServices {
protected:
	PluginCountedFlows()
	{
		ibv_counters_init_attr init = {};
		raw_ = create(IBV_QPT_RAW_PACKET);
		counters_ = ibv_create_counters(context_, &init);
	}
	~PluginCountedFlows() override
	{
		EXPECT_EQ(ibv_destroy_counters(counters_), 0);
		EXPECT_EQ(ibv_destroy_qp(raw_), 0);
	}

	/* Specs follow one another without gaps, pointers in them or not. */
	ibv_flow *create_flow()
	{
		ibv_flow_attr attr = {};
		attr.type = IBV_FLOW_ATTR_NORMAL;
		attr.num_of_specs = 2;
		attr.port = 1;
		const ibv_flow_spec_counter_action count = {IBV_FLOW_SPEC_ACTION_COUNT,
		                                            sizeof(count), counters_};
		ibv_flow_spec_eth eth = {};
		eth.type = IBV_FLOW_SPEC_ETH;
		eth.size = sizeof(eth);
		attr.size = sizeof(attr) + sizeof(count) + sizeof(eth);
		alignas(8) std::array<std::byte, sizeof(attr) + sizeof(count) + sizeof(eth)> flow;
		std::memcpy(flow.data(), &attr, sizeof(attr));
		std::memcpy(flow.data() + sizeof(attr), &count, sizeof(count));
		std::memcpy(flow.data() + sizeof(attr) + sizeof(count), &eth, sizeof(eth));
		return ibv_create_flow(raw_, reinterpret_cast<ibv_flow_attr *>(flow.data()));
	}
	int attach()
	{
		ibv_counter_attach_attr attr = {IBV_COUNTER_PACKETS, 0, 0};
		return ibv_attach_counters_point_flow(counters_, &attr, nullptr);
	}

	ibv_qp *raw_ = nullptr;
	ibv_counters *counters_ = nullptr;
};

TEST_F(PluginCountedFlows, AFlowNamesItsCounters)
{
	ibv_flow *created = create_flow();
	ASSERT_NE(created, nullptr);
	EXPECT_EQ(fake_.last_flow_counters, FakeUverbs::kCountersHandle);
	EXPECT_EQ(ibv_destroy_flow(created), 0);
}

/* ibv_attach_counters_point_flow(3): EBUSY if the counters are bound to a flow. */
TEST_F(PluginCountedFlows, NothingIsAttachedWhileAFlowExists)
{
	EXPECT_EQ(attach(), 0);
	ibv_flow *first = create_flow(), *second = create_flow();
	ASSERT_NE(first, nullptr);
	ASSERT_NE(second, nullptr);
	EXPECT_EQ(attach(), EBUSY);
	EXPECT_EQ(ibv_destroy_flow(first), 0);
	EXPECT_EQ(attach(), EBUSY) << "one is left";
	EXPECT_EQ(ibv_destroy_counters(counters_), EBUSY);
	fake_.fail(IB_USER_VERBS_EX_CMD_DESTROY_FLOW, EIO);
	EXPECT_EQ(ibv_destroy_flow(second), EIO);
	EXPECT_EQ(attach(), EBUSY) << "it is still there";
	EXPECT_EQ(ibv_destroy_flow(second), 0);
	EXPECT_EQ(attach(), 0);
	fake_.fail(IB_USER_VERBS_EX_CMD_CREATE_FLOW, EBUSY);
	EXPECT_EQ(create_flow(), nullptr);
	EXPECT_EQ(attach(), 0) << "there is none";
	fake_.counted = {11, 2200};
	uint64_t value = 0;
	ASSERT_EQ(ibv_read_counters(counters_, &value, 1, 0), 0);
	EXPECT_EQ(value, 33u) << "what was refused does not count";
}

} // namespace
} // namespace tern::provider::test
