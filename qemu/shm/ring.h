/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A queue of frames in shared memory, between one process that puts them in and one that
 * takes them out, without a lock.
 *
 * Neither side believes the other: each keeps its own index to itself and only tells the
 * other, and whatever it reads it first copies and then checks. An end that finds a lie is
 * broken() from then on, and does nothing any more.
 *
 * The entries lie one behind the other in a circle of a power of two bytes, each with a header
 * and at a multiple of 16. Indices are positions that never wrap. A lent entry stands for bytes
 * elsewhere that must not change while the consumer reads them: the consumer claims it first,
 * and until then the producer can revoke it.
 */
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "qemu/rnic/ring_buffer.h"
#include "qemu/shm/bell.h"
#include "qemu/shm/segment.h"

namespace tern::shm {

/* Fits 9000 bytes of payload with two VLAN tags. */
constexpr size_t kMaxEntry = 9216;

struct RingHeader {
	/* where the next entry goes: of the producer */
	alignas(64) std::atomic<uint64_t> tail;
	/* which entry is the next: of the consumer */
	alignas(64) std::atomic<uint64_t> head;
	/* Set by the one, cleared by the other, who then rings the bell. The consumer says where:
	 * 1 and the number of the processor. */
	alignas(64) std::atomic<uint32_t> consumer_sleeps;
	alignas(64) std::atomic<uint32_t> producer_waits;
	/* by either side, which has done with the other */
	alignas(64) std::atomic<uint32_t> closed;
	/* to the switch only: how many frames its producer has sent elsewhere */
	alignas(64) std::atomic<uint64_t> direct;
};
constexpr size_t kRingHeaderSize = 4096;
static_assert(sizeof(RingHeader) <= kRingHeaderSize);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

enum EntryState : uint32_t {
	kWhole = 1, /* a frame */
	kBare,      /* ... without ICRC */
	kLent,
	kClaimed,
	kRevoked,
};

struct EntryHeader {
	std::atomic<uint32_t> state;
	std::atomic<uint32_t> size; /* of what follows, bytes */
	uint64_t reserved;
};
static_assert(sizeof(EntryHeader) == 16);

/** What both ends have in common. */
class RingEnd {
public:
	/** A segment for a ring of @capacity bytes, a power of two. */
	static Fd make(size_t capacity);

	/** @peer wakes the other end, and outlives this. An error message, or empty. */
	std::string open(const Fd &fd, const Bell &peer);

	bool broken() const { return broken_; }
	/** The other side has done with this one. */
	bool closed() const { return header().closed.load(std::memory_order_relaxed) != 0; }
	void close();

protected:
	RingHeader &header() const
	{
		return *reinterpret_cast<RingHeader *>(memory_.bytes().data());
	}
	EntryHeader &entry(uint64_t position) const
	{
		return *reinterpret_cast<EntryHeader *>(circle_.data() +
		                                        (position & (circle_.size() - 1)));
	}
	static constexpr uint64_t entry_size(size_t size)
	{
		return sizeof(EntryHeader) + ((size + 15) & ~size_t{15});
	}

	Mapping memory_;
	std::span<std::byte> circle_;
	const Bell *peer_ = nullptr;
	bool broken_ = false;
};

class Producer : public RingEnd {
public:
	/** Appends an entry of two parts, of which announce() tells; @state: whole, bare or
	 * lent. False: no room, or broken(). */
	bool put(EntryState state, std::span<const std::byte> first,
	         std::span<const std::byte> second = {});

	/** Wakes a consumer that sleeps though something has been put in: on which processor, as
	 * it says. */
	std::optional<uint32_t> announce()
	{
		return std::exchange(unannounced_, false) ? wake_consumer() : std::nullopt;
	}

	/** The consumer is to ring when a quarter is used at most. True: it is so already. */
	bool await_room();
	/** A quarter is used at most. */
	bool has_room();
	/** How much is still to be taken out, bytes. */
	uint64_t used();
	/** Changes as the consumer goes on. */
	uint64_t progress() const { return head_; }

	/** Takes back what was lent. False while the consumer reads some of that. */
	bool revoke();

	/** Says how many frames did not come this way. */
	void tell_direct(uint64_t frames)
	{
		header().direct.store(frames, std::memory_order_relaxed);
	}

private:
	std::optional<uint32_t> wake_consumer();
	void refresh();
	void copy_in(uint64_t position, std::span<const std::byte> bytes);

	uint64_t tail_ = 0;
	uint64_t head_ = 0; /* as last seen */
	bool unannounced_ = false;
	/* positions of lent entries, maybe consumed since */
	RingBuffer<uint64_t> lent_;
};

class Consumer : public RingEnd {
public:
	struct Entry {
		EntryState state; /* any but claimed; lent: it is claimed now */
		std::span<std::byte> bytes;
	};

	bool empty() const
	{
		return broken_ || header().tail.load(std::memory_order_acquire) == head_;
	}
	/** Copies the next entry to @room. A lent one stays claimed until done(). */
	std::optional<Entry> take(std::span<std::byte, kMaxEntry> room);
	void done();
	/** Takes all that is there by now, unread. */
	void discard();

	/** How many frames went elsewhere, as the producer says. */
	uint64_t direct() const { return header().direct.load(std::memory_order_relaxed); }

	/** From now on the producer has to ring for an entry, as the consumer sleeps on that
	 * processor. Look for entries after a full fence. */
	void sleeps(uint32_t cpu)
	{
		header().consumer_sleeps.store(1 + cpu, std::memory_order_relaxed);
	}
	void awake() { header().consumer_sleeps.store(0, std::memory_order_relaxed); }

private:
	/** Whether so many bytes can have been put in and not yet taken out. */
	bool possible(uint64_t bytes) const
	{
		return bytes <= circle_.size() && bytes % sizeof(EntryHeader) == 0;
	}
	std::optional<Entry> lie();
	void copy_out(uint64_t position, std::span<std::byte> bytes) const;

	uint64_t head_ = 0;
	uint64_t next_ = 0;
};

} // namespace tern::shm
