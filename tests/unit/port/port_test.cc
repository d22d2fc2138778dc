// SPDX-License-Identifier: GPL-2.0-or-later
/* The Ethernet function, loopback, the wire that refuses, and turns. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;
using Frame = std::vector<std::byte>;

class PortTest : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.type = TERN_QPT_ETH;
		eth_ = driver_.create_qp(options);
		for (const auto state : {TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS})
			EXPECT_EQ(eth_->set_state(state), TERN_AQ_OK);
	}
	static Frame frame(const Mac &to, size_t size)
	{
		Frame f(size);
		for (size_t i = 0; i < size; i++)
			f[i] = static_cast<std::byte>(i * 5);
		std::memcpy(f.data(), to.data(), 6);
		std::memcpy(f.data() + 6, kPeerMac.data(), 6);
		f[12] = std::byte{0x88};
		f[13] = std::byte{0xb5};
		return f;
	}
	void send(const Frame &f, uint8_t flags = TERN_WQE_SIGNALED)
	{
		mr_->write(0, f);
		eth_->post_send(
		        {.flags = flags, .sges = {mr_->sge(0, static_cast<uint32_t>(f.size()))}});
		run();
	}
	void set_eth(uint32_t mask, uint16_t mtu, uint32_t rx_mode)
	{
		auto c = make_command(TERN_AQ_SET_ETH);
		c.set_eth.mask = mask;
		c.set_eth.mtu = mtu;
		c.set_eth.rx_mode = rx_mode;
		EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	}
	/** Whether the card hands a frame to @to on to the host. */
	bool takes(const Mac &to)
	{
		eth_->post_recv(mr_->sge(0x10000, 2048));
		card_.receive(frame(to, 64));
		run();
		return cq_->drain().size() == 1;
	}
	static constexpr Mac kBroadcast{255, 255, 255, 255, 255, 255};
	static constexpr Mac kMulticast{1, 0, 0x5e, 0, 0, 1};
	static constexpr Mac kOther{2, 9, 9, 9, 9, 9};

	std::unique_ptr<HostQp> eth_;
};

TEST_F(PortTest, Sends)
{
	const Frame f = frame(kPeerMac, 1514);
	send(f);
	EXPECT_EQ(host_.wire.take(), f);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].status, TERN_WC_SUCCESS);
	send(f, 0);
	EXPECT_TRUE(cq_->drain().empty());
	EXPECT_EQ(stat(TERN_STAT_ETH_TX_FRAMES), 2u);
}

/* Short frames leave with zeros up to 60 bytes, not with what the buffer held before. */
TEST_F(PortTest, Pads)
{
	send(frame(kPeerMac, 1000));
	host_.wire.clear();
	Frame f = frame(kPeerMac, 20);
	send(f);
	f.resize(60);
	EXPECT_EQ(host_.wire.take(), f);
}

/* MTU 1500: header, tag and 1500 bytes; one more is an error. */
TEST_F(PortTest, MtuLimitsSends)
{
	send(frame(kPeerMac, 1518));
	EXPECT_EQ(cq_->drain()[0].status, TERN_WC_SUCCESS);
	set_eth(TERN_ETH_MTU, 9000, 0);
	send(frame(kPeerMac, 9018));
	EXPECT_EQ(cq_->drain()[0].status, TERN_WC_SUCCESS);
	send(frame(kPeerMac, 9019));
	EXPECT_EQ(cq_->drain()[0].status, TERN_WC_LOC_LEN_ERR);
	EXPECT_EQ(eth_->query().state, TERN_QPS_ERR);
	EXPECT_EQ(stat(TERN_STAT_ETH_TX_ERRORS), 1u);
}

/* As with RC and UD: where the WQE after one of unknown size begins is not known. */
TEST_F(PortTest, SendWqeOfUnknownSize)
{
	for (const int segs : {0, 65, 64}) {
		/* Five segments: the second block, with the last of them, looks like a WQE. */
		SendRequest request;
		request.sges.assign(3, mr_->sge(0, 64));
		request.sges.push_back(mr_->sge(0x10000, 64));
		auto blocks = encode(request);
		blocks[offsetof(tern_hw_ctrl_seg, segs)] = static_cast<std::byte>(segs);
		const uint32_t bad = eth_->post_blocks(blocks, false);
		eth_->post_send({.sges = {mr_->sge(0, 64)}});
		run();
		const auto cqes = cq_->drain();
		ASSERT_EQ(cqes.size(), 1u);
		EXPECT_EQ(cqes[0].wqe_index.get(), bad);
		EXPECT_EQ(cqes[0].status, TERN_WC_LOC_QP_OP_ERR);
		const uint32_t later = eth_->post_send({.sges = {mr_->sge(0, 64)}});
		run();
		const auto flushed = cq_->drain();
		ASSERT_EQ(flushed.size(), 1u);
		EXPECT_EQ(flushed[0].wqe_index.get(), later);
		EXPECT_EQ(flushed[0].status, TERN_WC_WR_FLUSH_ERR);
		EXPECT_TRUE(host_.wire.frames().empty());

		EXPECT_EQ(eth_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
		eth_->forget();
		for (const auto state : {TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS})
			EXPECT_EQ(eth_->set_state(state), TERN_AQ_OK);
	}
}

TEST_F(PortTest, Receives)
{
	eth_->post_recv(mr_->sge(0x10000, 2048));
	const Frame f = frame(kCardMac, 777);
	card_.receive(f);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].byte_len.get(), 777u);
	EXPECT_EQ(mr_->read(0x10000, 777), f);
	/* no buffer: dropped and counted */
	card_.receive(f);
	EXPECT_EQ(stat(TERN_STAT_ETH_RX_NO_BUFFER), 1u);
}

TEST_F(PortTest, NotReadyToReceive)
{
	eth_->post_recv(mr_->sge(0x10000, 2048));
	for (const auto state : {TERN_QPS_ERR, TERN_QPS_RESET, TERN_QPS_INIT}) {
		const uint64_t before = stat(TERN_STAT_ETH_RX_NO_BUFFER);
		EXPECT_EQ(eth_->set_state(state), TERN_AQ_OK);
		card_.receive(frame(kCardMac, 64));
		EXPECT_EQ(stat(TERN_STAT_ETH_RX_NO_BUFFER), before + 1);
	}
	EXPECT_EQ(stat(TERN_STAT_ETH_RX_FRAMES), 0u);
}

TEST_F(PortTest, ReceiveBufferTooSmall)
{
	eth_->post_recv(mr_->sge(0x10000, 100));
	card_.receive(frame(kCardMac, 101));
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].status, TERN_WC_LOC_LEN_ERR);
	EXPECT_EQ(eth_->query().state, TERN_QPS_RTS);
}

TEST_F(PortTest, Filters)
{
	EXPECT_TRUE(takes(kCardMac));
	EXPECT_TRUE(takes(kBroadcast));
	EXPECT_FALSE(takes(kMulticast));
	EXPECT_FALSE(takes(kOther));
	set_eth(TERN_ETH_RX_MODE, 0, TERN_ETH_ALLMULTI);
	EXPECT_TRUE(takes(kMulticast));
	EXPECT_FALSE(takes(kOther));
	set_eth(TERN_ETH_RX_MODE, 0, TERN_ETH_PROMISC);
	EXPECT_TRUE(takes(kMulticast));
	EXPECT_TRUE(takes(kOther));
}

TEST_F(PortTest, ImpossibleFrames)
{
	eth_->post_recv(mr_->sge(0x10000, 0x10000));
	card_.receive(Frame(13));
	card_.receive(Frame(9019));
	card_.receive({});
	EXPECT_EQ(stat(TERN_STAT_RX_MALFORMED), 3u);
	EXPECT_TRUE(cq_->drain().empty());
}

/* To its own MAC: never on the wire. */
TEST_F(PortTest, Loopback)
{
	eth_->post_recv(mr_->sge(0x10000, 2048));
	const Frame f = frame(kCardMac, 500);
	send(f);
	EXPECT_TRUE(host_.wire.frames().empty());
	EXPECT_EQ(mr_->read(0x10000, 500), f);
	EXPECT_EQ(cq_->drain().size(), 2u);
}

/* The wire refuses: the frame is kept, nothing is lost or sent twice, order is kept. */
TEST_F(PortTest, Backpressure)
{
	host_.wire.accept_only(1);
	for (uint8_t i = 0; i < 4; i++) {
		Frame f = frame(kPeerMac, 60);
		f[20] = std::byte{i};
		mr_->write(i * 64u, f);
		eth_->post_send({.sges = {mr_->sge(i * 64u, 60)}});
	}
	run();
	EXPECT_EQ(host_.wire.frames().size(), 1u);
	EXPECT_FALSE(card_.run(10));
	for (int i = 0; i < 4; i++) {
		host_.wire.accept_only(1);
		card_.wire_ready();
		run();
	}
	ASSERT_EQ(host_.wire.frames().size(), 4u);
	for (uint8_t i = 0; i < 4; i++)
		EXPECT_EQ(host_.wire.take()[20], std::byte{i});
}

/* A long message of one QP does not keep another's short one waiting. */
TEST_F(PortTest, Turns)
{
	auto c = connection();
	auto longer = make_qp();
	auto shorter = make_qp();
	longer->connect(c);
	shorter->connect(c);
	longer->post_send({.opcode = TERN_OP_WRITE,
	                   .remote_addr = 0,
	                   .rkey = 1,
	                   .sges = {mr_->sge(0, 0x10000)}});
	shorter->post_send({.opcode = TERN_OP_SEND, .sges = {mr_->sge(0, 1)}});
	run();
	const auto p = all_sent();
	const auto at = std::ranges::find(p, Opcode::RcSendOnly, &TestPacket::opcode) - p.begin();
	EXPECT_LE(at, 16);
	EXPECT_EQ(p.size(), 257u);
}

/* A QP that a peer reads from without end sends its own messages all the same. */
TEST_F(PortTest, ReadersDoNotStarveTheRequester)
{
	qp_ = make_qp();
	qp_->connect(connection());
	TestPacket read{.opcode = Opcode::RcReadRequest, .psn = kRqPsn, .ack_request = true};
	read.ext.reth = {mr_->va, mr_->key, 0x20000};
	give(read, path(), false);
	qp_->post_send({.opcode = TERN_OP_SEND, .sges = {mr_->sge(0, 1)}});
	run();
	const auto p = all_sent();
	const auto at = std::ranges::find(p, Opcode::RcSendOnly, &TestPacket::opcode) - p.begin();
	EXPECT_LE(at, 16);
	EXPECT_EQ(p.size(), 0x20000u / 256 + 1);
}

/* What is RoCE does not reach the Ethernet rings, also when no QP wants it. */
TEST_F(PortTest, RoceIsNotEthernet)
{
	eth_->post_recv(mr_->sge(0x10000, 2048));
	give({.opcode = Opcode::RcSendOnly, .qpn = 0x777});
	EXPECT_TRUE(cq_->drain().empty());
	EXPECT_EQ(stat(TERN_STAT_RX_NO_QP), 1u);
}

} // namespace
} // namespace tern::test
