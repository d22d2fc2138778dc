// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/port.h"

#include <cerrno>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace tern::wire {

/*
 * From kHighWater on, senders wait. Until they do, each may add what it has of
 * one frame (twice, when duplicated), so the rest is room for those.
 */
constexpr size_t kQueueSize = 4 << 20;
constexpr size_t kHighWater = 512 << 10;
constexpr size_t kLowWater = kHighWater / 2;

Port::Port(EventLoop &loop, FrameSink &sink, Fd fd)
        : loop_(loop), sink_(sink), fd_(std::move(fd)), queue_(kQueueSize), interest_(EPOLLIN),
          last_progress_(std::chrono::steady_clock::now())
{
	dead_ = !loop_.watch(fd_.get(), interest_, *this);
}

Port::~Port()
{
	loop_.forget(fd_.get());
}

bool Port::deliver(Frame frame)
{
	if (dead_)
		return true;
	if (given_up_ || !queue_.push(frame)) {
		stats_.dropped++;
		return given_up_;
	}
	stats_.sent++;
	if (queue_.size() >= kHighWater)
		flush();
	return queue_.size() < kHighWater;
}

void Port::flush()
{
	while (!queue_.empty() && !dead_) {
		auto pieces = queue_.pieces();
		msghdr message{};
		message.msg_iov = pieces.data();
		message.msg_iovlen = pieces[1].iov_len ? 2 : 1;
		const ssize_t written = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (written < 0) {
			if (errno == EINTR)
				continue;
			dead_ = errno != EAGAIN;
			return;
		}
		queue_.written(static_cast<size_t>(written));
		last_progress_ = std::chrono::steady_clock::now();
	}
	given_up_ = given_up_ && queue_.size() > kLowWater;
}

void Port::update_interest()
{
	const uint32_t interest = (waiting_for_ ? 0u : EPOLLIN) | (queue_.empty() ? 0u : EPOLLOUT);
	if (interest == interest_ || dead_)
		return;
	interest_ = interest;
	loop_.change(fd_.get(), interest, *this);
}

bool Port::congested() const
{
	return !dead_ && !given_up_ && queue_.size() > kLowWater;
}

void Port::give_up_if_idle_since(SteadyTime limit)
{
	if (congested() && last_progress_ < limit)
		given_up_ = true;
}

void Port::resume()
{
	waiting_for_ = nullptr;
	forward_frames();
}

void Port::ready(uint32_t events)
{
	if (events & EPOLLIN)
		read();
	else if (events & (EPOLLHUP | EPOLLERR))
		dead_ = true;
	if (events & EPOLLOUT)
		flush();
}

void Port::read()
{
	if (waiting_for_ || dead_)
		return;
	const std::span<std::byte> room = reader_.room();
	const ssize_t size = recv(fd_.get(), room.data(), room.size(), MSG_DONTWAIT);
	if (size < 0) {
		dead_ = errno != EAGAIN && errno != EINTR;
		return;
	}
	if (size == 0) {
		dead_ = true;
		return;
	}
	reader_.filled(static_cast<size_t>(size));
	forward_frames();
}

void Port::forward_frames()
{
	while (!waiting_for_ && !dead_) {
		const auto frame = reader_.next();
		if (!frame)
			break;
		stats_.received++;
		waiting_for_ = sink_.frame_from(*this, *frame);
	}
	if (reader_.broken())
		dead_ = true;
}

} // namespace tern::wire
