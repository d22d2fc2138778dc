// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/switch.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "qemu/rnic/formats/link_addresses.h"
#include "qemu/rnic/formats/packet.h"
#include "qemu/shm/address_page.h"

namespace tern::wire {

/* The limit for all cards together: half of the slots of the address page. */
constexpr size_t kMaxAddresses = 4096;
constexpr size_t kMacSize = 6;
constexpr uint64_t kGroupBit = uint64_t{1} << 40;

std::string to_string(const Mac &mac)
{
	char text[18];
	std::snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
	              mac[3], mac[4], mac[5]);
	return text;
}

Switch::PortId Switch::attach(Outlet &outlet)
{
	const auto unused =
	        std::ranges::find_if(ports_, [](const Port &port) { return !port.outlet; });
	const auto id = static_cast<PortId>(unused - ports_.begin());
	if (unused == ports_.end())
		ports_.emplace_back();
	ports_[id].outlet = &outlet;
	ports_[id].place = {.primary = id};
	return id;
}

std::string Switch::place(PortId id, uint64_t card, uint32_t lane)
{
	if (lane >= shm::kMaxLanes)
		return "a card has no lane " + std::to_string(lane);
	if (!card)
		return lane ? "only a card has several lanes" : "";
	if (std::ranges::any_of(ports_, [&](const Port &port) {
		    return port.outlet && port.card == card && port.place.lane == lane;
	    }))
		return "lane " + std::to_string(lane) + " of that card is on the wire already";
	ports_[id].card = card;
	ports_[id].place.lane = lane;
	arrange(card);
	return {};
}

/* Determines the primary and the lanes of @card. */
void Switch::arrange(uint64_t card)
{
	Lanes lanes;
	uint32_t count = 0;
	for (PortId id = 0; id < ports_.size(); id++) {
		if (!ports_[id].outlet || ports_[id].card != card)
			continue;
		lanes[ports_[id].place.lane] = id;
		count++;
	}
	std::optional<PortId> primary;
	for (uint32_t lane = 0; lane < lanes.size(); lane++) {
		if (!lanes[lane])
			continue;
		if (!primary)
			primary = lanes[lane];
		ports_[*lanes[lane]].place = {*primary, lane, count};
		ports_[*lanes[lane]].lanes = lanes;
	}
	for (auto &[address, id] : addresses_)
		id = ports_[id].place.primary;
	move_learned();
	has_lanes_ = std::ranges::any_of(
	        ports_, [](const Port &port) { return port.outlet && port.place.lanes > 1; });
	address_changes_++;
}

/* What a port had learned as a primary is its new primary's. */
void Switch::move_learned()
{
	for (Port &port : ports_) {
		Port &primary = ports_[port.place.primary];
		while (&port != &primary && port.learned.size())
			add_learned(port.place.primary, port.learned.take_oldest());
	}
}

void Switch::detach(PortId id)
{
	Port &port = ports_[id];
	injector_.forget(id);
	port.outlet = nullptr;
	port.learned.clear();
	std::erase_if(addresses_, [id](const auto &entry) { return entry.second == id; });
	address_changes_++;
	if (port.card)
		arrange(std::exchange(port.card, 0));
}

bool Switch::receive(PortId from, Frame frame)
{
	injector_.clear_events();
	stats_.frames++;
	stats_.bytes += frame.size();
	if (frame.size() < kMinFrame) {
		stats_.filtered++;
		return false;
	}
	learn(from, frame);
	return true;
}

Outlet *Switch::forward(PortId from, Frame frame, SteadyTime now)
{
	now_ = now;
	if (!receive(from, frame))
		return nullptr;
	const uint64_t destination = shm::address_at(frame, 0);
	if (stays_on_link(destination)) {
		stats_.filtered++;
		return nullptr;
	}
	const auto known =
	        destination & kGroupBit ? addresses_.end() : addresses_.find(destination);
	if (known == addresses_.end()) {
		flood(from, frame, destination & kGroupBit);
		return nullptr;
	}
	const PortId to = lane_for(known->second, frame);
	if (to == from) {
		stats_.filtered++;
		return nullptr;
	}
	return send(from, to, frame) ? nullptr : ports_[to].outlet;
}

/* Each engine has its own multicast groups; only the primary takes frames that are not RoCE. A card
 * may have several addresses: an unknown one may be of the sender's card, for another engine. */
void Switch::flood(PortId from, Frame frame, bool group)
{
	stats_.flooded++;
	const bool roce = has_lanes_ && is_roce(frame);
	const bool to_lanes = group && roce;
	const PortId own = ports_[from].place.primary;
	for (PortId id = 0; id < ports_.size(); id++) {
		if (!ports_[id].outlet)
			continue;
		if (!to_lanes && (id != ports_[id].place.primary || (id == own && !roce)))
			continue;
		const PortId to = to_lanes ? id : lane_for(id, frame);
		if (to != from && ports_[to].outlet->takes_copy())
			send(from, to, frame);
	}
}

void Switch::deliver(PortId primary, Frame frame, std::optional<PortId> except)
{
	const bool to_lanes = shm::address_at(frame, 0) & kGroupBit && is_roce(frame);
	if (ports_[primary].place.lanes == 1 || !to_lanes) {
		if (const PortId to = lane_for(primary, frame); to != except)
			ports_[to].outlet->deliver(frame);
		return;
	}
	for (const auto &lane : ports_[primary].lanes) {
		if (lane && lane != except)
			ports_[*lane].outlet->deliver(frame);
	}
}

/* The lane, among those with this primary, that a frame is for. */
Switch::PortId Switch::lane_for(PortId primary, Frame frame) const
{
	const Port &port = ports_[primary];
	if (port.place.lanes == 1)
		return primary;
	const auto engine = roce_engine(frame);
	return engine ? port.lanes[*engine].value_or(primary) : primary;
}

void Switch::learn(PortId from, Frame frame)
{
	const PortId owner = ports_[from].place.primary;
	const uint64_t source = shm::address_at(frame, kMacSize);
	if (source & kGroupBit)
		return;
	const auto known = addresses_.find(source);
	if (known != addresses_.end() && known->second == owner)
		return;
	address_changes_++;
	if (known != addresses_.end()) {
		ports_[known->second].learned.remove(source);
		known->second = owner;
	} else {
		make_room();
		addresses_.emplace(source, owner);
	}
	add_learned(owner, source);
}

void Switch::add_learned(PortId owner, uint64_t address)
{
	if (const auto oldest = ports_[owner].learned.add(address))
		addresses_.erase(*oldest);
}

/* Guests can invent addresses. The cards with the most lose theirs first. */
void Switch::make_room()
{
	while (addresses_.size() >= kMaxAddresses) {
		const auto most = std::ranges::max_element(
		        ports_, {}, [](const Port &port) { return port.learned.size(); });
		addresses_.erase(most->learned.take_oldest());
	}
}

/** A frame for an outlet. Its bytes are copied when they are to be changed or kept. */
class Switch::ToOutlet final : public faults::Transfer {
public:
	ToOutlet(Outlet &outlet, Frame frame) : outlet_(outlet), frame_(frame) {}

	std::span<std::byte> headers() override { return whole(); }
	std::span<std::byte> whole() override
	{
		if (copy_.empty()) {
			copy_.assign(frame_.begin(), frame_.end());
			frame_ = copy_;
		}
		return copy_;
	}
	bool deliver() override { return outlet_.deliver(frame_); }
	std::unique_ptr<Transfer> keep() override
	{
		auto kept = std::make_unique<ToOutlet>(outlet_, frame_);
		kept->whole();
		return kept;
	}

private:
	Outlet &outlet_;
	Frame frame_;
	std::vector<std::byte> copy_;
};

bool Switch::send(PortId from, PortId to, Frame frame)
{
	Outlet &outlet = *ports_[to].outlet;
	if (injector_.idle())
		return outlet.deliver(frame);
	const Passage passage(frame, ports_[from].place.primary, ports_[to].place.primary);
	const Injector::Verdict verdict = injector_.decide(passage, to, frame.size());
	ToOutlet transfer(outlet, frame);
	return injector_.apply(verdict, transfer, now_.time_since_epoch());
}

bool Switch::concerns(PortId from, Frame frame, const std::vector<uint64_t> &hosts) const
{
	if (frame.size() < kMinFrame)
		return false;
	const uint64_t destination = shm::address_at(frame, 0);
	const auto known = addresses_.find(destination);
	return destination & kGroupBit || known == addresses_.end() ||
	       faults::belongs_to(destination, known->second, hosts, addresses_) ||
	       faults::belongs_to(shm::address_at(frame, kMacSize), ports_[from].place.primary,
	                          hosts, addresses_);
}

std::vector<Mac> Switch::addresses_of(PortId id) const
{
	std::vector<Mac> found;
	for (const auto &[address, port] : addresses_) {
		if (port != id)
			continue;
		Mac mac;
		for (size_t i = 0; i < kMacSize; i++)
			mac[i] = static_cast<uint8_t>(address >> (8 * (kMacSize - 1 - i)));
		found.push_back(mac);
	}
	std::ranges::sort(found);
	return found;
}

} // namespace tern::wire
