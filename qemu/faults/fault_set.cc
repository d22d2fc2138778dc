// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/faults/fault_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tern::faults {

constexpr unsigned kMaxOvertaken = 4;
constexpr unsigned kMaxFlips = 3;
/* Longer than a sender may have to wait for a processor, shorter than timers of queue pairs. */
constexpr std::chrono::milliseconds kPatienceOfRules(100);

void FaultSet::set_percent(Kind kind, double percent)
{
	const double share = percent / 100;
	percents_[kind] = percent;
	thresholds_[kind] = share >= 1 ? std::numeric_limits<uint64_t>::max()
	                               : static_cast<uint64_t>(std::ldexp(share, 64));
	any_ = false;
	for (const uint64_t threshold : thresholds_)
		any_ |= threshold != 0;
}

void FaultSet::seed(uint64_t seed)
{
	random_.seed(seed);
	random_of_rules_.seed(seed);
}

std::string FaultSet::add_rules(std::string_view text)
{
	std::vector<NumberedRule> added;
	for (bool more = true; more;) {
		const size_t end = text.find(';');
		const auto position = static_cast<unsigned>(added.size() + 1);
		added.push_back({last_number_ + position, Rule()});
		const std::string error = added.back().rule.parse(text.substr(0, end), links_);
		if (!error.empty())
			return "rule " + std::to_string(position) + ": " + error;
		if (rules_.size() + added.size() > kMaxRules)
			return "rule " + std::to_string(position) + ": action: there may be " +
			       std::to_string(kMaxRules) + " rules";
		more = end != text.npos;
		text.remove_prefix(more ? end + 1 : 0);
	}
	last_number_ = added.back().number;
	std::ranges::move(added, std::back_inserter(rules_));
	return {};
}

void FaultSet::clear()
{
	rules_.clear();
	for (unsigned kind = 0; kind < kKinds; kind++)
		set_percent(static_cast<Kind>(kind), 0);
}

/* Always draws a number, so that one fault's rate does not affect the others. */
bool FaultSet::happens(Kind kind)
{
	const uint64_t drawn = random_();
	return thresholds_[kind] && drawn <= thresholds_[kind];
}

FaultSet::Decision FaultSet::decide()
{
	Decision decision;
	decision.lost = happens(kLoss);
	decision.duplicated = happens(kDuplicate);
	decision.corrupted = happens(kCorrupt);
	const auto overtaken = static_cast<unsigned>(1 + random_() % kMaxOvertaken);
	decision.overtaken = happens(kReorder) ? overtaken : 0;
	decision.marked = happens(kMark);
	return decision;
}

namespace {

void add(FaultSet::Decision &decision, const Rule &rule)
{
	switch (rule.fault()) {
	case Fault::Count:
		break;
	case Fault::Drop:
		decision.lost = true;
		break;
	case Fault::Corrupt:
		decision.corrupted = decision.spare_headers = true;
		break;
	case Fault::Mark:
		decision.marked = true;
		break;
	case Fault::Duplicate:
		decision.duplicated = true;
		break;
	case Fault::Delay:
		decision.delay = std::max(decision.delay, std::chrono::nanoseconds(rule.amount()));
		break;
	case Fault::Reorder:
		decision.patience = kPatienceOfRules;
		decision.overtaken =
		        std::max(decision.overtaken, static_cast<unsigned>(rule.amount()));
		break;
	}
}

} // namespace

/* Every rule sees every frame, so that what one counts does not depend on the others. */
void FaultSet::apply_rules(const Passage &passage, const AddressTable &addresses,
                           Decision &decision, std::vector<FaultEvent> &events)
{
	std::uniform_real_distribution<double> unit(0, 1);
	for (auto &[number, rule] : rules_) {
		if (!rule.see(passage, addresses, unit(random_of_rules_)))
			continue;
		add(decision, rule);
		events.push_back(event_of(rule.fault(), number, rule.amount(), passage));
	}
}

FaultEvent FaultSet::event_of(Fault fault, unsigned rule, uint64_t amount,
                              const Passage &passage) const
{
	FaultEvent event{
	        .fault = fault, .rule = rule, .amount = amount, .to = passage.to, .link = {}};
	if (passage.link_end)
		event.link = links_[*passage.link_end].name;
	return event;
}

void FaultSet::corrupt(std::span<std::byte> bytes)
{
	if (bytes.empty())
		return;
	const size_t bits = 8 * bytes.size();
	/* An even number of flips could cancel out; distinct positions prevent that. */
	const size_t first = random_() % bits;
	const size_t flips = 1 + random_() % kMaxFlips;
	for (size_t i = 0; i < flips; i++) {
		const size_t bit = (first + i * (bits / kMaxFlips)) % bits;
		bytes[bit / 8] ^= std::byte{1} << (bit % 8);
	}
}

} // namespace tern::faults
