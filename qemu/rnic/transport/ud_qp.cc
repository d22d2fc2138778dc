// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/ud_qp.h"

#include <algorithm>
#include <array>

namespace tern {

using namespace hw;

namespace {

constexpr uint32_t kGsiQkey = 0x80010000; /* IBA 10.2.5 */
constexpr size_t kMadSize = 256;          /* IBA 13.4.2 */
/* Header space before the payload in a receive buffer (IBA 11.4.1.2); an IPv4 header is at its end
 * (A17.4.5.1). */
constexpr size_t kGrhSize = 40;
constexpr uint32_t kMinIbMtu = 256;
constexpr uint32_t kMaxIbMtu = 4096;
/* Header space that Linux subtracts when it derives an IB MTU from an Ethernet MTU. */
constexpr uint32_t kHeaderRoom = 96;

/* The longest datagram: the largest IB MTU that fits, 0 if none does. */
uint32_t max_datagram(uint32_t ethernet_mtu)
{
	uint32_t mtu = kMaxIbMtu;
	while (mtu >= kMinIbMtu && mtu + kHeaderRoom > ethernet_mtu)
		mtu /= 2;
	return mtu >= kMinIbMtu ? mtu : 0;
}

tern_hw_net_type net_type(const Packet &packet)
{
	if (!packet.path.roce_v2)
		return TERN_NET_ROCE_V1;
	return packet.network.size() == kGrhSize ? TERN_NET_IPV6 : TERN_NET_IPV4;
}

/* A unicast's VLAN is that of its GID entry, by which the host finds the net_device: for an entry
 * with VLAN id 0 that of a priority tag. */
uint16_t tag_of(const PathInfo &path, const GidTable &gids)
{
	const GidEntry *entry = path.dgid.is_multicast() ? nullptr : gids.destination(path);
	const uint16_t vlan = entry ? entry->vlan : path.vlan;
	return vlan == kNoVlan ? kNoVlan : static_cast<uint16_t>(path.priority << 13 | vlan);
}

} // namespace

UdQp::UdQp(DataPath &data, const QpConfig &config, SendQueue sq, RecvQueue rq)
        : IbQp(data, config, std::move(sq), std::move(rq))
{
	set_well_known();
}

void UdQp::set_well_known()
{
	if (!is_gsi())
		return;
	attr_.qkey = kGsiQkey;
	attr_.port = 1;
}

void UdQp::query(tern_hw_qp_attr &attr) const
{
	IbQp::query(attr);
	if (sends())
		attr.sq_psn = psn_.value();
}

/* ---- send ---- */

bool UdQp::take_turn(unsigned &budget)
{
	while (state_ == TERN_QPS_RTS && !waits_for_pages(Side::Requester)) {
		if (!send_posted() || paced())
			return false;
		if (!budget)
			return true;
		spend(budget, 1 + kMessage);
		send_one();
		if (parked())
			return false;
	}
	return false;
}

Fetch UdQp::load_send()
{
	const Fetch fetch = sq_.fetch(data_.memory, sq_.head(), data_.scratch_send);
	if (fetch == Fetch::Fault)
		fatal();
	return fetch;
}

void UdQp::send_one()
{
	const Fetch fetch = load_send();
	if (fetch == Fetch::Fault)
		return;
	if (fetch == Fetch::Invalid) {
		end_send(TERN_WC_LOC_QP_OP_ERR);
		return;
	}
	if (const auto status = send(data_.scratch_send))
		end_send(*status);
}

void UdQp::end_send(tern_hw_cqe_status status)
{
	const SendWqe &wqe = data_.scratch_send;
	const uint32_t index = sq_.head();
	sq_.consume(wqe);
	const bool ok = status == TERN_WC_SUCCESS;
	if (!ok || config_.signal_all || (wqe.flags & TERN_WQE_SIGNALED))
		complete_send(index, wqe.opcode, status,
		              ok ? static_cast<uint32_t>(wqe.length) : 0);
	else
		end_silently(wqe.opcode, static_cast<uint32_t>(wqe.length));
	if (!ok) {
		data_.stats.add(TERN_STAT_REQ_CQE_ERRORS);
		enter_send_error();
	}
}

void UdQp::resume_requester(bool ok)
{
	if (!ok && send_posted() && load_send() != Fetch::Fault)
		end_send(TERN_WC_LOC_PROT_ERR);
	data_.scheduler.activate(*this);
}

AddressVector UdQp::address(const GidEntry &source, const DatagramAddress &to) const
{
	AddressVector av = data_.source_address(source);
	av.dgid = to.dgid;
	av.dmac = to.dmac;
	av.traffic_class = to.traffic_class;
	av.hop_limit = to.hop_limit;
	av.sl = to.sl;
	av.flow_label = to.flow_label;
	av.udp_sport = to.udp_sport;
	return av;
}

std::optional<tern_hw_cqe_status> UdQp::send(const SendWqe &wqe)
{
	const DatagramAddress &to = wqe.to;
	const GidEntry *source = data_.gids.find(to.sgid_index);
	if (!source)
		return TERN_WC_LOC_QP_OP_ERR;
	if (wqe.length > max_datagram(data_.out.mtu))
		return TERN_WC_LOC_LEN_ERR;

	const bool imm = wqe.opcode == TERN_OP_SEND_IMM;
	const Bth bth{
	        .opcode = opcode_of(Service::Ud, imm ? Opcode::RcSendOnlyImm : Opcode::RcSendOnly),
	        .solicited = (wqe.flags & TERN_WQE_SOLICITED) != 0,
	        .dest_qpn = to.dest_qpn,
	        .psn = psn_};
	ExtHeaders ext;
	/* A controlled Q_Key is replaced by the QP's own (IBA 10.2.5). */
	ext.deth = {to.qkey & 0x80000000 ? attr_.qkey.get() : to.qkey, number};
	ext.imm = wqe.imm;
	FrameBuilder frame(data_.out.buffer(), PathHeader(address(*source, to)), bth, ext,
	                   wqe.length);
	const Access access = gather_send(wqe, 0, frame.payload());
	if (access == Access::NeedPages) {
		wait_for_pages(Side::Requester);
		return std::nullopt;
	}
	if (access != Access::Ok)
		return TERN_WC_LOC_PROT_ERR;
	const size_t sent = data_.out.send_roce(*this, frame);
	if (!sent)
		return std::nullopt;
	++psn_;
	pace(sent);
	if (to.dgid.is_multicast() && data_.groups.listens(to.dmac) && !config_.no_mc_loopback)
		data_.out.loop_copy(frame.finish().size());
	return TERN_WC_SUCCESS;
}

/* ---- receive ---- */

bool UdQp::deliver(const Packet &packet)
{
	if (service_of(packet.bth.opcode) != Service::Ud)
		return false;
	if (accepts(packet))
		receive(packet);
	return true;
}

/* IBA 9.8.3.2; drops are not reported to the sender. */
bool UdQp::accepts(const Packet &packet)
{
	const auto drop = [this](tern_hw_stat reason) {
		data_.drop(reason, number);
		return false;
	};
	if (!receives())
		return drop(TERN_STAT_RX_BAD_STATE);
	if (!packet.path.dgid.is_multicast() && !data_.gids.destination(packet.path))
		return drop(TERN_STAT_RX_BAD_ADDR);
	if (packet.ext.deth.qkey != attr_.qkey.get())
		return drop(TERN_STAT_RX_BAD_QKEY);
	/* A packet longer than a MAD must not move the GSI to ERR. */
	if (packet.payload.size() > (is_gsi() ? kMadSize : kMaxIbMtu))
		return drop(TERN_STAT_RX_MALFORMED);
	return true;
}

void UdQp::receive(const Packet &packet)
{
	RecvResult result = recv_.claim();
	if (result == RecvResult::Done)
		result = place(packet);
	/* A WQE that needs pages stays claimed for the next datagram. */
	if (result == RecvResult::Empty || result == RecvResult::NeedPages)
		data_.drop(TERN_STAT_UD_RX_NO_BUFFER, number);
	if (act_on(result, packet.bth.solicited))
		complete(packet);
}

RecvResult UdQp::place(const Packet &packet)
{
	std::array<std::byte, kGrhSize> grh{};
	std::ranges::copy(packet.network,
	                  grh.end() - static_cast<ptrdiff_t>(packet.network.size()));
	const RecvResult result = recv_.place(kGrhSize, packet.payload);
	return result == RecvResult::Done ? recv_.place_more(0, grh) : result;
}

void UdQp::complete(const Packet &packet)
{
	tern_hw_cqe cqe{};
	cqe.opcode = TERN_CQE_RECV;
	data_.stats.add(TERN_STAT_RESP_SENDS);
	if (packet.path.dgid.is_multicast())
		data_.stats.add(TERN_STAT_MCAST_RX_PACKETS);
	cqe.byte_len = static_cast<uint32_t>(kGrhSize + packet.payload.size());
	cqe.flags = TERN_CQE_GRH;
	if (packet.info->imm) {
		cqe.imm = packet.ext.imm;
		cqe.flags |= TERN_CQE_IMM;
	}
	cqe.src_qpn = packet.ext.deth.source_qpn;
	cqe.vlan = tag_of(packet.path, data_.gids);
	cqe.net_type = static_cast<uint8_t>(net_type(packet));
	cqe.sl = packet.path.priority;
	std::ranges::copy(packet.path.smac, cqe.smac);
	complete_recv(cqe, packet.bth.solicited);
}

} // namespace tern
