// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/faults/rule.h"

#include <algorithm>
#include <fnmatch.h>
#include <set>

#include "qemu/fabric/classify.h"
#include "qemu/faults/numbers.h"

namespace tern::faults {

using namespace std::chrono_literals;

namespace {

constexpr uint64_t kMaxPsn = Psn::kMask;
constexpr uint32_t kMaxQpn = 0xffffff;
constexpr uint64_t kMaxOvertaken = 1000;
constexpr std::chrono::nanoseconds kMaxDelay = 60s;
/* Guests can invent flows; a full table is cleared. */
constexpr size_t kMaxFlows = 4096;
/* The number of a destroyed QP is used again, with any PSN: a PSN further away than this from the
 * highest one begins the flow anew. */
constexpr int32_t kMaxJump = 65536;

std::optional<Fault> parse_action(std::string_view word)
{
	for (const Fault fault : {Fault::Count, Fault::Drop, Fault::Corrupt, Fault::Mark,
	                          Fault::Duplicate, Fault::Delay, Fault::Reorder}) {
		if (word == fault_name(fault))
			return fault;
	}
	return std::nullopt;
}

/* A number with its unit. */
std::optional<std::chrono::nanoseconds> parse_time(std::string_view text)
{
	static constexpr std::pair<std::string_view, std::chrono::nanoseconds> kUnits[] = {
	        {"us", 1us}, {"ms", 1ms}, {"s", 1s}};
	for (const auto &[unit, length] : kUnits) {
		if (!text.ends_with(unit))
			continue;
		const auto count =
		        parse_decimal<uint32_t>(text.substr(0, text.size() - unit.size()));
		return count ? std::optional(length * *count) : std::nullopt;
	}
	return std::nullopt;
}

/* Calls @take with each part of @text between commas, until it returns false. */
template <typename Take>
bool for_each_part(std::string_view text, Take take)
{
	for (;;) {
		const size_t comma = text.find(',');
		if (!take(text.substr(0, comma)))
			return false;
		if (comma == text.npos)
			return true;
		text.remove_prefix(comma + 1);
	}
}

std::optional<OpcodeSet> parse_opcodes(std::string_view text)
{
	OpcodeSet set;
	if (!for_each_part(text, [&](std::string_view word) { return set.add(word); }))
		return std::nullopt;
	return set;
}

std::string_view take_word(std::string_view &text)
{
	text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
	const std::string_view word = text.substr(0, text.find(' '));
	text.remove_prefix(word.size());
	return word;
}

} // namespace

std::optional<uint64_t> parse_address(std::string_view text)
{
	constexpr size_t kLength = 17;
	if (text.size() != kLength)
		return std::nullopt;
	uint64_t address = 0;
	for (size_t at = 0; at < kLength; at += 3) {
		const auto byte = parse_integer<uint8_t>("0x" + std::string(text.substr(at, 2)));
		if (!byte || (at && text[at - 1] != ':'))
			return std::nullopt;
		address = address << 8 | *byte;
	}
	return address;
}

std::vector<uint64_t> parse_addresses(std::string_view text)
{
	std::vector<uint64_t> found;
	const bool valid = for_each_part(text, [&](std::string_view word) {
		const auto address = parse_address(word);
		found.push_back(address.value_or(0));
		return address.has_value();
	});
	return valid ? found : std::vector<uint64_t>();
}

std::vector<unsigned> find_links(std::string_view text, std::span<const LinkEnd> links)
{
	std::vector<unsigned> found;
	const bool valid = for_each_part(text, [&](std::string_view word) {
		const size_t before = found.size();
		const std::string pattern(word);
		for (unsigned i = 0; i < links.size(); i++)
			if (!fnmatch(pattern.c_str(), links[i].name.c_str(), 0))
				found.push_back(i);
		return found.size() > before;
	});
	return valid ? found : std::vector<unsigned>();
}

bool belongs_to(uint64_t address, unsigned port, const std::vector<uint64_t> &hosts,
                const AddressTable &addresses)
{
	return std::ranges::any_of(hosts, [&](uint64_t host) {
		const auto owner = addresses.find(host);
		return host == address || (owner != addresses.end() && owner->second == port);
	});
}

bool Match::admits(const Passage &passage, const AddressTable &addresses) const
{
	const bool here =
	        links.empty() ? passage.at_card
	                      : passage.link_end &&
	                                std::ranges::find(links, *passage.link_end) != links.end();
	if (!here)
		return false;
	const auto comes_from = [&](const auto &hosts) {
		return belongs_to(passage.source, passage.from, hosts, addresses);
	};
	const auto goes_to = [&](const auto &hosts) {
		return belongs_to(passage.destination, passage.to, hosts, addresses);
	};
	if ((!from.empty() && !comes_from(from)) || (!to.empty() && !goes_to(to)) ||
	    (!host.empty() && !comes_from(host) && !goes_to(host)))
		return false;
	if (opcodes && !opcodes->has(passage.roce))
		return false;
	if (!passage.roce)
		return !qpn && !psn && !psn_offset && !retransmission;
	return (!qpn || *qpn == passage.roce->qpn) && (!psn || *psn == passage.roce->psn);
}

/* ---- parsing ------------------------------------------------------------------ */

std::string Rule::parse(std::string_view text, std::span<const LinkEnd> links)
{
	std::string_view word = take_word(text);
	const auto fault = parse_action(word);
	if (!fault)
		return "action: \"" + std::string(word) +
		       "\" is none; there are drop, corrupt, mark, duplicate, delay, reorder and "
		       "count";
	fault_ = *fault;
	text_ = word;
	std::set<std::string_view> keys;
	while (!(word = take_word(text)).empty()) {
		const size_t equals = word.find('=');
		const std::string_view key = word.substr(0, equals);
		if (!keys.insert(key).second)
			return std::string(key) + ": is given twice";
		const bool flag = equals == word.npos;
		if (flag != (key == "once"))
			return std::string(key) + (flag ? ": needs a value" : ": takes no value");
		const std::string error =
		        parse_word(key, flag ? "" : word.substr(equals + 1), links);
		if (!error.empty())
			return std::string(key) + ": " + error;
		text_.append(" ").append(word);
	}
	return contradiction();
}

std::string Rule::parse_word(std::string_view key, std::string_view value,
                             std::span<const LinkEnd> links)
{
	if (key == "link") {
		match_.links = find_links(value, links);
		return match_.links.empty() ? "there is no link \"" + std::string(value) +
		                                      "\"; a link of a "
		                                      "topology is FROM:TO, the names of its ends"
		                            : "";
	}
	if (key == "by")
		return parse_amount(value);
	if (key == "once" || key == "every" || key == "probability")
		return parse_frequency(key, value);
	return parse_match(key, value);
}

std::string Rule::parse_match(std::string_view key, std::string_view value)
{
	if (key == "from" || key == "to" || key == "host") {
		auto &hosts = key == "from" ? match_.from : key == "to" ? match_.to : match_.host;
		hosts = parse_addresses(value);
		return hosts.empty() ? "needs Ethernet addresses, separated by commas" : "";
	}
	if (key == "opcode") {
		match_.opcodes = parse_opcodes(value);
		return match_.opcodes ? "" : "there is no opcode \"" + std::string(value) + "\"";
	}
	if (key == "qp") {
		match_.qpn = parse_integer<uint32_t>(value);
		return match_.qpn.value_or(kMaxQpn + 1) <= kMaxQpn ? ""
		                                                   : "needs a number of 24 bits";
	}
	if (key == "psn")
		return parse_psn(value);
	if (key == "retransmission") {
		match_.retransmission = value == "yes";
		return value == "yes" || value == "no" ? "" : "needs yes or no";
	}
	if (key == "nth") {
		match_.nth = parse_decimal<uint64_t>(value);
		return match_.nth.value_or(0) ? "" : "needs a number from 1";
	}
	return "there is no such key; there are link, from, to, host, opcode, qp, psn, "
	       "retransmission, "
	       "nth, by, once, every and probability";
}

std::string Rule::parse_psn(std::string_view value)
{
	const bool relative = value.starts_with('+');
	const auto number = parse_integer<uint32_t>(value.substr(relative));
	if (number.value_or(kMaxPsn + 1) > kMaxPsn)
		return "needs a number of 24 bits, with a + before it if it counts from the first "
		       "packet";
	if (relative)
		match_.psn_offset = *number;
	else
		match_.psn = Psn(*number);
	return {};
}

std::string Rule::parse_frequency(std::string_view key, std::string_view value)
{
	if (key == "once") {
		frequency_.once = true;
	} else if (key == "every") {
		frequency_.every = parse_decimal<uint64_t>(value).value_or(0);
		if (!frequency_.every)
			return "needs a number from 1";
	} else {
		frequency_.probability = parse_decimal<double>(value).value_or(0);
		if (!(frequency_.probability > 0 && frequency_.probability <= 1))
			return "needs a number above 0, at most 1";
	}
	return {};
}

std::string Rule::parse_amount(std::string_view value)
{
	if (fault_ == Fault::Delay) {
		const auto time = parse_time(value).value_or(0ns);
		amount_ = static_cast<uint64_t>(time.count());
		return time > 0ns && time <= kMaxDelay ? ""
		                                       : "needs a time such as 5ms, at most 60s";
	}
	if (fault_ == Fault::Reorder) {
		amount_ = parse_decimal<uint64_t>(value).value_or(0);
		return amount_ && amount_ <= kMaxOvertaken ? "" : "needs a number from 1 to 1000";
	}
	return "is for delay and reorder alone";
}

/* Returns why no frame could be from and to these hosts, or empty. */
std::string Rule::contradiction_of_hosts() const
{
	if (match_.from.empty() || match_.to.empty())
		return {};
	std::set<uint64_t> ends(match_.from.begin(), match_.from.end());
	ends.insert(match_.to.begin(), match_.to.end());
	if (ends.size() == 1)
		return "to: what a host sends to itself does not pass the wire";
	const auto is_end = [&](uint64_t host) { return ends.contains(host); };
	if (!match_.host.empty() && std::ranges::none_of(match_.host, is_end))
		return "host: is in neither from nor to";
	return {};
}

/* Returns why the rule could never act, or that it says two things, or empty. */
std::string Rule::contradiction() const
{
	if ((fault_ == Fault::Delay || fault_ == Fault::Reorder) && !amount_)
		return "by: is missing";
	const bool random = frequency_.probability != 1;
	if (match_.nth && (random || frequency_.every != 1))
		return "nth: excludes every and probability";
	if (random && frequency_.every != 1)
		return "every: excludes probability";
	if (const std::string error = contradiction_of_hosts(); !error.empty())
		return error;
	if (!match_.opcodes)
		return {};
	if (match_.retransmission && !match_.opcodes->has_data())
		return "retransmission: only requests and READ responses of RC and XRC are "
		       "retransmitted";
	if (!match_.opcodes->has_roce() && (match_.qpn || match_.psn || match_.psn_offset))
		return "opcode: frames that are not RoCE have neither qp nor psn";
	return {};
}

/* ---- matching ------------------------------------------------------------------- */

/* Notes the packet in its flow. Returns whether it meets the conditions about that. */
bool Rule::fits_flow(const RoceFields &roce, const Passage &passage)
{
	if (!match_.psn_offset && !match_.retransmission)
		return true;
	if (flows_.size() >= kMaxFlows)
		flows_.clear();
	const FlowKey key{passage.source, passage.destination, roce.qpn, is_response(roce.opcode)};
	const Flow begun{roce.psn, roce.psn, std::nullopt};
	Flow &flow = flows_.try_emplace(key, begun).first->second;
	const int32_t ahead = roce.psn - flow.highest;
	if (ahead > kMaxJump || ahead < -kMaxJump)
		flow = begun;
	else if (ahead > 0)
		flow.highest = roce.psn;
	/* An acknowledgement has the PSN of another packet, which may not have been sent yet. */
	const bool again = flow.highest_data && roce.psn - *flow.highest_data <= 0;
	if (is_data(roce.opcode) && !again)
		flow.highest_data = roce.psn;
	if (match_.psn_offset && flow.first + *match_.psn_offset != roce.psn)
		return false;
	return !match_.retransmission || (is_data(roce.opcode) && *match_.retransmission == again);
}

bool Rule::see(const Passage &passage, const AddressTable &addresses, double random)
{
	if (spent() || !match_.admits(passage, addresses))
		return false;
	if (passage.roce && !fits_flow(*passage.roce, passage))
		return false;
	/* A mark has no effect on others. */
	if (fault_ == Fault::Mark && !fabric::can_mark(passage.frame))
		return false;
	matched_++;
	if ((match_.nth && matched_ != *match_.nth) || matched_ % frequency_.every ||
	    random >= frequency_.probability)
		return false;
	hits_++;
	return true;
}

} // namespace tern::faults
