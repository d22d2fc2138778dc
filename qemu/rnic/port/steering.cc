// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/steering.h"

#include <algorithm>

#include "qemu/rnic/formats/headers.h"

namespace tern {

using namespace hw;

namespace {

/* A field that the flow matches must be present; a zero in the key does not match an absent
 * field. */
bool has_fields(const Flow &flow, const FrameFields &fields)
{
	const auto &mask = flow.mask;
	return (!flow.ip_version || flow.ip_version == fields.ip_version) &&
	       (!mask.vlan_tci.get() || fields.has_vlan) &&
	       ((!mask.src_port.get() && !mask.dst_port.get()) || fields.has_ports);
}

bool matches(const Flow &flow, const FrameFields &fields)
{
	if (!has_fields(flow, fields))
		return false;
	const auto frame = std::as_bytes(std::span(&fields.key, 1));
	const auto key = std::as_bytes(std::span(&flow.key, 1));
	const auto mask = std::as_bytes(std::span(&flow.mask, 1));
	for (size_t i = 0; i < key.size(); i++)
		if ((frame[i] & mask[i]) != key[i])
			return false;
	return true;
}

/* Counts the frame, even if the QP then has no room for it. */
FrameSink *take(const Flow &flow, std::span<const std::byte> frame)
{
	if (flow.counters) {
		flow.counters->packets++;
		flow.counters->bytes += frame.size();
	}
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

Steering::Order &Steering::order_of(const Flow &flow)
{
	switch (flow.type) {
	case TERN_FLOW_NORMAL:
		return normal_;
	case TERN_FLOW_SNIFFER:
		return sniffers_;
	default:
		return defaults_;
	}
}

std::optional<uint32_t> Steering::add(const Flow &flow)
{
	auto object = std::make_unique<Flow>(flow);
	Flow *added = object.get();
	const auto number = flows_.insert(std::move(object));
	if (!number)
		return std::nullopt;
	Order &order = order_of(flow);
	/* After older flows of the same priority. */
	const auto at = std::ranges::upper_bound(order, flow.priority, {}, &Flow::priority);
	order.insert(at, added);
	return number;
}

std::unique_ptr<Flow> Steering::remove(uint32_t number)
{
	auto flow = flows_.remove(number);
	if (flow)
		std::erase(order_of(*flow), flow.get());
	return flow;
}

bool Steering::has_flow_to(const FrameSink &sink) const
{
	bool found = false;
	flows_.for_each([&](uint32_t, const Flow &flow) { found |= flow.sink == &sink; });
	return found;
}

const Flow *Steering::normal_of(const FrameFields &fields) const
{
	for (const Flow *flow : normal_)
		if (flow->sink->receives() && matches(*flow, fields))
			return flow;
	return nullptr;
}

FrameSink *Steering::receiver(std::span<const std::byte> frame) const
{
	if (normal_.empty() && defaults_.empty())
		return nullptr;
	const FrameFields fields = read_fields(frame);
	if (const Flow *flow = normal_of(fields))
		return take(*flow, frame);
	const bool multicast = fields.key.dmac[0] & 1;
	for (const Flow *flow : defaults_)
		if (flow->sink->receives() && (flow->type == TERN_FLOW_ALL_DEFAULT || multicast))
			return take(*flow, frame);
	return nullptr;
}

bool Steering::takes_from(const FrameSink &sender, std::span<const std::byte> frame) const
{
	if (normal_.empty())
		return false;
	const Flow *flow = normal_of(read_fields(frame));
	return flow && flow->sink != &sender && names_destination(*flow);
}

void Steering::sniff(std::span<const std::byte> frame) const
{
	for (const Flow *flow : sniffers_)
		if (flow->sink->receives())
			take(*flow, frame)->receive(frame);
}

} // namespace tern
