/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "qemu/rnic/ring_buffer.h"
#include "qemu/sim/host.h"
#include "qemu/sim/scenario.h"

namespace tern::sim {

class Flow;

/** The flows of a card that send one message each in turn, as an all-to-all exchange does. When a
 * message has completed, the next flow posts one. */
class Rotation {
public:
	void add(Flow &flow) { flows_.push_back(&flow); }
	/** Posts as many messages as one flow may have outstanding. Further calls do nothing. */
	void start();
	/** Has the next flow that may post a message post one, if any flow may. */
	void post();

private:
	std::vector<Flow *> flows_;
	size_t next_ = 0;
	bool started_ = false;
};

/** Two connected QPs, and a program at one of them that sends messages to the other. */
class Flow {
public:
	/** All references must outlive this, and so must @rotation, which may be null. @loop is
	 * the event loop of @from. @udp_sport chooses among equal paths. */
	Flow(EventLoop &loop, Host &from, Host &to, const Scenario::Flow &spec, uint64_t mtu,
	     uint16_t udp_sport, Rotation *rotation);

	/** Sends from now on. */
	void start();
	/** Posts a message if the flow may send one now. Returns whether it did. */
	bool post_one();
	/** A completion of either QP. */
	void completed(const hw::tern_hw_cqe &cqe);
	/** Returns the bytes on the wire of the data frames that have reached the receiver. */
	uint64_t wire_bytes() const;
	/** Returns how many congestion notifications have reached the sender. */
	uint64_t cnps() const;
	/** Restarts the counts of messages, latencies and CNPs at the end of the warm-up. */
	void end_warmup();
	/** As cnps(), since the warm-up. */
	uint64_t measured_cnps() const { return cnps() - warmup_cnps_; }

	const Scenario::Flow spec;
	Host &from;
	Host &to;
	uint64_t messages = 0;           /* completed since the warm-up */
	uint8_t error = 0;               /* enum tern_hw_wc_status; it has ended if not 0 */
	std::vector<uint64_t> latencies; /* ns of each message, from when it was due */

private:
	bool reads() const { return spec.operation == Operation::Read; }
	void connect(uint64_t mtu, uint16_t udp_sport);
	void prepare_request(uint16_t udp_sport);
	void tick();
	bool add();
	void publish();
	void post_all();
	void post_next();
	bool may_post() const;
	void post_recv();

	EventLoop &loop_;
	Rotation *const rotation_;
	std::unique_ptr<test::HostQp> near_;
	std::unique_ptr<test::HostQp> far_;
	test::SendRequest request_;
	uint64_t warmup_cnps_ = 0;
	uint64_t posted_ = 0;
	uint64_t due_ = 0;               /* messages that the rate has asked for */
	uint64_t began_ = 0;             /* when the first of these was due */
	RingBuffer<uint64_t> waiting_;   /* when those not yet posted were due */
	RingBuffer<uint64_t> under_way_; /* ... and those posted */
};

} // namespace tern::sim
