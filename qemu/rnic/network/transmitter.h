/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "qemu/rnic/config.h"
#include "qemu/rnic/environment.h"
#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/memory/host_ranges.h"
#include "qemu/rnic/network/gid_table.h"
#include "qemu/rnic/network/scheduler.h"
#include "qemu/rnic/ring_buffer.h"
#include "qemu/rnic/stats.h"

namespace tern {

/** Sends frames to the wire, or loops them back to this card. Parks the sender of a frame that has
 * no room; it builds the frame again later. */
class Transmitter {
public:
	using Buffer = std::array<std::byte, kMaxEthFrame>;
	/** A frame from this card to itself. */
	struct LoopbackFrame {
		std::unique_ptr<Buffer> frame;
		size_t size = 0;
	};

	/** All references must outlive this. */
	Transmitter(const CardConfig &config, const GidTable &gids, Wire &wire,
	            Scheduler &scheduler, Stats &stats)
	        : mac(config.mac), config_(config), gids_(gids), wire_(wire), scheduler_(scheduler),
	          stats_(stats)
	{
	}

	/** The buffer for the next frame. */
	std::span<std::byte> buffer() { return *buffer_; }
	/** Pads the first @size bytes of buffer() to the minimum; returns the size of the frame. */
	size_t pad(size_t size);
	/** Sends the first @size bytes of buffer(), which are padded, and counts them. @loop_back:
	 * to this card, whatever the MAC. Returns @size, or 0 if there is no room. */
	size_t send(Sender &sender, size_t size, bool loop_back = false);
	/** Sends and counts the RoCE packet that @frame has built in buffer(); without an ICRC if
	 * the wire takes it so. Returns the size of the frame, or 0 if there is no room. */
	size_t send_roce(Sender &sender, FrameBuilder &frame);
	/** Lends the RoCE packet of QP @qpn whose head @frame has built in buffer(), with @payload,
	 * and counts it if the wire takes it. */
	Wire::Lend lend(Sender &sender, const FrameBuilder &frame, const HostRanges &payload,
	                uint32_t qpn);
	/** As lend(), for a burst of packets of @segment bytes each. */
	Wire::Lend lend_burst(Sender &sender, const FrameBuilder &frame, const HostRanges &payload,
	                      uint32_t qpn, uint32_t segment);
	/** Smaller payloads are copied instead. */
	static constexpr size_t kMinLent = 256;
	/** Takes back lent payload; the host owns that memory again when this returns. */
	void recall(const Recall &what);

	/** Loops a copy of the first @size bytes of buffer() back. Dropped if there is no room. */
	void loop_copy(size_t size);
	bool has_loopback() const { return !loopback_.empty(); }
	/** The oldest frame looped back; its buffer is to be returned by put_buffer(). */
	LoopbackFrame take_loopback();

	/** A buffer for one frame, to be returned by put_buffer(). */
	std::unique_ptr<Buffer> take_buffer();
	void put_buffer(std::unique_ptr<Buffer> buffer) { spare_.push_back(std::move(buffer)); }

	/** The other end of the link takes no frames of @priority, or takes them again. */
	void pause(unsigned priority, bool paused)
	{
		paused_ = static_cast<uint8_t>((paused_ & ~(1u << priority)) | unsigned{paused}
		                                                                       << priority);
	}

	Mac mac;
	uint16_t mtu = 1500;
	bool priority_by_dscp = false;

private:
	/** The shape of a lent entry: a single packet, or a burst of @packets. */
	struct Shape {
		uint32_t segment;
		uint32_t packets;
		size_t size; /* total size of the whole frames */
	};
	Wire::Lend offer(Sender &sender, size_t head, const HostRanges &payload, uint32_t qpn,
	                 const Shape &shape);
	bool is_own(std::span<const std::byte> frame) const;
	/** Parks @sender if the priority of its frame is paused. */
	bool hold(Sender &sender, std::span<const std::byte> frame);
	bool loop(size_t size);

	const CardConfig &config_;
	const GidTable &gids_;
	Wire &wire_;
	Scheduler &scheduler_;
	Stats &stats_;
	std::unique_ptr<Buffer> buffer_ = std::make_unique<Buffer>();
	uint8_t paused_ = 0; /* a bit for each priority */
	bool lent_ = false;  /* something was lent since all was recalled */

	static constexpr size_t kMaxLoopback = 64;
	RingBuffer<LoopbackFrame> loopback_; /* at most kMaxLoopback */
	RingBuffer<std::unique_ptr<Buffer>> spare_;
};

} // namespace tern
