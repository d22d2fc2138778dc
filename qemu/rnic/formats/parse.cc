// SPDX-License-Identifier: GPL-2.0-or-later
#include <cstring>

#include "qemu/rnic/formats/burst.h"
#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/icrc.h"
#include "qemu/rnic/formats/packet.h"
#include "tern/tern_hw.h"

namespace tern {

namespace {

using Bytes = std::span<const std::byte>;
using headers::Reader;

struct Link {
	Mac dmac;
	Mac smac;
	uint16_t vlan;
	uint16_t ethertype;
	uint8_t priority;
};

/* VLAN id 0 tags a priority, not a VLAN (IEEE 802.1Q 9.6). */
bool take_link(Reader &in, Link &link)
{
	const auto *eth = in.take<headers::Ethernet>();
	if (!eth)
		return false;
	link = {eth->dmac, eth->smac, kNoVlan, eth->ethertype.get(), 0};
	if (link.ethertype != headers::kEtherVlan)
		return true;

	headers::Vlan tag;
	if (!in.take(tag))
		return false;
	const auto id = static_cast<uint16_t>(tag.tci.get() & headers::kVlanIdMask);
	link.vlan = id ? id : kNoVlan;
	link.priority = static_cast<uint8_t>(tag.tci.get() >> headers::kVlanPcpShift);
	link.ethertype = tag.ethertype.get();
	return true;
}

bool is_roce_udp(Reader &in)
{
	headers::Udp udp;
	return in.take(udp) && udp.destination.get() == kRoceUdpPort;
}

/* A later fragment has no UDP header, so it is not recognised as RoCE. */
bool is_roce_ipv4(Reader &in)
{
	headers::Ipv4 ip;
	if (!in.take(ip) || ip.version_ihl >> 4 != 4 || ip.protocol != headers::kProtoUdp ||
	    (ip.fragment.get() & headers::kIpv4OffsetMask))
		return false;
	const size_t size = size_t{4} * (ip.version_ihl & 0xf);
	return size >= sizeof(ip) && in.skip(size - sizeof(ip)) && is_roce_udp(in);
}

bool is_roce_ipv6(Reader &in)
{
	headers::Ipv6 ip;
	return in.take(ip) && ip.version_class_flow.get() >> headers::kIpv6VersionShift == 6 &&
	       ip.next_header == headers::kProtoUdp && is_roce_udp(in);
}

/* Skips to the BTH of a RoCE frame, or to the end of a shorter one. */
bool skip_to_roce(Reader &in)
{
	Link link;
	if (!take_link(in, link))
		return false;
	switch (link.ethertype) {
	case headers::kEtherRoce:
		return in.skip(sizeof(headers::Ipv6)) || in.skip(in.rest().size());
	case headers::kEtherIpv4:
		return is_roce_ipv4(in);
	case headers::kEtherIpv6:
		return is_roce_ipv6(in);
	default:
		return false;
	}
}

/* The bytes between the link header and the end of the ICRC. The payload, pad and ICRC of a lent
 * packet are not in the frame. */
struct Network {
	size_t external = 0; /* bytes that are not in the frame */
	Bytes packet{};      /* from the network header; without Ethernet padding */
	Bytes header{};      /* the network header */
	Bytes transport{};   /* from the BTH */
};

/* Removes Ethernet padding from @bytes, of which @size bytes belong to the packet, some possibly
 * not in the frame. A lent packet has no such padding. */
bool take_packet(Bytes bytes, size_t size, Network &net)
{
	if (size < net.external || size - net.external > bytes.size())
		return false;
	net.packet = bytes.first(size - net.external);
	return !net.external || net.packet.size() == bytes.size();
}

Gid mapped(const std::array<uint8_t, 4> &address)
{
	Gid gid;
	gid.bytes[10] = gid.bytes[11] = 0xff;
	std::memcpy(&gid.bytes[12], address.data(), address.size());
	return gid;
}

/* The UDP checksum is not verified: it is a variant field, and the ICRC is stronger. */
bool take_udp(Reader in, PathInfo &path, Network &net)
{
	const size_t size = in.rest().size() + net.external;
	const auto *udp = in.take<headers::Udp>();
	if (!udp || udp->length.get() != size || udp->destination.get() != kRoceUdpPort)
		return false;
	path.udp_sport = udp->source.get();
	net.transport = in.rest();
	return true;
}

/* Options and fragments are rejected: A17.4.2 allows neither. */
bool take_ipv4(Bytes bytes, PathInfo &path, Network &net)
{
	const auto *ip = Reader(bytes).take<headers::Ipv4>();
	if (!ip || ip->version_ihl != headers::kIpv4NoOptions ||
	    ip->protocol != headers::kProtoUdp || headers::ipv4_sum(*ip) != 0xffff ||
	    (ip->fragment.get() & (headers::kIpv4MoreFragments | headers::kIpv4OffsetMask)))
		return false;
	if (!take_packet(bytes, ip->total_length.get(), net) || net.packet.size() < sizeof(*ip))
		return false;

	path.sgid = mapped(ip->source);
	path.dgid = mapped(ip->destination);
	path.traffic_class = ip->tos;
	path.hop_limit = ip->ttl;
	net.header = bytes.first(sizeof(*ip));
	return take_udp(Reader(net.packet.subspan(sizeof(*ip))), path, net);
}

/* The header common to IPv6 and the GRH. */
bool take_ipv6_header(Bytes bytes, uint8_t next_header, PathInfo &path, Network &net)
{
	Reader in(bytes);
	headers::Ipv6 ip;
	if (!in.take(ip) || ip.next_header != next_header ||
	    ip.version_class_flow.get() >> headers::kIpv6VersionShift != 6)
		return false;
	if (!take_packet(bytes, sizeof(ip) + ip.payload_length.get(), net) ||
	    net.packet.size() < sizeof(ip))
		return false;

	path.sgid = ip.source;
	path.dgid = ip.destination;
	path.traffic_class =
	        static_cast<uint8_t>(ip.version_class_flow.get() >> headers::kIpv6ClassShift);
	path.hop_limit = ip.hop_limit;
	net.header = bytes.first(sizeof(ip));
	net.transport = net.packet.subspan(sizeof(ip));
	return true;
}

/*
 * An IPv4-mapped address is not valid in an IPv6 header on the wire (RFC 4291, 2.5.5.2) and would
 * be taken for the IPv4 peer with the same GID.
 */
bool take_ipv6(Bytes bytes, PathInfo &path, Network &net)
{
	return take_ipv6_header(bytes, headers::kProtoUdp, path, net) && !path.sgid.is_ipv4() &&
	       !path.dgid.is_ipv4() && take_udp(Reader(net.transport), path, net);
}

bool take_network(Bytes bytes, uint16_t ethertype, PathInfo &path, Network &net)
{
	switch (ethertype) {
	case headers::kEtherRoce:
		return take_ipv6_header(bytes, headers::kProtoIba, path, net);
	case headers::kEtherIpv4:
		path.roce_v2 = true;
		return take_ipv4(bytes, path, net);
	case headers::kEtherIpv6:
		path.roce_v2 = true;
		return take_ipv6(bytes, path, net);
	default:
		return false;
	}
}

/* MigReq is ignored: there is no path migration. */
Bth decode(const headers::Bth &raw)
{
	const uint32_t qpn = raw.qpn.get();
	const uint32_t psn = raw.psn.get();
	return {
	        .opcode = raw.opcode,
	        .solicited = (raw.flags & headers::kBthSolicited) != 0,
	        .ack_request = (psn & headers::kBthAckRequest) != 0,
	        .fecn = (qpn & headers::kBthFecn) != 0,
	        .becn = (qpn & headers::kBthBecn) != 0,
	        .pkey = raw.pkey.get(),
	        .dest_qpn = qpn & headers::kMask24,
	        .psn = Psn(psn),
	};
}

bool take_deth(Reader &in, Deth &deth)
{
	headers::Deth raw;
	if (!in.take(raw))
		return false;
	deth = {raw.qkey.get(), raw.source_qpn.get() & headers::kMask24};
	return true;
}

bool take_feth(Reader &in, Feth &feth)
{
	headers::Feth raw;
	if (!in.take(raw))
		return false;
	const uint32_t bits = raw.bits.get();
	feth = {static_cast<uint8_t>(bits & headers::kFethTypeMask),
	        static_cast<uint8_t>(bits >> headers::kFethLevelShift & headers::kFethLevelMask)};
	return true;
}

bool take_reth(Reader &in, Reth &reth)
{
	const auto *raw = in.take<headers::Reth>();
	if (!raw)
		return false;
	reth = {raw->va.get(), raw->rkey.get(), raw->length.get()};
	return true;
}

bool take_atomic(Reader &in, AtomicEth &atomic)
{
	headers::AtomicEth raw;
	if (!in.take(raw))
		return false;
	atomic = {raw.va.get(), raw.rkey.get(), raw.swap_add.get(), raw.compare.get()};
	return true;
}

bool take_masks(Reader &in, AtomicMasks &masks)
{
	headers::AtomicMasks raw;
	if (!in.take(raw))
		return false;
	masks = {raw.swap_add.get(), raw.compare.get()};
	return true;
}

bool take_aeth(Reader &in, Aeth &aeth)
{
	headers::Aeth raw;
	if (!in.take(raw))
		return false;
	const uint32_t value = raw.syndrome_msn.get();
	aeth = {static_cast<uint8_t>(value >> headers::kAethSyndromeShift),
	        value & headers::kMask24};
	return true;
}

template <typename T>
bool take_value(Reader &in, T &value)
{
	Be<T> raw;
	if (!in.take(raw))
		return false;
	value = raw.get();
	return true;
}

/* The high byte is reserved and ignored on receipt (A14.3.3). */
bool take_srqn(Reader &in, uint32_t &srqn)
{
	headers::Xrceth raw;
	if (!in.take(raw))
		return false;
	srqn = raw.srqn.get() & headers::kMask24;
	return true;
}

bool take_ext(Reader &in, const OpcodeInfo &info, ExtHeaders &ext)
{
	return (!info.xrceth || take_srqn(in, ext.srqn)) &&
	       (!info.deth || take_deth(in, ext.deth)) && (!info.feth || take_feth(in, ext.feth)) &&
	       (!info.reth || take_reth(in, ext.reth)) &&
	       (!info.atomic_eth || take_atomic(in, ext.atomic)) &&
	       (!info.atomic_masks || take_masks(in, ext.masks)) &&
	       (!info.aeth || take_aeth(in, ext.aeth)) &&
	       (!info.atomic_ack_eth || take_value(in, ext.atomic_ack)) &&
	       (!info.imm || take_value(in, ext.imm)) &&
	       (!info.ieth || take_value(in, ext.inv_rkey)) &&
	       (!info.cnp || in.skip(sizeof(headers::Cnp)));
}

/* @packet ends with the ICRC. */
bool icrc_matches(Bytes packet, bool roce_v2)
{
	const Bytes covered = packet.first(packet.size() - kIcrcSize);
	Le<uint32_t> sent;
	std::memcpy(&sent, packet.data() + covered.size(), sizeof(sent));
	return icrc(covered, roce_v2) == sent.get();
}

/* A multiple of four bytes, by the pad (IBA 9.2.5). */
bool transport_size_ok(size_t size)
{
	return size >= sizeof(headers::Bth) + kIcrcSize && size % 4 == 0;
}

/* Parses all before the BTH. The caller sets @net.external. */
bool take_path(Bytes frame, Packet &packet, Network &net)
{
	Reader in(frame);
	Link link;
	if (!take_link(in, link))
		return false;
	packet.path.dmac = link.dmac;
	packet.path.smac = link.smac;
	packet.path.vlan = link.vlan;
	packet.path.priority = link.priority;
	if (!take_network(in.rest(), link.ethertype, packet.path, net) ||
	    !transport_size_ok(net.transport.size() + net.external))
		return false;
	packet.network = net.header;
	return true;
}

/* Null if it is not valid. */
const headers::Bth *take_bth(Reader &in)
{
	const auto *bth = in.take<headers::Bth>();
	return bth && !(bth->flags & headers::kBthVersionMask) ? bth : nullptr;
}

size_t pad_of(const headers::Bth &bth)
{
	return bth.flags >> headers::kBthPadShift & headers::kBthPadMask;
}

/* Decodes the BTH; false if the opcode is unknown. */
bool take_opcode(const headers::Bth &bth, Packet &packet)
{
	packet.bth = decode(bth);
	packet.info = &opcode_info(bth.opcode);
	return packet.info->kind != PacketKind::Reserved;
}

/* Takes the rest, payload and pad. */
bool take_payload(Reader &in, const headers::Bth &bth, Packet &packet)
{
	const Bytes padded = in.rest();
	if (pad_of(bth) > padded.size() || (!packet.info->payload && !padded.empty()))
		return false;
	packet.payload = padded.first(padded.size() - pad_of(bth));
	return true;
}

/*
 * Decides about a packet whose BTH is valid, but not the rest. A responder judges a request by its
 * PSN first, and answers the expected one with a NAK (IBA 9.7.4.1). So a request of a service that
 * has NAKs is passed on without its contents; everything else is dropped for @error. A reserved
 * opcode counts as that of a request.
 */
std::optional<ParseError> refuse(Packet &packet, ParseError error)
{
	const Service service = service_of(packet.bth.opcode);
	const bool request = packet.info->kind == PacketKind::Reserved || packet.info->is_request();
	if (!request || (service != Service::Rc && service != Service::Xrc))
		return error;
	packet.info = &kInvalidRequest;
	packet.payload = {};
	return std::nullopt;
}

/* Decodes what follows the BTH, of a packet whose payload is all in @in. */
std::optional<ParseError> take_rest(Reader &in, const headers::Bth &bth, Packet &packet)
{
	if (!take_opcode(bth, packet))
		return refuse(packet, ParseError::BadOpcode);
	if (!take_ext(in, *packet.info, packet.ext) || !take_payload(in, bth, packet))
		return refuse(packet, ParseError::Malformed);
	return std::nullopt;
}

/* The ICRC is checked before the opcode and its headers, so that a packet damaged on the wire
 * counts as such. */
std::optional<ParseError> parse_whole(Bytes frame, Packet &packet)
{
	Network net;
	if (!take_path(frame, packet, net))
		return ParseError::Malformed;
	Reader in(net.transport.first(net.transport.size() - kIcrcSize));
	const headers::Bth *bth = take_bth(in);
	if (!bth)
		return ParseError::Malformed;
	if (!icrc_matches(net.packet, packet.path.roce_v2))
		return ParseError::BadIcrc;
	return take_rest(in, *bth, packet);
}

std::optional<ParseError> parse_head(Bytes head, const Payload &payload, uint32_t segment,
                                     Packet &packet)
{
	const size_t size = segment ? segment : payload.size();
	Network net{.external = size + pad_size(size) + kIcrcSize};
	if (!take_path(head, packet, net))
		return ParseError::Malformed;
	Reader in(net.transport);
	const headers::Bth *bth = take_bth(in);
	if (!bth)
		return ParseError::Malformed;
	if (!size)
		return take_rest(in, *bth, packet);
	/* A head that does not fit its payload is a mistake of the wire, not of the requester. */
	if (!take_opcode(*bth, packet))
		return ParseError::BadOpcode;
	if (!take_ext(in, *packet.info, packet.ext) || !in.rest().empty() ||
	    pad_of(*bth) != pad_size(size) || !packet.info->payload)
		return ParseError::Malformed;
	packet.payload = payload;
	packet.segment = segment;
	return segment && !is_burst(packet) ? std::optional(ParseError::Malformed) : std::nullopt;
}

} // namespace

bool is_roce(std::span<const std::byte> frame)
{
	Reader in(frame);
	return skip_to_roce(in);
}

std::optional<uint32_t> roce_engine(std::span<const std::byte> frame)
{
	Reader in(frame);
	if (!skip_to_roce(in))
		return std::nullopt;
	const auto *bth = in.take<headers::Bth>();
	if (!bth)
		return std::nullopt;
	return (bth->qpn.get() & headers::kMask24) >> hw::TERN_ENGINE_SHIFT;
}

std::span<const std::byte> roce_transport(std::span<const std::byte> frame)
{
	Reader in(frame);
	Link link;
	PathInfo path;
	Network net;
	if (!take_link(in, link) || !take_network(in.rest(), link.ethertype, path, net))
		return {};
	return net.transport;
}

std::variant<Packet, ParseError> parse(std::span<const std::byte> frame)
{
	std::variant<Packet, ParseError> result;
	if (const auto error = parse_whole(frame, std::get<Packet>(result)))
		result = *error;
	return result;
}

std::variant<Packet, ParseError> parse_lent(std::span<const std::byte> head, const Payload &payload,
                                            uint32_t segment)
{
	std::variant<Packet, ParseError> result;
	if (const auto error = parse_head(head, payload, segment, std::get<Packet>(result)))
		result = *error;
	return result;
}

} // namespace tern
