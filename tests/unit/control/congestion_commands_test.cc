// SPDX-License-Identifier: GPL-2.0-or-later
/* QUERY_CONGESTION and SET_CONGESTION. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

class CongestionCommands : public OneCard {
protected:
	void SetUp() override { driver_.enable(); }

	uint32_t query(tern_hw_congestion_param param)
	{
		return driver_.command(make_command(TERN_AQ_QUERY_CONGESTION))
		        .congestion.value[param]
		        .get();
	}
	tern_hw_aq_status set(uint32_t param, uint32_t value)
	{
		auto c = make_command(TERN_AQ_SET_CONGESTION);
		c.set_congestion.param = param;
		c.set_congestion.value = value;
		return driver_.status_of(c);
	}
};

TEST_F(CongestionCommands, DefaultsOfMlx5)
{
	EXPECT_NE(card_.read_register(TERN_REG_CAPS) & TERN_CAP_CONGESTION, 0u);
	EXPECT_EQ(query(TERN_CC_RP_ALGORITHM), TERN_CC_DCQCN);
	EXPECT_EQ(query(TERN_CC_RP_TIME_RESET), 300u);
	EXPECT_EQ(query(TERN_CC_RP_BYTE_RESET), 32767u);
	EXPECT_EQ(query(TERN_CC_RP_DCE_TCP_G), 1019u);
	EXPECT_EQ(query(TERN_CC_RP_GD), 11u);
	EXPECT_EQ(query(TERN_CC_NP_MIN_TIME_BETWEEN_CNPS), 4u);
	EXPECT_EQ(query(TERN_CC_NP_CNP_DSCP), 48u);
	EXPECT_EQ(query(TERN_CC_NP_CNP_PRIO), 6u);
}

TEST_F(CongestionCommands, EachParameterIsSetAlone)
{
	const auto before = driver_.command(make_command(TERN_AQ_QUERY_CONGESTION)).congestion;
	/* 1 suits all but rp_gd. */
	for (uint32_t i = 0; i < TERN_CC_COUNT; i++) {
		const uint32_t value = i == TERN_CC_RP_GD ? 10 : 1;
		ASSERT_EQ(set(i, value), TERN_AQ_OK) << i;
		auto after = driver_.command(make_command(TERN_AQ_QUERY_CONGESTION)).congestion;
		EXPECT_EQ(after.value[i].get(), value) << i;
		after.value[i] = before.value[i];
		EXPECT_EQ(std::memcmp(&after, &before, sizeof(after)), 0) << i;
		ASSERT_EQ(set(i, before.value[i].get()), TERN_AQ_OK) << i;
	}
}

TEST_F(CongestionCommands, WhatIsOutOfRangeIsRefused)
{
	EXPECT_EQ(set(TERN_CC_COUNT, 0), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(set(UINT32_MAX, 0), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(set(TERN_CC_NP_CNP_DSCP, 64), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(query(TERN_CC_NP_CNP_DSCP), 48u);
}

TEST_F(CongestionCommands, AResetRestoresTheDefaults)
{
	ASSERT_EQ(set(TERN_CC_NP_CNP_DSCP, 1), TERN_AQ_OK);
	card_.write_register(TERN_REG_CTRL, TERN_CTRL_RESET);
	driver_.enable();
	EXPECT_EQ(query(TERN_CC_NP_CNP_DSCP), 48u);
}

} // namespace
} // namespace tern::test
