// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/event_loop.h"

#include <sys/epoll.h>

namespace tern::wire {

constexpr int kEventsAtOnce = 64;

EventLoop::EventLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

bool EventLoop::watch(int fd, uint32_t events, Watched &watched)
{
	epoll_event event{.events = events, .data = {.ptr = &watched}};
	return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void EventLoop::change(int fd, uint32_t events, Watched &watched)
{
	epoll_event event{.events = events, .data = {.ptr = &watched}};
	epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::forget(int fd)
{
	epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::wait(std::optional<std::chrono::nanoseconds> timeout)
{
	using namespace std::chrono;
	const auto ns = timeout.value_or(nanoseconds(0));
	const timespec limit{.tv_sec = duration_cast<seconds>(ns).count(),
	                     .tv_nsec = (ns % seconds(1)).count()};
	epoll_event events[kEventsAtOnce];
	const int count = epoll_pwait2(epoll_.get(), events, kEventsAtOnce,
	                               timeout ? &limit : nullptr, nullptr);
	for (int i = 0; i < count; i++)
		static_cast<Watched *>(events[i].data.ptr)->ready(events[i].events);
}

} // namespace tern::wire
