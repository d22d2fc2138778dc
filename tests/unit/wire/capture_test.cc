// SPDX-License-Identifier: GPL-2.0-or-later
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>

#include "qemu/wire/capture.h"
#include "tests/unit/wire/frames.h"

namespace tern::wire {
namespace {

TEST(Capture, CanBeReadBack)
{
	const std::string path = testing::TempDir() + "tern-capture-test.pcap";
	Capture capture;
	EXPECT_NE(capture.stop(), "");
	ASSERT_EQ(capture.start(path), "");
	EXPECT_NE(capture.start(path), "");
	const std::vector<Bytes> sent{frame(1, 2, 3, 60), frame(2, 1, 4, 9014),
	                              frame(2, 1, 5, kMaxFrame)};
	for (const Bytes &bytes : sent)
		capture.frame(bytes);
	EXPECT_EQ(capture.stop(), "");
	EXPECT_EQ(capture.frames(), sent.size());

	char error[PCAP_ERRBUF_SIZE];
	pcap_t *file = pcap_open_offline_with_tstamp_precision(path.c_str(),
	                                                       PCAP_TSTAMP_PRECISION_NANO, error);
	ASSERT_NE(file, nullptr) << error;
	EXPECT_EQ(pcap_datalink(file), DLT_EN10MB);
	for (const Bytes &bytes : sent) {
		pcap_pkthdr *header;
		const u_char *data;
		ASSERT_EQ(pcap_next_ex(file, &header, &data), 1);
		ASSERT_EQ(header->caplen, bytes.size());
		EXPECT_EQ(header->len, bytes.size());
		EXPECT_LT(header->ts.tv_usec, 1'000'000'000);
		EXPECT_EQ(std::memcmp(data, bytes.data(), bytes.size()), 0);
	}
	pcap_close(file);
	std::filesystem::remove(path);
}

TEST(Capture, SaysWhyItCannotStart)
{
	Capture capture;
	EXPECT_NE(capture.start("/nowhere/at/all"), "");
	EXPECT_FALSE(capture.running());
}

} // namespace
} // namespace tern::wire
