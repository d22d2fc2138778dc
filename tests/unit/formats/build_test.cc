// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include "qemu/rnic/formats/headers.h"
#include "tests/unit/formats/roce_paths.h"

namespace tern::test {
namespace {

template <typename T>
T header_at(std::span<const std::byte> frame, size_t offset)
{
	T header;
	std::memcpy(&header, frame.subspan(offset).data(), sizeof(header));
	return header;
}

class Build : public testing::TestWithParam<PathCase> {
protected:
	const PathCase &path() const { return GetParam(); }
};

void expect_path(const PathInfo &path, const AddressVector &av)
{
	EXPECT_EQ(path.roce_v2, av.roce_v2);
	EXPECT_EQ(path.smac, av.smac);
	EXPECT_EQ(path.dmac, av.dmac);
	EXPECT_EQ(path.vlan, av.vlan);
	EXPECT_EQ(path.priority, av.vlan == kNoVlan ? 0 : av.sl & 7);
	EXPECT_EQ(path.sgid, av.sgid);
	EXPECT_EQ(path.dgid, av.dgid);
	EXPECT_EQ(path.traffic_class, av.traffic_class);
	EXPECT_EQ(path.hop_limit, av.hop_limit);
	EXPECT_EQ(path.udp_sport, av.roce_v2 ? av.udp_sport : 0);
}

void expect_bth(const Bth &bth, const Bth &sent)
{
	EXPECT_EQ(bth.opcode, sent.opcode);
	EXPECT_EQ(bth.solicited, sent.solicited);
	EXPECT_EQ(bth.ack_request, sent.ack_request);
	EXPECT_EQ(bth.fecn, sent.fecn);
	EXPECT_EQ(bth.becn, sent.becn);
	EXPECT_EQ(bth.pkey, sent.pkey);
	EXPECT_EQ(bth.dest_qpn, sent.dest_qpn);
	EXPECT_EQ(bth.psn, sent.psn);
}

void expect_reth(const Reth &reth, const Reth &sent)
{
	EXPECT_EQ(reth.va, sent.va);
	EXPECT_EQ(reth.rkey, sent.rkey);
	EXPECT_EQ(reth.length, sent.length);
}

void expect_atomic(const AtomicEth &atomic, const AtomicEth &sent)
{
	EXPECT_EQ(atomic.va, sent.va);
	EXPECT_EQ(atomic.rkey, sent.rkey);
	EXPECT_EQ(atomic.swap_add, sent.swap_add);
	EXPECT_EQ(atomic.compare, sent.compare);
}

/* Those which @info calls for as sent, the others untouched. */
void expect_ext(const ExtHeaders &ext, const OpcodeInfo &info)
{
	const ExtHeaders sent = some_ext();
	EXPECT_EQ(ext.deth.qkey, info.deth ? sent.deth.qkey : 0);
	EXPECT_EQ(ext.deth.source_qpn, info.deth ? sent.deth.source_qpn : 0);
	EXPECT_EQ(ext.feth.type, info.feth ? sent.feth.type : 0);
	EXPECT_EQ(ext.feth.level, info.feth ? sent.feth.level : 0);
	expect_reth(ext.reth, info.reth ? sent.reth : Reth{});
	expect_atomic(ext.atomic, info.atomic_eth ? sent.atomic : AtomicEth{});
	EXPECT_EQ(ext.masks.swap_add, info.atomic_masks ? sent.masks.swap_add : 0);
	EXPECT_EQ(ext.masks.compare, info.atomic_masks ? sent.masks.compare : 0);
	EXPECT_EQ(ext.aeth.syndrome, info.aeth ? sent.aeth.syndrome : 0);
	EXPECT_EQ(ext.aeth.msn, info.aeth ? sent.aeth.msn : 0);
	EXPECT_EQ(ext.atomic_ack, info.atomic_ack_eth ? sent.atomic_ack : 0);
	EXPECT_EQ(ext.imm, info.imm ? sent.imm : 0);
	EXPECT_EQ(ext.srqn, info.xrceth ? sent.srqn : 0);
	EXPECT_EQ(ext.inv_rkey, info.ieth ? sent.inv_rkey : 0);
}

void expect_payload(std::span<const std::byte> payload, size_t size)
{
	ASSERT_EQ(payload.size(), size);
	for (size_t i = 0; i < size; i++)
		ASSERT_EQ(payload[i], payload_byte(i)) << i;
}

void expect_round_trip(const AddressVector &av, uint8_t opcode, size_t size)
{
	SCOPED_TRACE(testing::Message() << "opcode " << unsigned{opcode} << " size " << size);
	const auto frame = make_frame(av, opcode, size);
	ASSERT_TRUE(is_roce(frame));
	const auto result = parse(frame);
	const Packet *packet = std::get_if<Packet>(&result);
	ASSERT_TRUE(packet);
	expect_path(packet->path, av);
	expect_bth(packet->bth, some_bth(opcode));
	EXPECT_EQ(packet->info, &opcode_info(opcode));
	expect_ext(packet->ext, *packet->info);
	EXPECT_EQ(packet->network.data(), frame.data() + (av.vlan == kNoVlan ? 14 : 18));
	EXPECT_EQ(packet->network.size(), av.roce_v2 && av.sgid.is_ipv4() ? 20u : 40u);
	ASSERT_EQ(packet->payload.pieces(), 1u);
	expect_payload(packet->payload.piece(0), size);
}

TEST_P(Build, EveryOpcodeAndSizeComesBack)
{
	for (const uint8_t opcode : spoken_opcodes()) {
		expect_round_trip(path().av, opcode, 0);
		if (!opcode_info(opcode).payload)
			continue;
		for (const size_t size :
		     {1, 2, 3, 4, 5, 255, 256, 257, 1023, 1024, 2048, 4095, 4096})
			expect_round_trip(path().av, opcode, size);
	}
}

TEST_P(Build, LayoutOfTheHeaders)
{
	const PathHeader header(path().av);
	EXPECT_EQ(header.network_offset(), path().network_offset);
	EXPECT_EQ(header.size(), path().transport_offset);

	const auto frame = make_frame(path().av, Opcode::RcWriteOnlyImm, 5);
	EXPECT_EQ(frame.size(), path().transport_offset + 12 + 16 + 4 + 8 + 4);
	const auto bth = header_at<headers::Bth>(frame, path().transport_offset);
	EXPECT_EQ(bth.opcode, 0x0b);
	EXPECT_EQ(bth.flags, 0x80 | 0x40 | 3 << 4);
	EXPECT_EQ(bth.qpn.get(), 0xc0abcdefu);
	EXPECT_EQ(bth.psn.get(), 0x80fedcbau);
}

TEST_P(Build, LayoutOfAFlush)
{
	const auto frame = make_frame(path().av, Opcode::RcFlush, 0);
	const size_t feth = path().transport_offset + sizeof(headers::Bth);
	EXPECT_EQ(frame.size(), feth + 4 + 16 + 4);
	EXPECT_EQ(header_at<Be<uint32_t>>(frame, feth).get(), 0x2au);
	EXPECT_EQ(header_at<headers::Reth>(frame, feth + 4).va.get(), some_ext().reth.va);
}

TEST_P(Build, LayoutOfAMaskedAtomic)
{
	const auto frame = make_frame(path().av, Opcode::RcMaskedCompareSwap, 0);
	const size_t atomic = path().transport_offset + sizeof(headers::Bth);
	EXPECT_EQ(frame.size(), atomic + 28 + 16 + 4);
	const auto word = [&](size_t at) {
		return header_at<Be<uint64_t>>(frame, atomic + at).get();
	};
	EXPECT_EQ(word(0), some_ext().atomic.va);
	EXPECT_EQ(word(12), some_ext().atomic.swap_add);
	EXPECT_EQ(word(20), some_ext().atomic.compare);
	EXPECT_EQ(word(28), some_ext().masks.swap_add);
	EXPECT_EQ(word(36), some_ext().masks.compare);
}

TEST_P(Build, PadIsZero)
{
	const auto frame = make_frame(path().av, Opcode::RcSendOnly, 1);
	for (size_t i = frame.size() - 7; i < frame.size() - 4; i++)
		EXPECT_EQ(frame[i], std::byte{0});
}

TEST_P(Build, LongestFitsKMaxRoceFrame)
{
	EXPECT_LE(make_frame(path().av, Opcode::RcWriteOnlyImm, 4096).size(), kMaxRoceFrame);
}

INSTANTIATE_TEST_SUITE_P(Paths, Build, testing::ValuesIn(all_paths()), path_name);

/* A17.4.5: DF, no identification, no options; UDP without checksum. */
TEST(BuildIpv4, Fields)
{
	const auto path = path_case("", true, ipv4_gid, kNoVlan);
	const auto frame = make_frame(path.av, Opcode::RcSendOnly, 8);
	const auto ip = header_at<headers::Ipv4>(frame, 14);
	EXPECT_EQ(ip.version_ihl, 0x45);
	EXPECT_EQ(ip.tos, 0x6a);
	EXPECT_EQ(ip.total_length.get(), frame.size() - 14);
	EXPECT_EQ(ip.identification.get(), 0);
	EXPECT_EQ(ip.fragment.get(), 0x4000);
	EXPECT_EQ(ip.ttl, 63);
	EXPECT_EQ(ip.protocol, 17);
	EXPECT_EQ(headers::ipv4_sum(ip), 0xffff);

	const auto udp = header_at<headers::Udp>(frame, 34);
	EXPECT_EQ(udp.source.get(), 0xc123);
	EXPECT_EQ(udp.destination.get(), 4791);
	EXPECT_EQ(udp.length.get(), frame.size() - 34);
	EXPECT_EQ(udp.checksum.get(), 0);
}

TEST(BuildIpv6, Fields)
{
	const auto path = path_case("", true, ipv6_gid, kNoVlan);
	const auto frame = make_frame(path.av, Opcode::RcSendOnly, 8);
	const auto ip = header_at<headers::Ipv6>(frame, 14);
	EXPECT_EQ(ip.version_class_flow.get(), 0x66aabcdeu);
	EXPECT_EQ(ip.payload_length.get(), frame.size() - 54);
	EXPECT_EQ(ip.next_header, 17);
	EXPECT_EQ(ip.hop_limit, 63);
	EXPECT_EQ(header_at<headers::Udp>(frame, 54).length.get(), frame.size() - 54);
}

/* A16.3: the GRH counts to the end of the ICRC. */
TEST(BuildRoceV1, Fields)
{
	const auto path = path_case("", false, ipv6_gid, kNoVlan);
	const auto frame = make_frame(path.av, Opcode::RcSendOnly, 8);
	EXPECT_EQ(header_at<headers::Ethernet>(frame, 0).ethertype.get(), 0x8915);
	const auto grh = header_at<headers::Ipv6>(frame, 14);
	EXPECT_EQ(grh.next_header, 0x1b);
	EXPECT_EQ(grh.payload_length.get(), frame.size() - 54);
}

TEST(BuildVlan, PriorityIsTheServiceLevel)
{
	const auto path = path_case("", true, ipv4_gid, 42);
	const auto frame = make_frame(path.av, Opcode::RcSendOnly, 0);
	EXPECT_EQ(header_at<headers::Vlan>(frame, 14).tci.get(), 5 << 13 | 42);
}

/* The order in which the headers follow the BTH (A14.3.3). */
TEST(BuildXrc, HeaderOrder)
{
	const auto path = path_case("", true, ipv4_gid, kNoVlan);
	const auto frame = make_frame(path.av, opcode_of(Service::Xrc, Opcode::RcWriteOnlyImm), 4);
	const size_t bth = 14 + 20 + 8;
	EXPECT_EQ(header_at<headers::Bth>(frame, bth).opcode, 0xab);
	EXPECT_EQ(header_at<headers::Xrceth>(frame, bth + 12).srqn.get(), some_ext().srqn);
	EXPECT_EQ(header_at<headers::Reth>(frame, bth + 16).rkey.get(), some_ext().reth.rkey);
	EXPECT_EQ(header_at<headers::Imm>(frame, bth + 32).value.get(), some_ext().imm);
	EXPECT_EQ(frame.size(), bth + 36 + 4 + 4);
}

TEST(BuildPath, OneIpv4AddressDoesNotMakeItIpv4)
{
	auto av = path_case("", true, ipv6_gid, kNoVlan).av;
	av.dgid = ipv4_gid(9);
	EXPECT_FALSE(PathHeader(av).ipv4());
}

} // namespace
} // namespace tern::test
