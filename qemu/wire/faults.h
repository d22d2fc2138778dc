/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

namespace tern::wire {

/** Random faults on the wire, drawn for each frame and destination from one seed. */
class Faults {
public:
	enum Kind { kLoss, kDuplicate, kReorder, kCorrupt, kMark, kKinds };

	/** The faults of one frame on its way to one destination. */
	struct Decision {
		bool lost = false;
		bool duplicated = false;
		bool corrupted = false;
		bool marked = false;
		/* number of frames that overtake it */
		unsigned overtaken = 0;
	};

	void set_percent(Kind kind, double percent);
	void seed(uint64_t seed) { random_.seed(seed); }

	/** Whether any fault is enabled. */
	bool any() const { return any_; }
	Decision decide();
	/** Flips one to three bits behind the Ethernet header. */
	void corrupt(std::span<std::byte> frame);
	/** Sets CE in the IP header of a frame whose sender is capable of ECN, as a congested
	 * switch does (RFC 3168). False if it is not, or was marked before. */
	static bool mark(std::span<std::byte> frame);

private:
	bool happens(Kind kind);

	uint64_t thresholds_[kKinds]{};
	bool any_ = false;
	std::mt19937_64 random_{1};
};

} // namespace tern::wire
