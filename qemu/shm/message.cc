// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/shm/message.h"

#include <algorithm>
#include <cerrno>
#include <sys/socket.h>

namespace tern::shm {

constexpr size_t kControlSize = CMSG_SPACE(kMaxFds * sizeof(int));

Message refusal(const std::string &reason)
{
	Message message{.kind = Message::Kind::Refused};
	reason.copy(message.reason, sizeof(message.reason) - 1);
	return message;
}

bool ram_fits(const Message &message)
{
	uint64_t left = kMaxRam;
	for (const uint64_t size : std::span(message.block_sizes).first(message.blocks)) {
		if (size > left)
			return false;
		left -= size;
	}
	return true;
}

bool send_message(const Fd &socket, const Message &message, std::span<const int> fds)
{
	iovec body{const_cast<Message *>(&message), sizeof(message)};
	alignas(cmsghdr) std::byte control[kControlSize]{};
	msghdr header{};
	header.msg_iov = &body;
	header.msg_iovlen = 1;
	if (!fds.empty())
		attach_fds(header, control, fds);
	return sendmsg(socket.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       static_cast<ssize_t>(sizeof(message));
}

Received receive_message(const Fd &socket, Message &message, std::vector<Fd> &fds)
{
	message = {.magic = 0};
	fds.clear();
	const auto [size, whole] =
	        receive_some(socket, std::as_writable_bytes(std::span(&message, 1)), fds);
	if (size < 0)
		return errno == EAGAIN || errno == EINTR ? Received::Nothing : Received::End;
	if (static_cast<size_t>(size) < offsetof(Message, kind) || message.magic != kMagic)
		return Received::End;
	if (message.version != kVersion)
		return Received::Message;
	if (size != sizeof(message) || !whole || fds.size() > kMaxFds ||
	    message.blocks > kMaxBlocks)
		return Received::End;
	message.reason[sizeof(message.reason) - 1] = '\0';
	return Received::Message;
}

} // namespace tern::shm
