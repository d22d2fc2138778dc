// SPDX-License-Identifier: GPL-2.0-or-later
/* QPs of type RAW and the flows that give them frames. */
#include "qemu/rnic/formats/headers.h"
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;
using Frame = std::vector<std::byte>;

constexpr Mac kBroadcast{255, 255, 255, 255, 255, 255};
constexpr Mac kMulticast{1, 0, 0x5e, 0, 0, 1};
constexpr Mac kOther{2, 9, 9, 9, 9, 9};
constexpr uint8_t kTcp = 6;
constexpr uint8_t kUdp = 17;

/** What a frame has, field by field. */
struct Content {
	Mac dmac = kCardMac;
	std::optional<uint16_t> vlan_tci{};
	uint8_t ip_version = 4; /* 0: some other ethertype */
	uint8_t proto = kUdp;
	uint8_t tos = 0x20;
	uint16_t fragment = 0;
	uint16_t src_port = 1000;
	uint16_t dst_port = 2000;
};

template <typename T>
void append(Frame &frame, const T &header)
{
	const auto bytes = std::as_bytes(std::span(&header, 1));
	frame.insert(frame.end(), bytes.begin(), bytes.end());
}

Frame make(const Content &c)
{
	Frame frame;
	const uint16_t type = c.ip_version == 4   ? headers::kEtherIpv4
	                      : c.ip_version == 6 ? headers::kEtherIpv6
	                                          : 0x88b5;
	append(frame, headers::Ethernet{c.dmac, kPeerMac, c.vlan_tci ? headers::kEtherVlan : type});
	if (c.vlan_tci)
		append(frame, headers::Vlan{*c.vlan_tci, type});
	if (c.ip_version == 4) {
		headers::Ipv4 ip{};
		ip.version_ihl = headers::kIpv4NoOptions;
		ip.tos = c.tos;
		ip.protocol = c.proto;
		ip.fragment = c.fragment;
		ip.source = {10, 0, 0, 2};
		ip.destination = {10, 0, 0, 1};
		append(frame, ip);
	} else if (c.ip_version == 6) {
		headers::Ipv6 ip{};
		ip.version_class_flow = 6u << 28 | uint32_t{c.tos} << 20;
		ip.next_header = c.proto;
		ip.source.bytes[15] = 2;
		ip.destination.bytes[15] = 1;
		append(frame, ip);
	}
	append(frame, Be<uint16_t>(c.src_port));
	append(frame, Be<uint16_t>(c.dst_port));
	frame.resize(std::max<size_t>(frame.size(), 60));
	return frame;
}

class SteeringTest : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		eth_ = make_qp(TERN_QPT_ETH);
		raw_ = make_qp(TERN_QPT_RAW);
		other_ = make_qp(TERN_QPT_RAW);
	}
	std::unique_ptr<HostQp> make_qp(uint8_t type)
	{
		auto qp = driver_.create_qp({.pd = pd_,
		                             .send_cqn = cq_->number,
		                             .recv_cqn = cq_->number,
		                             .type = type});
		for (const auto state : {TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS})
			EXPECT_EQ(qp->set_state(state), TERN_AQ_OK);
		for (int i = 0; i < 4; i++)
			qp->post_recv(mr_->sge(0x10000, 2048));
		return qp;
	}
	static tern_hw_aq_cmd flow(const HostQp &qp)
	{
		auto c = make_command(TERN_AQ_CREATE_FLOW);
		c.create_flow.qpn = qp.number;
		return c;
	}
	void set_rx_mode(uint32_t mode)
	{
		auto c = make_command(TERN_AQ_SET_ETH);
		c.set_eth.mask = TERN_ETH_RX_MODE;
		c.set_eth.rx_mode = mode;
		EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	}
	template <typename Change>
	static tern_hw_aq_cmd flow(const HostQp &qp, Change change)
	{
		auto c = flow(qp);
		change(c.create_flow);
		return c;
	}
	uint32_t add(const tern_hw_aq_cmd &c)
	{
		const auto result = driver_.command(c);
		EXPECT_EQ(result.status, TERN_AQ_OK);
		return result.created.id.get();
	}
	/** The QPs that get @frame. */
	std::vector<uint32_t> receivers(const Frame &frame)
	{
		card_.receive(frame);
		run();
		std::vector<uint32_t> qpns;
		for (const auto &cqe : cq_->drain()) {
			EXPECT_EQ(cqe.status, TERN_WC_SUCCESS);
			EXPECT_EQ(cqe.byte_len.get(), frame.size());
			qpns.push_back(cqe.qpn.get());
		}
		for (HostQp *qp : {eth_.get(), raw_.get(), other_.get()})
			for (auto n = std::ranges::count(qpns, qp->number); n > 0; n--)
				qp->post_recv(mr_->sge(0x10000, 2048));
		return qpns;
	}
	/** The QPs with a completion when @qp sends @frame, in their order. */
	std::vector<uint32_t> send(HostQp &qp, const Frame &frame)
	{
		mr_->write(0, frame);
		qp.post_send({.sges = {mr_->sge(0, static_cast<uint32_t>(frame.size()))}});
		run();
		std::vector<uint32_t> qpns;
		for (const auto &cqe : cq_->drain())
			qpns.push_back(cqe.qpn.get());
		return qpns;
	}
	bool takes(const HostQp &qp, const Content &content)
	{
		return receivers(make(content)) == std::vector{qp.number};
	}

	std::unique_ptr<HostQp> eth_;
	std::unique_ptr<HostQp> raw_;
	std::unique_ptr<HostQp> other_;
};

TEST_F(SteeringTest, NoFlowNoFrame)
{
	EXPECT_TRUE(takes(*eth_, {}));
}

TEST_F(SteeringTest, Ports)
{
	add(flow(*raw_, [](auto &f) {
		f.ip_version = 4;
		f.key.dst_port = uint16_t{2000};
		f.mask.dst_port = uint16_t{0xffff};
	}));
	EXPECT_TRUE(takes(*raw_, {}));
	EXPECT_EQ(mr_->read(0x10000, 60), make({}));
	EXPECT_TRUE(takes(*raw_, {.proto = kTcp}));
	EXPECT_TRUE(takes(*raw_, {.vlan_tci = 5}));
	EXPECT_TRUE(takes(*eth_, {.dst_port = 2001}));
	EXPECT_TRUE(takes(*eth_, {.ip_version = 6}));
	/* The same bytes, but no ports. */
	EXPECT_TRUE(takes(*eth_, {.proto = 1}));
	EXPECT_TRUE(takes(*eth_, {.fragment = 8}));
	EXPECT_EQ(stat(TERN_STAT_RAW_RX_FRAMES), 3u);
	EXPECT_EQ(stat(TERN_STAT_ETH_RX_FRAMES), 4u);
}

TEST_F(SteeringTest, Ipv4Addresses)
{
	add(flow(*raw_, [](auto &f) {
		f.ip_version = 4;
		f.key.src_ip[0] = f.key.dst_ip[0] = 10;
		f.key.dst_ip[3] = 1;
		f.mask.src_ip[0] = f.mask.dst_ip[0] = f.mask.dst_ip[3] = 0xff;
	}));
	EXPECT_TRUE(takes(*raw_, {}));
	EXPECT_TRUE(takes(*eth_, {.ip_version = 6}));
	EXPECT_TRUE(takes(*eth_, {.ip_version = 0}));
}

TEST_F(SteeringTest, Ipv6)
{
	add(flow(*raw_, [](auto &f) {
		f.ip_version = 6;
		f.key.src_ip[15] = 2;
		f.mask.src_ip[15] = 0xff;
		f.key.ip_proto = kTcp;
		f.mask.ip_proto = 0xff;
		f.key.tos = 0x20;
		f.mask.tos = 0xe0;
	}));
	EXPECT_TRUE(takes(*raw_, {.ip_version = 6, .proto = kTcp, .tos = 0x2f}));
	EXPECT_TRUE(takes(*eth_, {.ip_version = 6, .proto = kUdp}));
	EXPECT_TRUE(takes(*eth_, {.ip_version = 6, .proto = kTcp, .tos = 0x40}));
	EXPECT_TRUE(takes(*eth_, {.ip_version = 4, .proto = kTcp}));
}

/* A tag of priority 0 in VLAN 0 is a tag; none is none. */
TEST_F(SteeringTest, Vlan)
{
	add(flow(*raw_, [](auto &f) { f.mask.vlan_tci = uint16_t{0xfff}; }));
	EXPECT_TRUE(takes(*raw_, {.vlan_tci = 0}));
	EXPECT_TRUE(takes(*raw_, {.vlan_tci = 0xe000}));
	EXPECT_TRUE(takes(*eth_, {.vlan_tci = 1}));
	EXPECT_TRUE(takes(*eth_, {}));
}

/* The ethertype is the one behind the tag. */
TEST_F(SteeringTest, Ethertype)
{
	add(flow(*raw_, [](auto &f) {
		f.key.ethertype = uint16_t{0x88b5};
		f.mask.ethertype = uint16_t{0xffff};
	}));
	EXPECT_TRUE(takes(*raw_, {.ip_version = 0}));
	EXPECT_TRUE(takes(*raw_, {.vlan_tci = 7, .ip_version = 0}));
	EXPECT_TRUE(takes(*eth_, {}));
}

/* A flow asks for a MAC that the filter would not let through. */
TEST_F(SteeringTest, ForeignMac)
{
	EXPECT_TRUE(receivers(make({.dmac = kOther})).empty());
	add(flow(*raw_, [](auto &f) {
		std::ranges::copy(kOther, f.key.dmac);
		std::ranges::fill(f.mask.dmac, 0xff);
	}));
	EXPECT_TRUE(takes(*raw_, {.dmac = kOther}));
	EXPECT_TRUE(takes(*eth_, {}));
	EXPECT_EQ(stat(TERN_STAT_RX_FILTERED), 1u);
}

/* The flows of the lowest priority; of equal ones each gets a copy. */
TEST_F(SteeringTest, PriorityOfEqualFlows)
{
	const auto at = [](const HostQp &qp, uint16_t priority) {
		return flow(qp, [=](auto &f) { f.priority = priority; });
	};
	const uint32_t old = add(at(*raw_, 5));
	const uint32_t late = add(at(*other_, 5));
	EXPECT_EQ(receivers(make({})), (std::vector{raw_->number, other_->number}));
	EXPECT_EQ(stat(TERN_STAT_RX_FRAMES), 1u) << "however many copies";
	EXPECT_EQ(stat(TERN_STAT_RAW_RX_FRAMES), 2u);
	const uint32_t first = add(at(*other_, 4));
	EXPECT_TRUE(takes(*other_, {}));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_FLOW, first), TERN_AQ_OK);
	EXPECT_EQ(receivers(make({})), (std::vector{raw_->number, other_->number}));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_FLOW, old), TERN_AQ_OK);
	EXPECT_TRUE(takes(*other_, {}));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_FLOW, late), TERN_AQ_OK);
	EXPECT_TRUE(takes(*eth_, {}));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_FLOW, late), TERN_AQ_BAD_OBJECT);
}

/* A QP with two equal flows gets one copy; one that does not receive gets none. */
TEST_F(SteeringTest, EqualFlowsOfOneQp)
{
	for (const HostQp *qp : {raw_.get(), other_.get(), raw_.get()})
		add(flow(*qp));
	EXPECT_EQ(receivers(make({})), (std::vector{raw_->number, other_->number}));
	EXPECT_EQ(raw_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	EXPECT_TRUE(takes(*other_, {}));
	EXPECT_EQ(other_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	EXPECT_TRUE(takes(*eth_, {}));
}

/* Of flows with different masks one gets the frame: the lowest priority, then the oldest. */
TEST_F(SteeringTest, PriorityThenAgeAcrossMasks)
{
	const auto by_mac = [](const HostQp &qp, uint16_t priority) {
		return flow(qp, [=](auto &f) {
			f.priority = priority;
			std::ranges::fill(f.mask.dmac, uint8_t{0xff});
			std::ranges::copy(kCardMac, f.key.dmac);
		});
	};
	const uint32_t old = add(flow(*raw_, [](auto &f) { f.priority = uint16_t{5}; }));
	const uint32_t first = add(by_mac(*other_, 4));
	EXPECT_TRUE(takes(*other_, {}));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_FLOW, first), TERN_AQ_OK);
	add(by_mac(*other_, 5));
	EXPECT_TRUE(takes(*raw_, {}));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_FLOW, old), TERN_AQ_OK);
	EXPECT_TRUE(takes(*other_, {}));
}

/* What would be looked through one by one is limited; what is found by its key is not. */
TEST_F(SteeringTest, Limits)
{
	const auto by_type = [this](uint16_t type) {
		return flow(*raw_, [=](auto &f) {
			f.mask.ethertype = uint16_t{0xffff};
			f.key.ethertype = type;
		});
	};
	for (uint16_t i = 0; i < 1000; i++)
		add(by_type(static_cast<uint16_t>(0x1000 + i)));
	const auto sniffer = flow(*raw_, [](auto &f) { f.type = TERN_FLOW_SNIFFER; });
	for (int i = 0; i < 16; i++)
		add(sniffer);
	EXPECT_EQ(driver_.status_of(sniffer), TERN_AQ_NO_RESOURCE);
	for (int i = 1; i < 16; i++)
		add(by_type(0x1000));
	EXPECT_EQ(driver_.status_of(by_type(0x1000)), TERN_AQ_NO_RESOURCE);
	const auto by_mask = [this](uint16_t mask) {
		return flow(*raw_, [=](auto &f) { f.mask.vlan_tci = mask; });
	};
	std::vector<uint32_t> masks;
	for (uint16_t i = 1; i < 64; i++)
		masks.push_back(add(by_mask(i)));
	EXPECT_EQ(driver_.status_of(by_mask(100)), TERN_AQ_NO_RESOURCE);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_FLOW, masks[7]), TERN_AQ_OK);
	add(by_mask(100));
}

/* What nobody asks for, whatever its MAC; flows and the host itself come first. */
TEST_F(SteeringTest, AllDefault)
{
	add(flow(*other_, [](auto &f) { f.type = TERN_FLOW_ALL_DEFAULT; }));
	add(flow(*raw_, [](auto &f) {
		f.priority = uint16_t{9};
		f.ip_version = 4;
		f.key.ip_proto = kTcp;
		f.mask.ip_proto = 0xff;
	}));
	EXPECT_TRUE(takes(*raw_, {.proto = kTcp}));
	EXPECT_TRUE(takes(*raw_, {.dmac = kOther, .proto = kTcp}));
	EXPECT_TRUE(takes(*eth_, {}));
	EXPECT_TRUE(takes(*eth_, {.dmac = kBroadcast}));
	EXPECT_TRUE(takes(*other_, {.dmac = kOther}));
	EXPECT_TRUE(takes(*other_, {.dmac = kMulticast}));
	EXPECT_EQ(stat(TERN_STAT_RX_FILTERED), 0u);
}

TEST_F(SteeringTest, MulticastDefault)
{
	add(flow(*raw_, [](auto &f) { f.type = TERN_FLOW_MC_DEFAULT; }));
	EXPECT_TRUE(takes(*raw_, {.dmac = kMulticast}));
	EXPECT_TRUE(takes(*eth_, {.dmac = kBroadcast}));
	EXPECT_TRUE(takes(*eth_, {}));
	EXPECT_TRUE(receivers(make({.dmac = kOther})).empty());
}

/* Frames that the host takes only because of its receive mode reach both. */
TEST_F(SteeringTest, DefaultFlowsAndReceiveMode)
{
	add(flow(*raw_, [](auto &f) { f.type = TERN_FLOW_MC_DEFAULT; }));
	const std::vector both{raw_->number, eth_->number};
	set_rx_mode(TERN_ETH_ALLMULTI);
	EXPECT_EQ(receivers(make({.dmac = kMulticast})), both);
	EXPECT_TRUE(takes(*eth_, {.dmac = kBroadcast}));
	EXPECT_EQ(stat(TERN_STAT_RX_FRAMES), 2u) << "however many copies";
	set_rx_mode(TERN_ETH_PROMISC);
	EXPECT_TRUE(takes(*eth_, {.dmac = kOther}));
	add(flow(*raw_, [](auto &f) { f.type = TERN_FLOW_ALL_DEFAULT; }));
	EXPECT_EQ(receivers(make({.dmac = kOther})), both);
	EXPECT_TRUE(takes(*eth_, {}));
}

/* Copies of everything, RoCE too; the others get theirs all the same. */
TEST_F(SteeringTest, Sniffer)
{
	add(flow(*raw_, [](auto &f) { f.type = TERN_FLOW_SNIFFER; }));
	EXPECT_EQ(receivers(make({})), (std::vector{raw_->number, eth_->number}));
	EXPECT_TRUE(takes(*raw_, {.dmac = kOther}));
	EXPECT_TRUE(takes(*raw_, {.dst_port = 4791}));
	EXPECT_EQ(stat(TERN_STAT_ROCE_RX_PACKETS), 1u);
}

/* The engine's packets are not to be had by a flow. */
TEST_F(SteeringTest, RoceIsTheEngines)
{
	add(flow(*raw_, [](auto &f) { f.type = TERN_FLOW_ALL_DEFAULT; }));
	EXPECT_TRUE(receivers(make({.dst_port = 4791})).empty());
	EXPECT_TRUE(takes(*raw_, {.dmac = kOther, .dst_port = 4791}));
}

/* Its flows count only while the QP receives. */
TEST_F(SteeringTest, QpThatDoesNotReceive)
{
	add(flow(*raw_));
	EXPECT_EQ(raw_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	cq_->drain();
	EXPECT_TRUE(takes(*eth_, {}));
}

TEST_F(SteeringTest, NoBuffer)
{
	add(flow(*raw_));
	EXPECT_EQ(raw_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	raw_->forget();
	for (const auto state : {TERN_QPS_INIT, TERN_QPS_RTR})
		EXPECT_EQ(raw_->set_state(state), TERN_AQ_OK);
	EXPECT_TRUE(receivers(make({})).empty());
	EXPECT_EQ(stat(TERN_STAT_RAW_RX_NO_BUFFER), 1u);
}

/* A receive WQE that breaks the rules completes with an error, and the QP goes on. */
TEST_F(SteeringTest, ImpossibleWqe)
{
	add(flow(*raw_));
	EXPECT_EQ(raw_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	raw_->forget();
	for (const auto state : {TERN_QPS_INIT, TERN_QPS_RTR})
		EXPECT_EQ(raw_->set_state(state), TERN_AQ_OK);
	raw_->post_recv(mr_->sge(0, 0x80000001));
	raw_->post_recv(mr_->sge(0, 2048));
	card_.receive(make({}));
	card_.receive(make({}));
	run();
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 2u);
	EXPECT_EQ(cqes[0].status, TERN_WC_LOC_QP_OP_ERR);
	EXPECT_EQ(cqes[1].status, TERN_WC_SUCCESS);
}

/* A frame to the card's own MAC comes back to whoever asked for it. */
TEST_F(SteeringTest, SendAndLoopback)
{
	add(flow(*other_));
	const Frame frame = make({});
	mr_->write(0, frame);
	raw_->post_send({.sges = {mr_->sge(0, 60)}});
	run();
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 2u);
	EXPECT_EQ(cqes[0].qpn.get(), raw_->number);
	EXPECT_EQ(cqes[1].qpn.get(), other_->number);
	EXPECT_EQ(mr_->read(0x10000, 60), frame);
	EXPECT_EQ(stat(TERN_STAT_RAW_TX_FRAMES), 1u);
	EXPECT_EQ(stat(TERN_STAT_ETH_TX_FRAMES), 0u);
}

/* Another QP of the card has claimed the destination: the frame stays here. */
TEST_F(SteeringTest, FlowsTakeWhatRawQpsSend)
{
	const uint32_t by_mac = add(flow(*other_, [](auto &f) {
		std::ranges::copy(kOther, f.key.dmac);
		std::ranges::fill(f.mask.dmac, 0xff);
	}));
	const Frame frame = make({.dmac = kOther});
	EXPECT_EQ(send(*raw_, frame), (std::vector{raw_->number, other_->number}));
	EXPECT_EQ(mr_->read(0x10000, 60), frame);
	EXPECT_TRUE(host_.wire.take().empty());
	/* Not what it sends itself, nor what the Ethernet function sends. */
	EXPECT_EQ(send(*other_, frame), std::vector{other_->number});
	EXPECT_EQ(host_.wire.take(), frame);
	EXPECT_EQ(send(*eth_, frame), std::vector{eth_->number});
	EXPECT_EQ(host_.wire.take(), frame);

	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_FLOW, by_mac), TERN_AQ_OK);
	add(flow(*other_, [](auto &f) {
		f.ip_version = 4;
		const uint8_t address[] = {10, 0, 0, 1};
		std::ranges::copy(address, f.key.dst_ip);
		std::fill_n(f.mask.dst_ip, 4, 0xff);
	}));
	EXPECT_EQ(send(*raw_, frame), (std::vector{raw_->number, other_->number}));
	EXPECT_TRUE(host_.wire.take().empty());
}

/* A flow for part of an address, or for other fields, does not say where the address is. */
TEST_F(SteeringTest, FlowsThatNameNoDestinationTakeNothingFromRawQps)
{
	add(flow(*other_, [](auto &f) {
		f.ip_version = 4;
		f.key.ip_proto = kUdp;
		f.mask.ip_proto = 0xff;
		f.key.dst_ip[0] = 10;
		std::fill_n(f.mask.dst_ip, 3, 0xff);
	}));
	add(flow(*other_, [](auto &f) { f.type = TERN_FLOW_ALL_DEFAULT; }));
	add(flow(*other_, [](auto &f) { f.type = TERN_FLOW_SNIFFER; }));
	const Frame frame = make({.dmac = kOther});
	EXPECT_EQ(send(*raw_, frame), std::vector{raw_->number});
	EXPECT_EQ(host_.wire.take(), frame);
}

/* Others on the wire want it, too. */
TEST_F(SteeringTest, MulticastGoesToTheWireAndToFlows)
{
	add(flow(*other_, [](auto &f) {
		std::ranges::copy(kMulticast, f.key.dmac);
		std::ranges::fill(f.mask.dmac, 0xff);
	}));
	const Frame frame = make({.dmac = kMulticast});
	EXPECT_EQ(send(*raw_, frame), (std::vector{raw_->number, other_->number}));
	EXPECT_EQ(host_.wire.take(), frame);
	/* Nobody gets back what it alone has claimed. */
	EXPECT_EQ(send(*other_, frame), std::vector{other_->number});
	EXPECT_EQ(host_.wire.take(), frame);
}

/* Two programs that have joined one multicast group hear each other, and, as with sockets,
 * themselves. */
TEST_F(SteeringTest, MulticastOfSeveralQps)
{
	for (const HostQp *qp : {raw_.get(), other_.get()})
		add(flow(*qp, [](auto &f) {
			std::ranges::copy(kMulticast, f.key.dmac);
			std::ranges::fill(f.mask.dmac, 0xff);
		}));
	const Frame frame = make({.dmac = kMulticast});
	EXPECT_EQ(receivers(frame), (std::vector{raw_->number, other_->number}));
	for (HostQp *qp : {raw_.get(), other_.get()}) {
		EXPECT_EQ(send(*qp, frame),
		          (std::vector{qp->number, raw_->number, other_->number}));
		EXPECT_EQ(host_.wire.take(), frame);
	}
}

/* A short frame is padded wherever it goes. */
TEST_F(SteeringTest, WhatFlowsTakeIsPadded)
{
	for (const Mac &dmac : {kOther, kMulticast})
		add(flow(*other_, [&](auto &f) {
			std::ranges::copy(dmac, f.key.dmac);
			std::ranges::fill(f.mask.dmac, 0xff);
		}));
	for (const Mac &dmac : {kOther, kMulticast}) {
		Frame frame = make({.dmac = dmac});
		frame.resize(20);
		EXPECT_EQ(send(*raw_, frame), (std::vector{raw_->number, other_->number}));
		frame.resize(60);
		EXPECT_EQ(mr_->read(0x10000, 60), frame);
	}
}

/* Posts in ERR are flushed, though nothing rings. */
TEST_F(SteeringTest, FlushesInError)
{
	EXPECT_EQ(raw_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	EXPECT_EQ(cq_->drain().size(), 4u);
	raw_->post_recv(mr_->sge(0x10000, 2048));
	pass(100'000'000);
	EXPECT_EQ(cq_->drain().size(), 1u);
}

TEST_F(SteeringTest, Attributes)
{
	EXPECT_EQ(raw_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	tern_hw_qp_attr attr{};
	attr.state = TERN_QPS_INIT;
	attr.port = 2;
	EXPECT_EQ(raw_->modify(TERN_QP_STATE | TERN_QP_PORT, attr), TERN_AQ_BAD_FIELD);
	attr.port = 1;
	EXPECT_EQ(raw_->modify(TERN_QP_STATE | TERN_QP_PORT | TERN_QP_QKEY, attr),
	          TERN_AQ_BAD_STATE);
	EXPECT_EQ(raw_->modify(TERN_QP_STATE | TERN_QP_PORT, attr), TERN_AQ_OK);
	EXPECT_EQ(raw_->set_state(TERN_QPS_INIT), TERN_AQ_OK) << "again";
	EXPECT_EQ(raw_->modify(TERN_QP_PORT, attr), TERN_AQ_OK) << "without a state";
	attr.state = TERN_QPS_RTR;
	EXPECT_EQ(raw_->modify(TERN_QP_STATE | TERN_QP_PORT, attr), TERN_AQ_BAD_STATE);
	EXPECT_EQ(raw_->modify(TERN_QP_STATE, attr), TERN_AQ_OK);
	EXPECT_EQ(raw_->set_state(TERN_QPS_RTR), TERN_AQ_BAD_STATE);
	EXPECT_EQ(raw_->set_state(TERN_QPS_RTS), TERN_AQ_OK);
	EXPECT_EQ(raw_->set_state(TERN_QPS_RTS), TERN_AQ_OK) << "again";
	EXPECT_EQ(raw_->set_state(TERN_QPS_INIT), TERN_AQ_BAD_STATE);
}

/* What a QP of type RAW or ETH refuses has the same status as with other types. */
TEST_F(SteeringTest, RefusedModify)
{
	tern_hw_qp_attr attr{};
	attr.state = TERN_QPS_RTS;
	attr.cur_state = TERN_QPS_RTS;
	for (HostQp *qp : {eth_.get(), raw_.get()}) {
		for (const auto state : {TERN_QPS_SQD, TERN_QPS_SQE})
			EXPECT_EQ(qp->set_state(state), TERN_AQ_BAD_STATE);
		EXPECT_EQ(qp->modify(TERN_QP_STATE | 1u << 30, attr), TERN_AQ_BAD_STATE);
		EXPECT_EQ(qp->modify(TERN_QP_STATE | TERN_QP_CUR_STATE, attr), TERN_AQ_BAD_STATE);
		EXPECT_EQ(qp->set_state(TERN_QPS_ERR, TERN_QP_PORT), TERN_AQ_BAD_STATE);
		EXPECT_EQ(qp->query().state, TERN_QPS_RTS);
	}
	EXPECT_EQ(eth_->modify(TERN_QP_RATE_LIMIT, attr), TERN_AQ_BAD_STATE);
	attr.rate_limit.rate = uint64_t{TERN_MAX_RATE_LIMIT} + 1;
	EXPECT_EQ(raw_->modify(TERN_QP_RATE_LIMIT, attr), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(eth_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	attr.state = TERN_QPS_INIT;
	attr.port = 1;
	EXPECT_EQ(eth_->modify(TERN_QP_STATE | TERN_QP_PORT, attr), TERN_AQ_BAD_STATE);
}

TEST_F(SteeringTest, BadFlows)
{
	const auto bad = [&](auto change) { return driver_.status_of(flow(*raw_, change)); };
	EXPECT_EQ(bad([](auto &f) { f.type = 4; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad([](auto &f) { f.ip_version = 4; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad([](auto &f) { f.mask.tos = 1; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad([](auto &f) {
		          f.mask.tos = 1;
		          f.ip_version = 5;
	          }),
	          TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad([](auto &f) {
		          f.ip_version = 4;
		          f.mask.src_ip[4] = 1;
	          }),
	          TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad([](auto &f) { f.key.dmac[0] = 1; }), TERN_AQ_BAD_FIELD); /* no mask */
	EXPECT_EQ(bad([](auto &f) {
		          f.type = TERN_FLOW_SNIFFER;
		          f.mask.dmac[0] = 1;
	          }),
	          TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad([](auto &f) { f.qpn = 99u; }), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(driver_.status_of(flow(*eth_)), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(bad([](auto &) {}), TERN_AQ_OK);
}

TEST_F(SteeringTest, QpIsBusyWhileAFlowNamesIt)
{
	const uint32_t number = add(flow(*raw_));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, raw_->number), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_FLOW, number), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, raw_->number), TERN_AQ_OK);
}

TEST_F(SteeringTest, NumberIsBounded)
{
	const auto device = driver_.command(make_command(TERN_AQ_QUERY_DEVICE)).device;
	const auto by_type = [this](uint32_t type) {
		return driver_.status_of(flow(*raw_, [=](auto &f) {
			f.mask.ethertype = uint16_t{0xffff};
			f.key.ethertype = static_cast<uint16_t>(type);
		}));
	};
	for (uint32_t i = 0; i < device.max_flows.get(); i++)
		ASSERT_EQ(by_type(i), TERN_AQ_OK);
	EXPECT_EQ(by_type(device.max_flows.get()), TERN_AQ_NO_RESOURCE);
}

/* ---- counters ---- */

class FlowCountersTest : public SteeringTest {
protected:
	uint32_t make_counters()
	{
		const auto result = driver_.command(make_command(TERN_AQ_CREATE_COUNTERS));
		EXPECT_EQ(result.status, TERN_AQ_OK);
		return result.created.id.get();
	}
	std::pair<uint64_t, uint64_t> counted(uint32_t id)
	{
		auto c = make_command(TERN_AQ_READ_COUNTERS);
		c.object.id = id;
		const auto result = driver_.command(c);
		EXPECT_EQ(result.status, TERN_AQ_OK);
		return {result.counters.packets.get(), result.counters.bytes.get()};
	}
	using Counted = std::pair<uint64_t, uint64_t>;
	static tern_hw_aq_cmd to_port(const HostQp &qp, uint16_t port, uint32_t counters)
	{
		return flow(qp, [&](auto &f) {
			f.ip_version = 4;
			f.key.dst_port = port;
			f.mask.dst_port = 0xffff;
			f.counters = counters;
		});
	}
};

TEST_F(FlowCountersTest, CountWhatTheFlowTakes)
{
	const uint32_t ours = make_counters(), others = make_counters();
	ASSERT_NE(ours, others);
	add(to_port(*raw_, 2000, ours));
	add(to_port(*other_, 3000, others));
	const auto frame = make({});
	receivers(frame);
	receivers(frame);
	receivers(make({.dst_port = 3000}));
	receivers(make({.dst_port = 4000}));
	EXPECT_EQ(counted(ours), Counted(2, 2 * frame.size()));
	EXPECT_EQ(counted(others), Counted(1, frame.size()));
}

TEST_F(FlowCountersTest, SeveralFlowsAddUp)
{
	const uint32_t counters = make_counters();
	add(to_port(*raw_, 2000, counters));
	const uint32_t second = add(to_port(*other_, 3000, counters));
	const auto frame = make({});
	receivers(frame);
	receivers(make({.dst_port = 3000}));
	EXPECT_EQ(counted(counters), Counted(2, 2 * frame.size()));
	/* A flow that is gone takes nothing back. */
	ASSERT_EQ(driver_.destroy(TERN_AQ_DESTROY_FLOW, second), TERN_AQ_OK);
	receivers(make({.dst_port = 3000}));
	EXPECT_EQ(counted(counters), Counted(2, 2 * frame.size()));
}

/* Whether a receive WQE was there makes no difference, whether the QP receives does. */
TEST_F(FlowCountersTest, CountWithoutRoomButNotForAQpThatDoesNotReceive)
{
	const uint32_t counters = make_counters(), sniffed = make_counters();
	add(to_port(*raw_, 2000, counters));
	add(flow(*other_, [&](auto &f) {
		f.type = TERN_FLOW_SNIFFER;
		f.counters = sniffed;
	}));
	const auto frame = make({});
	for (int i = 0; i < 7; i++)
		card_.receive(frame);
	run();
	EXPECT_GT(stat(TERN_STAT_RAW_RX_NO_BUFFER), 0u);
	EXPECT_EQ(counted(counters).first, 7u);
	EXPECT_EQ(counted(sniffed).first, 7u);
	for (auto *qp : {raw_.get(), other_.get()})
		ASSERT_EQ(qp->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	card_.receive(frame);
	run();
	EXPECT_EQ(counted(counters).first, 7u);
	EXPECT_EQ(counted(sniffed).first, 7u);
}

TEST_F(FlowCountersTest, EqualFlowsCountEach)
{
	const uint32_t first = make_counters(), second = make_counters();
	add(to_port(*raw_, 2000, first));
	add(to_port(*other_, 2000, second));
	const auto frame = make({});
	receivers(frame);
	EXPECT_EQ(counted(first), Counted(1, frame.size()));
	EXPECT_EQ(counted(second), Counted(1, frame.size()));
}

TEST_F(FlowCountersTest, DefaultFlowsCountToo)
{
	const uint32_t counters = make_counters();
	add(flow(*raw_, [&](auto &f) {
		f.type = TERN_FLOW_ALL_DEFAULT;
		f.counters = counters;
	}));
	const auto frame = make({.dmac = kOther});
	receivers(frame);
	EXPECT_EQ(counted(counters), Counted(1, frame.size()));
}

TEST_F(FlowCountersTest, LiveAsLongAsAFlowNamesThem)
{
	const uint32_t counters = make_counters();
	const uint32_t id = add(to_port(*raw_, 2000, counters));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_COUNTERS, counters), TERN_AQ_BUSY);
	ASSERT_EQ(driver_.destroy(TERN_AQ_DESTROY_FLOW, id), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_COUNTERS, counters), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_COUNTERS, counters), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(driver_.destroy(TERN_AQ_READ_COUNTERS, counters), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(driver_.status_of(to_port(*raw_, 2000, counters)), TERN_AQ_BAD_OBJECT);
	auto reserved = make_command(TERN_AQ_READ_COUNTERS);
	reserved.object.rsvd = 1;
	EXPECT_EQ(driver_.status_of(reserved), TERN_AQ_BAD_FIELD);
}

TEST_F(FlowCountersTest, ThereAreNotEndlesslyMany)
{
	const uint32_t most =
	        driver_.command(make_command(TERN_AQ_QUERY_DEVICE)).device.max_counters.get();
	ASSERT_GT(most, 0u);
	for (uint32_t i = 0; i < most; i++)
		make_counters();
	EXPECT_EQ(driver_.status_of(make_command(TERN_AQ_CREATE_COUNTERS)), TERN_AQ_NO_RESOURCE);
}

} // namespace
} // namespace tern::test
