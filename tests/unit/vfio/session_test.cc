// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/vfio/session.h"

#include <gtest/gtest.h>
#include <linux/pci_regs.h>
#include <optional>
#include <sys/eventfd.h>

#include "tern/tern_hw.h"
#include "tests/unit/vfio/client.h"

namespace tern::vfio::test {
namespace {

constexpr uint32_t kConfig = VFIO_PCI_CONFIG_REGION_INDEX;
constexpr unsigned kVectors = 70; /* more than a word of pending bits */
constexpr size_t kMsixFlags = 0x42;
constexpr size_t kExpress = 0x50;
constexpr size_t kDeviceMemory = 8192;

class SessionTest : public testing::Test {
protected:
	SessionTest() { negotiate(); }

	Session::Function function()
	{
		return {.device = device,
		        .dma = dma,
		        .interrupts = interrupts,
		        .registers_size = 4096,
		        .doorbells_size = 16 * 4096,
		        .device_memory = device_memory.get(),
		        .device_memory_bytes = std::span(bytes)};
	}
	void negotiate()
	{
		const auto reply = session->handle(message(Command::Version, Version{0, 0}));
		EXPECT_EQ(reply.error, 0);
		device.take();
	}

	Reply read(uint32_t region, uint64_t offset, uint32_t count)
	{
		return session->handle(
		        message(Command::RegionRead,
		                RegionAccess{.offset = offset, .region = region, .count = count}));
	}
	template <typename T>
	T get(uint32_t region, uint64_t offset)
	{
		const Reply reply = read(region, offset, sizeof(T));
		EXPECT_EQ(reply.error, 0);
		T value{};
		EXPECT_EQ(reply.data.size(), sizeof(RegionAccess) + sizeof(T));
		std::memcpy(&value, reply.data.data() + sizeof(RegionAccess), sizeof(value));
		return value;
	}
	template <typename T>
	int put(uint32_t region, uint64_t offset, T value)
	{
		const Reply reply = session->handle(message(
		        Command::RegionWrite,
		        RegionAccess{.offset = offset, .region = region, .count = sizeof(T)},
		        {reinterpret_cast<const char *>(&value), sizeof(value)}));
		EXPECT_FALSE(reply.malformed);
		return reply.error;
	}

	int set_irqs(uint32_t flags, uint32_t start, uint32_t count, std::vector<Fd> fds = {},
	             std::string_view data = {}, uint32_t index = VFIO_PCI_MSIX_IRQ_INDEX)
	{
		auto set = message(Command::SetIrqs,
		                   IrqSet{.argsz = sizeof(IrqSet),
		                          .flags = flags,
		                          .index = index,
		                          .start = start,
		                          .count = count},
		                   data);
		set.fds = std::move(fds);
		return session->handle(std::move(set)).error;
	}
	/* Gives @vector an eventfd; returns a duplicate of it. */
	Fd listen_to(uint32_t vector)
	{
		Fd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		std::vector<Fd> fds;
		fds.emplace_back(dup(fd.get()));
		EXPECT_EQ(set_irqs(VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, vector,
		                   1, std::move(fds)),
		          0);
		return fd;
	}
	static uint64_t rung(const Fd &fd)
	{
		uint64_t count = 0;
		return ::read(fd.get(), &count, sizeof(count)) == 8 ? count : 0;
	}
	void enable_msix(uint16_t more = 0)
	{
		EXPECT_EQ(put<uint16_t>(kConfig, kMsixFlags, PCI_MSIX_FLAGS_ENABLE | more), 0);
	}
	uint64_t pending(unsigned word)
	{
		const uint32_t offset = get<uint32_t>(kConfig, 0x48) & ~7u;
		return get<uint64_t>(hw::TERN_BAR_MSIX, offset + 8 * word);
	}

	NotingDevice device;
	DmaTable dma{1};
	Interrupts interrupts{kVectors};
	Fd device_memory = guest_memory(kDeviceMemory);
	std::vector<std::byte> bytes = std::vector<std::byte>(kDeviceMemory);
	std::optional<Session> session{std::in_place, function()};
};

/* ---- negotiation ---------------------------------------------------------------- */

TEST_F(SessionTest, VersionComesFirst)
{
	session.emplace(function());
	EXPECT_TRUE(session->handle(message(Command::Reset, Version{})).malformed);
	EXPECT_TRUE(session->handle(message(Command::Version, Version{1, 0})).malformed);
	EXPECT_TRUE(session->handle(message(Command::Version, Version{0, 0}, "{}")).malformed);
	const auto reply = session->handle(
	        message(Command::Version, Version{0, 3}, std::string_view("{}\0", 3)));
	EXPECT_EQ(reply.error, 0);
	EXPECT_EQ(body<Version>(reply).minor, 0);
	const std::string text(reinterpret_cast<const char *>(reply.data.data()) + sizeof(Version),
	                       reply.data.size() - sizeof(Version));
	EXPECT_EQ(text, std::string("{\"capabilities\":{\"max_msg_fds\":16,"
	                            "\"max_data_xfer_size\":65536,\"max_dma_maps\":4096,"
	                            "\"pgsizes\":4096}}") +
	                        '\0');
	EXPECT_EQ(session->handle(message(Command::Version, Version{0, 0})).error, EINVAL);
}

TEST_F(SessionTest, UnknownCommandsAreRefused)
{
	for (const uint16_t command : {0, 6, 11, 12, 14, 15, 16, 99})
		EXPECT_EQ(session->handle(message(static_cast<Command>(command), Version{})).error,
		          ENOTSUP);
}

TEST_F(SessionTest, ShortMessagesAndRepliesEndTheConnection)
{
	for (const auto command :
	     {Command::DmaMap, Command::DmaUnmap, Command::GetDeviceInfo, Command::GetRegionInfo,
	      Command::GetIrqInfo, Command::SetIrqs, Command::RegionRead, Command::RegionWrite})
		EXPECT_TRUE(session->handle(message(command, uint64_t{0})).malformed);
	auto reply = message(Command::Reset, Version{});
	reply.header.flags = kTypeReply;
	EXPECT_TRUE(session->handle(std::move(reply)).malformed);
}

/* ---- what there is ---------------------------------------------------------------- */

TEST_F(SessionTest, TellsOfTheDevice)
{
	const auto info = body<DeviceInfo>(session->handle(
	        message(Command::GetDeviceInfo,
	                DeviceInfo{.argsz = 16, .flags = 0, .regions = 0, .irqs = 0})));
	EXPECT_EQ(info.flags, VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET);
	EXPECT_EQ(info.regions, 9u);
	EXPECT_EQ(info.irqs, 5u);
	EXPECT_EQ(session->handle(message(Command::GetDeviceInfo, DeviceInfo{})).error, EINVAL);
}

TEST_F(SessionTest, TellsOfRegions)
{
	const uint64_t sizes[] = {4096, 0, 65536, 0, 4096, kDeviceMemory, 0, 4096, 0};
	for (uint32_t index = 0; index < 9; index++) {
		const auto reply =
		        session->handle(message(Command::GetRegionInfo, RegionInfo{.argsz = 32,
		                                                                   .flags = 0,
		                                                                   .index = index,
		                                                                   .cap_offset = 0,
		                                                                   .size = 0,
		                                                                   .offset = 0}));
		const auto info = body<RegionInfo>(reply);
		EXPECT_EQ(info.size, sizes[index]);
		EXPECT_EQ(info.flags & VFIO_REGION_INFO_FLAG_MMAP,
		          index == hw::TERN_BAR_DM ? VFIO_REGION_INFO_FLAG_MMAP : 0);
		EXPECT_EQ(reply.fd, index == hw::TERN_BAR_DM ? device_memory.get() : -1);
	}
	RegionInfo bad{
	        .argsz = 32, .flags = 0, .index = 9, .cap_offset = 0, .size = 0, .offset = 0};
	EXPECT_EQ(session->handle(message(Command::GetRegionInfo, bad)).error, EINVAL);
	bad.index = ~0u;
	EXPECT_EQ(session->handle(message(Command::GetRegionInfo, bad)).error, EINVAL);
}

TEST_F(SessionTest, TellsOfInterrupts)
{
	IrqInfo asked{.argsz = 16, .flags = 0, .index = VFIO_PCI_MSIX_IRQ_INDEX, .count = 0};
	EXPECT_EQ(body<IrqInfo>(session->handle(message(Command::GetIrqInfo, asked))).count,
	          kVectors);
	asked.index = VFIO_PCI_INTX_IRQ_INDEX;
	EXPECT_EQ(body<IrqInfo>(session->handle(message(Command::GetIrqInfo, asked))).count, 0u);
	asked.index = 5;
	EXPECT_EQ(session->handle(message(Command::GetIrqInfo, asked)).error, EINVAL);
}

/* ---- configuration space --------------------------------------------------------------- */

TEST_F(SessionTest, IsTheSameFunctionAsInQemu)
{
	EXPECT_EQ(get<uint32_t>(kConfig, PCI_VENDOR_ID), 0x7e441234u);
	EXPECT_EQ(get<uint32_t>(kConfig, PCI_CLASS_REVISION), 0x02000001u);
	EXPECT_EQ(get<uint32_t>(kConfig, PCI_SUBSYSTEM_VENDOR_ID), 0x7e441234u);
	EXPECT_EQ(get<uint8_t>(kConfig, PCI_INTERRUPT_PIN), 0);
	std::vector<uint8_t> found;
	for (auto at = get<uint8_t>(kConfig, PCI_CAPABILITY_LIST); at;
	     at = get<uint8_t>(kConfig, at + 1u))
		found.push_back(get<uint8_t>(kConfig, at));
	EXPECT_EQ(found, (std::vector<uint8_t>{PCI_CAP_ID_MSIX, PCI_CAP_ID_EXP, PCI_CAP_ID_PM}));
	EXPECT_EQ(get<uint16_t>(kConfig, kMsixFlags), kVectors - 1);
	EXPECT_TRUE(get<uint32_t>(kConfig, kExpress + PCI_EXP_DEVCAP) & PCI_EXP_DEVCAP_FLR);
	EXPECT_EQ(get<uint32_t>(kConfig, 0x100), 0u); /* no extended capability */
}

TEST_F(SessionTest, BarsTellTheirSizes)
{
	for (unsigned bar = 0; bar < 6; bar++)
		put<uint32_t>(kConfig, PCI_BASE_ADDRESS_0 + 4 * bar, ~0u);
	EXPECT_EQ(get<uint32_t>(kConfig, 0x10), 0xfffff000u);
	EXPECT_EQ(get<uint32_t>(kConfig, 0x14), 0u);
	EXPECT_EQ(get<uint64_t>(kConfig, 0x18), 0xffffffffffff000cu);
	EXPECT_EQ(get<uint32_t>(kConfig, 0x20), 0xfffff000u);
	EXPECT_EQ(get<uint32_t>(kConfig, 0x24), 0xffffe008u);
}

TEST_F(SessionTest, ReadOnlyBitsStay)
{
	put<uint32_t>(kConfig, PCI_VENDOR_ID, 0);
	EXPECT_EQ(get<uint32_t>(kConfig, PCI_VENDOR_ID), 0x7e441234u);
	put<uint16_t>(kConfig, PCI_COMMAND, 0xffff);
	EXPECT_EQ(get<uint16_t>(kConfig, PCI_COMMAND), 0x0546);
}

TEST_F(SessionTest, BusMasteringEndsDma)
{
	const Fd memory = guest_memory(4096);
	auto map = message(Command::DmaMap, whole(0, 4096));
	map.fds.emplace_back(dup(memory.get()));
	ASSERT_EQ(session->handle(std::move(map)).error, 0);
	std::byte one{};
	EXPECT_FALSE(dma.reader(0).read(0, {&one, 1}));
	put<uint16_t>(kConfig, PCI_COMMAND, PCI_COMMAND_MASTER);
	EXPECT_TRUE(dma.reader(0).read(0, {&one, 1}));
	EXPECT_EQ(device.take(), "");
	put<uint16_t>(kConfig, PCI_COMMAND, 0);
	EXPECT_FALSE(dma.reader(0).read(0, {&one, 1}));
	EXPECT_EQ(device.take(), "flush ");
}

TEST_F(SessionTest, UnmapsAllOrAnswersWithTheRange)
{
	for (const uint64_t address : {0, 8192, 16384})
		ASSERT_EQ(session->handle(message(Command::DmaMap, whole(address, 4096))).error, 0);
	DmaUnmap what{.argsz = sizeof(DmaUnmap), .flags = 0, .address = 8192, .size = 4096};
	EXPECT_EQ(body<DmaUnmap>(session->handle(message(Command::DmaUnmap, what))).address, 8192u);
	EXPECT_EQ(session->handle(message(Command::DmaUnmap, what)).error, ENOENT);
	what.flags = VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP;
	EXPECT_EQ(session->handle(message(Command::DmaUnmap, what)).error, EINVAL);
	what.flags = VFIO_DMA_UNMAP_FLAG_ALL;
	EXPECT_EQ(session->handle(message(Command::DmaUnmap, what)).error, 0);
	EXPECT_EQ(session->handle(message(Command::DmaMap, whole(0, 32768))).error, 0);
}

/* ---- resets ------------------------------------------------------------------------------ */

TEST_F(SessionTest, ResetsByMessageAndByTheGuest)
{
	put<uint16_t>(kConfig, PCI_COMMAND, PCI_COMMAND_MASTER);
	put<uint32_t>(hw::TERN_BAR_MSIX, 0, 0x12345678);
	EXPECT_EQ(session->handle(message(Command::Reset, Version{})).error, 0);
	EXPECT_EQ(device.take(), "reset ");
	EXPECT_EQ(get<uint16_t>(kConfig, PCI_COMMAND), 0);
	EXPECT_EQ(get<uint32_t>(hw::TERN_BAR_MSIX, 0), 0u);

	put<uint16_t>(kConfig, PCI_COMMAND, PCI_COMMAND_MASTER);
	put<uint16_t>(kConfig, kExpress + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_BCR_FLR);
	EXPECT_EQ(device.take(), "reset ");
	EXPECT_EQ(get<uint16_t>(kConfig, PCI_COMMAND), 0);
	EXPECT_EQ(get<uint16_t>(kConfig, kExpress + PCI_EXP_DEVCTL), 0);
}

TEST_F(SessionTest, TheNextClientFindsAFreshCard)
{
	const Fd bell = listen_to(0);
	put<uint16_t>(kConfig, PCI_COMMAND, PCI_COMMAND_MASTER);
	ASSERT_EQ(session->handle(message(Command::DmaMap, whole(0, 4096))).error, 0);
	session.reset();
	EXPECT_EQ(device.take(), "unplug reset ");
	session.emplace(function());
	EXPECT_EQ(device.take(), "plug ");
	negotiate();
	EXPECT_EQ(get<uint16_t>(kConfig, PCI_COMMAND), 0);
	EXPECT_EQ(session->handle(message(Command::DmaMap, whole(0, 4096))).error, 0);
	enable_msix();
	interrupts.raise(0);
	EXPECT_EQ(rung(bell), 0u);
}

/* ---- regions ----------------------------------------------------------------------------- */

TEST_F(SessionTest, RegistersAndDoorbellsAreTheDevices)
{
	EXPECT_EQ(get<uint32_t>(hw::TERN_BAR_REGS, 4), 0x5a5a5a5au);
	EXPECT_EQ(put<uint64_t>(hw::TERN_BAR_DOORBELLS, 4096, 1), 0);
	EXPECT_EQ(device.take(), "read0+4:4 write2+4096:8 ");
}

TEST_F(SessionTest, DeviceMemoryIsTheSharedOne)
{
	EXPECT_EQ(put<uint32_t>(hw::TERN_BAR_DM, kDeviceMemory - 4, 0x01020304), 0);
	EXPECT_EQ(std::to_integer<int>(bytes.back()), 1);
	EXPECT_EQ(get<uint32_t>(hw::TERN_BAR_DM, kDeviceMemory - 4), 0x01020304u);
}

TEST_F(SessionTest, RefusesAccessesBeyondARegion)
{
	for (const uint32_t region : {0u, 2u, 4u, 5u, 7u}) {
		EXPECT_EQ(read(region, 65536, 1).error, EINVAL);
		EXPECT_EQ(read(region, 0, 65537).error, EINVAL);
		EXPECT_EQ(read(region, ~uint64_t{0}, 4).error, EINVAL);
		EXPECT_EQ(read(region, 0, 0).error, EINVAL);
		EXPECT_EQ(put<uint32_t>(region, 65534, 0), EINVAL);
	}
	for (const uint32_t region : {1u, 3u, 6u, 8u, 9u, ~0u})
		EXPECT_EQ(read(region, 0, 4).error, EINVAL);
	EXPECT_EQ(device.take(), "");
}

TEST_F(SessionTest, AWriteHasAsManyBytesAsItSays)
{
	const RegionAccess access{.offset = 0, .region = 0, .count = 8};
	EXPECT_TRUE(session->handle(message(Command::RegionWrite, access, "four")).malformed);
}

/* ---- interrupts ------------------------------------------------------------------------------ */

TEST_F(SessionTest, RaisesWhileEnabledOnly)
{
	const Fd bell = listen_to(66);
	interrupts.raise(66);
	EXPECT_EQ(rung(bell), 0u);
	enable_msix();
	EXPECT_EQ(rung(bell), 0u); /* what was raised before is gone */
	interrupts.raise(66);
	interrupts.raise(kVectors);
	EXPECT_EQ(rung(bell), 1u);
	EXPECT_EQ(pending(1), 0u);
}

TEST_F(SessionTest, AMaskedVectorIsPending)
{
	const Fd bell = listen_to(1);
	enable_msix();
	EXPECT_EQ(set_irqs(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_MASK, 1, 1), 0);
	interrupts.raise(1);
	EXPECT_EQ(rung(bell), 0u);
	EXPECT_EQ(pending(0), 2u);
	EXPECT_EQ(set_irqs(VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_ACTION_UNMASK, 0, 2, {},
	                   std::string_view("\0\1", 2)),
	          0);
	EXPECT_EQ(rung(bell), 1u);
	EXPECT_EQ(pending(0), 0u);
}

TEST_F(SessionTest, AMaskedFunctionIsPending)
{
	const Fd bell = listen_to(0);
	enable_msix(PCI_MSIX_FLAGS_MASKALL);
	interrupts.raise(0);
	EXPECT_EQ(rung(bell), 0u);
	enable_msix();
	EXPECT_EQ(rung(bell), 1u);
}

TEST_F(SessionTest, AVectorWithoutEventfdIsPending)
{
	enable_msix();
	interrupts.raise(3);
	EXPECT_EQ(pending(0), 8u);
	const Fd bell = listen_to(3);
	EXPECT_EQ(rung(bell), 1u);
	EXPECT_EQ(set_irqs(VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, 3, 1), 0);
	interrupts.raise(3);
	EXPECT_EQ(rung(bell), 0u);
	EXPECT_EQ(set_irqs(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER, 0, 0), 0);
}

/* As QEMU does it when the guest disables MSI-X. */
TEST_F(SessionTest, AfterTheReleaseNoVectorHasAnEventfd)
{
	const Fd before = listen_to(3);
	enable_msix();
	EXPECT_EQ(set_irqs(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER, 0, 0), 0);
	interrupts.raise(3);
	EXPECT_EQ(rung(before), 0u);
	EXPECT_EQ(pending(0), 8u);
	const Fd after = listen_to(3);
	EXPECT_EQ(rung(after), 1u);
	EXPECT_EQ(rung(before), 0u);
}

/* What a client may say of interrupts that the card does not have. */
TEST_F(SessionTest, OtherInterruptsLeaveMsixAlone)
{
	const Fd bell = listen_to(0);
	enable_msix();
	for (const uint32_t index : {VFIO_PCI_INTX_IRQ_INDEX, VFIO_PCI_MSI_IRQ_INDEX,
	                             VFIO_PCI_ERR_IRQ_INDEX, VFIO_PCI_REQ_IRQ_INDEX})
		EXPECT_EQ(set_irqs(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER, 0, 0, {},
		                   {}, index),
		          0);
	interrupts.raise(0);
	EXPECT_EQ(rung(bell), 1u);
}

/* The counter of an eventfd that nobody reads must not stop an engine. */
TEST_F(SessionTest, AFullEventfdDoesNotBlock)
{
	std::vector<Fd> fds;
	const Fd fd(eventfd(0, EFD_CLOEXEC)); /* it would block */
	const uint64_t full = ~uint64_t{0} - 1;
	ASSERT_EQ(write(fd.get(), &full, sizeof(full)), 8);
	fds.emplace_back(dup(fd.get()));
	ASSERT_EQ(set_irqs(VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, 0, 1,
	                   std::move(fds)),
	          0);
	enable_msix();
	interrupts.raise(0);
}

TEST_F(SessionTest, RefusesBadIrqSets)
{
	constexpr uint32_t kTrigger = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
	EXPECT_EQ(set_irqs(kTrigger, kVectors, 1), EINVAL);
	EXPECT_EQ(set_irqs(kTrigger, 1, kVectors), EINVAL);
	EXPECT_EQ(set_irqs(kTrigger, 1, ~0u), EINVAL);
	std::vector<Fd> two;
	two.emplace_back(eventfd(0, 0));
	two.emplace_back(eventfd(0, 0));
	EXPECT_EQ(set_irqs(kTrigger, 0, 1, std::move(two)), EINVAL);
	EXPECT_EQ(set_irqs(kTrigger, 0, 0, {}, {}, 5), EINVAL);
	EXPECT_EQ(set_irqs(kTrigger, 0, 1, {}, {}, VFIO_PCI_INTX_IRQ_INDEX), EINVAL);
	EXPECT_EQ(set_irqs(0, 0, 1), EINVAL);
	EXPECT_EQ(set_irqs(1 << 6, 0, 1), EINVAL);
	EXPECT_EQ(set_irqs(VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_ACTION_MASK, 0, 2, {}, "1"),
	          EINVAL);
	EXPECT_EQ(set_irqs(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER, 0, 1), ENOTSUP);
	EXPECT_EQ(set_irqs(VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_MASK, 0, 1), ENOTSUP);
}

} // namespace
} // namespace tern::vfio::test
