// SPDX-License-Identifier: GPL-2.0-or-later
/* tern-switch --listen PATH [--shared PATH] [--control PATH] */
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <getopt.h>
#include <string>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "qemu/wire/server.h"

using tern::Fd;
using namespace tern::wire;

namespace {

/* SIGINT and SIGTERM end the program cleanly: captures are completed and sockets removed. */
class Signals final : public Watched {
public:
	explicit Signals(EventLoop &loop)
	{
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGINT);
		sigaddset(&set, SIGTERM);
		sigprocmask(SIG_BLOCK, &set, nullptr);
		fd_ = Fd(signalfd(-1, &set, SFD_CLOEXEC));
		loop.watch(fd_.get(), EPOLLIN, *this);
	}

	void ready(uint32_t) override { came_ = true; }
	bool came() const { return came_; }

private:
	Fd fd_;
	bool came_ = false;
};

int usage()
{
	std::fputs("usage: tern-switch --listen PATH [--shared PATH] [--control PATH]\n", stderr);
	return 2;
}

int fail(const std::string &error)
{
	std::fprintf(stderr, "tern-switch: %s\n", error.c_str());
	return 1;
}

} // namespace

int main(int argc, char **argv)
{
	const option options[] = {
	        {"listen", required_argument, nullptr, 'l'},
	        {"shared", required_argument, nullptr, 's'},
	        {"control", required_argument, nullptr, 'c'},
	        {},
	};
	std::string listen, shared, control;
	for (int c; (c = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
		if (c == 'l')
			listen = optarg;
		else if (c == 's')
			shared = optarg;
		else if (c == 'c')
			control = optarg;
		else
			return usage();
	}
	if (listen.empty() || optind != argc)
		return usage();

	Server server;
	Signals signals(server.loop());
	if (const std::string error = server.listen(listen); !error.empty())
		return fail(error);
	if (!shared.empty()) {
		if (const std::string error = server.listen_for_shared(shared); !error.empty())
			return fail(error);
	}
	if (!control.empty()) {
		if (const std::string error = server.listen_for_control(control); !error.empty())
			return fail(error);
	}
	while (!signals.came())
		server.step();
	return 0;
}
