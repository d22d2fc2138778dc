/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "qemu/rnic/control/object_table.h"
#include "qemu/rnic/port/frame_fields.h"
#include "qemu/rnic/port/frame_sink.h"
#include "tern/tern_hw.h"

namespace tern {

/** The frames that some flows took. */
struct FlowCounters {
	uint64_t packets = 0;
	uint64_t bytes = 0;
	uint32_t users = 0; /* flows */
};

/** Some frames for a QP of type RAW. */
struct Flow {
	FrameSink *sink = nullptr;
	hw::tern_hw_flow_type type = hw::TERN_FLOW_NORMAL;
	uint16_t priority = 0;
	uint8_t ip_version = 0;
	hw::tern_hw_flow_key key{};
	hw::tern_hw_flow_key mask{};
	FlowCounters *counters = nullptr; /* null: it is not counted */
};

/**
 * The flows, and to whom they give a frame. They are tried one after the other, by priority and
 * then by age: that is linear in their number, which is bounded.
 */
class Steering {
public:
	Steering(uint32_t max_flows, uint32_t base) : flows_(max_flows, base) {}

	/** The number of the new flow, or nothing when there are too many. */
	std::optional<uint32_t> add(const Flow &flow);
	/** The flow that was removed, if there was one. */
	std::unique_ptr<Flow> remove(uint32_t number);
	/** Whether some flow names @sink. */
	bool names(const FrameSink &sink) const;

	/** Who alone gets @frame, which the flow counts; null when no flow matches. Those of a QP
	 * that does not receive now are passed over. */
	FrameSink *receiver(std::span<const std::byte> frame) const;
	/** Whether @frame, which @sender sends, is for a QP of this card: the flow of type NORMAL
	 * that takes it is another QP's and names the whole destination MAC or IP address. */
	bool takes_from(const FrameSink &sender, std::span<const std::byte> frame) const;
	bool has_sniffers() const { return !sniffers_.empty(); }
	/** Gives @frame to all sniffers. */
	void sniff(std::span<const std::byte> frame) const;

private:
	/* In the order in which they are tried. */
	using Order = std::vector<Flow *>;

	Order &order_of(const Flow &flow);
	const Flow *normal_of(const FrameFields &fields) const;

	ObjectTable<Flow> flows_;
	Order normal_;
	Order defaults_;
	Order sniffers_;
};

} // namespace tern
