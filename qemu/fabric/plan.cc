// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/plan.h"

#include <fnmatch.h>

#include <algorithm>
#include <limits>
#include <regex>
#include <set>

namespace tern::fabric {

namespace {

using End = Fabric::End;

constexpr uint64_t kMaxCardsOfHost = 8;
constexpr uint64_t kMaxWeight = 1000;
constexpr size_t kMaxPorts = UINT16_MAX; /* of a switch, which numbers them with 16 bits */
/* Cards know their rate in Mb/s. */
constexpr uint64_t kMinRate = 1'000'000;
constexpr double kMaxSeconds = 1e6;
/* The word by which commands of the lab mean all hosts. */
constexpr std::string_view kEveryHost = "all";

/** Reads the tables of a topology file into a Plan: queues, switches, hosts and links. */
class Reader {
public:
	Reader(TomlTable &file, size_t max_cards, Plan &plan)
	        : file_(file), max_cards_(max_cards), plan_(plan)
	{
	}

	void read_queues();
	void read_ecn();
	void read_pfc();
	void read_switches();
	void read_hosts();
	void read_links();

private:
	void add_host(TomlTable &table, const std::string &name, uint64_t cards,
	              const std::string &tap);
	void claim(TomlTable &table, const std::string &name);
	void link(TomlTable &table, const End &a, const End &b, const LinkConfig &config);

	TomlTable &file_;
	const size_t max_cards_;
	Plan &plan_;
	std::set<std::string> names_;
	std::vector<size_t> ports_; /* how many each switch has */
	/* By the number of the card. */
	std::vector<bool> linked_;
	std::vector<TomlTable> host_tables_;
};

void Reader::read_queues()
{
	TomlTable queues = file_.table("queues");
	SwitchConfig &config = plan_.queues;
	config.queue_limit = queues.quantity("limit", kSizeUnits, kMaxEthFrame, config.queue_limit);
	if (queues.has("weights")) {
		const auto weights = queues.integers("weights", kMaxWeight);
		if (weights.size() != kPriorities)
			queues.fail("weights", "must be eight numbers, of priorities 0 to 7");
		std::ranges::copy(weights, config.weights.begin());
	}
	queues.end();
}

void Reader::read_ecn()
{
	TomlTable ecn = file_.table("ecn");
	Red &red = plan_.queues.red;
	if (file_.has("ecn")) {
		red.kmax = ecn.quantity("kmax", kSizeUnits, 1);
		red.kmin = ecn.quantity("kmin", kSizeUnits, 0, red.kmax);
		red.pmax = ecn.share("pmax", 1);
		if (red.kmin > red.kmax)
			ecn.fail("kmin", "must not exceed kmax");
	}
	ecn.end();
}

void Reader::read_pfc()
{
	TomlTable pfc = file_.table("pfc");
	PfcConfig &config = plan_.queues.pfc;
	if (file_.has("pfc"))
		for (const uint64_t priority : pfc.integers("priorities", kPriorities - 1))
			config.lossless |= static_cast<uint8_t>(1u << priority);
	config.xoff = pfc.quantity("xoff", kSizeUnits, 1, config.xoff);
	config.xon = pfc.quantity("xon", kSizeUnits, 0, std::min(config.xon, config.xoff));
	config.headroom = pfc.quantity("headroom", kSizeUnits, 0, 0);
	plan_.has_watchdog = pfc.has("watchdog");
	config.watchdog = pfc.quantity("watchdog", kTimeUnits, 0, 0);
	if (config.xon > config.xoff)
		pfc.fail("xon", "must not exceed xoff");
	pfc.end();
}

/* Hosts, cards and switches have one space of names. */
void Reader::claim(TomlTable &table, const std::string &name)
{
	if (!names_.insert(name).second)
		table.fail("name", "there is a \"" + name + "\" already");
}

/* Names become those of guests and of sockets. */
std::string name_in(TomlTable &table)
{
	static const std::regex shape("[A-Za-z][A-Za-z0-9_-]{0,31}");
	const std::string name = table.text("name");
	if (!std::regex_match(name, shape))
		table.fail("name", "must be a letter and up to 31 letters, digits, \"-\" or \"_\"");
	return name;
}

void Reader::read_switches()
{
	for (TomlTable &table : file_.tables("switch")) {
		plan_.switches.push_back(name_in(table));
		claim(table, plan_.switches.back());
		table.end();
	}
	ports_.resize(plan_.switches.size());
}

/* Numbers the names of hosts that have a count, and the names of the cards of a host with several
 * cards. */
void Reader::read_hosts()
{
	if (!file_.has("host"))
		file_.fail("host", "is missing");
	for (TomlTable &table : file_.tables("host")) {
		const std::string name = name_in(table);
		const uint64_t count = table.integer("count", 1, max_cards_, 1);
		const uint64_t cards = table.integer("cards", 1, kMaxCardsOfHost, 1);
		const bool numbered = table.has("count");
		if (name == kEveryHost && !numbered)
			table.fail("name", "\"" + name + "\" means every host");
		const std::string tap = table.has("tap") ? table.text("tap") : "";
		if (!tap.empty() && (numbered || cards != 1))
			table.fail("tap", "is for one host with one card");
		for (uint64_t i = 1; i <= count; i++)
			add_host(table, numbered ? name + std::to_string(i) : name, cards, tap);
		if (plan_.cards.size() > max_cards_)
			table.fail("count",
			           "makes more than " + std::to_string(max_cards_) + " cards");
		table.end();
	}
	linked_.resize(plan_.cards.size());
}

void Reader::add_host(TomlTable &table, const std::string &name, uint64_t cards,
                      const std::string &tap)
{
	plan_.hosts.push_back({name, static_cast<unsigned>(plan_.cards.size()),
	                       static_cast<unsigned>(cards), tap});
	claim(table, name);
	for (uint64_t card = 1; card <= cards; card++) {
		plan_.cards.push_back(cards == 1 ? name : name + "." + std::to_string(card));
		host_tables_.push_back(table);
	}
}

void Reader::read_links()
{
	for (TomlTable &table : file_.tables("link")) {
		const auto names = table.texts("ends");
		if (names.size() != 2)
			table.fail("ends", "must be two names");
		LinkConfig config;
		config.rate = table.quantity("rate", kRateUnits, kMinRate, config.rate);
		config.delay = table.quantity("delay", kTimeUnits, 0, config.delay);
		config.jitter = table.quantity("jitter", kTimeUnits, 0, 0);
		config.loss = table.share("loss", 0);
		for (const End &a : find_ends(plan_, table, "ends", names[0]))
			for (const End &b : find_ends(plan_, table, "ends", names[1]))
				link(table, a, b, config);
		table.end();
	}
	for (size_t i = 0; i < linked_.size(); i++)
		if (!linked_[i])
			host_tables_[i].fail("name", "\"" + plan_.cards[i] + "\" has no link");
	/* The default headroom is that of the link which needs the most. */
	PfcConfig &pfc = plan_.queues.pfc;
	for (const Plan::Link &each : pfc.headroom ? std::vector<Plan::Link>() : plan_.links)
		pfc.headroom = std::max(pfc.headroom, headroom_for(each.config));
}

void Reader::link(TomlTable &table, const End &a, const End &b, const LinkConfig &config)
{
	if (a == b)
		table.fail("ends", "\"" + plan_.name_of(a) + "\" cannot be linked to itself");
	for (const End &end : {a, b}) {
		if (end.kind != End::Kind::Host) {
			if (++ports_[end.number] > kMaxPorts)
				table.fail("ends", "\"" + plan_.name_of(end) + "\" has more than " +
				                           std::to_string(kMaxPorts) + " ports");
			continue;
		}
		if (linked_[end.number])
			table.fail("ends", "\"" + plan_.name_of(end) + "\" has a link already");
		linked_[end.number] = true;
	}
	plan_.links.push_back({a, b, config});
}

} // namespace

std::vector<uint64_t> Plan::card_rates() const
{
	std::vector<uint64_t> rates(cards.size());
	for (const Link &link : links)
		for (const End &end : {link.a, link.b})
			if (end.kind == End::Kind::Host)
				rates[end.number] = link.config.rate;
	return rates;
}

uint64_t watchdog_for(const Plan &plan)
{
	constexpr uint64_t kUsual = 200'000'000;
	double slowest = std::numeric_limits<double>::infinity();
	size_t ports = 0;
	for (const Plan::Link &link : plan.links) {
		slowest = std::min(slowest, static_cast<double>(link.config.rate));
		for (const End &end : {link.a, link.b})
			ports += end.kind == End::Kind::Switch;
	}
	const PfcConfig &pfc = plan.queues.pfc;
	const double bits = 8.0 * static_cast<double>(ports) *
	                    (static_cast<double>(pfc.xoff) + static_cast<double>(pfc.headroom));
	return std::max(kUsual, static_cast<uint64_t>(std::min(bits / slowest, kMaxSeconds) * 1e9));
}

void read_plan(TomlTable &file, size_t max_cards, Plan &plan)
{
	plan.seed = file.integer("seed", 0, INT64_MAX, 1);
	Reader reader(file, max_cards, plan);
	reader.read_queues();
	reader.read_ecn();
	reader.read_pfc();
	reader.read_switches();
	reader.read_hosts();
	reader.read_links();
}

std::vector<End> find_ends(const Plan &plan, const TomlTable &table, std::string_view key,
                           const std::string &pattern)
{
	std::vector<End> all;
	const auto add = [&](const std::vector<std::string> &names, End::Kind kind) {
		for (unsigned i = 0; i < names.size(); i++)
			if (!fnmatch(pattern.c_str(), names[i].c_str(), 0))
				all.push_back({kind, i});
	};
	add(plan.cards, End::Kind::Host);
	add(plan.switches, End::Kind::Switch);
	if (all.empty())
		table.fail(key, "there is no host or switch \"" + pattern + "\"");
	return all;
}

std::vector<unsigned> find_links(const Plan &plan, const End &a, const End &b)
{
	std::vector<unsigned> found;
	for (unsigned i = 0; i < plan.links.size(); i++) {
		const Plan::Link &link = plan.links[i];
		if ((link.a == a && link.b == b) || (link.a == b && link.b == a))
			found.push_back(i);
	}
	return found;
}

void connect_all(const Plan &plan, Fabric &fabric)
{
	for (size_t i = 0; i < plan.switches.size(); i++)
		fabric.add_switch(plan.queues);
	for (const Plan::Link &link : plan.links)
		fabric.connect(link.a, link.b, link.config);
	fabric.update_routes();
}

std::vector<QueueRef> queues_of(const Plan &plan, Fabric &fabric)
{
	std::vector<QueueRef> queues;
	const auto add = [&](const End &at, const End &to, Port *port) {
		const std::string name = plan.name_of(at) + " to " + plan.name_of(to);
		for (uint8_t p = 0; at.kind == End::Kind::Switch && p < kPriorities; p++)
			queues.push_back({name, port, p});
	};
	for (unsigned i = 0; i < plan.links.size(); i++) {
		const auto [a, b] = fabric.ends(i);
		add(plan.links[i].a, plan.links[i].b, a);
		add(plan.links[i].b, plan.links[i].a, b);
	}
	return queues;
}

} // namespace tern::fabric
