/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

namespace tern::wire {

/** What goes wrong on the wire, decided for each frame and destination from one seed. */
class Faults {
public:
	enum Kind { kLoss, kDuplicate, kReorder, kCorrupt, kKinds };

	/** What happens to one frame on its way to one destination. */
	struct Fate {
		bool lost = false;
		bool duplicated = false;
		bool corrupted = false;
		/* how many frames overtake it */
		unsigned overtaken = 0;
	};

	void set_percent(Kind kind, double percent);
	void seed(uint64_t seed) { random_.seed(seed); }

	/** False: no frame has any other fate than to arrive. */
	bool any() const { return any_; }
	Fate decide();
	/** Flips one to three bits, none in the Ethernet header. */
	void corrupt(std::span<std::byte> frame);

private:
	bool happens(Kind kind);

	uint64_t thresholds_[kKinds]{};
	bool any_ = false;
	std::mt19937_64 random_{1};
};

} // namespace tern::wire
