// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/port.h"

#include <algorithm>
#include <utility>

#include "qemu/rnic/formats/burst.h"
#include "qemu/rnic/port/eth_qp.h"

namespace tern {

using namespace hw;

namespace {

bool is_multicast(const Mac &mac)
{
	return mac[0] & 1;
}

constexpr Mac kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr size_t kEthHeader = 14;
/* The units that the other QPs may use in the rest of a run, after the turn of a QP that was idle.
 * Their packets delay the response to that QP. */
constexpr unsigned kAfterNew = 4;

/* The low 15 bits must match and one key must be that of a full member (IBA 10.9.3); ours is. */
bool pkey_matches(const Packet &packet)
{
	return (packet.bth.pkey & 0x7fff) == (kDefaultPkey & 0x7fff);
}

} // namespace

Port::Port(DataPath &data, const ObjectTable<Qp> &qps)
        : steering(kMaxFlows, data.config.base()), ethernet(data.stats), data_(data), qps_(qps)
{
}

void Port::run(unsigned budget)
{
	while (budget && has_work()) {
		deliver_loopback(budget);
		if (!budget || data_.scheduler.empty())
			continue;
		const bool was_new = data_.scheduler.has_new();
		data_.scheduler.run_turn(budget);
		if (was_new && !data_.scheduler.has_new())
			budget = std::min(budget, kAfterNew);
	}
}

void Port::deliver_loopback(unsigned &budget)
{
	while (budget && data_.out.has_loopback()) {
		auto looped = data_.out.take_loopback();
		budget--;
		receive(std::span(*looped.frame).first(looped.size));
		data_.out.put_buffer(std::move(looped.frame));
		data_.scheduler.unpark(Scheduler::kSelf);
	}
}

size_t Port::send_raw(EthQp &sender, size_t size)
{
	size = data_.out.pad(size);
	const auto frame = data_.out.buffer().first(size);
	const bool claimed = steering.takes_from(sender, frame);
	const bool multicast = is_multicast(destination_of(frame));
	const size_t sent = data_.out.send(sender, size, claimed && !multicast);
	if (sent && claimed && multicast)
		data_.out.loop_copy(size);
	return sent;
}

bool Port::is_own(const Mac &dmac) const
{
	return dmac == data_.out.mac || dmac == kBroadcast;
}

bool Port::accepts(const Mac &dmac) const
{
	if (is_own(dmac))
		return true;
	return (rx_mode & TERN_ETH_PROMISC) ||
	       (is_multicast(dmac) && (rx_mode & TERN_ETH_ALLMULTI));
}

void Port::receive(std::span<const std::byte> frame)
{
	if (frame.size() < kEthHeader || frame.size() > kMaxEthFrame) {
		data_.drop(TERN_STAT_RX_MALFORMED, 0);
		return;
	}
	/* MAC control frames end here, like those of any MAC. */
	if (const auto pause = parse_pause(frame)) {
		data_.stats.add_received(frame.size());
		data_.pause(*pause);
		return;
	}
	steering.sniff(frame);
	const Mac dmac = destination_of(frame);
	const bool roce = is_roce(frame);
	if (roce && takes_roce(dmac)) {
		receive_roce(frame);
		return;
	}
	FrameSink *taker = steering.deliver(frame);
	const bool to_host = !taker && !roce && accepts(dmac);
	/* A default flow takes none of the host's own frames. */
	if (!taker && !(to_host && is_own(dmac)))
		taker = steering.deliver_default(frame);
	if (to_host) {
		ethernet.receive(frame);
	} else if (taker) {
		const Stats::Scope scope(data_.stats, taker->frame_stats());
		data_.stats.add_received(frame.size());
	} else {
		data_.stats.add_received(frame.size());
		data_.drop(TERN_STAT_RX_FILTERED, 0);
	}
}

void Port::receive_roce(std::span<const std::byte> frame)
{
	const auto parsed = parse(frame);
	const auto *packet = std::get_if<Packet>(&parsed);
	const Stats::Scope scope(data_.stats, packet ? stats_set_of(*packet) : nullptr);
	data_.stats.add_received(frame.size());
	data_.stats.add(TERN_STAT_ROCE_RX_PACKETS);
	data_.stats.add(TERN_STAT_ROCE_RX_BYTES, frame.size());
	if (packet)
		admit(*packet);
	else
		count_error(std::get<ParseError>(parsed));
}

void Port::receive(std::span<const std::byte> head, const Payload &payload, uint32_t segment)
{
	const auto parsed = parse_lent(head, payload, segment);
	const auto *packet = std::get_if<Packet>(&parsed);
	if (packet && (!takes_roce(packet->path.dmac) || steering.has_sniffers())) {
		receive_whole(*packet, head, payload);
		return;
	}
	const bool burst = packet && segment;
	const uint32_t packets = burst ? packets_in(*packet) : 1;
	const size_t size =
	        burst ? burst_size(packet->bth.opcode, head.size(), payload.size(), segment)
	              : whole_size(head.size(), payload.size());
	const Stats::Scope scope(data_.stats, packet ? stats_set_of(*packet) : nullptr);
	data_.stats.add_received(size, packets);
	data_.stats.add(TERN_STAT_ROCE_RX_PACKETS, packets);
	data_.stats.add(TERN_STAT_ROCE_RX_BYTES, size);
	if (burst)
		admit_burst(*packet);
	else if (packet)
		admit(*packet);
	else
		count_error(std::get<ParseError>(parsed));
}

/* Flows and sniffers take whole frames. */
void Port::receive_whole(const Packet &packet, std::span<const std::byte> head,
                         const Payload &payload)
{
	auto buffer = data_.out.take_buffer();
	if (!packet.segment)
		receive(make_whole(packet, head, payload, *buffer));
	else
		for (uint32_t i = 0; i < packets_in(packet); i++)
			receive(make_whole(packet, i, head, *buffer));
	data_.out.put_buffer(std::move(buffer));
}

StatsSet *Port::stats_set_of(const Packet &packet) const
{
	const Qp *qp = qps_.find(packet.bth.dest_qpn);
	return qp ? qp->stats_set() : nullptr;
}

void Port::count_error(ParseError error)
{
	data_.drop(error == ParseError::Malformed ? TERN_STAT_RX_MALFORMED
	           : error == ParseError::BadIcrc ? TERN_STAT_RX_BAD_ICRC
	                                          : TERN_STAT_RX_BAD_OPCODE,
	           0);
}

void Port::admit(const Packet &packet)
{
	if (packet.path.congested())
		data_.stats.add(TERN_STAT_NP_ECN_MARKED);
	if (!pkey_matches(packet)) {
		data_.drop(TERN_STAT_RX_BAD_PKEY, packet.bth.dest_qpn);
		return;
	}
	deliver(packet);
}

/* Delivers a burst as a unit if possible, and otherwise packet by packet, so that errors apply to
 * the right packet. */
void Port::admit_burst(const Packet &burst)
{
	Qp *qp = qps_.find(burst.bth.dest_qpn);
	uint32_t done = 0;
	if (qp && pkey_matches(burst) && !burst.path.dgid.is_multicast())
		done = qp->deliver_burst(burst);
	for (uint32_t i = done; i < packets_in(burst); i++)
		admit(packet_of(burst, i));
}

void Port::deliver(const Packet &packet)
{
	Qp *qp = qps_.find(packet.bth.dest_qpn);
	if (packet.info->kind == PacketKind::Cnp) {
		if (qp)
			qp->deliver_cnp(packet);
		else
			data_.stats.add(TERN_STAT_RP_CNP_IGNORED);
		return;
	}
	if (packet.bth.dest_qpn != kMulticastQpn) {
		if (!qp || packet.path.dgid.is_multicast() || !qp->deliver(packet))
			data_.drop(TERN_STAT_RX_NO_QP, packet.bth.dest_qpn);
		return;
	}
	const auto members = data_.groups.members(packet.path.dgid);
	if (members.empty())
		data_.drop(TERN_STAT_RX_NO_QP, packet.bth.dest_qpn);
	for (const uint32_t qpn : members) {
		Qp *member = qps_.find(qpn);
		const Stats::Scope scope(data_.stats, member->stats_set());
		if (!member->deliver(packet))
			data_.drop(TERN_STAT_RX_NO_QP, qpn);
	}
}

} // namespace tern
