// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/unix_socket.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace tern::wire {

namespace {

/* A socket's path ends with this until the socket takes connections. So a program that waits for
 * the path and then connects is not refused. */
constexpr std::string_view kSuffix = "~";

class Address {
public:
	explicit Address(const std::string &path)
	{
		address_.sun_family = AF_UNIX;
		path.copy(address_.sun_path, sizeof(address_.sun_path) - 1);
	}
	const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&address_); }
	static constexpr socklen_t kSize = sizeof(sockaddr_un);
	static constexpr size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;

private:
	sockaddr_un address_{};
};

Fd new_socket(int type)
{
	return Fd(socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

std::string last_error(const std::string &path)
{
	return path + ": " + std::strerror(errno);
}

/* Removes the socket that a killed process has left at the path. Returns an error message, or an
 * empty string. */
std::string remove_stale(const std::string &path, int type)
{
	struct stat file;
	if (lstat(path.c_str(), &file))
		return errno == ENOENT ? "" : last_error(path);
	/* connect() is refused at a file that is no socket, too. */
	if (!S_ISSOCK(file.st_mode))
		return path + ": is not a socket";
	const Fd probe = new_socket(type);
	if (connect(probe.get(), Address(path).get(), Address::kSize) == 0 || errno != ECONNREFUSED)
		return path + ": somebody listens there already";
	return unlink(path.c_str()) ? last_error(path) : "";
}

} // namespace

std::optional<UnixListener::FileId> UnixListener::file_at(const std::string &path)
{
	struct stat file;
	if (lstat(path.c_str(), &file))
		return std::nullopt;
	return FileId{file.st_dev, file.st_ino};
}

/* Another process may listen at the path by now, if somebody has removed this socket. The socket
 * keeps its inode while it is open, so no other file has the same one. */
UnixListener::~UnixListener()
{
	if (file_ && file_at(path_) == file_)
		unlink(path_.c_str());
}

std::string UnixListener::open(const std::string &path)
{
	static constexpr size_t kMaxPath = Address::kMaxPath - kSuffix.size();
	if (path.empty() || path.size() > kMaxPath)
		return path + ": a socket's path has 1 to " + std::to_string(kMaxPath) + " bytes";

	const std::string unready = path + std::string(kSuffix);
	for (const std::string &name : {path, unready})
		if (std::string error = remove_stale(name, type_); !error.empty())
			return error;

	Fd fd = new_socket(type_);
	if (!fd || bind(fd.get(), Address(unready).get(), Address::kSize))
		return last_error(path);
	const std::optional<FileId> file = file_at(unready);
	if (listen(fd.get(), SOMAXCONN) || rename(unready.c_str(), path.c_str())) {
		std::string error = last_error(path);
		unlink(unready.c_str());
		return error;
	}
	fd_ = std::move(fd);
	path_ = path;
	file_ = file;
	return {};
}

Fd UnixListener::accept()
{
	return Fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC),
	          Fd::Origin::Connection);
}

} // namespace tern::wire
