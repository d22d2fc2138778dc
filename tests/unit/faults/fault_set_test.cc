// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include "qemu/faults/fault_set.h"

namespace tern::faults {
namespace {

std::vector<unsigned> fates(uint64_t seed)
{
	FaultSet faults;
	faults.set_percent(FaultSet::kLoss, 10);
	faults.set_percent(FaultSet::kReorder, 10);
	faults.seed(seed);
	std::vector<unsigned> fates;
	for (int i = 0; i < 1000; i++) {
		const FaultSet::Decision decision = faults.decide();
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
	FaultSet faults;
	EXPECT_FALSE(faults.any());
	faults.set_percent(FaultSet::kLoss, 100);
	EXPECT_TRUE(faults.any());
	for (int i = 0; i < 1000; i++) {
		const FaultSet::Decision decision = faults.decide();
		EXPECT_TRUE(decision.lost);
		EXPECT_FALSE(decision.duplicated || decision.corrupted || decision.overtaken);
	}
	faults.set_percent(FaultSet::kLoss, 0);
	EXPECT_FALSE(faults.any());
	EXPECT_FALSE(faults.decide().lost);
}

TEST(Faults, OneRateDoesNotChangeTheOthers)
{
	FaultSet one, two;
	for (FaultSet *faults : {&one, &two})
		faults->set_percent(FaultSet::kLoss, 20);
	two.set_percent(FaultSet::kDuplicate, 50);
	for (int i = 0; i < 1000; i++)
		EXPECT_EQ(one.decide().lost, two.decide().lost);
}

} // namespace
} // namespace tern::faults
