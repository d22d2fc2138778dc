// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/vfio/options.h"

#include <gtest/gtest.h>

namespace tern::vfio {
namespace {

std::string parse(Options &options, std::vector<std::string> more)
{
	std::vector<std::string> words = {"tern-card", "--socket", "s", "--wire", "w"};
	words.insert(words.end(), more.begin(), more.end());
	std::vector<char *> argv;
	for (std::string &word : words)
		argv.push_back(word.data());
	argv.push_back(nullptr);
	return parse_options(static_cast<int>(words.size()), argv.data(), options);
}

std::string error(std::vector<std::string> more)
{
	Options options;
	return parse(options, std::move(more));
}

TEST(Options, AreTaken)
{
	Options options;
	EXPECT_EQ(parse(options, {"--mac", "02:54:45:52:4E:01", "--engines", "4", "--vectors", "9",
	                          "--doorbell-pages", "64", "--dm-size", "0", "--speed", "25000"}),
	          "");
	const Card::Config &card = options.card;
	EXPECT_EQ(options.socket, "s");
	EXPECT_EQ(card.wire, "w");
	EXPECT_EQ(card.mac, (std::array<uint8_t, 6>{2, 0x54, 0x45, 0x52, 0x4e, 1}));
	EXPECT_EQ(card.engines, 4u);
	EXPECT_EQ(card.vectors, 9u);
	EXPECT_EQ(card.doorbell_pages, 64u);
	EXPECT_EQ(card.device_memory, 0u);
	EXPECT_EQ(card.speed, 25000u);
}

TEST(Options, WrongOnesAreNamed)
{
	EXPECT_EQ(error({"--colour", "red"}), "--colour: no such option; see --help");
	EXPECT_EQ(error({"--engines"}), "--engines needs a value");
	EXPECT_EQ(error({"--engines", "x"}), "--engines: x is no number");
	EXPECT_EQ(error({"--engines", "17"}), "--engines: 1 to 16");
	EXPECT_EQ(error({"--vectors", "0"}), "--vectors: 1 to 256");
	EXPECT_EQ(error({"--vectors", "-1"}), "--vectors: -1 is no number");
	EXPECT_EQ(error({"--speed", "99999999999"}), "--speed: 99999999999 is no number");
	EXPECT_EQ(error({"--speed", "0"}), "--speed: 1 to 4000000");
	EXPECT_EQ(error({"--speed", "4000001"}), "--speed: 1 to 4000000");
	EXPECT_EQ(error({"--speed", "4000000"}), "");
	EXPECT_NE(error({"--doorbell-pages", "48"}), "");
	EXPECT_NE(error({"--engines", "4", "--doorbell-pages", "2"}), "");
	EXPECT_NE(error({"--dm-size", "2048"}), "");
	for (const char *mac : {"", "1", "02:54:45:52:4e:0", "02:54:45:52:4e:0g",
	                        "02-54-45-52-4e-01", "03:54:45:52:4e:01", "02:54:45:52:4e:01:02"})
		EXPECT_EQ(error({"--mac", mac}), "--mac: " + std::string(mac) + " is no address");
}

TEST(Options, SocketAndWireAreNeeded)
{
	Options options;
	char name[] = "tern-card";
	char *argv[] = {name, nullptr};
	EXPECT_EQ(parse_options(1, argv, options), "--socket and --wire are needed; see --help");
}

} // namespace
} // namespace tern::vfio
