// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/sim/scenario.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>
#include <sstream>
#include <utility>

#include "qemu/faults/fault_set.h"
#include "qemu/faults/link_faults.h"
#include "qemu/faults/rule_file.h"
#include "qemu/rnic/limits.h"

namespace tern::sim {

namespace {

using fabric::kRateUnits;
using fabric::kSizeUnits;
using fabric::kTimeUnits;
using fabric::TomlTable;
using End = fabric::Fabric::End;

constexpr uint64_t kMaxCards = 100'000;
constexpr uint64_t kMaxFlows = 1'000'000;
constexpr uint64_t kMaxDepth = 1024;
constexpr uint64_t kMaxQpsOfCard = kMaxQps - 2; /* numbers 0 and 1 are special */
constexpr uint64_t kMaxCompletions = (uint64_t{1} << kMaxLogCq) - 1;
constexpr uint64_t kMaxMessage = uint64_t{1} << 31; /* IBA 9.7.7 */
constexpr uint64_t kMaxDscp = 63;
constexpr uint64_t kMaxPort = UINT16_MAX;
constexpr uint64_t kMaxTimeout = 31; /* five bits (IBA 11.2.5.3) */
constexpr uint64_t kTimeout = 12;    /* 67 ms, more than a message may be paused */
/* Points of a curve unless the file says how far they are apart. */
constexpr uint64_t kSamples = 200;
constexpr uint64_t kMaxSamples = 100'000;
constexpr uint64_t kForever = 1'000'000'000'000'000; /* the longest time of a file */

constexpr std::string_view kServices[] = {"rc", "uc", "ud"};
constexpr std::string_view kOperations[] = {"write", "send", "read"};
constexpr std::string_view kOrders[] = {"together", "in turn"};
constexpr std::string_view kAlgorithms[] = {"none", "dcqcn", "timely"};
constexpr std::string_view kDefaults[] = {"mlx5", "sigcomm2015"};

using P = CongestionParameters;
constexpr std::pair<std::string_view, uint32_t P::*> kParameters[] = {
        {"rp_clamp_tgt_rate", &P::rp_clamp_tgt_rate},
        {"rp_clamp_tgt_rate_ati", &P::rp_clamp_tgt_rate_ati},
        {"rp_time_reset", &P::rp_time_reset},
        {"rp_byte_reset", &P::rp_byte_reset},
        {"rp_threshold", &P::rp_threshold},
        {"rp_ai_rate", &P::rp_ai_rate},
        {"rp_max_rate", &P::rp_max_rate},
        {"rp_hai_rate", &P::rp_hai_rate},
        {"rp_min_dec_fac", &P::rp_min_dec_fac},
        {"rp_min_rate", &P::rp_min_rate},
        {"rp_rate_to_set_on_first_cnp", &P::rp_rate_to_set_on_first_cnp},
        {"rp_dce_tcp_g", &P::rp_dce_tcp_g},
        {"rp_dce_tcp_rtt", &P::rp_dce_tcp_rtt},
        {"rp_rate_reduce_monitor_period", &P::rp_rate_reduce_monitor_period},
        {"rp_initial_alpha_value", &P::rp_initial_alpha_value},
        {"rp_gd", &P::rp_gd},
        {"rp_timely_t_low", &P::rp_timely_t_low},
        {"rp_timely_t_high", &P::rp_timely_t_high},
        {"rp_timely_min_rtt", &P::rp_timely_min_rtt},
        {"rp_timely_beta", &P::rp_timely_beta},
        {"rp_timely_ewma_alpha", &P::rp_timely_ewma_alpha},
        {"np_min_time_between_cnps", &P::np_min_time_between_cnps},
        {"np_cnp_dscp", &P::np_cnp_dscp},
};

/** Turns the tables of a file into a Scenario. */
class Parser {
public:
	/** @duration: if the file gives none; else that is an error. */
	Parser(const toml::table &table, const std::string &file, size_t max_cards,
	       std::optional<uint64_t> duration = {})
	        : file_(table, "", file), max_cards_(max_cards), missing_duration_(duration)
	{
	}

	Scenario parse();

private:
	void parse_times();
	void parse_congestion();
	void parse_flows();
	void parse_flow(TomlTable &table);
	void parse_faults();
	void parse_rules();
	std::string addresses(TomlTable &table, const faults::RuleWord &word);
	std::vector<unsigned> cards_of_rule(TomlTable &table, std::string_view key,
	                                    const std::string &name);
	std::vector<unsigned> cards_like(TomlTable &table, std::string_view key,
	                                 const std::string &pattern);
	std::vector<unsigned> cards(TomlTable &table, std::string_view key);
	void check_flow(TomlTable &table, const Scenario::Flow &flow) const;
	void count(TomlTable &table, unsigned card, uint64_t qps, uint64_t depth);

	TomlTable file_;
	const size_t max_cards_;
	const std::optional<uint64_t> missing_duration_;
	Scenario s_;
	/* By card. */
	std::vector<uint64_t> qps_;
	std::vector<uint64_t> completions_;
};

Scenario Parser::parse()
{
	parse_times();
	parse_congestion();
	fabric::read_plan(file_, max_cards_, s_);
	qps_.resize(s_.cards.size());
	completions_.resize(s_.cards.size());
	parse_flows();
	parse_faults();
	parse_rules();
	file_.end();
	return std::move(s_);
}

void Parser::parse_times()
{
	s_.duration = file_.quantity("duration", kTimeUnits, 1, missing_duration_);
	s_.warmup = file_.quantity("warmup", kTimeUnits, 0, 0);
	if (s_.warmup >= s_.duration)
		file_.fail("warmup", "must be less than the duration");
	s_.sample = file_.quantity("sample", kTimeUnits, 1,
	                           std::max<uint64_t>(s_.duration / kSamples, 1));
	if (file_.has("duration") && s_.duration / s_.sample > kMaxSamples)
		file_.fail("sample",
		           "would make more than " + std::to_string(kMaxSamples) + " points");
	s_.mtu = file_.integer("mtu", kMinPathMtu, kMaxPathMtu, s_.mtu);
	if (s_.mtu & (s_.mtu - 1))
		file_.fail("mtu", "must be a power of two");
}

/* The cards' own flow control stays off: their ports obey pause frames. */
void Parser::parse_congestion()
{
	TomlTable table = file_.table("congestion");
	const auto algorithm = table.word("algorithm", kAlgorithms);
	P &parameters = s_.congestion;
	if (table.word("defaults", kDefaults))
		parameters = sigcomm2015();
	parameters.rp_algorithm = static_cast<uint32_t>(algorithm);
	parameters.rp_timer_slack = 0; /* no timer is late here */
	for (const auto &[key, member] : kParameters) {
		const CongestionRange range = range_of(member);
		parameters.*member = static_cast<uint32_t>(
		        table.integer(key, range.least, range.most, parameters.*member));
	}
	table.end();
}

/* Cards alone. */
std::vector<unsigned> Parser::cards(TomlTable &table, std::string_view key)
{
	std::vector<unsigned> all;
	for (const std::string &pattern : table.texts(key))
		std::ranges::copy(cards_like(table, key, pattern), std::back_inserter(all));
	if (all.empty())
		table.fail(key, "must name a card");
	return all;
}

std::vector<unsigned> Parser::cards_like(TomlTable &table, std::string_view key,
                                         const std::string &pattern)
{
	std::vector<unsigned> all;
	for (const End &end : fabric::find_ends(s_, table, key, pattern)) {
		if (end.kind != End::Kind::Host)
			table.fail(key, "\"" + s_.name_of(end) + "\" is a switch");
		all.push_back(end.number);
	}
	return all;
}

void Parser::parse_flows()
{
	for (TomlTable &table : file_.tables("flow"))
		parse_flow(table);
}

void Parser::check_flow(TomlTable &table, const Scenario::Flow &flow) const
{
	if (flow.service == Service::Ud && flow.operation != Operation::Send)
		table.fail("operation", "ud has only send");
	if (flow.service == Service::Uc && flow.operation == Operation::Read)
		table.fail("operation", "uc has no read");
	if (flow.service == Service::Ud && flow.size > s_.mtu)
		table.fail("size", "a datagram has at most " + std::to_string(s_.mtu) + " bytes");
	if (flow.rotation && flow.rate)
		table.fail("order", "flows with a rate do not wait for each other");
	if (flow.end <= flow.start)
		table.fail("end", "must be after the start");
}

/* Checks the limits of a card: the number of QPs, and the size of the CQ that they share. */
void Parser::count(TomlTable &table, unsigned card, uint64_t qps, uint64_t depth)
{
	qps_[card] += qps;
	if (qps_[card] > kMaxQpsOfCard)
		table.fail("qps", "makes more than " + std::to_string(kMaxQpsOfCard) +
		                          " QPs of card \"" + s_.cards[card] + "\"");
	completions_[card] += 2 * depth * qps;
	if (completions_[card] > kMaxCompletions)
		table.fail("depth", "makes more than " + std::to_string(kMaxCompletions) +
		                            " messages outstanding at card \"" + s_.cards[card] +
		                            "\"");
}

/* Adds @qps flows from each card of "from" to @peers of the cards of "to", evenly spread behind it.
 * Flow k of each card has the same distance. So if all cards send in turn and at the same pace, no
 * two of them send to one receiver. */
void Parser::parse_flow(TomlTable &table)
{
	const auto from = cards(table, "from");
	const auto to = cards(table, "to");
	Scenario::Flow flow{};
	flow.service = static_cast<Service>(table.word("service", kServices));
	flow.operation = static_cast<Operation>(table.word("operation", kOperations));
	flow.size = table.quantity("size", kSizeUnits, 1, 65536);
	if (flow.size > kMaxMessage)
		table.fail("size", "a message has at most 2 GiB");
	flow.depth = table.integer("depth", 1, kMaxDepth, 2);
	flow.rate = table.quantity("rate", kRateUnits, 1, 0);
	flow.messages = table.integer("messages", 1, INT64_MAX, 0);
	flow.start = table.quantity("start", kTimeUnits, 0, 0);
	flow.end = table.quantity("end", kTimeUnits, 0, s_.duration);
	flow.dscp = static_cast<uint8_t>(table.integer("dscp", 0, kMaxDscp, 0));
	flow.timeout = static_cast<uint8_t>(table.integer("timeout", 0, kMaxTimeout, kTimeout));
	const bool in_turn = table.word("order", kOrders) != 0;
	const uint64_t peers =
	        std::min<uint64_t>(table.integer("peers", 1, kMaxCards, to.size()), to.size());
	const uint64_t qps = table.integer("qps", 1, kMaxPort, 1);
	flow.rotation = in_turn ? s_.rotations + 1 : 0;
	check_flow(table, flow);
	const size_t before = s_.flows.size();
	for (size_t i = 0; i < from.size(); i++) {
		flow.rotation = in_turn ? ++s_.rotations : 0;
		for (uint64_t k = 0; k < peers; k++) {
			flow.from = from[i];
			flow.to = to[(i + 1 + k * to.size() / peers) % to.size()];
			if (flow.from == flow.to)
				continue;
			count(table, flow.from, qps, flow.depth);
			count(table, flow.to, qps, flow.depth);
			s_.flows.insert(s_.flows.end(), qps, flow);
			if (s_.flows.size() > kMaxFlows)
				table.fail("qps", "makes more than " + std::to_string(kMaxFlows) +
				                          " flows");
		}
	}
	if (s_.flows.size() == before)
		table.fail("to", "there is no flow from a card to itself");
	table.end();
}

void Parser::parse_faults()
{
	for (TomlTable &table : file_.tables("fault")) {
		const auto names = table.texts("link");
		if (names.size() != 2)
			table.fail("link", "must be the two names of its ends");
		Scenario::Fault fault{};
		fault.down = table.quantity("down", kTimeUnits, 0);
		fault.up = table.quantity("up", kTimeUnits, 0, s_.duration);
		if (fault.up <= fault.down)
			table.fail("up", "must be after down");
		const size_t before = s_.faults.size();
		for (const End &a : fabric::find_ends(s_, table, "link", names[0])) {
			for (const End &b : fabric::find_ends(s_, table, "link", names[1])) {
				for (const unsigned link : find_links(s_, a, b)) {
					fault.link = link;
					s_.faults.push_back(fault);
				}
			}
		}
		if (s_.faults.size() == before)
			table.fail("link", "there is no link between \"" + names[0] + "\" and \"" +
			                           names[1] + "\"");
		table.end();
	}
}

/* All cards of the host @name, or else the cards whose names match. */
std::vector<unsigned> Parser::cards_of_rule(TomlTable &table, std::string_view key,
                                            const std::string &name)
{
	const auto host = std::ranges::find(s_.hosts, name, &fabric::Plan::Host::name);
	if (host == s_.hosts.end())
		return cards_like(table, key, name);
	std::vector<unsigned> all(host->cards);
	std::iota(all.begin(), all.end(), host->first);
	return all;
}

std::string address_of_card(unsigned card)
{
	const Mac mac = mac_of_card(card);
	char text[18];
	std::snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
	              mac[3], mac[4], mac[5]);
	return text;
}

/* The addresses that a word of a rule names, separated by commas as the names are. */
std::string Parser::addresses(TomlTable &table, const faults::RuleWord &word)
{
	std::istringstream names(word.value);
	std::string all;
	const auto add = [&](const std::string &address) {
		all.append(all.empty() ? "" : ",").append(address);
	};
	for (std::string name; std::getline(names, name, ',');) {
		if (faults::parse_address(name)) {
			add(name);
			continue;
		}
		for (const unsigned card : cards_of_rule(table, word.key, name))
			add(address_of_card(card));
	}
	return all;
}

/* In a rule as faults::Rule reads it, hosts are addresses. */
void Parser::parse_rules()
{
	for (auto &[table, words] : faults::read_rules(file_)) {
		Scenario::Rule rule;
		for (const faults::RuleWord &word : words) {
			const bool is_host =
			        word.key == "from" || word.key == "to" || word.key == "host";
			rule.text += (rule.text.empty() ? "" : " ") +
			             (is_host ? word.with(addresses(table, word)) : word.text());
			rule.shown += (rule.shown.empty() ? "" : " ") + word.text();
		}
		const std::string error = faults::Rule().parse(rule.text, faults::link_ends(s_));
		if (const size_t colon = error.find(": "); colon != error.npos)
			table.fail(error.substr(0, colon), error.substr(colon + 2));
		s_.rules.push_back(rule);
		if (s_.rules.size() > faults::FaultSet::kMaxRules)
			table.fail("action", "there may be " +
			                             std::to_string(faults::FaultSet::kMaxRules) +
			                             " rules");
	}
}

} // namespace

Mac mac_of_card(unsigned number)
{
	const unsigned i = number + 1;
	return {2,
	        0x7e,
	        0x44,
	        static_cast<uint8_t>(i >> 16),
	        static_cast<uint8_t>(i >> 8),
	        static_cast<uint8_t>(i)};
}

Scenario read_scenario(const std::string &path)
{
	return Parser(fabric::parse_toml_file(path), path, kMaxCards).parse();
}

Scenario parse_scenario(const std::string &text, const std::string &path)
{
	return Parser(fabric::parse_toml(text, path), path, kMaxCards).parse();
}

fabric::Plan check_scenario(const toml::table &file, const std::string &path, size_t max_cards)
{
	return Parser(file, path, max_cards, kForever).parse();
}

} // namespace tern::sim
