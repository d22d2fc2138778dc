// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/shm/ring.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <unistd.h>

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

void RingEnd::close_unopened(const Fd &fd, const Bell &peer)
{
	const uint32_t closed = 1;
	/* Fails if the descriptor is not that of a ring. */
	[[maybe_unused]] const ssize_t written =
	        pwrite(fd.get(), &closed, sizeof(closed), offsetof(RingHeader, closed));
	peer.ring();
}

void RingEnd::copy_out(uint64_t position, std::span<std::byte> bytes) const
{
	const size_t at = position & (circle_.size() - 1);
	const size_t first = std::min(bytes.size(), circle_.size() - at);
	std::memcpy(bytes.data(), circle_.data() + at, first);
	std::memcpy(bytes.data() + first, circle_.data(), bytes.size() - first);
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
	tail_ += needed;
	header().tail.store(tail_, std::memory_order_release);
	unannounced_ = true;
	return true;
}

bool Producer::lend(const Loan &loan, uint32_t packets, std::span<const std::byte> first,
                    std::span<const std::byte> second)
{
	const uint64_t position = tail_;
	if (!put(kLent, first, second))
		return false;
	lent_.push_back({position, loan, packets});
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
	while (!lent_.empty() && consumed(lent_.front().position))
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

bool Producer::take_back(const Recall &what, const Move &move, uint64_t &revoked)
{
	if (lent_.empty())
		return true;
	refresh();
	bool all = true;
	for (size_t i = 0; i < lent_.size() && !broken_; i++) {
		Lent &lent = lent_[i];
		if (lent.state != kRevoked && what.concerns(lent.loan))
			all &= take_back(lent, move, revoked);
	}
	return all;
}

/* Returns false if the consumer has claimed it. */
bool Producer::take_back(Lent &lent, const Move &move, uint64_t &revoked)
{
	EntryHeader &entry = this->entry(lent.position);
	if (entry.state.load(std::memory_order_relaxed) == kClaimed)
		return false;
	std::array<std::byte, kMaxEntry> room;
	const size_t size = entry.size.load(std::memory_order_relaxed);
	const auto bytes = std::span(room).first(std::min(size, room.size()));
	copy_out(lent.position + sizeof(entry), bytes);
	const auto offset = move(bytes, lent.position);
	if (offset)
		entry.offset.store(*offset, std::memory_order_relaxed);
	const EntryState to = offset ? kMoved : kRevoked;
	uint32_t state = lent.state;
	if (!entry.state.compare_exchange_strong(state, to)) {
		broken_ |= state != kClaimed;
		return broken_;
	}
	lent.state = to;
	/* The entry no longer refers to a QP or region: later recalls of these skip it. */
	lent.loan = Loan();
	if (!offset)
		revoked += lent.packets;
	return true;
}

void Producer::write_off(const Recall &what)
{
	for (size_t i = 0; i < lent_.size(); i++) {
		if (what.concerns(lent_[i].loan))
			lent_[i].state = kRevoked;
	}
}

void Producer::publish_direct(const DirectCounts &counts)
{
	header().direct_sent.store(counts.sent, std::memory_order_relaxed);
	header().direct_received.store(counts.received, std::memory_order_relaxed);
	header().direct_lost.store(counts.lost, std::memory_order_relaxed);
	header().links_cut.store(counts.links_cut, std::memory_order_relaxed);
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

	const uint32_t state = claim(entry);
	if (state == kClaimed)
		return protocol_error();
	const std::span<std::byte> bytes = room.first(size);
	copy_out(head_ + sizeof(entry), bytes);
	return Entry{static_cast<EntryState>(state), bytes,
	             entry.offset.load(std::memory_order_relaxed)};
}

/*
 * Claims the entry if it is lent or moved, so that the producer can no longer move or revoke it.
 * Returns the state before that, or kClaimed if the state is invalid for an entry that is not
 * consumed.
 */
uint32_t Consumer::claim(EntryHeader &entry)
{
	uint32_t state = entry.state.load(std::memory_order_acquire);
	for (const EntryState lent : {kLent, kMoved})
		if (state == lent && entry.state.compare_exchange_strong(state, kClaimed))
			return lent;
	return state == kWhole || state == kBare || state == kRevoked ? state : kClaimed;
}

DirectCounts Consumer::direct() const
{
	return {header().direct_sent.load(std::memory_order_relaxed),
	        header().direct_received.load(std::memory_order_relaxed),
	        header().direct_lost.load(std::memory_order_relaxed),
	        header().links_cut.load(std::memory_order_relaxed)};
}

std::optional<Consumer::Entry> Consumer::protocol_error()
{
	broken_ = true;
	return std::nullopt;
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
