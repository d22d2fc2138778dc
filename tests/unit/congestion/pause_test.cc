// SPDX-License-Identifier: GPL-2.0-or-later
/* Priority-based flow control: frames of a paused priority wait, all others go. */
#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/pause.h"
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kMbps = 1000; /* a quantum takes 512 ns */
constexpr uint64_t kQuantum = 512;
constexpr uint16_t kVlan = 7;

/** A pause frame that gives @quanta to each priority in @mask. */
std::vector<std::byte> pause_frame(uint8_t mask, uint16_t quanta)
{
	std::vector<std::byte> f(60);
	constexpr std::array<uint8_t, 18> kHead{1, 0x80, 0xc2, 0,    0,    1, 2, 0, 0,
	                                        0, 0,    9,    0x88, 0x08, 1, 1, 0, 0};
	std::ranges::transform(kHead, f.begin(), [](uint8_t b) { return std::byte{b}; });
	f[17] = std::byte{mask};
	for (size_t i = 0; i < kPriorities; i++) {
		f[18 + 2 * i] = static_cast<std::byte>(quanta >> 8);
		f[19 + 2 * i] = static_cast<std::byte>(quanta);
	}
	return f;
}

TEST(PauseFrame, TellsOfEachPriority)
{
	auto f = pause_frame(0x82, 0x1234);
	const auto times = parse_pause(f);
	ASSERT_TRUE(times);
	for (unsigned i = 0; i < kPriorities; i++)
		EXPECT_EQ((*times)[i].value_or(0), i == 1 || i == 7 ? 0x1234 : 0) << i;
	/* Another address, ethertype or opcode, or too short. */
	for (const size_t at : {0u, 5u, 12u, 13u, 14u, 15u}) {
		auto other = f;
		other[at] ^= std::byte{2};
		EXPECT_FALSE(parse_pause(other)) << at;
	}
	EXPECT_TRUE(parse_pause(std::span(f).first(34)));
	EXPECT_FALSE(parse_pause(std::span(f).first(33)));
}

class Pause : public OneCard {
protected:
	Pause() : OneCard({.mac = kCardMac, .link_speed_mbps = kMbps}) {}

	void SetUp() override
	{
		set_up_card();
		set({.pfc_enable = 0xff});
	}
	void set(const CongestionParameters &p) { ASSERT_TRUE(card_.set_congestion(p)); }
	/** Connects a QP whose frames have a VLAN tag with priority @sl. */
	std::unique_ptr<HostQp> connect(uint8_t sl, uint8_t traffic_class = 0)
	{
		driver_.set_gid(0, TERN_GID_ROCE_V2, kCardGid, kVlan);
		auto qp = make_qp();
		Connection c = connection();
		c.sl = sl;
		c.traffic_class = traffic_class;
		qp->connect(c);
		return qp;
	}
	void post(HostQp &qp)
	{
		qp.post_send({.opcode = TERN_OP_WRITE,
		              .remote_addr = 0x1000,
		              .rkey = 0x55,
		              .sges = {mr_->sge(0, 64)}});
		run();
	}
	void pause(uint8_t mask, uint16_t quanta)
	{
		card_.receive(pause_frame(mask, quanta));
		run();
	}
	/** A WRITE of the peer to qp_, which a switch has marked. */
	void receive_marked(uint32_t n)
	{
		TestPacket p{.opcode = Opcode::RcWriteOnly,
		             .psn = psn_after(kRqPsn, n),
		             .payload = content(0, 64)};
		p.ext.reth = {mr_->va, mr_->key, 64};
		AddressVector av = path();
		av.traffic_class = kEcnCe;
		av.vlan = kVlan;
		give(p, av);
	}
	size_t frames()
	{
		size_t n = 0;
		while (!host_.wire.take().empty())
			n++;
		return n;
	}
};

TEST_F(Pause, APausedPriorityWaitsForItsTime)
{
	auto qp = connect(3);
	pause(1 << 3, 100);
	post(*qp);
	pass(100 * kQuantum - 1);
	EXPECT_EQ(frames(), 0u);
	pass(1);
	EXPECT_EQ(frames(), 1u);
	EXPECT_EQ(stat(TERN_STAT_RX_PRIO3_PAUSE), 1u);
}

TEST_F(Pause, TheCardNamesItAsTheReason)
{
	auto qp = connect(3);
	pause(1 << 3, 100);
	post(*qp);
	const auto waits_for = [&](const std::string &what) {
		return card_.describe(qp->number).find("\"waits_for\":\"" + what + "\"") !=
		       std::string::npos;
	};
	EXPECT_TRUE(waits_for("pause"));
	pass(100 * kQuantum);
	EXPECT_TRUE(waits_for("acknowledgement"));
}

TEST_F(Pause, OthersGoOn)
{
	auto paused = connect(3), other = connect(4);
	pause(1 << 3, 1000);
	post(*paused);
	EXPECT_EQ(frames(), 0u);
	post(*other);
	EXPECT_EQ(frames(), 1u);
}

TEST_F(Pause, ZeroEndsIt)
{
	auto qp = connect(3);
	pause(1 << 3, 1000);
	post(*qp);
	EXPECT_EQ(frames(), 0u);
	pause(1 << 3, 0);
	EXPECT_EQ(frames(), 1u);
	EXPECT_EQ(stat(TERN_STAT_RX_PRIO3_PAUSE), 2u);
}

TEST_F(Pause, TheLastFrameCounts)
{
	auto qp = connect(3);
	pause(1 << 3, 1000);
	post(*qp);
	pause(1 << 3, 10);
	pass(10 * kQuantum);
	EXPECT_EQ(frames(), 1u);
}

TEST_F(Pause, OnlyWhatIsEnabled)
{
	set({.pfc_enable = 1 << 4});
	auto qp = connect(3);
	pause(1 << 3, 1000);
	post(*qp);
	EXPECT_EQ(frames(), 1u);
	EXPECT_EQ(stat(TERN_STAT_RX_PRIO3_PAUSE), 0u);
	/* What is no longer enabled is not paused any more. */
	auto four = connect(4);
	pause(1 << 4, 1000);
	post(*four);
	EXPECT_EQ(frames(), 0u);
	set({});
	run();
	EXPECT_EQ(frames(), 1u);
}

TEST_F(Pause, PriorityByDscp)
{
	set({.pfc_enable = 0xff, .pfc_trust_dscp = 1});
	auto qp = connect(3, 5 << 5);
	pause(1 << 3, 1000);
	post(*qp);
	EXPECT_EQ(frames(), 1u);
	pause(1 << 5, 1000);
	post(*qp);
	EXPECT_EQ(frames(), 0u);
}

/* The frame that waits is the QP's, and a CNP has another priority. */
TEST_F(Pause, ACnpPassesDataThatWaits)
{
	set({.np_min_time_between_cnps = 0, .np_cnp_prio = 6, .pfc_enable = 0xff});
	qp_ = connect(3);
	pause(1 << 3, 1000);
	post(*qp_);
	EXPECT_EQ(frames(), 0u);
	for (uint32_t n = 0; n < 2; n++) {
		receive_marked(n);
		const auto frame = host_.wire.take();
		const auto parsed = parse(frame);
		ASSERT_TRUE(std::holds_alternative<Packet>(parsed));
		EXPECT_EQ(std::get<Packet>(parsed).bth.opcode, kCnpOpcode);
		EXPECT_EQ(frames(), 0u);
	}
	pause(1 << 3, 0);
	EXPECT_EQ(frames(), 1u);
}

TEST_F(Pause, ACnpWaitsForItsOwnPriority)
{
	set({.np_cnp_prio_mode = 1, .pfc_enable = 0xff});
	qp_ = connect(3);
	pause(1 << 3, 1000);
	receive_marked(0);
	EXPECT_EQ(frames(), 0u);
	EXPECT_EQ(stat(TERN_STAT_NP_CNP_SENT), 0u);
	pause(1 << 3, 0);
	EXPECT_EQ(frames(), 1u);
	EXPECT_EQ(stat(TERN_STAT_NP_CNP_SENT), 1u);
}

TEST_F(Pause, DataPassesACnpThatWaits)
{
	set({.np_cnp_prio = 6, .pfc_enable = 0xff});
	qp_ = connect(3);
	pause(1 << 6, 1000);
	receive_marked(0);
	EXPECT_EQ(frames(), 0u);
	for (int n = 0; n < 2; n++) {
		post(*qp_);
		EXPECT_EQ(frames(), 1u);
	}
	EXPECT_EQ(stat(TERN_STAT_NP_CNP_SENT), 0u);
	pause(1 << 6, 0);
	EXPECT_EQ(frames(), 1u);
	EXPECT_EQ(stat(TERN_STAT_NP_CNP_SENT), 1u);
}

TEST_F(Pause, LentPayloadWaitsToo)
{
	host_.wire.borrows = host_.wire.takes_bare = host_.wire.takes_bursts = true;
	auto qp = connect(3);
	pause(1 << 3, 100);
	qp->post_send({.opcode = TERN_OP_WRITE,
	               .remote_addr = 0x1000,
	               .rkey = 0x55,
	               .sges = {mr_->sge(0, 4096)}});
	run();
	EXPECT_TRUE(host_.wire.loans().empty());
	pass(100 * kQuantum);
	EXPECT_FALSE(host_.wire.loans().empty());
}

TEST_F(Pause, TheHostDoesNotSeeThem)
{
	set({});
	const uint64_t before = stat(TERN_STAT_RX_FILTERED);
	pause(0xff, 1000);
	EXPECT_EQ(stat(TERN_STAT_RX_FILTERED), before);
	EXPECT_EQ(stat(TERN_STAT_RX_PRIO0_PAUSE), 0u);
}

} // namespace
} // namespace tern::test
