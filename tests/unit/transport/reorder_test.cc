// SPDX-License-Identifier: GPL-2.0-or-later
/* Two cards, and a wire on which packets overtake one another. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kMtu = 256;
constexpr uint32_t kPackets = 8;
constexpr uint32_t kFirstPsn = 0xfffffd; /* over the wrap */
constexpr uint32_t kLate = 2;            /* the packet that others overtake */

/** One end of the connection. */
struct Side {
	Side(const Mac &mac, const Gid &gid)
	        : mac(mac), gid(gid), card({.mac = mac}, host.ports()),
	          driver(card, host.memory, [this] { run(); })
	{
		card.set_link(true);
		driver.enable();
		auto eq = driver.create_eq(0);
		driver.set_gid(0, TERN_GID_ROCE_V2, gid);
		const uint32_t pd = driver.alloc_pd();
		cq = driver.create_cq(eq, 6);
		mr.emplace(driver.create_mr(pd, 0x10000, 0x4000, kAllAccess, {2, 12}));
		qp = driver.create_qp({.pd = pd, .send_cqn = cq->number, .recv_cqn = cq->number});
	}
	void connect(const Side &peer)
	{
		Connection c;
		c.dest_qpn = peer.qp->number;
		c.dgid = peer.gid;
		c.dmac = peer.mac;
		c.mtu = 1; /* 256 */
		c.rq_psn = c.sq_psn = kFirstPsn;
		qp->connect(c);
	}
	void run()
	{
		while (card.run(64)) {
		}
	}
	/** What it has sent since the last call. */
	std::vector<std::vector<std::byte>> sent()
	{
		std::vector<std::vector<std::byte>> frames;
		for (auto frame = host.wire.take(); !frame.empty(); frame = host.wire.take())
			frames.push_back(std::move(frame));
		return frames;
	}
	void receive(const std::vector<std::vector<std::byte>> &frames)
	{
		for (const auto &frame : frames)
			card.receive(frame);
		run();
	}

	const Mac mac;
	const Gid gid;
	FakeHost host;
	Rnic card;
	Driver driver;
	std::unique_ptr<HostCq> cq;
	std::optional<HostMr> mr;
	std::unique_ptr<HostQp> qp;
};

class ReorderedByN : public ::testing::TestWithParam<uint32_t> {};

/* The responder drops packets that come too early. It sends a NAK for the first of them, and
 * another NAK after the late packet, because the next packet is missing then. The requester does
 * not wait for a timer. */
TEST_P(ReorderedByN, IsSentAgain)
{
	Side from(kCardMac, kCardGid), to(kPeerMac, kPeerGid);
	from.connect(to);
	to.connect(from);
	std::vector<std::byte> data(kPackets * kMtu);
	for (size_t i = 0; i < data.size(); i++)
		data[i] = static_cast<std::byte>(i * 31 + i / 256);
	from.mr->write(0, data);
	from.qp->post_send({.opcode = TERN_OP_WRITE,
	                    .remote_addr = to.mr->va + 3,
	                    .rkey = to.mr->key,
	                    .sges = {from.mr->sge(0, static_cast<uint32_t>(data.size()))}});
	from.run();

	auto frames = from.sent();
	ASSERT_EQ(frames.size(), kPackets);
	const auto late = frames.begin() + kLate;
	std::rotate(late, late + 1, late + 1 + GetParam());
	std::vector<uint32_t> naks;
	for (; !frames.empty(); frames = from.sent()) {
		to.receive(frames);
		const auto answers = to.sent();
		for (const auto &answer : answers) {
			const auto parsed = parse(answer);
			ASSERT_TRUE(std::holds_alternative<Packet>(parsed));
			const auto &packet = std::get<Packet>(parsed);
			if (packet.ext.aeth.syndrome == nak_syndrome(NakCode::PsnSequenceError))
				naks.push_back(packet.bth.psn.value());
		}
		from.receive(answers);
	}

	std::vector<uint32_t> expected{psn_after(kFirstPsn, kLate)};
	if (kLate + GetParam() < kPackets - 1)
		expected.push_back(psn_after(kFirstPsn, kLate + 1));
	EXPECT_EQ(naks, expected);
	EXPECT_EQ(from.driver.stat(TERN_STAT_REQ_RX_SEQ_NAK), expected.size());
	EXPECT_EQ(from.driver.stat(TERN_STAT_REQ_TIMEOUTS), 0u);
	const auto done = from.cq->drain();
	ASSERT_EQ(done.size(), 1u);
	EXPECT_EQ(done[0].status, TERN_WC_SUCCESS);
	EXPECT_EQ(to.mr->read(3, data.size()), data);
	EXPECT_EQ(to.qp->query().state, TERN_QPS_RTS);
}

INSTANTIATE_TEST_SUITE_P(Packets, ReorderedByN, ::testing::Values(1u, 2u, 4u, 5u));

} // namespace
} // namespace tern::test
