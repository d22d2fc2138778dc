// SPDX-License-Identifier: GPL-2.0-or-later
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include "qemu/wire/capture.h"
#include "tests/unit/wire/frames.h"

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

TEST(Capture, SaysWhyItCannotStart)
{
	Capture capture;
	EXPECT_NE(capture.start("/nowhere/at/all", {}), "");
	EXPECT_FALSE(capture.running());
}

} // namespace
} // namespace tern::wire
