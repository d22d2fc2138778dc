// SPDX-License-Identifier: GPL-2.0-or-later
/* What the requesters of a card send in one run of the card. */
#include "qemu/rnic/network/scheduler.h"
#include "tests/unit/transport/one_requester.h"

namespace tern::test {
namespace {

constexpr unsigned kRun = 12; /* less than a turn */

TEST_F(Requester, APacketOfItsOwnUsesMoreOfARunThanOneOfALongMessage)
{
	for (unsigned i = 0; i < kRun; i++)
		qp_->post_send(send(1), false);
	qp_->post_send(send(kRun * kMtu), false);
	qp_->publish();
	card_.run(kRun);
	EXPECT_EQ(all_sent().size(), kRun / (1 + Sender::kMessage));
	for (unsigned i = 0; i < Sender::kMessage + 1; i++)
		card_.run(kRun);
	EXPECT_EQ(all_sent().size(),
	          kRun - kRun / (1 + Sender::kMessage) + kRun - Sender::kMessage);
}

/* The peer receives the packet of a QP that was idle before those of others, so the response to it
 * is not delayed. */
TEST_F(Requester, ARunEndsSoonAfterTheTurnOfOneThatWasIdle)
{
	const auto busy = make_qp();
	busy->connect(connection());
	for (unsigned i = 0; i < 3 * Sender::kTurn; i++)
		busy->post_send(send(1), false);
	busy->publish();
	for (unsigned i = 0; i < 3; i++)
		card_.run(Sender::kTurn);
	const auto before = all_sent();
	qp_->post_send(send(2), false);
	qp_->publish();
	card_.run(Sender::kTurn);
	const auto p = all_sent();
	ASSERT_GE(p.size(), 2u);
	EXPECT_LT(p.size(), before.size() / 3);
	EXPECT_EQ(p[0].payload.size(), 2u);
}

} // namespace
} // namespace tern::test
