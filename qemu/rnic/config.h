/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tern/tern_hw.h"

namespace tern {

/** The properties of one engine, set by the embedder. */
struct CardConfig {
	std::array<uint8_t, 6> mac{};
	/* this engine's number and the number of engines: TERN_ENGINE_SHIFT */
	uint32_t engine = 0;
	uint32_t engines = 1;
	uint32_t vectors = 8;
	uint32_t doorbell_pages = 2048;
	uint32_t link_speed_mbps = 100000;
	/* BAR 5, owned by the embedder and mapped into the host; page-aligned, or empty */
	std::span<std::byte> device_memory{};

	/** The engine's bits of all object numbers. */
	uint32_t base() const { return engine << hw::TERN_ENGINE_SHIFT; }
};

} // namespace tern
