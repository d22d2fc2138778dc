// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/memory/region.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <utility>

#include "tests/support/fake_host.h"
#include "tests/support/page_tables.h"

namespace tern::test {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kStart = 0x7f00'0000'1100; /* not at the start of a page */
constexpr uint64_t kLength = 3 * 4096;
constexpr uint32_t kPd = 5;
constexpr Memory::Target kTarget{kPd, 0};
constexpr uint8_t kAllRights = TERN_ACCESS_LOCAL_WRITE | TERN_ACCESS_REMOTE_WRITE |
                               TERN_ACCESS_REMOTE_READ | TERN_ACCESS_REMOTE_ATOMIC;
constexpr Memory::Domain kUser{kPd, false};
constexpr Memory::Domain kKernel{kPd, true};

std::vector<std::byte> pattern(size_t size)
{
	std::vector<std::byte> data(size);
	for (size_t i = 0; i < size; i++)
		data[i] = static_cast<std::byte>(i * 13 + 1);
	return data;
}

class RegionTest : public testing::Test {
protected:
	/** A region of kLength bytes at kStart over buffer_. */
	uint32_t create(uint8_t access, uint8_t variant = 0x42, uint32_t pdn = kPd)
	{
		return create_at(kStart, kLength, buffer_.pages(), access, variant, pdn);
	}
	uint32_t create_at(uint64_t start, uint64_t length, const hw::tern_hw_pages &pages,
	                   uint8_t access = kAllRights, uint8_t variant = 1, uint32_t pdn = kPd)
	{
		Region region;
		region.start = start;
		region.length = length;
		region.pdn = pdn;
		region.access = access;
		region.variant = variant;
		region.pages = PageList::make_region(pages, start, length).value();
		return memory_.create(std::move(region)).value();
	}
	uint32_t create_contiguous(uint64_t start, uint64_t length, Iova iova)
	{
		hw::tern_hw_pages pages{};
		pages.iova = iova;
		return create_at(start, length, pages);
	}

	Access check(const Sge &sge, Memory::Domain domain, bool write) const
	{
		return memory_.check_local({&sge, 1}, domain, write);
	}

	/** What buffer_ holds at @va. */
	std::vector<std::byte> content(uint64_t va, size_t size) const
	{
		return buffer_.read(va - kStart + kStart % 4096, size);
	}

	FakeMemory host_;
	Memory memory_{host_, 8};
	Buffer buffer_{host_, kLength + 4096, 2};
};

TEST_F(RegionTest, KeyHasIndexAndVariant)
{
	const uint32_t key = create(0, 0x9c);
	EXPECT_EQ(key & 0xff, 0x9cu);
	EXPECT_NE(key >> 8, 0u);
	ASSERT_TRUE(memory_.find(key));
	EXPECT_EQ(memory_.find(key)->start, kStart);
}

TEST_F(RegionTest, OtherVariantsAreOtherKeys)
{
	const uint32_t key = create(kAllRights, 0x42);
	for (uint32_t variant = 0; variant < 256; variant++)
		EXPECT_EQ(memory_.find((key & ~0xffu) | variant) != nullptr, variant == 0x42);
	EXPECT_EQ(memory_.destroy_region(key ^ 1), Memory::Destroyed::Missing);
	EXPECT_EQ(memory_.destroy_region(key), Memory::Destroyed::Done);
	EXPECT_EQ(memory_.destroy_region(key), Memory::Destroyed::Missing);
	EXPECT_FALSE(memory_.find(key));
}

TEST_F(RegionTest, KeysThatNeverWere)
{
	create(kAllRights);
	for (const uint32_t key : {0x0u, 0x1u, 0x42u, 0xffffff42u, 0xffffffffu})
		EXPECT_FALSE(memory_.find(key)) << key;
}

TEST_F(RegionTest, TheTableIsBounded)
{
	for (unsigned i = 0; i < 8; i++)
		create(kAllRights);
	Region region;
	EXPECT_FALSE(memory_.create(std::move(region)));
}

TEST_F(RegionTest, ProtectionDomain)
{
	const uint32_t key = create(kAllRights);
	EXPECT_EQ(memory_.pdn_of(key), kPd);
	EXPECT_EQ(memory_.pdn_of(key ^ 1), kPd) << "the variant does not matter";
	memory_.destroy_region(key);
	EXPECT_EQ(memory_.pdn_of(key), 0u);
}

TEST_F(RegionTest, LocalBounds)
{
	const uint32_t key = create(0);
	const uint32_t length = kLength;
	EXPECT_EQ(check({kStart, length, key}, kUser, false), Access::Ok);
	EXPECT_EQ(check({kStart + kLength - 1, 1, key}, kUser, false), Access::Ok);
	EXPECT_EQ(check({kStart - 1, 1, key}, kUser, false), Access::Denied);
	EXPECT_EQ(check({kStart, length + 1, key}, kUser, false), Access::Denied);
	EXPECT_EQ(check({kStart + 1, length, key}, kUser, false), Access::Denied);
	EXPECT_EQ(check({kStart + kLength, 1, key}, kUser, false), Access::Denied);
	EXPECT_EQ(check({kMax, 2, key}, kUser, false), Access::Denied);
}

TEST_F(RegionTest, LocalRights)
{
	const uint32_t read_only = create(TERN_ACCESS_REMOTE_READ);
	const uint32_t writable = create(TERN_ACCESS_LOCAL_WRITE);
	EXPECT_EQ(check({kStart, 1, read_only}, kUser, false), Access::Ok);
	EXPECT_EQ(check({kStart, 1, read_only}, kUser, true), Access::Denied);
	EXPECT_EQ(check({kStart, 1, writable}, kUser, true), Access::Ok);
}

TEST_F(RegionTest, LocalProtectionDomain)
{
	const uint32_t key = create(kAllRights);
	EXPECT_EQ(check({kStart, 1, key}, {kPd + 1, false}, false), Access::Denied);
	EXPECT_EQ(check({kStart, 1, key}, {kPd + 1, true}, false), Access::Denied);
}

TEST_F(RegionTest, ZeroLengthEntriesAreNotChecked)
{
	EXPECT_EQ(check({0, 0, 0xbadbad00}, kUser, true), Access::Ok);
	const Sge sges[] = {{0, 0, 0xbadbad00}, {kStart, 4, create(kAllRights)}, {0, 0, 7}};
	const auto data = pattern(4);
	EXPECT_EQ(memory_.scatter(sges, kUser, 0, data), Access::Ok);
	EXPECT_EQ(content(kStart, 4), data);
}

TEST_F(RegionTest, OneBadEntryDeniesTheList)
{
	const uint32_t key = create(kAllRights);
	const Sge sges[] = {{kStart, 4, key}, {kStart, 4, key ^ 1}};
	EXPECT_EQ(memory_.check_local(sges, kUser, false), Access::Denied);
}

TEST_F(RegionTest, LocalDmaIsForTheKernel)
{
	const Iova iova = host_.alloc(16);
	const Sge sge{iova, 16, TERN_LKEY_LOCAL_DMA};
	EXPECT_EQ(check(sge, kKernel, true), Access::Ok);
	EXPECT_EQ(check(sge, kUser, false), Access::Denied);

	const auto data = pattern(16);
	EXPECT_EQ(memory_.scatter({&sge, 1}, kKernel, 0, data), Access::Ok);
	EXPECT_EQ(host_.bytes(iova, 16), data);
	EXPECT_EQ(memory_.scatter({&sge, 1}, kUser, 0, data), Access::Denied);
}

TEST_F(RegionTest, LocalDmaDoesNotWrap)
{
	EXPECT_EQ(check({kMax, 1, TERN_LKEY_LOCAL_DMA}, kKernel, false), Access::Ok);
	EXPECT_EQ(check({kMax, 2, TERN_LKEY_LOCAL_DMA}, kKernel, false), Access::Denied);
}

TEST_F(RegionTest, NullKeyHasNoMemory)
{
	const uint32_t key = create(kAllRights);
	const auto data = pattern(16);
	const Sge all{kMax, std::numeric_limits<uint32_t>::max(), TERN_LKEY_NULL};
	EXPECT_EQ(check(all, kUser, true), Access::Ok);

	ASSERT_EQ(memory_.scatter(std::array{Sge{kStart, 16, key}}, kUser, 0, data), Access::Ok);
	const Sge sges[] = {{7, 5, TERN_LKEY_NULL}, {kStart, 6, key}, {7, 5, TERN_LKEY_NULL}};
	std::vector<std::byte> gathered(16, std::byte{0xff}), expected(16);
	std::copy_n(data.begin(), 6, expected.begin() + 5);
	EXPECT_EQ(memory_.gather(sges, kUser, 0, gathered), Access::Ok);
	EXPECT_EQ(gathered, expected);

	EXPECT_EQ(memory_.scatter(sges, kUser, 0, data), Access::Ok);
	EXPECT_EQ(content(kStart, 6), std::vector(data.begin() + 5, data.begin() + 11));

	HostRanges ranges;
	EXPECT_FALSE(memory_.locate(sges, kUser, 0, 16, ranges));
}

TEST_F(RegionTest, NullKeyIsForLocalAccess)
{
	EXPECT_EQ(memory_.check_remote(TERN_LKEY_NULL, kStart, 1, kTarget, TERN_ACCESS_REMOTE_READ),
	          Access::Denied);
	EXPECT_FALSE(memory_.may_invalidate(TERN_LKEY_NULL, kTarget, Memory::Invalidator::Host));
	EXPECT_EQ(memory_.destroy_region(TERN_LKEY_NULL), Memory::Destroyed::Missing);
}

/* A list of entries in odd places, taken at every offset. */
TEST_F(RegionTest, ScatterAndGatherAtAnyOffset)
{
	const uint32_t key = create(kAllRights);
	const Sge sges[] = {{kStart + 4000, 300, key},
	                    {kStart, 1, key},
	                    {kStart, 0, key},
	                    {kStart + 9000, 77, key}};
	const auto data = pattern(378);
	ASSERT_EQ(memory_.scatter(sges, kUser, 0, data), Access::Ok);
	EXPECT_EQ(content(kStart + 4000, 300), std::vector(data.begin(), data.begin() + 300));
	EXPECT_EQ(content(kStart + 9000, 77), std::vector(data.begin() + 301, data.end()));

	for (size_t offset = 0; offset <= data.size(); offset++) {
		std::vector<std::byte> part(data.size() - offset);
		ASSERT_EQ(memory_.gather(sges, kUser, offset, part), Access::Ok) << offset;
		ASSERT_TRUE(std::equal(part.begin(), part.end(),
		                       data.begin() + static_cast<ptrdiff_t>(offset)));
	}
}

TEST_F(RegionTest, NoMoreThanTheListHolds)
{
	const Sge sge{kStart, 10, create(kAllRights)};
	std::array<std::byte, 11> data{};
	EXPECT_EQ(memory_.gather({&sge, 1}, kUser, 0, data), Access::Denied);
	EXPECT_EQ(memory_.gather({&sge, 1}, kUser, 11, std::span(data).first(1)), Access::Denied);
	EXPECT_EQ(memory_.gather({}, kUser, 0, std::span(data).first(0)), Access::Ok);
}

/* As perftest posts them for a shared receive queue. What is used is in the region, or refused. */
TEST_F(RegionTest, ABufferMayEndPastItsRegion)
{
	const Sge sge{kStart + kLength - 8, 4096, create(kAllRights)};
	const auto data = pattern(9);
	EXPECT_EQ(memory_.scatter({&sge, 1}, kUser, 0, data), Access::Denied);
	EXPECT_EQ(content(kStart + kLength - 8, 8), std::vector<std::byte>(8));
	EXPECT_EQ(memory_.scatter({&sge, 1}, kUser, 0, std::span(data).first(8)), Access::Ok);
	EXPECT_EQ(content(kStart + kLength - 8, 8), pattern(8));
	EXPECT_EQ(memory_.scatter({&sge, 1}, kUser, 8, std::span(data).first(1)), Access::Denied);
}

TEST_F(RegionTest, MemoryThatIsGoneIsAFault)
{
	const Sge sge{kStart, 10, create(kAllRights)};
	std::array<std::byte, 10> data{};
	host_.fault(buffer_.at(kStart % 4096), 1);
	EXPECT_EQ(memory_.gather({&sge, 1}, kUser, 0, data), Access::Fault);
	EXPECT_EQ(memory_.scatter({&sge, 1}, kUser, 0, data), Access::Fault);
	EXPECT_EQ(memory_.read_remote(sge.lkey, kStart, kTarget, data), Access::Fault);
	EXPECT_EQ(memory_.write_remote(sge.lkey, kStart, kTarget, data), Access::Fault);
}

TEST_F(RegionTest, RemoteRights)
{
	for (const uint8_t right :
	     {TERN_ACCESS_REMOTE_WRITE, TERN_ACCESS_REMOTE_READ, TERN_ACCESS_REMOTE_ATOMIC}) {
		const uint32_t all = create(kAllRights);
		const uint32_t others = create(static_cast<uint8_t>(kAllRights & ~right));
		EXPECT_EQ(memory_.check_remote(all, kStart, 8, kTarget, right), Access::Ok);
		EXPECT_EQ(memory_.check_remote(others, kStart, 8, kTarget, right), Access::Denied);
		memory_.destroy_region(all);
		memory_.destroy_region(others);
	}
}

TEST_F(RegionTest, RemoteBoundsKeyAndDomain)
{
	const uint32_t key = create(kAllRights);
	const auto check = [&](uint32_t rkey, uint64_t va, uint64_t length, uint32_t pdn) {
		return memory_.check_remote(rkey, va, length, Memory::Target{pdn, 0},
		                            TERN_ACCESS_REMOTE_READ);
	};
	EXPECT_EQ(check(key, kStart, kLength, kPd), Access::Ok);
	EXPECT_EQ(check(key, kStart, kLength + 1, kPd), Access::Denied);
	EXPECT_EQ(check(key, kStart - 1, 1, kPd), Access::Denied);
	EXPECT_EQ(check(key, kStart, kMax, kPd), Access::Denied);
	EXPECT_EQ(check(key, kMax, kMax, kPd), Access::Denied);
	EXPECT_EQ(check(key ^ 1, kStart, 1, kPd), Access::Denied);
	EXPECT_EQ(check(key, kStart, 1, kPd + 1), Access::Denied);
	EXPECT_EQ(check(TERN_LKEY_LOCAL_DMA, kStart, 1, kPd), Access::Denied);
}

/* IBA 9.7.4.1.3: no R_Key is looked at for a request of no bytes. */
TEST_F(RegionTest, RemoteZeroLength)
{
	EXPECT_EQ(memory_.check_remote(0xbad, kMax, 0, kTarget, kAllRights), Access::Ok);
	EXPECT_EQ(memory_.read_remote(0xbad, kMax, kTarget, {}), Access::Ok);
	EXPECT_EQ(memory_.write_remote(0xbad, kMax, kTarget, {}), Access::Ok);
}

TEST_F(RegionTest, RemoteReadAndWrite)
{
	const uint32_t key = create(TERN_ACCESS_REMOTE_READ | TERN_ACCESS_REMOTE_WRITE);
	const auto data = pattern(5000);
	ASSERT_EQ(memory_.write_remote(key, kStart + 7, kTarget, data), Access::Ok);
	EXPECT_EQ(content(kStart + 7, data.size()), data);
	std::vector<std::byte> back(data.size());
	ASSERT_EQ(memory_.read_remote(key, kStart + 7, kTarget, back), Access::Ok);
	EXPECT_EQ(back, data);
	EXPECT_EQ(memory_.write_remote(key, kStart + kLength - 4999, kTarget, data),
	          Access::Denied);
}

TEST_F(RegionTest, RegionAtTheEndOfTheAddressSpace)
{
	const Iova iova = host_.alloc(4096, 4096);
	const uint64_t start = kMax - 4095; /* start + length is 2^64 */
	const uint32_t key = create_contiguous(start, 4095, iova);
	std::array<std::byte, 8> data{};
	EXPECT_EQ(memory_.read_remote(key, start + 4087, kTarget, data), Access::Ok);
	EXPECT_EQ(memory_.read_remote(key, start + 4088, kTarget, data), Access::Denied);
	EXPECT_EQ(memory_.read_remote(key, 0, kTarget, data), Access::Denied);
}

TEST_F(RegionTest, WholeAddressSpace)
{
	const uint32_t key = create_contiguous(0, kMax, 0);
	EXPECT_EQ(memory_.check_remote(key, 0, kMax, kTarget, TERN_ACCESS_REMOTE_READ), Access::Ok);
	EXPECT_EQ(memory_.check_remote(key, 1, kMax, kTarget, TERN_ACCESS_REMOTE_READ),
	          Access::Denied);
}

TEST_F(RegionTest, Atomic)
{
	const uint32_t key = create(TERN_ACCESS_REMOTE_ATOMIC);
	const uint64_t va = kStart + 0x100;
	const Iova iova = buffer_.at(va - kStart + kStart % 4096);
	host_.put(iova, Le<uint64_t>(0x1122334455667788));

	uint64_t original = 0;
	const auto add_one = [](uint64_t v) { return v + 1; };
	EXPECT_EQ(memory_.atomic_remote(key, va, kTarget, original, add_one), Access::Ok);
	EXPECT_EQ(original, 0x1122334455667788u);
	EXPECT_EQ(host_.get<Le<uint64_t>>(iova).get(), 0x1122334455667789u);
}

TEST_F(RegionTest, AtomicDenied)
{
	const uint32_t key = create(static_cast<uint8_t>(kAllRights & ~TERN_ACCESS_REMOTE_ATOMIC));
	uint64_t original = 0;
	bool ran = false;
	const auto update = [&](uint64_t v) { return ran = true, v; };
	EXPECT_EQ(memory_.atomic_remote(key, kStart, kTarget, original, update), Access::Denied);
	const uint32_t all = create(kAllRights);
	EXPECT_EQ(memory_.atomic_remote(all, kStart + kLength, kTarget, original, update),
	          Access::Denied);
	EXPECT_EQ(memory_.atomic_remote(all, kStart, Memory::Target{kPd + 1, 0}, original, update),
	          Access::Denied);
	EXPECT_FALSE(ran);
}

TEST_F(RegionTest, AtomicOnMemoryLaidOutAskew)
{
	const Iova iova = host_.alloc(64) + 4;
	const uint32_t key = create_contiguous(kStart, 32, iova);
	uint64_t original = 0;
	const auto same = [](uint64_t v) { return v; };
	EXPECT_EQ(memory_.atomic_remote(key, kStart, kTarget, original, same), Access::Fault);
	/* askew twice is straight: the caller's check of va is its own */
	EXPECT_EQ(memory_.atomic_remote(key, kStart + 4, kTarget, original, same), Access::Ok);
}

TEST_F(RegionTest, AtomicFaults)
{
	const uint32_t key = create(kAllRights);
	const Iova iova = buffer_.at(kStart % 4096);
	uint64_t original = 0;
	const auto same = [](uint64_t v) { return v; };
	host_.fault(iova, 8, FakeMemory::Fault::Writes);
	EXPECT_EQ(memory_.atomic_remote(key, kStart, kTarget, original, same), Access::Fault);
	host_.heal();
	host_.fault(iova, 8, FakeMemory::Fault::Reads);
	EXPECT_EQ(memory_.atomic_remote(key, kStart, kTarget, original, same), Access::Fault);
}

/* What a table said of one region must not outlive it. */
TEST_F(RegionTest, TablesOfADestroyedRegionAreDropped)
{
	PageTables tables(host_, 1);
	const Iova before = host_.alloc(4096, 4096);
	const Iova after = host_.alloc(4096, 4096);
	const auto data = pattern(8);

	tables.set(0, before);
	const uint32_t old_key = create_at(0, 4096, tables.pages());
	ASSERT_EQ(memory_.write_remote(old_key, 0, kTarget, data), Access::Ok);
	memory_.destroy_region(old_key);

	tables.set(0, after);
	const uint32_t new_key = create_at(0, 4096, tables.pages());
	ASSERT_EQ(memory_.write_remote(new_key, 0, kTarget, data), Access::Ok);
	EXPECT_EQ(host_.bytes(after, 8), data);
}

TEST_F(RegionTest, SparseTebibyte)
{
	PageTables tables(host_, 4);
	const uint64_t length = uint64_t{1} << 40;
	const uint32_t key = create_at(0x1000'0000'0000, length, tables.pages());
	const Iova leaf = host_.alloc(4096, 4096);
	tables.set((length >> 12) - 1, leaf);

	const auto data = pattern(8);
	const uint64_t end = 0x1000'0000'0000 + length;
	ASSERT_EQ(memory_.write_remote(key, end - 8, kTarget, data), Access::Ok);
	EXPECT_EQ(host_.bytes(leaf + 4088, 8), data);
	EXPECT_EQ(memory_.write_remote(key, end - 7, kTarget, data), Access::Denied);
	EXPECT_EQ(memory_.write_remote(key, end - length, kTarget, data), Access::Fault);
}

} // namespace
} // namespace tern::test
