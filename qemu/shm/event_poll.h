/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>

#include "qemu/shm/fd.h"

namespace tern::shm {

/**
 * Waits for descriptors to become ready: a bell rung or a message received. Edge-triggered, so each
 * event counts once, also if it came while nobody waited, and bells need not be read.
 */
class EventPoll {
public:
	EventPoll();

	enum class News { Bell, Message };
	/** @fd: a bell, the listener of one, or a socket. Returns false, with the cause in errno,
	 * if wait() would not hear of it. */
	bool watch(int fd, News news) const;
	/** Call before closing a descriptor that other processes may hold open. */
	void forget(int fd) const;
	/** Waits at most @timeout_ns; none: no limit. Returns true if there is a message. */
	bool wait(std::optional<uint64_t> timeout_ns) const;

private:
	const Fd epoll_;
};

} // namespace tern::shm
