/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "tests/support/one_card.h"

namespace tern::test {

/** One card with a QP that is connected, qp_; the test is its peer. */
class OneConnection : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		connect(connection());
	}
	/** Another QP in its place. */
	void connect(const Connection &c)
	{
		qp_ = make_qp();
		qp_->connect(c);
		events();
	}

	/** One AETH packet, to the peer's request @n, and nothing else, was sent. */
	void expect_aeth(uint32_t n, uint8_t syndrome)
	{
		const auto p = sent();
		ASSERT_TRUE(p);
		EXPECT_EQ(p->opcode, Opcode::RcAcknowledge);
		EXPECT_EQ(p->psn, psn_after(kRqPsn, n));
		if (syndrome == kAethAck)
			EXPECT_EQ(p->ext.aeth.syndrome & kAethKindMask, kAethAck);
		else
			EXPECT_EQ(p->ext.aeth.syndrome, syndrome);
		EXPECT_TRUE(host_.wire.frames().empty());
	}
	/** The answer to its ATOMIC WRITE or FLUSH @n, and nothing else, was sent. */
	void expect_empty_response(uint32_t n)
	{
		const auto p = sent();
		ASSERT_TRUE(p);
		EXPECT_EQ(p->opcode, Opcode::RcReadResponseOnly);
		EXPECT_EQ(p->psn, psn_after(kRqPsn, n));
		EXPECT_EQ(p->ext.aeth.syndrome & kAethKindMask, kAethAck);
		EXPECT_TRUE(p->payload.empty());
		EXPECT_TRUE(host_.wire.frames().empty());
	}
};

} // namespace tern::test
