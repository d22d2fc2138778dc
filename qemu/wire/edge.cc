// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/edge.h"

#include <algorithm>

#include "qemu/rnic/formats/packet.h"
#include "qemu/shm/address_page.h"

namespace tern::wire {

namespace {
/* The connection waits when more bytes of a priority than this are queued at the link. The limit is
 * small, because the card's rate control and scheduler no longer affect queued frames. */
constexpr uint64_t kQueue = 16384;
/* The same limit for a priority that is paused. The connection has one queue for all priorities, so
 * a frame that waits in it blocks frames of other priorities. Therefore the link takes as much more
 * as the card can have put into the connection before it obeyed the pause. */
constexpr uint64_t kPausedQueue = kQueue + kInbound;
constexpr size_t kSourceOffset = 6;
} // namespace

Waitable *Edge::frame_from(Port &port, Frame frame)
{
	if (!context_.ethernet.receive(port.id, frame))
		return nullptr;
	if (frame.size() > kMaxEthFrame) {
		too_long_++;
		return nullptr;
	}
	context_.time.advance();
	context_.fabric.learn(card_, shm::address_at(frame, kSourceOffset));
	const Switch::Place &place = context_.ethernet.place_of(port.id);
	if (place.lanes > 1 && is_for_own_lanes(frame))
		context_.ethernet.deliver(place.primary, frame, port.id);
	Lane &lane = lane_of(port);
	lane.priority = fabric::priority_of(frame);
	link().send(context_.fabric.pool().make(frame, lane.priority));
	return lane.congested() ? &lane : nullptr;
}

/* Requires that @port has joined this edge. Other ports do not pass on frames. */
Edge::Lane &Edge::lane_of(const Port &port)
{
	return *std::ranges::find(lanes_, &port, [](const Lane &lane) { return &lane.port; });
}

/* Whether the frame is for a lane of the card that sent it. The rule is that of wire::Switch. */
bool Edge::is_for_own_lanes(Frame frame) const
{
	const uint64_t to = shm::address_at(frame, 0);
	if (context_.fabric.is_at(card_, to))
		return true;
	return is_roce(frame) && (to & fabric::kGroupBit || !context_.fabric.knows(to));
}

/* Each lane may add one frame beyond this. */
bool Edge::is_full(uint8_t priority) const
{
	const bool paused = link().paused() >> priority & 1;
	return link().queues.bytes(priority) > (paused ? kPausedQueue : kQueue);
}

void Edge::joined(Port &port)
{
	const auto primary = [this](const Port &of) {
		return context_.ethernet.place_of(of.id).primary;
	};
	for (Lane &other : lanes_) {
		if (primary(other.port) != primary(port))
			other.port.hang_up();
	}
	lanes_.emplace_back(*this, port);
}

void Edge::left(Port &port)
{
	lanes_.remove_if([&](const Lane &lane) { return &lane.port == &port; });
}

/* Resumes connections at the fabric's time, which may lag behind real time, so that the card's next
 * frame follows without a gap. One that resumes may fill the queue again at once, so it goes behind
 * the others first. A link that is down loses frames while they are sent, so this may call itself.
 */
void Edge::departed(fabric::Port &, const fabric::Frame &)
{
	const auto can_resume = [](const Lane &lane) {
		return lane.port.waiting_for() == &lane && !lane.congested();
	};
	for (;;) {
		const auto lane = std::ranges::find_if(lanes_, can_resume);
		if (lane == lanes_.end())
			return;
		lanes_.splice(lanes_.end(), lanes_, lane);
		lane->port.resume();
	}
}

/* Connections of a card that was replaced may still be there, but are dead. */
void Edge::deliver(const fabric::Frame &frame)
{
	const auto lane =
	        std::ranges::find_if(lanes_, [](const Lane &each) { return !each.port.dead(); });
	if (lane != lanes_.end())
		context_.ethernet.deliver(context_.ethernet.place_of(lane->port.id).primary,
		                          frame.bytes());
}

} // namespace tern::wire
