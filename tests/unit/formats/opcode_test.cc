// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/formats/opcode.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

TEST(Opcode, OtherServicesAndReservedOnes)
{
	for (unsigned opcode = 0x15; opcode < 256; opcode++)
		EXPECT_EQ(opcode_info(static_cast<uint8_t>(opcode)).kind, PacketKind::Reserved);
}

TEST(Opcode, RequestsAndResponses)
{
	for (unsigned opcode = 0; opcode <= 0x14; opcode++) {
		const bool response = opcode >= 0x0d && opcode <= 0x12;
		const auto &info = opcode_info(static_cast<uint8_t>(opcode));
		EXPECT_NE(info.kind, PacketKind::Reserved) << opcode;
		EXPECT_EQ(info.is_request(), !response) << opcode;
	}
}

TEST(Opcode, WriteOnlyWithImmediate)
{
	const auto &info = opcode_info(Opcode::RcWriteOnlyImm);
	EXPECT_EQ(info.kind, PacketKind::Write);
	EXPECT_TRUE(info.first && info.last && info.reth && info.imm && info.payload);
	EXPECT_FALSE(info.aeth || info.atomic_eth || info.atomic_ack_eth);
}

TEST(Opcode, ImmediatesEndTheirMessage)
{
	for (unsigned opcode = 0; opcode <= 0x14; opcode++) {
		const auto &info = opcode_info(static_cast<uint8_t>(opcode));
		const bool imm = opcode == 3 || opcode == 5 || opcode == 9 || opcode == 11;
		EXPECT_EQ(info.imm, imm) << opcode;
		EXPECT_TRUE(!imm || info.last) << opcode;
	}
}

/* IBA table 38: the READ response in the middle is the one response without AETH. */
TEST(Opcode, Aeth)
{
	for (unsigned opcode = 0; opcode <= 0x14; opcode++) {
		const bool aeth = opcode >= 0x0d && opcode <= 0x12 && opcode != 0x0e;
		EXPECT_EQ(opcode_info(static_cast<uint8_t>(opcode)).aeth, aeth) << opcode;
	}
}

} // namespace
} // namespace tern
