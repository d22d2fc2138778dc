/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>

#include "qemu/shm/fd.h"

namespace tern::shm {

/**
 * Where a thread sleeps until a descriptor has news: a bell has rung, a message has come. Each
 * counts once, also when it came while nobody slept, so no bell has to be read to silence it.
 */
class EventPoll {
public:
	EventPoll();

	enum class News { Bell, Message };
	void watch(int fd, News news) const;
	/** Before closing what others may hold open. */
	void forget(int fd) const;
	/** At most @timeout_ns; none: for ever. True: there is a message. */
	bool wait(std::optional<uint64_t> timeout_ns) const;

private:
	const Fd epoll_;
};

} // namespace tern::shm
