/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/memory/host_ranges.h"
#include "qemu/rnic/port/eth_function.h"
#include "qemu/rnic/port/multicast.h"
#include "qemu/rnic/port/steering.h"
#include "qemu/rnic/ring_buffer.h"

namespace tern {

struct Card;

inline constexpr uint32_t kMaxFlows = 4096;
inline constexpr uint32_t kMaxFlowCounters = kMaxFlows;

class EthQp;
class Qp;

/** The Ethernet port: schedules the QPs that send, and dispatches received frames. */
class Port {
public:
	explicit Port(Card &card);

	/** Adds @qp to the schedule; it may have something to send. */
	void activate(Qp &qp);
	/** @qp is being destroyed. */
	void remove(Qp &qp);

	/** Gives QPs their turns, up to about @budget frames in all. */
	void run(unsigned budget);
	/** Whether run() has more to do now. */
	bool has_work() const { return !loopback_.empty() || (ready() && first_); }

	/** Whether a frame may be built and sent now. */
	bool ready() const { return !pending_ && !full_; }
	/** The buffer for the next frame. */
	std::span<std::byte> buffer() { return *buffer_; }
	/** Sends the first @size bytes of buffer(), padded to the minimum. Requires ready().
	 * Returns the size of the frame, as do the next two. */
	size_t send(size_t size);
	/** As send(), for a frame of @sender, of type RAW. If a flow of this card claims its
	 * destination, the frame is looped back, and only a multicast goes to the wire too. */
	size_t send_raw(const EthQp &sender, size_t size);
	/** Sends and counts the RoCE packet that @frame has built in buffer(); without an ICRC if
	 * the wire takes it so. */
	size_t send_roce(FrameBuilder &frame);
	/** Lends the RoCE packet whose head @frame has built in buffer(), with @payload, and counts
	 * it if the wire takes it. Requires ready(). */
	Wire::Lend lend(const FrameBuilder &frame, const HostRanges &payload);
	/** As lend(), for a burst of packets of @segment bytes each. */
	Wire::Lend lend_burst(const FrameBuilder &frame, const HostRanges &payload,
	                      uint32_t segment);
	/** Smaller payloads are copied instead. */
	static constexpr size_t kMinLent = 256;
	/** Revokes all lent payload; the host owns its memory again when this returns. */
	void recall();
	/** Loops a copy of the first @size bytes of buffer() back to this card's own multicast
	 * groups, before the frame is sent. Dropped if there is no room. */
	void loop_multicast(size_t size);
	/** The wire has room again. */
	void wire_ready();

	void receive(std::span<const std::byte> frame);
	void receive(std::span<const std::byte> head, const Payload &payload, uint32_t segment);

	MulticastGroups groups;
	/** Receivers of frames that are not RoCE, before ethernet. */
	Steering steering;
	/** The receiver of all other frames. */
	EthFunction ethernet;
	Mac mac{};
	uint32_t rx_mode = 0; /* TERN_ETH_PROMISC, TERN_ETH_ALLMULTI */
	uint16_t mtu = 1500;

	/** Packets a QP may send in one turn. */
	static constexpr unsigned kBurst = 16;

private:
	using Buffer = std::array<std::byte, kMaxEthFrame>;
	struct LoopbackFrame {
		LoopbackFrame() = default;
		LoopbackFrame(std::unique_ptr<Buffer> buffer, size_t bytes)
		        : frame(std::move(buffer)), size(bytes)
		{
		}

		std::unique_ptr<Buffer> frame;
		size_t size = 0;
	};

	size_t pad(size_t size);
	void loop_copy(size_t size);
	size_t start(size_t size, bool back);
	/** The shape of a lent entry: a single packet, or a burst of @packets. */
	struct Shape {
		uint32_t segment;
		uint32_t packets;
		size_t size; /* total size of the whole frames */
	};
	Wire::Lend offer(size_t head, const HostRanges &payload, const Shape &shape);
	void transmit_turn(unsigned &budget);
	bool is_own(std::span<const std::byte> frame) const;
	bool try_send(size_t size);
	void deliver_loopback(unsigned &budget);
	void resend();
	void receive_roce(std::span<const std::byte> frame);
	void receive_whole(const Packet &packet, std::span<const std::byte> head,
	                   const Payload &payload);
	void count_error(ParseError error);
	void admit(const Packet &packet);
	void admit_burst(const Packet &burst);
	void deliver(const Packet &packet);
	std::unique_ptr<Buffer> spare_buffer();
	bool takes_roce(const Mac &dmac) const { return dmac == mac || groups.listens(dmac); }
	bool accepts(const Mac &dmac) const;

	Card &card_;
	std::unique_ptr<Buffer> buffer_;
	size_t pending_ = 0;     /* bytes in buffer_ that the wire refused */
	bool full_ = false;      /* the wire had no room for a lent packet */
	bool lent_ = false;      /* something was lent since the last recall */
	bool loop_back_ = false; /* loop the frame in buffer_ back, whatever its MAC */
	Qp *first_ = nullptr;
	Qp *last_ = nullptr;

	/** Frames from this card to itself that are not yet received; at most kMaxLoopback. */
	static constexpr size_t kMaxLoopback = 64;
	RingBuffer<LoopbackFrame> loopback_;
	RingBuffer<std::unique_ptr<Buffer>> spare_;
};

} // namespace tern
