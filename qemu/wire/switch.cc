// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/switch.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/packet.h"
#include "qemu/shm/address_page.h"

namespace tern::wire {

/* Guests can invent addresses; a full table is cleared. */
constexpr size_t kMaxAddresses = 4096;
constexpr size_t kMacSize = 6;
constexpr size_t kBthSize = sizeof(headers::Bth);
/* Frames that are to be held back beyond this are lost, as in a switch with full buffers. */
constexpr size_t kMaxHeldBytes = 64 << 20;
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
	std::erase_if(held_, [&](const auto &entry) {
		const Held &held = entry.second;
		held_bytes_ -= held.to == id ? held.frame.size() : 0;
		return held.to == id;
	});
	port.to_be_overtaken = 0;
	port.outlet = nullptr;
	std::erase_if(addresses_, [id](const auto &entry) { return entry.second == id; });
	address_changes_++;
	if (port.card)
		arrange(std::exchange(port.card, 0));
}

bool Switch::receive(PortId from, Frame frame)
{
	fault_events_.clear();
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
		const PortId to = to_lanes ? id : lane_for(id, frame);
		if (ports_[to].outlet->takes_copy())
			send(from, to, frame);
	}
}

void Switch::deliver(PortId primary, Frame frame, SteadyTime now, std::optional<PortId> except)
{
	now_ = now;
	fault_events_.clear();
	const auto source = addresses_.find(shm::address_at(frame, kMacSize));
	const PortId from = source == addresses_.end() ? primary : source->second;
	const bool to_lanes = shm::address_at(frame, 0) & kGroupBit && is_roce(frame);
	if (ports_[primary].place.lanes == 1 || !to_lanes) {
		if (const PortId to = lane_for(primary, frame); to != except)
			send(from, to, frame);
		return;
	}
	for (const auto &lane : ports_[primary].lanes) {
		if (lane && lane != except)
			send(from, *lane, frame);
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

bool Switch::send(PortId from, PortId to, Frame frame)
{
	if (!faults_.any() && held_.empty())
		return ports_[to].outlet->deliver(frame);
	return send_with_faults(from, to, frame);
}

bool Switch::send_with_faults(PortId from, PortId to, Frame frame)
{
	const Passage passage(frame, ports_[from].place.primary, ports_[to].place.primary);
	const Faults::Decision decision = decide(passage, ports_[to]);
	if (decision.lost) {
		stats_.lost++;
		return true;
	}
	ports_[to].arrivals++;
	stats_.duplicated += decision.duplicated;
	frame = change(passage, decision);
	if (decision.overtaken || decision.delay.count()) {
		hold(to, frame, decision);
		return release_overtaken(to);
	}
	const bool room = transmit(to, frame, decision.duplicated ? 2 : 1);
	return release_overtaken(to) && room;
}

/* Percentages hold back one frame of a port at a time, so that what overtakes it is not held back,
 * too. */
Faults::Decision Switch::decide(const Passage &passage, const Port &port)
{
	Faults::Decision decision = faults_.decide();
	decision.marked &= can_mark(passage.frame);
	if (port.to_be_overtaken)
		decision.overtaken = 0;
	const auto note = [&](bool happened, Fault fault, uint64_t amount = 0) {
		if (happened)
			fault_events_.push_back({fault, 0, amount, passage.to});
	};
	note(decision.lost, Fault::Drop);
	if (!decision.lost) {
		note(decision.corrupted, Fault::Corrupt);
		note(decision.marked, Fault::Mark);
		note(decision.duplicated, Fault::Duplicate);
		note(decision.overtaken, Fault::Reorder, decision.overtaken);
	}
	faults_.apply_rules(passage, addresses_, decision, fault_events_);
	return decision;
}

/* The frame with its faults, valid until the next call. */
Frame Switch::change(const Passage &passage, const Faults::Decision &decision)
{
	if (!decision.marked && !decision.corrupted)
		return passage.frame;
	scratch_.assign(passage.frame.begin(), passage.frame.end());
	if (decision.marked)
		stats_.marked += mark(scratch_);
	if (decision.corrupted) {
		stats_.corrupted++;
		size_t begin = kMinFrame, end = scratch_.size();
		if (decision.spare_headers && passage.roce) {
			const Frame packet = roce_transport(passage.frame);
			begin = static_cast<size_t>(packet.data() - passage.frame.data()) +
			        kBthSize;
			end = begin + packet.size() - kBthSize;
		}
		faults_.corrupt(std::span(scratch_).subspan(begin, end - begin));
	}
	return scratch_;
}

bool Switch::transmit(PortId to, Frame frame, unsigned copies)
{
	bool room = true;
	while (copies--)
		room = ports_[to].outlet->deliver(frame);
	return room;
}

void Switch::hold(PortId to, Frame frame, const Faults::Decision &decision)
{
	if (held_bytes_ + frame.size() > kMaxHeldBytes) {
		stats_.lost++;
		fault_events_.push_back({Fault::Drop, FaultEvent::kNoRoom, 0, to});
		return;
	}
	Held held{.to = to,
	          .frame = {frame.begin(), frame.end()},
	          .copies = decision.duplicated ? 2u : 1u,
	          .last_arrival = std::nullopt};
	SteadyTime due = now_ + decision.delay;
	if (decision.delay.count()) {
		stats_.delayed++;
	} else {
		stats_.reordered++;
		due = now_ + decision.patience;
		held.last_arrival = ports_[to].arrivals + decision.overtaken;
		ports_[to].to_be_overtaken++;
	}
	held_bytes_ += frame.size();
	held_.emplace(due, std::move(held));
}

bool Switch::release_overtaken(PortId to)
{
	bool room = true;
	for (auto held = held_.begin(); ports_[to].to_be_overtaken && held != held_.end();) {
		const auto candidate = held++;
		const auto &last = candidate->second.last_arrival;
		if (candidate->second.to == to && last && *last <= ports_[to].arrivals)
			room &= release(candidate);
	}
	return room;
}

/* Sends a frame that was held back. Returns whether its port has room for more. */
bool Switch::release(HeldFrames::iterator held)
{
	const Held frame = std::move(held->second);
	held_.erase(held);
	held_bytes_ -= frame.frame.size();
	ports_[frame.to].to_be_overtaken -= frame.last_arrival.has_value();
	return transmit(frame.to, frame.frame, frame.copies);
}

void Switch::release_held(SteadyTime now)
{
	while (holds() && next_due() <= now)
		release(held_.begin());
}

bool Switch::concerns(PortId from, Frame frame, const std::vector<uint64_t> &hosts) const
{
	if (frame.size() < kMinFrame)
		return false;
	const uint64_t destination = shm::address_at(frame, 0);
	const auto known = addresses_.find(destination);
	return destination & kGroupBit || known == addresses_.end() ||
	       belongs_to(destination, known->second, hosts, addresses_) ||
	       belongs_to(shm::address_at(frame, kMacSize), ports_[from].place.primary, hosts,
	                  addresses_);
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
