// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/switch.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "qemu/rnic/formats/packet.h"
#include "qemu/shm/address_page.h"

namespace tern::wire {

/* Guests can invent addresses; a full table is cleared. */
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
	has_lanes_ = std::ranges::any_of(
	        ports_, [](const Port &port) { return port.outlet && port.place.lanes > 1; });
	address_changes_++;
}

void Switch::detach(PortId id)
{
	Port &port = ports_[id];
	if (!port.held.empty())
		held_--;
	port.held.clear();
	port.outlet = nullptr;
	std::erase_if(addresses_, [id](const auto &entry) { return entry.second == id; });
	address_changes_++;
	if (port.card)
		arrange(std::exchange(port.card, 0));
}

Outlet *Switch::forward(PortId from, Frame frame)
{
	stats_.frames++;
	stats_.bytes += frame.size();
	if (frame.size() < kMinFrame) {
		stats_.filtered++;
		return nullptr;
	}
	learn(from, frame);

	const uint64_t destination = shm::address_at(frame, 0);
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
	Port &port = ports_[to];
	return send(port, frame) ? nullptr : port.outlet;
}

/* Each engine has its own multicast groups; only the primary takes frames that are not RoCE. */
void Switch::flood(PortId from, Frame frame, bool group)
{
	stats_.flooded++;
	const bool to_lanes = group && has_lanes_ && is_roce(frame);
	const PortId own = ports_[from].place.primary;
	for (PortId id = 0; id < ports_.size(); id++) {
		if (!ports_[id].outlet)
			continue;
		if (to_lanes ? id == from : id == own || id != ports_[id].place.primary)
			continue;
		Port &port = ports_[to_lanes ? id : lane_for(id, frame)];
		if (port.outlet->takes_copy())
			send(port, frame);
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
		known->second = owner;
		return;
	}
	if (addresses_.size() >= kMaxAddresses)
		addresses_.clear();
	addresses_.emplace(source, owner);
}

bool Switch::send(Port &port, Frame frame)
{
	if (!faults_.any() && port.held.empty())
		return port.outlet->deliver(frame);
	return send_with_faults(port, frame);
}

bool Switch::send_with_faults(Port &port, Frame frame)
{
	const Faults::Decision decision = faults_.decide();
	if (decision.lost) {
		stats_.lost++;
		return true;
	}
	if (decision.marked || decision.corrupted) {
		scratch_.assign(frame.begin(), frame.end());
		frame = scratch_;
	}
	if (decision.marked)
		stats_.marked += Faults::mark(scratch_);
	if (decision.corrupted) {
		stats_.corrupted++;
		faults_.corrupt(scratch_);
	}
	if (decision.overtaken && port.held.empty()) {
		stats_.reordered++;
		port.held.assign(frame.begin(), frame.end());
		port.overtaken_by = decision.overtaken;
		held_++;
		return true;
	}
	bool room = port.outlet->deliver(frame);
	if (decision.duplicated) {
		stats_.duplicated++;
		room = port.outlet->deliver(frame);
	}
	if (!port.held.empty() && --port.overtaken_by == 0)
		room = release(port);
	return room;
}

bool Switch::release(Port &port)
{
	const bool room = port.outlet->deliver(port.held);
	port.held.clear();
	held_--;
	return room;
}

void Switch::release_held()
{
	for (Port &port : ports_) {
		if (!port.held.empty())
			release(port);
	}
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
