// SPDX-License-Identifier: GPL-2.0-or-later
#include "devices.h"

#include <gtest/gtest.h>
#include <sstream>

using namespace tern::tools;

namespace {

TEST(Cqs, DepthsFromIndices)
{
	std::istringstream file("cqn        size       ci       pi   eqn\n"
	                        "00000a      256       1f       22     1\n"
	                        "00000b       16 fffffffe        1     2\n");
	const auto cqs = parse_cqs(file);

	ASSERT_EQ(cqs.size(), 2u);
	EXPECT_EQ(cqs.at(0xa).depth, 3u);
	EXPECT_EQ(cqs.at(0xa).size, 256u);
	EXPECT_EQ(cqs.at(0xb).depth, 3u) << "indices wrap";
}

TEST(Cqs, NoneWithoutFile)
{
	std::istringstream empty;
	EXPECT_TRUE(parse_cqs(empty).empty());
}

} // namespace
