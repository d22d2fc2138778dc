/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "qemu/sim/host.h"
#include "qemu/sim/scenario.h"

namespace tern::sim {

/** Two connected QPs, and a program at one of them that sends messages to the other. */
class Flow {
public:
	/** All references must outlive this. @loop is the event loop of @from. @udp_sport chooses
	 * among equal paths. */
	Flow(EventLoop &loop, Host &from, Host &to, const Scenario::Flow &spec, uint64_t mtu,
	     uint16_t udp_sport);

	/** Sends from now on. */
	void start();
	/** A completion of either QP. */
	void completed(const hw::tern_hw_cqe &cqe);

	const Scenario::Flow spec;
	Host &from;
	Host &to;
	uint64_t wire_bytes = 0;         /* in frames with its data that have arrived */
	uint64_t cnps = 0;               /* that have arrived at the sender */
	uint64_t messages = 0;           /* completed */
	uint8_t error = 0;               /* enum tern_hw_wc_status; it has ended if not 0 */
	std::vector<uint64_t> latencies; /* ns of each message, from when it was due */

private:
	void connect(uint64_t mtu, uint16_t udp_sport);
	void prepare_request(uint16_t udp_sport);
	void tick();
	void post();
	bool may_post() const;
	void post_recv();

	EventLoop &loop_;
	std::unique_ptr<test::HostQp> near_;
	std::unique_ptr<test::HostQp> far_;
	test::SendRequest request_;
	uint64_t posted_ = 0;
	uint64_t due_ = 0;               /* messages that the rate has asked for */
	RingBuffer<uint64_t> waiting_;   /* when those not yet posted were due */
	RingBuffer<uint64_t> under_way_; /* ... and those posted */
};

} // namespace tern::sim
