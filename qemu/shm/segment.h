/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared memory: a memfd that is sealed against shrinking. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "qemu/shm/fd.h"

namespace tern::shm {

/** Creates a segment of @size zero bytes; an empty descriptor if there is no memory. */
Fd make_segment(const char *name, size_t size);

/**
 * Denies write access to all but existing mappings, for good. A descriptor that is only open for
 * reading does not: who has it can open the memory again through /proc/self/fd. Returns false if
 * @fd is no memfd, or its seals allow no further ones.
 */
bool seal_for_readers(int fd);

/** Opens the segment again, read-only. Another process may have it if it is sealed for readers. */
Fd reopen_for_reading(int fd);

/** Why @size bytes of the segment are not safe to map (a read beyond a shrunk file kills the
 * process), or empty. */
std::string check_segment(int fd, size_t size);

/** Maximum sum of mapped bytes, so that other processes cannot exhaust the address space of this
 * one, 128 TiB. */
constexpr uint64_t kMaxMapped = uint64_t{64} << 40;

/** A mapped segment. */
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

	/** Maps the first @size bytes. Returns an error message, or empty. */
	std::string map(const Fd &fd, size_t size, Access access);
	/** Maps @fd for reading and writing in place of what is mapped, at the same address.
	 * Returns an error message, or empty. An error leaves the old mapping in place. */
	std::string replace(const Fd &fd);
	std::span<std::byte> bytes() const { return bytes_; }

private:
	std::span<std::byte> bytes_;
};

/** Size in bytes, or 0. */
size_t segment_size(int fd);

} // namespace tern::shm
