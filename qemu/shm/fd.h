/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace tern {

/** Owns a file descriptor. */
class Fd {
public:
	/** Where the descriptor comes from. close() of a file that a peer has sent may block for
	 * any time: the file may be on FUSE, or a TCP socket that lingers. close() of a connection
	 * also closes the files that the peer has sent over it and this process has not received.
	 */
	enum class Origin : uint8_t { Own, Connection, Sent };

	Fd() = default;
	explicit Fd(int fd, Origin origin = Origin::Own) : fd_(fd), origin_(origin) {}
	Fd(Fd &&other) noexcept : fd_(std::exchange(other.fd_, -1)), origin_(other.origin_) {}
	Fd &operator=(Fd &&other) noexcept
	{
		std::swap(fd_, other.fd_);
		std::swap(origin_, other.origin_);
		return *this;
	}
	~Fd()
	{
		if (fd_ < 0)
			return;
		if (origin_ == Origin::Own)
			close(fd_);
		else
			close_aside();
	}

	int get() const { return fd_; }
	explicit operator bool() const { return fd_ >= 0; }

private:
	/* Leaves the work to another thread, unless close() cannot block. The peer sees the end of
	 * a connection at once. */
	void close_aside();

	int fd_ = -1;
	Origin origin_ = Origin::Own;
};

/** What receive_some() has received. */
struct ReceivedBytes {
	ssize_t size; /* as recv(2) returns it */
	bool whole;   /* nothing was cut off */
};
/** Receives bytes from a Unix socket without blocking. Appends the descriptors that come with them
 * to @fds. */
ReceivedBytes receive_some(const Fd &socket, std::span<std::byte> to, std::vector<Fd> &fds);
/** Receives bytes from a peer that must not send descriptors, as recv(2) does without blocking. If
 * the peer sends descriptors, this closes them and fails with EPROTO. */
ssize_t receive_some(const Fd &socket, std::span<std::byte> to);

/**
 * Adds descriptors to a message that the caller is about to send.
 * @control: room for them, CMSG_SPACE() of their size in bytes, aligned as a cmsghdr and cleared
 */
void attach_fds(msghdr &message, std::span<std::byte> control, std::span<const int> fds);

} // namespace tern
