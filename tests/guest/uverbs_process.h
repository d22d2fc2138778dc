/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the threads of a process under test share: contexts, mappings of the device, memory. */
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "dma_buf.h"
#include "sim/rng.h"

namespace tern::guest::uverbs {

using sim::Rng;

enum class Kind : uint8_t {
	kPd,
	kXrcd,
	kMr,
	kMw,
	kCq,
	kQp,
	kSrq,
	kAh,
	kFlow,
	kWq,
	kTable,
	kCounters,
	kDm,
	kChannel, /* its handle is a descriptor, as that of the next */
	kAsync,
};
inline constexpr size_t kKinds = 15;

struct Object {
	uint32_t handle = 0;
	uint32_t number = 0; /* QPN, CQN, SRQN, WQN or key */
	uint64_t key = 0;    /* for mmap(); of a region its first address */
	uint32_t length = 0, rq_offset = 0, record_offset = 0;
	uint8_t sq_log_size = 0, rq_log_size = 0, rq_log_stride = 0;
	uint8_t type = 0, state = 0; /* of a QP; a region on demand has type 1 */
};

/** An offset for mmap(), perhaps of an object that is gone. */
struct MapKey {
	uint64_t offset = 0;
	uint64_t length = 0;
};

/** One open file, and the objects behind it. */
class Context {
public:
	static constexpr size_t kLive = 6, kStale = 16, kKeys = 32;

	int fd() const { return fd_.load(std::memory_order_relaxed); }
	/** All objects are stale now. Returns the file in use before, or -1. */
	int exchange(int fd);

	std::optional<Object> any(Kind kind, Rng &rng);
	std::optional<Object> stale(Kind kind, Rng &rng);
	/** Takes an object out, to destroy it. Others may be using it. */
	std::optional<Object> take(Kind kind, Rng &rng);
	/** Returns the object that there is no room for any more. */
	std::optional<Object> add(Kind kind, const Object &object, Rng &rng);
	/** For what has changed. An object that is gone meanwhile stays so. */
	void update(Kind kind, const Object &object);
	bool full(Kind kind);

	void add_key(MapKey key);
	MapKey any_key(Rng &rng);
	std::atomic<uint64_t> doorbell_key{0};

	std::mutex lock; /* held across fork(), too */

private:
	struct Shelf {
		std::array<Object, kLive> live;
		size_t count = 0;
		std::array<Object, kStale> stale;
		size_t gone = 0;
	};
	void forget(Shelf &shelf, size_t i);

	std::atomic<int> fd_{-1};
	std::array<Shelf, kKinds> shelves_;
	std::array<MapKey, kKeys> keys_;
	size_t keys_added_ = 0;
};

/** Addresses for mappings of the device. What is unmapped is covered at once, so that a thread
 * which still writes there hits nothing else. */
class Arena {
public:
	static constexpr size_t kSlots = 24, kSlot = 1 << 20;

	Arena();
	char *at(size_t slot) const { return base_ + slot * kSlot; }
	void cover(size_t slot);
	void cover_hole(size_t slot);
	std::array<std::atomic<size_t>, kSlots> length{};

private:
	char *base_;
};

/** The fuzzer registers regions in this memory, which is anonymous, shared with a file, or made of
 * huge pages. */
class Memory {
public:
	static constexpr size_t kSize = 8 << 20, kPart = 2 << 20, kPage = 4096;

	Memory();
	char *base() const { return base_; }
	int file() const { return file_; }
	/** Pages that cannot be reached, and that cannot be written to. */
	char *hole() const { return hole_; }
	char *read_only() const { return read_only_; }

private:
	char *base_, *hole_, *read_only_;
	int file_;
};

struct Options {
	std::string device;
	int gid_index = 0;
	uint64_t seed = 1;
	double seconds = 10;
	unsigned threads = 3, processes = 2;
	unsigned slowness = 1; /* of the kernel: processes live so much longer */
	bool failing = false;  /* allocations of the kernel */
};

/** Calls by operation and errno, in memory that all processes share. */
struct Stats {
	static constexpr size_t kOps = 96, kErrnos = 160;
	std::atomic<uint32_t> calls[kOps][kErrnos];
	/* Calls in which an allocation of the kernel failed, and those of them that succeeded. */
	std::atomic<uint32_t> starved, survived;

	void count(size_t op, int err) { calls[op][static_cast<size_t>(err) % kErrnos]++; }
};

struct Process {
	Process(const Options &options, Stats &stats);

	const Options &options;
	Stats &stats;
	std::string path; /* of the character device */
	std::array<uint8_t, 16> gid;
	std::array<Context, 2> contexts;
	Arena arena;
	Memory memory;
	int xrc_file;
	Socket dma_buf;
};

} // namespace tern::guest::uverbs
