// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/shm/spill.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tern::shm {

Spill::Spill()
{
	const Fd fd = make_segment("tern-spill", kSize);
	if (!fd) {
		error_ = std::strerror(errno);
		return;
	}
	error_ = memory_.map(fd, kSize, Mapping::Access::ReadWrite);
	if (!error_.empty())
		return;
	if (seal_for_readers(fd.get()))
		fd_ = reopen_for_reading(fd.get());
	if (!fd_)
		error_ = std::strerror(errno);
}

/* Reserves the lowest free slot, because the kernel allocates a slot's pages at its first use. */
std::optional<Spill::Slot> Spill::reserve(const Producer &ring, uint64_t position)
{
	const auto owner = std::ranges::find_if(
	        owners_, [](const Owner &o) { return !o.ring || o.ring->consumed(o.position); });
	if (owner == owners_.end())
		return std::nullopt;
	*owner = {&ring, position};
	const size_t offset = static_cast<size_t>(owner - owners_.begin()) * kMaxPayload;
	return Slot{memory_.bytes().subspan(offset, kMaxPayload), offset};
}

void Spill::forget(const Producer &ring)
{
	for (Owner &owner : owners_)
		if (owner.ring == &ring)
			owner = {};
}

} // namespace tern::shm
