// SPDX-License-Identifier: GPL-2.0-or-later
#include "top_report.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "text.h"

using namespace tern::tools;

namespace {

Sample sample()
{
	QpSample qp;
	qp.pid = 7;
	qp.qpn = 0x11;
	qp.program = "a\"b";
	qp.device = "tern0";
	qp.messages[TERN_GROUP_WRITE] = {.total = 30, .recent = 20};
	qp.bytes[TERN_GROUP_WRITE] = {.total = 3000, .recent = 2000};
	qp.outstanding = 4;
	qp.latency[tern_latency_bucket(1024)] = 2;
	qp.recent_latency = qp.latency;
	qp.latency_ns = 2100;
	qp.send_cq = CqDepth{3, 256};
	return {.interval_ms = 500,
	        .devices = {{.name = "tern0", .counters = {{{.total = 8, .recent = 4}}}}},
	        .qps = {qp}};
}

TEST(Report, Text)
{
	const std::string text = to_text(sample());

	EXPECT_NE(text.find("tern0: roce_retrans_pkts 8/s, "), std::string::npos) << text;
	EXPECT_NE(text.find("write           40      0.004       1.1"), std::string::npos) << text;
}

/* Processes without rights choose these names, and root's terminal would obey an escape sequence.
 */
TEST(Report, TextHasNoControlCharactersOfNames)
{
	Sample named = sample();
	named.qps[0].program = "\033[2J\n\xc3";
	named.qps[0].device = "te\rn0";
	named.devices[0].name = "tern\a";
	const std::string text = to_text(named);

	EXPECT_NE(text.find("?[2J??"), std::string::npos) << text;
	EXPECT_NE(text.find(" te?n0 "), std::string::npos);
	EXPECT_NE(text.find("tern?:"), std::string::npos);
	EXPECT_EQ(std::ranges::count(text, '\n'), 3) << "devices, names of columns, the QP";
	EXPECT_EQ(text.find_first_of("\033\r\a\xc3"), std::string::npos);
}

TEST(Report, TextLeavesOutIdleQps)
{
	Sample idle = sample();
	idle.qps[0] = QpSample();

	EXPECT_EQ(to_text(idle).find(" 0x11 "), std::string::npos);
}

TEST(Report, Json)
{
	const std::string json = to_json(sample());

	EXPECT_NE(
	        json.find(
	                R"("program":"a\"b","device":"tern0","qp":17,"operations":{"write":{)"
	                R"("messages":30,"messages_per_s":40,"bytes":3000,"bytes_per_s":4000}},)"),
	        std::string::npos)
	        << json;
	EXPECT_NE(json.find(R"("histogram":[[1024,2]]},"outstanding":4,"send_cq":{"depth":3,)"),
	          std::string::npos)
	        << json;
	EXPECT_EQ(json.find('\n'), std::string::npos);
}

TEST(Report, Prometheus)
{
	const std::string page = to_prometheus(sample());
	const std::string labels = R"({pid="7",program="a\"b",device="tern0",qp="0x11")";

	for (const std::string &line :
	     {"tern_qp_messages_total" + labels + ",operation=\"write\"} 30\n",
	      "tern_qp_outstanding" + labels + "} 4\n",
	      "tern_qp_latency_seconds_bucket" + labels + ",le=\"0.000001152\"} 2\n",
	      "tern_qp_latency_seconds_bucket" + labels + ",le=\"+Inf\"} 2\n",
	      "tern_qp_latency_seconds_sum" + labels + "} 0.000002100\n",
	      "tern_qp_cq_depth" + labels + ",cq=\"send\"} 3\n",
	      std::string(
	              "tern_device_events_total{device=\"tern0\",counter=\"rcvd_rnr_err\"} 0\n")})
		EXPECT_NE(page.find(line), std::string::npos) << line << page;
}

TEST(Text, QuotesWhatProgramsAreNamed)
{
	EXPECT_EQ(quotable("a\\b\"c\nd\xff"), "a\\\\b\\\"c?d?");
}

} // namespace
