/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace tern::test {

/** Allows this process no further descriptors. */
class NoDescriptors {
public:
	NoDescriptors()
	{
		EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
		const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
		EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	}
	~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

private:
	rlimit before_{};
};

} // namespace tern::test
