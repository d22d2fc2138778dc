/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <sys/eventfd.h>

#include "qemu/shm/fd.h"

namespace tern::shm {

/** An eventfd that wakes a process waiting for it; any process with the descriptor can ring it. */
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
	void silence() const
	{
		uint64_t count;
		[[maybe_unused]] const ssize_t size = read(fd_.get(), &count, sizeof(count));
	}

	int fd() const { return fd_.get(); }
	explicit operator bool() const { return static_cast<bool>(fd_); }

private:
	Fd fd_;
};

} // namespace tern::shm
