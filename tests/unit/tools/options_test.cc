// SPDX-License-Identifier: GPL-2.0-or-later
#include "options.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

using namespace tern::tools;

namespace {

TEST(Options, Numbers)
{
	EXPECT_EQ(parse_number("--qp", "17", 1, 100), 17u);
	EXPECT_EQ(parse_number("--qp", "0x11", 1, 100), 17u);
	for (const char *wrong : {"", "0", "101", "x", "1x", "-1", "0x", "99999999999"})
		EXPECT_THROW(parse_number("--qp", wrong, 1, 100), UsageError) << wrong;
}

TEST(Options, Seconds)
{
	EXPECT_EQ(parse_seconds("--interval", "2"), 2000u);
	EXPECT_EQ(parse_seconds("--interval", "0.25"), 250u);
	for (const char *wrong : {"", "0", "-1", "nan", "inf", "1s", "86401"})
		EXPECT_THROW(parse_seconds("--interval", wrong), UsageError) << wrong;
}

TEST(Options, ListenAddresses)
{
	EXPECT_EQ(parse_listen("--listen", "9417").address, "127.0.0.1");
	EXPECT_EQ(parse_listen("--listen", "9417").port, 9417u);
	EXPECT_EQ(parse_listen("--listen", "0.0.0.0:80").address, "0.0.0.0");
	EXPECT_EQ(parse_listen("--listen", "0.0.0.0:80").port, 80u);
	for (const char *wrong : {"", "foo:9000", "foo", "localhost:9000", "1.2.3:80", ":80",
	                          "1.2.3.4:", "1.2.3.4:0", "1.2.3.4:65536", "::1:80", "1.2.3.4"})
		EXPECT_THROW(parse_listen("--listen", wrong), UsageError) << wrong;
}

/* What next_option() says of the first wrong one of @words; empty if none is wrong. */
std::string complaint(std::vector<std::string> words)
{
	static const option kOptions[] = {
	        {"pid", required_argument, nullptr, 'p'}, {"json", no_argument, nullptr, 'j'}, {}};
	std::string tool = "tool";
	std::vector<char *> argv{tool.data()};

	for (std::string &word : words)
		argv.push_back(word.data());
	argv.push_back(nullptr);
	optind = 0;
	try {
		while (next_option(static_cast<int>(argv.size()) - 1, argv.data(), kOptions) != -1)
			continue;
	} catch (const UsageError &error) {
		return error.what();
	}
	return {};
}

TEST(Options, AreRefusedByTheirNames)
{
	EXPECT_EQ(complaint({"--json", "--pid", "3", "--pid=4"}), "");
	EXPECT_EQ(complaint({"--bogus"}), "wrong option --bogus; see --help");
	EXPECT_EQ(complaint({"--json", "--bogus", "--json"}), "wrong option --bogus; see --help");
	EXPECT_EQ(complaint({"-x"}), "wrong option -x; see --help");
	EXPECT_EQ(complaint({"-xy"}), "wrong option -xy; see --help");
	EXPECT_EQ(complaint({"--json=1"}), "wrong option --json=1; see --help");
	EXPECT_EQ(complaint({"--json", "--pid"}), "--pid needs a value; see --help");
	EXPECT_EQ(complaint({"--json", "more"}), "unexpected argument more; see --help");
	EXPECT_EQ(complaint({"more", "--json"}), "unexpected argument more; see --help");
}

/* A message may have the path of a library that another process has chosen. */
TEST(Options, ErrorsHaveNoControlCharacters)
{
	testing::internal::CaptureStderr();
	report_errors(
	        "t", [](int, char **) -> int { throw Error("no \033[2J\n"); }, 0, nullptr);
	report_errors(
	        "t", [](int, char **) -> int { throw UsageError("no \r"); }, 0, nullptr);
	EXPECT_EQ(testing::internal::GetCapturedStderr(), "t: no ?[2J?\nt: no ?\n");
}

TEST(Options, ErrorsGiveExitCodes)
{
	EXPECT_EQ(report_errors(
	                  "t", [](int, char **) { return 0; }, 0, nullptr),
	          0);
	testing::internal::CaptureStderr();
	EXPECT_EQ(report_errors(
	                  "t", [](int, char **) -> int { throw Error("no"); }, 0, nullptr),
	          1);
	EXPECT_EQ(report_errors(
	                  "t", [](int, char **) -> int { throw UsageError("x"); }, 0, nullptr),
	          2);
	EXPECT_EQ(testing::internal::GetCapturedStderr(), "t: no\nt: x\n");
}

} // namespace
