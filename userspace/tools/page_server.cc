// SPDX-License-Identifier: GPL-2.0-or-later
#include "page_server.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

#include "options.h"

namespace tern::tools {

namespace {

constexpr int kMaxReads = 8; /* of a request, each of which may take the limit of time */

/* The head of a request; less if the client stops or sends too much. */
std::string read_head(int client)
{
	std::string head;
	char bytes[1024];

	for (int i = 0; i < kMaxReads && head.find("\r\n\r\n") == std::string::npos; i++) {
		const ssize_t got = recv(client, bytes, sizeof(bytes), 0);
		if (got <= 0)
			break;
		head.append(bytes, static_cast<size_t>(got));
	}
	return head;
}

std::string response(const std::string &status, const std::string &body)
{
	return "HTTP/1.0 " + status +
	       "\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: " +
	       std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
}

void send_all(int client, const std::string &bytes)
{
	for (size_t sent = 0; sent < bytes.size();) {
		const ssize_t now =
		        send(client, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
		if (now <= 0)
			return;
		sent += static_cast<size_t>(now);
	}
}

} // namespace

PageServer::PageServer(const std::string &address, uint16_t port)
        : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))
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
	const int client = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
	const timeval limit{.tv_sec = 1, .tv_usec = 0};

	if (client < 0)
		return;
	setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	const bool get = read_head(client).starts_with("GET ");
	send_all(client, get ? response("200 OK", page)
	                     : response("405 Method Not Allowed", "only GET is known\n"));
	close(client);
}

} // namespace tern::tools
