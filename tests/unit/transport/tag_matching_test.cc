// SPDX-License-Identifier: GPL-2.0-or-later
/* QPs whose SRQ matches messages by tag. */
#include "qemu/rnic/formats/tag_header.h"
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr size_t kMtu = 256;
constexpr uint64_t kAll = ~uint64_t{0};
constexpr uint64_t kTagged = 0x4000; /* where in the region the buffers of tags are */
constexpr uint64_t kSlots = 0x8000;  /* those of receive WQEs */
constexpr uint32_t kBufferSize = 1024;
constexpr uint64_t kTimeout = (4 * 4096ull) << 8; /* of connection() */
constexpr uint8_t kAck = kAethAck | kCreditsInvalid;
constexpr uint8_t kInvalidNak = nak_syndrome(NakCode::InvalidRequest);
constexpr uint8_t kAccessNak = nak_syndrome(NakCode::RemoteAccessError);
constexpr uint8_t kOperationNak = nak_syndrome(NakCode::RemoteOperationalError);

using Bytes = std::vector<std::byte>;

template <typename T>
void append(Bytes &to, const T &header)
{
	const auto bytes = std::as_bytes(std::span(&header, 1));
	to.insert(to.end(), bytes.begin(), bytes.end());
}

Bytes data(size_t n)
{
	Bytes bytes(n);
	for (size_t i = 0; i < n; i++)
		bytes[i] = static_cast<std::byte>(i * 7 + 1);
	return bytes;
}

Bytes tagged(uint8_t opcode, uint64_t tag, const Bytes &payload = {})
{
	Bytes message;
	headers::TagMatching header{};
	header.opcode = opcode;
	header.app_ctx = 0xabcd0123;
	header.tag = tag;
	append(message, header);
	message.insert(message.end(), payload.begin(), payload.end());
	return message;
}

Bytes rendezvous(uint64_t tag, uint32_t length, size_t extra = 0)
{
	Bytes rest;
	headers::Rendezvous from{};
	from.va = 0x1000;
	from.rkey = 0x77;
	from.length = length;
	append(rest, from);
	rest.resize(rest.size() + extra);
	return tagged(headers::kTagRendezvous, tag, rest);
}

class TagMatching : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		tag_cq_ = driver_.create_cq(*eq_);
		make_srq({});
		qp_ = connected();
		events();
	}
	void make_srq(SrqOptions options)
	{
		options.pd = pd_;
		options.cqn = tag_cq_->number;
		options.tags = true;
		srq_ = driver_.create_srq(options);
	}
	std::unique_ptr<HostQp> connected(const Connection &c)
	{
		auto qp = driver_.create_qp({.pd = pd_,
		                             .send_cqn = cq_->number,
		                             .recv_cqn = cq_->number,
		                             .srqn = srq_->number});
		qp->connect(c);
		return qp;
	}
	std::unique_ptr<HostQp> connected() { return connected(connection()); }

	/* Operations; the buffer of entry n is the n-th. */
	tern_hw_tag_op add_op(uint32_t entry, uint64_t tag, uint64_t mask = kAll,
	                      uint8_t flags = 0) const
	{
		tern_hw_tag_op op{};
		op.opcode = TERN_TAG_ADD;
		op.flags = flags;
		op.entry = entry;
		op.tag = tag;
		op.mask = mask;
		op.buf.addr = mr_->va + buffer_at(entry);
		op.buf.length = kBufferSize;
		op.buf.lkey = mr_->key;
		return op;
	}
	void add(uint32_t entry, uint64_t tag, uint64_t mask = kAll)
	{
		srq_->post_tag_op(add_op(entry, tag, mask));
	}
	tern_hw_tag_op del_op(uint32_t entry) const
	{
		tern_hw_tag_op op{};
		op.opcode = TERN_TAG_DEL;
		op.flags = TERN_TAG_SIGNALED;
		op.entry = entry;
		return op;
	}
	static tern_hw_tag_op sync_op(uint32_t count)
	{
		tern_hw_tag_op op{};
		op.opcode = TERN_TAG_SYNC;
		op.flags = TERN_TAG_SIGNALED | TERN_TAG_COUNT;
		op.unexpected = count;
		return op;
	}
	static uint64_t buffer_at(uint32_t entry) { return kTagged + entry * kBufferSize; }
	Bytes buffer(uint32_t entry, size_t n) const { return mr_->read(buffer_at(entry), n); }
	uint32_t post_slot() { return srq_->post(mr_->sge(kSlots, 4096)); }

	void send(const HostQp &to, uint32_t n, const Bytes &message,
	          Opcode opcode = Opcode::RcSendOnly)
	{
		give({.opcode = opcode,
		      .psn = psn_after(kRqPsn, n),
		      .ack_request = true,
		      .qpn = to.number,
		      .payload = message});
	}
	void send(uint32_t n, const Bytes &message, Opcode opcode = Opcode::RcSendOnly)
	{
		send(*qp_, n, message, opcode);
	}
	tern_hw_cqe cqe()
	{
		const auto c = tag_cq_->poll();
		EXPECT_TRUE(c) << "no completion";
		if (!c)
			return {};
		EXPECT_EQ(c->srqn.get(), srq_->number);
		return *c;
	}
	void expect_op(uint8_t opcode, uint32_t index, tern_hw_cqe_status status = TERN_WC_SUCCESS,
	               uint8_t flags = 0)
	{
		const auto c = cqe();
		EXPECT_EQ(c.opcode, opcode);
		EXPECT_EQ(c.wqe_index.get(), index);
		EXPECT_EQ(c.status, status);
		EXPECT_EQ(c.flags, flags);
		EXPECT_EQ(c.qpn.get(), 0u);
	}
	void expect_recv(uint8_t opcode, uint32_t index, uint8_t flags, uint32_t byte_len,
	                 tern_hw_cqe_status status = TERN_WC_SUCCESS)
	{
		const auto c = cqe();
		EXPECT_EQ(c.opcode, opcode);
		EXPECT_EQ(c.wqe_index.get(), index);
		EXPECT_EQ(c.flags, flags);
		EXPECT_EQ(c.byte_len.get(), byte_len);
		EXPECT_EQ(c.status, status);
		EXPECT_EQ(c.qpn.get(), qp_->number);
	}
	bool no_cqe() { return !tag_cq_->poll(); }
	/** The syndrome of the one packet that was sent. */
	uint8_t answer()
	{
		const auto p = sent();
		EXPECT_TRUE(p && host_.wire.frames().empty());
		return p ? p->ext.aeth.syndrome : 0xff;
	}

	/* The peer's part in a rendezvous. */
	void expect_read(uint32_t n, uint32_t length, uint64_t va = 0x1000)
	{
		const auto p = sent();
		ASSERT_TRUE(p);
		EXPECT_EQ(p->opcode, Opcode::RcReadRequest);
		EXPECT_EQ(p->psn, psn_after(kSqPsn, n));
		EXPECT_EQ(p->ext.reth.va, va);
		EXPECT_EQ(p->ext.reth.rkey, 0x77u);
		EXPECT_EQ(p->ext.reth.length, length);
	}
	void read_response(Opcode opcode, uint32_t n, const Bytes &payload)
	{
		TestPacket p{.opcode = opcode, .psn = psn_after(kSqPsn, n), .payload = payload};
		p.ext.aeth = {kAck, 0};
		give(p);
	}
	void acknowledge(uint32_t n, uint8_t syndrome = kAck)
	{
		TestPacket p{.opcode = Opcode::RcAcknowledge, .psn = psn_after(kSqPsn, n)};
		p.ext.aeth = {syndrome, 0};
		give(p);
	}
	void expect_fin(uint32_t n, const Bytes &request)
	{
		const auto p = sent();
		ASSERT_TRUE(p);
		EXPECT_EQ(p->opcode, Opcode::RcSendOnly);
		EXPECT_EQ(p->psn, psn_after(kSqPsn, n));
		Bytes fin(request.begin(), request.begin() + 32);
		fin[0] = std::byte{headers::kTagFin};
		EXPECT_EQ(p->payload, fin);
	}

	std::unique_ptr<HostCq> tag_cq_;
	std::unique_ptr<HostSrq> srq_;
};

constexpr uint8_t kMatch = TERN_CQE_TAG_MATCH;
constexpr uint8_t kData = TERN_CQE_TAG_DATA;

/* ---- operations ---- */

TEST_F(TagMatching, SignaledOperationsComplete)
{
	const uint32_t first = srq_->post_tag_op(add_op(0, 1, kAll, TERN_TAG_SIGNALED));
	srq_->post_tag_op(add_op(1, 2));
	const uint32_t del = srq_->post_tag_op(del_op(0));
	const uint32_t sync = srq_->post_tag_op(sync_op(0));
	expect_op(TERN_CQE_TAG_ADD, first);
	expect_op(TERN_CQE_TAG_DEL, del);
	expect_op(TERN_CQE_TAG_SYNC, sync);
	EXPECT_TRUE(no_cqe());
}

/* One doorbell for several, and over the end of the ring. */
TEST_F(TagMatching, OperationsInBatches)
{
	for (uint32_t round = 0; round < 5; round++) {
		srq_->post_tag_op(add_op(0, 1, kAll, TERN_TAG_SIGNALED), false);
		srq_->post_tag_op(add_op(1, 1, kAll, TERN_TAG_SIGNALED), false);
		EXPECT_TRUE(no_cqe());
		srq_->post_tag_op(del_op(0));
		EXPECT_EQ(tag_cq_->drain().size(), 3u);
		srq_->post_tag_op(del_op(1));
		expect_op(TERN_CQE_TAG_DEL, round * 4 + 3);
	}
}

TEST_F(TagMatching, DelOfNothing)
{
	expect_op(TERN_CQE_TAG_DEL, srq_->post_tag_op(del_op(3)), TERN_WC_TM_ERR);
	add(3, 1);
	send(0, tagged(headers::kTagEager, 1));
	expect_recv(TERN_CQE_TAG_RECV, 3, kMatch | kData, 0);
	expect_op(TERN_CQE_TAG_DEL, srq_->post_tag_op(del_op(3)), TERN_WC_TM_ERR);
}

/* Each is refused, signalled or not, and changes nothing. */
TEST_F(TagMatching, BadOperations)
{
	const auto refused = [&](const auto &spoil, tern_hw_tag_op op, uint8_t opcode) {
		spoil(op);
		expect_op(opcode, srq_->post_tag_op(op), TERN_WC_LOC_QP_OP_ERR);
	};
	const auto bad_add = [&](const auto &spoil) {
		refused(spoil, add_op(0, 1), TERN_CQE_TAG_ADD);
	};
	using Op = tern_hw_tag_op;
	bad_add([](Op &op) { op.entry = 8u; });
	bad_add([](Op &op) { op.flags = 0x80; });
	bad_add([](Op &op) { op.rsvd0[1] = 1; });
	bad_add([](Op &op) { op.rsvd1 = 1u; });
	bad_add([](Op &op) { op.rsvd2[15] = 1; });
	bad_add([](Op &op) { op.unexpected = 1u; });
	bad_add([](Op &op) { op.buf.length = 0x80000001u; });
	refused([](Op &op) { op.entry = 8u; }, del_op(0), TERN_CQE_TAG_DEL);
	refused([](Op &op) { op.mask = 1u; }, del_op(0), TERN_CQE_TAG_DEL);
	refused([](Op &op) { op.entry = 1u; }, sync_op(0), TERN_CQE_TAG_SYNC);
	refused([](Op &op) { op.buf.lkey = 1u; }, sync_op(0), TERN_CQE_TAG_SYNC);
	refused([](Op &op) { op.opcode = 0; }, sync_op(0), TERN_CQE_TAG_SYNC);
	refused([](Op &op) { op.opcode = 4; }, sync_op(0), TERN_CQE_TAG_SYNC);

	post_slot();
	send(0, tagged(headers::kTagEager, 1));
	EXPECT_EQ(cqe().opcode, TERN_CQE_TAG_UNEXPECTED);
	for (Op op : {add_op(8, 1), del_op(8)}) {
		op.flags |= TERN_TAG_COUNT;
		op.unexpected = 1u;
		srq_->post_tag_op(op);
		EXPECT_EQ(cqe().flags, TERN_CQE_TAG_SYNC_REQ) << "its count has no effect";
	}
}

TEST_F(TagMatching, DoorbellOfNobody)
{
	driver_.doorbell(1, TERN_DB_TAG_OPS, srq_->number, 1);
	driver_.doorbell(0, TERN_DB_TAG_OPS, srq_->number + 1, 1);
	const auto plain = driver_.create_srq({.pd = pd_});
	driver_.doorbell(0, TERN_DB_TAG_OPS, plain->number, 1);
	EXPECT_EQ(stat(TERN_STAT_DB_DROPPED), 3u);
	EXPECT_TRUE(no_cqe());
}

/* More than the ring holds: the SRQ is lost, and so is the QP that needs it. */
TEST_F(TagMatching, ImpossibleIndex)
{
	driver_.doorbell(0, TERN_DB_TAG_OPS, srq_->number, 5);
	EXPECT_TRUE(event(TERN_EVENT_SRQ_ERR, srq_->number));
	srq_->post_tag_op(sync_op(0));
	EXPECT_TRUE(no_cqe());
	send(0, tagged(headers::kTagEager, 1));
	EXPECT_TRUE(event(TERN_EVENT_QP_FATAL, qp_->number));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

TEST_F(TagMatching, CompletionQueueFull)
{
	tag_cq_ = driver_.create_cq(*eq_, 1);
	make_srq({});
	for (int i = 0; i < 3; i++)
		srq_->post_tag_op(sync_op(0));
	const auto all = events();
	const auto raised = [&](uint8_t type) {
		return std::ranges::any_of(all, [&](const auto &e) { return e.type == type; });
	};
	EXPECT_TRUE(raised(TERN_EVENT_CQ_ERR));
	EXPECT_TRUE(raised(TERN_EVENT_SRQ_ERR));
}

/* ---- eager messages ---- */

TEST_F(TagMatching, Eager)
{
	add(2, 0x1234, 0xffff);
	send(0, tagged(headers::kTagEager, 0xff1234, data(100)));
	EXPECT_EQ(answer(), kAck);
	const auto c = cqe();
	EXPECT_EQ(c.opcode, TERN_CQE_TAG_RECV);
	EXPECT_EQ(c.wqe_index.get(), 2u);
	EXPECT_EQ(c.flags, kMatch | kData);
	EXPECT_EQ(c.byte_len.get(), 100u);
	EXPECT_EQ(c.tag.get(), 0xff1234u);
	EXPECT_EQ(c.app_ctx.get(), 0xabcd0123u);
	EXPECT_EQ(c.qpn.get(), qp_->number);
	EXPECT_EQ(buffer(2, 100), data(100));
	/* The entry is free. */
	expect_op(TERN_CQE_TAG_ADD, srq_->post_tag_op(add_op(2, 1, kAll, TERN_TAG_SIGNALED)));
}

TEST_F(TagMatching, EmptyBuffer)
{
	tern_hw_tag_op op = add_op(0, 1);
	op.buf = {};
	srq_->post_tag_op(op);
	send(0, tagged(headers::kTagEager, 1));
	expect_recv(TERN_CQE_TAG_RECV, 0, kMatch | kData, 0);
}

TEST_F(TagMatching, Immediate)
{
	add(0, 1);
	TestPacket p{.opcode = Opcode::RcSendOnlyImm,
	             .psn = kRqPsn,
	             .payload = tagged(headers::kTagEager, 1, data(4))};
	p.ext.imm = 0x55aa;
	give(p);
	const auto c = cqe();
	EXPECT_EQ(c.flags, kMatch | kData | TERN_CQE_IMM);
	EXPECT_EQ(c.imm.get(), 0x55aau);
}

/* The match is told at once; another QP's message goes on meanwhile. */
TEST_F(TagMatching, EagerOfSeveralPackets)
{
	const auto other = connected();
	add(0, 1);
	add(1, 1);
	const Bytes payload = data(kMtu - 16 + kMtu + 5);
	const Bytes message = tagged(headers::kTagEager, 1, payload);
	send(0, {message.begin(), message.begin() + kMtu}, Opcode::RcSendFirst);
	const auto match = cqe();
	EXPECT_EQ(match.opcode, TERN_CQE_TAG_RECV);
	EXPECT_EQ(match.wqe_index.get(), 0u);
	EXPECT_EQ(match.flags, kMatch);
	EXPECT_EQ(match.tag.get(), 1u);
	send(*other, 0, tagged(headers::kTagEager, 1, data(3)));
	EXPECT_EQ(cqe().wqe_index.get(), 1u);
	send(1, {message.begin() + kMtu, message.begin() + 2 * kMtu}, Opcode::RcSendMiddle);
	EXPECT_TRUE(no_cqe());
	send(2, {message.begin() + 2 * kMtu, message.end()}, Opcode::RcSendLast);
	const auto end = cqe();
	EXPECT_EQ(end.flags, kData);
	EXPECT_EQ(end.tag.get(), 0u);
	EXPECT_EQ(end.byte_len.get(), payload.size());
	EXPECT_EQ(buffer(0, payload.size()), payload);
}

TEST_F(TagMatching, TooLong)
{
	tern_hw_tag_op op = add_op(0, 1);
	op.buf.length = 99u;
	srq_->post_tag_op(op);
	send(0, tagged(headers::kTagEager, 1, data(100)));
	EXPECT_EQ(answer(), kInvalidNak);
	expect_recv(TERN_CQE_TAG_RECV, 0, kMatch | kData, 0, TERN_WC_LOC_LEN_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

TEST_F(TagMatching, BadKey)
{
	tern_hw_tag_op op = add_op(0, 1);
	op.buf.lkey = mr_->key ^ 1;
	srq_->post_tag_op(op);
	send(0, tagged(headers::kTagEager, 1, data(4)));
	EXPECT_EQ(answer(), kOperationNak);
	expect_recv(TERN_CQE_TAG_RECV, 0, kMatch | kData, 0, TERN_WC_LOC_PROT_ERR);
}

/* A QP that ends in the middle of a message gives the entry back. */
TEST_F(TagMatching, QpEndsInTheMiddle)
{
	const Bytes message = tagged(headers::kTagEager, 1, data(1000));
	const Bytes first(message.begin(), message.begin() + kMtu);
	const auto begin = [&](uint32_t n) {
		add(0, 1);
		send(n, first, Opcode::RcSendFirst);
		EXPECT_EQ(cqe().flags, kMatch);
	};
	const auto ended = [&] {
		expect_recv(TERN_CQE_TAG_RECV, 0, kData, 0, TERN_WC_WR_FLUSH_ERR);
		EXPECT_TRUE(no_cqe());
	};
	begin(0);
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	ended();
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	qp_->connect(connection());
	begin(0);
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	ended();
	qp_->connect(connection());
	begin(0);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qp_->number), TERN_AQ_OK);
	ended();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_SRQ, srq_->number), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_CQ, tag_cq_->number), TERN_AQ_OK);
}

/* ---- what matches nothing ---- */

TEST_F(TagMatching, Unexpected)
{
	const uint32_t slot = post_slot();
	add(0, 1);
	const Bytes message = tagged(headers::kTagEager, 2, data(50));
	send(0, message);
	expect_recv(TERN_CQE_TAG_UNEXPECTED, slot, 0, static_cast<uint32_t>(message.size()));
	EXPECT_EQ(mr_->read(kSlots, message.size()), message) << "with its header";
}

/* A buffer that the host adds before it knows of all unexpected messages is passed over. */
TEST_F(TagMatching, NewTagsWaitForTheCount)
{
	const uint32_t slot = post_slot();
	const uint32_t next = post_slot();
	send(0, tagged(headers::kTagEager, 1));
	expect_recv(TERN_CQE_TAG_UNEXPECTED, slot, 0, 16);
	expect_op(TERN_CQE_TAG_ADD, srq_->post_tag_op(add_op(0, 1, kAll, TERN_TAG_SIGNALED)),
	          TERN_WC_SUCCESS, TERN_CQE_TAG_SYNC_REQ);
	send(1, tagged(headers::kTagEager, 1));
	expect_recv(TERN_CQE_TAG_UNEXPECTED, next, 0, 16);
	expect_op(TERN_CQE_TAG_SYNC, srq_->post_tag_op(sync_op(1)), TERN_WC_SUCCESS,
	          TERN_CQE_TAG_SYNC_REQ);
	/* Any operation can bring the count. */
	tern_hw_tag_op op = add_op(1, 2, kAll, TERN_TAG_SIGNALED | TERN_TAG_COUNT);
	op.unexpected = 2u;
	expect_op(TERN_CQE_TAG_ADD, srq_->post_tag_op(op));
	send(2, tagged(headers::kTagEager, 1));
	expect_recv(TERN_CQE_TAG_RECV, 0, kMatch | kData, 0);
}

/* Refused for want of a receive WQE it was not counted, and may match when it comes again. */
TEST_F(TagMatching, NoReceiveWqe)
{
	const Bytes message = tagged(headers::kTagEager, 1, data(5));
	send(0, message);
	EXPECT_EQ(answer(), kAethRnrNak | connection().min_rnr_timer);
	EXPECT_TRUE(no_cqe());
	add(0, 1);
	send(0, message);
	expect_recv(TERN_CQE_TAG_RECV, 0, kMatch | kData, 5);
}

/* Opcodes NO_TAG, FIN and unknown ones, and what is too short for a header. */
TEST_F(TagMatching, NoTag)
{
	add(0, 0, 0); /* would match anything */
	uint32_t n = 0;
	for (const uint8_t opcode : {0, 2, 4, 255}) {
		const Bytes message = tagged(opcode, 1, data(7));
		const uint32_t slot = post_slot();
		send(n++, message);
		expect_recv(TERN_CQE_NO_TAG, slot, 0, static_cast<uint32_t>(message.size()));
		EXPECT_EQ(mr_->read(kSlots, message.size()), message);
	}
	const uint32_t slot = post_slot();
	Bytes message = tagged(headers::kTagEager, 1);
	message.resize(15);
	send(n++, message);
	expect_recv(TERN_CQE_NO_TAG, slot, 0, 15);
	/* They were not counted. */
	send(n++, tagged(headers::kTagEager, 1));
	expect_recv(TERN_CQE_TAG_RECV, 0, kMatch | kData, 0);
	expect_op(TERN_CQE_TAG_SYNC, srq_->post_tag_op(sync_op(0)));
}

TEST_F(TagMatching, WriteWithImmediate)
{
	add(0, 0, 0);
	const uint32_t slot = post_slot();
	TestPacket p{.opcode = Opcode::RcWriteOnlyImm, .psn = kRqPsn, .payload = data(8)};
	p.ext.reth = {mr_->va, mr_->key, 8};
	give(p);
	expect_recv(TERN_CQE_RECV_WRITE_IMM, slot, TERN_CQE_IMM, 8);
}

/* ---- rendezvous ---- */

TEST_F(TagMatching, Rendezvous)
{
	const Bytes request = rendezvous(5, kMtu + 10, 32);
	const Bytes payload = data(kMtu + 10);
	add(1, 5);
	send(0, request);
	const auto match = cqe();
	EXPECT_EQ(match.opcode, TERN_CQE_TAG_RECV);
	EXPECT_EQ(match.flags, kMatch);
	EXPECT_EQ(match.wqe_index.get(), 1u);
	EXPECT_EQ(match.tag.get(), 5u);
	EXPECT_EQ(match.app_ctx.get(), 0xabcd0123u);
	EXPECT_EQ(sent()->opcode, Opcode::RcAcknowledge);
	expect_read(0, kMtu + 10);
	EXPECT_FALSE(sent()) << "the FIN waits for the data";
	read_response(Opcode::RcReadResponseFirst, 0, {payload.begin(), payload.begin() + kMtu});
	EXPECT_TRUE(no_cqe());
	read_response(Opcode::RcReadResponseLast, 1, {payload.begin() + kMtu, payload.end()});
	expect_recv(TERN_CQE_TAG_RECV, 1, kData, kMtu + 10);
	EXPECT_EQ(buffer(1, payload.size()), payload);
	expect_fin(2, request);
	acknowledge(2);
	pass(kTimeout * 4);
	EXPECT_FALSE(sent());
	EXPECT_FALSE(cq_->poll()) << "nothing of it is the send queue's";
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
}

/* Lost READs, lost data and lost FINs are sent again. */
TEST_F(TagMatching, RendezvousWithLoss)
{
	const Bytes request = rendezvous(5, kMtu + 1);
	add(1, 5);
	send(0, request);
	cqe();
	sent();
	expect_read(0, kMtu + 1);
	pass(kTimeout);
	expect_read(0, kMtu + 1);
	read_response(Opcode::RcReadResponseFirst, 0, data(kMtu));
	pass(kTimeout);
	expect_read(1, 1, 0x1000 + kMtu);
	EXPECT_TRUE(no_cqe());
	read_response(Opcode::RcReadResponseOnly, 1, data(1));
	expect_recv(TERN_CQE_TAG_RECV, 1, kData, kMtu + 1);
	expect_fin(2, request);
	pass(kTimeout);
	expect_fin(2, request);
	acknowledge(2);
	pass(kTimeout * 4);
	EXPECT_FALSE(sent());
}

/* READs go out in the order of the messages, as many as max_rd_atomic allows. */
TEST_F(TagMatching, RendezvousInOrderAndWithinLimits)
{
	auto c = connection();
	c.max_rd_atomic = 2;
	qp_ = connected(c);
	for (uint32_t i = 0; i < 3; i++) {
		add(i, i);
		send(i, rendezvous(i, 10 + i));
		EXPECT_EQ(cqe().wqe_index.get(), i);
	}
	std::vector<TestPacket> reads;
	for (auto &p : all_sent())
		if (p.opcode == Opcode::RcReadRequest)
			reads.push_back(p);
	ASSERT_EQ(reads.size(), 2u);
	EXPECT_EQ(reads[0].ext.reth.length, 10u);
	EXPECT_EQ(reads[1].ext.reth.length, 11u);
	read_response(Opcode::RcReadResponseOnly, 0, data(10));
	expect_recv(TERN_CQE_TAG_RECV, 0, kData, 10);
	expect_fin(2, rendezvous(0, 10));
	expect_read(3, 12);
	/* This one acknowledges the FIN. */
	read_response(Opcode::RcReadResponseOnly, 1, data(11));
	expect_recv(TERN_CQE_TAG_RECV, 1, kData, 11);
	expect_fin(4, rendezvous(1, 11));
	read_response(Opcode::RcReadResponseOnly, 3, data(12));
	expect_recv(TERN_CQE_TAG_RECV, 2, kData, 12);
	expect_fin(5, rendezvous(2, 12));
	acknowledge(5);
	EXPECT_TRUE(no_cqe());
}

/* The send queue gets its turns, and a fence there does not wait for what the card fetches. */
TEST_F(TagMatching, RendezvousBesideTheSendQueue)
{
	for (uint32_t i = 0; i < 2; i++) {
		add(i, i);
		send(i, rendezvous(i, 8));
		cqe();
	}
	all_sent();
	SendRequest fenced{.flags = TERN_WQE_SIGNALED | TERN_WQE_FENCE, .sges = {mr_->sge(0, 3)}};
	qp_->post_send(fenced);
	run();
	const auto p = sent();
	ASSERT_TRUE(p);
	EXPECT_EQ(p->opcode, Opcode::RcSendOnly);
	EXPECT_EQ(p->payload.size(), 3u);
	read_response(Opcode::RcReadResponseOnly, 0, data(8));
	read_response(Opcode::RcReadResponseOnly, 1, data(8));
	acknowledge(4);
	const auto c = cq_->poll();
	ASSERT_TRUE(c);
	EXPECT_EQ(c->opcode, TERN_OP_SEND);
	EXPECT_EQ(c->status, TERN_WC_SUCCESS);
	EXPECT_FALSE(cq_->poll());
	EXPECT_EQ(tag_cq_->drain().size(), 2u);
}

/* Before RTS nothing is sent; what has matched waits. */
TEST_F(TagMatching, RendezvousInRtr)
{
	qp_ = driver_.create_qp({.pd = pd_,
	                         .send_cqn = cq_->number,
	                         .recv_cqn = cq_->number,
	                         .srqn = srq_->number});
	qp_->to_init(connection());
	qp_->to_rtr(connection());
	add(0, 1);
	send(0, rendezvous(1, 8));
	EXPECT_EQ(cqe().flags, kMatch);
	EXPECT_EQ(answer(), kAck);
	qp_->to_rts(connection());
	run();
	expect_read(0, 8);
}

TEST_F(TagMatching, RendezvousRefusedByThePeer)
{
	add(0, 1);
	send(0, rendezvous(1, 8));
	EXPECT_EQ(cqe().flags, kMatch);
	acknowledge(0, kAccessNak);
	expect_recv(TERN_CQE_TAG_RECV, 0, kData, 0, TERN_WC_REM_ACCESS_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	EXPECT_TRUE(no_cqe());
}

TEST_F(TagMatching, RendezvousWithoutAnswer)
{
	auto c = connection();
	c.retry_cnt = 1;
	qp_ = connected(c);
	for (uint32_t i = 0; i < 2; i++) {
		add(i, i);
		send(i, rendezvous(i, 8));
		EXPECT_EQ(cqe().flags, kMatch);
	}
	pass(kTimeout * 3);
	expect_recv(TERN_CQE_TAG_RECV, 0, kData, 0, TERN_WC_RETRY_EXC_ERR);
	expect_recv(TERN_CQE_TAG_RECV, 1, kData, 0, TERN_WC_WR_FLUSH_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* Its data is here, so an event has to tell of the connection. */
TEST_F(TagMatching, FinRefusedByThePeer)
{
	add(0, 1);
	send(0, rendezvous(1, 8));
	cqe();
	read_response(Opcode::RcReadResponseOnly, 0, data(8));
	expect_recv(TERN_CQE_TAG_RECV, 0, kData, 8);
	events();
	acknowledge(1, kInvalidNak);
	EXPECT_TRUE(event(TERN_EVENT_QP_FATAL, qp_->number));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	EXPECT_TRUE(no_cqe());
}

TEST_F(TagMatching, RendezvousIntoABadBuffer)
{
	tern_hw_tag_op op = add_op(0, 1);
	op.buf.lkey = mr_->key ^ 1;
	srq_->post_tag_op(op);
	send(0, rendezvous(1, 8));
	EXPECT_EQ(cqe().flags, kMatch);
	expect_recv(TERN_CQE_TAG_RECV, 0, kData, 0, TERN_WC_LOC_PROT_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* A QP that may not READ. */
TEST_F(TagMatching, RendezvousWithoutReads)
{
	auto c = connection();
	c.max_rd_atomic = 0;
	qp_ = connected(c);
	add(0, 1);
	send(0, rendezvous(1, 8));
	EXPECT_EQ(cqe().flags, kMatch);
	expect_recv(TERN_CQE_TAG_RECV, 0, kData, 0, TERN_WC_LOC_QP_OP_ERR);
}

/* Too much for the buffer: the host has to fetch it, and gets the headers. */
TEST_F(TagMatching, RendezvousTooLong)
{
	const Bytes request = rendezvous(1, kBufferSize + 1, 8);
	add(0, 1);
	send(0, request);
	expect_recv(TERN_CQE_TAG_RECV, 0, kMatch | kData, static_cast<uint32_t>(request.size()),
	            TERN_WC_TM_RNDV_INCOMPLETE);
	EXPECT_EQ(buffer(0, request.size()), request);
	EXPECT_EQ(answer(), kAck);
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	/* Not even the headers fit. */
	tern_hw_tag_op op = add_op(0, 2);
	op.buf.length = 16u;
	srq_->post_tag_op(op);
	send(1, rendezvous(2, 100));
	expect_recv(TERN_CQE_TAG_RECV, 0, kMatch | kData, 0, TERN_WC_LOC_LEN_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

TEST_F(TagMatching, RendezvousThatIsNone)
{
	add(0, 1);
	uint32_t n = 0;
	const auto unexpected = [&](const Bytes &message) {
		const uint32_t slot = post_slot();
		send(n++, message);
		expect_recv(TERN_CQE_TAG_UNEXPECTED, slot, 0,
		            static_cast<uint32_t>(message.size()));
	};
	Bytes cut = rendezvous(1, 8);
	cut.pop_back();
	unexpected(cut);
	unexpected(rendezvous(1, 8, TERN_MAX_RNDV_HDR - 32 + 1));
	send(n++, rendezvous(1, 8, TERN_MAX_RNDV_HDR - 32));
	EXPECT_EQ(cqe().opcode, TERN_CQE_TAG_RECV);
}

/* In each way in which a QP can end. */
TEST_F(TagMatching, QpEndsDuringRendezvous)
{
	const auto begin = [&] {
		for (uint32_t i = 0; i < 2; i++) {
			add(i, i);
			send(i, rendezvous(i, 8));
			EXPECT_EQ(cqe().flags, kMatch);
		}
		/* The first has its data, and waits for the FIN to be acknowledged. */
		read_response(Opcode::RcReadResponseOnly, 0, data(8));
		expect_recv(TERN_CQE_TAG_RECV, 0, kData, 8);
	};
	const auto ended = [&] {
		expect_recv(TERN_CQE_TAG_RECV, 1, kData, 0, TERN_WC_WR_FLUSH_ERR);
		EXPECT_TRUE(no_cqe());
	};
	begin();
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	ended();
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	qp_->connect(connection());
	begin();
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	ended();
	qp_->connect(connection());
	begin();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qp_->number), TERN_AQ_OK);
	ended();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_SRQ, srq_->number), TERN_AQ_OK);
}

} // namespace
} // namespace tern::test
