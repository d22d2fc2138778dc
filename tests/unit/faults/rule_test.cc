// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include "qemu/fabric/classify.h"
#include "qemu/faults/rule.h"
#include "tests/unit/wire/packets.h"

namespace tern::faults {
namespace {

using wire::ack;
using wire::frame;
using wire::kBroadcast;
using wire::packet;
using Frame = wire::Bytes;

constexpr uint8_t kRnr = kAethRnrNak | 1;
constexpr uint8_t kSequenceError = nak_syndrome(NakCode::PsnSequenceError);

/* Ports 0 and 1 have the addresses 0 and 1. */
class RuleTest : public testing::Test {
protected:
	void set(const char *text)
	{
		rule = {};
		ASSERT_EQ(rule.parse(text), "");
	}
	bool see(const Frame &bytes, double random = 0)
	{
		const Passage passage(bytes, to_integer(bytes[11]), to_integer(bytes[5]));
		return rule.see(passage, addresses, random);
	}
	static unsigned to_integer(std::byte value) { return std::to_integer<unsigned>(value); }
	/* The first @count packets, with PSNs from @first, on which the rule acts. */
	std::vector<uint32_t> hits(uint32_t first, uint32_t count)
	{
		std::vector<uint32_t> found;
		for (uint32_t psn = first; psn < first + count; psn++) {
			if (see(packet({.psn = psn})))
				found.push_back(psn);
		}
		return found;
	}
	using Psns = std::vector<uint32_t>;

	Rule rule;
	const AddressTable addresses{{0, 0}, {1, 1}};
};

/* ---- what frames ---------------------------------------------------------- */

bool names(const char *words, const Frame &bytes)
{
	OpcodeSet set;
	EXPECT_TRUE(set.add(words)) << words;
	return set.has(read_roce(bytes));
}

Frame of_opcode(Service service, Opcode opcode, uint8_t syndrome = 0)
{
	return packet({.opcode = opcode_of(service, opcode), .syndrome = syndrome});
}

TEST(OpcodeSet, NamesAndClasses)
{
	const Frame write = of_opcode(Service::Uc, Opcode::RcWriteFirst);
	for (const char *word :
	     {"WRITE", "write", "UC", "UC_WRITE", "WRITE_FIRST", "UC_WRITE_FIRST", "0x26", "38"})
		EXPECT_TRUE(names(word, write)) << word;
	for (const char *word : {"RC", "RC_WRITE", "WRITE_LAST", "SEND", "ATOMIC_WRITE", "ACK",
	                         "CNP", "ethernet", "0x06"})
		EXPECT_FALSE(names(word, write)) << word;
}

TEST(OpcodeSet, AReadAndItsResponse)
{
	const Frame request = of_opcode(Service::Rc, Opcode::RcReadRequest);
	const Frame response = of_opcode(Service::Rc, Opcode::RcReadResponseLast);
	EXPECT_TRUE(names("READ", request));
	EXPECT_FALSE(names("READ", response));
	EXPECT_TRUE(names("READ_RESPONSE", response));
	EXPECT_FALSE(names("READ_RESPONSE", request));
	EXPECT_TRUE(names("ATOMIC", of_opcode(Service::Xrc, Opcode::RcFetchAdd)));
	EXPECT_FALSE(names("ATOMIC", of_opcode(Service::Rc, Opcode::RcAtomicAcknowledge)));
}

TEST(OpcodeSet, MaskedAtomics)
{
	const Frame swap = of_opcode(Service::Rc, Opcode::RcMaskedCompareSwap);
	const Frame add = of_opcode(Service::Rc, Opcode::RcMaskedFetchAdd);
	for (const Frame &packet : {swap, add})
		for (const char *word : {"RC", "ATOMIC", "RC_ATOMIC"})
			EXPECT_TRUE(names(word, packet)) << word;
	for (const char *word : {"MASKED_COMPARE_SWAP", "RC_MASKED_COMPARE_SWAP", "0xd3"}) {
		EXPECT_TRUE(names(word, swap)) << word;
		EXPECT_FALSE(names(word, add)) << word;
	}
	for (const char *word : {"COMPARE_SWAP", "FETCH_ADD", "XRC"})
		EXPECT_FALSE(names(word, swap)) << word;
	EXPECT_EQ(opcode_name(0xd3, 0), "RC_MASKED_COMPARE_SWAP");
	EXPECT_EQ(opcode_name(0xd4, 0), "RC_MASKED_FETCH_ADD");
	EXPECT_EQ(opcode_name(0xd5, 0), "0xd5");
}

TEST(OpcodeSet, AcknowledgementsByTheirSyndrome)
{
	const Frame packets[] = {ack(1), ack(1, kRnr), ack(1, kSequenceError)};
	const char *words[] = {"ACK", "RNR_NAK", "NAK"};
	for (size_t i = 0; i < 3; i++) {
		for (size_t j = 0; j < 3; j++)
			EXPECT_EQ(names(words[j], packets[i]), i == j) << words[j];
		EXPECT_TRUE(names("0x11", packets[i]));
		const auto roce = read_roce(packets[i]);
		EXPECT_EQ(opcode_name(roce->opcode, roce->ack_kind), std::string("RC_") + words[i]);
	}
}

TEST(OpcodeSet, OthersThanRequestsOfAService)
{
	EXPECT_TRUE(names("CNP", packet({.opcode = kCnpOpcode})));
	EXPECT_TRUE(names("ETHERNET", frame(1, 0)));
	EXPECT_FALSE(names("RC", frame(1, 0)));
	EXPECT_EQ(opcode_name(kCnpOpcode, 0), "CNP");
	EXPECT_EQ(opcode_name(0x1f, 0), "0x1f");
	EXPECT_EQ(opcode_name(0x64, 0), "UD_SEND_ONLY");
}

TEST(OpcodeSet, OtherWordsNameNothing)
{
	OpcodeSet set;
	for (const char *word :
	     {"", "RC_", "_WRITE", "WRITES", "RC_CNP", "256", "0x", "-1", "UD_WRITE"})
		EXPECT_FALSE(set.add(word)) << word;
	EXPECT_FALSE(set.has_roce());
}

TEST_F(RuleTest, Hosts)
{
	const Frame there = packet({.from = 0, .to = 1}), back = packet({.from = 1, .to = 0});
	set("count from=00:00:00:00:00:01");
	EXPECT_FALSE(see(there));
	EXPECT_TRUE(see(back));
	set("count to=00:00:00:00:00:01");
	EXPECT_TRUE(see(there));
	EXPECT_FALSE(see(back));
	set("count host=00:00:00:00:00:01");
	EXPECT_TRUE(see(there) && see(back));
	set("count host=00:00:00:00:00:07,00:00:00:00:00:00");
	EXPECT_TRUE(see(there) && see(back));
	set("count host=00:00:00:00:00:07");
	EXPECT_FALSE(see(there) || see(back));
}

/* A frame to a group goes to each host at its port. */
TEST_F(RuleTest, AHostIsKnownByItsPort)
{
	set("count to=00:00:00:00:00:01");
	const Frame to_all = frame(kBroadcast, 0);
	EXPECT_TRUE(rule.see(Passage(to_all, 0, 1), addresses, 0));
	EXPECT_FALSE(rule.see(Passage(to_all, 0, 2), addresses, 0));
}

TEST_F(RuleTest, QueuePairAndPsn)
{
	set("count qp=0x12");
	EXPECT_FALSE(see(packet({.qpn = 0x11})));
	EXPECT_TRUE(see(packet({.qpn = 0x12})));
	EXPECT_FALSE(see(frame(1, 0)));
	set("count psn=0xffffff");
	EXPECT_EQ(hits(0xfffffe, 3), Psns{0xffffff});
}

TEST_F(RuleTest, PsnsCountFromTheFirstOfTheFlow)
{
	set("count opcode=WRITE psn=+4");
	EXPECT_FALSE(see(ack(99)));
	EXPECT_EQ(hits(10, 8), Psns{14});
	/* Retransmitted, it is the same packet. */
	EXPECT_EQ(hits(13, 3), Psns{14});
	/* Another QP has its own first packet. */
	EXPECT_FALSE(see(packet({.qpn = 0x12, .psn = 14})));
	EXPECT_TRUE(see(packet({.qpn = 0x12, .psn = 18})));
}

TEST_F(RuleTest, PsnsWrapAround)
{
	set("count psn=+2");
	EXPECT_FALSE(see(packet({.psn = 0xffffff})));
	EXPECT_FALSE(see(packet({.psn = 0})));
	EXPECT_TRUE(see(packet({.psn = 1})));
}

/* A new connection of a QP whose number was used before. */
TEST_F(RuleTest, AFarPsnBeginsTheFlowAnew)
{
	set("count psn=+1");
	EXPECT_EQ(hits(10, 5), Psns{11});
	EXPECT_EQ(hits(900000, 5), Psns{900001});
	set("count retransmission=yes");
	EXPECT_EQ(hits(900000, 5), Psns{});
	EXPECT_EQ(hits(10, 5), Psns{});
}

TEST_F(RuleTest, Retransmissions)
{
	set("count retransmission=yes");
	EXPECT_EQ(hits(10, 5), Psns{});
	EXPECT_EQ(hits(12, 5), (Psns{12, 13, 14}));
	set("count retransmission=no");
	EXPECT_EQ(hits(10, 3), (Psns{10, 11, 12}));
	EXPECT_EQ(hits(11, 3), Psns{13});
	/* An acknowledgement is neither, and the responses to a QP are not its peer's requests. */
	EXPECT_FALSE(see(ack(5)));
	const uint8_t response = opcode_of(Service::Rc, Opcode::RcReadResponseOnly);
	EXPECT_TRUE(see(packet({.opcode = response, .psn = 11})));
	EXPECT_FALSE(see(packet({.opcode = response, .psn = 11})));
}

/* A NAK carries the next expected PSN. A READ response in the same direction may carry it, too. */
TEST_F(RuleTest, ANakIsNoTransmissionOfItsPsn)
{
	const uint8_t response = opcode_of(Service::Rc, Opcode::RcReadResponseOnly);
	set("count retransmission=yes");
	EXPECT_FALSE(see(packet({.opcode = response, .psn = 10})));
	EXPECT_FALSE(see(ack(11)));
	EXPECT_FALSE(see(packet({.opcode = response, .psn = 11})));
	EXPECT_TRUE(see(packet({.opcode = response, .psn = 11})));
	/* This holds for the first packet of a flow, too. */
	set("count retransmission=no");
	EXPECT_FALSE(see(ack(11)));
	EXPECT_TRUE(see(packet({.opcode = response, .psn = 11})));
	EXPECT_FALSE(see(packet({.opcode = response, .psn = 11})));
}

TEST_F(RuleTest, OnlyCapablePacketsAreMarked)
{
	set("mark nth=2");
	EXPECT_FALSE(see(packet({.psn = 1})));
	EXPECT_FALSE(see(frame(1, 0)));
	Frame marked = packet({.psn = 2});
	EXPECT_EQ(fabric::mark_ce(marked), fabric::Ecn::Marked);
	EXPECT_FALSE(see(marked));
	EXPECT_TRUE(see(packet({.psn = 3})));
}

/* ---- how often ------------------------------------------------------------ */

TEST_F(RuleTest, HowOften)
{
	set("count");
	EXPECT_EQ(hits(0, 3), (Psns{0, 1, 2}));
	set("count once");
	EXPECT_EQ(hits(0, 3), Psns{0});
	EXPECT_TRUE(rule.spent());
	set("count nth=3");
	EXPECT_EQ(hits(0, 9), Psns{2});
	EXPECT_TRUE(rule.spent());
	set("count every=3");
	EXPECT_EQ(hits(0, 9), (Psns{2, 5, 8}));
	EXPECT_EQ(rule.matched(), 9u);
	EXPECT_EQ(rule.hits(), 3u);
	EXPECT_FALSE(rule.spent());
	set("count every=3 once");
	EXPECT_EQ(hits(0, 9), Psns{2});
	set("count probability=0.25");
	EXPECT_TRUE(see(packet({}), 0.24));
	EXPECT_FALSE(see(packet({}), 0.25));
}

/* What invents flows is a guest. */
TEST_F(RuleTest, ManyFlows)
{
	set("count psn=+1");
	for (uint32_t qpn = 0; qpn < 20000; qpn++)
		EXPECT_FALSE(see(packet({.qpn = qpn})));
}

/* ---- bad input ------------------------------------------------------------ */

TEST(RuleParsing, NamesTheKey)
{
	static constexpr std::pair<const char *, const char *> kWrong[] = {
	        {"", "action: "},
	        {"lose", "action: "},
	        {"drop opcode", "opcode: "},
	        {"drop opcode=", "opcode: "},
	        {"drop opcode=WRIET", "opcode: "},
	        {"drop opcode=WRITE,", "opcode: "},
	        {"drop color=red", "color: "},
	        {"drop =", ": "},
	        {"drop from=host1", "from: "},
	        {"drop to=00:00:00:00:00", "to: "},
	        {"drop host=00:00:00:00:00:0g", "host: "},
	        {"drop host=00-00-00-00-00-00", "host: "},
	        {"drop from=52:54:00:77:00:01 to=52:54:00:77:00:01", "to: "},
	        {"drop from=52:54:00:77:00:01,52:54:00:77:00:01 to=52:54:00:77:00:01", "to: "},
	        {"drop host=52:54:00:77:00:01 from=52:54:00:77:00:02 to=52:54:00:77:00:03",
	         "host: "},
	        {"drop opcode=ETHERNET,UD retransmission=no", "retransmission: "},
	        {"drop opcode=ETHERNET retransmission=no", "retransmission: "},
	        {"drop qp=16777216", "qp: "},
	        {"drop qp=-1", "qp: "},
	        {"drop psn=16777216", "psn: "},
	        {"drop psn=+0x1000000", "psn: "},
	        {"drop psn=+", "psn: "},
	        {"drop psn=-4", "psn: "},
	        {"drop nth=0", "nth: "},
	        {"drop nth=2 probability=0.5", "nth: "},
	        {"drop nth=2 every=2", "nth: "},
	        {"drop every=0", "every: "},
	        {"drop every=2 probability=0.5", "every: "},
	        {"drop probability=0", "probability: "},
	        {"drop probability=1.5", "probability: "},
	        {"drop probability=nan", "probability: "},
	        {"drop retransmission=maybe", "retransmission: "},
	        {"drop opcode=ACK retransmission=yes", "retransmission: "},
	        {"drop opcode=UD,UC retransmission=no", "retransmission: "},
	        {"drop opcode=ETHERNET qp=1", "opcode: "},
	        {"drop opcode=ETHERNET psn=+1", "opcode: "},
	        {"drop once once", "once: "},
	        {"drop once=1", "once: "},
	        {"drop qp=1 qp=2", "qp: "},
	        {"drop by=5ms", "by: "},
	        {"delay", "by: "},
	        {"delay by=5", "by: "},
	        {"delay by=0ms", "by: "},
	        {"delay by=61s", "by: "},
	        {"delay by=-5ms", "by: "},
	        {"reorder by=0", "by: "},
	        {"reorder by=5ms", "by: "},
	        {"reorder by=1001", "by: "},
	};
	for (const auto &[text, key] : kWrong) {
		const std::string error = Rule().parse(text);
		EXPECT_TRUE(error.starts_with(key)) << text << " gives " << error;
	}
}

TEST(RuleParsing, HostsThatCanBeTheEndsOfAFrame)
{
	for (const char *text : {"drop host=52:54:00:77:00:01,52:54:00:77:00:03 "
	                         "from=52:54:00:77:00:02 to=52:54:00:77:00:03",
	                         "drop host=52:54:00:77:00:01 from=52:54:00:77:00:02",
	                         "drop from=52:54:00:77:00:01,52:54:00:77:00:02 "
	                         "to=52:54:00:77:00:01,52:54:00:77:00:02"})
		EXPECT_EQ(Rule().parse(text), "") << text;
}

TEST(RuleParsing, RemembersWhatItWasTold)
{
	Rule rule;
	EXPECT_EQ(rule.parse("  delay  by=1500us opcode=ack,NAK   every=10 "), "");
	EXPECT_EQ(rule.text(), "delay by=1500us opcode=ack,NAK every=10");
	EXPECT_EQ(rule.fault(), Fault::Delay);
	EXPECT_EQ(rule.amount(), 1500000u);
}

} // namespace
} // namespace tern::faults
