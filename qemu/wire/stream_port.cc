// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/stream_port.h"

#include <cerrno>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace tern::wire {

/*
 * Senders wait above kHighWater. Until they do, each may add one frame (twice, when duplicated);
 * the rest of the queue is room for those.
 */
constexpr size_t kQueueSize = 4 << 20;
constexpr size_t kHighWater = 512 << 10;
/* Frames that one host may send before others get their turn. */
constexpr unsigned kForwardBudget = 64;

StreamPort::StreamPort(EventLoop &loop, FrameSink &sink, Fd fd)
        : Port(sink, kHighWater), loop_(loop), fd_(std::move(fd)), queue_(kQueueSize),
          interest_(EPOLLIN)
{
	dead_ = !loop_.watch(fd_.get(), interest_, *this);
}

StreamPort::~StreamPort()
{
	loop_.forget(fd_.get());
}

bool StreamPort::deliver(Frame frame)
{
	if (dead_)
		return true;
	if (given_up_ || !queue_.push(frame)) {
		stats_.dropped++;
		return given_up_;
	}
	stats_.sent++;
	if (!has_room())
		flush();
	return has_room();
}

void StreamPort::flush()
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
			break;
		}
		queue_.written(static_cast<size_t>(written));
	}
	note_queued();
}

void StreamPort::update_interest()
{
	const uint32_t interest = (waiting_for_ ? 0u : EPOLLIN) | (queue_.empty() ? 0u : EPOLLOUT);
	if (interest == interest_ || dead_)
		return;
	interest_ = interest;
	loop_.change(fd_.get(), interest, *this);
}

void StreamPort::ready(uint32_t events)
{
	if (events & EPOLLIN)
		read();
	else if (events & (EPOLLHUP | EPOLLERR))
		dead_ = true;
	if (events & EPOLLOUT)
		flush();
}

void StreamPort::read()
{
	if (waiting_for_ || more_ || dead_)
		return;
	const std::span<std::byte> room = reader_.room();
	const ssize_t size = receive_some(fd_, room);
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

void StreamPort::forward_frames()
{
	more_ = false;
	for (unsigned i = 0; i < kForwardBudget && !waiting_for_ && !dead_; i++) {
		const auto frame = reader_.next();
		if (!frame) {
			dead_ |= reader_.broken();
			return;
		}
		hand_on(*frame);
	}
	/* Continue after the other ports had their turn. */
	more_ = !waiting_for_;
}

} // namespace tern::wire
