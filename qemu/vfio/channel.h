/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "qemu/vfio/protocol.h"

namespace tern::vfio {

/** A connection to a client: whole messages over a stream socket. */
class Channel {
public:
	/** Waiting ends when @stop is readable. */
	Channel(Fd socket, int stop) : socket_(std::move(socket)), stop_(stop) {}

	/** Waits for the next message; none if the client is gone, if it has sent something that
	 * is no message, or if it is time to stop. */
	std::optional<Message> receive();
	/** Returns false if the client is gone or it is time to stop. */
	bool send(const Header &request, const Reply &reply);
	/** Why receive() or send() has failed; empty if the client has ended the connection between
	 * two messages, or if it is time to stop. */
	const std::string &error() const { return error_; }

private:
	bool fail(std::string error);
	bool wait(short events);
	bool fill(std::span<std::byte> to, std::vector<Fd> &fds, bool begun);

	const Fd socket_;
	const int stop_;
	std::string error_;
};

} // namespace tern::vfio
