/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <sys/eventfd.h>

#include "qemu/shm/fd.h"

namespace tern::shm {

/**
 * An eventfd that wakes a process waiting for it. Its descriptor is not shared with that process,
 * which could clear O_NONBLOCK in the file description and fill the counter: then ring() would
 * block.
 */
class Bell {
public:
	Bell() = default;
	explicit Bell(Fd fd) : fd_(std::move(fd)) {}
	static Bell make() { return Bell(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))); }

	void ring() const
	{
		const uint64_t one = 1;
		/* Fails if the bell is already ringing. */
		[[maybe_unused]] const ssize_t written = write(fd_.get(), &one, sizeof(one));
	}

	int fd() const { return fd_.get(); }
	explicit operator bool() const { return static_cast<bool>(fd_); }

private:
	Fd fd_;
};

/** A bell, and what another process gets to wait for it: an epoll instance that contains the bell.
 * Each ring makes an edge of that; it stays readable once the bell has been rung. */
struct BellPair {
	Bell bell;
	Fd listener;

	/** Without descriptors if there are none left. */
	static BellPair make();
};

} // namespace tern::shm
