// SPDX-License-Identifier: GPL-2.0-or-later
/* FLUSH (annex A19): what a card asks of its peer, and what it makes of such a request. */
#include "tests/unit/transport/one_connection.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint8_t kInvalidNak = nak_syndrome(NakCode::InvalidRequest);
constexpr uint8_t kAccessNak = nak_syndrome(NakCode::RemoteAccessError);
constexpr uint8_t kSeqNak = nak_syndrome(NakCode::PsnSequenceError);

/* ---- requester ---- */

class FlushRequester : public OneConnection {
protected:
	static uint32_t psn(uint32_t n) { return psn_after(kSqPsn, n); }
	static SendRequest flush(uint32_t length = 100, uint8_t type = TERN_FLUSH_GLOBAL,
	                         uint8_t level = TERN_FLUSH_RANGE)
	{
		SendRequest request{.opcode = TERN_OP_FLUSH, .remote_addr = 0x1000, .rkey = 0x77};
		request.flush = tern_hw_flush_seg{
		        .length = length, .type = type, .level = level, .rsvd = {}};
		return request;
	}
	SendRequest send(uint8_t flags = TERN_WQE_SIGNALED) const
	{
		return {.opcode = TERN_OP_SEND, .flags = flags, .sges = {mr_->sge(0, 1)}};
	}
	void post(const SendRequest &request)
	{
		qp_->post_send(request);
		run();
	}
	void respond(Opcode opcode, uint32_t n, size_t size = 0)
	{
		TestPacket p{.opcode = opcode, .psn = psn(n)};
		p.payload.resize(size);
		p.ext.aeth = {kAethAck | kCreditsInvalid, 0};
		give(p);
	}
	std::vector<uint32_t> psns_sent()
	{
		std::vector<uint32_t> psns;
		for (const auto &p : all_sent())
			psns.push_back((p.psn - kSqPsn) & 0xffffff);
		return psns;
	}
	using Psns = std::vector<uint32_t>;
	/** Statuses. */
	std::vector<int> completions()
	{
		std::vector<int> statuses;
		for (const auto &cqe : cq_->drain())
			statuses.push_back(cqe.status);
		return statuses;
	}
	using Statuses = std::vector<int>;
};

TEST_F(FlushRequester, SaysWhatToFlush)
{
	post(flush(1u << 31, TERN_FLUSH_GLOBAL | TERN_FLUSH_PERSISTENT, TERN_FLUSH_MR));
	const auto p = sent();
	ASSERT_TRUE(p);
	EXPECT_EQ(p->opcode, Opcode::RcFlush);
	EXPECT_EQ(p->psn, psn(0));
	EXPECT_TRUE(p->ack_request);
	EXPECT_EQ(p->ext.feth.type, 3);
	EXPECT_EQ(p->ext.feth.level, 1);
	EXPECT_EQ(p->ext.reth.va, 0x1000u);
	EXPECT_EQ(p->ext.reth.rkey, 0x77u);
	EXPECT_EQ(p->ext.reth.length, 1u << 31);
	EXPECT_TRUE(p->payload.empty());

	respond(Opcode::RcReadResponseOnly, 0);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].status, TERN_WC_SUCCESS);
	EXPECT_EQ(cqes[0].opcode, TERN_OP_FLUSH);
	EXPECT_EQ(cqes[0].byte_len.get(), 0u);
}

/* However long its range is, it has one PSN. */
TEST_F(FlushRequester, TakesOnePsn)
{
	post(flush(100000));
	post(send());
	EXPECT_EQ(psns_sent(), (Psns{0, 1}));
}

/* An ACK alone, of a later request even, does not complete it: its response was lost. */
TEST_F(FlushRequester, NeedsItsResponse)
{
	post(flush());
	post(send());
	EXPECT_EQ(psns_sent(), (Psns{0, 1}));
	respond(Opcode::RcAcknowledge, 1);
	EXPECT_TRUE(completions().empty());
	EXPECT_EQ(psns_sent(), (Psns{0, 1})) << "asked again";
	respond(Opcode::RcReadResponseOnly, 0);
	respond(Opcode::RcAcknowledge, 1);
	EXPECT_EQ(completions(), (Statuses{0, 0}));
}

TEST_F(FlushRequester, AnsweredWithData)
{
	post(flush());
	respond(Opcode::RcReadResponseOnly, 0, 8);
	EXPECT_EQ(completions(), (Statuses{TERN_WC_BAD_RESP_ERR}));
}

TEST_F(FlushRequester, AnsweredAsAnAtomic)
{
	post(flush());
	respond(Opcode::RcAtomicAcknowledge, 0);
	EXPECT_EQ(completions(), (Statuses{TERN_WC_BAD_RESP_ERR}));
}

TEST_F(FlushRequester, Refused)
{
	post(flush());
	TestPacket nak{.opcode = Opcode::RcAcknowledge, .psn = psn(0)};
	nak.ext.aeth = {kAccessNak, 0};
	give(nak);
	EXPECT_EQ(completions(), (Statuses{TERN_WC_REM_ACCESS_ERR}));
}

/* It takes one of the places of READs and atomics, and a fence waits for it. */
TEST_F(FlushRequester, IsOneOfMaxRdAtomic)
{
	auto c = connection();
	c.max_rd_atomic = 1;
	connect(c);
	post(flush());
	post(flush());
	post(send(TERN_WQE_SIGNALED | TERN_WQE_FENCE));
	EXPECT_EQ(psns_sent(), (Psns{0}));
	respond(Opcode::RcReadResponseOnly, 0);
	EXPECT_EQ(psns_sent(), (Psns{1}));
	respond(Opcode::RcReadResponseOnly, 1);
	EXPECT_EQ(psns_sent(), (Psns{2}));
}

TEST_F(FlushRequester, WithoutPlaces)
{
	auto c = connection();
	c.max_rd_atomic = 0;
	connect(c);
	post(flush());
	EXPECT_EQ(completions(), (Statuses{TERN_WC_LOC_QP_OP_ERR}));
}

TEST_F(FlushRequester, OfNoType)
{
	post(flush(8, 0));
	EXPECT_EQ(completions(), (Statuses{TERN_WC_LOC_QP_OP_ERR}));
}

/* ---- responder ---- */

class FlushResponder : public OneConnection {
protected:
	static uint32_t psn(uint32_t n) { return psn_after(kRqPsn, n); }
	TestPacket flush(uint32_t n, uint64_t offset = 0, uint32_t length = 16,
	                 Feth feth = {TERN_FLUSH_GLOBAL, TERN_FLUSH_RANGE}) const
	{
		TestPacket p{.opcode = Opcode::RcFlush, .psn = psn(n), .ack_request = true};
		p.ext.feth = feth;
		p.ext.reth = {mr_->va + offset, mr_->key, length};
		return p;
	}
	TestPacket write(uint32_t n, uint64_t offset) const
	{
		TestPacket p{.opcode = Opcode::RcWriteOnly,
		             .psn = psn(n),
		             .payload = std::vector<std::byte>(8, std::byte{0x77})};
		p.ext.reth = {mr_->va + offset, mr_->key, 8};
		return p;
	}
	/** @p, sent over a connection of its own, is refused. */
	void expect_refusal(const TestPacket &p, uint8_t syndrome, tern_hw_event type)
	{
		connect(connection());
		give(p);
		expect_aeth(0, syndrome);
		EXPECT_TRUE(event(type, qp_->number));
		EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	}
	void expect_invalid(const TestPacket &p)
	{
		expect_refusal(p, kInvalidNak, TERN_EVENT_QP_REQ_ERR);
	}
	void expect_denied(const TestPacket &p)
	{
		expect_refusal(p, kAccessNak, TERN_EVENT_QP_ACCESS_ERR);
	}
};

/* Expected: a PSN and a message of its own; it changes nothing. */
TEST_F(FlushResponder, Expected)
{
	give(flush(0));
	expect_empty_response(0);
	give(flush(1, kSize - 1, 1));
	const auto p = sent();
	ASSERT_TRUE(p);
	EXPECT_EQ(p->ext.aeth.msn, 2u);
	EXPECT_EQ(mr_->read(0, kSize), content(0, kSize));
	EXPECT_EQ(stat(TERN_STAT_RESP_FLUSHES), 2u);
}

/* Past: answered again, even when the region went since; there is nothing to do again. */
TEST_F(FlushResponder, Past)
{
	auto p = flush(0);
	const HostMr other = driver_.create_mr(pd_, kVa, 4096, kAllAccess);
	p.ext.reth.rkey = other.key;
	give(p);
	expect_empty_response(0);
	ASSERT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, other.key), TERN_AQ_OK);
	give(p);
	expect_empty_response(0);
	EXPECT_EQ(stat(TERN_STAT_RESP_FLUSHES), 1u);
	EXPECT_EQ(stat(TERN_STAT_RESP_DUPLICATES), 1u);
}

/* Future: what came before is missing, so that nothing can be said of it. */
TEST_F(FlushResponder, Future)
{
	give(flush(1));
	expect_aeth(0, kSeqNak);
	EXPECT_EQ(stat(TERN_STAT_RESP_FLUSHES), 0u);
}

/* The response tells that the WRITE before, which asked for no ACK, is there. */
TEST_F(FlushResponder, AfterAWrite)
{
	give(write(0, 64));
	EXPECT_TRUE(host_.wire.frames().empty());
	give(flush(1, 64, 8));
	expect_empty_response(1);
	EXPECT_EQ(mr_->read(64, 8), std::vector<std::byte>(8, std::byte{0x77}));
}

TEST_F(FlushResponder, RangesAtTheEdges)
{
	give(flush(0, 0, kSize));
	expect_empty_response(0);
	give(flush(1, kSize, 0));
	expect_empty_response(1);
	expect_denied(flush(0, kSize + 1, 0));
	expect_denied(flush(0, 1, kSize));
	expect_denied(flush(0, uint64_t{0} - 1, 1));
	expect_invalid(flush(0, 0, (1u << 31) + 1));
}

/* Of a whole region neither address nor length mean anything. */
TEST_F(FlushResponder, WholeRegion)
{
	give(flush(0, uint64_t{0} - 1, UINT32_MAX, {TERN_FLUSH_GLOBAL, TERN_FLUSH_MR}));
	expect_empty_response(0);
	auto p = flush(0, 0, 0, {TERN_FLUSH_GLOBAL, TERN_FLUSH_MR});
	p.ext.reth.rkey ^= 1;
	expect_denied(p);
}

TEST_F(FlushResponder, TypesAndLevels)
{
	for (const uint8_t type : {0, 4, 8, 5, 9, 15})
		expect_invalid(flush(0, 0, 16, {type, TERN_FLUSH_RANGE}));
	for (const uint8_t level : {2, 3})
		expect_invalid(flush(0, 0, 16, {TERN_FLUSH_GLOBAL, level}));
	for (const uint8_t type :
	     {TERN_FLUSH_PERSISTENT, TERN_FLUSH_GLOBAL | TERN_FLUSH_PERSISTENT})
		expect_denied(flush(0, 0, 16, {type, TERN_FLUSH_RANGE}));
}

/* Even no bytes need a key with the right, of the same protection domain. */
TEST_F(FlushResponder, Keys)
{
	const HostMr plain =
	        driver_.create_mr(pd_, kVa, 4096, kAllAccess & ~TERN_ACCESS_FLUSH_GLOBAL);
	const HostMr other = driver_.create_mr(driver_.alloc_pd(), kVa, 4096, kAllAccess);
	const HostMr only = driver_.create_mr(pd_, kVa, 4096, TERN_ACCESS_FLUSH_GLOBAL);
	for (const uint8_t level : {TERN_FLUSH_RANGE, TERN_FLUSH_MR})
		for (const uint32_t key :
		     {mr_->key ^ 1, mr_->key + 0x70000, plain.key, other.key}) {
			auto p = flush(0, 0, 0, {TERN_FLUSH_GLOBAL, level});
			p.ext.reth.rkey = key;
			expect_denied(p);
		}
	connect(connection());
	auto p = flush(0);
	p.ext.reth.rkey = only.key;
	give(p);
	expect_empty_response(0);
}

/* The QP does not support FLUSH, so this is an invalid request. */
TEST_F(FlushResponder, QpWithoutTheRight)
{
	auto c = connection();
	c.access = kAllAccess & ~TERN_ACCESS_FLUSH_GLOBAL;
	connect(c);
	give(flush(0));
	expect_aeth(0, kInvalidNak);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* A window gives no right to flush, and cannot be bound with it. */
TEST_F(FlushResponder, Window)
{
	const HostMr bound =
	        driver_.create_mr(pd_, kVa, 4096, kAllAccess | TERN_ACCESS_MW_BIND, {1, 12});
	const uint32_t window = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 0);
	const auto bind = [&](uint8_t access) {
		SendRequest request{.opcode = TERN_OP_BIND_MW};
		request.bind.emplace();
		request.bind->addr = bound.va;
		request.bind->length = uint64_t{64};
		request.bind->rkey = window + 1;
		request.bind->lkey = bound.key;
		request.bind->access = access;
		qp_->post_send(request);
		run();
		return cq_->drain().at(0).status;
	};
	EXPECT_EQ(bind(TERN_ACCESS_REMOTE_WRITE | TERN_ACCESS_FLUSH_GLOBAL), TERN_WC_MW_BIND_ERR);
	connect(connection());
	EXPECT_EQ(bind(TERN_ACCESS_REMOTE_WRITE), TERN_WC_SUCCESS);
	auto p = flush(0);
	p.ext.reth.rkey = window + 1;
	expect_denied(p);
}

/* The depth of the responder is that of READs, atomics and FLUSHes together. */
TEST_F(FlushResponder, CountsAsOutstanding)
{
	auto c = connection();
	c.max_dest_rd_atomic = 2;
	connect(c);
	for (uint32_t i = 0; i < 3; i++)
		give(flush(i), path(), false);
	run();
	const auto all = all_sent();
	ASSERT_EQ(all.size(), 3u);
	EXPECT_EQ(all[2].ext.aeth.syndrome, kInvalidNak);
}

TEST_F(FlushResponder, InTheMiddleOfAMessage)
{
	auto first = write(0, 0);
	first.opcode = Opcode::RcWriteFirst;
	first.payload.resize(256);
	first.ext.reth.length = 300;
	give(first);
	all_sent();
	give(flush(1));
	expect_aeth(1, kInvalidNak);
}

/* Of XRC the region is that of the SRQ's domain. */
TEST_F(FlushResponder, Xrc)
{
	const uint32_t xrcd = driver_.alloc_xrcd();
	const auto srq = driver_.create_srq({.pd = pd_, .xrcdn = xrcd, .cqn = cq_->number});
	qp_ = driver_.create_qp({.type = TERN_QPT_XRC_TGT, .xrcdn = xrcd});
	qp_->connect(connection());
	auto p = flush(0);
	p.service = Service::Xrc;
	p.ext.srqn = srq->number;
	give(p);
	const auto answer = sent();
	ASSERT_TRUE(answer);
	EXPECT_EQ(answer->service, Service::Xrc);
	EXPECT_EQ(answer->opcode, Opcode::RcReadResponseOnly);
	EXPECT_EQ(stat(TERN_STAT_RESP_FLUSHES), 1u);
}

} // namespace
} // namespace tern::test
