// SPDX-License-Identifier: GPL-2.0-or-later
/* Unreliable connected QPs: what is sent, and what is dropped without a word. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr size_t kMtu = 256;
constexpr uint64_t kInbox = 0x10000;

std::vector<std::byte> bytes(size_t n, unsigned from = 1)
{
	std::vector<std::byte> data(n);
	for (size_t i = 0; i < n; i++)
		data[i] = static_cast<std::byte>(i * 7 + from);
	return data;
}

class Uc : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.type = TERN_QPT_UC;
		qp_ = driver_.create_qp(options);
		qp_->connect(connection());
	}

	SendRequest request(uint8_t opcode, uint32_t length) const
	{
		SendRequest r;
		r.opcode = opcode;
		r.imm = 0xa1b2c3d4;
		r.remote_addr = 0x1000;
		r.rkey = 0x55;
		r.sges = {mr_->sge(5, length)};
		return r;
	}
	TestPacket send(Opcode opcode, uint32_t n, size_t size = kMtu, unsigned from = 1) const
	{
		return {.opcode = opcode,
		        .service = Service::Uc,
		        .psn = psn_after(kRqPsn, n),
		        .payload = bytes(size, from)};
	}
	TestPacket write(Opcode opcode, uint32_t n, uint64_t offset, uint32_t length,
	                 size_t size) const
	{
		TestPacket p = send(opcode, n, size);
		p.ext.reth = {mr_->va + offset, mr_->key, length};
		return p;
	}
	void post_recv(uint64_t at = 0, uint32_t length = 0x1000)
	{
		qp_->post_recv(mr_->sge(kInbox + at, length));
	}
	tern_hw_cqe only_cqe()
	{
		const auto cqes = cq_->drain();
		EXPECT_EQ(cqes.size(), 1u);
		return cqes.empty() ? tern_hw_cqe{} : cqes[0];
	}
	void expect_no_trace()
	{
		EXPECT_TRUE(cq_->drain().empty());
		EXPECT_TRUE(host_.wire.frames().empty());
		EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	}
};

/* ---- requester ---- */

TEST_F(Uc, SegmentsAndCompletesUnanswered)
{
	qp_->post_send(request(TERN_OP_WRITE_IMM, 2 * kMtu + 10));
	run();
	const auto all = all_sent();
	ASSERT_EQ(all.size(), 3u);
	const Opcode opcodes[] = {Opcode::RcWriteFirst, Opcode::RcWriteMiddle,
	                          Opcode::RcWriteLastImm};
	for (uint32_t i = 0; i < 3; i++) {
		EXPECT_EQ(all[i].service, Service::Uc);
		EXPECT_EQ(all[i].opcode, opcodes[i]);
		EXPECT_EQ(all[i].psn, psn_after(kSqPsn, i));
		EXPECT_FALSE(all[i].ack_request);
		EXPECT_EQ(all[i].payload, content(5 + i * kMtu, i < 2 ? kMtu : 10));
	}
	EXPECT_EQ(all[0].ext.reth.length, 2 * kMtu + 10);
	EXPECT_EQ(all[2].ext.imm, 0xa1b2c3d4u);
	EXPECT_EQ(only_cqe().status, TERN_WC_SUCCESS);
	EXPECT_EQ(qp_->query().sq_psn.get(), psn_after(kSqPsn, 3));
}

/* A window is bound in its turn, and not a packet is sent for it. */
TEST_F(Uc, BindsWindows)
{
	const HostMr region =
	        driver_.create_mr(pd_, 0x5000, 4096, kAllAccess | TERN_ACCESS_MW_BIND);
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 0);
	SendRequest bind{.opcode = TERN_OP_BIND_MW};
	bind.bind.emplace();
	bind.bind->addr = 0x5000u;
	bind.bind->length = 64u;
	bind.bind->rkey = mw + 1;
	bind.bind->lkey = region.key;
	bind.bind->access = TERN_ACCESS_REMOTE_WRITE;
	qp_->post_send(bind);
	run();
	EXPECT_EQ(only_cqe().status, TERN_WC_SUCCESS);
	EXPECT_TRUE(all_sent().empty());
	auto p = write(Opcode::RcWriteOnly, 0, 0, 64, 64);
	p.ext.reth.va = 0x5000;
	p.ext.reth.rkey = mw + 1;
	give(p);
	EXPECT_EQ(region.read(0, 64), p.payload);
	/* A bind that is refused stops the send queue. */
	bind.bind->lkey = 0u;
	qp_->post_send(bind);
	run();
	EXPECT_EQ(only_cqe().status, TERN_WC_MW_BIND_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_SQE);
}

TEST_F(Uc, SendOnlyAndEmpty)
{
	qp_->post_send(request(TERN_OP_SEND, 0));
	qp_->post_send(request(TERN_OP_SEND_IMM, 7));
	run();
	const auto all = all_sent();
	ASSERT_EQ(all.size(), 2u);
	EXPECT_EQ(all[0].opcode, Opcode::RcSendOnly);
	EXPECT_TRUE(all[0].payload.empty());
	EXPECT_EQ(all[1].opcode, Opcode::RcSendOnlyImm);
	EXPECT_EQ(cq_->drain().size(), 2u);
}

/* A READ is not of this service: SQE, and what comes after it is flushed; then it can go on. */
TEST_F(Uc, ErrorStopsTheSendQueueOnly)
{
	qp_->post_send(request(TERN_OP_READ, 8), false);
	qp_->post_send(request(TERN_OP_SEND, 8));
	run();
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 2u);
	EXPECT_EQ(cqes[0].status, TERN_WC_LOC_QP_OP_ERR);
	EXPECT_EQ(cqes[1].status, TERN_WC_WR_FLUSH_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_SQE);

	post_recv();
	give(send(Opcode::RcSendOnly, 0, 9));
	EXPECT_EQ(only_cqe().byte_len.get(), 9u);

	EXPECT_EQ(qp_->set_state(TERN_QPS_RTS), TERN_AQ_OK);
	qp_->post_send(request(TERN_OP_SEND, 8));
	run();
	EXPECT_EQ(only_cqe().status, TERN_WC_SUCCESS);
	EXPECT_EQ(all_sent().size(), 1u);
}

TEST_F(Uc, BadLocalKey)
{
	auto r = request(TERN_OP_SEND, 8);
	r.sges[0].lkey ^= 1;
	qp_->post_send(r);
	run();
	EXPECT_EQ(only_cqe().status, TERN_WC_LOC_PROT_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_SQE);
	EXPECT_TRUE(host_.wire.frames().empty());
}

/* SQD lets the message under way end, and starts no other. */
TEST_F(Uc, DrainsAtTheEndOfAMessage)
{
	host_.wire.accept_only(1);
	qp_->post_send(request(TERN_OP_SEND, 3 * kMtu));
	run();
	tern_hw_qp_attr attr{};
	attr.state = TERN_QPS_SQD;
	attr.en_sqd_async_notify = 1;
	EXPECT_EQ(qp_->modify(TERN_QP_STATE | TERN_QP_EN_SQD_ASYNC_NOTIFY, attr), TERN_AQ_OK);
	qp_->post_send(request(TERN_OP_SEND, 8));
	EXPECT_FALSE(event(TERN_EVENT_SQ_DRAINED, qp_->number));
	open_wire();
	EXPECT_TRUE(event(TERN_EVENT_SQ_DRAINED, qp_->number));
	EXPECT_EQ(all_sent().size(), 3u);
	EXPECT_EQ(cq_->drain().size(), 1u);
}

/* ---- responder ---- */

TEST_F(Uc, ReceivesAMessage)
{
	post_recv();
	give(send(Opcode::RcSendFirst, 0));
	give(send(Opcode::RcSendMiddle, 1));
	auto last = send(Opcode::RcSendLastImm, 2, 20);
	last.ext.imm = 77;
	give(last);
	const auto cqe = only_cqe();
	EXPECT_EQ(cqe.byte_len.get(), 2 * kMtu + 20);
	EXPECT_EQ(cqe.imm.get(), 77u);
	EXPECT_EQ(cqe.flags, TERN_CQE_IMM);
	EXPECT_EQ(mr_->read(kInbox + kMtu, kMtu), bytes(kMtu));
	expect_no_trace();
	EXPECT_EQ(stat(TERN_STAT_UC_RX_DROPPED), 0u);
}

/* A gap ends the message; its receive WQE serves the next one. */
TEST_F(Uc, GapEndsTheMessage)
{
	post_recv();
	give(send(Opcode::RcSendFirst, 0));
	give(send(Opcode::RcSendLast, 2, 20));
	expect_no_trace();
	EXPECT_EQ(stat(TERN_STAT_UC_RX_DROPPED), 1u);

	give(send(Opcode::RcSendMiddle, 3)); /* of no message */
	EXPECT_EQ(stat(TERN_STAT_UC_RX_DROPPED), 2u);
	give(send(Opcode::RcSendOnly, 9, 30, 5));
	EXPECT_EQ(only_cqe().byte_len.get(), 30u);
	EXPECT_EQ(mr_->read(kInbox, 30), bytes(30, 5));
	EXPECT_EQ(qp_->query().rq_psn.get(), psn_after(kRqPsn, 10));
}

/* Past: what came late or twice is dropped, and the message under way goes on. */
TEST_F(Uc, LatePackets)
{
	post_recv();
	post_recv(0x2000);
	give(send(Opcode::RcSendOnly, 0, 10));
	give(send(Opcode::RcSendFirst, 1));
	give(send(Opcode::RcSendOnly, 0, 10));
	give(send(Opcode::RcSendFirst, 1));
	give(send(Opcode::RcSendLast, 2, 20));
	give(send(Opcode::RcSendOnly, 3 - 0x10000, 10));
	EXPECT_EQ(cq_->drain().size(), 2u);
	EXPECT_EQ(stat(TERN_STAT_UC_RX_DROPPED), 3u);
	EXPECT_EQ(qp_->query().rq_psn.get(), psn_after(kRqPsn, 3));
}

/* Too far behind to be late: so much was lost that the PSNs have gone round. */
TEST_F(Uc, FarBehindIsNew)
{
	post_recv();
	give(send(Opcode::RcSendOnly, -0x10001u, 10));
	EXPECT_EQ(only_cqe().byte_len.get(), 10u);
	EXPECT_EQ(qp_->query().rq_psn.get(), psn_after(kRqPsn, -0x10000u));
}

/* First where Middle was due: the old message is given up for the new one. */
TEST_F(Uc, FirstBeginsAnew)
{
	post_recv();
	give(send(Opcode::RcSendFirst, 0));
	give(send(Opcode::RcSendFirst, 1, kMtu, 9));
	give(send(Opcode::RcSendLast, 2, 4, 9));
	EXPECT_EQ(only_cqe().byte_len.get(), kMtu + 4);
	EXPECT_EQ(mr_->read(kInbox, kMtu), bytes(kMtu, 9));
}

TEST_F(Uc, NoReceiveWqe)
{
	give(send(Opcode::RcSendFirst, 0));
	post_recv();
	give(send(Opcode::RcSendLast, 1, 20)); /* too late for this message */
	expect_no_trace();
	EXPECT_EQ(stat(TERN_STAT_UC_RX_DROPPED), 2u);
	give(send(Opcode::RcSendOnly, 2, 20));
	EXPECT_EQ(only_cqe().byte_len.get(), 20u);
}

TEST_F(Uc, TooLongForItsWqe)
{
	post_recv(0, kMtu);
	give(send(Opcode::RcSendFirst, 0));
	give(send(Opcode::RcSendLast, 1, 1));
	EXPECT_EQ(only_cqe().status, TERN_WC_LOC_LEN_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	EXPECT_EQ(stat(TERN_STAT_RESP_CQE_ERRORS), 1u);
	EXPECT_EQ(stat(TERN_STAT_UC_RX_DROPPED), 0u);
	EXPECT_TRUE(host_.wire.frames().empty());
}

TEST_F(Uc, Write)
{
	give(write(Opcode::RcWriteFirst, 0, 100, kMtu + 6, kMtu));
	give(write(Opcode::RcWriteLast, 1, 0, 0, 6));
	EXPECT_EQ(mr_->read(100, kMtu), bytes(kMtu));
	EXPECT_EQ(mr_->read(100 + kMtu, 6), bytes(6));
	EXPECT_EQ(stat(TERN_STAT_RESP_WRITES), 1u);
	expect_no_trace();
}

TEST_F(Uc, WriteWithImmediate)
{
	post_recv();
	auto p = write(Opcode::RcWriteOnlyImm, 0, 8, 5, 5);
	p.ext.imm = 3;
	give(p);
	const auto cqe = only_cqe();
	EXPECT_EQ(cqe.opcode, TERN_CQE_RECV_WRITE_IMM);
	EXPECT_EQ(cqe.byte_len.get(), 5u);
	EXPECT_EQ(cqe.imm.get(), 3u);
	/* Without a receive WQE the packet is dropped, and its bytes with it. */
	give(write(Opcode::RcWriteOnlyImm, 1, 500, 5, 5));
	EXPECT_EQ(mr_->read(500, 5), content(500, 5));
	EXPECT_EQ(stat(TERN_STAT_UC_RX_DROPPED), 1u);
}

/* Wrong key, too far, wrong length: nothing is written, and nobody is told. */
TEST_F(Uc, WriteThatIsNotAllowed)
{
	auto bad_key = write(Opcode::RcWriteOnly, 0, 8, 5, 5);
	bad_key.ext.reth.rkey ^= 1;
	give(bad_key);
	give(write(Opcode::RcWriteOnly, 1, kSize - 2, 5, 5));
	give(write(Opcode::RcWriteOnly, 2, 8, 6, 5));
	give(write(Opcode::RcWriteFirst, 3, 8, kMtu, kMtu)); /* nothing left for a Last */
	EXPECT_EQ(mr_->read(8, kMtu), content(8, kMtu));
	EXPECT_EQ(stat(TERN_STAT_UC_RX_DROPPED), 4u);
	expect_no_trace();
}

TEST_F(Uc, WrongSizes)
{
	post_recv();
	give(send(Opcode::RcSendFirst, 0, kMtu - 4)); /* not full */
	give(send(Opcode::RcSendOnly, 1, kMtu + 4));  /* more than the path takes */
	expect_no_trace();
	EXPECT_EQ(stat(TERN_STAT_UC_RX_DROPPED), 2u);
}

/* Requests of other services are for no QP of this one. */
TEST_F(Uc, OtherService)
{
	post_recv();
	auto p = send(Opcode::RcSendOnly, 0, 8);
	p.service = Service::Rc;
	give(p);
	EXPECT_EQ(stat(TERN_STAT_RX_NO_QP), 1u);
	expect_no_trace();
}

} // namespace
} // namespace tern::test
