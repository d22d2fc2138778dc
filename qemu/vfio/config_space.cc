// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/vfio/config_space.h"

#include <algorithm>
#include <cstring>
#include <linux/pci_regs.h>

#include "tern/tern_hw.h"

namespace tern::vfio {

namespace {

/* Where the capabilities are; the list goes from the first to the last. */
constexpr size_t kMsix = 0x40;
constexpr size_t kExpress = 0x50;
constexpr size_t kPowerManagement = 0xc8;

constexpr uint16_t kEthernet = 0x0200; /* class and subclass */

} // namespace

/* Sets the value after a reset, and which bits can be written. */
template <typename T>
void ConfigSpace::put(size_t offset, T value, T writable)
{
	std::memcpy(&initial_[offset], &value, sizeof(value));
	std::memcpy(&writable_[offset], &writable, sizeof(writable));
}

uint16_t ConfigSpace::word(size_t offset) const
{
	uint16_t value;
	std::memcpy(&value, &bytes_[offset], sizeof(value));
	return value;
}

ConfigSpace::ConfigSpace(const Layout &layout)
{
	add_header();
	add_bars(layout);
	add_msix(layout);
	add_express();
	add_power_management();
	reset();
}

void ConfigSpace::add_header()
{
	put<uint16_t>(PCI_VENDOR_ID, hw::TERN_PCI_VENDOR_ID);
	put<uint16_t>(PCI_DEVICE_ID, hw::TERN_PCI_DEVICE_ID);
	put<uint16_t>(PCI_COMMAND, 0,
	              PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
	                      PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
	put<uint16_t>(PCI_STATUS, PCI_STATUS_CAP_LIST);
	put<uint8_t>(PCI_REVISION_ID, hw::TERN_HW_MAJOR);
	put<uint16_t>(PCI_CLASS_DEVICE, kEthernet);
	put<uint8_t>(PCI_CACHE_LINE_SIZE, 0, 0xff);
	put<uint16_t>(PCI_SUBSYSTEM_VENDOR_ID, hw::TERN_PCI_VENDOR_ID);
	put<uint16_t>(PCI_SUBSYSTEM_ID, hw::TERN_PCI_DEVICE_ID);
	put<uint8_t>(PCI_CAPABILITY_LIST, kMsix);
	put<uint8_t>(PCI_INTERRUPT_LINE, 0, 0xff);
}

void ConfigSpace::add_bars(const Layout &layout)
{
	static constexpr std::array<uint32_t, kBars> kFlags = {
	        PCI_BASE_ADDRESS_SPACE_MEMORY,
	        0,
	        PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64 |
	                PCI_BASE_ADDRESS_MEM_PREFETCH,
	        0,
	        PCI_BASE_ADDRESS_SPACE_MEMORY,
	        PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_PREFETCH,
	};
	for (unsigned bar = 0; bar < kBars; bar++) {
		const size_t offset = PCI_BASE_ADDRESS_0 + bar * sizeof(uint32_t);
		const uint64_t mask = ~(layout.bar_sizes[bar] - 1);
		if (!layout.bar_sizes[bar])
			continue;
		put<uint32_t>(offset, kFlags[bar], static_cast<uint32_t>(mask & ~uint64_t{0xf}));
		if (kFlags[bar] & PCI_BASE_ADDRESS_MEM_TYPE_64)
			put<uint32_t>(offset + sizeof(uint32_t), 0,
			              static_cast<uint32_t>(mask >> 32));
	}
}

void ConfigSpace::add_msix(const Layout &layout)
{
	put<uint8_t>(kMsix, PCI_CAP_ID_MSIX);
	put<uint8_t>(kMsix + PCI_CAP_LIST_NEXT, kExpress);
	put<uint16_t>(kMsix + PCI_MSIX_FLAGS, static_cast<uint16_t>(layout.vectors - 1),
	              PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
	put<uint32_t>(kMsix + PCI_MSIX_TABLE, hw::TERN_BAR_MSIX);
	put<uint32_t>(kMsix + PCI_MSIX_PBA, layout.pending_offset | hw::TERN_BAR_MSIX);
}

void ConfigSpace::add_express()
{
	put<uint8_t>(kExpress, PCI_CAP_ID_EXP);
	put<uint8_t>(kExpress + PCI_CAP_LIST_NEXT, kPowerManagement);
	put<uint16_t>(kExpress + PCI_EXP_FLAGS, 2 | PCI_EXP_TYPE_ENDPOINT << 4);
	put<uint32_t>(kExpress + PCI_EXP_DEVCAP, PCI_EXP_DEVCAP_RBER | PCI_EXP_DEVCAP_FLR);
	put<uint16_t>(kExpress + PCI_EXP_DEVCTL, 0,
	              PCI_EXP_DEVCTL_CERE | PCI_EXP_DEVCTL_NFERE | PCI_EXP_DEVCTL_FERE |
	                      PCI_EXP_DEVCTL_URRE | PCI_EXP_DEVCTL_RELAX_EN |
	                      PCI_EXP_DEVCTL_PAYLOAD | PCI_EXP_DEVCTL_NOSNOOP_EN |
	                      PCI_EXP_DEVCTL_READRQ | PCI_EXP_DEVCTL_BCR_FLR);
	put<uint32_t>(kExpress + PCI_EXP_LNKCAP, PCI_EXP_LNKCAP_SLS_2_5GB | 1 << 4 /* one lane */);
	put<uint16_t>(kExpress + PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_CLS_2_5GB | PCI_EXP_LNKSTA_NLW_X1);
}

void ConfigSpace::add_power_management()
{
	put<uint8_t>(kPowerManagement, PCI_CAP_ID_PM);
	put<uint16_t>(kPowerManagement + PCI_PM_PMC, 3); /* version 1.2 */
	put<uint16_t>(kPowerManagement + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET,
	              PCI_PM_CTRL_STATE_MASK);
}

void ConfigSpace::read(uint64_t offset, std::span<std::byte> to) const
{
	std::ranges::copy(std::span(bytes_).subspan(offset, to.size()), to.begin());
}

void ConfigSpace::write(uint64_t offset, std::span<const std::byte> from)
{
	for (size_t i = 0; i < from.size(); i++) {
		const std::byte mask = writable_[offset + i];
		std::byte &byte = bytes_[offset + i];
		byte = (byte & ~mask) | (from[i] & mask);
	}
}

bool ConfigSpace::bus_master() const
{
	return word(PCI_COMMAND) & PCI_COMMAND_MASTER;
}

bool ConfigSpace::msix_enabled() const
{
	return word(kMsix + PCI_MSIX_FLAGS) & PCI_MSIX_FLAGS_ENABLE;
}

bool ConfigSpace::msix_masked() const
{
	return word(kMsix + PCI_MSIX_FLAGS) & PCI_MSIX_FLAGS_MASKALL;
}

/* The bit reads as zero. */
bool ConfigSpace::take_function_reset()
{
	const uint16_t control = word(kExpress + PCI_EXP_DEVCTL);
	const uint16_t without = control & ~PCI_EXP_DEVCTL_BCR_FLR;
	std::memcpy(&bytes_[kExpress + PCI_EXP_DEVCTL], &without, sizeof(without));
	return control != without;
}

} // namespace tern::vfio
