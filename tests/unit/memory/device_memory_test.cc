// SPDX-License-Identifier: GPL-2.0-or-later
/* The card's own memory, and regions and windows of it. */
#include "qemu/rnic/memory/device_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

#include "qemu/rnic/memory/region.h"
#include "tests/support/fake_host.h"

namespace tern::test {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr size_t kSize = 8192;
constexpr uint32_t kPd = 5;
constexpr Memory::Domain kUser{kPd, false};
constexpr Memory::Target kTarget{kPd, 7};

std::vector<std::byte> pattern(size_t size)
{
	std::vector<std::byte> data(size);
	for (size_t i = 0; i < size; i++)
		data[i] = static_cast<std::byte>(i * 7 + 3);
	return data;
}

class DeviceMemoryTest : public testing::Test {
protected:
	std::span<std::byte> bytes() { return bytes_; }
	std::vector<std::byte> content(size_t offset, size_t size) const
	{
		return {bytes_.begin() + offset, bytes_.begin() + offset + size};
	}

	alignas(8) std::array<std::byte, kSize> bytes_{};
	DeviceMemory dm_{bytes_};
};

TEST_F(DeviceMemoryTest, Bounds)
{
	EXPECT_TRUE(dm_.holds(0, kSize));
	EXPECT_TRUE(dm_.holds(kSize, 0));
	EXPECT_FALSE(dm_.holds(0, kSize + 1));
	EXPECT_FALSE(dm_.holds(kSize + 1, 0));
	EXPECT_FALSE(dm_.holds(kMax, 2));
	EXPECT_FALSE(dm_.holds(2, kMax));
	EXPECT_FALSE(DeviceMemory({}).holds(0, 1));
}

TEST_F(DeviceMemoryTest, ReadAndWrite)
{
	const auto data = pattern(100);
	ASSERT_TRUE(dm_.write(kSize - 100, data));
	EXPECT_EQ(content(kSize - 100, 100), data);
	std::vector<std::byte> back(100);
	ASSERT_TRUE(dm_.read(kSize - 100, back));
	EXPECT_EQ(back, data);
	EXPECT_FALSE(dm_.write(kSize - 99, data));
	EXPECT_FALSE(dm_.read(kSize - 99, back));
}

TEST_F(DeviceMemoryTest, WholeWords)
{
	ASSERT_TRUE(dm_.store_release(16, 0x1122334455667788));
	EXPECT_EQ(bytes_[16], std::byte{0x88});
	EXPECT_EQ(bytes_[23], std::byte{0x11});
	uint32_t half;
	ASSERT_TRUE(dm_.load_acquire(20, half));
	EXPECT_EQ(half, 0x11223344u);
	EXPECT_FALSE(dm_.store_release(4, 0));
	EXPECT_FALSE(dm_.store_release(kSize, 0));
	EXPECT_FALSE(dm_.load_acquire(2, half));
	EXPECT_FALSE(dm_.load_acquire(kSize, half));
}

/* Regions of it, next to some of the host's memory. */
class DeviceRegionTest : public DeviceMemoryTest {
protected:
	static constexpr uint8_t kRights = TERN_ACCESS_LOCAL_WRITE | TERN_ACCESS_REMOTE_WRITE |
	                                   TERN_ACCESS_REMOTE_READ | TERN_ACCESS_REMOTE_ATOMIC |
	                                   TERN_ACCESS_MW_BIND;

	/** @length bytes from @offset of the device memory, at addresses from 0. */
	uint32_t create(uint64_t offset, uint64_t length)
	{
		hw::tern_hw_pages pages{};
		pages.iova = offset;
		Region region{.length = length, .pdn = kPd, .access = kRights, .device = true};
		region.pages = PageList::make_region(pages, 0, length).value();
		return memory_.create(std::move(region)).value();
	}

	FakeMemory host_;
	Memory memory_{host_, 8, bytes()};
};

TEST_F(DeviceRegionTest, LocalAccess)
{
	const Sge sge{8, 1000, create(4096, 2000)};
	const auto data = pattern(1000);
	ASSERT_EQ(memory_.scatter({&sge, 1}, kUser, 0, data), Access::Ok);
	EXPECT_EQ(content(4096 + 8, 1000), data);
	std::vector<std::byte> back(1000);
	ASSERT_EQ(memory_.gather({&sge, 1}, kUser, 0, back), Access::Ok);
	EXPECT_EQ(back, data);
}

TEST_F(DeviceRegionTest, RemoteAccessStaysInTheRegion)
{
	const uint32_t key = create(4096, 2000);
	const auto data = pattern(1000);
	ASSERT_EQ(memory_.write_remote(key, 1000, kTarget, data), Access::Ok);
	EXPECT_EQ(content(4096 + 1000, 1000), data);
	EXPECT_EQ(memory_.write_remote(key, 1001, kTarget, data), Access::Denied);
	EXPECT_EQ(bytes_[4096 + 2000], std::byte{0});
	std::vector<std::byte> back(1000);
	ASSERT_EQ(memory_.read_remote(key, 1000, kTarget, back), Access::Ok);
	EXPECT_EQ(back, data);
}

TEST_F(DeviceRegionTest, Atomic)
{
	const uint32_t key = create(4096, 64);
	ASSERT_TRUE(dm_.store_release(4096 + 8, 41));
	uint64_t original = 0;
	const auto add = [](uint64_t v) { return v + 1; };
	EXPECT_EQ(memory_.atomic_remote(key, 8, kTarget, original, add), Access::Ok);
	EXPECT_EQ(original, 41u);
	EXPECT_EQ(bytes_[4096 + 8], std::byte{42});
	/* The driver may lay a region out askew. */
	const uint32_t askew = create(4096 + 4, 64);
	EXPECT_EQ(memory_.atomic_remote(askew, 8, kTarget, original, add), Access::Fault);
}

TEST_F(DeviceRegionTest, Window)
{
	const uint32_t region = create(4096, 2000);
	Region window{.pdn = kPd, .kind = Region::Kind::Window2, .valid = false};
	const uint32_t rkey = memory_.create(std::move(window)).value() + 1;
	const BindRequest request{.addr = 100,
	                          .length = 50,
	                          .rkey = rkey,
	                          .lkey = region,
	                          .access = TERN_ACCESS_REMOTE_WRITE};
	ASSERT_TRUE(memory_.may_bind(request, kTarget));
	memory_.bind(request, kTarget);
	const auto data = pattern(50);
	ASSERT_EQ(memory_.write_remote(rkey, 100, kTarget, data), Access::Ok);
	EXPECT_EQ(content(4096 + 100, 50), data);
}

} // namespace
} // namespace tern::test
