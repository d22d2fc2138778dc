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
 * Permanently denies write access to the memory, except through existing mappings. It is not enough
 * to pass a read-only descriptor, because the receiver can open the memory again for writing
 * through /proc/self/fd. Returns false if @fd is not a memfd, or if its seals allow no more seals.
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
	Mapping(Mapping &&other) noexcept
	        : blocks_(std::exchange(other.blocks_, {})), bytes_(std::exchange(other.bytes_, {}))
	{
	}
	Mapping &operator=(Mapping &&other) noexcept
	{
		std::swap(blocks_, other.blocks_);
		std::swap(bytes_, other.bytes_);
		return *this;
	}
	~Mapping();

	/** Maps @size bytes from @offset on. Returns an error message, or empty. */
	std::string map(const Fd &fd, size_t size, Access access, uint64_t offset = 0);
	/** Maps the first bytes of @fd for reading and writing in place of what is mapped, at the
	 * same address. Returns an error message, or empty. An error leaves the old mapping in
	 * place. */
	std::string replace(const Fd &fd);
	std::span<std::byte> bytes() const { return bytes_; }

private:
	/* All that is mapped. With huge pages, only whole blocks of the file can be. */
	std::span<std::byte> blocks_;
	std::span<std::byte> bytes_; /* what was asked for */
};

/** Size in bytes, or 0. */
size_t segment_size(int fd);

} // namespace tern::shm
