// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/shm/fd.h"

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <linux/sockios.h>
#include <mutex>
#include <sys/ioctl.h>
#include <system_error>
#include <thread>

namespace tern {

namespace {

/* The kernel allows a message this many descriptors (SCM_MAX_FD). recvmsg() closes those for which
 * it has no room. */
constexpr size_t kMaxFdsOfMessage = 253;

/** Closes descriptors in up to kMaxThreads threads. Each thread closes one descriptor at a time. So
 * slow closes delay the others only if all threads are busy with slow ones. */
class Closers {
public:
	/** Throws a std::system_error if there can be no thread for @fd. */
	void add(int fd)
	{
		const std::lock_guard guard(lock_);
		if (!idle_ && threads_ < kMaxThreads) {
			std::thread([this, fd] { run(fd); }).detach();
			threads_++;
			return;
		}
		fds_.push_back(fd);
		if (!idle_)
			return;
		idle_--;
		waking_++;
		added_.notify_one();
	}

private:
	/* A peer chooses how many descriptors take long. Those that find no thread stay open until
	 * another one is closed: they are fewer than RLIMIT_NOFILE, and cost less than threads. */
	static constexpr size_t kMaxThreads = 64;

	[[noreturn]] void run(int fd)
	{
		for (;;) {
			close(fd);
			fd = next();
		}
	}
	int next()
	{
		std::unique_lock guard(lock_);
		if (fds_.size() <= waking_) {
			idle_++;
			added_.wait(guard, [this] { return waking_ > 0; });
			waking_--;
		}
		const int fd = fds_.back();
		fds_.pop_back();
		return fd;
	}

	std::mutex lock_;
	std::condition_variable added_;
	std::vector<int> fds_; /* to be closed */
	size_t threads_ = 0;
	size_t idle_ = 0;   /* threads that wait */
	size_t waking_ = 0; /* those that no longer wait, and have not taken a descriptor yet */
};

/* Whether close() of @fd, a connection that is shut down, closes nothing that its peer has sent.
 * Each message of a stream has bytes; those of other sockets may have descriptors alone. */
bool is_read_empty(int fd)
{
	int type = 0, unread = 0;
	socklen_t size = sizeof(type);
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM &&
	       ioctl(fd, SIOCINQ, &unread) == 0 && unread == 0;
}

void collect_fds(msghdr &message, std::vector<Fd> &fds)
{
	for (cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
			fds.emplace_back(fd, Fd::Origin::Sent);
		}
	}
}

} // namespace

void Fd::close_aside()
{
	if (origin_ == Origin::Connection) {
		/* From then on the peer can send nothing more. */
		shutdown(fd_, SHUT_RDWR);
		if (is_read_empty(fd_)) {
			close(fd_);
			return;
		}
	}
	/* They are never destroyed, as a thread may be in close() when the process ends. */
	static Closers &closers = *new Closers;
	try {
		closers.add(fd_);
	} catch (const std::system_error &) {
		/* There can be no more threads. The descriptor stays open, as close() might block.
		 */
	}
}

ReceivedBytes receive_some(const Fd &socket, std::span<std::byte> to, std::vector<Fd> &fds)
{
	iovec body{to.data(), to.size()};
	alignas(cmsghdr) std::byte control[CMSG_SPACE(kMaxFdsOfMessage * sizeof(int))];
	msghdr header{};
	header.msg_iov = &body;
	header.msg_iovlen = 1;
	header.msg_control = control;
	header.msg_controllen = sizeof(control);
	const ssize_t size = recvmsg(socket.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (size >= 0)
		collect_fds(header, fds);
	return {size, !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC))};
}

ssize_t receive_some(const Fd &socket, std::span<std::byte> to)
{
	std::vector<Fd> fds;
	const ssize_t size = receive_some(socket, to, fds).size;
	if (fds.empty())
		return size;
	errno = EPROTO;
	return -1;
}

void attach_fds(msghdr &message, std::span<std::byte> control, std::span<const int> fds)
{
	message.msg_control = control.data();
	message.msg_controllen = CMSG_SPACE(fds.size_bytes());
	cmsghdr *const rights = CMSG_FIRSTHDR(&message);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(fds.size_bytes());
	std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
}

} // namespace tern
