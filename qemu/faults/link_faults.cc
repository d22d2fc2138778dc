// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/faults/link_faults.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tern::faults {

namespace {

/** A frame for a port of the fabric. If its link is cut while the frame is held back, the frame is
 * lost, as all that is on its way. */
class ToPort final : public Transfer {
public:
	ToPort(fabric::FramePool &pool, fabric::Port &port, fabric::FramePtr frame)
	        : ToPort(pool, port, std::move(frame), port.cuts())
	{
	}

	std::span<std::byte> headers() override { return frame_->bytes(); }
	/* In simulated time payload and ICRC stay behind. Zeros take their place, so the ICRC is
	 * wrong, as that of a corrupted frame is. */
	std::span<std::byte> whole() override
	{
		if (!frame_->has_icrc) {
			std::vector<std::byte> bytes(frame_->size);
			std::ranges::copy(frame_->bytes(), bytes.begin());
			frame_ = pool_.make(bytes, frame_->priority);
		}
		return frame_->bytes();
	}
	bool deliver() override
	{
		if (port_.cuts() == cuts_)
			port_.accept(pool_.copy(*frame_));
		else
			port_.lose_intercepted(*frame_);
		return true;
	}
	std::unique_ptr<Transfer> keep() override
	{
		return std::unique_ptr<Transfer>(
		        new ToPort(pool_, port_, std::move(frame_), cuts_));
	}

private:
	ToPort(fabric::FramePool &pool, fabric::Port &port, fabric::FramePtr frame, uint64_t cuts)
	        : pool_(pool), port_(port), frame_(std::move(frame)), cuts_(cuts)
	{
	}

	fabric::FramePool &pool_;
	fabric::Port &port_;
	fabric::FramePtr frame_;
	const uint64_t cuts_; /* of the link, when the frame arrived */
};

} // namespace

/* Returns the bytes of @frame, with zeros for a payload and an ICRC that stayed behind: headers
 * tell of their sizes. */
Bytes LinkFaults::whole(const fabric::Frame &frame)
{
	if (frame.has_icrc)
		return frame.bytes();
	scratch_.assign(frame.size, std::byte{0});
	std::ranges::copy(frame.bytes(), scratch_.begin());
	return scratch_;
}

void LinkFaults::arrived(fabric::FramePtr frame)
{
	injector_.clear_events();
	if (injector_.idle()) {
		context_.observer.arrived(link_end_, frame->bytes(), injector_.events());
		return port_.accept(std::move(frame));
	}
	const auto passage = Passage::by_link(whole(*frame), link_end_,
	                                      context_.faults.links()[link_end_].at_card);
	/* To corrupt a frame, the injector stores it whole, with payload that was not copied. */
	const size_t memory = fabric::FramePool::slot_size(frame->size);
	const Injector::Verdict verdict = injector_.decide(passage, 0, memory);
	context_.observer.arrived(link_end_, passage.frame, injector_.events());
	ToPort transfer(context_.pool, port_, std::move(frame));
	injector_.apply(verdict, transfer, now());
	release_later();
}

/* Makes sure that there is an event no later than the first of the frames that are held back has to
 * go. */
void LinkFaults::release_later()
{
	if (!injector_.holds() || injector_.next_due() >= next_release_)
		return;
	next_release_ = injector_.next_due();
	port_.loop().at(static_cast<uint64_t>(next_release_.count()), [this] {
		if (now() >= next_release_)
			next_release_ = Injector::Time::max();
		injector_.release_due(now());
		release_later();
	});
}

std::vector<LinkEnd> link_ends(const fabric::Plan &plan)
{
	std::vector<LinkEnd> ends;
	const auto add = [&](const fabric::Fabric::End &from, const fabric::Fabric::End &to) {
		ends.push_back({plan.name_of(from) + ":" + plan.name_of(to),
		                to.kind == fabric::Fabric::End::Kind::Host});
	};
	for (const fabric::Plan::Link &link : plan.links) {
		add(link.b, link.a);
		add(link.a, link.b);
	}
	return ends;
}

std::vector<std::unique_ptr<LinkFaults>> intercept_links(fabric::Fabric &fabric,
                                                         const LinkContext &context)
{
	std::vector<std::unique_ptr<LinkFaults>> all;
	for (unsigned i = 0; i < fabric.links(); i++) {
		const auto ends = fabric.ends(i);
		all.push_back(std::make_unique<LinkFaults>(context, *ends.a, 2 * i));
		all.push_back(std::make_unique<LinkFaults>(context, *ends.b, 2 * i + 1));
	}
	return all;
}

} // namespace tern::faults
