// SPDX-License-Identifier: GPL-2.0-or-later
/* Bursts: whatever one is, and whatever state it meets, it does what its packets would do. */
#include <array>
#include <string>

#include "qemu/rnic/formats/burst.h"
#include "qemu/rnic/network/scheduler.h"
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kMtu = 1024;
constexpr uint32_t kRemoteKey = 0x77;

/** A card that takes a burst, or its packets. */
class Side final : public OneCard {
public:
	Side()
	{
		set_up_card();
		qp_ = make_qp();
		connect(kMtu);
	}
	void TestBody() override {}

	/** A QP of type RAW that sees all frames. */
	std::unique_ptr<HostQp> make_sniffer()
	{
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.type = TERN_QPT_RAW;
		auto qp = driver_.create_qp(options);
		qp->set_state(TERN_QPS_INIT);
		qp->set_state(TERN_QPS_RTR);
		auto c = make_command(TERN_AQ_CREATE_FLOW);
		c.create_flow.qpn = qp->number;
		c.create_flow.type = TERN_FLOW_SNIFFER;
		EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
		return qp;
	}

	void connect(uint32_t mtu)
	{
		Connection c = connection();
		for (c.mtu = 1; 128u << c.mtu < mtu;)
			c.mtu++;
		qp_->connect(c);
		events();
	}

	using OneCard::card_;
	using OneCard::content;
	using OneCard::cq_;
	using OneCard::driver_;
	using OneCard::eq_;
	using OneCard::events;
	using OneCard::give;
	using OneCard::host_;
	using OneCard::kRqPsn;
	using OneCard::kSqPsn;
	using OneCard::kVa;
	using OneCard::make_qp;
	using OneCard::mr_;
	using OneCard::path;
	using OneCard::pd_;
	using OneCard::qp_;
	using OneCard::run;
	using OneCard::stat;

	/** All that anybody can see of what it has done. */
	struct Outcome {
		std::vector<std::vector<std::byte>> frames;
		std::vector<std::byte> memory;
		std::vector<std::array<uint8_t, sizeof(tern_hw_cqe)>> cqes;
		std::vector<std::pair<unsigned, uint32_t>> events;
		std::vector<uint64_t> stats;
		unsigned state;

		bool operator==(const Outcome &) const = default;
	};
	Outcome outcome()
	{
		Outcome o;
		o.frames.assign(host_.wire.frames().begin(), host_.wire.frames().end());
		o.memory = mr_->read(0, kSize);
		for (const auto &cqe : cq_->drain())
			o.cqes.push_back(
			        std::bit_cast<std::array<uint8_t, sizeof(tern_hw_cqe)>>(cqe));
		for (const auto &e : events())
			o.events.emplace_back(e.type, e.id.get());
		for (unsigned i = 0; i < TERN_STAT_COUNT; i++)
			/* A burst that fails somewhere is tried once more, in packets. */
			if (i != TERN_STAT_DMA_FAULTS)
				o.stats.push_back(stat(static_cast<tern_hw_stat>(i)));
		o.state = qp_state();
		return o;
	}
};

/** Packets that follow one another. */
struct TestBurst {
	Opcode opcode = Opcode::RcWriteOnly;
	uint32_t n = 0; /* PSN of the first */
	size_t size = 4 * kMtu;
	bool ack_request = true;
	Reth reth{Side::kVa, 0, 0};
	Aeth aeth{kAethAck | 3, 1};
	uint32_t segment = kMtu;
	uint32_t base = Side::kRqPsn;
};

/* In pieces of no particular size. */
class Given {
public:
	Given(Side &side, const TestBurst &burst) : data_(burst.size)
	{
		for (size_t i = 0; i < data_.size(); i++)
			data_[i] = static_cast<std::byte>(i * 7 + i / 256);
		Bth bth{.opcode = static_cast<uint8_t>(burst.opcode),
		        .ack_request = burst.ack_request,
		        .dest_qpn = side.qp_->number,
		        .psn = Psn(psn_after(burst.base, burst.n))};
		ExtHeaders ext;
		ext.reth = burst.reth;
		if (!ext.reth.rkey)
			ext.reth.rkey = side.mr_->key;
		if (!ext.reth.length)
			ext.reth.length = static_cast<uint32_t>(burst.size);
		ext.aeth = burst.aeth;
		const FrameBuilder builder(room_, PathHeader(Side::path()), bth, ext,
		                           burst.segment);
		head = builder.head();
		for (size_t at = 0; at < data_.size(); at += 1500)
			pieces.push_back(std::span<const std::byte>(data_).subspan(
			        at, std::min<size_t>(1500, data_.size() - at)));
	}

	/** Its memory is somebody else's from now on. */
	void move()
	{
		moved_ = data_;
		std::ranges::fill(data_, std::byte{0xee});
		for (auto &piece : pieces)
			piece = std::span<const std::byte>(moved_).subspan(
			        static_cast<size_t>(piece.data() - data_.data()), piece.size());
	}

	std::span<const std::byte> head;
	std::vector<std::span<const std::byte>> pieces;

private:
	std::vector<std::byte> data_, moved_;
	std::array<std::byte, kMaxRoceFrame> room_{};
};

void give_burst(Side &side, const TestBurst &burst)
{
	const Given given(side, burst);
	side.card_.receive(given.head, given.pieces, burst.segment);
	side.run();
}

/* As whole frames. */
void give_packets(Side &side, const TestBurst &burst)
{
	const Given given(side, burst);
	const auto parsed = parse_lent(given.head, Payload(given.pieces), burst.segment);
	ASSERT_TRUE(std::holds_alternative<Packet>(parsed));
	const Packet &packet = std::get<Packet>(parsed);
	std::array<std::byte, kMaxRoceFrame> frame;
	for (uint32_t i = 0; i < packets_in(packet); i++)
		side.card_.receive(make_whole(packet, i, given.head, frame));
	side.run();
}

class Bursts : public ::testing::Test {
protected:
	void each(const std::function<void(Side &)> &action)
	{
		action(one_);
		action(other_);
	}
	void give(const TestBurst &burst)
	{
		give_burst(one_, burst);
		give_packets(other_, burst);
	}
	/** What it was for both. */
	Side::Outcome same()
	{
		const auto outcome = one_.outcome();
		const auto packets = other_.outcome();
		EXPECT_EQ(outcome.frames, packets.frames);
		EXPECT_EQ(outcome.cqes, packets.cqes);
		EXPECT_EQ(outcome.events, packets.events);
		EXPECT_EQ(outcome.stats, packets.stats);
		EXPECT_EQ(outcome.state, packets.state);
		EXPECT_TRUE(outcome.memory == packets.memory);
		return outcome;
	}

	Side one_, other_;
};

/* ---- the responder ---- */

TEST_F(Bursts, Write)
{
	for (const size_t size : {kMtu + 1, 2 * kMtu, 16 * kMtu, 16 * kMtu - 3}) {
		SCOPED_TRACE(size);
		each([](Side &s) {
			s.qp_->set_state(TERN_QPS_RESET);
			s.connect(kMtu);
		});
		give({.size = size, .reth = {Side::kVa + 5, 0, 0}});
		const auto o = same();
		EXPECT_EQ(o.frames.size(), 1u);
		EXPECT_EQ(o.state, TERN_QPS_RTS);
		each([](Side &s) { s.host_.wire.clear(); });
	}
}

TEST_F(Bursts, PartsOfAMessage)
{
	const uint32_t length = 12 * kMtu - 100;
	TestBurst part{.opcode = Opcode::RcWriteFirst,
	               .ack_request = false,
	               .reth = {Side::kVa, 0, length}};
	give(part);
	part = {.opcode = Opcode::RcWriteMiddle, .n = 4};
	give(part);
	part = {.opcode = Opcode::RcWriteLast, .n = 8, .size = length - 8 * kMtu};
	give(part);
	const auto o = same();
	EXPECT_EQ(o.frames.size(), 2u);
	EXPECT_EQ(one_.stat(TERN_STAT_RESP_WRITES), 1u);
	EXPECT_EQ(o.state, TERN_QPS_RTS);
}

TEST_F(Bursts, Send)
{
	each([](Side &s) {
		const Sge parts[] = {s.mr_->sge(0x8000, 3 * kMtu), s.mr_->sge(0x1001, 2 * kMtu)};
		s.qp_->post_recv(parts);
		s.qp_->post_recv(s.mr_->sge(0x4000, 4 * kMtu));
	});
	give({.opcode = Opcode::RcSendOnly});
	give({.opcode = Opcode::RcSendFirst, .n = 4, .size = 2 * kMtu, .ack_request = false});
	give({.opcode = Opcode::RcSendLast, .n = 6, .size = kMtu + 7});
	const auto o = same();
	EXPECT_EQ(o.cqes.size(), 2u);
	EXPECT_EQ(o.frames.size(), 2u);
}

/* The buffer ends in each of its packets, and there is none. */
TEST_F(Bursts, ReceiveBufferEnds)
{
	for (uint32_t room = 0; room <= 4 * kMtu; room += kMtu / 2) {
		SCOPED_TRACE(room);
		each([&](Side &s) {
			s.qp_ = s.make_qp();
			s.connect(kMtu);
			s.qp_->post_recv(s.mr_->sge(0x2000, room));
		});
		give({.opcode = Opcode::RcSendOnly});
		EXPECT_EQ(same().state, room == 4 * kMtu ? TERN_QPS_RTS : TERN_QPS_ERR);
	}
}

TEST_F(Bursts, NoReceiveWqe)
{
	give({.opcode = Opcode::RcSendOnly});
	EXPECT_EQ(same().frames.size(), 1u);
	EXPECT_EQ(one_.stat(TERN_STAT_RESP_TX_RNR_NAK), 1u);
	each([](Side &s) { s.qp_->post_recv(s.mr_->sge(0, 4 * kMtu)); });
	give({.opcode = Opcode::RcSendOnly});
	EXPECT_EQ(same().cqes.size(), 1u);
}

/* The CQ has no room for the completion of the third message, which gets no acknowledgement. */
TEST_F(Bursts, NoRoomForTheCompletion)
{
	each([](Side &s) {
		s.cq_ = s.driver_.create_cq(*s.eq_, 1);
		s.qp_ = s.make_qp();
		s.connect(kMtu);
		for (int i = 0; i < 3; i++)
			s.qp_->post_recv(s.mr_->sge(0x2000, 4 * kMtu));
	});
	for (uint32_t i = 0; i < 3; i++)
		give({.opcode = Opcode::RcSendOnly, .n = 4 * i});
	const auto o = same();
	EXPECT_EQ(o.frames.size(), 2u);
	EXPECT_EQ(o.cqes.size(), 2u);
	EXPECT_EQ(o.state, TERN_QPS_ERR);
}

TEST_F(Bursts, BeforeAndBehindWhatIsExpected)
{
	give({});
	give({});
	give({.n = 7});
	give({.n = 5});
	give({.n = 4});
	EXPECT_EQ(one_.stat(TERN_STAT_RESP_DUPLICATES), 4u);
	EXPECT_EQ(one_.stat(TERN_STAT_RESP_OUT_OF_SEQUENCE), 1u);
	EXPECT_EQ(same().state, TERN_QPS_RTS);
	/* Two behind, and the third is no beginning. */
	give({.n = 6});
	EXPECT_EQ(one_.stat(TERN_STAT_RESP_DUPLICATES), 6u);
	EXPECT_EQ(same().state, TERN_QPS_ERR);
}

class BadBursts : public Bursts {
protected:
	void refused(const TestBurst &burst)
	{
		give(burst);
		EXPECT_EQ(same().state, TERN_QPS_ERR);
		each([&](Side &s) {
			s.qp_ = s.make_qp();
			s.connect(kMtu);
		});
	}
};

TEST_F(BadBursts, Requests)
{
	refused({.opcode = Opcode::RcWriteMiddle});
	refused({.opcode = Opcode::RcSendLast});
	refused({.reth = {Side::kVa, 0, 4 * kMtu + 1}});
	refused({.reth = {Side::kVa, 0, 4 * kMtu - 1}});
	refused({.reth = {Side::kVa, 0, kMtu}});
	refused({.opcode = Opcode::RcWriteFirst, .reth = {Side::kVa, 0, 4 * kMtu}});
	refused({.opcode = Opcode::RcWriteFirst, .reth = {Side::kVa, 0, 3 * kMtu + 1}});
	refused({.reth = {Side::kVa, 0, ~0u}});
	refused({.reth = {Side::kVa, 0xbad00, 0}});
	refused({.reth = {Side::kVa - 1, 0, 0}});
	refused({.segment = 256});
	refused({.size = 4096 * 4, .segment = 4096});
}

/* Whose connection takes none. */
TEST_F(Bursts, StateAndAddress)
{
	each([](Side &s) { s.qp_->set_state(TERN_QPS_ERR); });
	give({});
	EXPECT_EQ(one_.stat(TERN_STAT_RX_BAD_STATE), 4u);
	each([](Side &s) {
		s.qp_->set_state(TERN_QPS_RESET);
		Connection c;
		c.dest_qpn = kPeerQpn;
		c.dgid = kCardGid;
		c.dmac = kPeerMac;
		c.mtu = 3;
		s.qp_->connect(c);
	});
	give({});
	EXPECT_EQ(one_.stat(TERN_STAT_RX_BAD_ADDR), 4u);
	same();
}

/* The first packet is the QP's end, which calls back what the card lent; a sniffer gets them all.
 */
TEST_F(Bursts, MovedInTheMidst)
{
	std::vector<std::unique_ptr<HostQp>> sniffers;
	each([&](Side &s) {
		sniffers.push_back(s.make_sniffer());
		for (uint32_t i = 0; i < 4; i++)
			sniffers.back()->post_recv(s.mr_->sge(0x10000 + i * 0x1000, 0x1000));
		s.host_.wire.borrows = true;
		s.qp_->post_send({.opcode = TERN_OP_WRITE,
		                  .rkey = kRemoteKey,
		                  .sges = {s.mr_->sge(0, kMtu)}});
		s.run();
		EXPECT_EQ(s.host_.wire.loans().size(), 1u);
	});
	const TestBurst burst{.reth = {Side::kVa, 0xbad00, 0}};
	Given given(one_, burst);
	one_.host_.wire.on_recall = [&] { given.move(); };
	one_.card_.receive(given.head, given.pieces, burst.segment);
	one_.run();
	give_packets(other_, burst);
	EXPECT_EQ(one_.host_.wire.recalls, 1u);
	EXPECT_EQ(same().state, TERN_QPS_ERR);
}

/* The memory behind the region goes at each of its pages. */
TEST_F(BadBursts, UnreachableMemory)
{
	for (unsigned page = 0; page < 4; page++) {
		SCOPED_TRACE(page);
		each([&](Side &s) {
			s.host_.memory.fault(s.mr_->buffer.at(s.mr_->first + page * 4096), 1);
		});
		refused({.size = 16 * kMtu, .reth = {Side::kVa, 0, 0}});
		each([&](Side &s) { s.qp_->post_recv(s.mr_->sge(0, 16 * kMtu)); });
		refused({.opcode = Opcode::RcSendOnly, .size = 16 * kMtu});
		each([](Side &s) { s.host_.memory.heal(); });
	}
}

TEST_F(Bursts, PagesOnDemand)
{
	std::vector<HostMr> mrs;
	each([&](Side &s) {
		mrs.push_back(
		        s.driver_.create_mr(s.pd_, 0x10000000, 0x8000, kAllAccess, {4, 12, true}));
	});
	ASSERT_EQ(mrs[0].key, mrs[1].key);
	const TestBurst burst{.size = 16 * kMtu, .reth = {0x10000000 + 100, mrs[0].key, 0}};
	for (unsigned there = 0; there <= 5; there++) {
		give(burst);
		const auto o = same();
		EXPECT_EQ(o.state, TERN_QPS_RTS);
		EXPECT_EQ(mrs[0].read(0, 0x8000), mrs[1].read(0, 0x8000));
		for (auto &mr : mrs)
			mr.buffer.bring(there, true);
		each([](Side &s) {
			auto c = make_command(TERN_AQ_QUERY_FAULT);
			c.object.id = s.qp_->number;
			s.driver_.status_of(c);
			c = make_command(TERN_AQ_RESUME_QP);
			c.resume_qp.qpn = s.qp_->number;
			c.resume_qp.responder = TERN_RESUME_RETRY;
			s.driver_.status_of(c);
			s.run();
		});
	}
	EXPECT_EQ(one_.stat(TERN_STAT_RESP_WRITES), 1u);
}

/* ---- the requester: READ responses ---- */

class ReadBursts : public Bursts {
protected:
	void post_read(uint32_t length)
	{
		each([&](Side &s) {
			s.qp_->post_send({.opcode = TERN_OP_READ,
			                  .remote_addr = 0x1000,
			                  .rkey = kRemoteKey,
			                  .sges = {s.mr_->sge(0x3000, length / 2),
			                           s.mr_->sge(0x9001, length - length / 2)}});
			s.run();
		});
	}
	static TestBurst response(Opcode opcode, uint32_t n, size_t size)
	{
		return {.opcode = opcode, .n = n, .size = size, .base = Side::kSqPsn};
	}
};

TEST_F(ReadBursts, WholeAndInParts)
{
	post_read(8 * kMtu - 9);
	give(response(Opcode::RcReadResponseOnly, 0, 8 * kMtu - 9));
	EXPECT_EQ(same().cqes.size(), 1u);
	post_read(8 * kMtu - 9);
	give(response(Opcode::RcReadResponseFirst, 8, 2 * kMtu));
	give(response(Opcode::RcReadResponseMiddle, 10, 4 * kMtu));
	give(response(Opcode::RcReadResponseLast, 14, 2 * kMtu - 9));
	EXPECT_EQ(same().cqes.size(), 1u);
}

/* A WRITE before it is acknowledged by them. */
TEST_F(ReadBursts, BehindAWrite)
{
	each([](Side &s) {
		s.qp_->post_send({.opcode = TERN_OP_WRITE,
		                  .remote_addr = 0x1000,
		                  .rkey = kRemoteKey,
		                  .sges = {s.mr_->sge(0, 10)}});
	});
	post_read(4 * kMtu);
	give(response(Opcode::RcReadResponseOnly, 1, 4 * kMtu));
	EXPECT_EQ(same().cqes.size(), 2u);
}

TEST_F(ReadBursts, OutOfPlace)
{
	give(response(Opcode::RcReadResponseOnly, 0, 4 * kMtu));
	post_read(8 * kMtu);
	give(response(Opcode::RcReadResponseMiddle, 2, 2 * kMtu));
	give(response(Opcode::RcReadResponseFirst, 0, 4 * kMtu));
	give(response(Opcode::RcReadResponseFirst, 0, 4 * kMtu));
	give(response(Opcode::RcReadResponseMiddle, 2, 4 * kMtu));
	EXPECT_GT(one_.stat(TERN_STAT_REQ_DUP_ACK), 0u);
	same();
}

TEST_F(ReadBursts, OfAnotherSize)
{
	for (const size_t size : {4 * kMtu, 8 * kMtu - 1, 9 * kMtu, 8 * kMtu + 1}) {
		for (const Opcode opcode :
		     {Opcode::RcReadResponseOnly, Opcode::RcReadResponseFirst}) {
			if (opcode == Opcode::RcReadResponseFirst && size % kMtu)
				continue;
			SCOPED_TRACE(size);
			post_read(8 * kMtu);
			give(response(opcode, 0, size));
			same();
			each([&](Side &s) {
				s.qp_ = s.make_qp();
				s.connect(kMtu);
			});
		}
	}
}

TEST_F(ReadBursts, NakInThem)
{
	post_read(4 * kMtu);
	TestBurst burst = response(Opcode::RcReadResponseOnly, 0, 4 * kMtu);
	burst.aeth.syndrome = kAethNak;
	give(burst);
	EXPECT_EQ(one_.stat(TERN_STAT_REQ_BAD_RESP), 2u);
	same();
}

TEST_F(ReadBursts, UnreachableMemory)
{
	each([](Side &s) { s.host_.memory.fault(s.mr_->buffer.at(s.mr_->first + 0x9003), 1); });
	post_read(4 * kMtu);
	give(response(Opcode::RcReadResponseOnly, 0, 4 * kMtu));
	EXPECT_EQ(same().state, TERN_QPS_ERR);
}

/* ---- what is none ---- */

TEST_F(Bursts, ThatAreNone)
{
	const TestBurst whole{.size = 4 * kMtu};
	uint64_t malformed = 0;
	const auto bad = [&](const TestBurst &burst, uint32_t segment) {
		const Given given(one_, burst);
		one_.card_.receive(given.head, given.pieces, segment);
		one_.run();
		EXPECT_EQ(one_.stat(TERN_STAT_RX_MALFORMED), ++malformed);
	};
	for (const uint32_t segment : {1u, 4u, 1020u, 1028u, 512u, 2048u, 8192u, ~0u, ~0u - 3})
		bad(whole, segment);
	bad({.size = 4 * kMtu, .segment = 128}, 128);
	bad({.size = 4 * kMtu, .segment = 768}, 768);
	bad({.size = 8192 * 2, .segment = 8192}, 8192);
	bad({.size = 0}, kMtu);
	bad({.size = kMtu}, kMtu);
	bad({.size = kMaxBurst + 1}, kMtu);
	bad({.opcode = Opcode::RcWriteFirst, .size = 4 * kMtu - 1}, kMtu);
	bad({.opcode = Opcode::RcSendOnlyImm}, kMtu);
	bad({.opcode = Opcode::RcWriteLastImm}, kMtu);
	bad({.opcode = Opcode::RcSendOnlyInv}, kMtu);
	bad({.opcode = Opcode::RcReadRequest}, kMtu);
	bad({.opcode = Opcode::RcAcknowledge}, kMtu);
	bad({.opcode = Opcode::RcAtomicWrite}, kMtu);
	bad({.opcode = static_cast<Opcode>(opcode_of(Service::Uc, Opcode::RcSendOnly))}, kMtu);
	EXPECT_EQ(one_.stat(TERN_STAT_RX_FRAMES), malformed);
	EXPECT_FALSE(one_.outcome().frames.size());
}

/* ---- what is sent ---- */

class SendsBursts : public Bursts {
protected:
	void SetUp() override
	{
		one_.host_.wire.borrows = true;
		one_.host_.wire.takes_bare = true;
		one_.host_.wire.takes_bursts = true;
	}
	/** @one_ has sent, as loans, what @other_ has sent whole. */
	void expect_same_packets()
	{
		std::vector<std::vector<std::byte>> frames;
		std::array<std::byte, kMaxRoceFrame> room;
		bursts_ = 0;
		for (const auto &loan : one_.host_.wire.loans()) {
			std::vector<std::byte> data;
			for (const HostRange &range : loan.payload) {
				const auto part = one_.host_.memory.bytes(range.iova, range.size);
				data.insert(data.end(), part.begin(), part.end());
			}
			const auto parsed = parse_lent(loan.head, Payload(data), loan.segment);
			ASSERT_TRUE(std::holds_alternative<Packet>(parsed));
			const Packet &packet = std::get<Packet>(parsed);
			bursts_ += loan.segment != 0;
			for (uint32_t i = 0; i < packets_in(packet); i++) {
				const auto frame = loan.segment
				                           ? make_whole(packet, i, loan.head, room)
				                           : make_whole(packet, loan.head,
				                                        Payload(data), room);
				frames.emplace_back(frame.begin(), frame.end());
			}
		}
		const auto &whole = other_.host_.wire.frames();
		EXPECT_TRUE(frames == std::vector(whole.begin(), whole.end()));
		for (const auto which :
		     {TERN_STAT_TX_FRAMES, TERN_STAT_TX_BYTES, TERN_STAT_ROCE_TX_PACKETS,
		      TERN_STAT_ROCE_TX_BYTES, TERN_STAT_REQ_RETRANSMITS})
			EXPECT_EQ(one_.stat(which), other_.stat(which)) << which;
		one_.host_.wire.loans().clear();
		other_.host_.wire.clear();
	}
	void post(tern_hw_wqe_op opcode, uint32_t length)
	{
		each([&](Side &s) {
			s.qp_->post_send({.opcode = static_cast<uint8_t>(opcode),
			                  .remote_addr = 0x1000,
			                  .rkey = kRemoteKey,
			                  .sges = {s.mr_->sge(3, length)}});
			s.run();
		});
	}
	void acknowledge(uint32_t n)
	{
		TestPacket p{.opcode = Opcode::RcAcknowledge, .psn = psn_after(Side::kSqPsn, n)};
		p.ext.aeth = {kAethAck | kCreditsInvalid, 0};
		each([&](Side &s) { s.give(p); });
	}
	unsigned bursts_ = 0;
};

TEST_F(SendsBursts, OfEachKind)
{
	uint32_t psns = 0;
	for (const auto opcode :
	     {TERN_OP_WRITE, TERN_OP_SEND, TERN_OP_SEND_IMM, TERN_OP_WRITE_IMM, TERN_OP_SEND_INV})
		for (const uint32_t length : {2 * kMtu, 3 * kMtu + 1, 16 * kMtu, 70 * kMtu - 1}) {
			SCOPED_TRACE(testing::Message() << opcode << " " << length);
			post(opcode, length);
			expect_same_packets();
			const bool alone = length == 2 * kMtu && opcode != TERN_OP_WRITE &&
			                   opcode != TERN_OP_SEND;
			EXPECT_EQ(bursts_ == 0, alone);
			psns += (length + kMtu - 1) / kMtu;
			acknowledge(psns - 1);
		}
}

TEST_F(SendsBursts, ReadResponses)
{
	for (const uint32_t length : {kMtu, kMtu + 1, 2 * kMtu, 40 * kMtu - 5}) {
		TestPacket p{.opcode = Opcode::RcReadRequest, .psn = Side::kRqPsn};
		p.ext.reth = {Side::kVa + 1, one_.mr_->key, length};
		each([&](Side &s) {
			s.qp_->set_state(TERN_QPS_RESET);
			s.connect(kMtu);
			s.give(p);
		});
		expect_same_packets();
		EXPECT_EQ(bursts_ != 0, length > kMtu);
	}
}

/* The window is full, and opens again by less than a burst; a packet in the middle is lost. */
/* What is lent is not lost, so there may be more of it. */
TEST_F(SendsBursts, Window)
{
	const auto in_flight = [](Side &s, uint64_t acknowledged) {
		return s.stat(TERN_STAT_ROCE_TX_PACKETS) - acknowledged;
	};
	for (int i = 0; i < 20; i++)
		post(TERN_OP_WRITE, 100 * kMtu);
	EXPECT_EQ(in_flight(one_, 0), 1024u);
	EXPECT_EQ(in_flight(other_, 0), 256u);
	acknowledge(99);
	EXPECT_EQ(in_flight(one_, 100), 1024u);
	EXPECT_EQ(in_flight(other_, 100), 256u);
	/* One that stops to lend has to come down first. */
	one_.host_.wire.takes_bursts = false;
	for (const uint32_t n : {199u, 299u, 799u}) {
		const uint64_t before = one_.stat(TERN_STAT_ROCE_TX_PACKETS);
		acknowledge(n);
		EXPECT_LE(one_.stat(TERN_STAT_ROCE_TX_PACKETS) - before, 1u) << n;
	}
	acknowledge(999);
	EXPECT_EQ(in_flight(one_, 1000), 256u);
}

TEST_F(SendsBursts, Retransmission)
{
	post(TERN_OP_WRITE, 100 * kMtu);
	post(TERN_OP_WRITE, 100 * kMtu);
	expect_same_packets();
	for (const uint32_t n : {2u, 31u, 63u}) {
		acknowledge(n);
		expect_same_packets();
	}
	TestPacket nak{.opcode = Opcode::RcAcknowledge, .psn = psn_after(Side::kSqPsn, 77)};
	nak.ext.aeth = {nak_syndrome(NakCode::PsnSequenceError), 0};
	each([&](Side &s) { s.give(nak); });
	/* What was lost may have been taken back, and would be again. */
	EXPECT_TRUE(one_.host_.wire.loans().front().payload.empty());
	expect_same_packets();
	EXPECT_GT(one_.stat(TERN_STAT_REQ_RETRANSMITS), 100u);
}

/* What is known of the receive queue is enough for one message. */
TEST_F(SendsBursts, Credits)
{
	TestPacket p{.opcode = Opcode::RcAcknowledge, .psn = Side::kSqPsn};
	p.ext.aeth = {kAethAck | 1, 1};
	post(TERN_OP_SEND, 10);
	each([&](Side &s) { s.give(p); });
	post(TERN_OP_SEND, 8 * kMtu);
	post(TERN_OP_SEND, 8 * kMtu);
	expect_same_packets();
	EXPECT_EQ(bursts_, 1u);
}

TEST_F(SendsBursts, RateLimit)
{
	each([](Side &s) {
		tern_hw_qp_attr attr{};
		attr.rate_limit.rate = 1000;
		EXPECT_EQ(s.qp_->modify(TERN_QP_RATE_LIMIT, attr), TERN_AQ_OK);
	});
	post(TERN_OP_WRITE, 60 * kMtu);
	expect_same_packets();
	EXPECT_EQ(bursts_, 0u);
}

TEST_F(SendsBursts, FullWire)
{
	one_.host_.wire.accept_only(1);
	post(TERN_OP_WRITE, 64 * kMtu);
	EXPECT_EQ(one_.host_.wire.loans().size(), 1u);
	one_.host_.wire.accept_all();
	one_.card_.wire_ready();
	one_.run();
	expect_same_packets();
	EXPECT_EQ(bursts_, 4u);
}

/* The card sends one packet of a long message for each unit of a run's budget, whether the run ends
 * within a turn of the QP or together with it. */
TEST_F(SendsBursts, Budget)
{
	one_.qp_->post_send({.opcode = TERN_OP_WRITE,
	                     .remote_addr = 0x1000,
	                     .rkey = kRemoteKey,
	                     .sges = {one_.mr_->sge(0, 64 * kMtu)}});
	for (const size_t packets : {5u, Sender::kTurn - 5u, 16u, 7u}) {
		one_.host_.wire.loans().clear();
		one_.card_.run(packets);
		uint64_t bytes = 0;
		for (const auto &loan : one_.host_.wire.loans())
			for (const HostRange &range : loan.payload)
				bytes += range.size;
		EXPECT_EQ(bytes, packets * kMtu);
	}
}

} // namespace
} // namespace tern::test
