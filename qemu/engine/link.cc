// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/engine/link.h"

#include <algorithm>
#include <array>

namespace tern {

/* Passes received frames to the card, and drops them while the cable is unplugged. */
class Link::ToCard final : public shm::SharedWire::Sink {
public:
	ToCard(Link &link, Rnic &rnic) : link_(link), rnic_(rnic) {}

	void frame(std::span<const std::byte> frame) override
	{
		if (!link_.plugged_)
			return;
		link_.traffic_++;
		rnic_.receive(frame);
	}
	void lent(std::span<const std::byte> head,
	          std::span<const std::span<const std::byte>> payload, uint32_t segment) override
	{
		if (!link_.plugged_)
			return;
		link_.traffic_++;
		rnic_.receive(head, payload, segment);
	}
	void revoked(uint32_t packets) override { rnic_.lost(packets); }

private:
	Link &link_;
	Rnic &rnic_;
};

void Link::plug(bool plugged)
{
	if (plugged != plugged_)
		discard_received();
	plugged_ = plugged;
}

bool Link::receive(unsigned budget, Rnic &rnic)
{
	ToCard card(*this, rnic);
	if (shared_)
		return shared_->receive(budget, card);
	return rings_.receive(budget, [&](std::span<const std::byte> frame) { card.frame(frame); });
}

void Link::discard_received()
{
	if (shared_)
		shared_->discard_received();
	rings_.discard_received();
}

std::optional<Wire::Destination> Link::take_room()
{
	if (shared_)
		return shared_->take_room();
	/* Without a cable the link drops all frames, so no sender has to wait for room. */
	const bool room = plugged_ ? rings_.take_room() : rings_.end_wait();
	return room ? std::optional<Destination>(0) : std::nullopt;
}

bool Link::has_work() const
{
	if (shared_)
		return shared_->has_frames() || shared_->has_room();
	return rings_.has_work() || (!plugged_ && rings_.sender_waits());
}

bool Link::transmit(std::span<const std::byte> frame)
{
	if (!plugged_ || frame.size() > kMaxFrame)
		return true; /* too long for any wire: dropped */
	traffic_++;
	return shared_ ? shared_->send(frame) : rings_.send(frame);
}

Wire::Lend Link::lend(std::span<const std::byte> head, std::span<const HostRange> payload,
                      uint32_t segment, const Loan &loan)
{
	if (!plugged_ || !shared_ || !shared_->can_lend(head))
		return Lend::Refused;
	std::array<tern_ram_range, shm::kMaxRanges> found;
	std::array<shm::RamRange, shm::kMaxRanges> ranges;
	size_t count = 0;
	for (const HostRange &range : payload) {
		const size_t parts = memory_.find_shared(range, std::span(found).subspan(count));
		if (!parts)
			return Lend::Refused;
		count += parts;
	}
	std::ranges::transform(std::span(found).first(count), ranges.begin(),
	                       [](const tern_ram_range &from) {
		                       return shm::RamRange{from.block, from.size, from.offset};
	                       });
	traffic_++;
	const auto result = shared_->lend(head, std::span(ranges).first(count), segment, loan);
	tracer_.lent(loan, payload, segment, result);
	return result;
}

uint64_t Link::recall(const Recall &what)
{
	/* The memory map, a lock of QEMU's, is not held while this waits for other hosts. */
	const uint64_t revoked = shared_ ? shared_->recall(what, [this] { memory_.release(); }) : 0;
	tracer_.recalled(what, revoked);
	return revoked;
}

} // namespace tern
