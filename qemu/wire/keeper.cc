// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/keeper.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace tern::wire {

namespace {

/* The time between the end of a child and the start of the next one. Hosts try to reconnect as
 * often. It also prevents that children which die at once take a whole processor. */
constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 200'000'000};
/* Added to the number of the signal that has ended a process, to make an exit status as shells do.
 */
constexpr int kSignalStatus = 128;

/* The signals that matter here, blocked while this lives: they are waited for. */
class BlockedSignals {
public:
	BlockedSignals()
	{
		sigemptyset(&set_);
		for (const int number : {SIGCHLD, SIGINT, SIGTERM})
			sigaddset(&set_, number);
		sigprocmask(SIG_BLOCK, &set_, &before_);
	}
	~BlockedSignals() { restore(); }
	BlockedSignals(const BlockedSignals &) = delete;
	BlockedSignals &operator=(const BlockedSignals &) = delete;

	void restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }
	int wait() const { return sigwaitinfo(&set_, nullptr); }
	/** Waits for kPause, or for SIGINT or SIGTERM: then returns true. */
	bool pause() const
	{
		sigset_t ends;
		sigemptyset(&ends);
		sigaddset(&ends, SIGINT);
		sigaddset(&ends, SIGTERM);
		return sigtimedwait(&ends, nullptr, &kPause) > 0;
	}

private:
	sigset_t set_;
	sigset_t before_;
};

/* Returns the child's wait status, and whether it was told to end. */
std::pair<int, bool> wait_for(pid_t child, const BlockedSignals &signals)
{
	bool told = false;
	for (;;) {
		const int number = signals.wait();
		int status = 0;
		if (number == SIGCHLD && waitpid(child, &status, WNOHANG) == child)
			return {status, told};
		if (number == SIGINT || number == SIGTERM) {
			told = true;
			kill(child, number);
		}
	}
}

/* In the child. */
[[noreturn]] void become(const std::function<int()> &run, pid_t parent,
                         const BlockedSignals &signals)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(kSignalStatus + SIGKILL);
	signals.restore();
	const int status = run();
	std::fflush(nullptr);
	_exit(status);
}

} // namespace

int keep_running(const std::function<int()> &run)
{
	const BlockedSignals signals;
	const pid_t parent = getpid();
	for (;;) {
		const pid_t child = fork();
		if (child < 0) {
			std::fprintf(stderr, "tern-switch: fork: %s\n", std::strerror(errno));
			return 1;
		}
		if (child == 0)
			become(run, parent, signals);
		const auto [status, told] = wait_for(child, signals);
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (told)
			return kSignalStatus + WTERMSIG(status);
		std::fprintf(stderr, "tern-switch: signal %d has ended it; it starts again\n",
		             WTERMSIG(status));
		if (signals.pause())
			return 0;
	}
}

} // namespace tern::wire
