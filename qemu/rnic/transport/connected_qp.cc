// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/connected_qp.h"

#include <algorithm>
#include <optional>

namespace tern {

using namespace hw;

namespace {

constexpr unsigned kDscpShift = 2; /* in the traffic class */

} // namespace

void ConnectedQp::stop()
{
	established_ = false;
	cnp_due_ = false;
	next_cnp_ = 0;
}

bool ConnectedQp::accepts(const Packet &packet)
{
	if (!receives()) {
		data_.drop(TERN_STAT_RX_BAD_STATE, number);
		return false;
	}
	if (!from_peer(packet)) {
		data_.drop(TERN_STAT_RX_BAD_ADDR, number);
		return false;
	}
	if (packet.path.congested())
		notify();
	return true;
}

/* Compares the GIDs (IBA 9.6.1.1 and 9.6.1.2), VLAN and protocol. */
bool ConnectedQp::from_peer(const Packet &packet) const
{
	return packet.path.sgid == remote_gid_ && packet.path.dgid == source_.gid &&
	       source_.is_in(packet.path.vlan) && packet.path.roce_v2 == path_.roce_v2();
}

void ConnectedQp::note_established()
{
	if (state_ == TERN_QPS_RTR && !established_)
		data_.raise_event(TERN_EVENT_COMM_EST, number);
	established_ = true;
}

void ConnectedQp::complete_message(const Packet &packet, uint8_t opcode, uint64_t byte_len)
{
	tern_hw_cqe cqe{};
	cqe.opcode = opcode;
	cqe.byte_len = static_cast<uint32_t>(byte_len);
	if (packet.info->imm) {
		cqe.imm = packet.ext.imm;
		cqe.flags = TERN_CQE_IMM;
	}
	if (packet.info->ieth) {
		cqe.imm = packet.ext.inv_rkey;
		cqe.flags = TERN_CQE_INV;
	}
	complete_recv(cqe, packet.bth.solicited);
}

void ConnectedQp::apply(uint32_t mask, const tern_hw_qp_attr &attr)
{
	IbQp::apply(mask, attr);
	if (mask & TERN_QP_PATH_MTU)
		mtu_ = 128u << attr.path_mtu;
	if (mask & TERN_QP_AV) {
		source_ = *data_.gids.find(attr_.sgid_index);
		/* SET_ETH does not change the MAC of packets of this connection. */
		if (source_.mac == Mac{})
			source_.mac = data_.out.mac;
		const AddressVector av = address();
		path_ = PathHeader(av);
		remote_gid_ = av.dgid;
	}
}

AddressVector ConnectedQp::address() const
{
	AddressVector av = data_.source_address(source_);
	std::ranges::copy(attr_.dmac, av.dmac.begin());
	std::ranges::copy(attr_.dgid, av.dgid.bytes.begin());
	av.traffic_class = attr_.traffic_class;
	av.hop_limit = attr_.hop_limit;
	av.sl = attr_.sl;
	av.flow_label = attr_.flow_label.get();
	av.udp_sport = attr_.udp_sport.get();
	return av;
}

/* ---- congestion control ---- */

/* Makes a CNP due, at most one in each interval. Packets that are marked within the interval after
 * a CNP cause no further one. */
void ConnectedQp::notify()
{
	if (!data_.congestion.np_enable || cnp_due_ || data_.ports.clock.now() < next_cnp_)
		return;
	cnp_due_ = true;
	data_.scheduler.activate(*this);
}

/* A CNP and data may have different priorities, so the QP sends data while a CNP waits for room. */
bool ConnectedQp::take_turn(unsigned &budget)
{
	std::optional<Wire::Destination> cnp_waits_at;
	if (!send_cnp(budget))
		cnp_waits_at = data_.scheduler.release(*this);
	const bool more = send_data(budget);
	if (cnp_waits_at && !more && !parked())
		data_.scheduler.park(*this, *cnp_waits_at);
	return more;
}

/* Sends the CNP (annex A17.9.3) with the configured DSCP and priority, so that it need not wait in
 * the congested queues. */
bool ConnectedQp::send_cnp(unsigned &budget)
{
	if (!cnp_due_)
		return true;
	const CongestionParameters &p = data_.congestion;
	AddressVector av = address();
	av.roce_v2 = true;
	av.traffic_class = static_cast<uint8_t>(p.np_cnp_dscp << kDscpShift);
	if (!p.np_cnp_prio_mode)
		av.sl = static_cast<uint8_t>(p.np_cnp_prio);
	Bth bth;
	bth.opcode = kCnpOpcode;
	bth.becn = true;
	bth.dest_qpn = attr_.dest_qpn.get();
	FrameBuilder frame(data_.out.buffer(), PathHeader(av), bth, {}, 0);
	budget--;
	if (!data_.out.send_roce(*this, frame))
		return false;
	cnp_due_ = false;
	next_cnp_ = data_.ports.clock.now() + uint64_t{p.np_min_time_between_cnps} * 1000;
	data_.stats.add(TERN_STAT_NP_CNP_SENT);
	return true;
}

void ConnectedQp::deliver_cnp(const Packet &packet)
{
	if (!receives() || !from_peer(packet) || !data_.takes_cnps()) {
		data_.stats.add(TERN_STAT_RP_CNP_IGNORED);
		return;
	}
	data_.stats.add(TERN_STAT_RP_CNP_HANDLED);
	rate_control().on_cnp(data_.ports.clock.now());
}

} // namespace tern
