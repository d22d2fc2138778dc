// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/vfio/channel.h"

#include <cerrno>
#include <poll.h>
#include <sys/socket.h>

namespace tern::vfio {

bool Channel::fail(std::string error)
{
	error_ = std::move(error);
	return false;
}

bool Channel::wait(short events)
{
	pollfd fds[] = {{.fd = socket_.get(), .events = events, .revents = 0},
	                {.fd = stop_, .events = POLLIN, .revents = 0}};
	for (;;) {
		const int ready = poll(fds, 2, -1);
		if (ready < 0 && errno == EINTR)
			continue;
		return ready > 0 && !fds[1].revents;
	}
}

/* Reads exactly to.size() bytes, and the descriptors that come with them. @begun is true if a part
 * of the message has already been read. */
bool Channel::fill(std::span<std::byte> to, std::vector<Fd> &fds, bool begun)
{
	while (!to.empty()) {
		if (!wait(POLLIN))
			return false;
		const auto [size, whole] = receive_some(socket_, to, fds);
		if (size < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (size < 0)
			return fail(std::string("connection lost: ") + std::strerror(errno));
		if (!size)
			return begun && fail("the client has gone amid a message");
		if (!whole)
			return fail("descriptors of the client were lost: too many are open");
		if (fds.size() > kMaxFds)
			return fail("the client sends too many descriptors with a message");
		to = to.subspan(static_cast<size_t>(size));
		begun = true;
	}
	return true;
}

std::optional<Message> Channel::receive()
{
	Message message;
	if (!fill(std::as_writable_bytes(std::span(&message.header, 1)), message.fds, false))
		return std::nullopt;
	const uint32_t size = message.header.size;
	if (size < sizeof(Header) || size > kMaxMessage) {
		fail("the client sends a message of " + std::to_string(size) + " bytes");
		return std::nullopt;
	}
	message.data.resize(size - sizeof(Header));
	if (!fill(message.data, message.fds, true))
		return std::nullopt;
	return message;
}

bool Channel::send(const Header &request, const Reply &reply)
{
	std::vector<std::byte> bytes(sizeof(Header));
	if (!reply.error)
		bytes.insert(bytes.end(), reply.data.begin(), reply.data.end());
	const Header header{.id = request.id,
	                    .command = request.command,
	                    .size = static_cast<uint32_t>(bytes.size()),
	                    .flags = kTypeReply | (reply.error ? kError : 0),
	                    .error = static_cast<uint32_t>(reply.error)};
	std::memcpy(bytes.data(), &header, sizeof(header));

	bool with_fd = !reply.error && reply.fd >= 0;
	for (std::span<std::byte> left(bytes); !left.empty();) {
		iovec body{left.data(), left.size()};
		alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))]{};
		msghdr to{};
		to.msg_iov = &body;
		to.msg_iovlen = 1;
		if (with_fd)
			attach_fds(to, control, std::span(&reply.fd, 1));
		if (!wait(POLLOUT))
			return false;
		const ssize_t size = sendmsg(socket_.get(), &to, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (size < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (size < 0)
			return fail(std::string("connection lost: ") + std::strerror(errno));
		with_fd = false;
		left = left.subspan(static_cast<size_t>(size));
	}
	return true;
}

} // namespace tern::vfio
