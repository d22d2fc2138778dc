// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/unix_socket.h"

#include <cerrno>
#include <cstring>
#include <sys/un.h>
#include <unistd.h>

namespace tern::wire {

static Fd new_socket(int type)
{
	return Fd(socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

UnixListener::~UnixListener()
{
	if (fd_)
		unlink(path_.c_str());
}

std::string UnixListener::open(const std::string &path)
{
	sockaddr_un address{};
	address.sun_family = AF_UNIX;
	if (path.empty() || path.size() >= sizeof(address.sun_path))
		return path + ": a socket's path has 1 to 107 bytes";
	path.copy(address.sun_path, path.size());
	const auto *generic = reinterpret_cast<const sockaddr *>(&address);

	/* Remove the socket of a killed process. */
	const Fd probe = new_socket(type_);
	if (connect(probe.get(), generic, sizeof(address)) == 0)
		return path + ": somebody listens there already";
	if (errno == EPROTOTYPE)
		return path + ": somebody listens there already";
	if (errno == ECONNREFUSED)
		unlink(path.c_str());

	Fd fd = new_socket(type_);
	if (!fd || bind(fd.get(), generic, sizeof(address)) || listen(fd.get(), SOMAXCONN))
		return path + ": " + std::strerror(errno);
	fd_ = std::move(fd);
	path_ = path;
	return {};
}

Fd UnixListener::accept()
{
	return Fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

} // namespace tern::wire
