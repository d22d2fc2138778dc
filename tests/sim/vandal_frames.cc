// SPDX-License-Identifier: GPL-2.0-or-later
/* A vandal makes packets for its own card, which receives them as if they came from the wire, and
 * frames that it sends. */
#include <algorithm>
#include <cstring>

#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/inet_checksum.h"
#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/formats/tag_header.h"
#include "qemu/rnic/formats/tcp.h"
#include "qemu/rnic/network/multicast.h"
#include "tests/sim/vandal.h"

namespace tern::sim {

using namespace hw;

/* Returns mostly an opcode that a QP of @type receives. */
uint8_t Vandal::forged_opcode(uint8_t type)
{
	if (rng_.chance(1, 8))
		return static_cast<uint8_t>(rng_.below(256));
	if (rng_.chance(1, 16))
		return kCnpOpcode;
	switch (type) {
	case TERN_QPT_UC:
		return static_cast<uint8_t>(0x20 + rng_.below(0x0c));
	case TERN_QPT_UD:
	case TERN_QPT_GSI:
		return static_cast<uint8_t>(0x64 + rng_.below(2));
	case TERN_QPT_XRC_INI:
	case TERN_QPT_XRC_TGT:
		return static_cast<uint8_t>(0xa0 + rng_.below(0x1e));
	default:
		if (rng_.chance(1, 16))
			return static_cast<uint8_t>(rng_.chance(1, 2) ? Opcode::RcMaskedCompareSwap
			                                              : Opcode::RcMaskedFetchAdd);
		return static_cast<uint8_t>(rng_.below(0x1e));
	}
}

void Vandal::forge()
{
	const test::HostQp &to = *qps_[rng_.below(qps_.size())];
	const Path path = path_of(to, rng_);
	const Node &from = path.to;
	AddressVector av;
	av.smac = from.mac;
	av.dmac = node_.mac;
	av.roce_v2 = from.gids[path.gid].type == TERN_GID_ROCE_V2;
	av.vlan = from.gids[path.gid].vlan;
	av.sgid = from.gids[path.gid].gid;
	av.dgid = node_.gids[path.gid].gid;
	if (rng_.chance(1, 8)) {
		av.dgid = group(av.sgid.is_ipv4());
		av.dmac = multicast_mac(av.dgid);
	}
	/* Some packets have met congestion (ECN 3). */
	av.traffic_class = static_cast<uint8_t>(rng_.chance(1, 4) ? 3 : 0);
	Bth bth;
	bth.opcode = forged_opcode(to.options.type);
	bth.psn = Psn(static_cast<uint32_t>(rng_.below(rng_.chance(1, 4) ? 1 << 24 : 8)));
	bth.ack_request = rng_.chance(1, 2);
	bth.solicited = rng_.chance(1, 4);
	bth.dest_qpn = rng_.chance(1, 16) ? kMulticastQpn : rng_.chance(1, 8) ? qpn() : to.number;
	bth.becn = bth.opcode == kCnpOpcode;
	ExtHeaders ext;
	ext.deth = {kQkey, number()};
	ext.reth = {rng_.below(8192), key(), rng_.chance(1, 4) ? 8 : number() & 0xfff};
	ext.feth = {static_cast<uint8_t>(rng_.below(5)), static_cast<uint8_t>(rng_.below(3))};
	ext.atomic = {rng_.below(1024) * 8, key(), rng_.next(), 0};
	ext.masks = {rng_.next(), rng_.next()};
	ext.aeth = {static_cast<uint8_t>(rng_.below(128)), number()};
	ext.imm = number();
	ext.inv_rkey = key();
	ext.srqn = rng_.chance(1, 4) ? number() : srqs_[1]->number;
	constexpr size_t kSizes[] = {0, 1, 8, 40, 100, 256, 512, 1024, 2048, 4096};
	const size_t size =
	        opcode_info(bth.opcode).payload ? kSizes[rng_.below(std::size(kSizes))] : 0;
	Link::Frame frame(kMaxRoceFrame);
	FrameBuilder builder(frame, PathHeader(av), bth, ext, size);
	rng_.fill(builder.payload());
	if (rng_.chance(1, 3))
		forge_tag(builder.payload());
	if (rng_.chance(1, 3)) {
		/* The payload comes in pieces of any size, and at times in more than the head says.
		 */
		const auto payload = std::span<const std::byte>(builder.payload());
		const auto cut = static_cast<size_t>(rng_.below(size + 1));
		const std::span<const std::byte> pieces[] = {
		        payload.first(cut), payload.subspan(cut), payload.first(cut)};
		node_.receive(builder.head(), std::span(pieces).first(rng_.chance(1, 8) ? 3 : 2),
		              0);
		return;
	}
	if (rng_.chance(1, 3)) {
		forge_burst(builder.head(), builder.payload());
		return;
	}
	node_.receive(
	        {frame.begin(), frame.begin() + static_cast<ptrdiff_t>(builder.finish().size())});
}

void Vandal::forge_burst(std::span<const std::byte> head, std::span<const std::byte> payload)
{
	std::vector<std::span<const std::byte>> pieces(rng_.below(20), payload);
	pieces.push_back(payload.first(rng_.below(payload.size() + 1)));
	node_.receive(head, pieces,
	              rng_.chance(1, 8) ? number() : static_cast<uint32_t>(payload.size()));
}

void Vandal::forge_tag(std::span<std::byte> payload)
{
	headers::TagMatching tag{};
	tag.opcode = headers::kTagRendezvous;
	if (!rng_.chance(1, 2))
		tag.opcode = static_cast<uint8_t>(rng_.below(5));
	tag.tag = rng_.below(4);
	headers::Rendezvous from;
	from.va = rng_.below(kRegion);
	from.rkey = key();
	from.length = number() & 0xfff;
	if (payload.size() < sizeof(tag) + sizeof(from))
		return;
	headers::Writer out(payload);
	out.put(tag);
	if (rng_.chance(3, 4))
		out.put(from);
}

namespace {

template <typename T>
void append(Link::Frame &frame, const T &header)
{
	const auto raw = std::as_bytes(std::span(&header, 1));
	frame.insert(frame.end(), raw.begin(), raw.end());
}

/* Appends an IP header for @size bytes of @protocol. Returns the sum of the pseudo header. */
InetSum append_ip(Link::Frame &frame, bool ipv4, uint8_t protocol, size_t size, const Gid &from,
                  const Gid &to)
{
	InetSum pseudo;
	pseudo.add(uint32_t{protocol});
	pseudo.add(static_cast<uint32_t>(size));
	if (ipv4) {
		headers::Ipv4 ip{};
		ip.version_ihl = headers::kIpv4NoOptions;
		ip.total_length = static_cast<uint16_t>(sizeof(ip) + size);
		ip.ttl = 64;
		ip.protocol = protocol;
		std::ranges::copy(std::span(from.bytes).last(4), ip.source.begin());
		std::ranges::copy(std::span(to.bytes).last(4), ip.destination.begin());
		ip.checksum = static_cast<uint16_t>(~headers::ipv4_sum(ip));
		pseudo.add(std::as_bytes(std::span(ip.source)));
		pseudo.add(std::as_bytes(std::span(ip.destination)));
		append(frame, ip);
		return pseudo;
	}
	headers::Ipv6 ip{};
	ip.version_class_flow = 6u << headers::kIpv6VersionShift;
	ip.payload_length = static_cast<uint16_t>(size);
	ip.next_header = protocol;
	ip.hop_limit = 64;
	ip.source = from;
	ip.destination = to;
	pseudo.add(std::as_bytes(std::span(from.bytes)));
	pseudo.add(std::as_bytes(std::span(to.bytes)));
	append(frame, ip);
	return pseudo;
}

} // namespace

/* Most frames are of TCP or UDP and have right checksums; some match the flows of fill_flow(). */
Vandal::Frame Vandal::make_frame()
{
	const bool own = rng_.chance(1, 2);
	const Node &to = own ? node_ : victim();
	const bool ipv4 = rng_.chance(1, 2);
	const bool tcp = rng_.chance(1, 2);
	Frame frame{.bytes = {}, .l4 = 0, .tcp = tcp};
	headers::Ethernet ethernet{.dmac = to.mac, .smac = node_.mac, .ethertype = {}};
	if (rng_.chance(1, 4))
		ethernet.dmac = multicast_mac(group(rng_.below(2)));
	ethernet.ethertype = ipv4 ? headers::kEtherIpv4 : headers::kEtherIpv6;
	if (rng_.chance(1, 4)) {
		const headers::Vlan vlan{.tci = kFrameVlan, .ethertype = ethernet.ethertype};
		ethernet.ethertype = headers::kEtherVlan;
		append(frame.bytes, ethernet);
		append(frame.bytes, vlan);
	} else {
		append(frame.bytes, ethernet);
	}
	const size_t head = tcp ? sizeof(headers::Tcp) : sizeof(headers::Udp);
	const size_t size = head + rng_.below(rng_.chance(1, 8) ? 1200 : 80);
	InetSum sum = append_ip(frame.bytes, ipv4, tcp ? headers::kProtoTcp : headers::kProtoUdp,
	                        size, node_.gids[0].gid, to.gids[0].gid);
	frame.l4 = frame.bytes.size();
	const auto port = static_cast<uint16_t>(1000 + rng_.below(4));
	if (tcp)
		append(frame.bytes, headers::Tcp{.source = port,
		                                 .destination = port,
		                                 .sequence = {},
		                                 .acknowledgment = {},
		                                 .data_offset = sizeof(headers::Tcp) / 4 << 4,
		                                 .flags = static_cast<uint8_t>(rng_.below(256)),
		                                 .window = {},
		                                 .checksum = {},
		                                 .urgent = {}});
	else
		append(frame.bytes, headers::Udp{.source = port,
		                                 .destination = port,
		                                 .length = static_cast<uint16_t>(size),
		                                 .checksum = {}});
	frame.bytes.resize(frame.l4 + size, std::byte{0x5a});
	if (rng_.chance(1, 8))
		return frame;
	sum.add(std::span<const std::byte>(frame.bytes).subspan(frame.l4));
	const Be<uint16_t> checksum = static_cast<uint16_t>(~sum.folded());
	std::memcpy(&frame.bytes[frame.l4 + (tcp ? offsetof(headers::Tcp, checksum)
	                                         : offsetof(headers::Udp, checksum))],
	            &checksum, sizeof(checksum));
	if (rng_.chance(1, 8))
		frame.bytes[rng_.below(frame.bytes.size())] =
		        static_cast<std::byte>(rng_.below(256));
	return frame;
}

void Vandal::post_frame(test::HostQp &qp)
{
	const Frame frame = make_frame();
	const uint64_t at = rng_.below(kRegion - frame.bytes.size());
	plain_->write(at, frame.bytes);
	test::SendRequest request;
	request.opcode = TERN_OP_SEND;
	const auto size = static_cast<uint32_t>(frame.bytes.size());
	request.sges = {{at, size, plain_->key}};
	/* More than one frame, if the card is to cut it. */
	if (rng_.chance(1, 4))
		request.sges.push_back({rng_.below(4096), number() & 0xfff, key()});
	auto blocks = encode(request);
	if (rng_.chance(1, 2)) {
		tern_hw_eth_ctrl_seg ctrl;
		std::memcpy(&ctrl, blocks.data(), sizeof(ctrl));
		ctrl.csum_start = static_cast<uint16_t>(frame.l4);
		ctrl.csum_offset =
		        static_cast<uint16_t>(frame.tcp ? offsetof(headers::Tcp, checksum)
		                                        : offsetof(headers::Udp, checksum));
		if (rng_.chance(1, 2))
			ctrl.mss = static_cast<uint16_t>(rng_.between(1, 1000));
		std::memcpy(blocks.data(), &ctrl, sizeof(ctrl));
	}
	if (rng_.chance(1, 20))
		blocks[rng_.below(blocks.size())] ^= static_cast<std::byte>(rng_.next());
	qp.post_blocks(blocks);
}

} // namespace tern::sim
