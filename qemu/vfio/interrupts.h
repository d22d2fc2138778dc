/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "qemu/shm/bell.h"

namespace tern::vfio {

/**
 * MSI-X with an eventfd for each vector. A vector that is raised while it cannot be signalled, as
 * it has no eventfd or is masked, becomes pending, and is signalled when it can be. A client that
 * emulates the table, as QEMU does, takes away the eventfd of a vector that the guest has masked,
 * or masks it by message; so what is written to the table here is kept, and has no other effect.
 *
 * The engines' threads raise; another thread calls all else.
 */
class Interrupts {
public:
	explicit Interrupts(unsigned vectors)
	        : vectors_(vectors), table_(vectors * kEntrySize), pending_((vectors + 63) / 64)
	{
		reset();
	}

	/** Where table and pending bits are in the BAR, and the size of the BAR. */
	size_t pending_offset() const;
	size_t bar_size() const;
	void read(uint64_t offset, std::span<std::byte> to);
	void write(uint64_t offset, std::span<const std::byte> from);

	void raise(unsigned vector);

	/** What the control word of the capability says. While disabled, vectors are not raised. */
	void configure(bool enabled, bool masked);
	/** Vector @vector + i gets @eventfds[i], or none if that is empty. */
	void assign(unsigned vector, std::vector<Fd> eventfds);
	void mask(unsigned vector, bool masked);
	/** Removes all eventfds and unmasks all vectors. */
	void release();
	/** Sets the table and the pending bits to their power-on values. The eventfds, and the
	 * masks set by mask(), stay. */
	void reset();

	unsigned count() const { return static_cast<unsigned>(vectors_.size()); }

private:
	static constexpr size_t kEntrySize = 16;

	struct Vector {
		shm::Bell eventfd;
		bool masked = false;
	};

	void signal_if_possible(unsigned vector);
	void signal_pending();

	std::mutex lock_; /* of all below; nothing that blocks is done with it */
	std::vector<Vector> vectors_;
	std::vector<std::byte> table_;
	std::vector<uint64_t> pending_;
	bool enabled_ = false;
	bool masked_ = false;
};

} // namespace tern::vfio
