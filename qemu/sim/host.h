/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "qemu/fabric/topology.h"
#include "qemu/rnic/congestion/parameters.h"
#include "qemu/rnic/rnic.h"
#include "qemu/sim/memory.h"
#include "qemu/sim/scenario.h"
#include "tests/support/host.h"

namespace tern::sim {

class Flow;

/** A card at the fabric, with a driver and a program that posts for its flows. */
class Host final : public fabric::PortOwner, private Wire, private Interrupts {
public:
	/** @queue_entries: completions that may be outstanding; @qps: at most so many. */
	Host(EventLoop &loop, fabric::Fabric &fabric, unsigned number, size_t queue_entries,
	     size_t qps, uint64_t link_rate, const CongestionParameters &congestion);

	std::unique_ptr<test::HostQp> create_qp(test::QpOptions options);
	/** What has arrived for a QP. */
	struct Arrivals {
		uint64_t bytes = 0; /* on the wire, of all but congestion notifications */
		uint64_t cnps = 0;  /* congestion notifications */
	};

	/** QP @number belongs to @flow. */
	void add_flow(uint32_t number, Flow &flow);
	const Arrivals &arrivals(uint32_t qpn) const { return roles_[qpn].arrivals; }
	/** Prefetches what the card and its program use first. Call this shortly before the card's
	 * events, if many other cards have run since. */
	void prefetch() const;
	/** The card may have work. */
	void wake();
	fabric::Port &port() { return fabric_.host_port(number); }
	/** A region with all payload, of any right. */
	Sge payload(uint32_t length) const { return {0, length, region_}; }
	uint32_t region() const { return region_; }

	const unsigned number;
	const Mac mac;
	const Gid gid;
	uint64_t received = 0; /* frames */
	uint64_t cnps = 0;     /* of these congestion notifications */

private:
	/* The flow belongs to the sender. The counters are here because the receiver updates them,
	 * and this line is in the cache while the receiver runs. */
	struct Role {
		Flow *flow = nullptr;
		Arrivals arrivals;
	};

	void arrived(fabric::Port &port, fabric::FramePtr frame) override;
	void sending(fabric::Port &, fabric::Frame &) override {}
	void departed(fabric::Port &port, const fabric::Frame &frame) override;
	bool transmit(std::span<const std::byte> frame) override;
	Lend lend(std::span<const std::byte> head, std::span<const HostRange> payload,
	          uint32_t segment, const Loan &loan) override;
	bool has_room(uint8_t priority, size_t size);
	Destination full() const override { return full_; }
	void raise(unsigned /* vector */) override {}
	void count(const fabric::Frame &frame);
	void receive(const fabric::Frame &frame);
	void run_at(uint64_t when);
	void schedule();
	void run();
	void poll();
	uint32_t create_region();

	static constexpr uint64_t kNever = UINT64_MAX;

	EventLoop &loop_;
	fabric::Fabric &fabric_;
	Memory memory_;
	Rnic card_;
	test::Driver driver_;
	uint32_t pd_ = 0;
	uint32_t region_ = 0;
	std::unique_ptr<test::HostCq> cq_;
	std::vector<Role> roles_; /* by QPN */
	fabric::FrameList inbox_; /* arrived since the last run */
	uint64_t next_run_ = kNever;
	std::vector<uint64_t> events_; /* the times of scheduled events, the earliest last */
	Destination full_ = 0;
	uint8_t waiting_ = 0; /* priorities whose senders the card has parked */
	uint8_t ready_ = 0;   /* ... and which have room again */
};

} // namespace tern::sim
