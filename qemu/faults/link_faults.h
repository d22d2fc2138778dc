/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "qemu/fabric/plan.h"
#include "qemu/faults/injector.h"

namespace tern::faults {

/** An observer is told of each frame that arrives at an end of a link. */
class LinkObserver {
public:
	/** @frame has arrived at @link_end, and these faults are going to happen to it. What of it
	 * stays behind in simulated time (fabric::Frame) may be zeros, or missing. */
	virtual void arrived(unsigned link_end, Bytes frame,
	                     const std::vector<FaultEvent> &events) = 0;

protected:
	~LinkObserver() = default;
};

/** What the LinkFaults of all ends of links share. */
struct LinkContext {
	FaultSet &faults;
	fabric::FramePool &pool;
	LinkObserver &observer;
};

/** Applies faults to the frames that arrive at one port, before the port receives them. */
class LinkFaults final : public fabric::Interceptor {
public:
	/** All references must outlive this. @port is at @link_end of FaultSet::links(). */
	LinkFaults(const LinkContext &context, fabric::Port &port, unsigned link_end)
	        : context_(context), port_(port), link_end_(link_end),
	          injector_(context.faults, no_addresses_)
	{
		port.intercept(*this);
	}

	void arrived(fabric::FramePtr frame) override;

private:
	Bytes whole(const fabric::Frame &frame);
	Injector::Time now() const { return Injector::Time(port_.loop().now()); }
	void release_later();

	const LinkContext context_;
	fabric::Port &port_;
	const unsigned link_end_;
	const AddressTable no_addresses_; /* hosts are known by the addresses in frames alone */
	Injector injector_;
	Injector::Time next_release_ = Injector::Time::max(); /* that has an event */
	std::vector<std::byte> scratch_;
};

/** Returns both ends of each link of @plan. */
std::vector<LinkEnd> link_ends(const fabric::Plan &plan);
/** Makes a LinkFaults for each of the link_ends() of the plan that @fabric was made from. */
std::vector<std::unique_ptr<LinkFaults>> intercept_links(fabric::Fabric &fabric,
                                                         const LinkContext &context);

} // namespace tern::faults
