// SPDX-License-Identifier: GPL-2.0-or-later
#include "datapath/record.h"

#include <gtest/gtest.h>

namespace tern::provider::test {

/* The definition in words: is event + 1 among the indices old + 1 .. now, on the circle? */
bool steps_past(uint32_t old_pi, uint32_t pi, uint32_t event)
{
	for (uint32_t i = old_pi; i != pi; i++)
		if (i == event)
			return true;
	return false;
}

TEST(Record, CrossedAgreesWithStepping)
{
	const uint32_t bases[] = {0, 1, 100, 0x7ffffff8, 0x7fffffff, 0xfffffff0, 0xffffffff};

	for (uint32_t base : bases)
		for (uint32_t step = 0; step < 20; step++)
			for (uint32_t event = base - 25; event != base + 45; event++)
				EXPECT_EQ(QpRecord::crossed(base, base + step, event),
				          steps_past(base, base + step, event))
				        << base << " + " << step << ", event " << event;
}

TEST(Record, FirstPostAlwaysRings)
{
	EXPECT_TRUE(QpRecord::crossed(0, 1, 0));
	EXPECT_TRUE(QpRecord::crossed(0, 0x8000, 0));
}

TEST(Record, PublishSqAsksTheEventIndex)
{
	alignas(64) hw::tern_hw_qp_record raw{};
	const QpRecord record(&raw);

	raw.sq_event = 7;
	EXPECT_FALSE(record.publish_sq(3, 5));
	EXPECT_EQ(raw.sq_pi.get(), 5u);
	EXPECT_FALSE(record.publish_sq(5, 7));
	EXPECT_TRUE(record.publish_sq(7, 8));
	EXPECT_FALSE(record.publish_sq(8, 9));

	raw.sq_event = 0xffffffff;
	EXPECT_FALSE(record.publish_sq(0xfffffff0, 0xffffffff));
	EXPECT_TRUE(record.publish_sq(0xffffffff, 3));
	EXPECT_EQ(raw.sq_pi.get(), 3u);
}

TEST(Record, ClearTakesBackPostsAndLeavesTheCardsIndexAlone)
{
	alignas(64) hw::tern_hw_qp_record raw{};
	raw.rq_pi = 1;
	raw.sq_pi = 2;
	raw.sq_event = 3;
	QpRecord(&raw).clear();
	EXPECT_EQ(raw.rq_pi.get() | raw.sq_pi.get(), 0u);
	EXPECT_EQ(raw.sq_event.get(), 3u);
}

TEST(Record, OffsetsAreThoseOfTheCard)
{
	alignas(64) hw::tern_hw_qp_record raw{};
	const QpRecord record(&raw);
	const auto *words = reinterpret_cast<const uint8_t *>(&raw);

	record.publish_rq(0x04030201);
	record.publish_sq(0, 0x14131211);
	const uint8_t expected[8] = {1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14};
	EXPECT_EQ(std::memcmp(words, expected, sizeof(expected)), 0);
	EXPECT_EQ(offsetof(hw::tern_hw_qp_record, sq_event), 32u);
}

} // namespace tern::provider::test
