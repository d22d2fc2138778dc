// SPDX-License-Identifier: GPL-2.0-or-later
/* Messages of one size between two sockets of a family:
 *	tern_messages FAMILY SIZE serve ADDRESS
 *	tern_messages FAMILY SIZE echo|send ADDRESS PEER DEPTH SECONDS
 * The family is tcp, smc or rds. The client prints messages per second: of echo those that came
 * back, with DEPTH under way; of send those that the server has received. */
#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSmcFamily = 43; // AF_SMC
constexpr uint16_t kServerPort = 9997;
constexpr uint16_t kClientPort = 9996; // RDS has no port of its own choice

/* The first byte of a message. */
enum class Kind : char { OneWay, Echo, End };

long check(long result, const char *what)
{
	if (result < 0)
		throw std::system_error(errno, std::generic_category(), what);
	return result;
}

sockaddr_in address_of(const std::string &text, uint16_t port)
{
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_port = htons(port);
	if (inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1)
		throw std::runtime_error(text + " is no IPv4 address");
	return address;
}

const sockaddr *generic(const sockaddr_in &address)
{
	return reinterpret_cast<const sockaddr *>(&address);
}

/** Moves messages of one size. */
class Socket {
public:
	Socket(std::string_view family, size_t size)
	        : rds_(family == "rds"), smc_(family == "smc"), message_(size)
	{
		descriptor_ = static_cast<int>(
		        check(rds_ ? socket(AF_RDS, SOCK_SEQPACKET, 0)
		                   : socket(smc_ ? kSmcFamily : AF_INET, SOCK_STREAM, 0),
		              "socket"));
		/* RDS refuses a message that is longer than half of it. */
		const int buffer = static_cast<int>(2 * size);
		if (rds_)
			check(setsockopt(descriptor_, SOL_SOCKET, SO_SNDBUF, &buffer,
			                 sizeof(buffer)),
			      "SO_SNDBUF");
	}

	/** Waits for a client, unless the family has no connections. */
	void listen_at(const sockaddr_in &own)
	{
		const int on = 1;
		setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		check(bind(descriptor_, generic(own), sizeof(own)), "bind");
		if (!rds_)
			check(listen(descriptor_, 1), "listen");
		std::puts("ready");
		std::fflush(stdout);
		if (rds_)
			return;
		descriptor_ =
		        static_cast<int>(check(accept(descriptor_, nullptr, nullptr), "accept"));
		send_at_once();
	}

	void connect_to(const sockaddr_in &own, const sockaddr_in &peer)
	{
		peer_ = peer;
		if (rds_) {
			check(bind(descriptor_, generic(own), sizeof(own)), "bind");
			return;
		}
		check(connect(descriptor_, generic(peer), sizeof(peer)), "connect");
		send_at_once();
	}

	void put(Kind kind)
	{
		message_[0] = static_cast<char>(kind);
		for (size_t done = 0; done < message_.size();)
			done += rds_ ? put_datagram() : put_bytes(done);
	}

	Kind get()
	{
		for (size_t done = 0; done < message_.size();)
			done += get_bytes(done);
		return static_cast<Kind>(message_[0]);
	}

	/** Returns when the client has closed. SMC drops what a process that exits has not sent
	 * yet.
	 */
	void await_close()
	{
		if (!rds_)
			check(recv(descriptor_, message_.data(), message_.size(), 0), "recv");
	}

	/** SMC may fall back to TCP, whose connection carries nothing but the handshake otherwise.
	 */
	void check_family() const
	{
		tcp_info info{};
		socklen_t size = sizeof(info);
		if (!smc_)
			return;
		check(getsockopt(descriptor_, IPPROTO_TCP, TCP_INFO, &info, &size), "TCP_INFO");
		if (info.tcpi_bytes_acked > message_.size())
			throw std::runtime_error("SMC has fallen back to TCP");
	}

private:
	void send_at_once() const
	{
		const int on = 1;
		check(setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)),
		      "TCP_NODELAY");
	}

	size_t put_bytes(size_t done) const
	{
		return static_cast<size_t>(
		        check(send(descriptor_, message_.data() + done, message_.size() - done, 0),
		              "send"));
	}

	size_t put_datagram() const
	{
		return static_cast<size_t>(
		        check(sendto(descriptor_, message_.data(), message_.size(), 0,
		                     generic(peer_), sizeof(peer_)),
		              "sendto"));
	}

	/* The sender of a datagram is where the answer goes. */
	size_t get_bytes(size_t done)
	{
		socklen_t size = sizeof(peer_);
		const long got =
		        check(recvfrom(descriptor_, message_.data() + done, message_.size() - done,
		                       0, reinterpret_cast<sockaddr *>(&peer_), &size),
		              "recvfrom");
		if (!got)
			throw std::runtime_error("the peer has gone");
		return static_cast<size_t>(got);
	}

	const bool rds_, smc_;
	int descriptor_;
	sockaddr_in peer_{};
	std::vector<char> message_;
};

void serve(Socket &socket)
{
	Kind kind;
	do {
		kind = socket.get();
		if (kind != Kind::OneWay)
			socket.put(kind);
	} while (kind != Kind::End);
	socket.await_close();
}

size_t echo(Socket &socket, size_t depth, Clock::time_point end)
{
	size_t done = 0;
	for (size_t i = 0; i < depth; i++)
		socket.put(Kind::Echo);
	for (; Clock::now() < end; done++) {
		socket.get();
		socket.put(Kind::Echo);
	}
	for (size_t i = 0; i < depth; i++, done++)
		socket.get();
	return done;
}

size_t send(Socket &socket, Clock::time_point end)
{
	size_t done = 0;
	for (; Clock::now() < end; done++)
		socket.put(Kind::OneWay);
	return done;
}

void ask(Socket &socket, std::string_view what, size_t depth, std::chrono::seconds duration)
{
	/* A connection's first message sets up more than itself. */
	socket.put(Kind::Echo);
	socket.get();
	const auto begin = Clock::now();
	const size_t done = what == "echo" ? echo(socket, depth, begin + duration)
	                                   : send(socket, begin + duration);
	socket.put(Kind::End);
	socket.get();
	const std::chrono::duration<double> took = Clock::now() - begin;
	socket.check_family();
	std::printf("%.1f\n", static_cast<double>(done) / took.count());
}

void run(std::span<char *> arguments)
{
	const std::string_view what = arguments[3];
	Socket socket(arguments[1], std::stoul(arguments[2]));
	if (what == "serve") {
		socket.listen_at(address_of(arguments[4], kServerPort));
		serve(socket);
		return;
	}
	socket.connect_to(address_of(arguments[4], kClientPort),
	                  address_of(arguments[5], kServerPort));
	ask(socket, what, std::stoul(arguments[6]), std::chrono::seconds(std::stoul(arguments[7])));
}

} // namespace

int main(int argc, char **argv)
{
	if (argc != 5 && argc != 8) {
		std::fprintf(stderr,
		             "usage: %s FAMILY SIZE serve ADDRESS | echo|send ADDRESS PEER DEPTH "
		             "SECONDS\n",
		             argv[0]);
		return 2;
	}
	try {
		run({argv, static_cast<size_t>(argc)});
	} catch (const std::exception &e) {
		std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
		return 1;
	}
	return 0;
}
