// SPDX-License-Identifier: GPL-2.0-or-later
/* Checksums and segments of TCP: what QPs of type ETH leave to the card, and what it verifies. */
#include "tests/support/one_card.h"
#include "tests/unit/port/tcp_frames.h"

namespace tern::test {
namespace {

using namespace hw;

/** The fields of the control segment that are an ETH QP's own. */
struct Offload {
	size_t csum_start = 0;
	size_t csum_offset = 0;
	size_t mss = 0;
	uint16_t rsvd1 = 0;
};

constexpr uint8_t kFin = 0x01, kPsh = 0x08, kAck = 0x10, kCwr = 0x80;

class EthOffloadTest : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		eth_ = make_eth();
	}
	std::unique_ptr<HostQp> make_eth()
	{
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.type = TERN_QPT_ETH;
		auto qp = driver_.create_qp(options);
		start(*qp);
		return qp;
	}
	static void start(HostQp &qp)
	{
		for (const auto state : {TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS})
			EXPECT_EQ(qp.set_state(state), TERN_AQ_OK);
	}
	void set_mtu(uint16_t mtu)
	{
		auto c = make_command(TERN_AQ_SET_ETH);
		c.set_eth.mask = TERN_ETH_MTU;
		c.set_eth.mtu = mtu;
		ASSERT_EQ(driver_.status_of(c), TERN_AQ_OK);
	}
	static tern_hw_eth_ctrl_seg control(std::span<const std::byte> blocks)
	{
		tern_hw_eth_ctrl_seg ctrl;
		std::memcpy(&ctrl, blocks.data(), sizeof(ctrl));
		return ctrl;
	}
	void post(const std::vector<Sge> &sges, const Offload &offload)
	{
		auto blocks = encode({.sges = sges});
		auto ctrl = control(blocks);
		ctrl.csum_start = static_cast<uint16_t>(offload.csum_start);
		ctrl.csum_offset = static_cast<uint16_t>(offload.csum_offset);
		ctrl.mss = static_cast<uint16_t>(offload.mss);
		ctrl.rsvd1 = offload.rsvd1;
		std::memcpy(blocks.data(), &ctrl, sizeof(ctrl));
		eth_->post_blocks(blocks);
	}
	/** In two buffers, so that headers and payload lie across their border. */
	void post(const Frame &frame, const Offload &offload)
	{
		mr_->write(0, frame);
		const auto first = static_cast<uint32_t>(std::min<size_t>(frame.size(), 61));
		post({mr_->sge(0, first),
		      mr_->sge(first, static_cast<uint32_t>(frame.size()) - first)},
		     offload);
	}
	static Offload offload_of(const TestFrame &shape, size_t mss)
	{
		return {shape.l4_offset(), shape.csum_offset(), mss};
	}
	std::vector<Frame> sent()
	{
		std::vector<Frame> all;
		for (Frame f = host_.wire.take(); !f.empty(); f = host_.wire.take())
			all.push_back(f);
		return all;
	}
	void expect_status(tern_hw_cqe_status status)
	{
		const auto cqes = cq_->drain();
		ASSERT_EQ(cqes.size(), 1u);
		EXPECT_EQ(cqes[0].status, status);
	}
	/** A WQE that is refused ends the QP and nothing else; a new start cures it. */
	void expect_refused(tern_hw_cqe_status status)
	{
		run();
		expect_status(status);
		EXPECT_TRUE(sent().empty());
		EXPECT_EQ(stat(TERN_STAT_ETH_TX_ERRORS), ++refused_);
		EXPECT_EQ(eth_->query().state, TERN_QPS_ERR);
		EXPECT_EQ(eth_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
		eth_->forget();
		start(*eth_);
	}

	void check_segments(const TestFrame &shape, size_t mss);

	std::unique_ptr<HostQp> eth_;
	uint64_t refused_ = 0;
};

/* Each is a whole frame that follows from the one before; together they are what was sent. */
void EthOffloadTest::check_segments(const TestFrame &shape, size_t mss)
{
	const Frame whole = shape.build_partial();
	post(whole, offload_of(shape, mss));
	run();
	expect_status(TERN_WC_SUCCESS);
	const auto frames = sent();
	const size_t header = shape.l4_offset() + shape.l4_header();
	const size_t count = std::max<size_t>((shape.payload + mss - 1) / mss, 1);
	ASSERT_EQ(frames.size(), count);

	Frame payload;
	for (size_t i = 0; i < count; i++) {
		const Frame &f = frames[i];
		const auto done = static_cast<uint32_t>(payload.size());
		const size_t part = std::min(mss, shape.payload - payload.size());
		const size_t size = header + part;
		ASSERT_EQ(f.size(), std::max<size_t>(size, 60));
		const auto frame = std::span(f).first(size);
		const auto ip = frame.subspan(shape.ip_offset());
		if (shape.ipv6) {
			EXPECT_EQ(get16(ip, 4), ip.size() - 40);
		} else {
			EXPECT_EQ(get16(ip, 2), ip.size());
			EXPECT_EQ(get16(ip, 4), (shape.id + i) & 0xffff);
			EXPECT_EQ(reference_sum(ip.first(shape.ip_header())), 0xffff);
		}
		EXPECT_EQ(l4_sum(shape, frame), 0xffff);
		const auto tcp = frame.subspan(shape.l4_offset());
		EXPECT_EQ(get32(tcp, 4), shape.sequence + done);
		const unsigned once = (i ? kCwr : 0) | (i + 1 < count ? kFin | kPsh : 0);
		EXPECT_EQ(std::to_integer<unsigned>(tcp[13]), shape.flags & ~once);
		payload.insert(payload.end(), f.begin() + static_cast<ptrdiff_t>(header),
		               f.begin() + static_cast<ptrdiff_t>(size));
	}
	EXPECT_EQ(payload, Frame(whole.begin() + static_cast<ptrdiff_t>(header), whole.end()));
}

TEST_F(EthOffloadTest, Segments)
{
	const uint8_t flags = kFin | kPsh | kAck | kCwr;
	for (const bool ipv6 : {false, true})
		for (const bool vlan : {false, true})
			for (const size_t options : {0u, 12u, 40u})
				for (const size_t payload :
				     {0u, 1u, 999u, 1000u, 1001u, 5000u, 65000u})
					check_segments({.ipv6 = ipv6,
					                .vlan = vlan,
					                .to_card = false,
					                .tcp_options = options,
					                .id = 0xfffe,
					                .sequence = 0xfffffc00,
					                .flags = flags,
					                .payload = payload},
					               1000);
	check_segments({.to_card = false, .ip_options = 8, .payload = 3001}, 536);
	check_segments({.to_card = false, .payload = 300}, 1);
	set_mtu(9000);
	check_segments({.ipv6 = true, .to_card = false, .payload = 65000}, 8928);
	EXPECT_EQ(stat(TERN_STAT_ETH_TX_TSO), 2u * 2 * 3 * 7 + 3);
	EXPECT_EQ(stat(TERN_STAT_ETH_TX_CSUM), stat(TERN_STAT_ETH_TX_FRAMES));
}

TEST_F(EthOffloadTest, PutsChecksums)
{
	for (const uint8_t protocol : {6, 17})
		for (const bool ipv6 : {false, true})
			for (size_t payload = 0; payload < 40; payload++) {
				const TestFrame shape{.ipv6 = ipv6,
				                      .to_card = false,
				                      .protocol = protocol,
				                      .payload = payload};
				post(shape.build_partial(), offload_of(shape, 0));
				run();
				expect_status(TERN_WC_SUCCESS);
				auto frames = sent();
				ASSERT_EQ(frames.size(), 1u);
				Frame expected = shape.build();
				expected.resize(std::max<size_t>(expected.size(), 60));
				EXPECT_EQ(frames[0], expected);
			}
	EXPECT_EQ(stat(TERN_STAT_ETH_TX_CSUM), 160u);
}

/* In UDP a checksum field of zero means "no checksum" (RFC 768). In TCP zero is a valid checksum.
 */
TEST_F(EthOffloadTest, ZeroChecksum)
{
	struct Case {
		uint8_t protocol;
		size_t mss;
		uint16_t checksum;
	};
	for (const auto &c : {Case{6, 0, 0}, Case{6, 1000, 0}, Case{17, 0, 0xffff}})
		for (const bool ipv6 : {false, true}) {
			TestFrame shape{.ipv6 = ipv6,
			                .to_card = false,
			                .protocol = c.protocol,
			                .payload = 100};
			const size_t field = shape.l4_offset() + shape.csum_offset();
			/* Move the checksum into the source port, which it covers. */
			shape.sport = static_cast<uint16_t>(
			        (shape.sport + get16(shape.build(), field)) % 0xffff);
			post(shape.build_partial(), offload_of(shape, c.mss));
			run();
			const auto frames = sent();
			ASSERT_EQ(frames.size(), 1u);
			EXPECT_EQ(get16(frames[0], field), c.checksum);
		}
}

TEST_F(EthOffloadTest, RefusesWhatMakesNoSense)
{
	const TestFrame shape{.to_card = false, .payload = 3000};
	const Frame frame = shape.build_partial();
	const Offload good = offload_of(shape, 1000);
	const auto refused = [&](const Frame &f, const Offload &o, tern_hw_cqe_status status) {
		SCOPED_TRACE(testing::Message()
		             << o.csum_start << ' ' << o.csum_offset << ' ' << o.mss);
		post(f, o);
		expect_refused(status);
	};
	/* the fields by themselves */
	refused(frame, {.csum_start = 34, .csum_offset = 16, .mss = 1000, .rsvd1 = 1},
	        TERN_WC_LOC_QP_OP_ERR);
	refused(frame, {.mss = 1000}, TERN_WC_LOC_QP_OP_ERR);
	refused(frame, {.csum_offset = 16}, TERN_WC_LOC_QP_OP_ERR);
	refused(frame, {.csum_start = 13, .csum_offset = 2}, TERN_WC_LOC_QP_OP_ERR);
	refused(frame, {.csum_start = 34, .csum_offset = 6, .mss = 1000}, TERN_WC_LOC_QP_OP_ERR);
	/* a checksum past the end of the frame */
	const Frame small = TestFrame{.to_card = false, .payload = 100}.build_partial();
	refused(small, {.csum_start = small.size() - 1, .csum_offset = 0}, TERN_WC_LOC_QP_OP_ERR);
	refused(small, {.csum_start = 14, .csum_offset = 0xffff}, TERN_WC_LOC_QP_OP_ERR);
	refused(small, {.csum_start = 0xffff, .csum_offset = 0}, TERN_WC_LOC_QP_OP_ERR);
	/* TCP that is not where it should be */
	for (const size_t start : {14u, 33u, 35u, 36u})
		refused(frame, {.csum_start = start, .csum_offset = 16, .mss = 1000},
		        TERN_WC_LOC_QP_OP_ERR);
	refused(frame, {.csum_start = 1499, .csum_offset = 16, .mss = 1000}, TERN_WC_LOC_LEN_ERR);
	refused(frame, {.csum_start = 0xffff, .csum_offset = 16, .mss = 1000}, TERN_WC_LOC_LEN_ERR);
	refused(small, {.csum_start = small.size() - 19, .csum_offset = 16, .mss = 1000},
	        TERN_WC_LOC_LEN_ERR);
	/* frames and segments that are too long */
	refused(frame, {.csum_start = 34, .csum_offset = 16}, TERN_WC_LOC_LEN_ERR);
	refused(frame, {.csum_start = 34, .csum_offset = 16, .mss = 1465}, TERN_WC_LOC_LEN_ERR);
	mr_->write(0, frame);
	post({mr_->sge(0, 0x10001)}, good);
	expect_refused(TERN_WC_LOC_LEN_ERR);

	const auto refused_with = [&](size_t at, unsigned byte, tern_hw_cqe_status status) {
		Frame bad = frame;
		bad[at] = static_cast<std::byte>(byte);
		refused(bad, good, status);
	};
	refused_with(12, 0x86, TERN_WC_LOC_QP_OP_ERR);      /* no IP */
	refused_with(14, 0x65, TERN_WC_LOC_QP_OP_ERR);      /* version 6 */
	refused_with(14, 0x44, TERN_WC_LOC_QP_OP_ERR);      /* a header of 16 bytes */
	refused_with(14, 0x46, TERN_WC_LOC_QP_OP_ERR);      /* one of 24 */
	refused_with(23, 17, TERN_WC_LOC_QP_OP_ERR);        /* UDP */
	refused_with(34 + 12, 0x40, TERN_WC_LOC_QP_OP_ERR); /* a TCP header of 16 bytes */
	/* one of 60, in a frame that ends before */
	Frame short_tcp = TestFrame{.to_card = false, .payload = 10}.build_partial();
	short_tcp[34 + 12] = std::byte{0xf0};
	refused(short_tcp, good, TERN_WC_LOC_LEN_ERR);
	TestFrame v6{.ipv6 = true, .to_card = false, .payload = 100};
	Frame not_tcp = v6.build_partial();
	not_tcp[14 + 6] = std::byte{17};
	refused(not_tcp, offload_of(v6, 1000), TERN_WC_LOC_QP_OP_ERR);

	check_segments(shape, 1000);
}

/* RAW QPs have no such fields: what an ETH QP has there is reserved. */
TEST_F(EthOffloadTest, NotForOthers)
{
	QpOptions options;
	options.pd = pd_;
	options.send_cqn = options.recv_cqn = cq_->number;
	options.type = TERN_QPT_RAW;
	eth_ = driver_.create_qp(options);
	start(*eth_);
	const TestFrame shape{.to_card = false, .payload = 100};
	post(shape.build_partial(), offload_of(shape, 50));
	run();
	expect_status(TERN_WC_LOC_QP_OP_ERR);
	EXPECT_TRUE(sent().empty());
}

/* A turn ends in the middle of a WQE, and another QP sends before it goes on. */
TEST_F(EthOffloadTest, TakesTurns)
{
	auto other = make_eth();
	const TestFrame shape{.to_card = false, .payload = 60000};
	post(shape.build_partial(), offload_of(shape, 1000));
	const Frame single = TestFrame{.to_card = false, .sport = 77, .payload = 10}.build();
	mr_->write(0x18000, single);
	other->post_send({.sges = {mr_->sge(0x18000, static_cast<uint32_t>(single.size()))}});
	run();
	const auto frames = sent();
	ASSERT_EQ(frames.size(), 61u);
	size_t place = 0;
	while (place < frames.size() && get16(frames[place], 34) != 77)
		place++;
	EXPECT_GE(place, 1u);
	EXPECT_LE(place, 17u);
	EXPECT_EQ(cq_->drain().size(), 2u);
}

/* The wire refuses in the middle; nothing is lost or sent twice. */
TEST_F(EthOffloadTest, WaitsForTheWire)
{
	const TestFrame shape{.to_card = false, .payload = 5000};
	post(shape.build_partial(), offload_of(shape, 1000));
	host_.wire.accept_only(2);
	run();
	EXPECT_TRUE(cq_->drain().empty());
	open_wire();
	EXPECT_EQ(sent().size(), 5u);
	expect_status(TERN_WC_SUCCESS);
}

/* The host changes a WQE of which some segments are out: it fails, or ends sooner. */
TEST_F(EthOffloadTest, ChangesUnderWay)
{
	const TestFrame shape{.to_card = false, .payload = 60000};
	post(shape.build_partial(), offload_of(shape, 1000));
	card_.run(16);
	const auto before = sent().size();
	ASSERT_GE(before, 1u);
	ASSERT_LT(before, 60u);
	tern_hw_data_seg seg{};
	const Iova second = eth_->buffer.at(2 * TERN_SEG_SIZE);
	host_.memory.put(second, seg);
	run();
	expect_status(TERN_WC_LOC_LEN_ERR);
	EXPECT_TRUE(sent().empty());
}

/* Memory that cannot be read, in the middle of the payload. */
TEST_F(EthOffloadTest, BadMemory)
{
	const TestFrame shape{.to_card = false, .payload = 3000};
	mr_->write(0, shape.build_partial());
	post({mr_->sge(0, 1500), {mr_->va, 1500, 0x7700}}, offload_of(shape, 1000));
	run();
	expect_status(TERN_WC_LOC_PROT_ERR);
	EXPECT_EQ(sent().size(), 1u);
}

/* ---- receive ------------------------------------------------------------------------- */

class EthChecksumTest : public EthOffloadTest {
protected:
	/** What the card says of @frame in its CQE. */
	unsigned verdict(const Frame &frame)
	{
		eth_->post_recv(mr_->sge(0x10000, 4096));
		card_.receive(frame);
		run();
		const auto cqe = cq_->poll();
		EXPECT_TRUE(cqe);
		return cqe ? cqe->flags : 0;
	}
};

TEST_F(EthChecksumTest, Right)
{
	for (const uint8_t protocol : {6, 17})
		for (const bool vlan : {false, true})
			for (size_t payload = 0; payload < 9; payload++) {
				const TestFrame v4{
				        .vlan = vlan, .protocol = protocol, .payload = payload};
				EXPECT_EQ(verdict(v4.build()), TERN_CQE_IP_OK | TERN_CQE_L4_OK);
				/* a pad is no part of it */
				Frame padded = v4.build();
				padded.resize(padded.size() + 7, std::byte{0x5a});
				EXPECT_EQ(verdict(padded), TERN_CQE_IP_OK | TERN_CQE_L4_OK);
				TestFrame v6 = v4;
				v6.ipv6 = true;
				EXPECT_EQ(verdict(v6.build()), TERN_CQE_L4_OK);
			}
	EXPECT_EQ(verdict(TestFrame{.ip_options = 12}.build()), TERN_CQE_IP_OK | TERN_CQE_L4_OK);
	EXPECT_EQ(stat(TERN_STAT_ETH_RX_CSUM_BAD), 0u);
	EXPECT_EQ(stat(TERN_STAT_ETH_RX_CSUM_OK), 2u * 2 * 9 * 3 + 1);
}

/* Each bit counts: none of them can be wrong and the frame pass for right. */
TEST_F(EthChecksumTest, Wrong)
{
	for (const bool ipv6 : {false, true}) {
		const TestFrame shape{.ipv6 = ipv6, .payload = 21};
		const Frame good = shape.build();
		for (size_t at = shape.ip_offset(); at < good.size(); at++) {
			Frame bad = good;
			bad[at] ^= std::byte{0x10};
			/* class, flow label and hop limit of IPv6 are in no checksum */
			const size_t in_ip = at - shape.ip_offset();
			const bool covered = !ipv6 || (in_ip >= 4 && in_ip != 7);
			const unsigned flags = verdict(bad);
			if (covered) {
				EXPECT_FALSE(flags & TERN_CQE_L4_OK) << "byte " << at;
			}
			if (!ipv6 && at < shape.l4_offset()) {
				EXPECT_FALSE(flags & TERN_CQE_IP_OK) << "byte " << at;
			}
		}
	}
	EXPECT_GT(stat(TERN_STAT_ETH_RX_CSUM_BAD), 40u);
}

TEST_F(EthChecksumTest, Unproven)
{
	/* fragments: the first, and a later one */
	EXPECT_EQ(verdict(TestFrame{.fragment = 0x2000, .payload = 8}.build()), TERN_CQE_IP_OK);
	EXPECT_EQ(verdict(TestFrame{.fragment = 0x0001, .payload = 8}.build()), TERN_CQE_IP_OK);
	/* UDP without a checksum */
	const TestFrame udp{.protocol = 17, .payload = 8};
	Frame frame = udp.build();
	put16(frame, udp.l4_offset() + 6, 0);
	EXPECT_EQ(verdict(frame), TERN_CQE_IP_OK);
	EXPECT_EQ(stat(TERN_STAT_ETH_RX_CSUM_BAD), 0u);
	/* which IPv6 does not allow */
	const TestFrame udp6{.ipv6 = true, .protocol = 17, .payload = 8};
	frame = udp6.build();
	put16(frame, udp6.l4_offset() + 6, 0);
	EXPECT_EQ(verdict(frame), 0u);
	EXPECT_EQ(stat(TERN_STAT_ETH_RX_CSUM_BAD), 1u);
	/* other protocols */
	EXPECT_EQ(verdict(TestFrame{.protocol = 1, .payload = 8}.build()), TERN_CQE_IP_OK);
	/* cut short at every place */
	for (const bool ipv6 : {false, true}) {
		const Frame whole = TestFrame{.ipv6 = ipv6, .payload = 8}.build();
		for (size_t size = 14; size < whole.size(); size++)
			EXPECT_EQ(verdict(Frame(whole.begin(),
			                        whole.begin() + static_cast<ptrdiff_t>(size))),
			          0u);
	}
	/* a UDP length that is longer or shorter than it can be */
	for (const uint16_t length : {0, 7, 17, 0xffff}) {
		frame = udp.build();
		put16(frame, udp.l4_offset() + 4, length);
		EXPECT_EQ(verdict(frame), TERN_CQE_IP_OK);
	}
}

} // namespace
} // namespace tern::test
