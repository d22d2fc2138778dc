// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/connected_qp.h"

#include <algorithm>

namespace tern {

using namespace hw;

bool ConnectedQp::accepts(const Packet &packet)
{
	if (!receives()) {
		data_.stats.add(TERN_STAT_RX_BAD_STATE);
		return false;
	}
	if (!from_peer(packet)) {
		data_.stats.add(TERN_STAT_RX_BAD_ADDR);
		return false;
	}
	return true;
}

/* Compares the GIDs (IBA 9.6.1.1 and 9.6.1.2), VLAN and protocol. */
bool ConnectedQp::from_peer(const Packet &packet) const
{
	return packet.path.sgid == remote_gid_ && packet.path.dgid == local_gid_ &&
	       packet.path.vlan == vlan_ && packet.path.roce_v2 == path_.roce_v2();
}

void ConnectedQp::note_established()
{
	if (state_ == TERN_QPS_RTR && !established_)
		data_.raise_event(TERN_EVENT_COMM_EST, number);
	established_ = true;
}

void ConnectedQp::apply(uint32_t mask, const tern_hw_qp_attr &attr)
{
	IbQp::apply(mask, attr);
	if (mask & TERN_QP_PATH_MTU)
		mtu_ = 128u << attr.path_mtu;
	if (mask & TERN_QP_AV)
		apply_path(attr);
}

void ConnectedQp::apply_path(const tern_hw_qp_attr &attr)
{
	AddressVector av = data_.source_address(*data_.gids.find(attr.sgid_index));
	std::ranges::copy(attr.dmac, av.dmac.begin());
	std::ranges::copy(attr.dgid, av.dgid.bytes.begin());
	av.traffic_class = attr.traffic_class;
	av.hop_limit = attr.hop_limit;
	av.sl = attr.sl;
	av.flow_label = attr.flow_label.get();
	av.udp_sport = attr.udp_sport.get();
	path_ = PathHeader(av);
	local_gid_ = av.sgid;
	remote_gid_ = av.dgid;
	vlan_ = av.vlan;
}

} // namespace tern
