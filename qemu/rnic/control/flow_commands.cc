// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/control/flow_commands.h"

#include "qemu/rnic/card.h"
#include "qemu/rnic/control/command_fields.h"

namespace tern {

using namespace hw;

namespace {

bool matches_ip(const tern_hw_flow_key &mask)
{
	return !all_zero(mask.src_ip) || !all_zero(mask.dst_ip) || !all_zero(mask.src_port) ||
	       !all_zero(mask.dst_port) || mask.ip_proto || mask.tos;
}

/* An IPv4 address occupies the first four bytes. */
bool is_ipv4_address(std::span<const uint8_t, 16> address)
{
	return std::ranges::all_of(address.subspan(4), [](uint8_t b) { return b == 0; });
}

/* Key bits outside the mask must be zero; otherwise no frame could match. */
CommandStatus check_key(const tern_hw_create_flow &cmd)
{
	const auto key = std::as_bytes(std::span(&cmd.key, 1));
	const auto mask = std::as_bytes(std::span(&cmd.mask, 1));
	const auto outside = std::ranges::mismatch(
	        key, mask, [](std::byte k, std::byte m) { return (k & ~m) == std::byte{0}; });
	if (outside.in1 != key.end())
		return bad_field(*outside.in1);
	return TERN_AQ_OK;
}

CommandStatus check_values(const tern_hw_create_flow &cmd)
{
	if (cmd.type != TERN_FLOW_NORMAL)
		return check_fields({{cmd.type, cmd.type <= TERN_FLOW_SNIFFER},
		                     {cmd.ip_version, !cmd.ip_version},
		                     {cmd.key, all_zero(cmd.key)},
		                     {cmd.mask, all_zero(cmd.mask)}});
	const auto valid = check_key(cmd);
	if (valid != TERN_AQ_OK)
		return valid;
	const bool ipv4 = cmd.ip_version == 4;
	return check_fields({{cmd.ip_version,
	                      matches_ip(cmd.mask) ? ipv4 || cmd.ip_version == 6 : !cmd.ip_version},
	                     {cmd.mask.src_ip, !ipv4 || is_ipv4_address(cmd.mask.src_ip)},
	                     {cmd.mask.dst_ip, !ipv4 || is_ipv4_address(cmd.mask.dst_ip)}});
}

} // namespace

CommandStatus create_flow(Card &card, const tern_hw_create_flow &cmd, tern_hw_created &result)
{
	const auto valid = check_values(cmd);
	if (valid != TERN_AQ_OK)
		return valid;
	Qp *qp = card.qps.find(cmd.qpn.get());
	FrameSink *sink = qp ? qp->frame_sink() : nullptr;
	FlowCounters *counters = card.flow_counters.find(cmd.counters.get());
	if (!sink || (cmd.counters.get() && !counters))
		return TERN_AQ_BAD_OBJECT;
	const auto number =
	        card.port.steering.add({.sink = sink,
	                                .type = static_cast<tern_hw_flow_type>(cmd.type),
	                                .priority = cmd.priority.get(),
	                                .ip_version = cmd.ip_version,
	                                .key = cmd.key,
	                                .mask = cmd.mask,
	                                .counters = counters});
	if (!number)
		return TERN_AQ_NO_RESOURCE;
	if (counters)
		counters->users++;
	result.id = *number;
	return TERN_AQ_OK;
}

CommandStatus destroy_flow(Card &card, uint32_t number)
{
	const auto flow = card.port.steering.remove(number);
	if (!flow)
		return TERN_AQ_BAD_OBJECT;
	if (flow->counters)
		flow->counters->users--;
	return TERN_AQ_OK;
}

CommandStatus read_counters(Card &card, uint32_t number, tern_hw_counters &result)
{
	const FlowCounters *counters = card.flow_counters.find(number);
	if (!counters)
		return TERN_AQ_BAD_OBJECT;
	result.packets = counters->packets;
	result.bytes = counters->bytes;
	return TERN_AQ_OK;
}

} // namespace tern
