// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/sim/options.h"

namespace tern::sim {

namespace {
Options parsed;

bool take(int &i, int argc, char **argv, const char *name, uint64_t &value)
{
	if (std::strcmp(argv[i], name) != 0 || i + 1 == argc)
		return false;
	char *end;
	value = std::strtoull(argv[++i], &end, 0);
	return *argv[i] && !*end;
}
} // namespace

const Options &options()
{
	return parsed;
}

std::string replay(uint64_t seed)
{
	const auto *test = ::testing::UnitTest::GetInstance()->current_test_info();
	return "replay: " + parsed.program + " --gtest_filter=" + test->test_suite_name() + "." +
	       test->name() + " --seed " + std::to_string(seed) + " --seeds 1";
}

} // namespace tern::sim

int main(int argc, char **argv)
{
	using namespace tern::sim;
	::testing::InitGoogleTest(&argc, argv);
	parsed.program = argv[0];
	for (int i = 1; i < argc; i++) {
		if (take(i, argc, argv, "--seed", parsed.seed) ||
		    take(i, argc, argv, "--seeds", parsed.seeds))
			continue;
		std::fprintf(stderr, "usage: %s [--seed N] [--seeds N] [GoogleTest options]\n",
		             argv[0]);
		return 2;
	}
	const int result = RUN_ALL_TESTS();
	if (!::testing::UnitTest::GetInstance()->test_to_run_count()) {
		std::fprintf(stderr, "%s: no test has this name\n", argv[0]);
		return 2;
	}
	return result;
}
