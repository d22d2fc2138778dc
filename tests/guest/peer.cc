// SPDX-License-Identifier: GPL-2.0-or-later
#include "peer.h"

#include <cerrno>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace tern::guest {

namespace {

constexpr unsigned kMaxFrame = 1 << 16;

struct FreeAddresses {
	void operator()(addrinfo *a) const { freeaddrinfo(a); }
};

std::unique_ptr<addrinfo, FreeAddresses> resolve(const char *host, const std::string &port)
{
	addrinfo hints = {}, *result = nullptr;
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_family = AF_INET;
	hints.ai_flags = host ? 0 : AI_PASSIVE;
	const int err = getaddrinfo(host, port.c_str(), &hints, &result);
	check(!err, "%s: %s", host ? host : "any", gai_strerror(err));
	return std::unique_ptr<addrinfo, FreeAddresses>(result);
}

/* Nobody of a case waits for the other for longer than this. */
void set_patience(int fd)
{
	const timeval patience = {.tv_sec = 120, .tv_usec = 0};
	const int on = 1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

} // namespace

Socket::~Socket()
{
	if (fd_ >= 0)
		close(fd_);
}

Socket listen_on(const std::string &port)
{
	const auto address = resolve(nullptr, port);
	Socket s(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
	const int on = 1;
	setsockopt(s.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	check(!bind(s.fd(), address->ai_addr, address->ai_addrlen) && !listen(s.fd(), 4),
	      "port %s: %s", port.c_str(), std::strerror(errno));
	return s;
}

Socket accept_from(const Socket &listener)
{
	Socket s(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
	check(s.fd() >= 0, "accept: %s", std::strerror(errno));
	set_patience(s.fd());
	return s;
}

Socket connect_to(const std::string &host, const std::string &port)
{
	const auto address = resolve(host.c_str(), port);
	Socket s(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
	check(!connect(s.fd(), address->ai_addr, address->ai_addrlen), "%s port %s: %s",
	      host.c_str(), port.c_str(), std::strerror(errno));
	set_patience(s.fd());
	return s;
}

void Peer::send_frame(Type type, std::span<const std::byte> bytes)
{
	const unsigned header[2] = {type, static_cast<unsigned>(bytes.size())};
	const auto head = std::as_bytes(std::span(header));
	std::vector<std::byte> frame(head.begin(), head.end());
	frame.insert(frame.end(), bytes.begin(), bytes.end());
	for (size_t done = 0; done < frame.size();) {
		const ssize_t n = ::send(socket_.fd(), frame.data() + done, frame.size() - done,
		                         MSG_NOSIGNAL);
		check(n > 0, "the other side is gone: %s", std::strerror(errno));
		done += static_cast<size_t>(n);
	}
}

void Peer::receive_exactly(void *to, size_t size)
{
	auto *p = static_cast<std::byte *>(to);
	while (size) {
		const ssize_t n = recv(socket_.fd(), p, size, 0);
		/* Linux 7.2 was seen to interrupt recv() while another thread forked, without a
		 * signal handler. */
		if (n < 0 && errno == EINTR)
			continue;
		check(n >= 0, "the other side is silent: %s", std::strerror(errno));
		check(n > 0, "the other side hung up");
		p += n;
		size -= static_cast<size_t>(n);
	}
}

std::vector<std::byte> Peer::receive_frame()
{
	unsigned header[2];
	receive_exactly(header, sizeof(header));
	check(header[1] <= kMaxFrame, "garbage on the control connection");
	std::vector<std::byte> bytes(header[1]);
	receive_exactly(bytes.data(), bytes.size());
	if (header[0] == kFailure)
		throw CheckFailed(
		        "other side: " +
		        std::string(reinterpret_cast<char *>(bytes.data()), bytes.size()));
	return bytes;
}

void Peer::give_up(const std::string &reason) noexcept
{
	try {
		send_frame(kFailure, std::as_bytes(std::span(reason)));
	} catch (const std::exception &) {
		/* It has given up itself. */
	}
}

bool Peer::readable() const
{
	pollfd p = {.fd = socket_.fd(), .events = POLLIN, .revents = 0};
	return poll(&p, 1, 0) > 0;
}

} // namespace tern::guest
