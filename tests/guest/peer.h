// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "check.h"

namespace tern::guest {

/** A socket that closes itself. */
class Socket {
public:
	explicit Socket(int fd = -1) : fd_(fd) {}
	Socket(Socket &&o) noexcept : fd_(o.release()) {}
	Socket &operator=(Socket &&o) noexcept
	{
		std::swap(fd_, o.fd_);
		return *this;
	}
	~Socket();

	int fd() const { return fd_; }
	int release()
	{
		const int fd = fd_;
		fd_ = -1;
		return fd;
	}

private:
	int fd_;
};

Socket listen_on(const std::string &port);
Socket accept_from(const Socket &listener);
Socket connect_to(const std::string &host, const std::string &port);

/**
 * The other side of a case, over TCP. A message is either what the case expects or the reason
 * why the other side gave up, which is thrown here too.
 */
class Peer {
public:
	explicit Peer(Socket socket) : socket_(std::move(socket)) {}

	template <class T>
	requires std::is_trivially_copyable_v<T>
	void send(const T &value) { send_frame(kData, std::as_bytes(std::span(&value, 1))); }

	template <class T>
	requires std::is_trivially_copyable_v<T> T receive()
	{
		T value;
		const auto bytes = receive_frame();
		check(bytes.size() == sizeof(T), "the other side is at another point of the case");
		std::memcpy(&value, bytes.data(), sizeof(T));
		return value;
	}

	/** Gives ours for theirs. */
	template <class T>
	T exchange(const T &value)
	{
		send(value);
		return receive<T>();
	}

	/** Both sides come to @point before either goes on. */
	void barrier(unsigned point)
	{
		const unsigned theirs = exchange(point);
		check(theirs == point, "we are at point %u of the case, the other side at %u",
		      point, theirs);
	}

	/** Tells the other side why we give up. */
	void give_up(const std::string &reason) noexcept;

	/** Whether a message waits. */
	bool readable() const;

private:
	enum Type : unsigned { kData = 1, kFailure = 2 };

	void send_frame(Type type, std::span<const std::byte> bytes);
	std::vector<std::byte> receive_frame();
	void receive_exactly(void *to, size_t size);

	Socket socket_;
};

} // namespace tern::guest
