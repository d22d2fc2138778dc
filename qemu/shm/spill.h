/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "qemu/shm/lent_entry.h"
#include "qemu/shm/ring.h"
#include "qemu/shm/segment.h"

namespace tern::shm {

/**
 * Memory of a host for the payload of entries that were lent and are to be moved. The others can
 * read it. A slot belongs to an entry until that is consumed. The kernel provides a slot's pages
 * when it is used first.
 */
class Spill {
public:
	static constexpr size_t kSlots = 64;
	static constexpr size_t kSize = kSlots * kMaxPayload;

	Spill();

	/** For others to read, kSize bytes; none if there is an error(). */
	const Fd &fd() const { return fd_; }
	/** Why the memory could not be made, or empty. */
	const std::string &error() const { return error_; }

	struct Slot {
		std::span<std::byte> bytes; /* kMaxPayload */
		uint64_t offset;            /* in the segment */
	};
	/** A slot for the entry at @position of @ring; none if all are in use. */
	std::optional<Slot> reserve(const Producer &ring, uint64_t position);
	/** @ring is about to be destroyed; its slots are free. */
	void forget(const Producer &ring);

private:
	struct Owner {
		const Producer *ring = nullptr;
		uint64_t position = 0;
	};

	Fd fd_;
	std::string error_;
	Mapping memory_;
	std::array<Owner, kSlots> owners_;
};

} // namespace tern::shm
