// SPDX-License-Identifier: GPL-2.0-or-later
#include "page_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "options.h"

using namespace tern::tools;

namespace {

uint16_t port_of(const PageServer &server)
{
	sockaddr_in where{};
	socklen_t size = sizeof(where);
	getsockname(server.fd(), reinterpret_cast<sockaddr *>(&where), &size);
	return ntohs(where.sin_port);
}

/* What the server answers to @request, with page "tern 1\n". */
std::string ask(const PageServer &server, const std::string &request)
{
	const int client = socket(AF_INET, SOCK_STREAM, 0);
	sockaddr_in where{};
	where.sin_family = AF_INET;
	where.sin_port = htons(port_of(server));
	where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	EXPECT_EQ(connect(client, reinterpret_cast<sockaddr *>(&where), sizeof(where)), 0);
	EXPECT_EQ(send(client, request.data(), request.size(), 0),
	          static_cast<ssize_t>(request.size()));
	server.answer("tern 1\n");

	std::string said;
	char bytes[512];
	for (ssize_t got; (got = recv(client, bytes, sizeof(bytes), 0)) > 0;)
		said.append(bytes, static_cast<size_t>(got));
	close(client);
	return said;
}

TEST(PageServer, AnswersGetWithThePage)
{
	const PageServer server("127.0.0.1", 0);
	const std::string said = ask(server, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");

	EXPECT_TRUE(said.starts_with("HTTP/1.0 200 OK\r\n")) << said;
	EXPECT_TRUE(said.ends_with("Content-Length: 7\r\nConnection: close\r\n\r\ntern 1\n"))
	        << said;
}

TEST(PageServer, RefusesOtherMethods)
{
	const PageServer server("127.0.0.1", 0);

	EXPECT_TRUE(ask(server, "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.0 405 "));
}

TEST(PageServer, RefusesAddressesAndPortsInUse)
{
	const PageServer server("127.0.0.1", 0);

	EXPECT_THROW(PageServer("localhost", 0), UsageError);
	EXPECT_THROW(PageServer("127.0.0.1", port_of(server)), Error);
}

} // namespace
