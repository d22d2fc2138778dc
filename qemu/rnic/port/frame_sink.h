/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

struct StatsSet;

/** A receiver of frames that a flow can name. */
class FrameSink {
public:
	/** Whether it receives frames now. */
	virtual bool receives() const = 0;
	virtual void receive(std::span<const std::byte> frame) = 0;
	/** The counters of what arrives for it; null: none of its own. */
	virtual StatsSet *frame_stats() const = 0;

	uint32_t flows = 0; /* that name it */

protected:
	~FrameSink() = default;
};

} // namespace tern
