/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <string>
#include <sys/socket.h>

#include "qemu/shm/fd.h"

namespace tern::wire {

/**
 * Listens at a path and removes it at the end. Replaces a socket on which nobody listens. The path
 * appears when connections are taken, so a program may wait for it and then connect.
 */
class UnixListener {
public:
	/** @type: SOCK_STREAM or SOCK_SEQPACKET. */
	explicit UnixListener(int type) : type_(type) {}
	~UnixListener();
	UnixListener(const UnixListener &) = delete;
	UnixListener &operator=(const UnixListener &) = delete;

	/** Returns an error message, or empty. */
	std::string open(const std::string &path);
	/** The next connection (non-blocking), if there is one. */
	Fd accept();
	int fd() const { return fd_.get(); }

private:
	const int type_;
	Fd fd_;
	std::string path_;
};

} // namespace tern::wire
