// SPDX-License-Identifier: GPL-2.0-or-later
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "qemu/shm/segment.h"

namespace tern::shm {
namespace {

constexpr size_t kSize = 8192;

TEST(Segment, IsSharedAndCannotShrink)
{
	const Fd fd = make_segment("test", kSize);
	ASSERT_TRUE(fd);
	Mapping one, two;
	EXPECT_EQ(one.map(fd, kSize, Mapping::Access::ReadWrite), "");
	EXPECT_EQ(two.map(fd, kSize, Mapping::Access::Read), "");
	one.bytes()[kSize - 1] = std::byte{7};
	EXPECT_EQ(two.bytes()[kSize - 1], std::byte{7});
	EXPECT_NE(ftruncate(fd.get(), kSize / 2), 0);
}

TEST(Segment, RefusesWhatCouldShrink)
{
	const Fd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	ASSERT_EQ(ftruncate(fd.get(), kSize), 0);
	EXPECT_EQ(check_segment(fd.get(), kSize), "not sealed against shrinking");
	Mapping mapping;
	EXPECT_NE(mapping.map(fd, kSize, Mapping::Access::Read), "");
	ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
	EXPECT_EQ(mapping.map(fd, kSize, Mapping::Access::Read), "");
}

TEST(Segment, RefusesWhatIsTooShortOrNoMemory)
{
	const Fd fd = make_segment("test", kSize);
	EXPECT_EQ(check_segment(fd.get(), kSize + 1), "too short");
	EXPECT_EQ(check_segment(fd.get(), ~size_t{0}), "too short");
	EXPECT_EQ(check_segment(fd.get(), 0), "too short");
	const Fd null(open("/dev/null", O_RDWR));
	EXPECT_EQ(check_segment(null.get(), kSize), "not a memfd");
	EXPECT_EQ(check_segment(-1, kSize), "not a memfd");
}

TEST(Segment, SealsForReadersOnlyWhatCanBeSealed)
{
	const Fd closed(memfd_create("test", MFD_CLOEXEC)); /* has F_SEAL_SEAL */
	EXPECT_FALSE(seal_for_readers(closed.get()));
	const Fd half(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	ASSERT_EQ(fcntl(half.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	EXPECT_FALSE(seal_for_readers(half.get()));
	EXPECT_FALSE(seal_for_readers(-1));
}

/* Sparse memory costs nothing but addresses. */
TEST(Segment, LeavesAddressesForOthers)
{
	constexpr size_t kHuge = kMaxMapped / 2;
	const Fd fd = make_segment("test", kHuge);
	ASSERT_TRUE(fd);
	Mapping one, two;
	EXPECT_EQ(one.map(fd, kHuge, Mapping::Access::Read), "");
	EXPECT_EQ(two.map(fd, kHuge - kSize, Mapping::Access::Read), "");
	Mapping more;
	EXPECT_EQ(more.map(fd, kHuge, Mapping::Access::Read), "too large");
	EXPECT_EQ(more.map(fd, ~size_t{0}, Mapping::Access::Read), "too short");
	two = Mapping();
	EXPECT_EQ(more.map(fd, kHuge - kSize, Mapping::Access::Read), "");
}

TEST(Segment, ForReadersStaysThat)
{
	const Fd fd = make_segment("test", kSize);
	Mapping writable;
	ASSERT_EQ(writable.map(fd, kSize, Mapping::Access::ReadWrite), "");
	ASSERT_TRUE(seal_for_readers(fd.get()));
	EXPECT_TRUE(seal_for_readers(fd.get())) << "already";
	const Fd reader = reopen_for_reading(fd.get());
	Mapping refused, read;
	EXPECT_NE(refused.map(reader, kSize, Mapping::Access::ReadWrite), "");
	/* Not even by opening it once more. */
	const Fd again(open(("/proc/self/fd/" + std::to_string(reader.get())).c_str(), O_RDWR));
	EXPECT_NE(refused.map(again, kSize, Mapping::Access::ReadWrite), "");
	EXPECT_EQ(read.map(reader, kSize, Mapping::Access::Read), "");
	writable.bytes()[0] = std::byte{1};
	EXPECT_EQ(read.bytes()[0], std::byte{1});
}

} // namespace
} // namespace tern::shm
