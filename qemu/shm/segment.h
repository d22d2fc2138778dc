/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that processes share: a memfd, sealed so that nobody can make it shorter. */
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "qemu/shm/fd.h"

namespace tern::shm {

/** A new segment of @size zero bytes; no descriptor when there is no memory for it. */
Fd make_segment(const char *name, size_t size);

/** From now on nobody but those who have mapped it can write to it. */
bool seal_for_readers(const Fd &fd);

/** Another descriptor of the same segment, through which it can only be read. */
Fd reopen_for_reading(int fd);

/** Why @size bytes of it are not safe to map (what is shortened later kills who reads it), or
 * empty. */
std::string check_segment(int fd, size_t size);

/** A segment in this process's address space. */
class Mapping {
public:
	enum class Access { Read, ReadWrite };

	Mapping() = default;
	Mapping(Mapping &&other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
	Mapping &operator=(Mapping &&other) noexcept
	{
		std::swap(bytes_, other.bytes_);
		return *this;
	}
	~Mapping();

	/** Maps the first @size bytes. An error message, or empty. */
	std::string map(const Fd &fd, size_t size, Access access);
	std::span<std::byte> bytes() const { return bytes_; }

private:
	std::span<std::byte> bytes_;
};

/** Bytes of the segment, or 0. */
size_t segment_size(int fd);

} // namespace tern::shm
