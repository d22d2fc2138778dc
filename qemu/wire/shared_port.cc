// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/shared_port.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>

#include "qemu/shm/segment.h"
#include "qemu/wire/shared_hosts.h"

namespace tern::wire {

using shm::Message;

/*
 * Senders wait above kHighWater. Until they do, each may add one frame (twice, when duplicated);
 * the rest of the ring is room for those.
 */
constexpr size_t kRingSize = 2 << 20;
constexpr size_t kHighWater = kRingSize / 2;
static_assert(kHighWater / 2 == kRingSize / 4); /* as Producer::has_room() */
/* Frames that one host may send before others get their turn. */
constexpr unsigned kForwardBudget = 64;

SharedPort::SharedPort(EventLoop &loop, FrameSink &sink, Switch &ethernet, SharedHosts &hosts,
                       Fd socket, size_t inbound)
        : Port(sink, kHighWater), loop_(loop), ethernet_(ethernet), hosts_(hosts),
          socket_(std::move(socket)), inbound_(inbound),
          host_listener_(*this, &SharedPort::receive_from_host),
          bell_listener_(*this, &SharedPort::bell_rung)
{
	dead_ = !from_host_.bell || !to_host_.bell ||
	        !loop_.watch(socket_.get(), EPOLLIN, host_listener_) ||
	        !loop_.watch(from_host_.listener.get(), EPOLLIN | EPOLLET, bell_listener_);
}

SharedPort::~SharedPort()
{
	hosts_.remove(*this);
	loop_.forget(socket_.get());
	loop_.forget(from_host_.listener.get());
}

/* ---- handshake ---------------------------------------------------------------- */

void SharedPort::receive_from_host()
{
	/* The greeting stays in the socket for the next step. */
	if (!admitted_ && !hosts_.may_admit())
		return;
	Message message;
	std::vector<Fd> fds;
	switch (receive_message(socket_, message, fds)) {
	case shm::Received::Nothing:
		return;
	case shm::Received::End:
		dead_ = true;
		return;
	case shm::Received::Message:
		break;
	}
	const std::string error = admitted_ ? handle_renewal(message) : handle_hello(message, fds);
	if (!error.empty())
		refuse(error);
}

/* Admits a host. Returns why not, or empty. */
std::string SharedPort::handle_hello(const Message &hello, std::vector<Fd> &fds)
{
	if (hello.version != shm::kVersion)
		return "this switch speaks version " + std::to_string(shm::kVersion) +
		       " of the protocol, the host " + std::to_string(hello.version);
	if (id >= shm::kMaxHosts)
		return "the wire is full";
	if (hello.kind != Message::Kind::Hello || fds.size() != hello.blocks)
		return "that is no greeting";
	if (!ram_fits(hello))
		return "that is more RAM than a host may share";
	for (uint32_t i = 0; i < hello.blocks; i++) {
		const std::string error = shm::check_segment(fds[i].get(), hello.block_sizes[i]);
		if (!error.empty())
			return "RAM block " + std::to_string(i) + " is " + error;
		blocks_.push_back({std::move(fds[i]), hello.block_sizes[i]});
	}
	if (std::string error = ethernet_.place(id, hello.card, hello.lane); !error.empty())
		return error;
	if (std::string error = open_rings(); !error.empty())
		return error;
	admitted_ = true;
	hosts_.add(*this);
	sink().joined(*this);
	return {};
}

std::string SharedPort::open_rings()
{
	const Fd to_host = shm::RingEnd::make(kRingSize);
	const Fd from_host = shm::RingEnd::make(inbound_);
	const Fd page = hosts_.address_page();
	if (!to_host || !from_host || !page)
		return std::string("no memory for rings: ") + std::strerror(errno);
	std::string error = out_.open(to_host, to_host_.bell);
	if (error.empty())
		error = in_.open(from_host, to_host_.bell);
	if (!error.empty())
		return error;
	in_.sleeps(0);
	const int fds[shm::kWelcomeFds] = {page.get(), to_host_.listener.get(),
	                                   from_host_.bell.fd(), to_host.get(), from_host.get()};
	send_to_host({.kind = Message::Kind::Welcome, .id = id}, fds);
	/* These are the host's alone. */
	to_host_.listener = Fd();
	from_host_.bell = shm::Bell();
	return {};
}

/* Handles a message of an admitted host. Returns why to disconnect it, or empty. */
std::string SharedPort::handle_renewal(const Message &message)
{
	if (message.version != shm::kVersion || message.kind != Message::Kind::Renew)
		return "that is nothing to say after a greeting";
	hosts_.renew(*this, message.id);
	return {};
}

void SharedPort::refuse(const std::string &reason)
{
	send_to_host(shm::refusal(reason), {});
	dead_ = true;
}

/* A host that does not read its messages is disconnected. */
void SharedPort::send_to_host(const Message &message, std::span<const int> fds)
{
	dead_ |= !send_message(socket_, message, fds);
}

/* The kernel counts the descriptors that are on their way between processes for each user. If there
 * are too many, other hosts may be those that do not read theirs. */
bool SharedPort::offer_to_host(const Message &message, std::span<const int> fds)
{
	if (send_message(socket_, message, fds))
		return true;
	dead_ |= errno != ETOOMANYREFS;
	return false;
}

/* ---- frames --------------------------------------------------------------------- */

bool SharedPort::deliver(Frame frame)
{
	if (dead_ || !admitted_)
		return true;
	if (given_up_ || frame.size() > shm::kMaxEntry || !out_.put(shm::kWhole, frame)) {
		stats_.dropped++;
		return given_up_;
	}
	stats_.sent++;
	out_.announce();
	queued_ = out_.used();
	return has_room();
}

void SharedPort::flush()
{
	if (!admitted_)
		return;
	dead_ |= in_.broken() || out_.broken() || in_.closed() || out_.closed();
	queued_ = out_.used();
	if (!out_.has_room() && out_.await_room())
		queued_ = out_.used();
	note_queued();
}

void SharedPort::forward_frames()
{
	if (!admitted_ || dead_)
		return;
	more_ = false;
	for (unsigned i = 0; i < kForwardBudget && !waiting_for_; i++) {
		const auto entry = in_.take(frame_);
		if (entry) {
			/* Lent entries are not valid in rings to the switch. */
			if (entry->state == shm::kWhole)
				hand_on(entry->bytes);
			in_.done();
			continue;
		}
		in_.sleeps(0);
		/* Either this side sees the frame, or the sender sees that this side sleeps. */
		std::atomic_thread_fence(std::memory_order_seq_cst);
		if (in_.empty())
			return;
		in_.awake();
	}
	/* Continue after the other ports had their turn. */
	more_ = !waiting_for_;
}

} // namespace tern::wire
