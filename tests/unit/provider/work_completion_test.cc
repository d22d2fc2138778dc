// SPDX-License-Identifier: GPL-2.0-or-later
#include "datapath/work_completion.h"

#include <arpa/inet.h>

#include "queue_fixture.h"

namespace tern::provider::test {

class WorkCompletionTest : public QueueFixture {};

TEST_F(WorkCompletionTest, PolledCompletionsAreThoseOfTheApi)
{
	alignas(64) tern_hw_cqe cqes[16]{};
	alignas(64) tern_hw_cq_record record{};
	QpTable qps;
	SrqTable srqs;
	PlainSrqTable plain_srqs;
	CompletionQueue cq;
	SendQueue sq;
	RecvQueue rq;
	make_sq(sq, 16);
	ASSERT_EQ(rq.init({.ring = {ring_.bytes, 16 * 16},
	                   .record = QpRecord(&qp_record_),
	                   .entries = 16,
	                   .log_stride = 4,
	                   .max_sge = 1}),
	          0);
	ASSERT_EQ(cq.init({.buffer = {.ring = std::as_writable_bytes(std::span(cqes)),
	                              .record = CqRecord(&record)},
	                   .doorbells = {},
	                   .cqn = 1,
	                   .qps = &qps,
	                   .srqs = &srqs,
	                   .plain_srqs = &plain_srqs}),
	          0);
	ASSERT_TRUE(qps.reserve(5));
	qps.insert(5, {&sq, &cq}, {&rq, &cq}, {});

	const std::pair<uint8_t, ibv_wc_opcode> cases[] = {
	        {TERN_OP_SEND, IBV_WC_SEND},
	        {TERN_OP_SEND_IMM, IBV_WC_SEND},
	        {TERN_OP_WRITE, IBV_WC_RDMA_WRITE},
	        {TERN_OP_WRITE_IMM, IBV_WC_RDMA_WRITE},
	        {TERN_OP_READ, IBV_WC_RDMA_READ},
	        {TERN_OP_CMP_SWAP, IBV_WC_COMP_SWAP},
	        {TERN_OP_FETCH_ADD, IBV_WC_FETCH_ADD},
	        {TERN_OP_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE},
	        {TERN_OP_FLUSH, static_cast<ibv_wc_opcode>(8)}, /* of rdma-core 45 */
	        {TERN_OP_SEND_INV, IBV_WC_SEND},
	        {TERN_OP_LOCAL_INV, IBV_WC_LOCAL_INV},
	        {TERN_OP_BIND_MW, IBV_WC_BIND_MW},
	        {TERN_CQE_RECV, IBV_WC_RECV},
	        {TERN_CQE_RECV_WRITE_IMM, IBV_WC_RECV_RDMA_WITH_IMM},
	};
	uint32_t n = 0;
	for (const auto &[opcode, expected] : cases) {
		tern_hw_cqe &cqe = cqes[n++];
		cqe.byte_len = 77;
		cqe.imm = 0x01020304;
		cqe.qpn = 5;
		cqe.opcode = opcode;
		cqe.flags = TERN_CQE_IMM;
		cqe.phase = TERN_PHASE;
	}

	ibv_wc wc[16];
	ASSERT_EQ(poll_list(cq, 4, wc), 4);
	ASSERT_EQ(poll_list(cq, 16 - 4, wc + 4), static_cast<int>(std::size(cases)) - 4);
	EXPECT_EQ(record.ci.get(), std::size(cases));
	for (size_t i = 0; i < std::size(cases); i++) {
		EXPECT_EQ(wc[i].opcode, cases[i].second);
		EXPECT_EQ(wc[i].status, IBV_WC_SUCCESS);
		EXPECT_EQ(wc[i].byte_len, 77u);
		EXPECT_EQ(wc[i].imm_data, htonl(0x01020304));
		EXPECT_EQ(wc[i].wc_flags, IBV_WC_WITH_IMM);
		EXPECT_EQ(wc[i].qp_num, 5u);
	}
	EXPECT_EQ(poll_list(cq, 16, wc), 0);

	/* A datagram, and a message that invalidated a key. */
	tern_hw_cqe &ud = cqes[n++], &inv = cqes[n++];
	ud.qpn = inv.qpn = 5;
	ud.opcode = inv.opcode = TERN_CQE_RECV;
	ud.src_qpn = 0x123456;
	ud.net_type = TERN_NET_IPV4;
	ud.byte_len = 41;
	ud.flags = TERN_CQE_GRH;
	inv.imm = 0x11223344;
	inv.flags = TERN_CQE_INV;
	ud.phase = inv.phase = TERN_PHASE;
	ASSERT_EQ(poll_list(cq, 16, wc), 2);
	EXPECT_EQ(wc[0].src_qp, 0x123456u);
	EXPECT_EQ(wc[0].sl, 0xa);
	EXPECT_EQ(wc[0].byte_len, 41u);
	EXPECT_EQ(wc[0].wc_flags, IBV_WC_GRH);
	EXPECT_EQ(wc[1].wc_flags, IBV_WC_WITH_INV);
	EXPECT_EQ(wc[1].invalidated_rkey, 0x11223344u);
}

} // namespace tern::provider::test
