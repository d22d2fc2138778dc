// SPDX-License-Identifier: GPL-2.0-or-later
/* Frames of any content to a card in full use: RoCE packets with true addresses and a valid ICRC
 * whose transport bytes are the script's, the same lent or as bursts, and frames that are
 * nothing but script. */
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/icrc.h"
#include "qemu/rnic/formats/packet.h"
#include "tests/fuzz/world.h"

namespace tern::sim {
namespace {

constexpr unsigned kMaxFrames = 64;

class Sender {
public:
	Sender(World &world, Rng &rng) : to_(world.node(0)), from_(world.node(1)), rng_(rng) {}

	void send()
	{
		switch (rng_.below(4)) {
		case 0:
			to_.receive(bytes(rng_.below(1600)));
			break;
		case 1:
			send_lent();
			break;
		default:
			to_.receive(whole());
			break;
		}
	}

private:
	/** From the card's peer to the card, RoCEv2 or v1, IPv4 or IPv6, at times in a VLAN. */
	PathHeader path()
	{
		const size_t index = rng_.below(from_.gids.size());
		AddressVector av;
		av.roce_v2 = from_.gids[index].type == hw::TERN_GID_ROCE_V2;
		av.smac = from_.mac;
		av.dmac = to_.mac;
		av.vlan = from_.gids[index].vlan;
		av.sgid = from_.gids[index].gid;
		av.dgid = to_.gids[index].gid;
		return PathHeader(av);
	}
	Link::Frame bytes(size_t size)
	{
		Link::Frame bytes(size);
		for (std::byte &b : bytes)
			b = static_cast<std::byte>(rng_.below(256));
		return bytes;
	}
	/** A header with the opcode, QP and PSN that the script chooses, mostly existing ones. */
	headers::Bth bth()
	{
		headers::Bth bth{};
		bth.opcode = static_cast<uint8_t>(rng_.below(256));
		bth.flags = static_cast<uint8_t>(rng_.below(256) & headers::kBthSolicited);
		bth.pkey = kDefaultPkey;
		bth.qpn = static_cast<uint32_t>(rng_.below(12));
		bth.psn = static_cast<uint32_t>(rng_.below(16)) |
		          (rng_.chance(1, 2) ? headers::kBthAckRequest : 0);
		return bth;
	}
	/** The bytes before the payload; their length fields say that @rest more follow. */
	Link::Frame head(size_t rest)
	{
		const PathHeader path = this->path();
		Link::Frame frame(path.room().begin(),
		                  path.room().begin() + static_cast<ptrdiff_t>(path.size()));
		const headers::Bth bth = this->bth();
		const auto raw = std::as_bytes(std::span(&bth, 1));
		frame.insert(frame.end(), raw.begin(), raw.end());
		const Link::Frame extended = bytes(rng_.below(kMaxTransportHeader));
		frame.insert(frame.end(), extended.begin(), extended.end());
		set_lengths(frame, path, rest);
		return frame;
	}
	static void set_lengths(Link::Frame &frame, const PathHeader &path, size_t rest)
	{
		const size_t size = frame.size() + rest - path.network_offset();
		std::byte *const network = frame.data() + path.network_offset();
		size_t udp = sizeof(headers::Ipv6);
		if (path.ipv4()) {
			headers::Ipv4 ip;
			std::memcpy(&ip, network, sizeof(ip));
			ip.total_length = static_cast<uint16_t>(size);
			ip.checksum = uint16_t{0};
			ip.checksum = static_cast<uint16_t>(~headers::ipv4_sum(ip));
			std::memcpy(network, &ip, sizeof(ip));
			udp = sizeof(ip);
		} else {
			headers::Ipv6 ip;
			std::memcpy(&ip, network, sizeof(ip));
			ip.payload_length = static_cast<uint16_t>(size - sizeof(ip));
			std::memcpy(network, &ip, sizeof(ip));
		}
		if (!path.roce_v2())
			return;
		headers::Udp header;
		std::memcpy(&header, network + udp, sizeof(header));
		header.length = static_cast<uint16_t>(size - udp);
		std::memcpy(network + udp, &header, sizeof(header));
	}

	Link::Frame whole()
	{
		const Link::Frame payload = bytes(rng_.below(rng_.chance(1, 8) ? 1500 : 64));
		Link::Frame frame = head(payload.size() + kIcrcSize);
		frame.insert(frame.end(), payload.begin(), payload.end());
		const bool roce_v2 = !is_v1(frame);
		const size_t network = sizeof(headers::Ethernet) + (is_tagged(frame) ? 4 : 0);
		const uint32_t crc = icrc(std::span(frame).subspan(network), roce_v2);
		for (unsigned i = 0; i < kIcrcSize; i++)
			frame.push_back(static_cast<std::byte>(crc >> 8 * i));
		return frame;
	}
	/** Without ICRC, the payload in pieces, as one packet or as a burst. */
	void send_lent()
	{
		const size_t size = rng_.below(rng_.chance(1, 4) ? 9000 : 600);
		const std::vector<std::byte> payload(size, std::byte{0x5a});
		const auto segment =
		        static_cast<uint32_t>(rng_.chance(1, 2) ? 0 : 128u << rng_.below(7));
		const size_t told = segment ? std::min<size_t>(size, segment) : size;
		const Link::Frame head = this->head(told + pad_size(told) + kIcrcSize);
		const std::span<const std::byte> all(payload);
		const auto cut = static_cast<size_t>(rng_.below(size + 1));
		const std::array pieces{all.first(cut), all.subspan(cut)};
		to_.receive(head, pieces, segment);
	}
	static bool is_tagged(const Link::Frame &frame)
	{
		return frame[12] == std::byte{0x81} && frame[13] == std::byte{0x00};
	}
	static bool is_v1(const Link::Frame &frame)
	{
		const size_t at = is_tagged(frame) ? 16 : 12;
		return frame[at] == std::byte{0x89};
	}

	Node &to_;
	const Node &from_;
	Rng &rng_;
};

} // namespace
} // namespace tern::sim

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	using namespace tern::sim;
	Rng rng(std::as_bytes(std::span(data, size)));
	World world(rng);
	Vandal owner(world.node(0), rng, world.nodes());
	Sender sender(world, rng);
	for (unsigned i = 0; i < kMaxFrames && !rng.exhausted(); i++) {
		sender.send();
		world.pass(rng.chance(7, 8) ? 2'000 : 100'000);
		if (rng.chance(1, 2))
			owner.post();
	}
	world.pass(2'000'000);
	return 0;
}
