// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/steering.h"

#include <algorithm>
#include <bit>

#include "qemu/rnic/formats/headers.h"

namespace tern {

using namespace hw;

namespace {

/* A field that the flow matches must be present; a zero in the key does not match an absent
 * field. */
bool has_fields(uint8_t ip_version, const tern_hw_flow_key &mask, const FrameFields &fields)
{
	return (!ip_version || ip_version == fields.ip_version) &&
	       (!mask.vlan_tci.get() || fields.has_vlan) &&
	       ((!mask.src_port.get() && !mask.dst_port.get()) || fields.has_ports);
}

auto chars_of(const tern_hw_flow_key &key)
{
	return std::bit_cast<std::array<char, sizeof(key)>>(key);
}

/* Counts the frame, even if the QP then has no room for it. */
void count(const Flow &flow, std::span<const std::byte> frame)
{
	if (flow.counters) {
		flow.counters->packets++;
		flow.counters->bytes += frame.size();
	}
}

FrameSink *give(const Flow &flow, std::span<const std::byte> frame)
{
	count(flow, frame);
	flow.sink->receive(frame);
	return flow.sink;
}

/* A flow that matches other fields does not tell where the destination is. */
bool names_destination(const Flow &flow)
{
	const auto whole = [](std::span<const uint8_t> mask) {
		return std::ranges::all_of(mask, [](uint8_t b) { return b == 0xff; });
	};
	const size_t address =
	        flow.ip_version == 4 ? sizeof(headers::Ipv4::destination) : sizeof(Gid);
	return whole(flow.mask.dmac) || whole(std::span(flow.mask.dst_ip).first(address));
}

} // namespace

bool Steering::Table::is_of(const Flow &flow) const
{
	return ip_version == flow.ip_version && chars_of(mask) == chars_of(flow.mask);
}

Steering::Order *Steering::order_of(const Flow &flow)
{
	if (flow.type != TERN_FLOW_NORMAL)
		return flow.type == TERN_FLOW_SNIFFER ? &sniffers_ : &defaults_;
	auto table = std::ranges::find_if(tables_, [&](auto &t) { return t.is_of(flow); });
	if (table == tables_.end()) {
		if (tables_.size() == kMaxMasks)
			return nullptr;
		table = tables_.insert(table, {flow.ip_version, flow.mask, {}});
	}
	return &table->flows[chars_of(flow.key)];
}

/* @flow was the last of its key, and maybe of its mask. */
void Steering::drop_empty(const Flow &flow)
{
	if (flow.type != TERN_FLOW_NORMAL)
		return;
	const auto table = std::ranges::find_if(tables_, [&](auto &t) { return t.is_of(flow); });
	table->flows.erase(chars_of(flow.key));
	if (table->flows.empty())
		tables_.erase(table);
}

std::optional<uint32_t> Steering::add(const Flow &flow)
{
	Order *order = order_of(flow);
	if (!order || order->size() == kMaxEqual)
		return std::nullopt;
	auto object = std::make_unique<Flow>(flow);
	Flow *added = object.get();
	added->number = added_++;
	const auto number = flows_.insert(std::move(object));
	if (!number) {
		if (order->empty())
			drop_empty(flow);
		return std::nullopt;
	}
	order->insert(std::ranges::upper_bound(*order, flow.priority, {}, &Flow::priority), added);
	flow.sink->flows++;
	return number;
}

std::unique_ptr<Flow> Steering::remove(uint32_t number)
{
	auto flow = flows_.remove(number);
	if (!flow)
		return nullptr;
	Order &order = *order_of(*flow);
	std::erase(order, flow.get());
	if (order.empty())
		drop_empty(*flow);
	flow->sink->flows--;
	return flow;
}

Steering::Equals Steering::normal_of(std::span<const std::byte> frame) const
{
	Equals best;
	if (tables_.empty())
		return best;
	const FrameFields fields = read_fields(frame);
	const Key present = chars_of(fields.key);
	for (const Table &table : tables_) {
		if (!has_fields(table.ip_version, table.mask, fields))
			continue;
		Key key;
		std::ranges::transform(present, chars_of(table.mask), key.begin(),
		                       [](char f, char m) { return static_cast<char>(f & m); });
		const auto found = table.flows.find(key);
		if (found == table.flows.end())
			continue;
		const Order &order = found->second;
		const auto first = std::ranges::find_if(
		        order, [](const Flow *f) { return f->sink->receives(); });
		if (first == order.end() || (!best.empty() && best.front()->before(**first)))
			continue;
		best = {first, std::ranges::upper_bound(first, order.end(), (*first)->priority, {},
		                                        &Flow::priority)};
	}
	return best;
}

FrameSink *Steering::deliver(std::span<const std::byte> frame) const
{
	const Equals flows = normal_of(frame);
	for (auto flow = flows.begin(); flow != flows.end(); flow++) {
		FrameSink *sink = (*flow)->sink;
		if (!sink->receives())
			continue;
		count(**flow, frame);
		/* Several flows of one QP give it one copy. */
		if (std::none_of(flows.begin(), flow, [&](auto *f) { return f->sink == sink; }))
			sink->receive(frame);
	}
	return flows.empty() ? nullptr : flows.front()->sink;
}

FrameSink *Steering::deliver_default(std::span<const std::byte> frame) const
{
	const bool multicast = std::to_integer<uint8_t>(frame[0]) & 1;
	for (const Flow *flow : defaults_)
		if (flow->sink->receives() && (flow->type == TERN_FLOW_ALL_DEFAULT || multicast))
			return give(*flow, frame);
	return nullptr;
}

bool Steering::takes_from(const FrameSink &sender, std::span<const std::byte> frame) const
{
	return std::ranges::any_of(normal_of(frame), [&](const Flow *flow) {
		return flow->sink->receives() && flow->sink != &sender && names_destination(*flow);
	});
}

void Steering::sniff(std::span<const std::byte> frame) const
{
	for (const Flow *flow : sniffers_)
		if (flow->sink->receives())
			give(*flow, frame);
}

} // namespace tern
