// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/engine/frame_rings.h"

#include <cstring>

namespace tern {
namespace {

/** Returns whether @ring has room. If it has none this sets @blocked and looks again: either this
 * thread sees the room that the consumer has made meanwhile, or the consumer sees the flag. It
 * leaves @blocked set if there is room, because a sender refused before may wait for the flag. */
template <typename Ring>
bool find_room(Ring &ring, std::atomic<bool> &blocked)
{
	if (!ring.full())
		return true;
	blocked.store(true, std::memory_order_relaxed);
	std::atomic_thread_fence(std::memory_order_seq_cst);
	return !ring.full();
}

template <typename Ring>
void push(Ring &ring, std::span<const std::byte> frame)
{
	Frame *slot = ring.reserve();
	slot->size = static_cast<uint32_t>(frame.size());
	std::memcpy(slot->data, frame.data(), frame.size());
	ring.commit();
}

} // namespace

void FrameRings::drop_received()
{
	received_.pop();
	std::atomic_thread_fence(std::memory_order_seq_cst);
	if (receive_blocked_.load(std::memory_order_relaxed) && received_.half_empty() &&
	    receive_blocked_.exchange(false))
		ops_.receive_ready(opaque_);
}

void FrameRings::discard_received()
{
	while (received_.front())
		received_.pop();
	if (receive_blocked_.exchange(false))
		ops_.receive_ready(opaque_);
}

/* While a sender waits for room, nobody sends before take_room() has told of it: the others would
 * use up what the front end has just taken, and the ring would never be half empty. */
bool FrameRings::send(std::span<const std::byte> frame)
{
	if (sender_waits() || !find_room(sent_, send_blocked_))
		return false;
	push(sent_, frame);
	ops_.frames_pending(opaque_);
	return true;
}

bool FrameRings::can_receive()
{
	return find_room(received_, receive_blocked_);
}

bool FrameRings::push_received(std::span<const std::byte> frame)
{
	if (!can_receive())
		return false;
	push(received_, frame);
	parking_.wake();
	return true;
}

void FrameRings::pop_sent()
{
	sent_.pop();
	std::atomic_thread_fence(std::memory_order_seq_cst);
	if (has_room())
		parking_.wake();
}

} // namespace tern
