// SPDX-License-Identifier: GPL-2.0-or-later
#include "attach.h"

#include <gtest/gtest.h>
#include <sstream>

using namespace tern::tools;

namespace {

/* As the kernel writes it. */
constexpr const char *kFormat = R"(name: tern_page_fault
ID: 1711
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:__data_loc char[] dev;	offset:8;	size:4;	signed:1;
	field:u32 qpn;	offset:12;	size:4;	signed:0;
	field:u64 addr;	offset:24;	size:8;	signed:0;

print fmt: "%s qpn 0x%x", __get_str(dev), REC->qpn
)";

std::string mismatch(std::initializer_list<EntryField> fields)
{
	std::istringstream format(kFormat);
	return find_mismatch(format, std::span(fields.begin(), fields.size()));
}

TEST(Format, HasFieldsAtTheirPlaces)
{
	EXPECT_EQ(mismatch({{"dev", 8, 4}, {"qpn", 12, 4}, {"addr", 24, 8}}), "");
}

TEST(Format, NamesTheFieldThatDiffers)
{
	EXPECT_EQ(mismatch({{"dev", 8, 4}, {"qpn", 16, 4}}), "qpn");
	EXPECT_EQ(mismatch({{"addr", 24, 4}}), "addr");
	EXPECT_EQ(mismatch({{"key", 16, 4}}), "key");
	EXPECT_EQ(mismatch({{"pn", 12, 4}}), "pn"); /* the end of another name */
}

} // namespace
