/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qemu/faults/fault.h"
#include "qemu/faults/rule.h"

namespace tern::faults {

/** The faults that are set: percentages of all frames, and rules for some frames. Random numbers
 * come from one seed. Each frame is judged once for each port that it goes to. */
class FaultSet {
public:
	static constexpr size_t kMaxRules = 64;
	enum Kind { kLoss, kDuplicate, kReorder, kCorrupt, kMark, kKinds };

	/** The faults of one frame on its way to one port. */
	struct Decision {
		bool lost = false;
		bool duplicated = false;
		bool corrupted = false;
		bool marked = false;
		/* number of frames that overtake it, and how long it waits for them */
		unsigned overtaken = 0;
		std::chrono::nanoseconds patience = std::chrono::milliseconds(5);
		/* a time for which it is held back */
		std::chrono::nanoseconds delay{};
		/* corrupted by a rule, which is to cause a wrong ICRC and no other error */
		bool spare_headers = false;
	};

	/** How many frames each fault has happened to. */
	struct Counts {
		uint64_t lost = 0;
		uint64_t duplicated = 0;
		uint64_t reordered = 0;
		uint64_t corrupted = 0;
		uint64_t marked = 0; /* as congested */
		uint64_t delayed = 0;
	};

	struct NumberedRule {
		unsigned number;
		Rule rule;
	};

	void set_percent(Kind kind, double percent);
	double percent(Kind kind) const { return percents_[kind]; }
	void seed(uint64_t seed);

	/** The ends of links of a topology, by their numbers; none unless set_links() was called.
	 */
	void set_links(std::vector<LinkEnd> links) { links_ = std::move(links); }
	std::span<const LinkEnd> links() const { return links_; }

	/** Adds the rules in @text, separated by semicolons: all, or none if one is wrong. Returns
	 * an error message that names the rule's position in @text, or empty. */
	std::string add_rules(std::string_view text);
	const std::vector<NumberedRule> &rules() const { return rules_; }
	/** Removes all rules and sets all percentages to 0. */
	void clear();

	/** Whether any fault is set. Also a rule that will not act again counts: while it is there,
	 * frames do not change from one path to another. */
	bool any() const { return any_ || !rules_.empty(); }

	/** The faults of a frame by percentages. */
	Decision decide();
	/** Adds those by rules to @decision and @events. */
	void apply_rules(const Passage &passage, const AddressTable &addresses, Decision &decision,
	                 std::vector<FaultEvent> &events);

	FaultEvent event_of(Fault fault, unsigned rule, uint64_t amount,
	                    const Passage &passage) const;

	/** Flips one to three bits. */
	void corrupt(std::span<std::byte> bytes);

	Counts counts;

private:
	bool happens(Kind kind);

	double percents_[kKinds]{};
	uint64_t thresholds_[kKinds]{};
	bool any_ = false;
	std::vector<LinkEnd> links_;
	std::vector<NumberedRule> rules_;
	unsigned last_number_ = 0;
	std::mt19937_64 random_{1};
	/* of rules, which so do not change what the percentages draw */
	std::mt19937_64 random_of_rules_{1};
};

} // namespace tern::faults
