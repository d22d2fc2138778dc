// SPDX-License-Identifier: GPL-2.0-or-later
/* The requester of a card, answered with responses of the past, the expected one and those of the
 * future. */
#include "tests/unit/transport/one_requester.h"

namespace tern::test {
namespace {

/* ---- segmentation ---- */

struct Sizes {
	uint32_t length;
	std::vector<Opcode> opcodes;
};

class RequesterSizes : public Requester, public ::testing::WithParamInterface<Sizes> {};

TEST_P(RequesterSizes, Send)
{
	const auto &[length, opcodes] = GetParam();
	post(send(length));
	const auto p = all_sent();
	ASSERT_EQ(p.size(), opcodes.size());
	std::vector<std::byte> data;
	for (uint32_t i = 0; i < p.size(); i++) {
		EXPECT_EQ(p[i].opcode, opcodes[i]);
		EXPECT_EQ(p[i].psn, psn(i));
		data.insert(data.end(), p[i].payload.begin(), p[i].payload.end());
	}
	EXPECT_TRUE(p.back().ack_request);
	EXPECT_EQ(data, content(0, length));
}

/* WRITE has the same shape, six opcodes further on, and its RETH in the first packet. */
TEST_P(RequesterSizes, WriteImm)
{
	const auto &[length, opcodes] = GetParam();
	auto request = write(length);
	request.opcode = TERN_OP_WRITE_IMM;
	request.imm = 0x01020304;
	post(request);
	const auto p = all_sent();
	ASSERT_EQ(p.size(), opcodes.size());
	for (uint32_t i = 0; i < p.size(); i++) {
		const bool last = i + 1 == p.size();
		EXPECT_EQ(static_cast<int>(p[i].opcode), static_cast<int>(opcodes[i]) + 6 + last);
	}
	EXPECT_EQ(p.back().ext.imm, 0x01020304u);
	EXPECT_EQ(p[0].ext.reth.va, 0x1000u);
	EXPECT_EQ(p[0].ext.reth.rkey, 0x77u);
	EXPECT_EQ(p[0].ext.reth.length, length);
}

INSTANTIATE_TEST_SUITE_P(
        AroundMtu, RequesterSizes,
        ::testing::Values(Sizes{0, {Opcode::RcSendOnly}}, Sizes{1, {Opcode::RcSendOnly}},
                          Sizes{kMtu - 1, {Opcode::RcSendOnly}}, Sizes{kMtu, {Opcode::RcSendOnly}},
                          Sizes{kMtu + 1, {Opcode::RcSendFirst, Opcode::RcSendLast}},
                          Sizes{2 * kMtu, {Opcode::RcSendFirst, Opcode::RcSendLast}},
                          Sizes{2 * kMtu + 1,
                                {Opcode::RcSendFirst, Opcode::RcSendMiddle, Opcode::RcSendLast}},
                          Sizes{3 * kMtu,
                                {Opcode::RcSendFirst, Opcode::RcSendMiddle, Opcode::RcSendLast}}),
        [](const auto &info) { return std::to_string(info.param.length) + "Bytes"; });

/* A READ is one packet that stands for as many PSNs as its data will have. */
TEST_F(Requester, ReadTakesThePsnsOfItsData)
{
	post(read(600));
	post(send(1));
	const auto p = all_sent();
	ASSERT_EQ(p.size(), 2u);
	EXPECT_EQ(p[0].opcode, Opcode::RcReadRequest);
	EXPECT_EQ(p[0].ext.reth.length, 600u);
	EXPECT_EQ(p[1].psn, psn(3));
}

TEST_F(Requester, SgesAndInline)
{
	SendRequest request{.opcode = TERN_OP_SEND};
	request.sges = {mr_->sge(10, 5), {0xbad, 0, 0xbad00}, mr_->sge(4090, 20), mr_->sge(0, 1)};
	post(request);
	auto expected = content(10, 5);
	for (const auto &part : {content(4090, 20), content(0, 1)})
		expected.insert(expected.end(), part.begin(), part.end());
	EXPECT_EQ(sent()->payload, expected);

	SendRequest copy{.opcode = TERN_OP_SEND, .flags = TERN_WQE_INLINE | TERN_WQE_SOLICITED};
	copy.inline_data = content(0, 960);
	post(copy);
	std::vector<std::byte> data;
	for (const auto &p : all_sent()) {
		data.insert(data.end(), p.payload.begin(), p.payload.end());
		EXPECT_EQ(p.solicited, p.opcode == Opcode::RcSendLast);
	}
	EXPECT_EQ(data, content(0, 960));
}

/* ---- ACK ---- */

/* Past: says nothing new. */
TEST_F(Requester, AckPast)
{
	const auto first = post(send(1));
	ack(0);
	post(send(1));
	ack(0);
	EXPECT_EQ(completions(), (Completions{{first, TERN_WC_SUCCESS}}));
	EXPECT_EQ(stat(TERN_STAT_REQ_DUP_ACK), 1u);
}

/* Expected: completes its request, and all before. */
TEST_F(Requester, AckExpected)
{
	const auto a = post(send(1));
	const auto b = post(write(600));
	const auto c = post(send(1));
	ack(3);
	EXPECT_EQ(completions(), (Completions{{a, 0}, {b, 0}}));
	ack(4);
	EXPECT_EQ(completions(), (Completions{{c, 0}}));
}

/* Future: a PSN that was never sent is the ghost of some earlier connection. */
TEST_F(Requester, AckFuture)
{
	post(send(1));
	ack(1);
	EXPECT_TRUE(completions().empty());
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	ack(0);
	EXPECT_EQ(completions().size(), 1u);
}

TEST_F(Requester, UnsignaledCompletesInSilence)
{
	post(send(1, 0));
	const auto b = post(send(1));
	ack(1);
	EXPECT_EQ(completions(), (Completions{{b, 0}}));
}

/* In the middle of a message: nothing completes, but a timeout goes back only so far. */
TEST_F(Requester, AckInTheMiddle)
{
	post(write(1024));
	all_sent();
	ack(1);
	EXPECT_TRUE(completions().empty());
	pass(kTimeout);
	const auto p = all_sent();
	ASSERT_EQ(p.size(), 2u);
	EXPECT_EQ(p[0].opcode, Opcode::RcWriteMiddle);
	EXPECT_EQ(p[0].psn, psn(2));
	EXPECT_EQ(p[0].payload, content(512, 256));
}

/* ---- READ and atomics ---- */

TEST_F(Requester, ReadExpected)
{
	post(read(600));
	read_response(Opcode::RcReadResponseFirst, 0, 256, std::byte{1});
	read_response(Opcode::RcReadResponseMiddle, 1, 256, std::byte{2});
	EXPECT_TRUE(cq_->drain().empty());
	read_response(Opcode::RcReadResponseLast, 2, 88, std::byte{3});
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].byte_len.get(), 600u);
	EXPECT_EQ(mr_->read(0x8000 + 512, 88), std::vector<std::byte>(88, std::byte{3}));
	EXPECT_EQ(mr_->read(0x8000 + 600, 1), content(0x8000 + 600, 1));
}

/* Past: dropped; the memory is the program's by then. */
TEST_F(Requester, ReadResponsePast)
{
	post(read(300));
	read_response(Opcode::RcReadResponseFirst, 0, 256, std::byte{1});
	read_response(Opcode::RcReadResponseFirst, 0, 256, std::byte{9});
	EXPECT_EQ(mr_->read(0x8000, 256), std::vector<std::byte>(256, std::byte{1}));
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
}

/* Future: the one before was lost, so the READ is asked for again from there, once. */
TEST_F(Requester, ReadResponseFuture)
{
	post(read(900));
	all_sent();
	read_response(Opcode::RcReadResponseFirst, 0, 256);
	read_response(Opcode::RcReadResponseMiddle, 2, 256);
	read_response(Opcode::RcReadResponseLast, 3, 132);
	const auto p = all_sent();
	ASSERT_EQ(p.size(), 1u);
	EXPECT_EQ(p[0].opcode, Opcode::RcReadRequest);
	EXPECT_EQ(p[0].psn, psn(1));
	EXPECT_EQ(p[0].ext.reth.va, 0x1000u + 256);
	EXPECT_EQ(p[0].ext.reth.length, 900u - 256);
	EXPECT_EQ(stat(TERN_STAT_REQ_IMPLIED_NAK), 1u);
	/* The responder starts anew with First, in the middle of ours. */
	read_response(Opcode::RcReadResponseFirst, 1, 256);
	read_response(Opcode::RcReadResponseMiddle, 2, 256);
	read_response(Opcode::RcReadResponseLast, 3, 132);
	EXPECT_EQ(completions(), (Completions{{0, 0}}));
}

/* An acknowledgement beyond a READ whose data did not come implies the same. */
TEST_F(Requester, AckBeyondARead)
{
	post(read(10));
	post(send(1));
	all_sent();
	ack(1);
	EXPECT_TRUE(completions().empty());
	EXPECT_EQ(psns_sent(), (Psns{0, 1}));
	read_response(Opcode::RcReadResponseOnly, 0, 10);
	ack(1);
	EXPECT_EQ(completions().size(), 2u);
}

struct BadResponse {
	const char *name;
	Opcode opcode;
	size_t size;
};

class RequesterBadResponse : public Requester, public ::testing::WithParamInterface<BadResponse> {};

/* Data that does not fit to the READ of 300 bytes under this PSN. */
TEST_P(RequesterBadResponse, EndsTheRequest)
{
	post(read(300));
	read_response(GetParam().opcode, 0, GetParam().size);
	EXPECT_EQ(completions(), (Completions{{0, TERN_WC_BAD_RESP_ERR}}));
}

INSTANTIATE_TEST_SUITE_P(All, RequesterBadResponse,
                         ::testing::Values(BadResponse{"Short", Opcode::RcReadResponseFirst, 252},
                                           BadResponse{"EndsEarly", Opcode::RcReadResponseOnly,
                                                       256},
                                           BadResponse{"Long", Opcode::RcReadResponseFirst, 260},
                                           BadResponse{"Atomic", Opcode::RcAtomicAcknowledge, 0}),
                         [](const auto &info) { return info.param.name; });

TEST_F(Requester, AtomicPlacesTheOriginal)
{
	post(add());
	EXPECT_EQ(sent()->ext.atomic.swap_add, 5u);
	TestPacket p{.opcode = Opcode::RcAtomicAcknowledge, .psn = psn(0)};
	p.ext.aeth = {kNoCredits, 1};
	p.ext.atomic_ack = 0x1122334455667788;
	give(p);
	EXPECT_EQ(mr_->read_u64(0x9000), 0x1122334455667788u);
	EXPECT_EQ(completions(), (Completions{{0, 0}}));
}

TEST_F(Requester, MaskedAtomics)
{
	auto request = add();
	request.compare = 6;
	request.masks.emplace();
	request.masks->swap_add = 0xff00u;
	request.masks->compare = 0xf0u;
	const std::pair<uint8_t, Opcode> kinds[] = {
	        {TERN_OP_MASKED_CMP_SWAP, Opcode::RcMaskedCompareSwap},
	        {TERN_OP_MASKED_FETCH_ADD, Opcode::RcMaskedFetchAdd}};
	uint32_t n = 0;
	for (const auto &[opcode, on_wire] : kinds) {
		request.opcode = opcode;
		const uint32_t index = post(request);
		const auto asked = sent();
		ASSERT_TRUE(asked);
		EXPECT_EQ(asked->opcode, on_wire);
		EXPECT_EQ(asked->ext.atomic.va, 0x1000u);
		EXPECT_EQ(asked->ext.atomic.rkey, 0x77u);
		EXPECT_EQ(asked->ext.atomic.swap_add, 5u);
		EXPECT_EQ(asked->ext.atomic.compare, request.compare);
		EXPECT_EQ(asked->ext.masks.swap_add, 0xff00u);
		EXPECT_EQ(asked->ext.masks.compare, request.masks->compare.get());
		TestPacket p{.opcode = Opcode::RcAtomicAcknowledge, .psn = psn(n++)};
		p.ext.aeth = {kNoCredits, n};
		p.ext.atomic_ack = 0x1122334455667788 + n;
		give(p);
		EXPECT_EQ(mr_->read_u64(0x9000), 0x1122334455667788u + n);
		const auto cqes = cq_->drain();
		ASSERT_EQ(cqes.size(), 1u);
		EXPECT_EQ(cqes[0].opcode, opcode);
		EXPECT_EQ(cqes[0].wqe_index.get(), index);
		request.compare = 0;
		request.masks->compare = 0u;
	}
}

/* The requester sends a lost masked atomic again with its masks, and does not take a READ response
 * for the answer. */
TEST_F(Requester, MaskedAtomicAgain)
{
	auto request = add();
	request.opcode = TERN_OP_MASKED_FETCH_ADD;
	request.masks.emplace();
	request.masks->swap_add = 0x80u;
	post(request);
	all_sent();
	pass(kTimeout);
	const auto again = sent();
	ASSERT_TRUE(again);
	EXPECT_EQ(again->opcode, Opcode::RcMaskedFetchAdd);
	EXPECT_EQ(again->psn, psn(0));
	EXPECT_EQ(again->ext.masks.swap_add, 0x80u);
	read_response(Opcode::RcReadResponseOnly, 0, 8);
	EXPECT_EQ(completions(), (Completions{{0, TERN_WC_BAD_RESP_ERR}}));
}

TEST_F(Requester, AtomicWrite)
{
	post(atomic_write());
	auto p = sent();
	ASSERT_TRUE(p);
	EXPECT_EQ(p->opcode, Opcode::RcAtomicWrite);
	EXPECT_EQ(p->ext.reth.va, 0x1000u);
	EXPECT_EQ(p->ext.reth.rkey, 0x77u);
	EXPECT_EQ(p->ext.reth.length, 8u);
	EXPECT_EQ(p->payload, content(16, 8));
	read_response(Opcode::RcReadResponseOnly, 0, 0);
	EXPECT_EQ(completions(), (Completions{{0, 0}}));
	EXPECT_EQ(mr_->read(0, kSize), content(0, kSize)) << "nothing is placed";

	auto inlined = atomic_write();
	inlined.flags |= TERN_WQE_INLINE;
	inlined.sges.clear();
	inlined.inline_data = content(100, 8);
	post(inlined);
	p = sent();
	ASSERT_TRUE(p);
	EXPECT_EQ(p->payload, content(100, 8));
	read_response(Opcode::RcReadResponseOnly, 1, 0);
	EXPECT_EQ(completions(), (Completions{{1, 0}}));
}

/* An ACK alone, of a later request even, does not complete it: its response was lost. */
TEST_F(Requester, AtomicWriteNeedsItsResponse)
{
	post(atomic_write());
	post(send(1));
	EXPECT_EQ(psns_sent(), (Psns{0, 1}));
	ack(1);
	EXPECT_TRUE(completions().empty());
	EXPECT_EQ(psns_sent(), (Psns{0, 1})) << "asked again";
	read_response(Opcode::RcReadResponseOnly, 0, 0);
	ack(1);
	EXPECT_EQ(completions(), (Completions{{0, 0}, {1, 0}}));
}

TEST_F(Requester, AtomicWriteWithData)
{
	post(atomic_write());
	read_response(Opcode::RcReadResponseOnly, 0, 8);
	EXPECT_EQ(completions(), (Completions{{0, TERN_WC_BAD_RESP_ERR}}));
}

TEST_F(Requester, AtomicWriteAnsweredAsAnAtomic)
{
	post(atomic_write());
	TestPacket p{.opcode = Opcode::RcAtomicAcknowledge, .psn = psn(0)};
	p.ext.aeth = {kNoCredits, 1};
	give(p);
	EXPECT_EQ(completions(), (Completions{{0, TERN_WC_BAD_RESP_ERR}}));
}

TEST_F(Requester, AtomicWriteOfOtherSizes)
{
	for (const uint32_t length : {0u, 4u, 16u}) {
		connect(connection());
		post(atomic_write(length));
		EXPECT_EQ(completions(), (Completions{{0, TERN_WC_LOC_QP_OP_ERR}}));
	}
}

/* It takes one of the places of READs and atomics, and a fence waits for it. */
TEST_F(Requester, AtomicWriteIsOneOfMaxRdAtomic)
{
	auto c = connection();
	c.max_rd_atomic = 2;
	connect(c);
	post(atomic_write());
	post(read(10));
	post(atomic_write());
	post(send(1, TERN_WQE_SIGNALED | TERN_WQE_FENCE));
	EXPECT_EQ(psns_sent(), (Psns{0, 1}));
	read_response(Opcode::RcReadResponseOnly, 0, 0);
	EXPECT_EQ(psns_sent(), (Psns{2}));
	read_response(Opcode::RcReadResponseOnly, 1, 10);
	EXPECT_TRUE(psns_sent().empty());
	read_response(Opcode::RcReadResponseOnly, 2, 0);
	EXPECT_EQ(psns_sent(), (Psns{3}));
}

/* The peer's depth is never exceeded. */
TEST_F(Requester, MaxRdAtomic)
{
	auto c = connection();
	c.max_rd_atomic = 2;
	connect(c);
	for (int i = 0; i < 3; i++)
		post(read(10));
	EXPECT_EQ(psns_sent(), (Psns{0, 1}));
	read_response(Opcode::RcReadResponseOnly, 0, 10);
	EXPECT_EQ(psns_sent(), (Psns{2}));
}

/* A fenced request waits until all READs and atomics before it are done; others do not. */
TEST_F(Requester, Fence)
{
	post(read(10));
	post(send(1));
	post(send(1, TERN_WQE_SIGNALED | TERN_WQE_FENCE));
	EXPECT_EQ(psns_sent(), (Psns{0, 1}));
	read_response(Opcode::RcReadResponseOnly, 0, 10);
	EXPECT_EQ(psns_sent(), (Psns{2}));
}

/* READs of a GiB in packets of 256 bytes take 2^22 PSNs each: two would make past and future meet.
 */
TEST_F(Requester, PsnsOfReadsStayBelowHalf)
{
	const auto big = driver_.create_mr(pd_, 0, 1ull << 32, kAllAccess);
	SendRequest request = read(0);
	request.sges = {big.sge(0, 1u << 30)};
	post(request);
	post(request);
	post(request);
	EXPECT_EQ(psns_sent(), (Psns{0}));
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
}

/* ---- window and credits ---- */

/* A long message stops after 256 packets in flight, and the last of them asks for an
 * acknowledgement. */
TEST_F(Requester, Window)
{
	post(write(0x20000));
	auto p = all_sent();
	ASSERT_EQ(p.size(), 256u);
	EXPECT_TRUE(p.back().ack_request);
	ack(31);
	p = all_sent();
	ASSERT_EQ(p.size(), 32u);
	EXPECT_TRUE(p.back().ack_request);
}

/* READs are limited by max_rd_atomic. The PSNs of their data are not those of packets in flight. */
TEST_F(Requester, WindowBehindARead)
{
	post(read(0x20000, 0));
	post(send(1));
	EXPECT_EQ(psns_sent(), (Psns{0, 512}));
	/* What is behind the READ has a window of its own. */
	post(write(0x20000));
	auto p = all_sent();
	ASSERT_EQ(p.size(), 255u);
	EXPECT_EQ(p.back().psn, psn(512 + 255));
	EXPECT_TRUE(p.back().ack_request);
	/* Data that arrives is no longer in flight, and no room for others either. */
	read_response(Opcode::RcReadResponseFirst, 0, kMtu);
	for (uint32_t i = 1; i < 511; i++)
		read_response(Opcode::RcReadResponseMiddle, i, kMtu);
	EXPECT_TRUE(all_sent().empty());
	read_response(Opcode::RcReadResponseLast, 511, kMtu);
	EXPECT_TRUE(all_sent().empty());
	ack(512);
	EXPECT_EQ(psns_sent(), (Psns{512 + 256}));
}

/* After a timeout the requester repeats the same packets, and then has the same room. */
TEST_F(Requester, WindowBehindARepeatedRead)
{
	post(read(0x20000, 0));
	post(write(0x20000));
	EXPECT_EQ(all_sent().size(), 1u + 256);
	read_response(Opcode::RcReadResponseFirst, 0, kMtu);
	pass(kTimeout);
	auto p = all_sent();
	ASSERT_EQ(p.size(), 1u + 256);
	EXPECT_EQ(p[0].psn, psn(1));
	EXPECT_EQ(p.back().psn, psn(512 + 255));
	/* A response to the first READ request. */
	pass(kTimeout - 1);
	read_response(Opcode::RcReadResponseMiddle, 1, kMtu);
	EXPECT_TRUE(all_sent().empty());
	pass(kTimeout);
	EXPECT_EQ(all_sent().size(), 1u + 256);
}

/* Without credit one message probes when nothing else is in flight. */
TEST_F(Requester, NoCreditProbes)
{
	post(send(1));
	ack(0, kAethAck | 0, 1); /* one message done, no receive WQE left */
	all_sent();
	post(send(300));
	EXPECT_EQ(psns_sent(), (Psns{1}));
	/* It was taken, and there are more: the rest may follow. */
	ack(1, kAethAck | encode_credits(4), 1);
	EXPECT_EQ(psns_sent(), (Psns{2}));
}

TEST_F(Requester, CreditsLimitMessages)
{
	post(send(1));
	ack(0, kAethAck | encode_credits(2), 1); /* up to the third */
	all_sent();
	for (int i = 0; i < 3; i++)
		post(send(1));
	EXPECT_EQ(psns_sent(), (Psns{1, 2}));
	/* A WRITE behind it has to wait too: messages keep their order. */
	post(write(1));
	EXPECT_EQ(psns_sent(), (Psns{}));
	ack(2, kAethAck | encode_credits(1), 3);
	EXPECT_EQ(psns_sent(), (Psns{3, 4}));
}

/* The first count comes when a message has begun, of whose packets none asks for an answer. */
TEST_F(Requester, CreditsInTheMiddleOfAMessage)
{
	post(send(1));
	host_.wire.accept_only(4);
	post(send(10 * kMtu));
	EXPECT_EQ(psns_sent(), (Psns{0, 1, 2, 3, 4}));
	ack(0, kAethAck | 0, 1);
	open_wire();
	EXPECT_EQ(psns_sent(), (Psns{5, 6, 7, 8, 9, 10}));
	/* The next message has no credit. */
	post(send(1));
	EXPECT_EQ(psns_sent(), Psns{});
}

/* The count says 0 when only the packet with the immediate data is left. */
TEST_F(Requester, CreditsBeforeTheImmediateData)
{
	post(send(1));
	host_.wire.accept_only(15);
	post(write_imm(16 * kMtu));
	EXPECT_EQ(psns_sent().size(), 16u);
	ack(0, kAethAck | 0, 1);
	open_wire();
	const auto p = all_sent();
	ASSERT_EQ(p.size(), 1u);
	EXPECT_EQ(p[0].psn, psn(16));
	EXPECT_TRUE(p[0].ack_request);
	EXPECT_EQ(stat(TERN_STAT_REQ_TIMEOUTS), 0u);
	/* The next message has no credit. */
	post(send(1));
	EXPECT_EQ(psns_sent(), Psns{});
}

/* As before, but the response of a READ or an atomic brings the count. */
TEST_F(Requester, CreditsOfAResponseBeforeTheImmediateData)
{
	for (const bool atomic : {false, true}) {
		connect(connection());
		post(atomic ? add() : read(8));
		host_.wire.accept_only(2);
		post(write_imm(3 * kMtu));
		EXPECT_EQ(psns_sent(), (Psns{0, 1, 2}));
		TestPacket p{.opcode = Opcode::RcAtomicAcknowledge, .psn = psn(0)};
		if (!atomic)
			p = {.opcode = Opcode::RcReadResponseOnly,
			     .psn = psn(0),
			     .payload = std::vector<std::byte>(8)};
		p.ext.aeth = {kAethAck | 0, 1};
		give(p);
		open_wire();
		EXPECT_EQ(psns_sent(), (Psns{3}));
	}
}

/* A message of which nothing was sent yet probes, whatever kind of request is before it. */
TEST_F(Requester, CreditsBeforeAMessage)
{
	for (const auto &before : {send(1), write(1)}) {
		connect(connection());
		post(before);
		host_.wire.accept_only(0);
		post(send(3 * kMtu));
		EXPECT_EQ(psns_sent(), (Psns{0}));
		ack(0, kAethAck | 0, 1);
		open_wire();
		EXPECT_EQ(psns_sent(), (Psns{1}));
		ack(1, kAethAck | 0, 1);
		EXPECT_EQ(psns_sent(), (Psns{2, 3}));
	}
}

/* WRITE needs no credit; WRITE with immediate data only for its last packet. */
TEST_F(Requester, CreditsOfWrites)
{
	post(send(1));
	ack(0, kAethAck | 0, 1);
	all_sent();
	post(write(300));
	post(write_imm(600));
	EXPECT_EQ(psns_sent(), (Psns{1, 2, 3, 4}));
	ack(4, kAethAck | 0, 2);
	EXPECT_EQ(psns_sent(), (Psns{5}));
}

/*
 * Credits are rounded down, so that a later count may end at an earlier message: 16 after none,
 * then 15 told as 12. What was granted stays granted, or a message would stop in its middle.
 */
TEST_F(Requester, CreditsDoNotShrink)
{
	post(send(1));
	ack(0, kAethAck | encode_credits(16), 1);
	post(send(1));
	ack(1, kAethAck | encode_credits(12), 2);
	all_sent();
	for (int i = 0; i < 15; i++)
		post(send(1));
	EXPECT_EQ(psns_sent().size(), 15u);
}

/* ---- local errors ---- */

/* What is ahead completes first; what is behind is flushed. */
TEST_F(Requester, LocalErrorWaitsItsTurn)
{
	const auto a = post(send(1));
	auto bad = send(1);
	bad.sges[0].lkey ^= 1;
	const auto b = post(bad);
	const auto c = post(send(1));
	EXPECT_TRUE(completions().empty());
	EXPECT_EQ(psns_sent(), (Psns{0}));
	ack(0);
	EXPECT_EQ(completions(),
	          (Completions{{a, 0}, {b, TERN_WC_LOC_PROT_ERR}, {c, TERN_WC_WR_FLUSH_ERR}}));
}

TEST_F(Requester, ReadIntoReadOnlyMemory)
{
	const auto ro = driver_.create_mr(pd_, kVa, 4096, 0);
	auto request = read(8);
	request.sges = {ro.sge(0, 8)};
	post(request);
	EXPECT_EQ(completions(), (Completions{{0, TERN_WC_LOC_PROT_ERR}}));
}

/* 2^31 bytes, of which the smallest MTU would make 2^23 packets, one more than PSNs can tell
 * apart. */
TEST_F(Requester, LongestMessages)
{
	constexpr uint32_t kMost = 1u << 31;
	const auto big = driver_.create_mr(pd_, 0, 1ull << 32, kAllAccess);
	const auto try_length = [&](uint8_t mtu, SendRequest request, std::vector<Sge> sges) {
		auto c = connection();
		c.mtu = mtu;
		connect(c);
		request.sges = std::move(sges);
		post(request);
		const auto packets = all_sent();
		return packets.empty() ? 0 : packets[0].ext.reth.length;
	};
	for (const auto &request : {write(0), read(0)}) {
		EXPECT_EQ(try_length(5, request, {big.sge(0, kMost)}), kMost);
		EXPECT_EQ(try_length(2, request, {big.sge(0, kMost)}), kMost);
		EXPECT_EQ(try_length(1, request, {big.sge(0, kMost - 256)}), kMost - 256);
		EXPECT_TRUE(completions().empty());
		EXPECT_EQ(try_length(1, request, {big.sge(0, kMost - 255)}), 0u);
		EXPECT_EQ(completions(), (Completions{{0, TERN_WC_LOC_LEN_ERR}}));
		EXPECT_EQ(try_length(5, request, {big.sge(0, kMost), big.sge(0, 1)}), 0u);
		EXPECT_EQ(completions(), (Completions{{0, TERN_WC_LOC_LEN_ERR}}));
	}
}

/* The region goes while the message is being repeated. */
TEST_F(Requester, RegionGoesBeforeRetry)
{
	post(write(1000));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, mr_->key), TERN_AQ_OK);
	pass(kTimeout);
	EXPECT_EQ(completions(), (Completions{{0, TERN_WC_LOC_PROT_ERR}}));
}

/* The program changes a WQE that is under way: it is no longer that request. */
TEST_F(Requester, WqeChangesUnderWay)
{
	post(write(1000));
	const auto other = encode(send(1000));
	qp_->buffer.write(0, other);
	pass(kTimeout);
	EXPECT_EQ(completions(), (Completions{{0, TERN_WC_LOC_QP_OP_ERR}}));
}

class UnknownSize : public Requester, public ::testing::WithParamInterface<int> {};

struct BadWqe {
	const char *name;
	size_t at;
	uint8_t value;
};

class RequesterBadWqe : public Requester, public ::testing::WithParamInterface<BadWqe> {};

TEST_P(RequesterBadWqe, IsAnOperationError)
{
	auto blocks = encode(write(8));
	blocks[GetParam().at] = static_cast<std::byte>(GetParam().value);
	qp_->post_blocks(blocks);
	run();
	EXPECT_EQ(completions(), (Completions{{0, TERN_WC_LOC_QP_OP_ERR}}));
	EXPECT_TRUE(all_sent().empty());
}

INSTANTIATE_TEST_SUITE_P(All, RequesterBadWqe,
                         ::testing::Values(BadWqe{"Opcode0", 0, 0}, BadWqe{"Opcode13", 0, 13},
                                           BadWqe{"UnknownFlag", 1, 0x10}, BadWqe{"NoSegs", 2, 0},
                                           BadWqe{"TooManySegs", 2, 65},
                                           BadWqe{"BeyondPosted", 2, 5}, BadWqe{"Reserved", 3, 1},
                                           BadWqe{"InlineLenUnasked", 8, 1},
                                           BadWqe{"Reserved1", 12, 1},
                                           BadWqe{"RaddrReserved", 28, 1},
                                           BadWqe{"InlineWithoutData", 1, TERN_WQE_INLINE}),
                         [](const auto &info) { return info.param.name; });

/* Where the WQE after one of unknown size begins is not known: what was posted behind it does not
 * complete. What is posted later does. */
TEST_P(UnknownSize, NothingBehindItCompletes)
{
	auto blocks = encode(write(8));
	blocks[offsetof(tern_hw_ctrl_seg, segs)] = static_cast<std::byte>(GetParam());
	qp_->post_blocks(blocks, false);
	qp_->post_send(write(8), false);
	qp_->post_send(write(8));
	run();
	EXPECT_EQ(completions(), (Completions{{0, TERN_WC_LOC_QP_OP_ERR}}));
	const uint32_t later = post(write(8));
	EXPECT_EQ(completions(), (Completions{{later, TERN_WC_WR_FLUSH_ERR}}));
}

/* In ERR it completes neither. */
TEST_P(UnknownSize, InError)
{
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	auto blocks = encode(write(8));
	blocks[offsetof(tern_hw_ctrl_seg, segs)] = static_cast<std::byte>(GetParam());
	qp_->post_blocks(blocks, false);
	qp_->post_send(write(8));
	run();
	EXPECT_TRUE(completions().empty());
	const uint32_t later = post(write(8));
	EXPECT_EQ(completions(), (Completions{{later, TERN_WC_WR_FLUSH_ERR}}));
}

INSTANTIATE_TEST_SUITE_P(All, UnknownSize, ::testing::Values(0, 65, 64));

/* ---- the doorbell ---- */

/* The card reads the index itself while it is at work; when it went to sleep the next post rings.
 */
TEST_F(Requester, ShadowDoorbell)
{
	qp_->post_send(send(1));
	EXPECT_EQ(qp_->doorbells, 1u);
	qp_->post_send(send(1));
	EXPECT_EQ(qp_->doorbells, 1u);
	run();
	EXPECT_EQ(psns_sent(), (Psns{0, 1}));
	qp_->post_send(send(1));
	EXPECT_EQ(qp_->doorbells, 2u);
	run();
	EXPECT_EQ(psns_sent(), (Psns{2}));
}

/* An index that the ring cannot have ends the QP. */
TEST_F(Requester, ImpossibleIndex)
{
	driver_.doorbell(0, TERN_DB_SQ, qp_->number, 257);
	run();
	EXPECT_TRUE(event(TERN_EVENT_QP_FATAL, qp_->number));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* A ring that cannot be read ends the QP; the event tells. */
TEST_F(Requester, RingNotReachable)
{
	host_.memory.fault(qp_->buffer.at(0), 4096);
	qp_->post_send(send(1));
	run();
	host_.memory.heal();
	EXPECT_TRUE(event(TERN_EVENT_QP_FATAL, qp_->number));
}

} // namespace
} // namespace tern::test
