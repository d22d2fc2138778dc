// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/shm/event_poll.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <span>
#include <sys/epoll.h>

namespace tern::shm {

/* The next wait() reports any others. */
constexpr size_t kAtOnce = 16;

EventPoll::EventPoll() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

bool EventPoll::watch(int fd, News news) const
{
	epoll_event event{.events = EPOLLIN | EPOLLET,
	                  .data = {.u32 = static_cast<uint32_t>(news)}};
	return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void EventPoll::forget(int fd) const
{
	epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

bool EventPoll::wait(std::optional<uint64_t> timeout_ns) const
{
	constexpr uint64_t kSecond = 1'000'000'000;
	std::array<epoll_event, kAtOnce> events;
	timespec timeout{};
	if (timeout_ns) {
		timeout.tv_sec = static_cast<time_t>(*timeout_ns / kSecond);
		timeout.tv_nsec = static_cast<long>(*timeout_ns % kSecond);
	}
	const int count = epoll_pwait2(epoll_.get(), events.data(), events.size(),
	                               timeout_ns ? &timeout : nullptr, nullptr);
	return std::ranges::any_of(std::span(events).first(static_cast<size_t>(std::max(count, 0))),
	                           [](const epoll_event &event) {
		                           return event.data.u32 ==
		                                  static_cast<uint32_t>(News::Message);
	                           });
}

} // namespace tern::shm
