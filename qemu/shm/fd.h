/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <span>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace tern {

/** Owns a file descriptor. */
class Fd {
public:
	Fd() = default;
	explicit Fd(int fd) : fd_(fd) {}
	Fd(Fd &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
	Fd &operator=(Fd &&other) noexcept
	{
		std::swap(fd_, other.fd_);
		return *this;
	}
	~Fd()
	{
		if (fd_ >= 0)
			close(fd_);
	}

	int get() const { return fd_; }
	explicit operator bool() const { return fd_ >= 0; }

private:
	int fd_ = -1;
};

/** Appends the descriptors of a received message to @fds, which owns them from then on. */
void collect_fds(msghdr &message, std::vector<Fd> &fds);

/**
 * Adds descriptors to a message that the caller is about to send.
 * @control: room for them, CMSG_SPACE() of their size in bytes, aligned as a cmsghdr and cleared
 */
void attach_fds(msghdr &message, std::span<std::byte> control, std::span<const int> fds);

} // namespace tern
