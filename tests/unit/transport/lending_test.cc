// SPDX-License-Identifier: GPL-2.0-or-later
/* Packets whose payload stays where it is: what is lent and how, what of others is taken, and when
 * it has to be back. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kMtu = 1024;
constexpr uint32_t kRemoteKey = 0x77;

class Lending : public OneCard {
protected:
	explicit Lending(const Rnic::Config &config = {.mac = kCardMac}) : OneCard(config) {}
	void SetUp() override
	{
		set_up_card();
		host_.wire.borrows = true;
		qp_ = make_qp();
		connect();
		host_.wire.on_recall = [this] { told_first_ |= !cq_->drain().empty(); };
	}
	void connect()
	{
		Connection c = connection();
		c.mtu = 3;
		qp_->connect(c);
		events();
	}
	SendRequest write(const Sge &sge) const
	{
		return {.opcode = TERN_OP_WRITE,
		        .remote_addr = 0x1000,
		        .rkey = kRemoteKey,
		        .sges = {sge}};
	}
	void post(const SendRequest &request)
	{
		qp_->post_send(request);
		run();
	}
	/** The peer reads; the card answers. */
	void peer_reads(uint32_t rkey, uint64_t va, uint32_t length, uint32_t n = 0)
	{
		TestPacket p{.opcode = Opcode::RcReadRequest, .psn = psn_after(kRqPsn, n)};
		p.ext.reth = {va, rkey, length};
		give(p);
	}
	std::vector<std::byte> taken(const RecordedWire::Lent &loan)
	{
		std::vector<std::byte> data;
		for (const HostRange &range : loan.payload) {
			const auto part = host_.memory.bytes(range.iova, range.size);
			data.insert(data.end(), part.begin(), part.end());
		}
		return data;
	}
	/** The oldest loan, as the peer's card takes it. */
	TestPacket borrowed()
	{
		const auto loan = host_.wire.loans().front();
		host_.wire.loans().pop_front();
		const auto data = taken(loan);
		const auto parsed = parse_lent(loan.head, data);
		const auto *packet = std::get_if<Packet>(&parsed);
		EXPECT_TRUE(packet);
		if (!packet)
			return {};
		return {.opcode = rc_opcode(packet->bth.opcode),
		        .psn = packet->bth.psn.value(),
		        .ext = packet->ext,
		        .payload = data};
	}
	size_t loans() { return host_.wire.loans().size(); }
	size_t frames() { return host_.wire.frames().size(); }
	/** Something is out now. */
	void lend_some()
	{
		post(write(mr_->sge(0, kMtu)));
		ASSERT_EQ(loans(), 1u);
		ASSERT_EQ(host_.wire.recalls, 0u);
	}
	/** It was called back, once, before the host heard of anything. */
	void expect_recalled()
	{
		EXPECT_EQ(host_.wire.recalls, 1u);
		EXPECT_FALSE(told_first_);
	}

	bool told_first_ = false;
};

/* ---- what is lent ---- */

TEST_F(Lending, Write)
{
	const uint64_t bytes = stat(TERN_STAT_TX_BYTES);
	post(write(mr_->sge(100, 2500)));
	EXPECT_EQ(frames(), 0u);
	ASSERT_EQ(loans(), 3u);
	constexpr Opcode kOpcodes[] = {Opcode::RcWriteFirst, Opcode::RcWriteMiddle,
	                               Opcode::RcWriteLast};
	for (uint32_t i = 0; i < 3; i++) {
		const TestPacket p = borrowed();
		EXPECT_EQ(p.opcode, kOpcodes[i]);
		EXPECT_EQ(p.psn, psn_after(kSqPsn, i));
		EXPECT_EQ(p.payload, content(100 + i * kMtu, i == 2 ? 2500 - 2 * kMtu : kMtu));
	}
	/* Ethernet, IPv4, UDP, BTH, ICRC; once a RETH */
	EXPECT_EQ(stat(TERN_STAT_TX_BYTES) - bytes, 2500u + 3 * (14 + 20 + 8 + 12 + 4) + 16);
	EXPECT_EQ(stat(TERN_STAT_ROCE_TX_PACKETS), 3u);
}

/* The head is that of the packet as it would be sent whole, pad included in its lengths. */
TEST_F(Lending, HeadOfTheWholePacket)
{
	for (const uint32_t size : {256u, 257u, 1023u}) {
		post(write(mr_->sge(0, size)));
		const auto lent = host_.wire.loans().front();
		host_.wire.loans().clear();
		qp_->set_state(TERN_QPS_RESET);
		qp_->forget();
		connect();
		host_.wire.borrows = false;
		post(write(mr_->sge(0, size)));
		const auto whole = host_.wire.take();
		ASSERT_EQ(whole.size(), lent.head.size() + size + pad_size(size) + kIcrcSize);
		EXPECT_TRUE(std::equal(lent.head.begin(), lent.head.end(), whole.begin()));
		host_.wire.borrows = true;
		qp_->set_state(TERN_QPS_RESET);
		qp_->forget();
		connect();
	}
}

TEST_F(Lending, SendFromSeveralBuffers)
{
	post({.sges = {mr_->sge(0, 300), mr_->sge(5000, 300), mr_->sge(9000, 200)}});
	ASSERT_EQ(loans(), 1u);
	auto expected = content(0, 300);
	for (const auto &part : {content(5000, 300), content(9000, 200)})
		expected.insert(expected.end(), part.begin(), part.end());
	EXPECT_EQ(borrowed().payload, expected);
}

TEST_F(Lending, ReadResponse)
{
	peer_reads(mr_->key, kVa + 4000, 2 * kMtu);
	ASSERT_EQ(loans(), 2u);
	EXPECT_EQ(borrowed().payload, content(4000, kMtu));
	EXPECT_EQ(borrowed().payload, content(4000 + kMtu, kMtu));
	EXPECT_EQ(frames(), 0u);
}

TEST_F(Lending, SmallOnesGoWhole)
{
	post(write(mr_->sge(0, 255)));
	SendRequest with_inline = write({});
	with_inline.sges.clear();
	with_inline.flags |= TERN_WQE_INLINE;
	with_inline.inline_data.resize(256);
	post(with_inline);
	EXPECT_EQ(loans(), 0u);
	EXPECT_EQ(frames(), 2u);
}

/* Small packets are sent without an ICRC on a wire that takes bare frames, as it corrupts none. */
TEST_F(Lending, SmallOnesGoBare)
{
	host_.wire.takes_bare = true;
	for (const uint32_t size : {0u, 1u, 2u, 255u}) {
		const uint64_t bytes = stat(TERN_STAT_TX_BYTES);
		const uint64_t roce = stat(TERN_STAT_ROCE_TX_BYTES);
		post({.sges = {mr_->sge(7, size)}});
		ASSERT_EQ(loans(), 1u);
		const auto loan = host_.wire.loans().front();
		host_.wire.loans().clear();
		EXPECT_TRUE(loan.payload.empty());
		EXPECT_EQ(loan.head.size(), 14u + 20 + 8 + 12 + size + pad_size(size));
		const auto parsed = parse_lent(loan.head, {});
		ASSERT_TRUE(std::holds_alternative<Packet>(parsed));
		EXPECT_EQ(bytes_of(std::get<Packet>(parsed).payload), content(7, size));
		const size_t whole = std::max<size_t>(loan.head.size() + kIcrcSize, 60);
		EXPECT_EQ(stat(TERN_STAT_TX_BYTES) - bytes, whole);
		EXPECT_EQ(stat(TERN_STAT_ROCE_TX_BYTES) - roce, whole);
	}
	EXPECT_EQ(frames(), 0u);
	/* The payload was copied, so the QP has nothing to recall. */
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	EXPECT_EQ(host_.wire.recalls, 0u);
}

/* An acknowledgement that finds the wire full is sent when the wire has room, without a new request
 * that would cause it. */
TEST_F(Lending, BareOnFullWire)
{
	host_.wire.takes_bare = true;
	host_.wire.accept_only(0);
	qp_->post_recv(mr_->sge(0, 100));
	give({.opcode = Opcode::RcSendOnly, .psn = kRqPsn, .ack_request = true});
	EXPECT_EQ(loans() + frames(), 0u);
	open_wire();
	ASSERT_EQ(loans(), 1u);
	EXPECT_EQ(borrowed().opcode, Opcode::RcAcknowledge);
	EXPECT_EQ(stat(TERN_STAT_ROCE_TX_PACKETS), 1u);
}

TEST_F(Lending, TooManyParts)
{
	/* Each in a page of its own, and in two where it can be. */
	SendRequest request;
	for (uint64_t i = 0; i < 17; i++)
		request.sges.push_back(mr_->sge(i * 0x1000 + 0xff0, 0x20));
	post(request);
	EXPECT_EQ(loans(), 0u);
	EXPECT_EQ(frames(), 1u);
}

TEST_F(Lending, RefusedGoesWhole)
{
	host_.wire.borrows = false;
	post(write(mr_->sge(0, kMtu)));
	const auto p = sent();
	ASSERT_TRUE(p);
	EXPECT_EQ(p->payload, content(0, kMtu));
}

/* Nothing is skipped, repeated or counted twice. */
TEST_F(Lending, FullWire)
{
	host_.wire.accept_only(1);
	post(write(mr_->sge(0, 3 * kMtu)));
	peer_reads(mr_->key, kVa, 2 * kMtu);
	EXPECT_EQ(loans(), 1u);
	host_.wire.accept_all();
	run();
	EXPECT_EQ(loans(), 1u);
	card_.wire_ready();
	run();
	ASSERT_EQ(loans(), 5u);
	EXPECT_EQ(stat(TERN_STAT_ROCE_TX_PACKETS), 5u);
	EXPECT_EQ(stat(TERN_STAT_REQ_RETRANSMITS), 0u);
	uint32_t requests = 0, responses = 0;
	while (loans()) {
		const TestPacket p = borrowed();
		const bool response = p.opcode == Opcode::RcReadResponseFirst ||
		                      p.opcode == Opcode::RcReadResponseLast;
		EXPECT_EQ(p.psn,
		          response ? psn_after(kRqPsn, responses) : psn_after(kSqPsn, requests));
		(response ? responses : requests)++;
	}
	EXPECT_EQ(requests, 3u);
}

TEST_F(Lending, PagesOnDemand)
{
	auto mr = driver_.create_mr(pd_, 0x10000000, 8192, kAllAccess, {4, 12, true});
	mr.write(0, content(0, 8192));
	mr.buffer.bring(0, false);
	post(write(mr.sge(4000, kMtu)));
	EXPECT_EQ(loans() + frames(), 0u);
	EXPECT_TRUE(event(TERN_EVENT_PAGE_FAULT, qp_->number));
	mr.buffer.bring(1, false);
	auto c = make_command(TERN_AQ_QUERY_FAULT);
	c.object.id = qp_->number;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	c = make_command(TERN_AQ_RESUME_QP);
	c.resume_qp.qpn = qp_->number;
	c.resume_qp.requester = TERN_RESUME_RETRY;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	run();
	ASSERT_EQ(loans(), 1u);
	EXPECT_EQ(taken(host_.wire.loans().front()), content(4000, kMtu));
	/* The host takes the pages away when SYNC_MR is done. */
	EXPECT_EQ(driver_.destroy(TERN_AQ_SYNC_MR, mr.key), TERN_AQ_OK);
	expect_recalled();
}

class LendingDevice : public Lending {
protected:
	LendingDevice() : Lending({.mac = kCardMac, .device_memory = bytes_}) {}

	alignas(4096) static inline std::array<std::byte, 1 << 16> bytes_;
};

TEST_F(LendingDevice, DeviceMemoryIsNotTheHosts)
{
	driver_.device_memory = bytes_;
	auto mr = driver_.create_device_mr(pd_, 0, 4096, kAllAccess);
	post(write(mr.sge(0, kMtu)));
	peer_reads(mr.key, 0, kMtu);
	EXPECT_EQ(loans(), 0u);
	EXPECT_EQ(frames(), 2u);
}

/* ---- what is taken ---- */

class Borrowing : public Lending {
protected:
	/** The head, in @out, of a WRITE of @size bytes to the start of the region that says it has
	 * @claimed in this packet. */
	FrameBuilder write(std::span<std::byte> out, size_t size, const AddressVector &av,
	                   size_t claimed) const
	{
		Bth bth;
		bth.opcode = static_cast<uint8_t>(Opcode::RcWriteOnly);
		bth.psn = Psn(kRqPsn);
		bth.ack_request = true;
		bth.dest_qpn = qp_->number;
		ExtHeaders ext;
		ext.reth = {kVa, mr_->key, static_cast<uint32_t>(size)};
		return FrameBuilder(out, PathHeader(av), bth, ext, claimed);
	}
	/** A WRITE of @data to the start of the region, as head and pieces of @piece bytes. */
	void give_lent(const std::vector<std::byte> &data, size_t piece, size_t claimed,
	               const AddressVector &av = path())
	{
		std::vector<std::byte> out(kMaxRoceFrame);
		FrameBuilder builder = write(out, data.size(), av, claimed);
		std::vector<std::span<const std::byte>> pieces;
		for (size_t at = 0; at < data.size(); at += piece)
			pieces.push_back(
			        std::span(data).subspan(at, std::min(piece, data.size() - at)));
		card_.receive(builder.head(), pieces);
		run();
	}
	/** A WRITE of @data as one that carries it itself, after @spoil, without its last @cut
	 * bytes. */
	template <typename Spoil>
	void give_bare(const std::vector<std::byte> &data, Spoil spoil, size_t cut = 0)
	{
		std::vector<std::byte> out(kMaxRoceFrame);
		FrameBuilder builder = write(out, data.size(), path(), data.size());
		std::ranges::copy(data, builder.payload().begin());
		const size_t size = builder.bare().size();
		spoil(std::span(out));
		card_.receive(std::span(out).first(size - cut), {});
		run();
	}
	const std::vector<std::byte> data_ = std::vector<std::byte>(1001, std::byte{0x42});
};

TEST_F(Borrowing, PiecesOfAnySize)
{
	for (const size_t piece : {1u, 100u, 1000u, 1001u}) {
		mr_->write(0, content(0, 1100));
		give_lent(data_, piece, data_.size());
		EXPECT_EQ(mr_->read(0, data_.size()), data_);
		EXPECT_EQ(mr_->read(data_.size(), 50), content(data_.size(), 50));
		const auto answer = sent();
		ASSERT_TRUE(answer);
		EXPECT_EQ(answer->opcode, Opcode::RcAcknowledge);
		qp_->set_state(TERN_QPS_RESET);
		connect();
	}
	EXPECT_EQ(stat(TERN_STAT_ROCE_RX_PACKETS), 4u);
	EXPECT_EQ(stat(TERN_STAT_RX_BYTES), 4 * (14u + 20 + 8 + 12 + 16 + 1004 + 4));
}

TEST_F(Borrowing, Bare)
{
	for (const size_t size : {0u, 1u, 2u, 1001u}) {
		const std::vector<std::byte> data(size, std::byte{0x42});
		mr_->write(0, content(0, 1100));
		give_bare(data, [](std::span<std::byte>) {});
		EXPECT_EQ(mr_->read(0, size), data);
		EXPECT_EQ(mr_->read(size, 50), content(size, 50));
		ASSERT_TRUE(sent());
		EXPECT_EQ(stat(TERN_STAT_RX_BYTES), stat(TERN_STAT_ROCE_RX_BYTES));
		qp_->set_state(TERN_QPS_RESET);
		connect();
	}
	EXPECT_EQ(stat(TERN_STAT_ROCE_RX_BYTES),
	          4 * (14u + 20 + 8 + 12 + 16 + 4) + 0 + 4 + 4 + 1004);
}

/* One byte more or less, and lengths and pads that others lie about. */
TEST_F(Borrowing, BareThatIsNone)
{
	constexpr size_t kBth = 14 + 20 + 8;
	const auto spoil = [&](size_t at, uint8_t bits) {
		give_bare(data_, [&](std::span<std::byte> all) {
			all[at] ^= static_cast<std::byte>(bits);
		});
	};
	spoil(kBth + 1, 0x20);    /* pad: 1, not 3 */
	spoil(14 + 3, 4);         /* IPv4 length, and so its checksum */
	spoil(14 + 20 + 5, 4);    /* UDP length */
	spoil(kBth, 0x11 ^ 0x0a); /* an ACK, which has no payload */
	EXPECT_EQ(stat(TERN_STAT_RX_MALFORMED), 3u);
	give_bare(
	        data_, [](std::span<std::byte>) {}, 1);
	give_bare(
	        data_, [](std::span<std::byte>) {}, 4);
	EXPECT_EQ(stat(TERN_STAT_RX_MALFORMED), 5u);
	EXPECT_EQ(mr_->read(0, 100), content(0, 100));
}

/* Another size than the head says; by so little that the words are the same, too. */
TEST_F(Borrowing, SizeThatIsNotTheHeads)
{
	for (const size_t claimed : {0u, 1u, 997u, 1000u, 1002u, 1004u, 1005u})
		give_lent(data_, 500, claimed);
	EXPECT_EQ(stat(TERN_STAT_RX_MALFORMED), 7u);
	EXPECT_EQ(mr_->read(0, 100), content(0, 100));
	EXPECT_FALSE(sent());
}

TEST_F(Borrowing, HeadThatIsNone)
{
	std::vector<std::byte> noise(14 + 40 + 8 + 12 + 40);
	for (size_t size = 0; size <= noise.size(); size++)
		card_.receive(std::span(noise).first(size), {});
	EXPECT_EQ(stat(TERN_STAT_RX_MALFORMED), noise.size() + 1);
}

TEST_F(Borrowing, PayloadWhereThereIsNone)
{
	Bth bth;
	bth.opcode = static_cast<uint8_t>(Opcode::RcAcknowledge);
	bth.dest_qpn = qp_->number;
	std::vector<std::byte> out(kMaxRoceFrame);
	FrameBuilder builder(out, PathHeader(path()), bth, {}, 8);
	const std::span<const std::byte> piece = builder.payload();
	card_.receive(builder.head(), std::span(&piece, 1));
	EXPECT_EQ(stat(TERN_STAT_RX_MALFORMED), 1u);
}

/* A QP of type RAW that sees all frames sees it as a frame. */
TEST_F(Borrowing, SnifferGetsItWhole)
{
	QpOptions options;
	options.pd = pd_;
	options.send_cqn = options.recv_cqn = cq_->number;
	options.type = TERN_QPT_RAW;
	auto raw = driver_.create_qp(options);
	raw->set_state(TERN_QPS_INIT);
	raw->set_state(TERN_QPS_RTR);
	raw->post_recv(mr_->sge(0x8000, 4096));
	auto c = make_command(TERN_AQ_CREATE_FLOW);
	c.create_flow.qpn = raw->number;
	c.create_flow.type = TERN_FLOW_SNIFFER;
	ASSERT_EQ(driver_.status_of(c), TERN_AQ_OK);

	give_lent(data_, 300, data_.size());
	EXPECT_EQ(mr_->read(0, data_.size()), data_);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	const auto frame = mr_->read(0x8000, cqes[0].byte_len.get());
	const auto parsed = parse(frame);
	ASSERT_TRUE(std::holds_alternative<Packet>(parsed));
	EXPECT_EQ(bytes_of(std::get<Packet>(parsed).payload), data_);
}

TEST_F(Borrowing, ForSomebodyElse)
{
	AddressVector av = path();
	av.dmac[5] = 0x99;
	give_lent(data_, 300, data_.size(), av);
	EXPECT_EQ(stat(TERN_STAT_RX_FILTERED), 1u);
	EXPECT_EQ(mr_->read(0, 100), content(0, 100));
}

/* ---- when it has to be back ---- */

TEST_F(Lending, NothingToRecall)
{
	post(write(mr_->sge(0, 8)));
	qp_->set_state(TERN_QPS_ERR);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qp_->number), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, mr_->key), TERN_AQ_OK);
	EXPECT_EQ(host_.wire.recalls, 0u);
}

TEST_F(Lending, DestroyMr)
{
	lend_some();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, mr_->key), TERN_AQ_OK);
	expect_recalled();
	EXPECT_EQ(stat(TERN_STAT_TX_REVOKED), 1u);
}

TEST_F(Lending, OnlyWhatIsConcerned)
{
	lend_some();
	auto other = driver_.create_mr(pd_, 0x50000000, 0x4000, kAllAccess);
	auto other_qp = make_qp();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, other.key), TERN_AQ_OK);
	EXPECT_EQ(other_qp->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, other_qp->number), TERN_AQ_OK);
	EXPECT_EQ(loans(), 1u);
	EXPECT_EQ(stat(TERN_STAT_TX_REVOKED), 0u);
}

/* All regions of its payload, and none of the rest of the message. */
TEST_F(Lending, KeysOfAPacket)
{
	std::vector<HostMr> mrs;
	SendRequest request{.opcode = TERN_OP_WRITE, .rkey = kRemoteKey};
	for (uint64_t i = 0; i < LoanKeys::kMax + 1; i++) {
		mrs.push_back(driver_.create_mr(pd_, 0x50000000 + (i << 16), 0x4000, kAllAccess));
		request.sges.push_back(mrs.back().sge(0, i == 0 ? kMtu : kMtu / LoanKeys::kMax));
	}
	post(request);
	ASSERT_EQ(loans(), 2u);
	const auto keys = [&](size_t i) { return host_.wire.loans()[i].loan.keys; };
	for (const HostMr &mr : mrs) {
		EXPECT_EQ(keys(0).has(mr.key), mr.key == mrs[0].key);
		EXPECT_EQ(keys(1).has(mr.key), mr.key != mrs[0].key);
	}
	EXPECT_EQ(host_.wire.loans()[0].loan.qpn, qp_->number);
}

TEST_F(Lending, RevokedByThePeer)
{
	card_.lost(3);
	EXPECT_EQ(stat(TERN_STAT_RX_REVOKED), 3u);
}

TEST_F(Lending, ModifyMr)
{
	lend_some();
	auto c = make_command(TERN_AQ_MODIFY_MR);
	c.modify_mr.key = mr_->key;
	c.modify_mr.mask = TERN_MODIFY_MR_ACCESS;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	expect_recalled();
}

TEST_F(Lending, QpToError)
{
	lend_some();
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	expect_recalled();
	EXPECT_EQ(cq_->drain().size(), 1u);
}

TEST_F(Lending, QpToReset)
{
	lend_some();
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	expect_recalled();
}

TEST_F(Lending, DestroyQp)
{
	lend_some();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qp_->number), TERN_AQ_OK);
	expect_recalled();
}

TEST_F(Lending, RequestThatFails)
{
	lend_some();
	TestPacket p{.opcode = Opcode::RcAcknowledge, .psn = kSqPsn};
	p.ext.aeth = {nak_syndrome(NakCode::RemoteAccessError), 0};
	give(p);
	expect_recalled();
	EXPECT_EQ(cq_->drain().size(), 1u);
}

TEST_F(Lending, CardReset)
{
	lend_some();
	card_.write_register(TERN_REG_CTRL, TERN_CTRL_RESET);
	EXPECT_EQ(host_.wire.recalls, 1u);
}

class LendingKeys : public Lending {
protected:
	void SetUp() override
	{
		Lending::SetUp();
		region_.emplace(
		        driver_.create_mr(pd_, kBase, 0x4000, kAllAccess | TERN_ACCESS_MW_BIND));
	}
	void bind(uint32_t rkey, uint64_t length, tern_hw_cqe_status status = TERN_WC_SUCCESS)
	{
		SendRequest r{.opcode = TERN_OP_BIND_MW};
		r.bind.emplace();
		r.bind->addr = kBase;
		r.bind->length = length;
		r.bind->rkey = rkey;
		r.bind->lkey = region_->key;
		r.bind->access = TERN_ACCESS_REMOTE_READ;
		post(r);
		EXPECT_EQ(cq_->drain().back().status, status);
	}
	void lend_by(uint32_t rkey)
	{
		peer_reads(rkey, kBase, kMtu);
		ASSERT_EQ(loans(), 1u);
		ASSERT_EQ(host_.wire.recalls, 0u);
	}

	static constexpr uint64_t kBase = 0x40000000;
	std::optional<HostMr> region_;
};

TEST_F(LendingKeys, WindowAndRegion)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	bind(mw, 0x1000);
	lend_by(mw);
	const LoanKeys keys = host_.wire.loans().front().loan.keys;
	EXPECT_TRUE(keys.has(mw));
	EXPECT_TRUE(keys.has(region_->key));
	EXPECT_FALSE(keys.has(mr_->key));
}

TEST_F(LendingKeys, LocalInvalidate)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_2, 1);
	bind(mw, 0x1000);
	lend_by(mw);
	post({.opcode = TERN_OP_LOCAL_INV, .imm = mw});
	expect_recalled();
	EXPECT_EQ(cq_->drain().back().status, TERN_WC_SUCCESS);
}

TEST_F(LendingKeys, WindowBoundAnew)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	bind(mw, 0x1000);
	lend_by(mw);
	bind(mw + 1, 0x1000);
	expect_recalled();
}

TEST_F(LendingKeys, WindowFreed)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	bind(mw, 0x1000);
	lend_by(mw);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_MW, mw), TERN_AQ_OK);
	expect_recalled();
}

TEST_F(LendingKeys, InvalidatedByThePeer)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_2, 1);
	bind(mw, 0x1000);
	lend_by(mw);
	qp_->post_recv(mr_->sge(0, 100));
	TestPacket p{.opcode = Opcode::RcSendOnlyInv, .psn = psn_after(kRqPsn, 1)};
	p.ext.inv_rkey = mw;
	give(p);
	expect_recalled();
	EXPECT_EQ(cq_->drain().size(), 1u);
}

/* A process that names the keys of another one takes no packet away from it. */
TEST_F(LendingKeys, RefusedRequestsRecallNothing)
{
	const uint32_t type1 = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	const uint32_t type2 = driver_.alloc_mw(pd_, TERN_MW_TYPE_2, 1);
	bind(type1, 0x1000);
	bind(type2, 0x1000);
	for (const uint32_t rkey : {type1, type2}) {
		peer_reads(rkey, kBase, kMtu, rkey == type2);
		run();
	}
	ASSERT_EQ(loans(), 2u);

	pd_ = driver_.alloc_pd();
	const auto use_new_qp = [&] {
		qp_ = make_qp();
		connect();
	};
	const auto victim = std::exchange(qp_, nullptr);
	for (const uint32_t key : {type1, type2, region_->key, mr_->key}) {
		use_new_qp();
		post({.opcode = TERN_OP_LOCAL_INV, .imm = key});
		EXPECT_EQ(cq_->drain().back().status, TERN_WC_MW_BIND_ERR);
		use_new_qp();
		bind(key, 0x1000, TERN_WC_MW_BIND_ERR);
		use_new_qp();
		qp_->post_recv(std::span<const Sge>());
		TestPacket p{.opcode = Opcode::RcSendOnlyInv, .psn = kRqPsn};
		p.ext.inv_rkey = key;
		give(p);
		EXPECT_EQ(cq_->drain().back().status, TERN_WC_LOC_ACCESS_ERR);
	}
	EXPECT_EQ(loans(), 2u);
	EXPECT_EQ(stat(TERN_STAT_TX_REVOKED), 0u);
}

} // namespace
} // namespace tern::test
