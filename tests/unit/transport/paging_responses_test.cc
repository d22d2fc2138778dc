// SPDX-License-Identifier: GPL-2.0-or-later
/* Absent pages while other answers wait to be sent, and while the requester waits for other
 * reasons. */
#include "tests/unit/transport/one_paged_region.h"

namespace tern::test {
namespace {

/* The data of a READ waits for the wire when the pages of a later SEND cannot be had. The READ was
 * executed, so its data is sent before the NAK. */
TEST_F(Paging, AFailureLeavesEarlierResponses)
{
	connect();
	bring(0);
	qp_->post_recv(at(kPage, kPage));
	host_.wire.accept_only(1);
	give(request(Opcode::RcReadRequest, 0, 0, 3 * kMtu));
	give(request(Opcode::RcSendOnly, 3, 0, 0, bytes(100)));
	resume(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	open_wire();
	const auto p = all_sent();
	ASSERT_EQ(p.size(), 4u);
	for (uint32_t i = 0; i < 3; i++)
		EXPECT_EQ(p[i].psn, psn_after(kRqPsn, i));
	EXPECT_EQ(p[2].opcode, Opcode::RcReadResponseLast);
	EXPECT_EQ(p[3].psn, psn_after(kRqPsn, 3));
	EXPECT_EQ(p[3].ext.aeth.syndrome, kOperationNak);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* The peer repeats a READ from the absent page on, and the region is gone. The data was never sent,
 * so the connection ends. */
TEST_F(Paging, AReadThatStoppedNeedsItsRegion)
{
	connect();
	bring(0, false);
	give(request(Opcode::RcReadRequest, 0, kPage - kMtu, 3 * kMtu));
	EXPECT_EQ(all_sent().size(), 2u);
	const auto again = request(Opcode::RcReadRequest, 1, kPage, 2 * kMtu);
	ASSERT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, paged_->key), TERN_AQ_OK);
	events();
	give(again);
	expect_aeth(1, kAccessNak);
	EXPECT_TRUE(event(TERN_EVENT_QP_ACCESS_ERR, qp_->number));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* The same if not even the first packet was sent. */
TEST_F(Paging, AReadThatNeverBeganNeedsItsRegion)
{
	connect();
	const auto read = request(Opcode::RcReadRequest, 0, 0, 3 * kMtu);
	give(read);
	expect_aeth(0, kRnr);
	ASSERT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, paged_->key), TERN_AQ_OK);
	give(read);
	expect_aeth(0, kAccessNak);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

} // namespace
} // namespace tern::test
