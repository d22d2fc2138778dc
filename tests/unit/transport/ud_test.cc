// SPDX-License-Identifier: GPL-2.0-or-later
/* Datagram QPs, the general service interface among them. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kQkey = 0x11223344;
constexpr uint32_t kGsiQkey = 0x80010000;
constexpr size_t kGrh = 40;
constexpr uint64_t kInbox = 0x10000;
constexpr Gid kCardGid6{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
constexpr Gid kPeerGid6{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};
constexpr uint16_t kVlan = 42;

std::vector<std::byte> bytes(size_t n)
{
	std::vector<std::byte> data(n);
	for (size_t i = 0; i < n; i++)
		data[i] = static_cast<std::byte>(i * 5 + 1);
	return data;
}

class Ud : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		driver_.set_gid(1, TERN_GID_ROCE_V2, kCardGid6);
		driver_.set_gid(2, TERN_GID_ROCE_V1, kCardGid6, kVlan);
		make(TERN_QPT_UD);
		qp_->start(kQkey, kSqPsn);
	}
	void make(tern_hw_qp_type type, uint8_t sq_log_size = QpOptions{}.sq_log_size)
	{
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.type = static_cast<uint8_t>(type);
		options.sq_log_size = sq_log_size;
		qp_ = driver_.create_qp(options);
	}

	static tern_hw_ud_seg to_peer(uint8_t sgid_index = 0)
	{
		tern_hw_ud_seg to{};
		std::ranges::copy(sgid_index ? kPeerGid6.bytes : kPeerGid.bytes, to.dgid);
		std::ranges::copy(kPeerMac, to.dmac);
		to.sgid_index = sgid_index;
		to.hop_limit = 7;
		to.dest_qpn = kPeerQpn;
		to.qkey = kQkey;
		to.flow_label = 0xabcde;
		to.udp_sport = 0xc123;
		to.traffic_class = 0x6a;
		to.sl = 5;
		return to;
	}
	SendRequest send(uint32_t length, const tern_hw_ud_seg &to = to_peer()) const
	{
		SendRequest request;
		request.sges = {mr_->sge(3, length)};
		request.to = to;
		return request;
	}
	TestPacket datagram(size_t size, uint32_t qkey = kQkey) const
	{
		TestPacket p{.opcode = Opcode::RcSendOnly,
		             .service = Service::Ud,
		             .payload = bytes(size)};
		p.ext.deth = {qkey, kPeerQpn};
		return p;
	}
	void post_recv(uint32_t length) { qp_->post_recv(mr_->sge(kInbox, length)); }
	tern_hw_cqe only_cqe()
	{
		const auto cqes = cq_->drain();
		EXPECT_EQ(cqes.size(), 1u);
		return cqes.empty() ? tern_hw_cqe{} : cqes[0];
	}
	void expect_send_error(const SendRequest &request, tern_hw_cqe_status status)
	{
		const uint32_t first = qp_->post_send(request, false);
		const uint32_t second = qp_->post_send(send(8));
		run();
		const auto cqes = cq_->drain();
		ASSERT_EQ(cqes.size(), 2u);
		EXPECT_EQ(cqes[0].wqe_index.get(), first);
		EXPECT_EQ(cqes[0].status, status);
		EXPECT_EQ(cqes[1].wqe_index.get(), second);
		EXPECT_EQ(cqes[1].status, TERN_WC_WR_FLUSH_ERR);
		EXPECT_EQ(qp_state(), TERN_QPS_SQE);
		EXPECT_TRUE(host_.wire.frames().empty());
	}
	void expect_dropped(tern_hw_stat reason)
	{
		EXPECT_EQ(stat(reason), 1u);
		EXPECT_TRUE(cq_->drain().empty());
		EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	}
};

/* ---- send ---- */

TEST_F(Ud, SendCarriesItsAddress)
{
	auto request = send(100);
	request.opcode = TERN_OP_SEND_IMM;
	request.flags |= TERN_WQE_SOLICITED;
	request.imm = 0x01020304;
	qp_->post_send(request);
	run();
	ASSERT_EQ(host_.wire.frames().size(), 1u);
	const auto frame = host_.wire.take();
	const auto parsed = parse(frame);
	ASSERT_TRUE(std::holds_alternative<Packet>(parsed));
	const Packet &p = std::get<Packet>(parsed);
	EXPECT_EQ(p.bth.opcode, opcode_of(Service::Ud, Opcode::RcSendOnlyImm));
	EXPECT_TRUE(p.bth.solicited);
	EXPECT_EQ(p.bth.dest_qpn, kPeerQpn);
	EXPECT_EQ(p.bth.psn.value(), kSqPsn);
	EXPECT_EQ(p.bth.pkey, kDefaultPkey);
	EXPECT_EQ(p.ext.deth.qkey, kQkey);
	EXPECT_EQ(p.ext.deth.source_qpn, qp_->number);
	EXPECT_EQ(p.ext.imm, 0x01020304u);
	EXPECT_EQ(p.path.dmac, kPeerMac);
	EXPECT_EQ(p.path.smac, kCardMac);
	EXPECT_EQ(p.path.sgid, kCardGid);
	EXPECT_EQ(p.path.dgid, kPeerGid);
	EXPECT_EQ(p.path.hop_limit, 7);
	EXPECT_EQ(p.path.traffic_class, 0x6a);
	EXPECT_EQ(p.path.udp_sport, 0xc123);
	EXPECT_EQ(p.path.vlan, kNoVlan);
	EXPECT_TRUE(std::ranges::equal(p.payload.piece(0), content(3, 100)));
	const auto cqe = only_cqe();
	EXPECT_EQ(cqe.status, TERN_WC_SUCCESS);
	EXPECT_EQ(cqe.opcode, TERN_OP_SEND_IMM);
	EXPECT_EQ(stat(TERN_STAT_ROCE_TX_PACKETS), 1u);
}

TEST_F(Ud, CommandComesAfterWhatWasPostedBefore)
{
	for (int i = 0; i < 3; i++)
		qp_->post_send(send(8));
	auto c = make_command(TERN_AQ_RESIZE_CQ);
	c.resize_cq.pages.iova = host_.memory.alloc(2 * sizeof(tern_hw_cqe), 4096);
	c.resize_cq.record = host_.memory.alloc(64);
	c.resize_cq.cqn = cq_->number;
	c.resize_cq.log_size = 1;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_STATE) << "three completions do not fit";
	EXPECT_EQ(cq_->drain().size(), 3u);
}

/* Version, VLAN and source are those of the GID entry at the time of the send. */
TEST_F(Ud, GidEntryAtTheTimeOfTheSend)
{
	for (int i = 0; i < 2; i++) {
		qp_->post_send(send(4, to_peer(2)));
		run();
		const auto frame = host_.wire.take();
		const auto parsed = parse(frame);
		ASSERT_TRUE(std::holds_alternative<Packet>(parsed));
		const PathInfo &path = std::get<Packet>(parsed).path;
		EXPECT_EQ(path.roce_v2, i == 1);
		EXPECT_EQ(path.vlan, i ? 43 : kVlan);
		EXPECT_EQ(path.priority, 5);
		EXPECT_EQ(path.sgid, kCardGid6);
		driver_.set_gid(2, TERN_GID_ROCE_V2, kCardGid6, 43);
	}
}

TEST_F(Ud, EachPacketHasItsPsn)
{
	for (int i = 0; i < 4; i++)
		qp_->post_send(send(1));
	run();
	const auto packets = all_sent();
	ASSERT_EQ(packets.size(), 4u);
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_EQ(packets[i].psn, psn_after(kSqPsn, i));
	EXPECT_EQ(qp_->query().sq_psn.get(), psn_after(kSqPsn, 4));
}

/* IBA 10.2.5: with bit 31 the key of the WQE gives way to that of the QP. */
TEST_F(Ud, ControlledQkey)
{
	auto to = to_peer();
	to.qkey = 0x80000001;
	qp_->post_send(send(1, to));
	run();
	const auto p = sent();
	ASSERT_TRUE(p);
	EXPECT_EQ(p->ext.deth.qkey, kQkey);
}

TEST_F(Ud, LongestDatagramFitsTheMtu)
{
	qp_->post_send(send(1024)); /* Ethernet MTU 1500 */
	run();
	EXPECT_EQ(all_sent().size(), 1u);
	EXPECT_EQ(only_cqe().status, TERN_WC_SUCCESS);
	expect_send_error(send(1025), TERN_WC_LOC_LEN_ERR);
}

TEST_F(Ud, LargeEthernetMtu)
{
	auto c = make_command(TERN_AQ_SET_ETH);
	c.set_eth.mask = TERN_ETH_MTU;
	c.set_eth.mtu = 4096 + 96;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	qp_->post_send(send(4096));
	run();
	EXPECT_EQ(all_sent().size(), 1u);
	c.set_eth.mtu = 4096 + 95;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	cq_->drain();
	expect_send_error(send(2049), TERN_WC_LOC_LEN_ERR);
}

TEST_F(Ud, Inline)
{
	auto request = send(0);
	request.flags |= TERN_WQE_INLINE;
	request.sges.clear();
	request.inline_data = bytes(77);
	qp_->post_send(request);
	run();
	const auto p = sent();
	ASSERT_TRUE(p);
	EXPECT_EQ(p->payload, bytes(77));
}

TEST_F(Ud, SourceGidMustExist)
{
	expect_send_error(send(1, to_peer(9)), TERN_WC_LOC_QP_OP_ERR);
}

TEST_F(Ud, BadLocalKey)
{
	auto request = send(16);
	request.sges[0].lkey ^= 0x100;
	expect_send_error(request, TERN_WC_LOC_PROT_ERR);
}

/* What the segment must not hold: all but the first are checked one by one. */
TEST_F(Ud, MalformedDatagramSegments)
{
	std::vector<tern_hw_ud_seg> bad(6, to_peer());
	bad[0].sl = 16;
	bad[1].flow_label = 0x100000;
	bad[2].dest_qpn = 0x1000000;
	bad[3].rsvd[1] = 1;
	bad[4].dest_qpn = 0xffffff; /* with a unicast GID */
	bad[5].dgid[0] = 0xff;      /* a multicast GID, with the QPN of somebody */
	for (const auto &to : bad) {
		expect_send_error(send(1, to), TERN_WC_LOC_QP_OP_ERR);
		EXPECT_EQ(qp_->set_state(TERN_QPS_RTS), TERN_AQ_OK);
	}
}

TEST_F(Ud, OtherOpcodes)
{
	for (const uint8_t opcode : {TERN_OP_WRITE, TERN_OP_READ, TERN_OP_FETCH_ADD}) {
		auto request = send(8);
		request.opcode = opcode;
		expect_send_error(request, TERN_WC_LOC_QP_OP_ERR);
		EXPECT_EQ(qp_->set_state(TERN_QPS_RTS), TERN_AQ_OK);
	}
}

/* Where the WQE after one of unknown size begins is not known: what was posted behind it neither
 * completes nor is sent. What is posted later is flushed, and in RTS sent. */
TEST_F(Ud, WqeOfUnknownSize)
{
	for (const int segs : {0, 65, 64}) {
		auto blocks = encode(send(1));
		blocks[offsetof(tern_hw_ctrl_seg, segs)] = static_cast<std::byte>(segs);
		const uint32_t bad = qp_->post_blocks(blocks, false);
		qp_->post_send(send(1));
		run();
		const auto cqe = only_cqe();
		EXPECT_EQ(cqe.wqe_index.get(), bad);
		EXPECT_EQ(cqe.status, TERN_WC_LOC_QP_OP_ERR);
		const uint32_t later = qp_->post_send(send(1));
		run();
		const auto flushed = only_cqe();
		EXPECT_EQ(flushed.wqe_index.get(), later);
		EXPECT_EQ(flushed.status, TERN_WC_WR_FLUSH_ERR);
		EXPECT_EQ(qp_->set_state(TERN_QPS_RTS), TERN_AQ_OK);
		qp_->post_send(send(1));
		run();
		EXPECT_EQ(only_cqe().status, TERN_WC_SUCCESS);
		EXPECT_EQ(all_sent().size(), 1u);
	}
}

/* In SQE the receive queue goes on, sends are flushed; RTS makes all good. */
TEST_F(Ud, SendErrorState)
{
	expect_send_error(send(2000), TERN_WC_LOC_LEN_ERR);
	post_recv(100);
	give(datagram(10));
	EXPECT_EQ(only_cqe().opcode, TERN_CQE_RECV);
	for (int i = 0; i < 2; i++) {
		qp_->post_send(send(1));
		run();
		EXPECT_EQ(only_cqe().status, TERN_WC_WR_FLUSH_ERR);
	}
	tern_hw_qp_attr attr{};
	attr.state = TERN_QPS_RTS;
	attr.cur_state = TERN_QPS_SQE;
	attr.qkey = 5;
	EXPECT_EQ(qp_->modify(TERN_QP_STATE | TERN_QP_CUR_STATE | TERN_QP_QKEY, attr), TERN_AQ_OK);
	EXPECT_EQ(qp_->query().qkey.get(), 5u);
	qp_->post_send(send(1));
	run();
	EXPECT_EQ(only_cqe().status, TERN_WC_SUCCESS);
	EXPECT_EQ(all_sent().size(), 1u);
}

/* The wire says no: nothing is lost, nothing completes early. */
TEST_F(Ud, WireRefuses)
{
	host_.wire.accept_only(1);
	for (int i = 0; i < 3; i++)
		qp_->post_send(send(1));
	run();
	EXPECT_EQ(all_sent().size(), 1u);
	open_wire();
	EXPECT_EQ(all_sent().size(), 2u);
	EXPECT_EQ(cq_->drain().size(), 3u);
}

TEST_F(Ud, SqdStopsSending)
{
	tern_hw_qp_attr attr{};
	attr.state = TERN_QPS_SQD;
	attr.en_sqd_async_notify = 1;
	EXPECT_EQ(qp_->modify(TERN_QP_STATE | TERN_QP_EN_SQD_ASYNC_NOTIFY, attr), TERN_AQ_OK);
	EXPECT_TRUE(event(TERN_EVENT_SQ_DRAINED, qp_->number));
	qp_->post_send(send(1));
	run();
	EXPECT_TRUE(all_sent().empty());
	EXPECT_EQ(qp_->set_state(TERN_QPS_RTS), TERN_AQ_OK);
	EXPECT_EQ(all_sent().size(), 1u);
}

/* More than a turn of the schedule. */
TEST_F(Ud, WhatIsPostedGoesBeforeTheQp)
{
	for (int i = 0; i < 30; i++)
		qp_->post_send(send(1));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qp_->number), TERN_AQ_OK);
	EXPECT_EQ(all_sent().size(), 30u);
}

/* ---- receive ---- */

TEST_F(Ud, ReceiveOverIpv4)
{
	post_recv(1000);
	auto p = datagram(99);
	p.opcode = Opcode::RcSendOnlyImm;
	p.ext.imm = 0xcafe;
	p.solicited = true;
	auto av = path();
	av.hop_limit = 33;
	give(p, av);
	const auto cqe = only_cqe();
	EXPECT_EQ(cqe.status, TERN_WC_SUCCESS);
	EXPECT_EQ(cqe.opcode, TERN_CQE_RECV);
	EXPECT_EQ(cqe.byte_len.get(), kGrh + 99);
	EXPECT_EQ(cqe.flags, TERN_CQE_GRH | TERN_CQE_IMM);
	EXPECT_EQ(cqe.imm.get(), 0xcafeu);
	EXPECT_EQ(cqe.qpn.get(), qp_->number);
	EXPECT_EQ(cqe.src_qpn.get(), kPeerQpn);
	EXPECT_EQ(cqe.net_type, TERN_NET_IPV4);
	EXPECT_EQ(cqe.vlan.get(), 0xffff);
	EXPECT_EQ(cqe.sl, 0);
	EXPECT_TRUE(std::ranges::equal(cqe.smac, kPeerMac));
	const auto grh = mr_->read(kInbox, kGrh);
	EXPECT_TRUE(std::all_of(grh.begin(), grh.begin() + 20,
	                        [](std::byte b) { return b == std::byte{0}; }));
	EXPECT_EQ(grh[20], std::byte{0x45});
	EXPECT_EQ(grh[28], std::byte{33}); /* TTL */
	EXPECT_EQ(std::memcmp(&grh[32], &kPeerGid.bytes[12], 4), 0);
	EXPECT_EQ(std::memcmp(&grh[36], &kCardGid.bytes[12], 4), 0);
	EXPECT_EQ(mr_->read(kInbox + kGrh, 99), bytes(99));
}

TEST_F(Ud, ReceiveOverIpv6AndRoceV1)
{
	for (const bool roce_v2 : {true, false}) {
		post_recv(1000);
		auto av = path();
		av.roce_v2 = roce_v2;
		av.sgid = kPeerGid6;
		av.dgid = kCardGid6;
		av.vlan = roce_v2 ? kNoVlan : kVlan;
		av.sl = 3;
		give(datagram(8), av);
		const auto cqe = only_cqe();
		EXPECT_EQ(cqe.status, TERN_WC_SUCCESS);
		EXPECT_EQ(cqe.net_type, roce_v2 ? TERN_NET_IPV6 : TERN_NET_ROCE_V1);
		EXPECT_EQ(cqe.vlan.get(), roce_v2 ? 0xffff : 3 << 13 | kVlan);
		EXPECT_EQ(cqe.sl, roce_v2 ? 0 : 3);
		const auto grh = mr_->read(kInbox, kGrh);
		EXPECT_EQ(grh[0] >> 4, std::byte{6});
		EXPECT_EQ(grh[6], roce_v2 ? std::byte{17} : std::byte{0x1b});
		EXPECT_EQ(std::memcmp(&grh[8], kPeerGid6.bytes.data(), 16), 0);
		EXPECT_EQ(std::memcmp(&grh[24], kCardGid6.bytes.data(), 16), 0);
	}
}

/* The GRH may lie in other buffers than the payload. */
TEST_F(Ud, ReceiveIntoPieces)
{
	const Sge pieces[] = {mr_->sge(kInbox, 13), mr_->sge(kInbox + 100, 30),
	                      mr_->sge(kInbox + 200, 50)};
	qp_->post_recv(pieces);
	give(datagram(20));
	EXPECT_EQ(only_cqe().byte_len.get(), kGrh + 20);
	EXPECT_EQ(mr_->read(kInbox + 127, 3), std::vector(bytes(3)));
	const auto all = bytes(20);
	EXPECT_EQ(mr_->read(kInbox + 200, 17), std::vector(all.begin() + 3, all.end()));
}

TEST_F(Ud, AnyPsnIsTaken)
{
	for (const uint32_t psn : {5u, 5u, 0xffffffu, 0u}) {
		post_recv(100);
		auto p = datagram(1);
		p.psn = psn;
		give(p);
		EXPECT_EQ(only_cqe().status, TERN_WC_SUCCESS);
	}
}

TEST_F(Ud, WrongQkey)
{
	post_recv(100);
	give(datagram(1, kQkey ^ 1));
	expect_dropped(TERN_STAT_RX_BAD_QKEY);
}

TEST_F(Ud, NoReceiveWqe)
{
	give(datagram(1));
	expect_dropped(TERN_STAT_UD_RX_NO_BUFFER);
}

TEST_F(Ud, NotOurGid)
{
	post_recv(100);
	auto av = path();
	av.dgid.bytes[15]++;
	give(datagram(1), av);
	expect_dropped(TERN_STAT_RX_BAD_ADDR);
}

/* The same address in another VLAN is another's. */
TEST_F(Ud, NotOurVlan)
{
	post_recv(100);
	auto av = path();
	av.vlan = 7;
	give(datagram(1), av);
	expect_dropped(TERN_STAT_RX_BAD_ADDR);
}

TEST_F(Ud, OtherServices)
{
	post_recv(100);
	for (const auto service : {Service::Rc, Service::Uc}) {
		auto p = datagram(1);
		p.service = service;
		give(p);
	}
	EXPECT_EQ(stat(TERN_STAT_RX_NO_QP), 2u);
	EXPECT_TRUE(cq_->drain().empty());
}

TEST_F(Ud, DatagramBeyondAnyMtu)
{
	post_recv(8192);
	give(datagram(4097));
	expect_dropped(TERN_STAT_RX_MALFORMED);
	give(datagram(4096));
	EXPECT_EQ(only_cqe().byte_len.get(), kGrh + 4096);
}

TEST_F(Ud, BadPkey)
{
	post_recv(100);
	auto p = datagram(1);
	p.pkey = 0x1234;
	give(p);
	expect_dropped(TERN_STAT_RX_BAD_PKEY);
}

TEST_F(Ud, NotReadyToReceive)
{
	make(TERN_QPT_UD);
	give(datagram(1));
	EXPECT_EQ(stat(TERN_STAT_RX_BAD_STATE), 1u);
}

/* Room for the GRH and the payload, or an error that ends the QP. */
TEST_F(Ud, LongerThanTheReceiveWqe)
{
	post_recv(kGrh + 10);
	give(datagram(10));
	EXPECT_EQ(only_cqe().status, TERN_WC_SUCCESS);
	post_recv(kGrh + 10);
	give(datagram(11));
	EXPECT_EQ(only_cqe().status, TERN_WC_LOC_LEN_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	EXPECT_EQ(mr_->read(kInbox + kGrh, 10), bytes(10));
}

TEST_F(Ud, ReceiveBufferNotWritable)
{
	const HostMr read_only = driver_.create_mr(pd_, 0x5000, 4096, 0);
	qp_->post_recv(read_only.sge(0, 200));
	give(datagram(11));
	EXPECT_EQ(only_cqe().status, TERN_WC_LOC_PROT_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* From a QP to itself. */
TEST_F(Ud, Loopback)
{
	auto to = to_peer();
	std::ranges::copy(kCardGid.bytes, to.dgid);
	std::ranges::copy(kCardMac, to.dmac);
	to.dest_qpn = qp_->number;
	post_recv(100);
	qp_->post_send(send(50, to));
	run();
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 2u);
	EXPECT_EQ(cqes[1].opcode, TERN_CQE_RECV);
	EXPECT_EQ(cqes[1].src_qpn.get(), qp_->number);
	EXPECT_EQ(mr_->read(kInbox + kGrh, 50), content(3, 50));
	EXPECT_TRUE(host_.wire.frames().empty());
}

/* A datagram that a QP sends to itself uses the budget when it is sent and when it is received. */
TEST_F(Ud, LoopbackKeepsTheBudget)
{
	constexpr unsigned kDatagrams = 200, kBudget = 16;
	make(TERN_QPT_UD, 9);
	qp_->start(kQkey, kSqPsn);
	auto to = to_peer();
	std::ranges::copy(kCardGid.bytes, to.dgid);
	std::ranges::copy(kCardMac, to.dmac);
	to.dest_qpn = qp_->number;
	for (unsigned i = 0; i < kDatagrams; i++)
		qp_->post_send(send(50, to), false);
	qp_->publish();
	for (unsigned sent = 0; sent < kDatagrams;) {
		const bool more = card_.run(kBudget);
		const size_t now = cq_->drain().size();
		ASSERT_LE(now, kBudget);
		sent += now;
		ASSERT_TRUE(more || sent == kDatagrams);
	}
}

/* ---- GSI ---- */

TEST_F(Ud, GsiIsNumberOne)
{
	make(TERN_QPT_GSI);
	EXPECT_EQ(qp_->number, 1u);
	EXPECT_ANY_THROW(make(TERN_QPT_GSI));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, 1), TERN_AQ_OK);
	make(TERN_QPT_GSI);
	EXPECT_EQ(qp_->number, 1u);
}

TEST_F(Ud, GsiIsTheDrivers)
{
	QpOptions options;
	options.pd = pd_;
	options.send_cqn = options.recv_cqn = cq_->number;
	options.type = TERN_QPT_GSI;
	options.db_page = 1;
	EXPECT_ANY_THROW(driver_.create_qp(options));
}

/* Its key is there without being set, and after RESET too. */
TEST_F(Ud, GsiKnowsItsQkey)
{
	make(TERN_QPT_GSI);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(qp_->query().qkey.get(), kGsiQkey);
		EXPECT_EQ(qp_->query().port, 1);
		EXPECT_EQ(qp_->set_state(TERN_QPS_INIT, TERN_QP_PKEY_INDEX), TERN_AQ_OK);
		EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	}
}

TEST_F(Ud, GsiSendsAndReceives)
{
	make(TERN_QPT_GSI);
	qp_->start(kGsiQkey);
	auto to = to_peer();
	to.dest_qpn = 1;
	to.qkey = kGsiQkey;
	qp_->post_send(send(256, to));
	run();
	const auto frame = host_.wire.take();
	const auto parsed = parse(frame);
	ASSERT_TRUE(std::holds_alternative<Packet>(parsed));
	EXPECT_EQ(std::get<Packet>(parsed).bth.dest_qpn, 1u);
	EXPECT_EQ(std::get<Packet>(parsed).ext.deth.qkey, kGsiQkey);
	EXPECT_EQ(std::get<Packet>(parsed).ext.deth.source_qpn, 1u);
	cq_->drain();
	post_recv(kGrh + 256);
	give(datagram(256, kGsiQkey));
	EXPECT_EQ(only_cqe().status, TERN_WC_SUCCESS);
}

/* A MAD has 256 bytes; a longer packet must not stop the host's connection manager. */
TEST_F(Ud, GsiDropsWhatIsNoMad)
{
	make(TERN_QPT_GSI);
	qp_->start(kGsiQkey);
	post_recv(kGrh + 256);
	give(datagram(257, kGsiQkey));
	expect_dropped(TERN_STAT_RX_MALFORMED);
}

/* ---- states ---- */

TEST_F(Ud, ErrorFlushes)
{
	post_recv(100);
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	EXPECT_EQ(only_cqe().status, TERN_WC_WR_FLUSH_ERR);
	qp_->post_send(send(1));
	run();
	EXPECT_EQ(only_cqe().status, TERN_WC_WR_FLUSH_ERR);
	give(datagram(1));
	EXPECT_EQ(stat(TERN_STAT_RX_BAD_STATE), 1u);
}

} // namespace
} // namespace tern::test
