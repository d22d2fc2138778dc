/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/memory/region.h"
#include "qemu/rnic/queues/recv_queue.h"
#include "qemu/rnic/queues/send_queue.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;

/** What CREATE_QP says, checked. */
struct QpConfig {
	uint32_t pdn = 0;
	uint32_t send_cqn = 0;
	uint32_t recv_cqn = 0;
	uint32_t db_page = 0;
	bool signal_all = false;
};

/** A queue pair of any service: its queues, its state, its place in the port's schedule. */
class Qp {
public:
	Qp(Card &card, const QpConfig &config, SendQueue sq, RecvQueue rq);
	virtual ~Qp() = default;
	Qp(const Qp &) = delete;
	Qp &operator=(const Qp &) = delete;

	uint32_t number = 0;
	const QpConfig &config() const { return config_; }
	hw::tern_hw_qp_state state() const { return state_; }

	/** The send doorbell. */
	void ring(uint32_t pi);
	/** Sends until there is nothing to send now (false), the wire is full or @budget packets
	 * are gone (true). */
	virtual bool transmit(unsigned &budget) = 0;
	/** A packet for this QP arrived. False when it is none of this QP's service. */
	virtual bool deliver(const Packet &packet) = 0;
	/** A deadline set by Card::set_timer() has passed. */
	virtual void on_timer(uint64_t now) = 0;
	/** MODIFY_QP, in whole or not at all. */
	virtual hw::tern_hw_aq_status modify(uint32_t mask, const hw::tern_hw_qp_attr &attr) = 0;
	virtual void query(hw::tern_hw_qp_attr &attr) const = 0;

	/* Book-keeping of Port (the list of QPs with something to send) and of Card (timers). */
	Qp *active_prev = nullptr;
	Qp *active_next = nullptr;
	bool active = false;
	uint64_t timer_queued = kNoTimer; /* deadline of its entry in the TimerQueue */

	static constexpr uint64_t kNoTimer = UINT64_MAX;

protected:
	/** A queue or a CQ cannot be used: to the error state, with the event. */
	void fatal();
	/** To ERR: everything posted and to be posted is flushed. */
	virtual void enter_error() = 0;
	Memory::Domain domain() const;
	/** Flushes the receive queue; true when there was something in it. */
	bool flush_recv();
	/** Flushes the send WQEs that were not started. */
	void flush_send();
	/** Writes a completion; a CQ that cannot take it is fatal to this QP. */
	void complete_send(uint32_t wqe_index, uint8_t opcode, hw::tern_hw_cqe_status status,
	                   uint32_t byte_len);
	void complete_recv(hw::tern_hw_cqe cqe, bool solicited);

	Card &card_;
	QpConfig config_;
	SendQueue sq_;
	RecvQueue rq_;
	hw::tern_hw_qp_state state_ = hw::TERN_QPS_RESET;

private:
	void complete(uint32_t cqn, const hw::tern_hw_cqe &cqe, bool solicited);
};

} // namespace tern
