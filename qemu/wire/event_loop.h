/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "qemu/wire/unix_socket.h"

namespace tern::wire {

/** The handler of a file descriptor in the event loop. */
class Watched {
public:
	virtual ~Watched() = default;
	/** @events: as in epoll. */
	virtual void ready(uint32_t events) = 0;
};

/** A level-triggered epoll loop. */
class EventLoop {
public:
	EventLoop();

	bool watch(int fd, uint32_t events, Watched &watched);
	void change(int fd, uint32_t events, Watched &watched);
	void forget(int fd);

	/**
	 * Waits for events, at most @timeout, and calls their handlers. No handler may be destroyed
	 * meanwhile.
	 */
	void wait(std::optional<std::chrono::nanoseconds> timeout);

private:
	Fd epoll_;
};

} // namespace tern::wire
