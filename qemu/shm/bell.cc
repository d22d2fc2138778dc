// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/shm/bell.h"

#include <sys/epoll.h>

namespace tern::shm {

BellPair BellPair::make()
{
	BellPair pair{Bell::make(), Fd(epoll_create1(EPOLL_CLOEXEC))};
	epoll_event event{.events = EPOLLIN, .data = {}};
	if (epoll_ctl(pair.listener.get(), EPOLL_CTL_ADD, pair.bell.fd(), &event))
		return {};
	return pair;
}

} // namespace tern::shm
