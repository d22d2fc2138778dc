// SPDX-License-Identifier: GPL-2.0-or-later
/* tern-sim SCENARIO [--seed N] [--json FILE] [--plot FOLDER] */
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <getopt.h>
#include <malloc.h>
#include <optional>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "qemu/sim/report.h"
#include "qemu/sim/scenario.h"
#include "qemu/sim/world.h"

using namespace tern::sim;

namespace {

struct Arguments {
	std::string scenario;
	std::optional<uint64_t> seed;
	std::string json;
	std::string plot;
};

int usage()
{
	std::fputs("usage: tern-sim SCENARIO [--seed N] [--json FILE] [--plot FOLDER]\n", stderr);
	return 2;
}

int fail(const std::string &error)
{
	std::fprintf(stderr, "tern-sim: %s\n", error.c_str());
	return 1;
}

std::optional<Arguments> parse(int argc, char **argv)
{
	const option options[] = {
	        {"seed", required_argument, nullptr, 's'},
	        {"json", required_argument, nullptr, 'j'},
	        {"plot", required_argument, nullptr, 'p'},
	        {},
	};
	Arguments arguments;
	for (int c; (c = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
		if (c == 's') {
			uint64_t seed = 0;
			const char *end = optarg + std::strlen(optarg);
			const auto [rest, error] = std::from_chars(optarg, end, seed);
			if (error != std::errc() || rest != end)
				return std::nullopt;
			arguments.seed = seed;
		} else if (c == 'j') {
			arguments.json = optarg;
		} else if (c == 'p') {
			arguments.plot = optarg;
		} else {
			return std::nullopt;
		}
	}
	if (optind + 1 != argc)
		return std::nullopt;
	arguments.scenario = argv[optind];
	return arguments;
}

/* The state of a thousand cards and their frames covers more pages than the TLB has entries, so the
 * heap uses huge pages. The kernel allocates them when they are first written to. */
void use_huge_pages()
{
	constexpr int kHeap = 1 << 30;
	constexpr int kMapped = 32 << 20; /* bytes; malloc() maps larger blocks outside the heap */
	constexpr size_t kBeyondFirstHeap = 1 << 20;
	mallopt(M_MMAP_THRESHOLD, kMapped);
	mallopt(M_TOP_PAD, kHeap);
	/* Without volatile the compiler removes both calls, and the heap stays small. */
	void *volatile block = std::malloc(kBeyondFirstHeap);
	std::free(block);
	madvise(static_cast<char *>(sbrk(0)) - kHeap, kHeap, MADV_HUGEPAGE);
}

int run(const Arguments &arguments)
{
	Scenario scenario = read_scenario(arguments.scenario);
	scenario.seed = arguments.seed.value_or(scenario.seed);
	World world(scenario);
	const std::clock_t begin = std::clock();
	world.run();
	const double taken = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
	print_table(world, stdout);
	if (std::fflush(stdout) || std::ferror(stdout))
		return fail("standard output: cannot write");
	/* The time of the processor goes to the standard error, because it differs from run to run
	 * and is no result. */
	const auto packets = static_cast<double>(world.packets());
	std::fprintf(stderr, "simulated in %.2f s: %.0f packets/s, %.0f ns each\n", taken,
	             packets / taken, taken / packets * 1e9);
	if (!arguments.json.empty()) {
		std::ofstream file(arguments.json);
		file << to_json(world);
		file.close();
		if (!file)
			return fail(arguments.json + ": cannot write");
	}
	if (!arguments.plot.empty())
		if (const std::string error = plot(world, arguments.plot); !error.empty())
			return fail(error);
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	const auto arguments = parse(argc, argv);
	if (!arguments)
		return usage();
	use_huge_pages();
	try {
		return run(*arguments);
	} catch (const tern::fabric::TomlError &error) {
		return fail(error.what());
	}
}
