// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/topology.h"

#include <algorithm>
#include <sstream>

#include "qemu/rnic/json.h"
#include "qemu/sim/scenario.h"

namespace tern::wire {

using fabric::Plan;
using fabric::TomlTable;
using End = fabric::Fabric::End;

namespace {

constexpr uint64_t kMega = 1'000'000;
/* The keys of a file that have no effect in real time. */
constexpr const char *kOfSimulator[] = {"duration",   "warmup", "sample", "mtu",
                                        "congestion", "flow",   "fault",  "rule"};

Plan plan_of(const toml::table &parsed, const std::string &path)
{
	Plan plan = sim::check_scenario(parsed, path, kMaxCards);
	/* In real time, guests that nobody trusts send pause frames. */
	if (!plan.has_watchdog)
		plan.queues.pfc.watchdog = watchdog_for(plan);
	return plan;
}

} // namespace

Plan read_topology(const std::string &path)
{
	return plan_of(fabric::parse_toml_file(path), path);
}

Plan parse_topology(const std::string &text, const std::string &path)
{
	return plan_of(fabric::parse_toml(text, path), path);
}

namespace {

std::string describe(const toml::table &parsed, const std::string &path)
{
	const Plan plan = plan_of(parsed, path);
	if (!std::ranges::any_of(plan.hosts, &std::string::empty, &Plan::Host::tap))
		TomlTable(parsed, "", path).fail("host", "all are TAP interfaces");
	const auto rates = plan.card_rates();
	Json json;
	json.object("", [&] {
		json.list("unused", [&] {
			for (const char *key : kOfSimulator)
				if (parsed.contains(key))
					json.text("", key);
		});
		json.list("hosts", [&] {
			for (const Plan::Host &host : plan.hosts)
				if (host.tap.empty())
					json.object("", [&] {
						json.text("name", host.name);
						json.list("cards", [&] {
							for (unsigned i = host.first;
							     i < host.first + host.cards; i++)
								json.object("", [&] {
									json.text("name",
									          plan.cards[i]);
									json.number("mbps",
									            rates[i] /
									                    kMega);
								});
						});
					});
		});
	});
	return json.written();
}

} // namespace

std::string describe_topology(const std::string &path)
{
	return describe(fabric::parse_toml_file(path), path);
}

std::string describe_text(const std::string &text, const std::string &path)
{
	return describe(fabric::parse_toml(text, path), path);
}

Topology::Topology(Plan plan, Clock &clock, Switch &ethernet, Recorder &recorder)
        : plan_(std::move(plan)), fabric_(loop_, plan_.seed), time_(loop_, clock)
{
	for (size_t i = 0; i < plan_.cards.size(); i++)
		edges_.push_back(std::make_unique<Edge>(EdgeContext{fabric_, time_, ethernet}));
	connect_all(plan_, fabric_);
	ethernet.faults().set_links(faults::link_ends(plan_));
	links_ = faults::intercept_links(fabric_, {ethernet.faults(), fabric_.pool(), recorder});
}

const std::string &Topology::tap_of(size_t card) const
{
	/* The last host whose cards do not begin behind it. */
	const auto next = std::ranges::upper_bound(plan_.hosts, card, {}, &Plan::Host::first);
	return std::prev(next)->tap;
}

std::optional<std::chrono::nanoseconds> Topology::until_next() const
{
	const auto next = time_.until_next();
	return next ? std::optional(std::chrono::nanoseconds(*next)) : std::nullopt;
}

std::optional<std::string> Topology::execute(std::string_view line)
{
	std::istringstream words{std::string(line)};
	std::string command, a, b, state, rest;
	words >> command >> a >> b >> state >> rest;
	advance();
	if (command == "fabric")
		return a.empty() ? "ok " + report() : "error fabric takes no argument";
	if (command != "link")
		return std::nullopt;
	if (!rest.empty() || (state != "up" && state != "down"))
		return "error link SWITCH SWITCH up|down";
	const std::string error = set_link(a, b, state);
	return error.empty() ? "ok" : "error " + error;
}

std::optional<End> Topology::find_switch(const std::string &name) const
{
	const auto found = std::ranges::find(plan_.switches, name);
	if (found == plan_.switches.end())
		return std::nullopt;
	return End{End::Kind::Switch, static_cast<unsigned>(found - plan_.switches.begin())};
}

/* Cuts or mends all links between two switches. Returns why that is not possible, or empty. The lab
 * cuts the link of a card at the card, so that its host sees it. */
std::string Topology::set_link(const std::string &a, const std::string &b, const std::string &state)
{
	const auto from = find_switch(a), to = find_switch(b);
	const auto links = from && to ? find_links(plan_, *from, *to) : std::vector<unsigned>();
	if (links.empty())
		return "there is no link between switches \"" + a + "\" and \"" + b + "\"";
	for (const unsigned link : links)
		fabric_.set_link(link, state == "up");
	return {};
}

/* ---- counters ---- */

namespace {

using Counters = std::array<uint64_t, kPriorities>;

void add_counters(Json &json, const char *name, const Counters &counters)
{
	json.list(name, [&] {
		for (const uint64_t each : counters)
			json.number("", each);
	});
}

/* A queue that was never used is left out. */
void add_queue(Json &json, const fabric::Port &port, uint8_t priority, uint64_t now)
{
	const auto &stats = port.queues.stats(priority);
	if (!stats.frames && !stats.dropped)
		return;
	json.object("", [&] {
		json.number("priority", priority);
		json.number("length", port.queues.bytes(priority));
		json.number("byte_ns", port.queues.byte_ns(priority, now));
		json.number("max_length", stats.max_bytes);
		json.number("frames", stats.frames);
		json.number("bytes", stats.bytes);
		json.number("dropped", stats.dropped);
		json.number("marked", stats.marked);
	});
}

void add_end(Json &json, const std::string &name, const fabric::Port &port, uint64_t now)
{
	const auto &stats = port.stats();
	json.object("", [&] {
		json.text("name", name);
		json.number("tx_frames", stats.tx_frames);
		json.number("tx_bytes", stats.tx_bytes);
		json.number("rx_frames", stats.rx_frames);
		json.number("rx_bytes", stats.rx_bytes);
		json.number("lost", stats.lost);
		json.number("busy_ns", stats.busy_ns);
		json.number("pause_storms", stats.pause_storms);
		json.number("storm_dropped", stats.storm_dropped);
		add_counters(json, "pauses_sent", stats.pauses_sent);
		add_counters(json, "pauses_received", stats.pauses_received);
		json.list("queues", [&] {
			for (uint8_t priority = 0; priority < kPriorities; priority++)
				add_queue(json, port, priority, now);
		});
	});
}

void add_switch(Json &json, const std::string &name, const fabric::Switch::Stats &stats)
{
	json.object("", [&] {
		json.text("name", name);
		json.number("flooded", stats.flooded);
		json.number("filtered", stats.filtered);
		json.number("unreachable", stats.unreachable);
		json.number("pfc_dropped", stats.pfc_dropped);
	});
}

} // namespace

std::string Topology::report()
{
	Json json;
	json.object("", [&] {
		json.number("now_ns", loop_.now());
		json.list("links", [&] {
			for (unsigned i = 0; i < plan_.links.size(); i++) {
				/* No binding of both, which clang 14 does not capture. */
				const auto ends = fabric_.ends(i);
				const fabric::Port &a = *ends.a, &b = *ends.b;
				json.object("", [&] {
					json.number("rate", a.link.rate);
					json.flag("up", a.up());
					json.list("ends", [&] {
						add_end(json, plan_.name_of(plan_.links[i].a), a,
						        loop_.now());
						add_end(json, plan_.name_of(plan_.links[i].b), b,
						        loop_.now());
					});
				});
			}
		});
		json.list("switches", [&] {
			for (unsigned i = 0; i < plan_.switches.size(); i++)
				add_switch(json, plan_.switches[i], fabric_.at(i).stats());
		});
		json.list("cards", [&] {
			for (size_t i = 0; i < edges_.size(); i++)
				json.object("", [&] {
					json.text("name", plan_.cards[i]);
					json.flag("connected", edges_[i]->connected());
					json.number("too_long", edges_[i]->too_long());
				});
		});
	});
	return json.written();
}

} // namespace tern::wire
