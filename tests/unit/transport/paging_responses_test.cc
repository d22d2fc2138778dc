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

} // namespace
} // namespace tern::test
