/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/transport/qp.h"
#include "qemu/rnic/transport/qp_attr.h"

namespace tern {

/**
 * A QP of an InfiniBand service: its attributes and state machine (IBA vol. 1, 10.3.1), which all
 * services share. Derived classes implement the protocols.
 */
class IbQp : public Qp {
public:
	CommandStatus check(const hw::tern_hw_modify_qp &cmd) const final;
	void modify(const hw::tern_hw_modify_qp &cmd) final;
	void query(hw::tern_hw_qp_attr &attr) const override;
	void reset() final;
	void describe(Json &to) const override;

protected:
	using Qp::Qp;

	void on_timer(uint64_t now) final;

	/* Actions of a service's protocol on state transitions. */

	/** INIT to RTR. */
	virtual void start_receiver() = 0;
	/** RTR to RTS. */
	virtual void start_sender() = 0;
	/** To RESET: drops all protocol state. */
	virtual void stop() = 0;
	/** To ERR: nothing is sent or received for outstanding requests any more;
	 * flush_requests() completes them. */
	virtual void abandon_requests() {}
	/** Whether no request is outstanding. */
	virtual bool sender_idle() const = 0;
	/** Called when the host moves the QP to ERR or RESET or destroys it. Acknowledges the
	 * executed requests and drops the READ data that was not sent yet. */
	virtual void end_responses() {}
	/** A deadline has passed in a state that sends. */
	virtual void on_deadline(uint64_t) {}
	/** Applies the attributes selected by @mask, which were validated. */
	virtual void apply(uint32_t mask, const hw::tern_hw_qp_attr &attr);

	/** Whether packets are received: RTR and later (IBA 10.3.1). */
	bool receives() const
	{
		return state_ == hw::TERN_QPS_RTR || state_ == hw::TERN_QPS_RTS ||
		       state_ == hw::TERN_QPS_SQD || state_ == hw::TERN_QPS_SQE;
	}
	/** Whether responses are received and outstanding requests continue. */
	bool sends() const { return state_ == hw::TERN_QPS_RTS || state_ == hw::TERN_QPS_SQD; }

	void enter_error() override;
	/** Completes the claimed receive WQE with @status and moves the QP to ERR (IBA 10.3.1.7).
	 */
	void fail_recv(bool solicited, hw::tern_hw_cqe_status status);
	/** Receiving by an unreliable service: fails the QP, completes the claimed WQE with an
	 * error or waits for pages, as @result demands. Returns whether it is Done. */
	bool act_on(RecvResult result, bool solicited);
	void resume_responder(bool ok) override;
	/** A send of an unreliable service failed: to SQE, in which only the receive queue
	 * works. */
	void enter_send_error();
	/** Raises SQ_DRAINED if the QP drains and the last outstanding request has completed. */
	void check_drained();

	hw::tern_hw_qp_attr attr_{};

private:
	CommandStatus check_address(const hw::tern_hw_qp_attr &attr) const;
	void enter(hw::tern_hw_qp_state to);

	bool draining_ = false;
};

} // namespace tern
