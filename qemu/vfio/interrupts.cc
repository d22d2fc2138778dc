// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/vfio/interrupts.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fcntl.h>

namespace tern::vfio {

constexpr size_t kPage = 4096;
constexpr size_t kMaskBit = 12; /* the byte of an entry with it */

/* As QEMU lays out such a BAR: half a page or more for the table, then the pending bits. */
size_t Interrupts::pending_offset() const
{
	return std::max(kPage / 2, table_.size());
}

size_t Interrupts::bar_size() const
{
	return std::max(kPage,
	                std::bit_ceil(pending_offset() + pending_.size() * sizeof(uint64_t)));
}

void Interrupts::read(uint64_t offset, std::span<std::byte> to)
{
	const std::scoped_lock locked(lock_);
	const auto pending = std::as_bytes(std::span(pending_));
	for (size_t i = 0; i < to.size(); i++) {
		const uint64_t at = offset + i;
		to[i] = std::byte{0};
		if (at < table_.size())
			to[i] = table_[at];
		else if (at >= pending_offset() && at - pending_offset() < pending.size())
			to[i] = pending[at - pending_offset()];
	}
}

void Interrupts::write(uint64_t offset, std::span<const std::byte> from)
{
	const std::scoped_lock locked(lock_);
	for (size_t i = 0; i < from.size() && offset + i < table_.size(); i++)
		table_[offset + i] = from[i];
}

void Interrupts::raise(unsigned vector)
{
	const std::scoped_lock locked(lock_);
	if (!enabled_ || vector >= vectors_.size())
		return;
	pending_[vector / 64] |= uint64_t{1} << (vector % 64);
	signal_if_possible(vector);
}

void Interrupts::signal_if_possible(unsigned vector)
{
	uint64_t &word = pending_[vector / 64];
	const uint64_t bit = uint64_t{1} << (vector % 64);
	if (!(word & bit) || masked_ || vectors_[vector].masked || !vectors_[vector].eventfd)
		return;
	word &= ~bit;
	vectors_[vector].eventfd.ring();
}

void Interrupts::signal_pending()
{
	for (unsigned vector = 0; vector < vectors_.size(); vector++)
		signal_if_possible(vector);
}

void Interrupts::configure(bool enabled, bool masked)
{
	const std::scoped_lock locked(lock_);
	enabled_ = enabled;
	masked_ = masked;
	if (!enabled)
		std::ranges::fill(pending_, 0);
	signal_pending();
}

void Interrupts::assign(unsigned vector, std::vector<Fd> eventfds)
{
	const std::scoped_lock locked(lock_);
	for (Fd &fd : eventfds) {
		/* A full counter must not block an engine. */
		if (fd)
			fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
		vectors_[vector].eventfd = shm::Bell(std::move(fd));
		signal_if_possible(vector++);
	}
}

void Interrupts::mask(unsigned vector, bool masked)
{
	const std::scoped_lock locked(lock_);
	vectors_[vector].masked = masked;
	signal_if_possible(vector);
}

void Interrupts::release()
{
	const std::scoped_lock locked(lock_);
	for (Vector &vector : vectors_)
		vector = Vector();
}

void Interrupts::reset()
{
	const std::scoped_lock locked(lock_);
	std::ranges::fill(table_, std::byte{0});
	for (size_t entry = 0; entry < vectors_.size(); entry++)
		table_[entry * kEntrySize + kMaskBit] = std::byte{1};
	std::ranges::fill(pending_, 0);
}

} // namespace tern::vfio
