// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/shm/fd.h"

#include <cstring>

namespace tern {

void collect_fds(msghdr &message, std::vector<Fd> &fds)
{
	for (cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
			fds.emplace_back(fd);
		}
	}
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
