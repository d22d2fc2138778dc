/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>

#include "qemu/wire/unix_socket.h"

namespace tern::wire {

/** Something with a file descriptor that the loop watches. */
class Watched {
public:
	virtual ~Watched() = default;
	/** @events: of epoll. */
	virtual void ready(uint32_t events) = 0;
};

/** epoll, level-triggered. */
class EventLoop {
public:
	EventLoop();

	bool watch(int fd, uint32_t events, Watched &watched);
	void change(int fd, uint32_t events, Watched &watched);
	void forget(int fd);

	/**
	 * Waits for events, at most @timeout_ms, and tells those concerned. Nobody whom the loop
	 * watches may be destroyed meanwhile.
	 */
	void wait(std::optional<int> timeout_ms);

private:
	Fd epoll_;
};

} // namespace tern::wire
