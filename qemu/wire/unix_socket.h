/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <string>
#include <unistd.h>
#include <utility>

namespace tern::wire {

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

/** Listens at @path, which disappears with this. Takes over a path at which nobody listens. */
class UnixListener {
public:
	UnixListener() = default;
	~UnixListener();
	UnixListener(const UnixListener &) = delete;
	UnixListener &operator=(const UnixListener &) = delete;

	/** An error message, or empty. */
	std::string open(const std::string &path);
	/** The next connection (non-blocking), if any. */
	Fd accept();
	int fd() const { return fd_.get(); }

private:
	Fd fd_;
	std::string path_;
};

} // namespace tern::wire
