/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "qemu/engine/engine.h"
#include "qemu/engine/parking.h"
#include "qemu/engine/spsc_ring.h"

namespace tern {

/** The longest frame, bytes: 9000 of payload with two VLAN tags fit. */
constexpr size_t kMaxFrame = 9216;

struct Frame {
	uint32_t size;
	std::byte data[kMaxFrame];

	std::span<const std::byte> bytes() const { return {data, size}; }
};

/** Frames between a card and the front end's network: a ring to the card and a ring from it. The
 * consumer tells a producer that has found its ring full when half of the ring is empty. */
class FrameRings {
public:
	/** The room of each ring. */
	static constexpr size_t kFrames = 256;

	/** Wakes the engine's thread, which sleeps in @parking. */
	FrameRings(const tern_engine_ops &ops, void *opaque, Parking &parking)
	        : ops_(ops), opaque_(opaque), parking_(parking)
	{
	}

	/* Called by the engine's thread. */

	/** Passes up to @budget frames to @take. Returns true if there may be more. */
	template <typename Take>
	bool receive(unsigned budget, Take take)
	{
		for (unsigned i = 0; i < budget; i++) {
			const Frame *frame = received_.front();
			if (!frame)
				return false;
			take(frame->bytes());
			drop_received();
		}
		return true;
	}
	void discard_received();
	/** Sends a frame of at most kMaxFrame bytes. Returns false if there is no room; then wait
	 * for take_room(). */
	bool send(std::span<const std::byte> frame);
	/** Returns true once when there is room after send() has returned false. */
	bool take_room() { return has_room() && send_blocked_.exchange(false); }
	/** Returns whether a sender waits: send() has returned false, and neither take_room()
	 * nor end_wait() has returned true since. */
	bool sender_waits() const { return send_blocked_.load(std::memory_order_relaxed); }
	/** Returns true once after send() has returned false, whether or not there is room. */
	bool end_wait() { return sender_waits() && send_blocked_.exchange(false); }
	/** Whether there are frames, or take_room() would return true. */
	bool has_work() const { return !received_.empty() || has_room(); }

	/* Called by the front end. */

	/** Returns false if there is no room: the front end's receive_ready() will be called. */
	bool push_received(std::span<const std::byte> frame);
	bool can_receive();
	/** Returns the oldest frame sent, or null. The frame stays valid until pop_sent(). */
	const Frame *next_sent() { return sent_.front(); }
	void pop_sent();

private:
	bool has_room() const { return sender_waits() && sent_.half_empty(); }
	void drop_received();

	const tern_engine_ops &ops_;
	void *const opaque_;
	Parking &parking_;
	SpscRing<Frame, kFrames> received_;
	SpscRing<Frame, kFrames> sent_;
	/* The producer has found its ring full. */
	std::atomic<bool> receive_blocked_{false};
	std::atomic<bool> send_blocked_{false};
};

} // namespace tern
