// SPDX-License-Identifier: GPL-2.0-or-later
/* tern-card: a card in a process of its own, for one client at a time */
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <string>
#include <sys/signalfd.h>
#include <utility>

#include "qemu/vfio/channel.h"
#include "qemu/vfio/options.h"
#include "qemu/wire/unix_socket.h"

using namespace tern;
using namespace tern::vfio;

namespace {

void warn(const std::string &error)
{
	std::fprintf(stderr, "tern-card: %s\n", error.c_str());
}

int fail(const std::string &error, int status)
{
	warn(error);
	return status;
}

/* SIGINT and SIGTERM end the program cleanly. SIGPIPE does nothing, as an eventfd of a client may
 * be a pipe that nobody reads. Call this before threads start, because they inherit the mask. */
Fd block_signals()
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, nullptr);
	signal(SIGPIPE, SIG_IGN);
	return Fd(signalfd(-1, &set, SFD_CLOEXEC));
}

void serve(Card &card, Channel channel)
{
	if (const std::string error = card.renew_device_memory(); !error.empty())
		return warn(error);
	Session session(card.function());
	while (auto message = channel.receive()) {
		const Header header = message->header;
		const Reply reply = session.handle(std::move(*message));
		if (reply.malformed)
			return warn("the client violates the protocol");
		if (!(header.flags & kNoReply) && !channel.send(header, reply))
			break;
	}
	if (!channel.error().empty())
		warn(channel.error());
}

/* Returns when a signal has come. A client that cannot be accepted waits until there are
 * descriptors again. */
void serve_clients(Card &card, wire::UnixListener &listener, int stop)
{
	constexpr int kRetryMs = 100;
	bool told = false;
	for (;;) {
		pollfd fds[] = {{.fd = listener.fd(), .events = POLLIN, .revents = 0},
		                {.fd = stop, .events = POLLIN, .revents = 0}};
		poll(fds, 2, -1);
		if (fds[1].revents)
			return;
		if (Fd socket = listener.accept()) {
			serve(card, Channel(std::move(socket), stop));
			told = false;
		} else if (errno != EAGAIN && errno != ECONNABORTED) {
			if (!std::exchange(told, true))
				warn(std::string("no connection: ") + std::strerror(errno));
			poll(&fds[1], 1, kRetryMs);
		}
	}
}

} // namespace

int main(int argc, char **argv)
{
	Options options;
	if (const std::string error = parse_options(argc, argv, options); !error.empty())
		return fail(error, 2);
	if (options.help) {
		std::fputs(kUsage, stdout);
		return 0;
	}
	const Fd stop = block_signals();
	Card card(options.card);
	if (const std::string error = card.start(); !error.empty())
		return fail(error, 1);
	wire::UnixListener listener(SOCK_STREAM);
	if (const std::string error = listener.open(options.socket); !error.empty())
		return fail(error, 1);
	serve_clients(card, listener, stop.get());
	return 0;
}
