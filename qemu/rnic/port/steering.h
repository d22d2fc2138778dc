/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "qemu/rnic/object_table.h"
#include "qemu/rnic/port/frame_fields.h"
#include "qemu/rnic/port/frame_sink.h"
#include "tern/tern_hw.h"

namespace tern {

/** Counters of the frames taken by flows. */
struct FlowCounters {
	uint64_t packets = 0;
	uint64_t bytes = 0;
	uint32_t users = 0; /* flows that use it */
};

/** A rule that steers frames to a QP of type RAW. */
struct Flow {
	FrameSink *sink = nullptr;
	hw::tern_hw_flow_type type = hw::TERN_FLOW_NORMAL;
	uint16_t priority = 0;
	uint8_t ip_version = 0;
	hw::tern_hw_flow_key key{};
	hw::tern_hw_flow_key mask{};
	FlowCounters *counters = nullptr; /* null: not counted */
};

/**
 * The flows, which choose the receiver of a frame. They are matched one after the other, by
 * priority and then by age; the cost is linear in their number, which is limited.
 */
class Steering {
public:
	Steering(uint32_t max_flows, uint32_t base) : flows_(max_flows, base) {}

	/** The number of the new flow; none if there are too many. */
	std::optional<uint32_t> add(const Flow &flow);
	/** The removed flow; null if there was none. */
	std::unique_ptr<Flow> remove(uint32_t number);
	/** Whether some flow names @sink. */
	bool has_flow_to(const FrameSink &sink) const;

	/** The receiver of @frame, counted by its flow; null if no flow matches. Flows of QPs that
	 * do not receive now are skipped. */
	FrameSink *receiver(std::span<const std::byte> frame) const;
	/** Whether @frame, sent by @sender, is for a QP of this card: it matches a flow of type
	 * NORMAL of another QP whose mask covers the whole destination MAC or IP address. */
	bool takes_from(const FrameSink &sender, std::span<const std::byte> frame) const;
	bool has_sniffers() const { return !sniffers_.empty(); }
	/** Passes @frame to all sniffers. */
	void sniff(std::span<const std::byte> frame) const;

private:
	/* In matching order. */
	using Order = std::vector<Flow *>;

	Order &order_of(const Flow &flow);
	const Flow *normal_of(const FrameFields &fields) const;

	ObjectTable<Flow> flows_;
	Order normal_;
	Order defaults_;
	Order sniffers_;
};

} // namespace tern
