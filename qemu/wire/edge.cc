// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/edge.h"

#include "qemu/rnic/formats/packet.h"
#include "qemu/shm/address_page.h"

namespace tern::wire {

namespace {
/* What may wait at the link, in bytes of a priority, before the connection does. Small: what is in
 * there has left the card's rate control and the turns of its QPs behind it. */
constexpr uint64_t kQueue = 16384;
/* The same of a priority that is paused. The connection has one queue for all priorities, in which
 * frames that wait block those of others; so what has been sent there before the card obeyed the
 * pause has room here. */
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
	priority_ = fabric::priority_of(frame);
	link().send(context_.fabric.pool().make(frame, priority_));
	return congested() ? this : nullptr;
}

/* As in a switch without topology (wire::Switch). */
bool Edge::is_for_own_lanes(Frame frame) const
{
	const uint64_t to = shm::address_at(frame, 0);
	return to & fabric::kGroupBit ? is_roce(frame) : context_.fabric.is_at(card_, to);
}

bool Edge::congested() const
{
	const bool paused = link().paused() >> priority_ & 1;
	return link().queues.bytes(priority_) > (paused ? kPausedQueue : kQueue);
}

void Edge::joined(Port &port)
{
	const auto primary = [this](const Port &of) {
		return context_.ethernet.place_of(of.id).primary;
	};
	for (Port *other : ports_) {
		if (primary(*other) != primary(port))
			other->hang_up();
	}
	ports_.push_back(&port);
}

/* In the fabric's time, which may lag behind: the card's next frame follows without a gap. */
void Edge::departed(fabric::Port &, const fabric::Frame &)
{
	for (Port *port : ports_) {
		if (port->waiting_for() == this && !congested())
			port->resume();
	}
}

void Edge::deliver(const fabric::Frame &frame)
{
	if (!ports_.empty())
		context_.ethernet.deliver(context_.ethernet.place_of(ports_.back()->id).primary,
		                          frame.bytes());
}

} // namespace tern::wire
