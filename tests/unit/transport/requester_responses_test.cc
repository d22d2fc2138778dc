// SPDX-License-Identifier: GPL-2.0-or-later
/* Responses whose syndrome has no meaning. */
#include "tests/unit/transport/one_requester.h"

namespace tern::test {
namespace {

/* A NAK with a reserved code acknowledges what comes before its PSN, as each NAK does. It has no
 * other effect. */
TEST_F(Requester, ReservedNakCode)
{
	for (uint32_t i = 0; i < 3; i++)
		post(send(1));
	all_sent();
	for (const uint8_t code : {4, 5, 31}) {
		const uint64_t before = stat(TERN_STAT_REQ_BAD_RESP);
		ack(1, kAethNak | code);
		EXPECT_EQ(stat(TERN_STAT_REQ_BAD_RESP), before + 1);
		EXPECT_EQ(completions(),
		          code == 4 ? (Completions{{0, TERN_WC_SUCCESS}}) : Completions{});
	}
	EXPECT_TRUE(all_sent().empty());
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	ack(2);
	EXPECT_EQ(completions(), (Completions{{1, TERN_WC_SUCCESS}, {2, TERN_WC_SUCCESS}}));
}

/* The reserved kind of a syndrome (IBA table 44) acknowledges nothing. */
TEST_F(Requester, ReservedSyndrome)
{
	post(send(1));
	post(send(1));
	all_sent();
	ack(1, 0x40);
	EXPECT_EQ(stat(TERN_STAT_REQ_BAD_RESP), 1u);
	EXPECT_TRUE(completions().empty());
	EXPECT_TRUE(all_sent().empty());
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	ack(1);
	EXPECT_EQ(completions().size(), 2u);
}

/* A READ response with the syndrome of a NAK is dropped; its data is requested again in time. */
TEST_F(Requester, ReadResponseWithTheSyndromeOfANak)
{
	post(read(8));
	all_sent();
	TestPacket p{.opcode = Opcode::RcReadResponseOnly,
	             .psn = psn(0),
	             .payload = std::vector<std::byte>(8)};
	p.ext.aeth = {kAethNak, 0};
	give(p);
	EXPECT_EQ(stat(TERN_STAT_REQ_BAD_RESP), 1u);
	EXPECT_TRUE(completions().empty());
	pass(kTimeout);
	EXPECT_EQ(psns_sent(), (Psns{0}));
	read_response(Opcode::RcReadResponseOnly, 0, 8);
	EXPECT_EQ(completions(), (Completions{{0, TERN_WC_SUCCESS}}));
}

/* The same for an atomic: the value of the response is not that of the peer's memory. */
TEST_F(Requester, AtomicAcknowledgeWithTheSyndromeOfANak)
{
	post(add());
	all_sent();
	const auto before = mr_->read_u64(0x9000);
	TestPacket p{.opcode = Opcode::RcAtomicAcknowledge, .psn = psn(0)};
	p.ext.atomic_ack = 77;
	for (const uint8_t syndrome : {kAethNak, kAethRnrNak, uint8_t{0x40}}) {
		p.ext.aeth = {syndrome, 0};
		give(p);
	}
	EXPECT_EQ(stat(TERN_STAT_REQ_BAD_RESP), 3u);
	EXPECT_TRUE(completions().empty());
	EXPECT_EQ(mr_->read_u64(0x9000), before);
	pass(kTimeout);
	EXPECT_EQ(psns_sent(), (Psns{0}));
	p.ext.aeth = {kNoCredits, 0};
	give(p);
	EXPECT_EQ(completions(), (Completions{{0, TERN_WC_SUCCESS}}));
	EXPECT_EQ(mr_->read_u64(0x9000), 77u);
}

} // namespace
} // namespace tern::test
