// SPDX-License-Identifier: GPL-2.0-or-later
/* What the card says of itself: the reason for which a QP does not go on, and what its observer is
 * told meanwhile. */
#include "tests/unit/transport/one_requester.h"

namespace tern::test {
namespace {

constexpr uint8_t kRnrNak = kAethRnrNak | 1;
constexpr uint64_t kRnrTime = 10'000; /* of code 1 */

class Describe : public Requester {
protected:
	std::string state(size_t most = 1000) const { return card_.describe({}, most); }
	std::string state_of(uint32_t qpn) const { return card_.describe(qpn); }
	bool says(const std::string &member) const
	{
		return state_of(qp_->number).find(member) != std::string::npos;
	}
	bool waits_for(const std::string &what) const
	{
		return says("\"waits_for\":\"" + what + "\"");
	}
	bool observed(const std::string &line) const
	{
		const auto &lines = host_.observer.lines;
		return std::ranges::find(lines, line) != lines.end();
	}
	std::string qpn() const { return std::to_string(qp_->number); }
	static std::string at(uint32_t n) { return std::to_string(psn(n)); }
};

TEST_F(Describe, NothingToDo)
{
	EXPECT_TRUE(waits_for(""));
	EXPECT_TRUE(says("\"type\":\"RC\",\"state\":\"RTS\",\"failure\":\"\""));
	EXPECT_TRUE(says("\"dmac\":\"02:00:00:00:00:02\""));
	EXPECT_TRUE(says("\"dgid\":\"0000:0000:0000:0000:0000:ffff:0a00:0002\""));
}

TEST_F(Describe, PeerDoesNotAnswer)
{
	post(write(10));
	EXPECT_TRUE(waits_for("acknowledgement"));
	pass(kTimeout + 1);
	EXPECT_TRUE(waits_for("retry"));
	EXPECT_TRUE(observed("timed_out " + qpn() + " " + at(0)));
	EXPECT_TRUE(observed("retried " + qpn() + " " + at(0) + " 6"));
	pass(8 * kTimeout);
	EXPECT_TRUE(says("\"state\":\"ERR\",\"failure\":\"RETRY_EXC_ERR\""));
	EXPECT_TRUE(observed("state " + qpn() + " " + std::to_string(TERN_QPS_ERR)));
}

/* An ACK clears the reason that an RNR NAK has set. */
TEST_F(Describe, PeerHasNoReceive)
{
	post(send(10));
	ack(0, kRnrNak);
	EXPECT_TRUE(waits_for("receive"));
	EXPECT_TRUE(
	        observed("nak_received " + qpn() + " " + at(0) + " " + std::to_string(kRnrNak)));
	pass(kRnrTime);
	EXPECT_TRUE(waits_for("receive")) << "also while the probe is under way";
	ack(0);
	EXPECT_TRUE(waits_for(""));
}

/* The ACK of the first message grants no credits. */
TEST_F(Describe, PeerGivesNoCredits)
{
	post(send(10));
	ack(0, kAethAck | 0, 1);
	post(send(10));
	ack(1, kRnrNak, 1);
	EXPECT_TRUE(waits_for("credits"));
	EXPECT_TRUE(says("\"ssn\":2,\"credit_limit_ssn\":1"));
	ack(1, kAethAck | 1, 2);
	EXPECT_TRUE(waits_for(""));
}

TEST_F(Describe, RefusedRequest)
{
	TestPacket p{.opcode = Opcode::RcWriteOnly, .psn = kRqPsn, .payload = content(0, 8)};
	p.ext.reth = {0x1000, 0x7777, 8};
	give(p);
	EXPECT_TRUE(observed("nak_queued " + qpn() + " " + std::to_string(kRqPsn) + " " +
	                     std::to_string(nak_syndrome(NakCode::RemoteAccessError))));
	EXPECT_TRUE(observed("state " + qpn() + " " + std::to_string(TERN_QPS_ERR)));
}

TEST_F(Describe, DroppedFrames)
{
	give({.opcode = Opcode::RcSendOnly, .psn = kRqPsn, .qpn = 0x777});
	EXPECT_TRUE(observed("dropped rx_no_qp " + std::to_string(0x777)));
	card_.doorbell(0, 8, 0);
	EXPECT_TRUE(observed("dropped db_dropped 0"));
}

TEST_F(Describe, Commands)
{
	auto command = make_command(TERN_AQ_DESTROY_QP);
	command.object.id = 0x777;
	EXPECT_EQ(driver_.status_of(command), TERN_AQ_BAD_OBJECT);
	EXPECT_TRUE(observed("command DESTROY_QP"));
	EXPECT_TRUE(observed("done DESTROY_QP BAD_OBJECT"));
}

TEST_F(Describe, OneQpOrAFew)
{
	const auto other = make_qp();
	EXPECT_NE(state().find("\"number\":" + std::to_string(other->number) + ",\"type\""),
	          std::string::npos);
	EXPECT_EQ(state().find("not_listed"), std::string::npos);
	EXPECT_NE(state(1).find("\"qps_not_listed\":1"), std::string::npos);
	EXPECT_EQ(state_of(qp_->number)
	                  .find("\"number\":" + std::to_string(other->number) + ",\"type\""),
	          std::string::npos);
	EXPECT_NE(state_of(0x777).find("\"qps\":[]"), std::string::npos);
}

TEST_F(Describe, CardThatStopped)
{
	EXPECT_TRUE(says("\"enabled\":true,\"fatal\":\"NONE\""));
	card_.write_register(TERN_REG_AQ_PI, 0x7000);
	EXPECT_TRUE(says("\"enabled\":true,\"fatal\":\"AQ_INDEX\""));
	card_.write_register(TERN_REG_CTRL, 0);
	EXPECT_TRUE(says("\"enabled\":false,\"fatal\":\"NONE\",\"last_fatal\":\"AQ_INDEX\""));
	driver_.enable();
	EXPECT_TRUE(says("\"enabled\":true,\"fatal\":\"NONE\",\"last_fatal\":\"NONE\""));
}

} // namespace
} // namespace tern::test
