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

/** The Ethernet port: which QP sends next, and to whom an arriving frame goes. */
class Port {
public:
	explicit Port(Card &card);

	/** @qp has (or may have) something to send. */
	void activate(Qp &qp);
	/** @qp goes away. */
	void remove(Qp &qp);

	/** Gives the QPs their turns, at most about @budget frames in all. */
	void run(unsigned budget);
	/** Whether there is more for run() to do now. */
	bool has_work() const { return !looped_.empty() || (ready() && first_); }

	/** Whether a frame may be built and sent now. */
	bool ready() const { return !pending_ && !full_; }
	/** Where the next frame is built. */
	std::span<std::byte> buffer() { return *buffer_; }
	/** Sends the first @size bytes of buffer(), padded if need be. Only while ready(). The size
	 * of the frame, as the next two tell. */
	size_t send(size_t size);
	/** As send(), a frame of @sender, of type RAW: where a flow claims its destination, it
	 * comes back to this card, and only multicast goes to the wire as well. */
	size_t send_raw(const EthQp &sender, size_t size);
	/** Sends the RoCE packet that @frame has made in buffer(), and counts it as one. Without an
	 * ICRC, if the wire takes it so. */
	size_t send_roce(FrameBuilder &frame);
	/** Sends the RoCE packet of which @frame has made the head in buffer(), and counts it, if
	 * the wire takes its payload from @payload. Only while ready(). */
	Wire::Lend lend(const FrameBuilder &frame, const HostRanges &payload);
	/** As lend(), a burst of packets of @segment bytes each. */
	Wire::Lend lend_burst(const FrameBuilder &frame, const HostRanges &payload,
	                      uint32_t segment);
	/** Less is not worth it. */
	static constexpr size_t kMinLent = 256;
	/** What was lent is the host's own again when this returns. */
	void recall();
	/** Lets the first @size bytes of buffer() arrive at this card's own multicast groups, too;
	 * before they are sent. A copy for which there is no room is lost. */
	void loop_multicast(size_t size);
	/** The wire takes frames again. */
	void wire_ready();

	void receive(std::span<const std::byte> frame);
	void receive(std::span<const std::byte> head, const Payload &payload, uint32_t segment);

	MulticastGroups groups;
	/** Who gets a frame that is not RoCE, if not... */
	Steering steering;
	/** ... the Ethernet function. */
	EthFunction ethernet;
	Mac mac{};
	uint32_t rx_mode = 0; /* TERN_ETH_PROMISC, TERN_ETH_ALLMULTI */
	uint16_t mtu = 1500;

	/** Packets a QP may send in one turn. */
	static constexpr unsigned kBurst = 16;

private:
	using Buffer = std::array<std::byte, kMaxEthFrame>;
	struct Looped {
		Looped() = default;
		Looped(std::unique_ptr<Buffer> buffer, size_t bytes)
		        : frame(std::move(buffer)), size(bytes)
		{
		}

		std::unique_ptr<Buffer> frame;
		size_t size = 0;
	};

	size_t pad(size_t size);
	void loop_copy(size_t size);
	size_t start(size_t size, bool back);
	/** What a loan is: a burst of @packets, or one. */
	struct Shape {
		uint32_t segment;
		uint32_t packets;
		size_t size; /* of the whole frames */
	};
	Wire::Lend offer(size_t head, const HostRanges &payload, const Shape &shape);
	void transmit_turn(unsigned &budget);
	bool is_own(std::span<const std::byte> frame) const;
	bool try_send(size_t size);
	void deliver_looped(unsigned &budget);
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
	size_t pending_ = 0; /* bytes in buffer_ that the wire refused */
	bool full_ = false;  /* the wire did not take what was to be lent */
	bool lent_ = false;  /* since the latest recall */
	bool back_ = false;  /* the frame in buffer_ comes back, whatever its MAC */
	Qp *first_ = nullptr;
	Qp *last_ = nullptr;

	/** Frames from this card to itself, on their way; bounded by kMaxLooped. */
	static constexpr size_t kMaxLooped = 64;
	RingBuffer<Looped> looped_;
	RingBuffer<std::unique_ptr<Buffer>> spare_;
};

} // namespace tern
