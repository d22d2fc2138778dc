// SPDX-License-Identifier: GPL-2.0-or-later
/* The responder of a card, fed with packets of the past, the expected one and those of the future.
 */
#include "qemu/rnic/transport/segmentation.h"
#include "tests/unit/transport/one_responder.h"

namespace tern::test {
namespace {

/* ---- SEND ---- */

/* Past: executed before, acknowledged again, no receive WQE taken. */
TEST_F(Responder, SendPast)
{
	post_recv();
	post_recv();
	give(send_only(0));
	expect_aeth(0, kAethAck);
	give(send_only(0));
	expect_aeth(0, kAethAck);
	EXPECT_EQ(cq_->drain().size(), 1u);
	EXPECT_EQ(stat(TERN_STAT_RESP_DUPLICATES), 1u);
}

/* Expected: placed, completed, acknowledged. */
TEST_F(Responder, SendExpected)
{
	post_recv();
	give(send_only(0, 100));
	expect_aeth(0, kAethAck);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].status, TERN_WC_SUCCESS);
	EXPECT_EQ(cqes[0].opcode, TERN_CQE_RECV);
	EXPECT_EQ(cqes[0].byte_len.get(), 100u);
	EXPECT_EQ(cqes[0].qpn.get(), qp_->number);
	EXPECT_EQ(mr_->read(0x10000, 100), bytes(100));
}

/* Future: one NAK names what is missing; further ones are dropped in silence until it came. */
TEST_F(Responder, SendFuture)
{
	post_recv();
	give(send_only(1));
	expect_aeth(0, kSeqNak);
	give(send_only(2));
	give(send_only(3));
	EXPECT_TRUE(all_sent().empty());
	give(send_only(0));
	expect_aeth(0, kAethAck);
	give(send_only(2));
	expect_aeth(1, kSeqNak);
	EXPECT_EQ(cq_->drain().size(), 1u);
	EXPECT_EQ(stat(TERN_STAT_RESP_OUT_OF_SEQUENCE), 2u);
	EXPECT_EQ(stat(TERN_STAT_RESP_TX_SEQ_NAK), 2u);
}

/* A message of several packets takes one receive WQE; its last packet is as short as it is. */
TEST_F(Responder, SendOfSeveralPackets)
{
	post_recv();
	give(send(Opcode::RcSendFirst, 0));
	give(send(Opcode::RcSendMiddle, 1));
	TestPacket last = send(Opcode::RcSendLastImm, 2, 7);
	last.ext.imm = 0xa1b2c3d4;
	give(last);
	const auto acks = all_sent();
	ASSERT_EQ(acks.size(), 3u);
	EXPECT_EQ(acks[1].ext.aeth.msn, 0u);
	EXPECT_EQ(acks[2].ext.aeth.msn, 1u);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].byte_len.get(), 2 * kMtu + 7);
	EXPECT_EQ(cqes[0].flags, TERN_CQE_IMM);
	EXPECT_EQ(cqes[0].imm.get(), 0xa1b2c3d4);
}

/* Acknowledgements that wait for the wire become one. */
TEST_F(Responder, AcksMerge)
{
	for (int i = 0; i < 3; i++)
		post_recv();
	for (uint32_t i = 0; i < 3; i++)
		give(send_only(i), path(), false);
	run();
	expect_aeth(2, kAethAck);
}

/* Who does not ask for an acknowledgement gets none. */
TEST_F(Responder, NoAckUnlessAsked)
{
	post_recv();
	auto p = send_only(0);
	p.ack_request = false;
	give(p);
	EXPECT_TRUE(all_sent().empty());
	EXPECT_EQ(cq_->drain().size(), 1u);
}

/* Credits are the receive WQEs that are left (10 are told as 8, the next code below). */
TEST_F(Responder, AckTellsCredits)
{
	for (int i = 0; i < 11; i++)
		post_recv();
	give(send_only(0));
	EXPECT_EQ(decode_credits(sent()->ext.aeth.syndrome), 8u);
}

/* No receive WQE: RNR NAK with our timer code, nothing executed; the same packet later succeeds. */
TEST_F(Responder, RnrAndRetry)
{
	give(send_only(0));
	expect_aeth(0, kAethRnrNak | connection().min_rnr_timer);
	/* what was in flight behind it */
	give(send_only(1));
	EXPECT_TRUE(all_sent().empty());
	post_recv();
	give(send_only(0));
	expect_aeth(0, kAethAck);
	EXPECT_EQ(cq_->drain().size(), 1u);
}

TEST_F(Responder, SolicitedCompletionRaisesItsEvent)
{
	post_recv();
	post_recv();
	cq_->arm(true);
	give(send_only(0));
	EXPECT_FALSE(event(TERN_EVENT_COMP, cq_->number));
	auto p = send_only(1);
	p.solicited = true;
	give(p);
	EXPECT_TRUE(event(TERN_EVENT_COMP, cq_->number));
}

/* More than the receive WQE holds: it ends with a length error, the sender hears of an invalid
 * request. */
TEST_F(Responder, SendTooLong)
{
	qp_->post_recv(mr_->sge(0, 300));
	post_recv();
	give(send(Opcode::RcSendFirst, 0));
	all_sent();
	give(send(Opcode::RcSendLast, 1, 45));
	expect_aeth(1, kInvalidNak);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 2u);
	EXPECT_EQ(cqes[0].status, TERN_WC_LOC_LEN_ERR);
	EXPECT_EQ(cqes[1].status, TERN_WC_WR_FLUSH_ERR);
}

/* Receive buffers may hold more than the longest message; its length must fit into a CQE. */
TEST(SendFits, UpToTheLongestMessage)
{
	constexpr uint64_t kMost = 1ull << 31;
	EXPECT_TRUE(send_fits(0, 300, 300));
	EXPECT_FALSE(send_fits(256, 45, 300));
	EXPECT_TRUE(send_fits(kMost - kMtu, kMtu, 1ull << 34));
	EXPECT_FALSE(send_fits(kMost - kMtu + 1, kMtu, 1ull << 34));
	EXPECT_FALSE(send_fits((1ull << 32) - kMtu, kMtu, 1ull << 34));
}

/* Exactly what it holds is fine; a message of nothing needs no memory. */
TEST_F(Responder, SendJustFits)
{
	qp_->post_recv(mr_->sge(0, 256));
	qp_->post_recv(std::span<const Sge>{});
	give(send_only(0, 256));
	give(send_only(1, 0));
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 2u);
	EXPECT_EQ(cqes[0].status, TERN_WC_SUCCESS);
	EXPECT_EQ(cqes[1].status, TERN_WC_SUCCESS);
	EXPECT_EQ(cqes[1].byte_len.get(), 0u);
}

/* Our own receive buffer is not ours: the sender hears of an operational error. */
TEST_F(Responder, ReceiveBufferNotRegistered)
{
	qp_->post_recv(Sge{mr_->va, 4096, mr_->key ^ 1});
	give(send_only(0));
	expect_aeth(0, kOperationNak);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].status, TERN_WC_LOC_PROT_ERR);
}

/* The host never hears of a message whose CQE was lost, so the peer gets no acknowledgement. */
TEST_F(Responder, NoAckWithoutACompletion)
{
	cq_ = driver_.create_cq(*eq_, 1);
	connect(connection());
	for (int i = 0; i < 3; i++)
		post_recv();
	give(send_only(0));
	give(send_only(1));
	EXPECT_EQ(all_sent().size(), 2u);
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	give(send_only(2));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	EXPECT_TRUE(event(TERN_EVENT_QP_FATAL, qp_->number));
	EXPECT_TRUE(all_sent().empty());
}

TEST_F(Responder, NoAckOfAWriteWithoutACompletion)
{
	cq_ = driver_.create_cq(*eq_, 1);
	connect(connection());
	for (int i = 0; i < 3; i++)
		post_recv();
	for (uint32_t i = 0; i < 2; i++) {
		give(write(Opcode::RcWriteOnlyImm, i, 0, 8, 8));
		expect_aeth(i, kAethAck);
	}
	give(write(Opcode::RcWriteOnlyImm, 2, 0, 8, 8));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	EXPECT_TRUE(all_sent().empty());
}

/* ---- order and sizes: each is an invalid request ---- */

struct Step {
	Opcode opcode;
	size_t size;
};
struct BadSequence {
	const char *name;
	std::vector<Step> steps; /* the last is wrong */
};

constexpr auto kReserved = static_cast<Opcode>(0x18);

class ResponderSequence : public Responder, public ::testing::WithParamInterface<BadSequence> {};

TEST_P(ResponderSequence, IsAnInvalidRequest)
{
	post_recv();
	const auto &steps = GetParam().steps;
	for (uint32_t i = 0; i < steps.size(); i++) {
		all_sent();
		auto p = write(steps[i].opcode, i, 0, 3 * kMtu, steps[i].size);
		give(p);
	}
	expect_error(static_cast<uint32_t>(steps.size() - 1), kInvalidNak, TERN_EVENT_QP_REQ_ERR);
}

INSTANTIATE_TEST_SUITE_P(
        All, ResponderSequence,
        ::testing::Values(
                BadSequence{"MiddleFirst", {{Opcode::RcSendMiddle, kMtu}}},
                BadSequence{"LastFirst", {{Opcode::RcSendLast, 1}}},
                BadSequence{"WriteMiddleFirst", {{Opcode::RcWriteMiddle, kMtu}}},
                BadSequence{"OnlyInMessage",
                            {{Opcode::RcSendFirst, kMtu}, {Opcode::RcSendOnly, 1}}},
                BadSequence{"FirstInMessage",
                            {{Opcode::RcSendFirst, kMtu}, {Opcode::RcSendFirst, kMtu}}},
                BadSequence{"WriteInSend",
                            {{Opcode::RcSendFirst, kMtu}, {Opcode::RcWriteMiddle, kMtu}}},
                BadSequence{"SendInWrite", {{Opcode::RcWriteFirst, kMtu}, {Opcode::RcSendLast, 1}}},
                BadSequence{"ReadInWrite",
                            {{Opcode::RcWriteFirst, kMtu}, {Opcode::RcReadRequest, 0}}},
                BadSequence{"AtomicInSend", {{Opcode::RcSendFirst, kMtu}, {Opcode::RcFetchAdd, 0}}},
                BadSequence{"ShortFirst", {{Opcode::RcSendFirst, kMtu - 1}}},
                BadSequence{"LongFirst", {{Opcode::RcSendFirst, kMtu + 4}}},
                BadSequence{"ShortMiddle",
                            {{Opcode::RcSendFirst, kMtu}, {Opcode::RcSendMiddle, kMtu - 4}}},
                BadSequence{"EmptyLast", {{Opcode::RcSendFirst, kMtu}, {Opcode::RcSendLast, 0}}},
                BadSequence{"LongOnly", {{Opcode::RcSendOnly, kMtu + 1}}},
                BadSequence{"ReadWithPayload", {{Opcode::RcReadRequest, 4}}},
                BadSequence{"ReadWithPayloadInWrite",
                            {{Opcode::RcWriteFirst, kMtu}, {Opcode::RcReadRequest, 4}}},
                BadSequence{"AtomicWithPayload", {{Opcode::RcFetchAdd, 8}}},
                BadSequence{"Reserved", {{kReserved, 0}}},
                BadSequence{"ReservedInMessage", {{Opcode::RcSendFirst, kMtu}, {kReserved, kMtu}}},
                BadSequence{"WriteOnlyLengthDiffers", {{Opcode::RcWriteOnly, kMtu}}},
                BadSequence{"WriteEndsEarly",
                            {{Opcode::RcWriteFirst, kMtu}, {Opcode::RcWriteLast, kMtu}}},
                BadSequence{"WriteGoesOn",
                            {{Opcode::RcWriteFirst, kMtu},
                             {Opcode::RcWriteMiddle, kMtu},
                             {Opcode::RcWriteMiddle, kMtu}}}),
        [](const auto &info) { return info.param.name; });

/* Past: silence, as nothing is to be repeated. Future: the NAK is about the gap. */
TEST_F(Responder, InvalidRequestPastAndFuture)
{
	post_recv();
	give(send_only(0));
	all_sent();
	TestPacket with_payload = read(0, 0, 4);
	with_payload.payload = bytes(4);
	give(with_payload);
	give(send(kReserved, 0));
	EXPECT_TRUE(all_sent().empty());
	give(send(kReserved, 2));
	expect_aeth(1, kSeqNak);
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	EXPECT_EQ(stat(TERN_STAT_RESP_DUPLICATES), 2u);
}

/* The same for the peer's messages: a WRITE of 2^31 bytes begins, a READ of as many needs an MTU
 * above 256. */
TEST_F(Responder, LongestMessages)
{
	constexpr uint32_t kMost = 1u << 31;
	const auto big = driver_.create_mr(pd_, 0, 1ull << 32, kAllAccess);
	TestPacket p = write(Opcode::RcWriteFirst, 0, 0, kMost, kMtu);
	p.ext.reth = {0, big.key, kMost};
	give(p);
	expect_aeth(0, kAethAck);
	connect(connection());
	p = read(0, 0, 0);
	p.ext.reth = {0, big.key, kMost};
	give(p);
	expect_error(0, kInvalidNak, TERN_EVENT_QP_REQ_ERR);
}

/* ---- WRITE ---- */

/* Past: not executed again, for a later WRITE may have gone to the same place. */
TEST_F(Responder, WritePast)
{
	give(write(Opcode::RcWriteOnly, 0, 0x500, 16, 16));
	const auto later = bytes(16, 99);
	mr_->write(0x500, later);
	all_sent();
	give(write(Opcode::RcWriteOnly, 0, 0x500, 16, 16));
	expect_aeth(0, kAethAck);
	EXPECT_EQ(mr_->read(0x500, 16), later);
}

/* Expected: only the named bytes change. */
TEST_F(Responder, WriteExpected)
{
	give(write(Opcode::RcWriteFirst, 0, 0x501, 300, kMtu));
	give(write(Opcode::RcWriteLast, 1, 0, 0, 44));
	auto expected = content(0, kSize);
	std::ranges::copy(bytes(kMtu), expected.begin() + 0x501);
	std::ranges::copy(bytes(44), expected.begin() + 0x501 + kMtu);
	EXPECT_EQ(mr_->read(0, kSize), expected);
	EXPECT_EQ(all_sent().size(), 2u);
	EXPECT_TRUE(cq_->drain().empty());
}

/* Future: nothing is written. */
TEST_F(Responder, WriteFuture)
{
	give(write(Opcode::RcWriteOnly, 1, 0x500, 16, 16));
	expect_aeth(0, kSeqNak);
	EXPECT_EQ(mr_->read(0, kSize), content(0, kSize));
}

TEST_F(Responder, WriteImmTakesAReceive)
{
	auto p = write(Opcode::RcWriteOnlyImm, 0, 0x500, 16, 16);
	p.ext.imm = 77;
	give(p);
	expect_aeth(0, kAethRnrNak | connection().min_rnr_timer);
	/* Not before there is a receive WQE. */
	EXPECT_EQ(mr_->read(0x500, 16), content(0x500, 16));
	post_recv();
	give(p);
	expect_aeth(0, kAethAck);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].opcode, TERN_CQE_RECV_WRITE_IMM);
	EXPECT_EQ(cqes[0].byte_len.get(), 16u);
	EXPECT_EQ(cqes[0].imm.get(), 77u);
	EXPECT_EQ(mr_->read(0x500, 16), bytes(16));
}

/* RNR at the last packet of a message: only that one is repeated. */
TEST_F(Responder, WriteImmRnrAtItsLastPacket)
{
	give(write(Opcode::RcWriteFirst, 0, 0, 300, kMtu));
	all_sent();
	const auto last = write(Opcode::RcWriteLastImm, 1, 0, 0, 44);
	give(last);
	expect_aeth(1, kAethRnrNak | connection().min_rnr_timer);
	post_recv();
	give(last);
	expect_aeth(1, kAethAck);
	EXPECT_EQ(mr_->read(256, 44), bytes(44));
}

/* A zero-length WRITE names no memory, so its key is not looked at (IBA 9.7.4.1.3). */
TEST_F(Responder, EmptyWriteWithAnyKey)
{
	auto p = write(Opcode::RcWriteOnly, 0, 0, 0, 0);
	p.ext.reth.rkey = 0xdead00;
	give(p);
	expect_aeth(0, kAethAck);
}

/* The region goes in the middle of a message. */
TEST_F(Responder, RegionGoesDuringWrite)
{
	give(write(Opcode::RcWriteFirst, 0, 0, 600, kMtu));
	all_sent();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, mr_->key), TERN_AQ_OK);
	give(write(Opcode::RcWriteMiddle, 1, 0, 0, kMtu));
	expect_error(1, kAccessNak, TERN_EVENT_QP_ACCESS_ERR);
}

/* ---- keys: each is an access violation ---- */

class ResponderAccess : public Responder, public ::testing::WithParamInterface<int> {
protected:
	/** A RETH that must be refused. */
	Reth bad(int which, uint32_t length)
	{
		Reth reth{mr_->va, mr_->key, length};
		switch (which) {
		case 0: /* another variant */
			reth.rkey ^= 1;
			break;
		case 1: /* no such index */
			reth.rkey += 0x100000;
			break;
		case 2: /* one byte before the region */
			reth.va--;
			break;
		case 3: /* one byte past its end */
			reth.va = mr_->va + kSize - length + 1;
			break;
		case 4: /* over the end of the address space */
			reth.va = UINT64_MAX;
			break;
		case 5: /* another protection domain */
			other_.emplace(
			        driver_.create_mr(driver_.alloc_pd(), kVa, 4096, kAllAccess));
			reth.rkey = other_->key;
			break;
		default: /* no right */
			other_.emplace(driver_.create_mr(pd_, kVa, 4096, TERN_ACCESS_LOCAL_WRITE));
			reth.rkey = other_->key;
			break;
		}
		return reth;
	}
	/** @p, whose RETH names @length bytes, is refused and changes nothing. */
	void expect_refused(TestPacket p, uint32_t length)
	{
		p.ext.reth = bad(GetParam(), length);
		give(p);
		expect_error(0, kAccessNak, TERN_EVENT_QP_ACCESS_ERR);
		EXPECT_EQ(mr_->read(0, kSize), content(0, kSize));
	}
	std::optional<HostMr> other_;
};

TEST_P(ResponderAccess, Write)
{
	expect_refused(write(Opcode::RcWriteOnly, 0, 0, 16, 16), 16);
}

/* Refused before anybody asks for a receive WQE. */
TEST_P(ResponderAccess, WriteImm)
{
	expect_refused(write(Opcode::RcWriteOnlyImm, 0, 0, 16, 16), 16);
}

/* Refused with the first packet, which alone would do no harm. */
TEST_P(ResponderAccess, WriteOfSeveralPackets)
{
	expect_refused(write(Opcode::RcWriteFirst, 0, 0, 600, kMtu), 600);
}

TEST_P(ResponderAccess, Read)
{
	expect_refused(read(0, 0, 16), 16);
}

TEST_P(ResponderAccess, Atomic)
{
	const Reth reth = bad(GetParam(), 8);
	auto p = add(0, 0, 1);
	p.ext.atomic.va = reth.va & ~7ull;
	p.ext.atomic.rkey = reth.rkey;
	if (GetParam() == 3) /* aligned and past the end */
		p.ext.atomic.va = mr_->va + kSize;
	give(p);
	expect_error(0, kAccessNak, TERN_EVENT_QP_ACCESS_ERR);
}

TEST_P(ResponderAccess, AtomicWrite)
{
	const Reth reth = bad(GetParam(), 8);
	auto p = atomic_write(0, 0);
	p.ext.reth.va = reth.va & ~7ull;
	p.ext.reth.rkey = reth.rkey;
	if (GetParam() == 3) /* aligned and past the end */
		p.ext.reth.va = mr_->va + kSize;
	give(p);
	expect_error(0, kAccessNak, TERN_EVENT_QP_ACCESS_ERR);
}

INSTANTIATE_TEST_SUITE_P(All, ResponderAccess, ::testing::Range(0, 7));

/* A request that the QP's own rights forbid is one that this receive queue does not support (IBA
 * 11.6.2): an invalid request, whatever its key, and also if there is no receive WQE. */
TEST_F(Responder, QpWithoutRights)
{
	auto unknown_key = read(0, 0, 16);
	unknown_key.ext.reth.rkey ^= 1;
	for (const TestPacket &p :
	     {read(0, 0, 16), unknown_key, write(Opcode::RcWriteOnly, 0, 0, 16, 16),
	      write(Opcode::RcWriteFirst, 0, 0, 600, kMtu),
	      write(Opcode::RcWriteOnlyImm, 0, 0, 16, 16), add(0, 0, 1), atomic_write(0, 0)}) {
		auto c = connection();
		c.access = 0;
		connect(c);
		give(p);
		expect_error(0, kInvalidNak, TERN_EVENT_QP_REQ_ERR);
	}
	EXPECT_EQ(stat(TERN_STAT_RESP_TX_INV_REQ_NAK), 7u);
	EXPECT_EQ(stat(TERN_STAT_RESP_TX_ACCESS_NAK), 0u);
	EXPECT_EQ(mr_->read(0, kSize), content(0, kSize));
}

/* One right does not stand for another. */
TEST_F(Responder, QpWithOneRight)
{
	auto c = connection();
	c.access = TERN_ACCESS_REMOTE_WRITE;
	connect(c);
	give(atomic_write(0, 0));
	expect_empty_response(0);
	give(read(1, 0, 16));
	expect_error(1, kInvalidNak, TERN_EVENT_QP_REQ_ERR);
}

/* ---- what is not for this connection is dropped and counted ---- */

TEST_F(Responder, WrongGids)
{
	post_recv();
	auto av = path();
	av.sgid.bytes[15] = 9;
	give(send_only(0), av);
	av = path();
	av.dgid.bytes[15] = 9;
	give(send_only(0), av);
	EXPECT_TRUE(all_sent().empty());
	EXPECT_EQ(stat(TERN_STAT_RX_BAD_ADDR), 2u);
}

/* The same addresses in another VLAN, or in the other protocol, are another network. */
TEST_F(Responder, WrongVlanOrProtocol)
{
	auto av = path();
	av.vlan = 7;
	give(send_only(0), av);
	av = path();
	av.roce_v2 = false;
	give(send_only(0), av);
	EXPECT_TRUE(all_sent().empty());
	EXPECT_EQ(stat(TERN_STAT_RX_BAD_ADDR), 2u);
}

TEST_F(Responder, WrongPkey)
{
	auto p = send_only(0);
	p.pkey = 0x8001;
	give(p);
	EXPECT_TRUE(all_sent().empty());
	EXPECT_EQ(stat(TERN_STAT_RX_BAD_PKEY), 1u);
	/* A limited member of our partition may talk to us. */
	p.pkey = 0x7fff;
	post_recv();
	give(p);
	expect_aeth(0, kAethAck);
}

TEST_F(Responder, NoSuchQp)
{
	auto p = send_only(0);
	p.qpn = 0xabcdef;
	give(p);
	EXPECT_EQ(stat(TERN_STAT_RX_NO_QP), 1u);
}

TEST_F(Responder, WrongState)
{
	qp_ = make_qp();
	qp_->to_init(connection());
	give(send_only(0));
	EXPECT_EQ(stat(TERN_STAT_RX_BAD_STATE), 1u);
	EXPECT_TRUE(all_sent().empty());
}

/* The first packet in RTR tells the host that the connection is there. */
TEST_F(Responder, CommunicationEstablished)
{
	qp_ = make_qp();
	qp_->to_init(connection());
	qp_->to_rtr(connection());
	post_recv();
	give(send_only(0));
	expect_aeth(0, kAethAck);
	EXPECT_TRUE(event(TERN_EVENT_COMM_EST, qp_->number));
	give(send_only(0));
	EXPECT_FALSE(event(TERN_EVENT_COMM_EST, qp_->number));
}

/* Requests that arrive while 64 responses wait are dropped, and counted. */
TEST_F(Responder, TooManyResponses)
{
	constexpr uint32_t kMost = 64;
	host_.wire.accept_only(0);
	give(add(0, 8, 1));
	for (uint32_t i = 1; i < kMost; i++)
		give(add(0, 8, 1)); /* a duplicate has a response of its own */
	EXPECT_EQ(stat(TERN_STAT_RX_BAD_STATE), 0u);
	give(write(Opcode::RcWriteOnly, 1, 0, 8, 8));
	EXPECT_EQ(stat(TERN_STAT_RX_BAD_STATE), 1u);
	EXPECT_EQ(stat(TERN_STAT_RESP_WRITES), 0u);
	open_wire();
	EXPECT_EQ(all_sent().size(), kMost);
	give(write(Opcode::RcWriteOnly, 1, 0, 8, 8));
	expect_aeth(1, kAethAck);
}

/* A peer that repeats itself while the wire is shut makes nothing grow without bound. */
TEST_F(Responder, FloodWhileTheWireIsShut)
{
	host_.wire.accept_only(0);
	give(read(0, 0, 16));
	for (int i = 0; i < 1000; i++) {
		give(read(0, 0, 16));
		give(send_only(1));
		give(send_only(0));
	}
	open_wire();
	EXPECT_LT(all_sent().size(), 100u);
	EXPECT_GT(stat(TERN_STAT_RX_BAD_STATE), 1000u);
}

} // namespace
} // namespace tern::test
