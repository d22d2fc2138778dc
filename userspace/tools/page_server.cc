// SPDX-License-Identifier: GPL-2.0-or-later
#include "page_server.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "options.h"

namespace tern::tools {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxHead = 8192;

/* A connection whose reads and writes fail when the time of its client is over. */
class Client {
public:
	Client(int fd, Clock::duration limit) : fd_(fd), end_(Clock::now() + limit) {}
	~Client() { close(fd_); }
	Client(const Client &) = delete;
	Client &operator=(const Client &) = delete;

	/** The head of a request; less if the client stops or sends too much. */
	std::string read_head() const;
	void send_all(const std::string &bytes) const;

private:
	/* Until the socket is ready for @events. False if that takes too long. */
	bool wait(short events) const;

	const int fd_;
	const Clock::time_point end_;
};

bool Client::wait(short events) const
{
	const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
	pollfd wanted{.fd = fd_, .events = events, .revents = 0};

	return left.count() > 0 && poll(&wanted, 1, static_cast<int>(left.count())) == 1;
}

std::string Client::read_head() const
{
	std::string head;
	char bytes[1024];

	while (head.size() < kMaxHead && head.find("\r\n\r\n") == std::string::npos &&
	       wait(POLLIN)) {
		const ssize_t got = recv(fd_, bytes, sizeof(bytes), 0);
		if (got <= 0)
			break;
		head.append(bytes, static_cast<size_t>(got));
	}
	return head;
}

void Client::send_all(const std::string &bytes) const
{
	for (size_t sent = 0; sent < bytes.size() && wait(POLLOUT);) {
		const ssize_t now =
		        send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
		if (now <= 0)
			return;
		sent += static_cast<size_t>(now);
	}
}

std::string response(const std::string &status, const std::string &body)
{
	return "HTTP/1.0 " + status +
	       "\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: " +
	       std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
}

} // namespace

PageServer::PageServer(const std::string &address, uint16_t port, std::chrono::milliseconds limit)
        : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), limit_(limit)
{
	sockaddr_in where{};
	const int on = 1;

	where.sin_family = AF_INET;
	where.sin_port = htons(port);
	if (inet_pton(AF_INET, address.c_str(), &where.sin_addr) != 1) {
		close(fd_);
		throw UsageError("--listen takes [IPV4-ADDRESS:]PORT, not \"" + address + "\"");
	}
	setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd_, reinterpret_cast<sockaddr *>(&where), sizeof(where)) || listen(fd_, 16)) {
		const int error = errno;
		close(fd_);
		throw Error("cannot listen on " + address + ":" + std::to_string(port) + ": " +
		            std::strerror(error));
	}
}

PageServer::~PageServer()
{
	close(fd_);
}

void PageServer::answer(const std::string &page) const
{
	const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	const Client client(fd, limit_);
	const bool get = client.read_head().starts_with("GET ");
	client.send_all(get ? response("200 OK", page)
	                    : response("405 Method Not Allowed", "only GET is known\n"));
}

} // namespace tern::tools
