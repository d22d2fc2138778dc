/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "qemu/rnic/ports.h"
#include "tests/sim/event_loop.h"
#include "tests/sim/rng.h"

namespace tern::sim {

/** How often, out of a thousand frames, each misfortune happens. */
struct Faults {
	unsigned loss = 0;
	unsigned duplicate = 0;
	unsigned corrupt = 0;
	unsigned reorder = 0;
};

struct LinkConfig {
	uint64_t latency = 1000;      /* ns */
	uint64_t ns_per_kib = 80;     /* 0: no limit to the bandwidth */
	uint64_t max_reorder = 20000; /* ns that a frame may be late */
	size_t queue = 64;            /* frames that wait to be sent; more are refused */
	Faults faults{};
	unsigned borrow = 0; /* of a thousand packets offered, how many it takes lent */
	unsigned bursts = 0; /* ... and of a thousand bursts among them */
	uint64_t borrow_until = UINT64_MAX; /* ns; then that is over, with all that was lent */
};

/** One direction of a cable. */
class Link {
public:
	using Frame = std::vector<std::byte>;
	/** What is not in the frame, for it was lent. */
	struct Loan {
		bool lent = false;
		std::vector<HostRange> payload{};
		uint32_t segment = 0;

		uint64_t bytes() const;
	};
	using Sink = std::function<void(const Frame &, const Loan &)>;

	Link(EventLoop &loop, Rng rng, const LinkConfig &config, Sink sink)
	        : config(config), loop_(loop), rng_(rng), sink_(std::move(sink))
	{
	}

	/** False when the queue is full; on_room tells when it no longer is. */
	bool send(std::span<const std::byte> bytes)
	{
		return queue({bytes.begin(), bytes.end()}, Loan());
	}
	/** A packet whose payload stays at @payload until it arrives. */
	Wire::Lend lend(std::span<const std::byte> head, std::span<const HostRange> payload,
	                uint32_t segment);
	/** What was lent and has not arrived never will. */
	void recall() { recalls_++; }

	LinkConfig config;
	std::function<void()> on_room;

	struct Counts {
		uint64_t sent = 0, delivered = 0, refused = 0, lost = 0, duplicated = 0,
		         corrupted = 0, reordered = 0, lent = 0;
	};
	const Counts &counts() const { return counts_; }

private:
	struct Parcel {
		Frame frame;
		Loan loan;
		uint64_t recalls = 0; /* when it was sent */
	};

	bool queue(Frame frame, Loan loan);
	void depart(Parcel parcel);
	void corrupt(Parcel &parcel);
	void travel(Parcel parcel);
	void arrive(const Parcel &parcel);
	bool borrows() const { return loop_.now() < config.borrow_until; }

	EventLoop &loop_;
	Rng rng_;
	Sink sink_;
	size_t queued_ = 0;
	bool refused_ = false;
	uint64_t recalls_ = 0;
	uint64_t busy_until_ = 0;
	Counts counts_;
};

} // namespace tern::sim
