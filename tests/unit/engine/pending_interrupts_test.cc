// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/engine/pending_interrupts.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

TEST(PendingInterrupts, AVectorIsAnnouncedOnceUntilItIsTaken)
{
	unsigned announced = 0;
	tern_engine_ops ops{};
	ops.interrupts_pending = [](void *count) { ++*static_cast<unsigned *>(count); };
	PendingInterrupts interrupts(ops, &announced);
	interrupts.raise(65);
	interrupts.raise(65);
	EXPECT_EQ(announced, 1);
	interrupts.raise(64);
	EXPECT_EQ(announced, 2);
	EXPECT_EQ(interrupts.take(0), 0);
	EXPECT_EQ(interrupts.take(1), 3);
	EXPECT_EQ(interrupts.take(1), 0);

	interrupts.raise(TERN_ENGINE_MAX_VECTORS);
	EXPECT_EQ(announced, 2);
	interrupts.raise(TERN_ENGINE_MAX_VECTORS - 1);
	interrupts.clear();
	EXPECT_EQ(interrupts.take(TERN_ENGINE_MAX_VECTORS / 64 - 1), 0);
}

} // namespace
} // namespace tern
