// SPDX-License-Identifier: GPL-2.0-or-later
#include "page_server.h"

#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <thread>
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

/* A socket that is connected to the server; its receive buffer has @room bytes if not zero. */
int connect_to(const PageServer &server, int room = 0)
{
	const int client = socket(AF_INET, SOCK_STREAM, 0);
	sockaddr_in where{};
	where.sin_family = AF_INET;
	where.sin_port = htons(port_of(server));
	where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (room)
		setsockopt(client, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	EXPECT_EQ(connect(client, reinterpret_cast<sockaddr *>(&where), sizeof(where)), 0);
	return client;
}

/* What the server answers to @request, with page "tern 1\n". */
std::string ask(const PageServer &server, const std::string &request)
{
	const int client = connect_to(server);
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

/* It takes a byte at a time, so that each send() makes progress, and there would be no end. */
TEST(PageServer, GivesUpOnAClientThatReadsSlowly)
{
	const PageServer server("127.0.0.1", 0, std::chrono::milliseconds(100));
	const std::string page(16 << 20, 'x'), request = "GET / HTTP/1.0\r\n\r\n";
	const int client = connect_to(server, 2048);
	std::atomic<bool> answered = false;
	size_t all = 0;

	send(client, request.data(), request.size(), 0);
	std::thread reader([&] {
		static char bytes[1 << 16];
		for (ssize_t got; (got = recv(client, bytes, answered ? sizeof(bytes) : 1, 0)) > 0;)
			all += static_cast<size_t>(got);
	});
	server.answer(page);
	answered = true;
	reader.join();
	EXPECT_LT(all, page.size());
	close(client);
}

TEST(PageServer, GivesUpOnAClientThatAsksNothing)
{
	const PageServer server("127.0.0.1", 0, std::chrono::milliseconds(1));
	const int client = connect_to(server);
	char bytes[64];

	server.answer("tern 1\n");
	EXPECT_EQ(recv(client, bytes, sizeof(bytes), 0), 0) << "closed, without an answer";
	close(client);
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
