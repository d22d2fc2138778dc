// SPDX-License-Identifier: GPL-2.0-or-later
/* A QP with nothing but a data path: no card, no driver, no admin command. */
#include <gtest/gtest.h>

#include "qemu/rnic/transport/rc_qp.h"
#include "tests/support/fake_host.h"
#include "tests/support/host.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr Gid kOurs{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}};
constexpr Gid kTheirs{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2}};
constexpr uint32_t kPsn = 100;
constexpr uint32_t kQpn = 7;
constexpr uint8_t kLogCq = 3;

class DataPathTest : public ::testing::Test {
protected:
	DataPathTest()
	        : data_({}, host_.ports()), ring_(host_.memory, 4096, 1),
	          cqes_(host_.memory, 4096, 1)
	{
		data_.gids.set(0, {TERN_GID_ROCE_V2, kNoVlan, kOurs});
		const CompletionQueue::Place place{*PageList::make(cqes_.pages(), 0, 4096),
		                                   host_.memory.alloc(64), kLogCq};
		const auto cqn = data_.cqs.insert(std::make_unique<CompletionQueue>(place, 0, 0));
		const QpConfig config{.type = TERN_QPT_RC,
		                      .send_cqn = *cqn,
		                      .recv_cqn = *cqn,
		                      .signal_all = true};
		const SendQueue sq(*PageList::make(ring_.pages(), 0, 4096), 2,
		                   host_.memory.alloc(64), TERN_QPT_RC);
		qp_ = std::make_unique<RcQp>(data_, config, sq, RecvQueue());
		qp_->number = kQpn;
		connect();
	}
	void connect()
	{
		tern_hw_qp_attr attr{};
		attr.path_mtu = 1;
		attr.port = 1;
		attr.sq_psn = kPsn;
		attr.dest_qpn = 9u;
		attr.retry_cnt = 7;
		std::ranges::copy(kTheirs.bytes, attr.dgid);
		attr.dmac[0] = 2; /* not that of the card */
		modify(TERN_QPS_INIT, attr,
		       TERN_QP_PKEY_INDEX | TERN_QP_PORT | TERN_QP_ACCESS_FLAGS);
		modify(TERN_QPS_RTR, attr,
		       TERN_QP_AV | TERN_QP_PATH_MTU | TERN_QP_DEST_QPN | TERN_QP_RQ_PSN |
		               TERN_QP_MAX_DEST_RD_ATOMIC | TERN_QP_MIN_RNR_TIMER);
		modify(TERN_QPS_RTS, attr,
		       TERN_QP_SQ_PSN | TERN_QP_TIMEOUT | TERN_QP_RETRY_CNT | TERN_QP_RNR_RETRY |
		               TERN_QP_MAX_QP_RD_ATOMIC);
	}
	void modify(tern_hw_qp_state to, const tern_hw_qp_attr &attr, uint32_t mask)
	{
		tern_hw_modify_qp cmd{.qpn = {}, .attr_mask = TERN_QP_STATE | mask, .attr = attr};
		cmd.attr.state = static_cast<uint8_t>(to);
		ASSERT_EQ(qp_->check(cmd), TERN_AQ_OK);
		qp_->modify(cmd);
	}
	void post(const SendRequest &request)
	{
		const auto blocks = encode(request);
		ring_.write(0, blocks);
		qp_->ring(static_cast<uint32_t>(blocks.size() / TERN_SQ_BLOCK));
	}
	void run()
	{
		for (unsigned budget = 64; budget && !data_.scheduler.empty();)
			data_.scheduler.run_turn(budget);
	}
	/** The peer acknowledges packet @psn. */
	void acknowledge(uint32_t psn)
	{
		AddressVector av;
		av.sgid = kTheirs;
		av.dgid = kOurs;
		std::array<std::byte, kMaxRoceFrame> room;
		ExtHeaders ext;
		ext.aeth.syndrome = kAethAck | kCreditsInvalid;
		const Bth bth{.opcode = static_cast<uint8_t>(Opcode::RcAcknowledge),
		              .dest_qpn = kQpn,
		              .psn = Psn(psn)};
		FrameBuilder frame(room, PathHeader(av), bth, ext, 0);
		const auto parsed = parse(frame.finish());
		ASSERT_TRUE(qp_->deliver(std::get<Packet>(parsed)));
	}

	tern_hw_cqe first_cqe() const
	{
		tern_hw_cqe cqe;
		std::memcpy(&cqe, cqes_.read(0, sizeof(cqe)).data(), sizeof(cqe));
		return cqe;
	}

	FakeHost host_;
	DataPath data_;
	Buffer ring_;
	Buffer cqes_;
	std::unique_ptr<RcQp> qp_;
};

/* A posted WRITE becomes a packet, and its acknowledgement a completion. */
TEST_F(DataPathTest, WriteCompletes)
{
	post({.opcode = TERN_OP_WRITE,
	      .flags = TERN_WQE_INLINE,
	      .remote_addr = 0x1000,
	      .rkey = 0x77,
	      .inline_data = std::vector<std::byte>(8, std::byte{0x5a})});
	run();
	const auto frame = host_.wire.take();
	const auto parsed = parse(frame);
	const auto *packet = std::get_if<Packet>(&parsed);
	ASSERT_TRUE(packet);
	EXPECT_EQ(packet->bth.opcode, static_cast<uint8_t>(Opcode::RcWriteOnly));
	EXPECT_EQ(packet->bth.psn, Psn(kPsn));
	EXPECT_EQ(packet->ext.reth.va, 0x1000u);

	EXPECT_EQ(first_cqe().phase, 0);
	acknowledge(kPsn);
	const tern_hw_cqe cqe = first_cqe();
	EXPECT_EQ(cqe.phase, 1);
	EXPECT_EQ(cqe.status, TERN_WC_SUCCESS);
	EXPECT_EQ(cqe.qpn.get(), kQpn);
}

} // namespace
} // namespace tern::test
