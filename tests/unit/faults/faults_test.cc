// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include "qemu/faults/faults.h"

namespace tern::faults {
namespace {

std::vector<unsigned> fates(uint64_t seed)
{
	Faults faults;
	faults.set_percent(Faults::kLoss, 10);
	faults.set_percent(Faults::kReorder, 10);
	faults.seed(seed);
	std::vector<unsigned> fates;
	for (int i = 0; i < 1000; i++) {
		const Faults::Decision decision = faults.decide();
		fates.push_back(decision.lost ? 100u : decision.overtaken);
	}
	return fates;
}

TEST(Faults, AreTheSameFromTheSameSeed)
{
	EXPECT_EQ(fates(7), fates(7));
	EXPECT_NE(fates(7), fates(8));
}

TEST(Faults, NeverAndAlways)
{
	Faults faults;
	EXPECT_FALSE(faults.any());
	faults.set_percent(Faults::kLoss, 100);
	EXPECT_TRUE(faults.any());
	for (int i = 0; i < 1000; i++) {
		const Faults::Decision decision = faults.decide();
		EXPECT_TRUE(decision.lost);
		EXPECT_FALSE(decision.duplicated || decision.corrupted || decision.overtaken);
	}
	faults.set_percent(Faults::kLoss, 0);
	EXPECT_FALSE(faults.any());
	EXPECT_FALSE(faults.decide().lost);
}

TEST(Faults, OneRateDoesNotChangeTheOthers)
{
	Faults one, two;
	for (Faults *faults : {&one, &two})
		faults->set_percent(Faults::kLoss, 20);
	two.set_percent(Faults::kDuplicate, 50);
	for (int i = 0; i < 1000; i++)
		EXPECT_EQ(one.decide().lost, two.decide().lost);
}

} // namespace
} // namespace tern::faults
