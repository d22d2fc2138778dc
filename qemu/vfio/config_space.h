/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tern::vfio {

/** The PCI configuration space: the same function as that of the QEMU device, but for Address
 * Translation Services, which a client has no use for: it maps what an IOMMU translates. */
class ConfigSpace {
public:
	static constexpr size_t kSize = 4096;
	static constexpr unsigned kBars = 6;

	struct Layout {
		std::array<uint64_t, kBars> bar_sizes; /* powers of two, or 0 */
		unsigned vectors;
		uint32_t pending_offset; /* in the BAR of MSI-X */
	};

	explicit ConfigSpace(const Layout &layout);

	/** Both end within kSize. */
	void read(uint64_t offset, std::span<std::byte> to) const;
	void write(uint64_t offset, std::span<const std::byte> from);
	void reset() { bytes_ = initial_; }

	bool bus_master() const;
	bool msix_enabled() const;
	bool msix_masked() const;
	/** Whether a function level reset was asked for since the last call. */
	bool take_function_reset();

private:
	template <typename T>
	void put(size_t offset, T value, T writable = 0);
	uint16_t word(size_t offset) const;

	void add_header();
	void add_bars(const Layout &layout);
	void add_msix(const Layout &layout);
	void add_express();
	void add_power_management();

	std::array<std::byte, kSize> initial_{};
	std::array<std::byte, kSize> writable_{};
	std::array<std::byte, kSize> bytes_{};
};

} // namespace tern::vfio
