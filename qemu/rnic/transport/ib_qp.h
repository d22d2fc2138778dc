/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/transport/qp.h"
#include "qemu/rnic/transport/qp_attr.h"

namespace tern {

/**
 * A QP of an InfiniBand service: its attributes and its state machine (IBA vol. 1, 10.3.1), which
 * all services have in common. The protocol of each is in what derives from this.
 */
class IbQp : public Qp {
public:
	hw::tern_hw_aq_status modify(uint32_t mask, const hw::tern_hw_qp_attr &attr) final;
	void query(hw::tern_hw_qp_attr &attr) const override;

protected:
	using Qp::Qp;

	void on_timer(uint64_t now) final;

	/* What the states mean to the protocol of a service. */

	/** INIT to RTR. */
	virtual void start_receiver() = 0;
	/** RTR to RTS. */
	virtual void start_sender() = 0;
	/** To RESET: forgets all that is under way. */
	virtual void stop() = 0;
	/** To ERR: completes the requests under way as flushed, oldest first. */
	virtual void flush_requests() = 0;
	/** No request is under way. */
	virtual bool sender_idle() const = 0;
	/** To ERR on behalf of the host: drops the responses that wait to be sent. */
	virtual void abandon_responses() {}
	/** A deadline has passed in a state that sends. */
	virtual void on_deadline(uint64_t) {}
	/** Takes over the attributes that @mask names, which were checked. */
	virtual void apply(uint32_t mask, const hw::tern_hw_qp_attr &attr);

	/** Whether packets from peers are taken: RTR and later (IBA 10.3.1). */
	bool receives() const
	{
		return state_ == hw::TERN_QPS_RTR || state_ == hw::TERN_QPS_RTS ||
		       state_ == hw::TERN_QPS_SQD || state_ == hw::TERN_QPS_SQE;
	}
	/** Whether responses are taken and requests under way go on. */
	bool sends() const { return state_ == hw::TERN_QPS_RTS || state_ == hw::TERN_QPS_SQD; }
	/** Whether what is posted to the send queue is flushed at once. */
	bool flushes_sends() const
	{
		return state_ == hw::TERN_QPS_ERR || state_ == hw::TERN_QPS_SQE;
	}

	void enter_error() override;
	/** A send of an unreliable service failed: to SQE, where only the receive queue goes on. */
	void enter_send_error();
	/** Tells when SQD was asked for and the last request under way has ended. */
	void check_drained();

	hw::tern_hw_qp_attr attr_{};

private:
	hw::tern_hw_aq_status check(uint32_t mask, const hw::tern_hw_qp_attr &attr) const;
	void enter(hw::tern_hw_qp_state to);
	void reset();
	void schedule_flush();

	bool draining_ = false;
	uint64_t flush_interval_ = 0; /* ns; in ERR, how often the receive queue is looked at */
};

} // namespace tern
