// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/bench/table.h"

#include <algorithm>
#include <cstdio>

namespace tern::bench {

namespace {

double median(std::vector<double> values)
{
	std::ranges::sort(values);
	return values[values.size() / 2];
}

double median_of(const std::vector<benchmark::BenchmarkReporter::Run> &runs, const char *counter)
{
	std::vector<double> values;
	for (const auto &run : runs)
		if (run.run_type == benchmark::BenchmarkReporter::Run::RT_Iteration)
			values.push_back(run.counters.at(counter));
	return median(values);
}

/* The message of a run that failed, or null. Debian 13's library says it otherwise than Debian
 * 12's. */
template <typename Run>
const std::string *failure(const Run &run)
{
	if constexpr (requires { run.error_occurred; })
		return run.error_occurred ? &run.error_message : nullptr;
	else
		return run.skipped ? &run.skip_message : nullptr;
}

} // namespace

bool Table::ReportContext(const Context &)
{
	std::printf("Two cards on one core; medians. cost: to the first line of its kind.\n\n"
	            "%-24s %8s %10s %8s %8s %9s %7s %6s\n",
	            "what", "", "messages/s", "ns each", "GB/s", "memcpy", "ratio", "cost");
	return true;
}

void Table::ReportRuns(const std::vector<Run> &runs)
{
	/* The library's own statistics come in a call of their own. */
	if (runs.front().run_type != Run::RT_Iteration)
		return;
	const std::string name = runs.front().benchmark_name();
	for (const Run &run : runs) {
		const std::string *message = failure(run);
		if (!message)
			continue;
		std::printf("%-33s %s\n", name.c_str(), message->c_str());
		failed_ = true;
		return;
	}
	const size_t slash = name.find('/');
	const std::string family = name.substr(0, slash);
	const std::string size = name.substr(slash + 1, name.find('/', slash + 1) - slash - 1);
	const double rate = median_of(runs, "items_per_second");
	const double bytes = median_of(runs, "bytes_per_second");
	const double copied = median_of(runs, "copy") * bytes / rate;
	const double first = first_.emplace(family, rate).first->second;
	if (family != family_ && !family_.empty())
		std::printf("\n");
	family_ = family;
	std::printf("%-24s %8s %10.0f %8.1f %8.2f %9.2f %7.2f %6.2f\n", family.c_str(),
	            size.c_str(), rate, 1e9 / rate, bytes / 1e9, copied / 1e9, bytes / copied,
	            first / rate);
	std::fflush(stdout);
}

} // namespace tern::bench
