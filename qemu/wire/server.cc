// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/server.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>

#include "qemu/wire/shared_port.h"
#include "qemu/wire/stream_port.h"
#include "qemu/wire/tap_port.h"

namespace tern::wire {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using namespace std::chrono_literals;

constexpr size_t kMaxPorts = 64;
static_assert(kMaxPorts <= shm::kMaxHosts);
constexpr size_t kMaxRefused = 8;
constexpr size_t kMaxClients = 16;
constexpr size_t kMaxLine = 65536;
/* Connections that a socket accepts before others get their turn. */
constexpr unsigned kAcceptBudget = 8;
constexpr auto kStallCheck = 100ms;
constexpr auto kAcceptRetry = 100ms;
constexpr auto kAcceptErrorInterval = 60s; /* between messages */

/** A client of the control socket. */
class ControlClient final : private Watched {
public:
	ControlClient(Server &server, Fd fd) : server_(server), fd_(std::move(fd))
	{
		gone_ = !server_.loop().watch(fd_.get(), EPOLLIN, *this);
	}
	~ControlClient() override { server_.loop().forget(fd_.get()); }

	bool gone() const { return gone_; }

private:
	void ready(uint32_t) override;
	void receive();
	void send_reply();

	Server &server_;
	const Fd fd_;
	std::string input_;
	std::string reply_; /* what the socket has not taken yet */
	bool gone_ = false;
};

/* Executes further commands only when the client has taken the reply to the last one, so that the
 * replies that wait here stay few. */
void ControlClient::ready(uint32_t)
{
	if (reply_.empty())
		receive();
	else
		send_reply();
	size_t end;
	while (!gone_ && reply_.empty() && (end = input_.find('\n')) != input_.npos) {
		reply_ = server_.execute(std::string_view(input_).substr(0, end)) + '\n';
		input_.erase(0, end + 1);
		send_reply();
	}
	gone_ |= input_.size() > kMaxLine;
	server_.loop().change(fd_.get(), reply_.empty() ? EPOLLIN : EPOLLOUT, *this);
}

void ControlClient::receive()
{
	char bytes[512];
	const ssize_t size = receive_some(fd_, std::as_writable_bytes(std::span(bytes)));
	if (size > 0)
		input_.append(bytes, static_cast<size_t>(size));
	else
		gone_ = size == 0 || (errno != EAGAIN && errno != EINTR);
}

void ControlClient::send_reply()
{
	const ssize_t sent =
	        send(fd_.get(), reply_.data(), reply_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent >= 0)
		reply_.erase(0, static_cast<size_t>(sent));
	else
		gone_ = errno != EAGAIN && errno != EINTR;
}

Server::Server()
        : recorder_(switch_, capture_, fault_log_), control_(switch_, capture_, fault_log_, *this)
{
}

Server::~Server() = default;

void Server::use(fabric::Plan plan)
{
	topology_ = std::make_unique<Topology>(std::move(plan), clock_, switch_, recorder_);
}

std::string Server::listen(const std::string &path)
{
	return listen_for_hosts(path, &Server::add_stream, SOCK_STREAM);
}

std::string Server::listen_for_shared(const std::string &path)
{
	return listen_for_hosts(path, &Server::add_shared, SOCK_SEQPACKET);
}

std::string Server::listen_for_control(const std::string &path)
{
	return open(path, *this, &Server::add_client, SOCK_STREAM);
}

std::string Server::attach_tap(const std::string &name)
{
	if (topology_)
		return "the TAP interfaces of a topology are in its file: [[host]] tap";
	return attach_tap(name, *this);
}

std::string Server::attach_tap(const std::string &name, FrameSink &sink)
{
	Fd fd;
	std::string error = open_tap(name, fd);
	if (error.empty())
		sink.joined(attach(std::make_unique<TapPort>(loop_, sink, std::move(fd), name)));
	return error;
}

std::string Server::attach_taps()
{
	std::string error;
	for (size_t i = 0; topology_ && error.empty() && i < topology_->cards(); i++)
		if (const std::string &name = topology_->tap_of(i); !name.empty())
			error = attach_tap(name, topology_->edge(i));
	return error;
}

std::string Server::listen_for_hosts(const std::string &path, Acceptor::Add add, int type)
{
	if (!topology_)
		return open(path, *this, add, type);
	std::string error;
	for (size_t i = 0; error.empty() && i < topology_->cards(); i++)
		if (topology_->tap_of(i).empty())
			error = open(path + "." + topology_->name_of(i), topology_->edge(i), add,
			             type);
	return error;
}

std::string Server::open(const std::string &path, FrameSink &sink, Acceptor::Add add, int type)
{
	auto acceptor = std::make_unique<Acceptor>(*this, sink, add, type);
	std::string error = acceptor->listener.open(path);
	if (error.empty() && !loop_.watch(acceptor->listener.fd(), EPOLLIN, *acceptor))
		error = path + ": cannot be watched";
	acceptors_.push_back(std::move(acceptor));
	return error;
}

/* The rest is accepted in the next step: a process that connects again and again must not keep the
 * others waiting. */
void Server::Acceptor::ready(uint32_t)
{
	for (unsigned i = 0; i < kAcceptBudget; i++) {
		Fd fd = listener.accept();
		if (!fd) {
			if (errno != EAGAIN && errno != ECONNABORTED)
				server.pause_accepting(*this, errno);
			return;
		}
		(server.*add)(std::move(fd), sink);
	}
}

/* Without descriptors or memory, the connection stays in the queue of its socket, which then is
 * ready in each step: step() would never wait. */
void Server::pause_accepting(Acceptor &acceptor, int error)
{
	const auto now = std::chrono::steady_clock::now();
	if (!accept_error_told_ || now - *accept_error_told_ >= kAcceptErrorInterval) {
		accept_error_told_ = now;
		std::fprintf(stderr, "tern-switch: cannot accept connections: %s\n",
		             std::strerror(error));
	}
	loop_.change(acceptor.listener.fd(), 0, acceptor);
	accept_again_ = now + kAcceptRetry;
}

void Server::resume_accepting()
{
	if (!std::exchange(accept_again_, std::nullopt))
		return;
	for (const auto &acceptor : acceptors_)
		loop_.change(acceptor->listener.fd(), EPOLLIN, *acceptor);
}

/* Connections above the limit are closed at once. */
void Server::add_stream(Fd fd, FrameSink &sink)
{
	if (ports_.size() >= kMaxPorts)
		return;
	Port &port = attach(std::make_unique<StreamPort>(loop_, sink, std::move(fd)));
	sink.joined(port);
}

/* A few more are accepted, to be told that the wire is full. */
void Server::add_shared(Fd fd, FrameSink &sink)
{
	const size_t inbound = topology_ ? kInbound : SharedPort::kInbound;
	if (ports_.size() < kMaxPorts + kMaxRefused)
		attach(std::make_unique<SharedPort>(loop_, sink, switch_, sharing_, std::move(fd),
		                                    inbound));
}

Port &Server::attach(std::unique_ptr<Port> port)
{
	port->id = switch_.attach(*port);
	ports_.push_back(std::move(port));
	return *ports_.back();
}

void Server::add_client(Fd fd, FrameSink &)
{
	if (clients_.size() < kMaxClients)
		clients_.push_back(std::make_unique<ControlClient>(*this, std::move(fd)));
}

static nanoseconds sooner(std::optional<nanoseconds> a, nanoseconds b)
{
	return std::min(a.value_or(b), b);
}

void Server::step(std::optional<int> timeout_ms)
{
	std::optional<nanoseconds> timeout = event_timeout();
	if (timeout_ms)
		timeout = sooner(timeout, milliseconds(*timeout_ms));
	sharing_.begin_step();
	loop_.wait(timeout);
	if (accept_again_ && *accept_again_ <= std::chrono::steady_clock::now())
		resume_accepting();
	if (topology_)
		topology_->advance();
	if (switch_.holds())
		switch_.release_held(std::chrono::steady_clock::now());
	process_ports();
}

std::optional<nanoseconds> Server::event_timeout() const
{
	std::optional<nanoseconds> timeout = port_timeout();
	const auto event = topology_ ? topology_->until_next() : std::nullopt;
	for (const auto &other : {event, accept_timeout()})
		if (other)
			timeout = sooner(timeout, *other);
	return timeout;
}

std::optional<nanoseconds> Server::accept_timeout() const
{
	if (!accept_again_)
		return std::nullopt;
	const nanoseconds left = *accept_again_ - std::chrono::steady_clock::now();
	return std::max(left, nanoseconds(0));
}

std::optional<nanoseconds> Server::port_timeout() const
{
	if (can_resume(ports_) ||
	    std::ranges::any_of(ports_, [](const auto &port) { return port->has_more(); }))
		return 0ms;
	std::optional<nanoseconds> timeout;
	if (std::ranges::any_of(ports_, [](const auto &port) { return port->waiting_for(); }))
		timeout = kStallCheck;
	if (!switch_.holds())
		return timeout;
	const nanoseconds left = switch_.next_due() - std::chrono::steady_clock::now();
	return sooner(timeout, std::max(left, nanoseconds(0)));
}

/* After events: writes all ports, resumes those that waited, and removes dead ones. */
void Server::process_ports()
{
	for (auto &port : ports_) {
		if (port->has_more())
			port->resume();
	}
	flush_and_resume(ports_, std::chrono::steady_clock::now());
	remove_dead_ports();
	for (auto &port : ports_)
		port->update_interest();
	if (std::erase_if(clients_, [](const auto &client) { return client->gone(); }))
		resume_accepting();
	publish();
}

void Server::publish()
{
	sharing_.publish(switch_, topology_ || capture_.running() || switch_.faults().any() ||
	                                  switch_.holds());
}

std::string Server::execute(std::string_view line)
{
	auto reply = topology_ ? topology_->execute(line) : std::nullopt;
	if (!reply)
		reply = control_.execute(line);
	publish();
	return *reply;
}

/* A dead one is not congested: ports that wait for it resume in the next step, if not in this. */
void Server::remove_dead_ports()
{
	for (auto port = ports_.begin(); port != ports_.end();) {
		if (!(*port)->dead() || is_awaited(**port, ports_)) {
			++port;
			continue;
		}
		detach(**port);
		port = ports_.erase(port);
		resume_accepting(); /* its descriptors are free */
	}
}

void Server::detach(Port &port)
{
	port.sink().left(port);
	switch_.detach(port.id);
	dropped_by_gone_ports_ += port.stats().dropped;
	direct_of_gone_ports_ += port.direct();
}

Waitable *Server::frame_from(Port &port, Frame frame)
{
	Outlet *congested = switch_.forward(port.id, frame, std::chrono::steady_clock::now());
	recorder_.forwarded(port.id, frame);
	return static_cast<Port *>(congested);
}

std::string Server::describe_ports() const
{
	std::ostringstream out;
	out << ports_.size();
	for (const auto &port : ports_) {
		const Port::Stats &stats = port->stats();
		out << "; port=" << port->id;
		if (const Switch::Place &place = switch_.place_of(port->id); place.lanes > 1)
			out << " card=" << place.primary << " lane=" << place.lane;
		out << " rx=" << stats.received << " tx=" << stats.sent
		    << " dropped=" << stats.dropped << " queued=" << port->queued()
		    << " direct=" << port->direct().sent << " macs=";
		const char *separator = "";
		for (const Mac &mac : switch_.addresses_of(port->id)) {
			out << separator << to_string(mac);
			separator = ",";
		}
	}
	return out.str();
}

uint64_t Server::frames_dropped() const
{
	uint64_t dropped = dropped_by_gone_ports_;
	for (const auto &port : ports_)
		dropped += port->stats().dropped;
	return dropped;
}

shm::DirectCounts Server::direct() const
{
	shm::DirectCounts direct = direct_of_gone_ports_;
	for (const auto &port : ports_)
		direct += port->direct();
	return direct;
}

} // namespace tern::wire
