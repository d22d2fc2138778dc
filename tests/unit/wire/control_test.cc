// SPDX-License-Identifier: GPL-2.0-or-later
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <future>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "qemu/wire/control.h"
#include "tests/unit/wire/frames.h"

namespace tern::wire {
namespace {

class ControlTest : public testing::Test, private PortReport {
protected:
	ControlTest() : control(ethernet, capture, log, *this) {}

	std::string describe_ports() const override { return "2; port=0; port=1"; }
	uint64_t frames_dropped() const override { return 42; }
	shm::DirectCounts direct() const override { return {7, 5, 2, 1}; }

	Switch ethernet;
	Capture capture;
	FaultLog log;
	Control control;
};

TEST_F(ControlTest, SetsFaults)
{
	EXPECT_EQ(control.execute("loss 1.5"), "ok");
	EXPECT_TRUE(ethernet.faults().any());
	EXPECT_EQ(control.execute("loss 0\r"), "ok");
	EXPECT_FALSE(ethernet.faults().any());
	for (const char *kind : {"dup", "reorder", "corrupt"}) {
		EXPECT_EQ(control.execute(std::string(kind) + " 100"), "ok");
		EXPECT_TRUE(ethernet.faults().any());
		EXPECT_EQ(control.execute(std::string(kind) + " 0"), "ok");
		EXPECT_FALSE(ethernet.faults().any());
	}
	EXPECT_EQ(control.execute("seed 18446744073709551615"), "ok");
}

TEST_F(ControlTest, SetsRules)
{
	EXPECT_EQ(control.execute("loss 1.5"), "ok");
	EXPECT_EQ(control.execute("rules drop qp=5 once;delay by=5ms"), "ok");
	EXPECT_EQ(control.execute("rules mark"), "ok");
	EXPECT_EQ(control.execute("faults"),
	          "ok {\"loss\":1.5,\"dup\":0,\"reorder\":0,\"corrupt\":0,\"ce\":0,\"rules\":["
	          "{\"rule\":1,\"text\":\"drop qp=5 once\",\"matched\":0,\"hits\":0,"
	          "\"spent\":false},"
	          "{\"rule\":2,\"text\":\"delay by=5ms\",\"matched\":0,\"hits\":0,"
	          "\"spent\":false},"
	          "{\"rule\":3,\"text\":\"mark\",\"matched\":0,\"hits\":0,\"spent\":false}]}");
	EXPECT_EQ(control.execute("clear"), "ok");
	EXPECT_FALSE(ethernet.faults().any());
	EXPECT_EQ(control.execute("faults"), "ok {\"loss\":0,\"dup\":0,\"reorder\":0,"
	                                     "\"corrupt\":0,\"ce\":0,\"rules\":[]}");
}

/* A pattern of links may have any characters between brackets, but JSON is UTF-8. */
TEST_F(ControlTest, RulesOfAnyCharactersAreValidJson)
{
	ethernet.faults().set_links({{"s1:s2", false}});
	const std::pair<std::string, std::string> cases[] = {
	        {"\"", R"(\")"},
	        {"\\", R"(\\)"},
	        {"\x01\t\x1f\x7f", "\\u0001\\u0009\\u001f\x7f"},
	        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
	        {"\xff", R"(\ufffd)"},
	        {"\xe2\x82", R"(\ufffd\ufffd)"},                     /* cut off */
	        {"\xc0\xaf", R"(\ufffd\ufffd)"},                     /* longer than it need be */
	        {"\xe0\x80\xaf", R"(\ufffd\ufffd\ufffd)"},           /* likewise */
	        {"\xed\xa0\x80", R"(\ufffd\ufffd\ufffd)"},           /* a half of a UTF-16 pair */
	        {"\xf4\x90\x80\x80", R"(\ufffd\ufffd\ufffd\ufffd)"}, /* above U+10FFFF */
	};
	for (const auto &[characters, escaped] : cases) {
		ASSERT_EQ(control.execute("clear"), "ok");
		ASSERT_EQ(control.execute("rules drop link=s1:s[" + characters + "2]"), "ok");
		const std::string told = control.execute("faults");
		EXPECT_NE(told.find("\"text\":\"drop link=s1:s[" + escaped + "2]\","), told.npos)
		        << told;
	}
}

TEST_F(ControlTest, RefusesNonsense)
{
	for (const char *line : {"",
	                         " ",
	                         "loss",
	                         "loss x",
	                         "loss 1x",
	                         "loss -1",
	                         "loss 101",
	                         "loss nan",
	                         "loss inf",
	                         "seed",
	                         "seed -1",
	                         "seed 18446744073709551616",
	                         "capture",
	                         "capture-stop",
	                         "stats now",
	                         "ports 1",
	                         "halt",
	                         "rules",
	                         "rules drop;",
	                         "rules drop psn",
	                         "clear all",
	                         "faults 1",
	                         "fault-log",
	                         "fault-log /nowhere/at/all",
	                         "capture host= /tmp/x",
	                         "capture host=x /tmp/x",
	                         "capture host=00:00:00:00:00:01",

	                         "capture mirror /tmp/x.pcapng",
	                         "\x01\xff"})
		EXPECT_EQ(control.execute(line).rfind("error ", 0), 0u) << line;
	EXPECT_FALSE(ethernet.faults().any());
}

/* A FIFO takes what is written to it at the speed of its reader, if it has one at all. */
TEST_F(ControlTest, WritesToRegularFilesAlone)
{
	const std::string path = testing::TempDir() + "tern-control-fifo.pcapng";
	std::filesystem::remove(path);
	ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
	Fd reader;
	for (const bool read : {false, true}) {
		if (read)
			reader = Fd(open(path.c_str(), O_RDONLY | O_NONBLOCK));
		for (const std::string command : {"capture ", "capture mirror ", "fault-log "}) {
			/* A capture to a name without this ending is a pcap file. */
			const std::string file =
			        command == "capture mirror " ? path + ".pcap" : path;
			std::filesystem::remove(path + ".pcap");
			std::filesystem::create_symlink(path, path + ".pcap");
			auto done = std::async(std::launch::async,
			                       [&] { return control.execute(command + file); });
			const bool waits = done.wait_for(std::chrono::seconds(10)) !=
			                   std::future_status::ready;
			if (waits) /* so that this test ends */
				reader = Fd(open(path.c_str(), O_RDONLY | O_NONBLOCK));
			EXPECT_FALSE(waits) << command;
			EXPECT_EQ(done.get(), "error " + file + ": not a regular file");
		}
	}
	std::filesystem::remove(path);
	std::filesystem::remove(path + ".pcap");
}

TEST_F(ControlTest, Captures)
{
	const std::string path = testing::TempDir() + "tern control test.pcap";
	EXPECT_EQ(control.execute("capture " + path), "ok");
	EXPECT_EQ(control.execute("capture " + path), "error a capture is running");
	const Bytes bytes = frame(1, 2);
	capture.frame({bytes, {}, 0, {}, {}});
	EXPECT_EQ(control.execute("capture-stop"), "ok 1 frames");
	EXPECT_TRUE(std::filesystem::remove(path));
}

TEST_F(ControlTest, Reports)
{
	EXPECT_EQ(control.execute("ports"), "ok 2; port=0; port=1");
	Host host;
	ethernet.forward(ethernet.attach(host), frame(1, 2));
	EXPECT_EQ(control.execute("stats"),
	          "ok frames=1 bytes=64 flooded=1 filtered=0 dropped=42 lost=0 duplicated=0 "
	          "reordered=0 corrupted=0 marked=0 delayed=0 direct=7 direct_received=5 "
	          "direct_lost=2 "
	          "links_cut=1");
}

} // namespace
} // namespace tern::wire
