// SPDX-License-Identifier: GPL-2.0-or-later
/* Registers and deregisters a region of one page, as fast as it can:
 *	tern_region_storm DEVICE SECONDS
 * It prints how many there were. */
#include <cstdio>
#include <cstdlib>
#include <string>

#include "endpoint.h"

namespace tern::guest {
namespace {

unsigned long storm(const Device &device, std::chrono::seconds duration)
{
	alignas(4096) static char page[4096];
	const auto end = Clock::now() + duration;
	unsigned long regions = 0;
	for (; Clock::now() < end; regions++)
		check(MrPtr(ibv_reg_mr(device.pd(), page, sizeof(page), IBV_ACCESS_LOCAL_WRITE))
		              .get(),
		      "ibv_reg_mr");
	return regions;
}

} // namespace
} // namespace tern::guest

int main(int argc, char **argv)
{
	using namespace tern::guest;
	if (argc != 3) {
		std::fprintf(stderr, "usage: %s DEVICE SECONDS\n", argv[0]);
		return 2;
	}
	try {
		const Device device(argv[1], -1);
		std::printf("%lu regions\n",
		            storm(device, std::chrono::seconds(std::atoi(argv[2]))));
	} catch (const CheckFailed &e) {
		std::fprintf(stderr, "%s\n", e.what());
		return 1;
	}
	return 0;
}
