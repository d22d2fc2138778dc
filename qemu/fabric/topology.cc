// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/topology.h"

#include <algorithm>
#include <deque>
#include <limits>

namespace tern::fabric {

namespace {

constexpr Weights kHostWeights{}; /* strict */

constexpr unsigned kFar = std::numeric_limits<unsigned>::max();

} // namespace

unsigned Fabric::add_switch(const SwitchConfig &config)
{
	const auto number = static_cast<unsigned>(switches_.size());
	switches_.push_back(
	        std::make_unique<Switch>(loop_, pool_, locations_, number, config, seed_ + number));
	return number;
}

unsigned Fabric::add_host(const Mac &mac, PortOwner &owner, EventLoop &loop)
{
	hosts_.push_back({mac, &owner, &loop, nullptr, std::nullopt});
	return static_cast<unsigned>(hosts_.size() - 1);
}

unsigned Fabric::add_host(PortOwner &owner)
{
	hosts_.push_back({std::nullopt, &owner, &loop_, nullptr, std::nullopt});
	return static_cast<unsigned>(hosts_.size() - 1);
}

void Fabric::learn(unsigned host, uint64_t mac)
{
	const auto location = hosts_[host].location;
	if (!location || mac & kGroupBit || is_at(host, mac))
		return;
	const auto known = locations_.find(mac);
	if (known != locations_.end()) {
		const auto at = std::ranges::find(hosts_, known->second, &Host::location);
		at->learned.remove(mac);
	}
	locations_[mac] = *location;
	if (const auto oldest = hosts_[host].learned.add(mac))
		locations_.erase(*oldest);
}

bool Fabric::is_at(unsigned host, uint64_t mac) const
{
	const auto known = locations_.find(mac);
	return known != locations_.end() && known->second == hosts_[host].location;
}

Port &Fabric::add_port(const End &end, const LinkConfig &link)
{
	if (end.kind == End::Kind::Switch)
		return switches_[end.number]->add_port(link);
	Host &host = hosts_[end.number];
	host.port = std::make_unique<Port>(*host.loop, pool_, *host.owner, static_cast<uint16_t>(0),
	                                   kHostWeights, link);
	return *host.port;
}

unsigned Fabric::connect(const End &a, const End &b, const LinkConfig &link)
{
	Port &port_a = add_port(a, link);
	Port &port_b = add_port(b, link);
	Port::connect(port_a, port_b, static_cast<uint32_t>(seed_ + links_.size()));
	locate(a, b, port_b);
	locate(b, a, port_a);
	links_.push_back({a, b, &port_a, &port_b});
	return static_cast<unsigned>(links_.size() - 1);
}

/* @end, if it is a host, is behind @port of @at. */
void Fabric::locate(const End &end, const End &at, const Port &port)
{
	if (end.kind != End::Kind::Host || at.kind != End::Kind::Switch)
		return;
	Host &host = hosts_[end.number];
	host.location = {at.number, port.number};
	if (host.mac)
		locations_[mac_at(std::as_bytes(std::span(*host.mac)), 0)] = *host.location;
}

/* The switches next to each. */
std::vector<std::vector<Fabric::Neighbour>> Fabric::neighbours() const
{
	std::vector<std::vector<Neighbour>> all(switches_.size());
	for (const Link &link : links_) {
		if (link.from.kind != End::Kind::Switch || link.to.kind != End::Kind::Switch ||
		    !link.a->up())
			continue;
		all[link.from.number].push_back({link.to.number, link.a->number, link.b->number});
		all[link.to.number].push_back({link.from.number, link.b->number, link.a->number});
	}
	return all;
}

namespace {

/* Links from @to to each switch, kFar if there is no path: breadth first. */
template <typename Neighbours>
std::vector<unsigned> distances(const Neighbours &neighbours, unsigned to)
{
	std::vector<unsigned> distance(neighbours.size(), kFar);
	std::deque<unsigned> next{to};
	distance[to] = 0;
	for (; !next.empty(); next.pop_front()) {
		const unsigned here = next.front();
		for (const auto &each : neighbours[here]) {
			if (distance[each.number] != kFar)
				continue;
			distance[each.number] = distance[here] + 1;
			next.push_back(each.number);
		}
	}
	return distance;
}

} // namespace

void Fabric::update_routes()
{
	const auto next_to = neighbours();
	const size_t count = switches_.size();
	std::vector<std::vector<std::vector<uint16_t>>> hops(
	        count, std::vector<std::vector<uint16_t>>(count));
	for (unsigned to = 0; to < count; to++) {
		const auto distance = distances(next_to, to);
		for (unsigned from = 0; from < count; from++) {
			for (const Neighbour &each : next_to[from]) {
				if (distance[each.number] != kFar &&
				    distance[each.number] + 1 == distance[from])
					hops[from][to].push_back(each.port);
			}
		}
	}
	for (unsigned i = 0; i < count; i++)
		switches_[i]->set_routes(std::move(hops[i]));
	update_tree(next_to);
}

/* Computes the spanning tree of each connected part. Its edges are the links by which a breadth
 * first search from the switch with the lowest number first reaches each of the others. */
void Fabric::update_tree(const std::vector<std::vector<Neighbour>> &next_to)
{
	for (const Link &link : links_) {
		if (link.from.kind != End::Kind::Switch || link.to.kind != End::Kind::Switch)
			continue;
		switches_[link.from.number]->set_tree(link.a->number, false);
		switches_[link.to.number]->set_tree(link.b->number, false);
	}
	std::vector<bool> reached(next_to.size());
	for (unsigned root = 0; root < next_to.size(); root++) {
		std::deque<unsigned> next;
		if (!reached[root])
			next.push_back(root);
		reached[root] = true;
		for (; !next.empty(); next.pop_front()) {
			for (const Neighbour &each : next_to[next.front()]) {
				if (reached[each.number])
					continue;
				reached[each.number] = true;
				switches_[next.front()]->set_tree(each.port, true);
				switches_[each.number]->set_tree(each.far_port, true);
				next.push_back(each.number);
			}
		}
	}
}

void Fabric::set_link(unsigned link, bool up)
{
	links_[link].a->set_up(up);
	links_[link].b->set_up(up);
	update_routes();
}

} // namespace tern::fabric
