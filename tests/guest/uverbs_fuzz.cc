// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A fuzzer of the driver's interface for processes: calls of the kernel's own ABI, without
 * libibverbs, by several threads of several processes, which are killed at random points.
 *
 *	uverbs_fuzz DEVICE [--seconds N] [--seed N] [--gid-index N] [--threads N] [--processes N]
 *		[--slowness N] [--failing]
 *
 * It prints how often each operation succeeded, and how often it failed with each errno. A seed
 * repeats the choices of each thread, but not how threads meet. --slowness multiplies the life time
 * of each process, for a slow kernel. With --failing the kernel fails an allocation in half of the
 * calls; the kernel must be built with fault injection.
 */
#include <getopt.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <thread>
#include <vector>

#include "check.h"
#include "uverbs_fuzzer.h"

namespace tern::guest::uverbs {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration;
using std::chrono::milliseconds;

/** How long a process may take to die. Address resolution and page faults wait for seconds. */
constexpr std::chrono::seconds kDeath{60};

/* --- a process under test --- */

[[noreturn]] void fuzz(Process &process, uint64_t seed)
{
	Fuzzer fuzzer(process, seed);
	while (true)
		fuzzer.step();
}

/** Ends by SIGKILL, or by itself, with all that it holds. */
[[noreturn]] void run_child(const Options &options, Stats &stats, Rng rng)
{
	setpgid(0, 0);
	Process process(options, stats);
	Fuzzer(process, rng.next()).prepare();
	std::vector<std::thread> threads;
	for (unsigned i = 0; i < options.threads; i++)
		threads.emplace_back(fuzz, std::ref(process), rng.next());
	const bool ends = rng.chance(1, 4);
	std::this_thread::sleep_for(milliseconds(ends ? rng.between(50, 500) : 600'000));
	_exit(0);
}

/* --- the parent --- */

struct Child {
	pid_t pid;
	Clock::time_point end;
};

class Parent {
public:
	Parent(const Options &options, Stats &stats)
	        : options_(options), stats_(stats), rng_(options.seed)
	{
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	}

	void run();
	unsigned killed = 0, ended = 0, crashed = 0;

private:
	void start();
	void kill_late();
	void reap();
	void report_crash(pid_t pid, int signal);
	void await_all();

	const Options &options_;
	Stats &stats_;
	Rng rng_;
	std::vector<Child> children_;
};

void Parent::start()
{
	Rng choices = rng_.fork();
	const auto life = options_.slowness *
	                  milliseconds(choices.between(20, choices.chance(1, 4) ? 2000 : 600));
	std::fflush(stdout);
	const pid_t pid = fork();
	check(pid >= 0, "fork: %s", std::strerror(errno));
	if (!pid) {
		try {
			run_child(options_, stats_, choices);
		} catch (const CheckFailed &e) {
			std::fprintf(stderr, "%s\n", e.what());
			_exit(1);
		}
	}
	setpgid(pid, pid);
	children_.push_back({pid, Clock::now() + life});
}

void Parent::kill_late()
{
	for (const Child &child : children_)
		if (Clock::now() >= child.end)
			kill(-child.pid, SIGKILL);
}

/** Counts how the children ended. The kernel hands over their own children, too, which are not
 * counted. */
void Parent::reap()
{
	int status;
	while (const pid_t pid = waitpid(-1, &status, WNOHANG)) {
		if (pid < 0)
			return;
		const size_t found = std::erase_if(
		        children_, [&](const Child &child) { return child.pid == pid; });
		if (!found)
			continue;
		kill(-pid, SIGKILL); /* its own children, if it has ended by itself */
		if (WIFEXITED(status))
			ended++;
		else if (WTERMSIG(status) == SIGKILL)
			killed++;
		else
			report_crash(pid, WTERMSIG(status));
		check(!WIFEXITED(status) || !WEXITSTATUS(status), "a process could not start");
	}
}

void Parent::report_crash(pid_t pid, int signal)
{
	crashed++;
	std::printf("process %d was ended by %s\n", pid, strsignal(signal));
}

void Parent::run()
{
	const auto end = Clock::now() + duration<double>(options_.seconds);
	while (Clock::now() < end) {
		while (children_.size() < options_.processes)
			start();
		std::this_thread::sleep_for(milliseconds(5));
		kill_late();
		reap();
	}
	await_all();
}

void Parent::await_all()
{
	for (Child &child : children_)
		child.end = Clock::now();
	kill_late();
	const auto end = Clock::now() + kDeath;
	while (!children_.empty() && Clock::now() < end) {
		std::this_thread::sleep_for(milliseconds(20));
		reap();
	}
	for (const Child &child : children_)
		std::cerr << "process " << child.pid << " does not die:\n"
		          << std::ifstream("/proc/" + std::to_string(child.pid) + "/stack").rdbuf();
	check(children_.empty(), "%zu processes do not die", children_.size());
}

/* --- results --- */

uint64_t print(const Operation &operation, const std::atomic<uint32_t> (&calls)[Stats::kErrnos])
{
	uint64_t sum = calls[0];
	std::printf("%-20s %8u ok", operation.name, calls[0].load());
	for (size_t err = 1; err < Stats::kErrnos; err++) {
		if (!calls[err])
			continue;
		const char *name = strerrorname_np(static_cast<int>(err));
		std::printf(", %u %s", calls[err].load(), name ? name : "other");
		sum += calls[err];
	}
	std::printf("\n");
	return sum;
}

void print(const Stats &stats, const Parent &parent, double seconds)
{
	size_t count;
	const auto &all = operations(count);
	uint64_t sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += print(all[i], stats.calls[i]);
	std::printf("%llu calls, %.0f a second; processes: %u killed, %u ended, %u crashed\n",
	            static_cast<unsigned long long>(sum), static_cast<double>(sum) / seconds,
	            parent.killed, parent.ended, parent.crashed);
	if (const uint32_t starved = stats.starved)
		std::printf("%u calls with a failed allocation, %u of them succeeded\n", starved,
		            stats.survived.load());
}

/* --- options --- */

bool parse(int argc, char **argv, Options &options)
{
	static const option kLong[] = {{"seconds", required_argument, nullptr, 's'},
	                               {"seed", required_argument, nullptr, 'r'},
	                               {"gid-index", required_argument, nullptr, 'g'},
	                               {"threads", required_argument, nullptr, 't'},
	                               {"processes", required_argument, nullptr, 'p'},
	                               {"slowness", required_argument, nullptr, 'l'},
	                               {"failing", no_argument, nullptr, 'f'},
	                               {}};
	for (int c; (c = getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
		if (c == 's')
			options.seconds = std::atof(optarg);
		else if (c == 'r')
			options.seed = std::strtoull(optarg, nullptr, 0);
		else if (c == 'g')
			options.gid_index = std::atoi(optarg);
		else if (c == 't')
			options.threads = static_cast<unsigned>(std::atoi(optarg));
		else if (c == 'p')
			options.processes = static_cast<unsigned>(std::atoi(optarg));
		else if (c == 'l')
			options.slowness = static_cast<unsigned>(std::atoi(optarg));
		else if (c == 'f')
			options.failing = true;
		else
			return false;
	}
	if (optind + 1 != argc)
		return false;
	options.device = argv[optind];
	return true;
}

int run(const Options &options)
{
	void *shared = mmap(nullptr, sizeof(Stats), PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED, "mmap: %s", std::strerror(errno));
	Stats &stats = *static_cast<Stats *>(shared);
	std::printf("seed %llu\n", static_cast<unsigned long long>(options.seed));
	Parent parent(options, stats);
	const auto begin = Clock::now();
	parent.run();
	print(stats, parent, duration<double>(Clock::now() - begin).count());
	return 0;
}

} // namespace
} // namespace tern::guest::uverbs

int main(int argc, char **argv)
{
	using namespace tern::guest;
	uverbs::Options options;
	if (!uverbs::parse(argc, argv, options)) {
		std::fprintf(stderr,
		             "usage: %s DEVICE [--seconds N] [--seed N] [--gid-index N] "
		             "[--threads N] [--processes N] [--slowness N] [--failing]\n",
		             argv[0]);
		return 2;
	}
	try {
		return uverbs::run(options);
	} catch (const CheckFailed &e) {
		std::fprintf(stderr, "%s\n", e.what());
		return 1;
	}
}
