// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/icrc.h"
#include "tests/unit/formats/roce_paths.h"

namespace tern::test {
namespace {

/** Puts the right ICRC at the end again after a test has changed something before it. */
void seal(std::vector<std::byte> &frame, const PathCase &path)
{
	const auto packet = std::span(frame).subspan(path.network_offset);
	const Le<uint32_t> crc = icrc(packet.first(packet.size() - 4), path.av.roce_v2);
	std::memcpy(packet.last(4).data(), &crc, sizeof(crc));
}

using Frame = std::vector<std::byte>;

std::optional<ParseError> error_of(const Frame &frame)
{
	/* of its exact size, so that the sanitizer sees a read past the end */
	const auto result = parse(Frame(frame));
	const ParseError *error = std::get_if<ParseError>(&result);
	return error ? std::optional(*error) : std::nullopt;
}

/** Whether @frame is taken for a request that cannot be executed; checks that its BTH is there. */
bool is_invalid_request(const Frame &frame)
{
	const auto result = parse(Frame(frame));
	const Packet *packet = std::get_if<Packet>(&result);
	if (!packet || packet->info->kind != PacketKind::Invalid)
		return false;
	EXPECT_EQ(packet->bth.psn.value(), some_bth(0).psn.value());
	EXPECT_EQ(packet->bth.dest_qpn, some_bth(0).dest_qpn);
	EXPECT_TRUE(packet->payload.empty());
	EXPECT_TRUE(packet->info->is_request());
	return true;
}

/** Whether the service of @opcode answers a bad request. */
bool has_naks(uint8_t opcode)
{
	return service_of(opcode) == Service::Rc || service_of(opcode) == Service::Xrc;
}

bool is_ipv4(const PathCase &path)
{
	return path.transport_offset - path.network_offset == 28;
}

/** Changes one header in place. */
template <typename Header>
void edit(Frame &frame, size_t offset, const std::function<void(Header &)> &change)
{
	Header header;
	std::memcpy(&header, frame.data() + offset, sizeof(header));
	change(header);
	std::memcpy(frame.data() + offset, &header, sizeof(header));
}

class Parse : public testing::TestWithParam<PathCase> {
protected:
	const PathCase &path() const { return GetParam(); }
	Frame frame(Opcode opcode, size_t size) const
	{
		return make_frame(path().av, opcode, size);
	}
	Frame frame(uint8_t opcode, size_t size) const
	{
		return make_frame(path().av, opcode, size);
	}

	/** Sets the lengths of IP, UDP and GRH to what is there, and the ICRC. */
	void fix_lengths(Frame &frame) const;
	void edit_bth(Frame &frame, const std::function<void(headers::Bth &)> &change) const
	{
		edit<headers::Bth>(frame, path().transport_offset, change);
	}
};

void fix_ipv4_checksum(headers::Ipv4 &ip)
{
	ip.checksum = 0;
	ip.checksum = static_cast<uint16_t>(~headers::ipv4_sum(ip));
}

void Parse::fix_lengths(Frame &frame) const
{
	const auto after = [&](size_t offset) {
		return static_cast<uint16_t>(frame.size() - offset);
	};
	const size_t network = path().network_offset;
	if (is_ipv4(path()))
		edit<headers::Ipv4>(frame, network, [&](auto &ip) {
			ip.total_length = after(network);
			fix_ipv4_checksum(ip);
		});
	else
		edit<headers::Ipv6>(frame, network,
		                    [&](auto &ip) { ip.payload_length = after(network + 40); });
	if (path().av.roce_v2) {
		const size_t udp_offset = path().transport_offset - 8;
		edit<headers::Udp>(frame, udp_offset,
		                   [&](auto &udp) { udp.length = after(udp_offset); });
	}
	seal(frame, path());
}

TEST_P(Parse, EthernetPaddingIsNotPayload)
{
	auto padded = frame(Opcode::RcSendOnly, 3);
	padded.resize(padded.size() + 9, std::byte{0x77});
	const auto result = parse(padded);
	ASSERT_TRUE(std::holds_alternative<Packet>(result));
	EXPECT_EQ(std::get<Packet>(result).payload.size(), 3u);
}

TEST_P(Parse, EveryTruncationIsMalformed)
{
	for (const uint8_t opcode : spoken_opcodes()) {
		const auto whole = frame(opcode, opcode_info(opcode).payload ? 9 : 0);
		for (size_t size = 0; size < whole.size(); size++)
			ASSERT_EQ(error_of(Frame(whole.begin(),
			                         whole.begin() + static_cast<ptrdiff_t>(size))),
			          ParseError::Malformed)
			        << "opcode " << unsigned{opcode} << " size " << size;
	}
}

/* With lengths and ICRC that fit: what is missing is part of the transport's own headers. */
TEST_P(Parse, EveryShorterTransportIsNoValidPacket)
{
	for (const uint8_t opcode : spoken_opcodes()) {
		const auto whole = frame(opcode, 0);
		const bool refused = has_naks(opcode) && opcode_info(opcode).is_request();
		for (size_t size = path().transport_offset + 16; size < whole.size(); size++) {
			Frame cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
			fix_lengths(cut);
			const bool words = (size - path().transport_offset) % 4 == 0;
			if (words && refused)
				ASSERT_TRUE(is_invalid_request(cut))
				        << unsigned{opcode} << ' ' << size;
			else
				ASSERT_EQ(error_of(cut), ParseError::Malformed)
				        << "opcode " << unsigned{opcode} << " size " << size;
		}
	}
}

/** The bytes that may change on the way without notice: variant for the ICRC, not checked
 * otherwise. */
std::set<size_t> unprotected(const PathCase &path)
{
	std::set<size_t> bytes;
	/* the link header, which the Ethernet FCS protects; the ethertypes choose the parser */
	for (size_t i = 0; i < 12; i++)
		bytes.insert(i);
	if (path.network_offset == 18)
		bytes.insert({14, 15});
	if (!is_ipv4(path)) {
		const size_t ip = path.network_offset;
		bytes.insert({ip + 1, ip + 2, ip + 3, ip + 7});
	}
	if (path.av.roce_v2)
		bytes.insert({path.transport_offset - 2, path.transport_offset - 1});
	bytes.insert(path.transport_offset + 4);
	return bytes;
}

TEST_P(Parse, EveryFlippedByteIsSeen)
{
	const auto whole = frame(Opcode::RcWriteOnlyImm, 6);
	const auto ignored = unprotected(path());
	for (size_t i = 0; i < whole.size(); i++) {
		auto flipped = whole;
		flipped[i] ^= std::byte{0xff};
		ASSERT_EQ(error_of(flipped).has_value(), !ignored.count(i)) << "byte " << i;
	}
}

TEST_P(Parse, EveryFlippedBitOfTheTransportIsBadIcrc)
{
	const auto whole = frame(Opcode::RcSendOnly, 5);
	const size_t variant = path().transport_offset + 4;
	for (size_t i = path().transport_offset; i < whole.size(); i += i + 1 == variant ? 2 : 1) {
		for (unsigned bit = 0; bit < 8; bit++) {
			auto flipped = whole;
			flipped[i] ^= std::byte{1} << bit;
			const bool version = i == path().transport_offset + 1 && bit < 4;
			ASSERT_EQ(error_of(flipped),
			          version ? ParseError::Malformed : ParseError::BadIcrc)
			        << "byte " << i << " bit " << bit;
		}
	}
}

TEST_P(Parse, RoutersMayMarkCongestion)
{
	auto marked = frame(Opcode::RcSendOnly, 5);
	if (is_ipv4(path()))
		edit<headers::Ipv4>(marked, path().network_offset, [](auto &ip) {
			ip.tos |= 3;
			ip.ttl--;
			fix_ipv4_checksum(ip);
		});
	else
		edit<headers::Ipv6>(marked, path().network_offset, [](auto &ip) {
			ip.version_class_flow = ip.version_class_flow.get() | 3u << 20;
			ip.hop_limit--;
		});
	const auto result = parse(marked);
	ASSERT_TRUE(std::holds_alternative<Packet>(result));
	EXPECT_EQ(std::get<Packet>(result).path.traffic_class, path().av.traffic_class | 3);
	EXPECT_EQ(std::get<Packet>(result).path.hop_limit, path().av.hop_limit - 1);
}

TEST_P(Parse, OtherOpcodes)
{
	const auto spoken = spoken_opcodes();
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const auto byte = static_cast<uint8_t>(opcode);
		if (std::ranges::count(spoken, byte))
			continue;
		if (has_naks(byte))
			ASSERT_TRUE(is_invalid_request(frame(byte, 8))) << opcode;
		else
			ASSERT_EQ(error_of(frame(byte, 8)), ParseError::BadOpcode) << opcode;
	}
}

TEST_P(Parse, BadIcrcComesBeforeTheOpcode)
{
	auto bad = frame(uint8_t{0xff}, 8);
	bad.back() ^= std::byte{1};
	EXPECT_EQ(error_of(bad), ParseError::BadIcrc);
}

TEST_P(Parse, TransportVersion)
{
	for (uint8_t version = 1; version < 16; version++) {
		auto bad = frame(Opcode::RcSendOnly, 8);
		edit_bth(bad, [&](auto &bth) { bth.flags |= version; });
		seal(bad, path());
		ASSERT_EQ(error_of(bad), ParseError::Malformed);
	}
}

TEST_P(Parse, MigReqMakesNoDifference)
{
	auto other = frame(Opcode::RcSendOnly, 8);
	edit_bth(other, [](auto &bth) { bth.flags ^= headers::kBthMigReq; });
	seal(other, path());
	EXPECT_EQ(error_of(other), std::nullopt);
}

TEST_P(Parse, PadWithoutPayload)
{
	const auto padded = [&](Service service) {
		auto bad = frame(opcode_of(service, Opcode::RcSendOnly), 0);
		edit_bth(bad, [](auto &bth) { bth.flags |= 1 << headers::kBthPadShift; });
		seal(bad, path());
		return bad;
	};
	EXPECT_TRUE(is_invalid_request(padded(Service::Rc)));
	EXPECT_TRUE(is_invalid_request(padded(Service::Xrc)));
	EXPECT_EQ(error_of(padded(Service::Uc)), ParseError::Malformed);
	EXPECT_EQ(error_of(padded(Service::Ud)), ParseError::Malformed);
}

/* The responder answers a request, nobody answers a response. */
TEST_P(Parse, PayloadWhereThereIsNone)
{
	for (const auto opcode :
	     {Opcode::RcReadRequest, Opcode::RcCompareSwap, Opcode::RcFetchAdd, Opcode::RcFlush,
	      Opcode::RcMaskedCompareSwap, Opcode::RcMaskedFetchAdd})
		EXPECT_TRUE(is_invalid_request(frame(opcode, 4)));
	for (const auto opcode : {Opcode::RcAcknowledge, Opcode::RcAtomicAcknowledge})
		EXPECT_EQ(error_of(frame(opcode, 4)), ParseError::Malformed);
}

TEST_P(Parse, ReservedBitsOfAFlush)
{
	auto flush = frame(Opcode::RcFlush, 0);
	edit<headers::Feth>(flush, path().transport_offset + sizeof(headers::Bth),
	                    [](auto &feth) { feth.bits = 0xffffffd1; });
	seal(flush, path());
	const auto result = parse(flush);
	ASSERT_TRUE(std::holds_alternative<Packet>(result));
	EXPECT_EQ(std::get<Packet>(result).ext.feth.type, 1);
	EXPECT_EQ(std::get<Packet>(result).ext.feth.level, 1);
}

TEST_P(Parse, TransportIsWholeWords)
{
	for (size_t extra = 1; extra < 4; extra++) {
		auto bad = frame(Opcode::RcSendOnly, 8);
		bad.resize(bad.size() + extra);
		fix_lengths(bad);
		ASSERT_EQ(error_of(bad), ParseError::Malformed);
	}
}

TEST_P(Parse, IpLengthBeyondTheFrame)
{
	auto bad = frame(Opcode::RcSendOnly, 8);
	bad.resize(bad.size() + 4);
	fix_lengths(bad);
	ASSERT_EQ(error_of(bad), std::nullopt);
	bad.resize(bad.size() - 4);
	EXPECT_EQ(error_of(bad), ParseError::Malformed);
}

TEST_P(Parse, PriorityTagIsNoVlan)
{
	auto av = path().av;
	av.vlan = 0;
	const auto result = parse(make_frame(av, Opcode::RcSendOnly, 8));
	ASSERT_TRUE(std::holds_alternative<Packet>(result));
	EXPECT_EQ(std::get<Packet>(result).path.vlan, kNoVlan);
}

INSTANTIATE_TEST_SUITE_P(Paths, Parse, testing::ValuesIn(all_paths()), path_name);

class ParseIpv4 : public testing::Test {
protected:
	/** Changes the IP header and keeps its checksum right. */
	void change(const std::function<void(headers::Ipv4 &)> &f)
	{
		edit<headers::Ipv4>(frame_, 14, [&](auto &ip) {
			f(ip);
			fix_ipv4_checksum(ip);
		});
		seal(frame_, path_);
	}

	PathCase path_ = path_case("", true, ipv4_gid, kNoVlan);
	Frame frame_ = make_frame(path_.av, Opcode::RcSendOnly, 8);
};

TEST_F(ParseIpv4, HeaderChecksum)
{
	edit<headers::Ipv4>(frame_, 14, [](auto &ip) {
		ip.checksum = static_cast<uint16_t>(ip.checksum.get() + 1);
	});
	EXPECT_EQ(error_of(frame_), ParseError::Malformed);
}

TEST_F(ParseIpv4, AnyIdentification)
{
	change([](auto &ip) { ip.identification = 0xbeef; });
	EXPECT_EQ(error_of(frame_), std::nullopt);
}

TEST_F(ParseIpv4, FirstFragment)
{
	change([](auto &ip) { ip.fragment = headers::kIpv4MoreFragments; });
	EXPECT_TRUE(is_roce(frame_));
	EXPECT_EQ(error_of(frame_), ParseError::Malformed);
}

TEST_F(ParseIpv4, LaterFragment)
{
	change([](auto &ip) { ip.fragment = 8; });
	EXPECT_FALSE(is_roce(frame_));
	EXPECT_EQ(error_of(frame_), ParseError::Malformed);
}

TEST_F(ParseIpv4, Options)
{
	frame_.insert(frame_.begin() + 34, 4, std::byte{1});
	change([this](auto &ip) {
		ip.version_ihl = 0x46;
		ip.total_length = static_cast<uint16_t>(frame_.size() - 14);
	});
	EXPECT_TRUE(is_roce(frame_));
	EXPECT_EQ(error_of(frame_), ParseError::Malformed);
}

TEST_F(ParseIpv4, OtherVersions)
{
	edit<headers::Ipv4>(frame_, 14, [](auto &ip) {
		ip.version_ihl = 0x65;
		fix_ipv4_checksum(ip);
	});
	EXPECT_FALSE(is_roce(frame_));
	EXPECT_EQ(error_of(frame_), ParseError::Malformed);
}

TEST_F(ParseIpv4, LengthShorterThanTheHeader)
{
	for (uint16_t length = 0; length < 20 + 8 + 12 + 4; length++) {
		change([&](auto &ip) { ip.total_length = length; });
		ASSERT_EQ(error_of(frame_), ParseError::Malformed);
	}
}

TEST_F(ParseIpv4, UdpLengthOtherThanIp)
{
	for (const int delta : {-4, -1, 1, 4}) {
		auto bad = frame_;
		edit<headers::Udp>(bad, 34, [&](auto &udp) {
			udp.length = static_cast<uint16_t>(udp.length.get() + delta);
		});
		seal(bad, path_);
		ASSERT_EQ(error_of(bad), ParseError::Malformed);
	}
}

TEST_F(ParseIpv4, UdpChecksumIsNotLookedAt)
{
	edit<headers::Udp>(frame_, 34, [](auto &udp) { udp.checksum = 0x1234; });
	EXPECT_EQ(error_of(frame_), std::nullopt);
}

/* The GID of an IPv4 peer must come in an IPv4 header. */
TEST(ParseIpv6, MappedAddresses)
{
	const auto path = path_case("", true, ipv6_gid, kNoVlan);
	for (const size_t address : {14 + 8, 14 + 24}) {
		auto bad = make_frame(path.av, Opcode::RcSendOnly, 8);
		const Gid gid = ipv4_gid(1);
		std::memcpy(bad.data() + address, gid.bytes.data(), gid.bytes.size());
		seal(bad, path);
		EXPECT_EQ(error_of(bad), ParseError::Malformed);
	}
}

TEST(ParseIpv6, ExtensionHeaders)
{
	const auto path = path_case("", true, ipv6_gid, kNoVlan);
	auto frame = make_frame(path.av, Opcode::RcSendOnly, 8);
	edit<headers::Ipv6>(frame, 14, [](auto &ip) { ip.next_header = 0; });
	seal(frame, path);
	EXPECT_FALSE(is_roce(frame));
	EXPECT_EQ(error_of(frame), ParseError::Malformed);
}

TEST(ParseRoceV1, OtherNextHeader)
{
	const auto path = path_case("", false, ipv6_gid, kNoVlan);
	auto frame = make_frame(path.av, Opcode::RcSendOnly, 8);
	edit<headers::Ipv6>(frame, 14, [](auto &grh) { grh.next_header = 17; });
	seal(frame, path);
	EXPECT_TRUE(is_roce(frame));
	EXPECT_EQ(error_of(frame), ParseError::Malformed);
}

class IsRoce : public testing::TestWithParam<PathCase> {};

TEST_P(IsRoce, NotTruncatedBeforeTheUdpPort)
{
	const auto whole = make_frame(GetParam().av, Opcode::RcSendOnly, 8);
	const size_t enough =
	        GetParam().av.roce_v2 ? GetParam().transport_offset : GetParam().network_offset;
	for (size_t size = 0; size <= whole.size(); size++)
		ASSERT_EQ(
		        is_roce(Frame(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size))),
		        size >= enough)
		        << size;
}

TEST_P(IsRoce, NotTwoTags)
{
	if (GetParam().network_offset != 18)
		return;
	auto frame = make_frame(GetParam().av, Opcode::RcSendOnly, 8);
	const Frame tag(frame.begin() + 12, frame.begin() + 16);
	frame.insert(frame.begin() + 12, tag.begin(), tag.end());
	EXPECT_FALSE(is_roce(frame));
}

TEST_P(IsRoce, NotOtherPorts)
{
	if (!GetParam().av.roce_v2)
		return;
	auto frame = make_frame(GetParam().av, Opcode::RcSendOnly, 8);
	edit<headers::Udp>(frame, GetParam().transport_offset - 8, [](auto &udp) {
		udp.source = kRoceUdpPort;
		udp.destination = 4790;
	});
	EXPECT_FALSE(is_roce(frame));
	EXPECT_EQ(error_of(frame), ParseError::Malformed);
}

/* The headers up to the BTH are enough. */
TEST_P(IsRoce, EngineOfTheDestination)
{
	const Frame f = make_frame(GetParam().av, Opcode::RcSendOnly, 100);
	const size_t bth = GetParam().transport_offset + sizeof(headers::Bth);
	EXPECT_EQ(roce_engine(f), some_bth(0).dest_qpn >> 20);
	EXPECT_EQ(roce_engine(Frame(f.begin(), f.begin() + static_cast<ptrdiff_t>(bth))), 0xau);
	for (size_t size = 0; size < bth; size++)
		EXPECT_EQ(roce_engine(Frame(f.begin(), f.begin() + static_cast<ptrdiff_t>(size))),
		          std::nullopt)
		        << size;
}

/* From the BTH to the ICRC, whatever is behind it; a truncated frame has none. */
TEST_P(IsRoce, Transport)
{
	Frame f = make_frame(GetParam().av, Opcode::RcSendOnly, 100);
	const size_t whole = f.size(), size = whole - GetParam().transport_offset;
	f.resize(whole + 9);
	EXPECT_EQ(roce_transport(f).data(), f.data() + GetParam().transport_offset);
	EXPECT_EQ(roce_transport(f).size(), size);
	for (size_t left = 0; left < whole; left++)
		EXPECT_TRUE(roce_transport(std::span(f).first(left)).empty()) << left;
}

INSTANTIATE_TEST_SUITE_P(Paths, IsRoce, testing::ValuesIn(all_paths()), path_name);

TEST(IsRoce, OtherEthertypes)
{
	Frame frame(64);
	EXPECT_FALSE(is_roce(frame));
	frame[12] = std::byte{0x08};
	frame[13] = std::byte{0x06};
	EXPECT_FALSE(is_roce(frame));
	EXPECT_EQ(error_of(frame), ParseError::Malformed);
}

} // namespace
} // namespace tern::test
