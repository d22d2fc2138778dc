// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/shm/ring.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tern::shm {

Fd RingEnd::make(size_t capacity)
{
	return make_segment("tern-ring", kRingHeaderSize + capacity);
}

std::string RingEnd::open(const Fd &fd, const Bell &peer)
{
	const size_t size = segment_size(fd.get());
	/* Large enough for several entries of any size. */
	if (size < kRingHeaderSize + 4 * kMaxEntry || !std::has_single_bit(size - kRingHeaderSize))
		return "a ring of " + std::to_string(size) + " bytes";
	const std::string error = memory_.map(fd, size, Mapping::Access::ReadWrite);
	if (!error.empty())
		return "a ring is " + error;
	circle_ = memory_.bytes().subspan(kRingHeaderSize);
	peer_ = &peer;
	return {};
}

void RingEnd::close()
{
	header().closed.store(1, std::memory_order_relaxed);
	peer_->ring();
}

/* ---- producer --------------------------------------------------------------- */

bool Producer::put(EntryState state, std::span<const std::byte> first,
                   std::span<const std::byte> second)
{
	const size_t size = first.size() + second.size();
	const uint64_t needed = entry_size(size);
	if (circle_.size() - (tail_ - head_) < needed)
		refresh();
	if (broken_ || circle_.size() - (tail_ - head_) < needed)
		return false;

	EntryHeader &entry = this->entry(tail_);
	copy_in(tail_ + sizeof(entry), first);
	copy_in(tail_ + sizeof(entry) + first.size(), second);
	entry.size.store(static_cast<uint32_t>(size), std::memory_order_relaxed);
	entry.state.store(state, std::memory_order_relaxed);
	if (state == kLent)
		lent_.push_back(tail_);
	tail_ += needed;
	header().tail.store(tail_, std::memory_order_release);
	unannounced_ = true;
	return true;
}

std::optional<uint32_t> Producer::wake_consumer()
{
	/* Either this side sees that the consumer sleeps, or the consumer sees the entry. */
	std::atomic_thread_fence(std::memory_order_seq_cst);
	std::atomic<uint32_t> &sleeps = header().consumer_sleeps;
	if (!sleeps.load(std::memory_order_relaxed))
		return std::nullopt;
	const uint32_t where = sleeps.exchange(0, std::memory_order_relaxed);
	if (!where)
		return std::nullopt;
	peer_->ring();
	return where - 1;
}

void Producer::copy_in(uint64_t position, std::span<const std::byte> bytes)
{
	const size_t at = position & (circle_.size() - 1);
	const size_t first = std::min(bytes.size(), circle_.size() - at);
	std::copy_n(bytes.begin(), first, circle_.begin() + static_cast<ptrdiff_t>(at));
	std::copy(bytes.begin() + static_cast<ptrdiff_t>(first), bytes.end(), circle_.begin());
}

void Producer::refresh()
{
	const uint64_t head = header().head.load(std::memory_order_acquire);
	if (head - head_ > tail_ - head_) {
		broken_ = true;
		return;
	}
	head_ = head;
	while (!lent_.empty() && lent_.front() < head_)
		lent_.pop_front();
}

uint64_t Producer::used()
{
	refresh();
	return tail_ - head_;
}

bool Producer::has_room()
{
	return used() <= circle_.size() / 4;
}

bool Producer::await_room()
{
	announce();
	header().producer_waits.store(1, std::memory_order_relaxed);
	/* Either this side sees the new room, or the consumer sees the flag. */
	std::atomic_thread_fence(std::memory_order_seq_cst);
	return has_room();
}

bool Producer::revoke()
{
	refresh();
	size_t claimed = 0;
	for (size_t i = 0; i < lent_.size(); i++) {
		uint32_t state = kLent;
		if (entry(lent_[i]).state.compare_exchange_strong(state, kRevoked))
			continue;
		if (state == kClaimed)
			lent_[claimed++] = lent_[i];
		else
			broken_ = true;
	}
	while (lent_.size() > claimed)
		lent_.pop_back();
	return broken_ || lent_.empty();
}

/* ---- consumer --------------------------------------------------------------- */

std::optional<Consumer::Entry> Consumer::take(std::span<std::byte, kMaxEntry> room)
{
	if (broken_)
		return std::nullopt;
	const uint64_t there = header().tail.load(std::memory_order_acquire) - head_;
	if (there == 0)
		return std::nullopt;
	if (!possible(there))
		return protocol_error();

	EntryHeader &entry = this->entry(head_);
	const size_t size = entry.size.load(std::memory_order_relaxed);
	if (size > room.size() || entry_size(size) > there)
		return protocol_error();
	next_ = head_ + entry_size(size);

	uint32_t state = entry.state.load(std::memory_order_relaxed);
	if (state == kLent && !entry.state.compare_exchange_strong(state, kClaimed) &&
	    state != kRevoked)
		return protocol_error();
	if (state != kWhole && state != kBare && state != kLent && state != kRevoked)
		return protocol_error();
	const std::span<std::byte> bytes = room.first(state == kRevoked ? 0 : size);
	copy_out(head_ + sizeof(entry), bytes);
	return Entry{static_cast<EntryState>(state), bytes};
}

std::optional<Consumer::Entry> Consumer::protocol_error()
{
	broken_ = true;
	return std::nullopt;
}

void Consumer::copy_out(uint64_t position, std::span<std::byte> bytes) const
{
	const size_t at = position & (circle_.size() - 1);
	const size_t first = std::min(bytes.size(), circle_.size() - at);
	std::memcpy(bytes.data(), circle_.data() + at, first);
	std::memcpy(bytes.data() + first, circle_.data(), bytes.size() - first);
}

void Consumer::discard()
{
	const uint64_t tail = header().tail.load(std::memory_order_acquire);
	broken_ |= !possible(tail - head_);
	if (broken_)
		return;
	next_ = tail;
	done();
}

void Consumer::done()
{
	head_ = next_;
	header().head.store(head_, std::memory_order_release);

	std::atomic_thread_fence(std::memory_order_seq_cst);
	std::atomic<uint32_t> &waits = header().producer_waits;
	if (waits.load(std::memory_order_relaxed) &&
	    header().tail.load(std::memory_order_relaxed) - head_ <= circle_.size() / 4 &&
	    waits.exchange(0, std::memory_order_relaxed))
		peer_->ring();
}

} // namespace tern::shm
