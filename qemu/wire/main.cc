// SPDX-License-Identifier: GPL-2.0-or-later
/* This is the program tern-switch. usage() lists its options. */
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <getopt.h>
#include <optional>
#include <string>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <utility>

#include "qemu/faults/rule_file.h"
#include "qemu/wire/keeper.h"
#include "qemu/wire/server.h"

using tern::Fd;
using namespace tern::wire;

namespace {

/* SIGINT and SIGTERM end the program cleanly: captures are completed and sockets removed. SIGPIPE
 * does nothing, as a capture may go to a pipe whose reader has ended. */
class Signals final : public Watched {
public:
	explicit Signals(EventLoop &loop)
	{
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGINT);
		sigaddset(&set, SIGTERM);
		sigprocmask(SIG_BLOCK, &set, nullptr);
		signal(SIGPIPE, SIG_IGN);
		fd_ = Fd(signalfd(-1, &set, SFD_CLOEXEC));
		watched_ = loop.watch(fd_.get(), EPOLLIN, *this);
	}
	/** Returns false if there was no descriptor left: then no signal ends the program. */
	bool watched() const { return watched_; }

	void ready(uint32_t) override { came_ = true; }
	bool came() const { return came_; }

private:
	Fd fd_;
	bool watched_;
	bool came_ = false;
};

struct Arguments {
	std::string listen, shared, control, topology, tap, describe, describe_rules;
	bool restart = false;
};

/* Descriptors that hosts have not received yet count against the limit, too. */
void raise_descriptor_limit()
{
	rlimit limit{};
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* What getopt_long() returns for the option that has no argument. */
constexpr int kRestart = 1;

int usage()
{
	std::fputs("usage: tern-switch --listen PATH [--shared PATH] [--control PATH] "
	           "[--topology FILE] [--tap NAME] [--restart]\n"
	           "       tern-switch --describe FILE\n"
	           "       tern-switch --describe-rules FILE\n",
	           stderr);
	return 2;
}

int fail(const std::string &error)
{
	std::fprintf(stderr, "tern-switch: %s\n", error.c_str());
	return 1;
}

std::optional<Arguments> parse(int argc, char **argv)
{
	Arguments arguments;
	const std::pair<option, std::string *> known[] = {
	        {{"listen", required_argument, nullptr, 0}, &arguments.listen},
	        {{"shared", required_argument, nullptr, 0}, &arguments.shared},
	        {{"control", required_argument, nullptr, 0}, &arguments.control},
	        {{"topology", required_argument, nullptr, 0}, &arguments.topology},
	        {{"tap", required_argument, nullptr, 0}, &arguments.tap},
	        {{"describe", required_argument, nullptr, 0}, &arguments.describe},
	        {{"describe-rules", required_argument, nullptr, 0}, &arguments.describe_rules},
	};
	option options[std::size(known) + 2]{{"restart", no_argument, nullptr, kRestart}};
	std::ranges::transform(known, options + 1, [](const auto &each) { return each.first; });
	int index = 0;
	for (int c; (c = getopt_long(argc, argv, "", options, &index)) != -1;) {
		if (c == kRestart)
			arguments.restart = true;
		else if (c == 0)
			*known[index - 1].second = optarg;
		else
			return std::nullopt;
	}
	const auto tasks = {arguments.listen, arguments.describe, arguments.describe_rules};
	if (optind != argc || std::ranges::count(tasks, "") != std::ssize(tasks) - 1)
		return std::nullopt;
	return arguments;
}

/* Returns an error message, or empty. */
std::string open(Server &server, const Arguments &arguments)
{
	if (!arguments.topology.empty())
		server.use(read_topology(arguments.topology));
	std::string error = server.listen(arguments.listen);
	if (error.empty() && !arguments.shared.empty())
		error = server.listen_for_shared(arguments.shared);
	if (error.empty() && !arguments.control.empty())
		error = server.listen_for_control(arguments.control);
	if (error.empty())
		error = server.attach_taps();
	if (error.empty() && !arguments.tap.empty())
		error = server.attach_tap(arguments.tap);
	return error;
}

int serve(const Arguments &arguments)
{
	raise_descriptor_limit();
	Server server;
	Signals signals(server.loop());
	if (!signals.watched())
		return fail("no file descriptor for signals");
	if (const std::string error = open(server, arguments); !error.empty())
		return fail(error);
	while (!signals.came())
		server.step();
	return 0;
}

int run(const Arguments &arguments)
{
	if (!arguments.describe.empty()) {
		std::puts(describe_topology(arguments.describe).c_str());
		return 0;
	}
	if (!arguments.describe_rules.empty()) {
		std::puts(tern::faults::describe_rules(arguments.describe_rules).c_str());
		return 0;
	}
	return serve(arguments);
}

int guarded(const Arguments &arguments)
{
	try {
		return run(arguments);
	} catch (const tern::fabric::TomlError &error) {
		return fail(error.what());
	}
}

} // namespace

int main(int argc, char **argv)
{
	const auto arguments = parse(argc, argv);
	if (!arguments)
		return usage();
	if (arguments->restart)
		return keep_running([&] { return guarded(*arguments); });
	return guarded(*arguments);
}
