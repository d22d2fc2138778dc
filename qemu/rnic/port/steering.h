/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
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
	uint64_t number = 0;              /* counts up: younger flows have larger ones */

	/** Whether it is matched before @other: by priority, then by age. */
	bool before(const Flow &other) const
	{
		return std::pair(priority, number) < std::pair(other.priority, other.number);
	}
};

/**
 * The flows, which choose the receivers of a frame by priority and then by age. For each mask there
 * is a table of keys, so a frame costs one look-up for each mask, however many flows there are.
 * What is looked through one by one is limited.
 */
class Steering {
public:
	Steering(uint32_t max_flows, uint32_t base) : flows_(max_flows, base) {}

	/** Different masks, and flows that differ in nothing but sink and priority; flows of each
	 * other type. */
	static constexpr size_t kMaxMasks = 64;
	static constexpr size_t kMaxEqual = 16;

	/** The number of the new flow; none if there are too many. */
	std::optional<uint32_t> add(const Flow &flow);
	/** The removed flow; null if there was none. */
	std::unique_ptr<Flow> remove(uint32_t number);

	/** Passes @frame to the QP of the flow of type NORMAL that matches it first, and to those
	 * of its equals: the flows with the same key, mask and priority. Each flow counts it.
	 * Returns the first of the QPs; null if no flow matches. Flows of QPs that do not receive
	 * now are skipped. */
	FrameSink *deliver(std::span<const std::byte> frame) const;
	/** The same with the default flows, of which only the first one takes @frame. */
	FrameSink *deliver_default(std::span<const std::byte> frame) const;
	/** Whether @frame, sent by @sender, is for a QP of this card: deliver() would pass it to
	 * another QP by a flow whose mask covers the whole destination MAC or IP address. */
	bool takes_from(const FrameSink &sender, std::span<const std::byte> frame) const;
	bool has_sniffers() const { return !sniffers_.empty(); }
	/** Passes @frame to all sniffers. */
	void sniff(std::span<const std::byte> frame) const;

private:
	/* In matching order. */
	using Order = std::vector<Flow *>;

	using Key = std::array<char, sizeof(hw::tern_hw_flow_key)>;
	struct Hash {
		size_t operator()(const Key &key) const
		{
			return std::hash<std::string_view>()({key.data(), key.size()});
		}
	};
	/** The flows of type NORMAL with the same mask. */
	struct Table {
		uint8_t ip_version;
		hw::tern_hw_flow_key mask;
		std::unordered_map<Key, Order, Hash> flows; /* by key */

		bool is_of(const Flow &flow) const;
	};

	/* Where @flow is, or is to be; null if there are too many masks. */
	Order *order_of(const Flow &flow);
	void drop_empty(const Flow &flow);
	/* Flows with the same key, mask and priority, oldest first. The QP of the first one
	 * receives; those of others may not. */
	using Equals = std::span<Flow *const>;
	Equals normal_of(std::span<const std::byte> frame) const;

	ObjectTable<Flow> flows_;
	uint64_t added_ = 0;
	std::vector<Table> tables_;
	Order defaults_;
	Order sniffers_;
};

} // namespace tern
