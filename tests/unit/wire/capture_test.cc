// SPDX-License-Identifier: GPL-2.0-or-later
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include "qemu/fabric/classify.h"
#include "qemu/rnic/formats/headers.h"
#include "qemu/wire/capture.h"
#include "tests/unit/wire/packets.h"

namespace tern::wire {
namespace {

constexpr timespec kTime{1700000000, 123456789};

/** Reads a file as libpcap does, which has no comments. */
void expect_frames(const std::string &path, const std::vector<Bytes> &frames)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *file = pcap_open_offline_with_tstamp_precision(path.c_str(),
	                                                       PCAP_TSTAMP_PRECISION_NANO, error);
	ASSERT_NE(file, nullptr) << error;
	EXPECT_EQ(pcap_datalink(file), DLT_EN10MB);
	pcap_pkthdr *header;
	const u_char *data;
	for (const Bytes &bytes : frames) {
		ASSERT_EQ(pcap_next_ex(file, &header, &data), 1);
		ASSERT_EQ(header->caplen, bytes.size());
		EXPECT_EQ(header->len, bytes.size());
		EXPECT_EQ(header->ts.tv_sec, kTime.tv_sec);
		EXPECT_EQ(header->ts.tv_usec, kTime.tv_nsec);
		EXPECT_EQ(std::memcmp(data, bytes.data(), bytes.size()), 0);
	}
	EXPECT_EQ(pcap_next_ex(file, &header, &data), PCAP_ERROR_BREAK);
	pcap_close(file);
}

class CaptureFiles : public testing::TestWithParam<const char *> {};

TEST_P(CaptureFiles, CanBeReadBack)
{
	const std::string path = testing::TempDir() + "tern-capture-test." + GetParam();
	Capture capture;
	EXPECT_NE(capture.stop(), "");
	ASSERT_EQ(capture.start(path, {}), "");
	EXPECT_NE(capture.start(path, {}), "");
	const std::vector<FaultEvent> events{{faults::Fault::Drop, 2, 0, 1, {}},
	                                     {faults::Fault::Delay, 3, 5000, 1, {}}};
	const std::vector<Bytes> sent{frame(1, 2, 3, 61), frame(2, 1, 4, 9014),
	                              frame(2, 1, 5, kMaxFrame)};
	for (unsigned i = 0; i < sent.size(); i++)
		capture.frame({sent[i], kTime, i % 2, {}, events});
	EXPECT_EQ(capture.stop(), "");
	EXPECT_EQ(capture.frames(), sent.size());
	expect_frames(path, sent);
	std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Formats, CaptureFiles, testing::Values("pcap", "pcapng"));

/* ---- as Lumina's switch mirrors packets ---- */

/** A file in that layout (docs/wire.md). */
class Mirror : public testing::Test {
protected:
	void SetUp() override { ASSERT_EQ(capture_.start(path_, {{}, {}, true}), ""); }
	void TearDown() override { std::filesystem::remove(path_); }

	void add(const Bytes &frame, const std::vector<FaultEvent> &events = {}, unsigned port = 0)
	{
		capture_.frame({frame, kTime, port, {}, events});
	}
	/** The packets of the file, which is complete then. */
	std::vector<Bytes> packets()
	{
		EXPECT_EQ(capture_.stop(), "");
		char error[PCAP_ERRBUF_SIZE];
		pcap_t *file = pcap_open_offline(path_.c_str(), error);
		if (!file) {
			ADD_FAILURE() << error;
			return {};
		}
		std::vector<Bytes> found;
		pcap_pkthdr *header;
		const u_char *data;
		while (pcap_next_ex(file, &header, &data) == 1) {
			const auto bytes = std::as_bytes(std::span(data, header->caplen));
			found.emplace_back(bytes.begin(), bytes.end());
		}
		pcap_close(file);
		return found;
	}
	static headers::Ipv4 ip_of(const Bytes &frame)
	{
		headers::Ipv4 ip{};
		headers::Reader in(frame);
		headers::Ethernet link;
		EXPECT_TRUE(in.take(link) && in.take(ip));
		return ip;
	}
	static FaultEvent event(faults::Fault fault) { return {fault, 1, 0, 1, {}}; }

	const std::string path_ = testing::TempDir() + "tern-mirror-test.pcap";
	Capture capture_;
};

TEST_F(Mirror, TellsWhatHappened)
{
	using enum faults::Fault;
	const struct {
		std::vector<faults::Fault> faults;
		uint8_t event;
	} cases[] = {
	        {{}, 0},
	        {{Drop}, 1},
	        {{Mark}, 2},
	        {{Corrupt}, 3},
	        /* Lumina has no event for these. */
	        {{Count}, 0},
	        {{Duplicate}, 0},
	        {{Delay}, 0},
	        {{Reorder}, 0},
	        /* Of several, that which weighs most. */
	        {{Mark, Corrupt}, 3},
	        {{Mark, Corrupt, Drop}, 1},
	        {{Delay, Mark}, 2},
	};
	for (const auto &c : cases) {
		std::vector<FaultEvent> events;
		for (const faults::Fault fault : c.faults)
			events.push_back(event(fault));
		add(packet({}), events);
	}
	/* A queue has marked it. */
	Bytes marked = packet({});
	fabric::mark_ce(marked);
	add(marked);
	add(marked, {event(Drop)});

	const auto found = packets();
	ASSERT_EQ(found.size(), std::size(cases) + 2);
	for (size_t i = 0; i < std::size(cases); i++)
		EXPECT_EQ(ip_of(found[i]).ttl, cases[i].event) << i;
	EXPECT_EQ(ip_of(found[std::size(cases)]).ttl, 2);
	EXPECT_EQ(ip_of(found.back()).ttl, 1);
}

TEST_F(Mirror, TellsThePort)
{
	for (const unsigned port : {0u, 1u, 63u, 0x1234u})
		add(packet({}), {}, port);
	const auto found = packets();
	ASSERT_EQ(found.size(), 4u);
	EXPECT_EQ(ip_of(found[0]).identification.get(), 0u);
	EXPECT_EQ(ip_of(found[1]).identification.get(), 1u);
	EXPECT_EQ(ip_of(found[2]).identification.get(), 63u);
	EXPECT_EQ(ip_of(found[3]).identification.get(), 0x1234u);
}

TEST_F(Mirror, TheAddressesAreTimeAndNumber)
{
	add(packet({}));
	add(packet({}));
	const auto found = packets();
	ASSERT_EQ(found.size(), 2u);
	uint64_t time = 1700000000'123456789; /* kTime */
	for (size_t i = 6; i-- > 0; time >>= 8)
		EXPECT_EQ(found[1][i], static_cast<std::byte>(time)) << i;
	for (uint8_t n = 0; n < 2; n++) {
		EXPECT_TRUE(std::all_of(found[n].begin() + 6, found[n].begin() + 11,
		                        [](std::byte b) { return b == std::byte{0}; }));
		EXPECT_EQ(found[n][11], static_cast<std::byte>(n + 1));
	}
}

/* Only what the layout has another use for is changed, and the checksum that covers it. */
TEST_F(Mirror, TheRestIsAsItWasSent)
{
	const Bytes sent = packet({.psn = 5, .payload = 100});
	add(sent, {event(faults::Fault::Corrupt)}, 3);
	const auto found = packets();
	ASSERT_EQ(found.size(), 1u);
	ASSERT_EQ(found[0].size(), sent.size());
	headers::Ipv4 now = ip_of(found[0]);
	const headers::Ipv4 before = ip_of(sent);
	EXPECT_EQ(headers::ipv4_sum(now), 0xffff);
	EXPECT_NE(now.checksum.get(), before.checksum.get());
	now.ttl = before.ttl;
	now.identification = before.identification;
	now.checksum = before.checksum;
	EXPECT_EQ(std::memcmp(&now, &before, sizeof(now)), 0);
	constexpr size_t kAddresses = 2 * sizeof(Mac), kIp = sizeof(headers::Ethernet);
	EXPECT_TRUE(std::equal(sent.begin() + kAddresses, sent.begin() + kIp,
	                       found[0].begin() + kAddresses));
	EXPECT_TRUE(std::equal(sent.begin() + kIp + sizeof(now), sent.end(),
	                       found[0].begin() + kIp + sizeof(now)));
}

TEST_F(Mirror, HasRoceOverIpv4Only)
{
	add(packet({.ipv4 = false}));
	add(frame(1, 2));
	add(roce(1, 2, 3));
	add(packet({}));
	const auto found = packets();
	ASSERT_EQ(found.size(), 1u);
	EXPECT_EQ(found[0][11], std::byte{1}); /* numbers have no gaps */
	EXPECT_EQ(capture_.frames(), 1u);
}

/* ---- refusals ---- */

TEST(Capture, SaysWhyItCannotStart)
{
	Capture capture;
	EXPECT_NE(capture.start("/nowhere/at/all", {}), "");
	EXPECT_FALSE(capture.running());
}

} // namespace
} // namespace tern::wire
