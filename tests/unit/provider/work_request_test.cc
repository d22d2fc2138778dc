// SPDX-License-Identifier: GPL-2.0-or-later
#include "datapath/work_request.h"

#include <cerrno>

#include <arpa/inet.h>

#include "datapath/address_handle.h"
#include "queue_fixture.h"

namespace tern::provider::test {

class WorkRequestTest : public QueueFixture {
protected:
	WorkRequestTest() { make_sq(sq_, 16); }

	ibv_send_wr send_wr(ibv_wr_opcode opcode)
	{
		ibv_send_wr wr = {};
		wr.wr_id = 1;
		wr.opcode = opcode;
		wr.sg_list = &sge_;
		wr.num_sge = 1;
		wr.imm_data = htonl(0x01020304);
		return wr;
	}

	int post(ibv_send_wr &wr)
	{
		bad_ = nullptr;
		return post_send_list(sq_, &wr, &bad_);
	}

	char data_[8] = "payload";
	ibv_sge sge_ = {reinterpret_cast<uint64_t>(data_), 8, 0x100};
	ibv_send_wr *bad_ = nullptr;
	SendQueue sq_;
};

TEST_F(WorkRequestTest, OpcodesAndOperands)
{
	const std::pair<ibv_wr_opcode, uint8_t> rdma[] = {
	        {IBV_WR_SEND, TERN_OP_SEND},        {IBV_WR_SEND_WITH_IMM, TERN_OP_SEND_IMM},
	        {IBV_WR_RDMA_WRITE, TERN_OP_WRITE}, {IBV_WR_RDMA_WRITE_WITH_IMM, TERN_OP_WRITE_IMM},
	        {IBV_WR_RDMA_READ, TERN_OP_READ},   {IBV_WR_ATOMIC_WRITE, TERN_OP_ATOMIC_WRITE},
	};
	size_t block = 0;
	for (const auto &[opcode, expected] : rdma) {
		ibv_send_wr wr = send_wr(opcode);
		wr.wr.rdma.remote_addr = 0x1234;
		wr.wr.rdma.rkey = 0x5678;
		ASSERT_EQ(post(wr), 0);
		const auto ctrl = segment<tern_hw_ctrl_seg>(4 * block);
		EXPECT_EQ(ctrl.opcode, expected);
		const bool imm = expected == TERN_OP_SEND_IMM || expected == TERN_OP_WRITE_IMM;
		EXPECT_EQ(ctrl.imm.get(), imm ? 0x01020304u : 0u);
		if (expected >= TERN_OP_WRITE) {
			EXPECT_EQ(segment<tern_hw_raddr_seg>(4 * block + 1).addr.get(), 0x1234u);
			EXPECT_EQ(segment<tern_hw_raddr_seg>(4 * block + 1).rkey.get(), 0x5678u);
		}
		block++;
	}

	ibv_send_wr cas = send_wr(IBV_WR_ATOMIC_CMP_AND_SWP);
	cas.wr.atomic = {.remote_addr = 0x10, .compare_add = 0x20, .swap = 0x30, .rkey = 0x40};
	ASSERT_EQ(post(cas), 0);
	EXPECT_EQ(segment<tern_hw_raddr_seg>(4 * block + 1).addr.get(), 0x10u);
	EXPECT_EQ(segment<tern_hw_raddr_seg>(4 * block + 1).rkey.get(), 0x40u);
	EXPECT_EQ(segment<tern_hw_atomic_seg>(4 * block + 2).swap_add.get(), 0x30u);
	EXPECT_EQ(segment<tern_hw_atomic_seg>(4 * block + 2).compare.get(), 0x20u);
	block++;

	ibv_send_wr faa = send_wr(IBV_WR_ATOMIC_FETCH_AND_ADD);
	faa.wr.atomic = {.remote_addr = 0x10, .compare_add = 0x20, .swap = 0x30, .rkey = 0x40};
	ASSERT_EQ(post(faa), 0);
	EXPECT_EQ(segment<tern_hw_atomic_seg>(4 * block + 2).swap_add.get(), 0x20u);
	EXPECT_EQ(segment<tern_hw_atomic_seg>(4 * block + 2).compare.get(), 0u);
}

TEST_F(WorkRequestTest, Invalidations)
{
	ibv_send_wr send = send_wr(IBV_WR_SEND_WITH_INV);
	send.invalidate_rkey = 0x11223344;
	ASSERT_EQ(post(send), 0);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(0).opcode, TERN_OP_SEND_INV);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(0).imm.get(), 0x11223344u);
	EXPECT_EQ(segment<tern_hw_data_seg>(1).length.get(), 8u);

	ibv_send_wr local = send_wr(IBV_WR_LOCAL_INV);
	local.invalidate_rkey = 0x55667788;
	ASSERT_EQ(post(local), 0);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(4).opcode, TERN_OP_LOCAL_INV);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(4).imm.get(), 0x55667788u);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(4).segs, 1) << "a data list means nothing here";
}

TEST_F(WorkRequestTest, Binds)
{
	ibv_mw mw = {};
	ibv_mr mr = {};
	mw.type = IBV_MW_TYPE_2;
	mr.lkey = 0x4300;
	ibv_send_wr wr = send_wr(IBV_WR_BIND_MW);
	wr.bind_mw.mw = &mw;
	wr.bind_mw.rkey = 0x4201;
	wr.bind_mw.bind_info = {.mr = &mr,
	                        .addr = 0x1000,
	                        .length = 0x2000,
	                        .mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED |
	                                           IBV_ACCESS_LOCAL_WRITE};
	ASSERT_EQ(post(wr), 0);
	tern_hw_bind_seg bind;
	std::memcpy(&bind, ring_.bytes + 16, sizeof(bind));
	EXPECT_EQ(bind.addr.get(), 0x1000u);
	EXPECT_EQ(bind.length.get(), 0x2000u);
	EXPECT_EQ(bind.rkey.get(), 0x4201u);
	EXPECT_EQ(bind.lkey.get(), 0x4300u);
	EXPECT_EQ(bind.access, TERN_ACCESS_REMOTE_WRITE | TERN_ACCESS_ZERO_BASED);

	mw.type = IBV_MW_TYPE_1;
	EXPECT_EQ(post(wr), EINVAL) << "a window of type 1 is not zero based";
	mw.type = IBV_MW_TYPE_2;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_MW_BIND;
	EXPECT_EQ(post(wr), EINVAL);
	wr.bind_mw.bind_info.mw_access_flags = 0;
	wr.bind_mw.bind_info.mr = nullptr;
	EXPECT_EQ(post(wr), EINVAL) << "of no region";
	wr.bind_mw.bind_info.length = 0;
	EXPECT_EQ(post(wr), 0);
	wr.bind_mw.mw = nullptr;
	EXPECT_EQ(post(wr), EINVAL);
}

TEST_F(WorkRequestTest, Datagrams)
{
	SendQueue ud;
	SendQueue::Config config = sq_config(16);
	config.service = Service::kUd;
	config.ops = send_ops_of(Service::kUd, kAllCaps);
	ASSERT_EQ(ud.init(config), 0);
	ud.open();
	Ah ah = {};
	ah.segment.sl = 3;
	ibv_send_wr wr = send_wr(IBV_WR_SEND_WITH_IMM), *bad = nullptr;
	wr.wr.ud = {.ah = &ah.verbs, .remote_qpn = 0x123, .remote_qkey = 0x456};
	ASSERT_EQ(post_send_list(ud, &wr, &bad), 0);
	tern_hw_ud_seg to;
	std::memcpy(&to, ring_.bytes + 16, sizeof(to));
	EXPECT_EQ(to.sl, 3);
	EXPECT_EQ(to.dest_qpn.get(), 0x123u);
	EXPECT_EQ(to.qkey.get(), 0x456u);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(0).imm.get(), 0x01020304u);
	EXPECT_EQ(segment<tern_hw_data_seg>(4).length.get(), 8u);

	wr.wr.ud.ah = nullptr;
	EXPECT_EQ(post_send_list(ud, &wr, &bad), EINVAL);
	EXPECT_EQ(bad, &wr);
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.ud.ah = &ah.verbs;
	EXPECT_EQ(post_send_list(ud, &wr, &bad), EINVAL);
}

TEST_F(WorkRequestTest, XrcRequests)
{
	SendQueue xrc;
	SendQueue::Config config = sq_config(16);
	config.service = Service::kXrcSend;
	config.ops = send_ops_of(Service::kXrcSend, kAllCaps);
	ASSERT_EQ(xrc.init(config), 0);
	xrc.open();
	ibv_send_wr wr = send_wr(IBV_WR_SEND), *bad = nullptr;
	wr.qp_type.xrc.remote_srqn = 0x777;
	ASSERT_EQ(post_send_list(xrc, &wr, &bad), 0);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(0).srqn.get(), 0x777u);
	wr.opcode = IBV_WR_LOCAL_INV;
	ASSERT_EQ(post_send_list(xrc, &wr, &bad), 0);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(4).srqn.get(), 0u) << "it goes nowhere";

	ibv_send_wr rc = send_wr(IBV_WR_SEND);
	rc.qp_type.xrc.remote_srqn = 0x777;
	ASSERT_EQ(post(rc), 0);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(0).srqn.get(), 0u) << "reserved for others";
}

TEST_F(WorkRequestTest, Flags)
{
	ibv_send_wr wr = send_wr(IBV_WR_SEND);
	wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE | IBV_SEND_SOLICITED | IBV_SEND_INLINE;
	ASSERT_EQ(post(wr), 0);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(0).flags,
	          TERN_WQE_SIGNALED | TERN_WQE_FENCE | TERN_WQE_SOLICITED | TERN_WQE_INLINE);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(0).inline_len.get(), 8u);
	EXPECT_EQ(std::memcmp(ring_.bytes + 16, data_, 8), 0);
}

TEST_F(WorkRequestTest, WhatWeDoNotKnowIsRefused)
{
	for (const int opcode : {+IBV_WR_TSO, +IBV_WR_DRIVER1, 100, -1}) {
		ibv_send_wr wr = send_wr(IBV_WR_SEND);
		std::memcpy(&wr.opcode, &opcode, sizeof(opcode));
		EXPECT_EQ(post(wr), EINVAL);
		EXPECT_EQ(bad_, &wr);
	}
	ibv_send_wr wr = send_wr(IBV_WR_SEND);
	wr.send_flags = IBV_SEND_IP_CSUM;
	EXPECT_EQ(post(wr), EINVAL);
	wr.send_flags = 1u << 20;
	EXPECT_EQ(post(wr), EINVAL);
	wr = send_wr(IBV_WR_SEND);
	wr.num_sge = -1;
	EXPECT_EQ(post(wr), EINVAL);
	wr.num_sge = 1;
	wr.sg_list = nullptr;
	EXPECT_EQ(post(wr), EINVAL);
	EXPECT_EQ(doorbell(TERN_DB_SQ), kNoDoorbell);
}

TEST_F(WorkRequestTest, AListIsPostedUpToItsFirstBadOne)
{
	ibv_send_wr list[3] = {send_wr(IBV_WR_SEND), send_wr(IBV_WR_TSO), send_wr(IBV_WR_SEND)};
	list[0].next = &list[1];
	list[1].next = &list[2];

	EXPECT_EQ(post(list[0]), EINVAL);
	EXPECT_EQ(bad_, &list[1]);
	EXPECT_EQ(doorbell(TERN_DB_SQ) >> 32, 1u) << "the first went out";
}

TEST_F(WorkRequestTest, AFullQueueNamesTheOneThatDidNotFit)
{
	ibv_send_wr list[17];
	for (int i = 0; i < 17; i++) {
		list[i] = send_wr(IBV_WR_SEND);
		list[i].next = i < 16 ? &list[i + 1] : nullptr;
	}
	EXPECT_EQ(post(list[0]), ENOMEM);
	EXPECT_EQ(bad_, &list[16]);
	EXPECT_EQ(doorbell(TERN_DB_SQ) >> 32, 16u);
}

TEST_F(WorkRequestTest, ReceiveLists)
{
	RecvQueue rq;
	ASSERT_EQ(rq.init({.ring = {ring_.bytes, 2 * 16},
	                   .record = QpRecord(&qp_record_),
	                   .entries = 2,
	                   .log_stride = 4,
	                   .max_sge = 1}),
	          0);
	ibv_recv_wr list[3] = {};
	for (int i = 0; i < 3; i++) {
		list[i].sg_list = &sge_;
		list[i].num_sge = 1;
		list[i].next = i < 2 ? &list[i + 1] : nullptr;
	}
	ibv_recv_wr *bad = nullptr;
	EXPECT_EQ(post_recv_list(rq, list, &bad), EINVAL) << "closed";
	EXPECT_EQ(bad, &list[0]);
	EXPECT_EQ(qp_record_.rq_pi.get(), 0u);
	rq.open();
	EXPECT_EQ(post_recv_list(rq, list, &bad), ENOMEM);
	EXPECT_EQ(bad, &list[2]);
	EXPECT_EQ(qp_record_.rq_pi.get(), 2u);

	list[0].num_sge = 2;
	EXPECT_EQ(post_recv_list(rq, list, &bad), EINVAL);
	list[0].num_sge = -1;
	EXPECT_EQ(post_recv_list(rq, list, &bad), EINVAL);
	EXPECT_EQ(bad, &list[0]);
	list[0].num_sge = 1;
	list[0].sg_list = nullptr;
	EXPECT_EQ(post_recv_list(rq, list, &bad), EINVAL);
}

TEST(Status, TheCardsNumbersAreThoseOfTheApi)
{
	EXPECT_EQ(int{TERN_WC_LOC_LEN_ERR}, int{IBV_WC_LOC_LEN_ERR});
	EXPECT_EQ(int{TERN_WC_LOC_QP_OP_ERR}, int{IBV_WC_LOC_QP_OP_ERR});
	EXPECT_EQ(int{TERN_WC_LOC_PROT_ERR}, int{IBV_WC_LOC_PROT_ERR});
	EXPECT_EQ(int{TERN_WC_WR_FLUSH_ERR}, int{IBV_WC_WR_FLUSH_ERR});
	EXPECT_EQ(int{TERN_WC_MW_BIND_ERR}, int{IBV_WC_MW_BIND_ERR});
	EXPECT_EQ(int{TERN_WC_BAD_RESP_ERR}, int{IBV_WC_BAD_RESP_ERR});
	EXPECT_EQ(int{TERN_WC_LOC_ACCESS_ERR}, int{IBV_WC_LOC_ACCESS_ERR});
	EXPECT_EQ(int{TERN_WC_REM_INV_REQ_ERR}, int{IBV_WC_REM_INV_REQ_ERR});
	EXPECT_EQ(int{TERN_WC_REM_ACCESS_ERR}, int{IBV_WC_REM_ACCESS_ERR});
	EXPECT_EQ(int{TERN_WC_REM_OP_ERR}, int{IBV_WC_REM_OP_ERR});
	EXPECT_EQ(int{TERN_WC_RETRY_EXC_ERR}, int{IBV_WC_RETRY_EXC_ERR});
	EXPECT_EQ(int{TERN_WC_RNR_RETRY_EXC_ERR}, int{IBV_WC_RNR_RETRY_EXC_ERR});
	EXPECT_EQ(int{TERN_WC_FATAL_ERR}, int{IBV_WC_FATAL_ERR});
	EXPECT_EQ(int{TERN_WC_GENERAL_ERR}, int{IBV_WC_GENERAL_ERR});
}

} // namespace tern::provider::test
