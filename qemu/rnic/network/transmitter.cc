// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/network/transmitter.h"

#include <algorithm>
#include <cstring>

#include "qemu/rnic/formats/burst.h"

namespace tern {

using namespace hw;

/* Receivers ignore the padding. */
size_t Transmitter::pad(size_t size)
{
	if (size >= kMinEthFrame)
		return size;
	std::memset(buffer_->data() + size, 0, kMinEthFrame - size);
	return kMinEthFrame;
}

size_t Transmitter::send(Sender &sender, size_t size, bool loop_back)
{
	const auto frame = std::span(*buffer_).first(size);
	const bool own = loop_back || is_own(frame);
	if (!own && hold(sender, frame))
		return 0;
	if (own ? !loop(size) : !wire_.transmit(frame)) {
		scheduler_.park(sender, own ? Scheduler::kSelf : wire_.full());
		return 0;
	}
	stats_.add(TERN_STAT_TX_FRAMES);
	stats_.add(TERN_STAT_TX_BYTES, size);
	return size;
}

size_t Transmitter::send_roce(Sender &sender, FrameBuilder &frame)
{
	const size_t bare = frame.bare().size();
	const size_t whole = whole_size(bare, 0);
	const auto lent = offer(sender, bare, {}, 0, {0, 1, whole});
	if (lent != Wire::Lend::Refused)
		return lent == Wire::Lend::Done ? whole : 0;
	const size_t size = send(sender, pad(frame.finish().size()));
	if (size) {
		stats_.add(TERN_STAT_ROCE_TX_PACKETS);
		stats_.add(TERN_STAT_ROCE_TX_BYTES, size);
	}
	return size;
}

Wire::Lend Transmitter::lend(Sender &sender, const FrameBuilder &frame, const HostRanges &payload,
                             uint32_t qpn)
{
	const size_t head = frame.head().size();
	return offer(sender, head, payload, qpn, {0, 1, whole_size(head, payload.bytes())});
}

Wire::Lend Transmitter::lend_burst(Sender &sender, const FrameBuilder &frame,
                                   const HostRanges &payload, uint32_t qpn, uint32_t segment)
{
	const size_t head = frame.head().size();
	const size_t size = payload.bytes();
	return offer(sender, head, payload, qpn,
	             {segment, segments_of(size, segment),
	              burst_size(frame.opcode(), head, size, segment)});
}

Wire::Lend Transmitter::offer(Sender &sender, size_t head, const HostRanges &payload, uint32_t qpn,
                              const Shape &shape)
{
	const auto bytes = std::span(*buffer_).first(head);
	if (is_own(bytes))
		return Wire::Lend::Refused;
	if (hold(sender, bytes))
		return Wire::Lend::Full;
	const auto lent = wire_.lend(bytes, payload.list(), shape.segment, {qpn, payload.keys});
	if (lent == Wire::Lend::Full)
		scheduler_.park(sender, wire_.full());
	if (lent != Wire::Lend::Done)
		return lent;
	lent_ |= !payload.list().empty();
	stats_.add(TERN_STAT_TX_FRAMES, shape.packets);
	stats_.add(TERN_STAT_TX_BYTES, shape.size);
	stats_.add(TERN_STAT_ROCE_TX_PACKETS, shape.packets);
	stats_.add(TERN_STAT_ROCE_TX_BYTES, shape.size);
	return lent;
}

bool Transmitter::hold(Sender &sender, std::span<const std::byte> frame)
{
	if (!paused_)
		return false;
	const unsigned priority = priority_of(frame, priority_by_dscp);
	if (!(paused_ >> priority & 1))
		return false;
	scheduler_.park(sender, static_cast<Wire::Destination>(Scheduler::kPaused + priority));
	return true;
}

void Transmitter::recall(const Recall &what)
{
	if (!lent_)
		return;
	stats_.add(TERN_STAT_TX_REVOKED, wire_.recall(what));
	lent_ = !what.is_everything();
}

/* Other engines of this card are reached over the wire. */
bool Transmitter::is_own(std::span<const std::byte> frame) const
{
	const Mac to = destination_of(frame);
	if (to != mac && !(gids_.listens(to) && is_roce(frame)))
		return false;
	if (config_.engines == 1)
		return true;
	const uint32_t engine = roce_engine(frame).value_or(0);
	return (engine < config_.engines ? engine : 0) == config_.engine;
}

/* To this card itself: received by Port::run(), never within a QP's turn. False: no room. */
bool Transmitter::loop(size_t size)
{
	if (loopback_.size() == kMaxLoopback)
		return false;
	LoopbackFrame &looped = loopback_.emplace_back();
	looped.frame = std::exchange(buffer_, take_buffer());
	looped.size = size;
	return true;
}

std::unique_ptr<Transmitter::Buffer> Transmitter::take_buffer()
{
	if (spare_.empty())
		return std::make_unique<Buffer>();
	auto spare = std::move(spare_.front());
	spare_.pop_front();
	return spare;
}

void Transmitter::loop_copy(size_t size)
{
	if (loopback_.size() == kMaxLoopback)
		return;
	LoopbackFrame &looped = loopback_.emplace_back();
	looped.frame = take_buffer();
	looped.size = size;
	std::copy_n(buffer_->begin(), size, looped.frame->begin());
}

Transmitter::LoopbackFrame Transmitter::take_loopback()
{
	LoopbackFrame frame = std::move(loopback_.front());
	loopback_.pop_front();
	return frame;
}

} // namespace tern
