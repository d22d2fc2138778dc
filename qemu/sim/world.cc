// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/sim/world.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace tern::sim {

namespace {

constexpr double kSecond = 1e9;
/* Flows with the same start begin within this time of each other. */
constexpr uint64_t kStartSpread = 10'000; /* ns */
constexpr uint16_t kFirstUdpPort = 0xc000;
constexpr uint16_t kUdpPorts = 0x4000;

/* Returns the shortest delay of the links that have @ends cards, or the scenario's duration if
 * there is no such link. */
uint64_t shortest_delay(const Scenario &scenario, int ends)
{
	using Kind = fabric::Fabric::End::Kind;
	uint64_t shortest = scenario.duration;
	for (const auto &link : scenario.links)
		if ((link.a.kind == Kind::Host) + (link.b.kind == Kind::Host) == ends)
			shortest = std::min(shortest, link.config.delay);
	return shortest;
}

/* Whether each card may run by itself for some time. Rules see the frames of all links in the order
 * of time. */
bool runs_apart(const Scenario &scenario)
{
	return shortest_delay(scenario, 1) && shortest_delay(scenario, 2) && scenario.rules.empty();
}

template <typename T>
void prefetch_object(const T &object)
{
	for (size_t i = 0; i < sizeof(object); i += fabric::Frame::kCacheLine)
		__builtin_prefetch(reinterpret_cast<const char *>(&object) + i);
}

} // namespace

World::World(const Scenario &s)
        : scenario(s), switches_(EventLoop::Events::Many),
          cards_(runs_apart(s) ? s.cards.size() : 0), fabric(switches_, s.seed),
          uplink_delay_(shortest_delay(s, 1)), direct_delay_(shortest_delay(s, 2))
{
	build_fabric();
	build_flows();
	set_rules();
	queues = fabric::queues_of(scenario, fabric);
	schedule();
}

void World::build_fabric()
{
	std::vector<size_t> entries(scenario.cards.size()), qps(scenario.cards.size());
	for (const Scenario::Flow &flow : scenario.flows) {
		for (const unsigned card : {flow.from, flow.to}) {
			entries[card] += 2 * flow.depth;
			qps[card]++;
		}
	}
	const auto rates = scenario.card_rates();
	for (unsigned i = 0; i < scenario.cards.size(); i++)
		hosts.push_back(std::make_unique<Host>(loop_of(i), fabric, i, entries[i], qps[i],
		                                       rates[i], scenario.congestion));
	connect_all(scenario, fabric);
}

void World::build_flows()
{
	std::mt19937_64 random(scenario.seed);
	rotations.resize(scenario.rotations);
	for (const Scenario::Flow &spec : scenario.flows) {
		const auto port = static_cast<uint16_t>(kFirstUdpPort + random() % kUdpPorts);
		EventLoop &loop = loop_of(spec.from);
		Rotation *rotation = spec.rotation ? &rotations[spec.rotation - 1] : nullptr;
		flows.push_back(std::make_unique<Flow>(loop, *hosts[spec.from], *hosts[spec.to],
		                                       spec, scenario.mtu, port, rotation));
		Flow &flow = *flows.back();
		loop.at(spec.start + random() % kStartSpread, [&flow] { flow.start(); });
	}
}

void World::set_rules()
{
	if (scenario.rules.empty())
		return;
	faults.seed(scenario.seed);
	faults.set_links(faults::link_ends(scenario));
	for (const Scenario::Rule &rule : scenario.rules)
		faults.add_rules(rule.text); /* valid, as the scenario's reader has checked */
	links_ = faults::intercept_links(fabric, {faults, fabric.pool(), *this});
}

void World::arrived(unsigned link_end, faults::Bytes frame,
                    const std::vector<faults::FaultEvent> &events)
{
	for (const faults::FaultEvent &event : events)
		if (fault_notes.size() < kMaxFaultNotes)
			fault_notes.push_back({switches_.now(), link_end, event.fault, event.rule,
			                       faults::read_roce(frame)});
}

void World::schedule()
{
	for (const Scenario::Fault &fault : scenario.faults) {
		control_.at(fault.down, [this, i = fault.link] { fabric.set_link(i, false); });
		if (fault.up < scenario.duration)
			control_.at(fault.up, [this, i = fault.link] { fabric.set_link(i, true); });
	}
	control_.at(scenario.warmup, [this] { end_warmup(); });
	sampled_.resize(flows.size());
	curves.rates.resize(flows.size());
	curves.lengths.resize(queues.size());
	control_.at(scenario.sample, [this] { sample(); });
}

std::vector<uint64_t> World::byte_ns(uint64_t now) const
{
	std::vector<uint64_t> all;
	for (const fabric::QueueRef &queue : queues)
		all.push_back(queue.port->queues.byte_ns(queue.priority, now));
	return all;
}

void World::end_warmup()
{
	for (const auto &flow : flows) {
		flow->end_warmup();
		start_.wire_bytes.push_back(flow->wire_bytes());
	}
	start_.byte_ns = byte_ns(control_.now());
	for (unsigned i = 0; i < fabric.links(); i++) {
		const auto [a, b] = fabric.ends(i);
		start_.busy_ns.push_back({a->stats().busy_ns, b->stats().busy_ns});
	}
}

void World::sample()
{
	uint64_t cnps = 0;
	for (size_t i = 0; i < flows.size(); i++) {
		const uint64_t bytes = flows[i]->wire_bytes();
		const double rate = static_cast<double>(bytes - sampled_[i]) * 8 * kSecond /
		                    static_cast<double>(scenario.sample);
		curves.rates[i].push_back(static_cast<uint64_t>(rate));
		sampled_[i] = bytes;
		cnps += flows[i]->cnps();
	}
	for (size_t i = 0; i < queues.size(); i++)
		curves.lengths[i].push_back(queues[i].port->queues.bytes(queues[i].priority));
	curves.cnps.push_back(cnps - sampled_cnps_);
	sampled_cnps_ = cnps;
	control_.after(scenario.sample, [this] { sample(); });
}

void World::run()
{
	for (uint64_t now = 0; now <= scenario.duration; now = switches_.now()) {
		control_.run_before(now + 1);
		run_until(std::min(scenario.duration + 1, control_.next().value_or(UINT64_MAX)));
	}
	end_byte_ns_ = byte_ns(scenario.duration);
	forget_unused_queues();
}

/* Runs all events before @end. */
void World::run_until(uint64_t end)
{
	if (cards_.empty())
		return switches_.run_before(end);
	while (switches_.now() < end || cards_now_ < end) {
		switches_.run_before(std::min(end, cards_now_ + uplink_delay_));
		cards_now_ = std::min(
		        {end, switches_.now() + uplink_delay_, cards_now_ + direct_delay_});
		run_cards();
	}
}

/* Runs all cards up to cards_now_. When a card runs again, all others have run since, and its state
 * has to be loaded from memory. */
void World::run_cards()
{
	constexpr size_t kFar = 4, kNear = 2; /* cards ahead */
	for (size_t i = 0; i < cards_.size(); i++) {
		if (i + kFar < cards_.size()) {
			prefetch_object(cards_[i + kFar]);
			prefetch_object(*hosts[i + kFar]);
		}
		if (i + kNear < cards_.size()) {
			cards_[i + kNear].prefetch();
			hosts[i + kNear]->prefetch();
		}
		cards_[i].run_before(cards_now_);
	}
}

void World::forget_unused_queues()
{
	size_t kept = 0;
	for (size_t i = 0; i < queues.size(); i++) {
		const auto &stats = queues[i].stats();
		if (!stats.frames && !stats.dropped)
			continue;
		queues[kept] = queues[i];
		start_.byte_ns[kept] = start_.byte_ns[i];
		end_byte_ns_[kept] = end_byte_ns_[i];
		std::swap(curves.lengths[kept], curves.lengths[i]);
		kept++;
	}
	queues.resize(kept);
	curves.lengths.resize(kept);
}

uint64_t World::packets() const
{
	return std::accumulate(hosts.begin(), hosts.end(), uint64_t{0},
	                       [](uint64_t sum, const auto &host) { return sum + host->received; });
}

double World::rate(size_t i) const
{
	return static_cast<double>(flows[i]->wire_bytes() - start_.wire_bytes[i]) * 8 * kSecond /
	       measured();
}

double World::mean_length(size_t i) const
{
	return static_cast<double>(end_byte_ns_[i] - start_.byte_ns[i]) / measured();
}

double World::utilisation(size_t link, size_t end) const
{
	const auto ends = fabric.ends(static_cast<unsigned>(link));
	const uint64_t busy = (end ? ends.b : ends.a)->stats().busy_ns;
	return static_cast<double>(busy - start_.busy_ns[link][end]) / measured();
}

} // namespace tern::sim
