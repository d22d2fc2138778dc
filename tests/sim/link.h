/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "qemu/fabric/event_loop.h"
#include "qemu/rnic/environment.h"
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
	unsigned borrow = 0;   /* of a thousand packets offered, how many it takes lent */
	unsigned bursts = 0;   /* ... and of a thousand bursts among them */
	unsigned moves = 1000; /* of a thousand it has to give back by key, how many are not lost */
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
		tern::Loan of{};
		std::vector<std::byte> moved{}; /* the payload, once its memory was wanted back */

		uint64_t bytes() const;
		uint64_t packets() const;
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
	                uint32_t segment, const tern::Loan &of);
	/** Takes back the lent packets that @what concerns and that have not arrived. If @what is a
	 * key, the share config.moves of them arrives with a copy of the payload, made by @read.
	 * The others are lost. Returns the number of packets lost. */
	using Read = std::function<std::vector<std::byte>(const HostRange &)>;
	uint64_t recall(const Recall &what, const Read &read);

	LinkConfig config;
	std::function<void()> on_room;

	/* Packets, each of a burst counted. */
	struct Counts {
		uint64_t sent = 0, delivered = 0, refused = 0, lost = 0, duplicated = 0,
		         corrupted = 0, reordered = 0, lent = 0;
	};
	const Counts &counts() const { return counts_; }
	/** Nothing is on its way. */
	bool idle() const
	{
		return counts_.sent + counts_.duplicated == counts_.delivered + counts_.lost;
	}

private:
	struct Parcel {
		Frame frame;
		Loan loan;
		bool revoked = false;
	};
	using Shared = std::shared_ptr<Parcel>;

	bool queue(Frame frame, Loan loan);
	Shared add(Parcel parcel);
	void depart(const Shared &parcel);
	void damage(const Shared &parcel);
	void travel(const Shared &parcel);
	void arrive(const Parcel &parcel);
	bool borrows() const { return loop_.now() < config.borrow_until; }

	EventLoop &loop_;
	Rng rng_;
	Sink sink_;
	size_t queued_ = 0;
	bool refused_ = false;
	std::vector<std::weak_ptr<Parcel>> lent_; /* or arrived since */
	uint64_t busy_until_ = 0;
	Counts counts_;
};

} // namespace tern::sim
