// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/switch.h"

#include <algorithm>
#include <cstdio>

#include "qemu/shm/address_page.h"

namespace tern::wire {

/* Hosts make up addresses; a table that overflows starts again. */
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
	return id;
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
	if (known != addresses_.end()) {
		if (known->second == from) {
			stats_.filtered++;
			return nullptr;
		}
		Port &port = ports_[known->second];
		return send(port, frame) ? nullptr : port.outlet;
	}

	stats_.flooded++;
	Outlet *full = nullptr;
	for (PortId id = 0; id < ports_.size(); id++) {
		Port &port = ports_[id];
		if (id != from && port.outlet && !send(port, frame))
			full = port.outlet;
	}
	return full;
}

void Switch::learn(PortId from, Frame frame)
{
	const uint64_t source = shm::address_at(frame, kMacSize);
	if (source & kGroupBit)
		return;
	const auto known = addresses_.find(source);
	if (known != addresses_.end() && known->second == from)
		return;
	address_changes_++;
	if (known != addresses_.end()) {
		known->second = from;
		return;
	}
	if (addresses_.size() >= kMaxAddresses)
		addresses_.clear();
	addresses_.emplace(source, from);
}

bool Switch::send(Port &port, Frame frame)
{
	if (!faults_.any() && port.held.empty())
		return port.outlet->deliver(frame);
	return send_with_faults(port, frame);
}

bool Switch::send_with_faults(Port &port, Frame frame)
{
	const Faults::Fate fate = faults_.decide();
	if (fate.lost) {
		stats_.lost++;
		return true;
	}
	if (fate.corrupted) {
		stats_.corrupted++;
		scratch_.assign(frame.begin(), frame.end());
		faults_.corrupt(scratch_);
		frame = scratch_;
	}
	if (fate.overtaken && port.held.empty()) {
		stats_.reordered++;
		port.held.assign(frame.begin(), frame.end());
		port.overtaken_by = fate.overtaken;
		held_++;
		return true;
	}
	bool room = port.outlet->deliver(frame);
	if (fate.duplicated) {
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
