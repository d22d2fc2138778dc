// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/formats/opcode.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/formats/roce_paths.h"

namespace tern {
namespace {

TEST(Opcode, ReservedOnes)
{
	const auto spoken = test::spoken_opcodes();
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const auto byte = static_cast<uint8_t>(opcode);
		EXPECT_EQ(opcode_info(byte).kind == PacketKind::Reserved,
		          std::ranges::count(spoken, byte) == 0)
		        << opcode;
	}
}

/* Of a service without acknowledgements SENDs and WRITEs are left. */
TEST(Opcode, Uc)
{
	for (uint8_t opcode = 0; opcode <= 0x0b; opcode++)
		EXPECT_EQ(opcode_info(static_cast<uint8_t>(0x20 | opcode)), opcode_info(opcode));
}

TEST(Opcode, Ud)
{
	for (uint8_t opcode = 0x04; opcode <= 0x05; opcode++) {
		auto rc = opcode_info(opcode);
		rc.deth = true;
		rc.ext_size += 8;
		EXPECT_EQ(opcode_info(static_cast<uint8_t>(0x60 | opcode)), rc);
	}
}

/* A14.3.3: what RC has, and each request names an SRQ. */
TEST(Opcode, Xrc)
{
	for (unsigned opcode = 0; opcode < 0x20; opcode++) {
		auto rc = opcode_info(static_cast<uint8_t>(opcode));
		const auto &xrc = opcode_info(static_cast<uint8_t>(0xa0 | opcode));
		EXPECT_FALSE(rc.xrceth);
		rc.xrceth = rc.is_request();
		rc.ext_size += rc.xrceth ? 4 : 0;
		EXPECT_EQ(xrc, rc) << opcode;
	}
}

TEST(Opcode, SendsWithInvalidate)
{
	const auto &last = opcode_info(Opcode::RcSendLastInv);
	const auto &only = opcode_info(Opcode::RcSendOnlyInv);
	for (const auto *info : {&last, &only})
		EXPECT_TRUE(info->kind == PacketKind::Send && info->last && info->ieth &&
		            !info->imm && info->payload);
	EXPECT_FALSE(last.first);
	EXPECT_TRUE(only.first);
}

TEST(Opcode, AtomicWrite)
{
	const auto &info = opcode_info(Opcode::RcAtomicWrite);
	EXPECT_TRUE(info.kind == PacketKind::AtomicWrite && info.is_request());
	EXPECT_TRUE(info.first && info.last && info.reth && info.payload);
	EXPECT_FALSE(info.aeth || info.atomic_eth || info.imm);
}

TEST(Opcode, Flush)
{
	const auto &info = opcode_info(Opcode::RcFlush);
	EXPECT_TRUE(info.kind == PacketKind::Flush && info.is_request());
	EXPECT_TRUE(info.first && info.last && info.feth && info.reth);
	EXPECT_FALSE(info.payload || info.aeth || info.atomic_eth || info.imm);
	EXPECT_EQ(opcode_info(opcode_of(Service::Uc, Opcode::RcFlush)).kind, PacketKind::Reserved);
	EXPECT_TRUE(opcode_info(opcode_of(Service::Xrc, Opcode::RcFlush)).xrceth);
}

/* The high bits of a manufacturer-specific opcode name no service. The card takes these two opcodes
 * for requests of RC. */
TEST(Opcode, MaskedAtomics)
{
	for (const auto opcode : {Opcode::RcMaskedCompareSwap, Opcode::RcMaskedFetchAdd}) {
		const auto byte = static_cast<uint8_t>(opcode);
		const auto &info = opcode_info(opcode);
		EXPECT_TRUE(info.kind == PacketKind::Atomic && info.is_request());
		EXPECT_TRUE(info.first && info.last && info.atomic_eth && info.atomic_masks);
		EXPECT_FALSE(info.payload || info.reth || info.aeth || info.imm);
		EXPECT_EQ(info.ext_size, 28 + 16);
		EXPECT_EQ(service_of(byte), Service::Rc);
		EXPECT_EQ(rc_opcode(byte), opcode);
		EXPECT_EQ(opcode_of(Service::Rc, opcode), byte);
	}
	EXPECT_FALSE(opcode_info(Opcode::RcCompareSwap).atomic_masks);
	EXPECT_NE(service_of(0xd5), Service::Rc);
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
