/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

namespace tern::bench {

/** Prints a line for each benchmark, as soon as it is done: the median of its runs, next to memcpy
 * of the same bytes and to the first of its family (what stands before the slash). */
class Table : public benchmark::BenchmarkReporter {
public:
	bool ReportContext(const Context &context) override;
	void ReportRuns(const std::vector<Run> &runs) override;
	/** Whether some benchmark ended with an error. */
	bool failed() const { return failed_; }

private:
	std::map<std::string, double> first_; /* seconds a message, by family */
	std::string family_;
	bool failed_ = false;
};

} // namespace tern::bench
