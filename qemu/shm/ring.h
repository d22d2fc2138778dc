/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A single-producer, single-consumer queue of frames in memory shared by two processes, without a
 * lock.
 *
 * Neither side trusts the other: each keeps its own index privately and only publishes it, and
 * copies what it reads before it checks it. An end that detects a protocol violation is broken()
 * and does nothing any more.
 *
 * Entries are stored consecutively in a circular buffer whose size is a power of two, each with a
 * header, aligned to 16 bytes. Indices are byte positions that never wrap. A lent entry refers to
 * payload elsewhere, which must not change while the consumer reads it: the consumer claims the
 * entry first, and until then the producer can move the payload or revoke the entry.
 */
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "qemu/rnic/loan.h"
#include "qemu/rnic/ring_buffer.h"
#include "qemu/shm/bell.h"
#include "qemu/shm/segment.h"

namespace tern::shm {

/* Fits 9000 bytes of payload with two VLAN tags. */
constexpr size_t kMaxEntry = 9216;

struct RingHeader {
	/* end of the entries; written by the producer */
	alignas(64) std::atomic<uint64_t> tail;
	/* start of the entries; written by the consumer */
	alignas(64) std::atomic<uint64_t> head;
	/* Set by the waiting side, cleared by the other, which then rings the bell. consumer_sleeps
	 * is 1 + the consumer's processor. */
	alignas(64) std::atomic<uint32_t> consumer_sleeps;
	alignas(64) std::atomic<uint32_t> producer_waits;
	/* set by a side that has given up the ring */
	alignas(64) std::atomic<uint32_t> closed;
	/* ring to the switch only: DirectCounts of its producer */
	alignas(64) std::atomic<uint64_t> direct_sent;
	std::atomic<uint64_t> direct_received;
	std::atomic<uint64_t> direct_lost;
	std::atomic<uint64_t> links_cut;
};
constexpr size_t kRingHeaderSize = 4096;
static_assert(sizeof(RingHeader) <= kRingHeaderSize);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

enum EntryState : uint32_t {
	kWhole = 1, /* a whole frame */
	kBare,      /* a frame without ICRC */
	kLent,
	kMoved, /* lent, and its payload is a copy in the producer's spill */
	kClaimed,
	kRevoked,
};

struct EntryHeader {
	std::atomic<uint32_t> state;
	std::atomic<uint32_t> size;   /* of the bytes that follow */
	std::atomic<uint64_t> offset; /* moved: of the payload in the spill */
};
static_assert(sizeof(EntryHeader) == 16);

/** What a host counts of the frames that hosts send directly to one another. Those sent by all are
 * those received, lost, and now in rings, unless a link was cut. */
struct DirectCounts {
	uint64_t sent = 0;
	uint64_t received = 0;
	uint64_t lost =
	        0; /* revoked or discarded, as seen by the receiver; dropped by the sender */
	uint64_t links_cut = 0;

	DirectCounts &operator+=(const DirectCounts &other)
	{
		sent += other.sent;
		received += other.received;
		lost += other.lost;
		links_cut += other.links_cut;
		return *this;
	}
};

/** The common part of both ends. */
class RingEnd {
public:
	/** Creates a segment for a ring of @capacity bytes, a power of two. */
	static Fd make(size_t capacity);

	/** @peer wakes the other end and must outlive this. Returns an error message, or empty. */
	std::string open(const Fd &fd, const Bell &peer);

	bool broken() const { return broken_; }
	/** The other side has given up the ring. */
	bool closed() const { return header().closed.load(std::memory_order_relaxed) != 0; }
	void close();
	/** As close(), for a ring that cannot be opened here; it needs no address space. */
	static void close_unopened(const Fd &fd, const Bell &peer);

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
	void copy_out(uint64_t position, std::span<std::byte> bytes) const;

	Mapping memory_;
	std::span<std::byte> circle_;
	const Bell *peer_ = nullptr;
	bool broken_ = false;
};

class Producer : public RingEnd {
public:
	/** Appends an entry made of two parts, to be announced by announce(); @state: whole or
	 * bare. Returns false if there is no room or the ring is broken(). */
	bool put(EntryState state, std::span<const std::byte> first,
	         std::span<const std::byte> second = {});
	/** As put(), for a lent entry that stands for @packets packets; @loan: what take_back()
	 * selects it by. */
	bool lend(const Loan &loan, uint32_t packets, std::span<const std::byte> first,
	          std::span<const std::byte> second = {});

	/** Wakes the consumer if it sleeps and entries were added since the last call. Returns the
	 * processor it reported. */
	std::optional<uint32_t> announce()
	{
		return std::exchange(unannounced_, false) ? wake_consumer() : std::nullopt;
	}

	/** Calls announce(), and requests a bell for the time when at most a quarter of the ring is
	 * used. Returns true if that is already so. */
	bool await_room();
	/** Whether at most a quarter is used. */
	bool has_room();
	/** Bytes not yet consumed. */
	uint64_t used();
	/** Bytes consumed so far, as last seen. */
	uint64_t consumed() const { return head_; }
	uint64_t capacity() const { return circle_.size(); }

	/** Copies the payload of an entry with these bytes at this position to the spill. Returns
	 * its offset there; none if it cannot be moved. */
	using Move = std::function<std::optional<uint64_t>(std::span<const std::byte>, uint64_t)>;
	/** Takes back the lent entries that @what concerns: moves those that are not claimed, or
	 * revokes them and adds their packets to @revoked. Returns false while a claimed one
	 * remains. */
	bool take_back(const Recall &what, const Move &move, uint64_t &revoked);
	/** Makes take_back() no longer wait for the claimed entries that @what concerns. Call
	 * take_back() of everything first. */
	void write_off(const Recall &what);
	/** Whether the entry at @position is consumed, as far as known. */
	bool consumed(uint64_t position) const { return position < head_; }

	/** For Consumer::direct(). */
	void publish_direct(const DirectCounts &counts);

private:
	/* A lent entry, possibly consumed since. */
	struct Lent {
		uint64_t position = 0;
		Loan loan{};
		uint32_t packets = 0;
		EntryState state = kLent; /* as this side knows it; kRevoked if written off */
	};

	std::optional<uint32_t> wake_consumer();
	void refresh();
	bool take_back(Lent &lent, const Move &move, uint64_t &revoked);
	void copy_in(uint64_t position, std::span<const std::byte> bytes);

	uint64_t tail_ = 0;
	uint64_t head_ = 0; /* as last seen */
	bool unannounced_ = false;
	RingBuffer<Lent> lent_; /* oldest first */
};

class Consumer : public RingEnd {
public:
	struct Entry {
		EntryState state; /* any but claimed; what was lent or moved is claimed now */
		std::span<std::byte> bytes;
		uint64_t offset; /* of a moved entry */
	};

	bool empty() const
	{
		return broken_ || header().tail.load(std::memory_order_acquire) == head_;
	}
	/** Copies the next entry to @room. A lent one stays claimed until done(). */
	std::optional<Entry> take(std::span<std::byte, kMaxEntry> room);
	void done();

	/** The position of the next entry. */
	uint64_t position() const { return head_; }
	/** The end of the entries that are there now, according to the producer. It is at most the
	 * capacity beyond position(), so a loop up to it ends, whatever the producer has written.
	 */
	uint64_t end() const
	{
		const uint64_t there = header().tail.load(std::memory_order_acquire) - head_;
		return head_ + std::min<uint64_t>(there, circle_.size());
	}

	/** As reported by the producer. */
	DirectCounts direct() const;

	/** Requests a bell for the next entry, because the consumer is about to sleep on processor
	 * @cpu. Check for entries again after a full fence. */
	void sleeps(uint32_t cpu)
	{
		header().consumer_sleeps.store(1 + cpu, std::memory_order_relaxed);
	}
	void awake() { header().consumer_sleeps.store(0, std::memory_order_relaxed); }

private:
	/** Whether the ring can hold @bytes of entries. */
	bool possible(uint64_t bytes) const
	{
		return bytes <= circle_.size() && bytes % sizeof(EntryHeader) == 0;
	}
	static uint32_t claim(EntryHeader &entry);
	std::optional<Entry> protocol_error();

	uint64_t head_ = 0;
	uint64_t next_ = 0;
};

} // namespace tern::shm
