// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace_report.h"

#include <cstring>
#include <gtest/gtest.h>

#include "tern/tern_hw.h"

using namespace tern::hw;
using namespace tern::tools;

namespace {

constexpr uint32_t kPid = 7, kQpn = 0x11, kCqn = 5;

tern_trace_event event(uint32_t kind, uint64_t time, uint32_t number = kQpn, const char *text = "")
{
	tern_trace_event result{};

	result.kind = kind;
	result.time = time;
	result.tgid = kPid;
	result.number = number;
	std::strcpy(result.program, "pong");
	std::strcpy(result.device, "tern0");
	std::strcpy(result.text, text);
	return result;
}

tern_trace_event post(uint64_t time, uint32_t index)
{
	tern_trace_event result = event(TERN_TRACE_POST, time);
	result.op = TERN_OP_WRITE;
	result.index = index;
	result.bytes = 64;
	return result;
}

tern_trace_event completion(uint64_t time, uint32_t index)
{
	tern_trace_event result = event(TERN_TRACE_COMPLETE, time);
	result.op = TERN_OP_WRITE;
	result.index = index;
	result.cqn = kCqn;
	return result;
}

/* Of a receive of the WQ that has the number of the QP. */
tern_trace_event completion_of_wq(uint64_t time, uint32_t index)
{
	tern_trace_event result = completion(time, index);
	result.op = TERN_CQE_RECV;
	result.flags = TERN_CQE_WQ;
	return result;
}

/* The same of another card. */
tern_trace_event elsewhere(tern_trace_event event)
{
	std::strcpy(event.device, "tern1");
	return event;
}

size_t count(const std::string &text, const std::string &part)
{
	size_t found = 0;
	for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
		found++;
	return found;
}

TEST(Line, SaysWhatWhenAndOfWhichQp)
{
	EXPECT_EQ(to_line(post(2500, 3), 1000),
	          "         1.500 us            pong 7       tern0        QP 0x11   "
	          "post WRITE, 64 bytes, WQE 3, unsignalled");
	EXPECT_TRUE(
	        to_line(completion(1000, 3), 1000).ends_with("WQE 3, 0 bytes, CQ 0x5: SUCCESS"));
}

TEST(Line, HasNoControlCharactersOfNames)
{
	tern_trace_event named = post(1000, 3);
	std::strcpy(named.program, "\033[2J\n");
	std::strcpy(named.device, "te\rn0\xff");
	const std::string line = to_line(named, 1000);

	EXPECT_NE(line.find(" ?[2J? "), std::string::npos) << line;
	EXPECT_NE(line.find(" te?n0? "), std::string::npos) << line;
}

/* Two CPUs add events to the ring in another order than that of their times. */
TEST(Line, AnEventFromBeforeTheFirstOneHasANegativeTime)
{
	EXPECT_TRUE(to_line(post(500, 3), 1000).starts_with("        -0.500 us "));
}

TEST(Chrome, ACompletionEndsItsRequestAndThoseBefore)
{
	const std::string json =
	        to_chrome({post(1000, 0), post(2000, 1), post(3000, 2), completion(4500, 1)}, 0);

	EXPECT_EQ(count(json, R"("ph":"b")"), 3u);
	EXPECT_EQ(count(json, R"("ph":"e")"), 2u);
	EXPECT_EQ(
	        count(json,
	              R"("ph":"e","name":"WRITE","cat":"request","id":"tern0:0x11:0","ts":3.500)"),
	        1u)
	        << json;
	EXPECT_EQ(count(json, R"("id":"tern0:0x11:2")"), 1u);
	EXPECT_EQ(count(json, R"("name":"thread_name","pid":7,"tid":17)"), 1u);
	EXPECT_EQ(count(json, R"("name":"tern0 QP 0x11")"), 1u);
}

TEST(Line, ACompletionOfAWqNamesIt)
{
	const std::string line = to_line(completion_of_wq(1000, 3), 1000);

	EXPECT_NE(line.find(" WQ 0x11   completion RECV, WQE 3"), std::string::npos) << line;
}

TEST(Chrome, ACompletionOfAWqIsOnNoThreadOfAQp)
{
	const std::string json = to_chrome({completion_of_wq(1000, 0)}, 0);

	EXPECT_EQ(count(json, R"("name":"thread_name","pid":7,"tid":0)"), 1u) << json;
	EXPECT_EQ(count(json, "QP 0x11"), 0u);
	EXPECT_EQ(count(json, R"("name":"WQ 0x11: completion RECV)"), 1u);
}

TEST(Chrome, QpsOfTwoCardsWithTheSameNumber)
{
	const std::string json =
	        to_chrome({post(1000, 0), elsewhere(post(2000, 0)), elsewhere(completion(3000, 0)),
	                   event(TERN_TRACE_SUBMIT, 4000, 1, "REG_MR"),
	                   elsewhere(event(TERN_TRACE_COMMAND, 5000, 1, "REG_MR"))},
	                  0);

	EXPECT_EQ(count(json, R"("ph":"b")"), 3u);
	EXPECT_EQ(count(json, R"("id":"tern0:0x11:0")"), 1u) << "it has not ended";
	EXPECT_EQ(count(json, R"("id":"tern1:0x11:0")"), 2u);
	EXPECT_EQ(count(json, R"("name":"tern0 QP 0x11")"), 1u);
	EXPECT_EQ(count(json, R"("name":"tern1 QP 0x11")"), 1u);
	EXPECT_EQ(count(json, R"("name":"thread_name","pid":7,"tid":17)"), 1u);
	EXPECT_EQ(count(json, R"("name":"thread_name","pid":7,"tid":16777233)"), 1u) << json;
	EXPECT_EQ(count(json, R"("id":"tern0:0:1")"), 1u);
	EXPECT_EQ(count(json, R"("id":"tern1:0:1")"), 1u);
}

TEST(Chrome, QuotesWhatDevicesAreNamed)
{
	tern_trace_event named = post(1000, 0), command = event(TERN_TRACE_SUBMIT, 2000, 1, "a\"b");
	std::strcpy(named.device, "t\"x");
	std::strcpy(command.device, "t\"x");
	const std::string json = to_chrome({named, command}, 0);

	EXPECT_EQ(count(json, R"("id":"t\"x:0x11:0")"), 1u) << json;
	EXPECT_EQ(count(json, R"("id":"t\"x:0:1")"), 1u) << json;
	EXPECT_EQ(count(json, R"(t"x)"), 0u);
}

TEST(Chrome, SortsAndTellsOfLoss)
{
	const std::string json = to_chrome({completion(2000, 0), post(1000, 0)}, 12);

	EXPECT_LT(json.find(R"("ph":"b")"), json.find(R"("ph":"e")"));
	EXPECT_NE(json.find(R"("lost_events":12)"), std::string::npos);
}

TEST(Filter, OfAQp)
{
	TraceFilter filter(0, kQpn);
	const auto comp = event(TERN_TRACE_EVENT, 1, kCqn, "COMP");

	EXPECT_FALSE(filter.wants(comp)) << "nobody knows its CQ yet";
	EXPECT_FALSE(filter.wants(event(TERN_TRACE_SUBMIT, 1, 0, "REG_MR")));
	EXPECT_TRUE(filter.wants(completion(2, 0)));
	EXPECT_TRUE(filter.wants(comp));
	EXPECT_TRUE(filter.wants(event(TERN_TRACE_SUBMIT, 3, 0, "REG_MR"))) << "of its process";
	EXPECT_TRUE(filter.wants(event(TERN_TRACE_MODIFY, 3, kQpn, "ERR")));
	EXPECT_FALSE(filter.wants(event(TERN_TRACE_MODIFY, 3, kQpn + 1, "ERR")));
	EXPECT_TRUE(filter.wants(event(TERN_TRACE_DESTROY, 3, kQpn, "DESTROY_QP")));
	EXPECT_FALSE(filter.wants(event(TERN_TRACE_DESTROY, 3, kQpn, "DESTROY_CQ")));
	EXPECT_TRUE(filter.wants(event(TERN_TRACE_FAULT, 3)));
	EXPECT_FALSE(filter.wants(event(TERN_TRACE_FAULT, 3, kQpn + 1)));
	for (const char *name :
	     {"QP_FATAL", "QP_ACCESS_ERR", "COMM_EST", "SQ_DRAINED", "LAST_WQE", "PAGE_FAULT"})
		EXPECT_TRUE(filter.wants(event(TERN_TRACE_EVENT, 4, kQpn, name))) << name;
	for (const char *name : {"SRQ_LIMIT", "SRQ_ERR", "WQ_FATAL"})
		EXPECT_FALSE(filter.wants(event(TERN_TRACE_EVENT, 4, kQpn, name)))
		        << name << " has the number of another object";
	EXPECT_TRUE(filter.wants(event(TERN_TRACE_EVENT, 4, 0, "LINK"))) << "concerns all";
}

TEST(Filter, OfAProcess)
{
	TraceFilter filter(kPid, 0);
	auto foreign = event(TERN_TRACE_SUBMIT, 1, 0, "REG_MR");
	foreign.tgid = kPid + 1;

	EXPECT_TRUE(filter.wants(event(TERN_TRACE_SUBMIT, 1, 0, "REG_MR")));
	EXPECT_FALSE(filter.wants(foreign));
	EXPECT_FALSE(filter.wants(event(TERN_TRACE_FAULT, 1))) << "not known to be its QP";
	EXPECT_TRUE(filter.wants(post(2, 0)));
	EXPECT_TRUE(filter.wants(event(TERN_TRACE_FAULT, 3)));
	EXPECT_TRUE(filter.wants(event(TERN_TRACE_EVENT, 4, kQpn, "QP_FATAL")));
	EXPECT_FALSE(filter.wants(event(TERN_TRACE_EVENT, 4, kQpn, "SRQ_LIMIT")));
	EXPECT_TRUE(filter.wants(event(TERN_TRACE_EVENT, 4, 0, "LINK")));
}

TEST(Filter, AWqOfTheSameNumberIsNoQp)
{
	TraceFilter of_qp(0, kQpn), of_process(kPid, 0);

	EXPECT_FALSE(of_qp.wants(completion_of_wq(1, 0)));
	EXPECT_FALSE(of_qp.wants(event(TERN_TRACE_EVENT, 2, kCqn, "COMP")));
	EXPECT_TRUE(of_process.wants(completion_of_wq(1, 0)));
	EXPECT_TRUE(of_process.wants(event(TERN_TRACE_EVENT, 2, kCqn, "COMP")));
	EXPECT_FALSE(of_process.wants(event(TERN_TRACE_FAULT, 3)));
}

TEST(Filter, OtherCardsHaveTheSameNumbers)
{
	TraceFilter of_process(kPid, 0), of_qp(0, kQpn);
	const auto comp = event(TERN_TRACE_EVENT, 3, kCqn, "COMP");

	EXPECT_TRUE(of_process.wants(completion(1, 0)));
	EXPECT_TRUE(of_process.wants(event(TERN_TRACE_FAULT, 2)));
	EXPECT_FALSE(of_process.wants(elsewhere(event(TERN_TRACE_FAULT, 2))));
	EXPECT_TRUE(of_process.wants(comp));
	EXPECT_FALSE(of_process.wants(elsewhere(comp)));

	EXPECT_TRUE(of_qp.wants(completion(1, 0)));
	EXPECT_FALSE(of_qp.wants(elsewhere(comp)));
	EXPECT_TRUE(of_qp.wants(event(TERN_TRACE_SUBMIT, 3, 0, "REG_MR")));
	EXPECT_FALSE(of_qp.wants(elsewhere(event(TERN_TRACE_SUBMIT, 3, 0, "REG_MR"))));
}

TEST(Filter, OfAll)
{
	TraceFilter filter(0, 0);

	EXPECT_TRUE(filter.wants(event(TERN_TRACE_EVENT, 1, kCqn, "COMP")));
	EXPECT_TRUE(filter.wants(event(TERN_TRACE_FAULT, 1)));
	EXPECT_TRUE(filter.wants(event(TERN_TRACE_EVENT, 1, kQpn, "SRQ_LIMIT")));
	EXPECT_TRUE(filter.wants(event(TERN_TRACE_EVENT, 1, 0, "LINK")));
}

/* The driver names the PCI function. */
TEST(Device, HasTheSameNameInAllEvents)
{
	auto fault = event(TERN_TRACE_FAULT, 1);
	std::strcpy(fault.device, "0000:00:04.0");

	name_device(fault, {{"0000:00:05.0", "tern1"}});
	EXPECT_STREQ(fault.device, "0000:00:04.0") << "unknown";
	name_device(fault, {{"0000:00:05.0", "tern1"}, {"0000:00:04.0", "tern0"}});
	EXPECT_STREQ(fault.device, "tern0");
}

} // namespace
