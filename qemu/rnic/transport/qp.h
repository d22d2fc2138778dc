/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "qemu/rnic/chores.h"
#include "qemu/rnic/command_status.h"
#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/memory/region.h"
#include "qemu/rnic/queues/send_queue.h"
#include "qemu/rnic/timers.h"
#include "qemu/rnic/transport/attached_counters.h"
#include "qemu/rnic/transport/data_path.h"
#include "qemu/rnic/transport/page_waits.h"
#include "qemu/rnic/transport/qp_config.h"
#include "qemu/rnic/transport/qp_rates.h"
#include "qemu/rnic/transport/qp_side.h"
#include "qemu/rnic/transport/recv_claims.h"
#include "tern/tern_hw.h"

namespace tern {

class FrameSink;
class Json;

/** A queue pair of any service: its queues, state, page faults and rate limit. As a sender it has
 * packets to send, as a chore WQEs to flush. */
class Qp : public Sender, public Chore {
public:
	Qp(DataPath &data, const QpConfig &config, SendQueue sq, RecvQueue rq);
	virtual ~Qp() = default;
	Qp(const Qp &) = delete;
	Qp &operator=(const Qp &) = delete;

	uint32_t number = 0;
	/** Gives the QP its number and writes its record, which a CREATE_QP that fails must not
	 * touch. */
	void begin(uint32_t qpn);
	const QpConfig &config() const { return config_; }
	hw::tern_hw_qp_state state() const { return state_; }

	/** The counters of what happens to this QP; null: none of its own. */
	StatsSet *stats_set() const { return stats_set_; }
	void bind(StatsSet *set) { stats_set_ = set; }

	/** From now on @counter counts the operations @ops (TERN_COMP_*). Returns false if one of
	 * them has a counter already. */
	bool attach(CompletionCounter &counter, uint32_t ops);
	/** The QP is being destroyed: detaches its completion counters. */
	void detach_counters();

	/** Send doorbell. */
	void ring(uint32_t pi);
	/** Receives a packet. Returns false if it is not of this QP's service. */
	virtual bool deliver(const Packet &packet) = 0;
	/** Receives a burst as a unit. Returns how many of its packets, from the first on, were
	 * processed; the caller delivers the others one by one. */
	virtual uint32_t deliver_burst(const Packet &) { return 0; }
	/** Receives a congestion notification packet. */
	virtual void deliver_cnp(const Packet &) { data_.stats.add(hw::TERN_STAT_RP_CNP_IGNORED); }
	/** Fails the QP as a fault of the card would. Returns false in RESET and ERR, where nothing
	 * can fail. */
	bool inject_error();
	/** Limits requests and READ responses to @rate, kb/s, until a reset. 0: no limit. */
	void inject_rate(uint32_t rate);
	/** Congestion control is another now: all flows begin anew. */
	virtual void forget_congestion() { rates_.forget_congestion(); }
	bool transmit(unsigned &budget) final
	{
		const Stats::Scope scope(data_.stats, stats_set_);
		return take_turn(budget);
	}
	/** A deadline of set_timer() has passed. */
	void expire(uint64_t now);
	/** In ERR and SQE: flushes what is posted. */
	bool work(unsigned &budget) final;
	/** In SQE: flushes the send WQEs that were posted before the error, up to @budget; returns
	 * whether all are flushed. */
	bool flush_failed_sends(unsigned &budget);
	/** Whether MODIFY_QP can be executed in this state. */
	virtual CommandStatus check(const hw::tern_hw_modify_qp &cmd) const = 0;
	/** MODIFY_QP, which check() allows. */
	virtual void modify(const hw::tern_hw_modify_qp &cmd) = 0;
	virtual void query(hw::tern_hw_qp_attr &attr) const = 0;
	/** To RESET. The windows bound through the QP remain, see Memory::release_windows(). */
	virtual void reset() = 0;

	/** QUERY_FAULT: tells the host which pages this QP waits for. */
	void query_faults(hw::tern_hw_faults &faults)
	{
		page_waits_.query(faults);
		page_waits_.set_reported();
	}
	/** RESUME_QP. */
	void resume(hw::tern_hw_resume requester, hw::tern_hw_resume responder);

	/** The receiver that flows can name; null if they may not name this QP. */
	virtual FrameSink *frame_sink() { return nullptr; }

	/** SRQ @srqn is being destroyed: drops a claimed WQE of it. */
	void forget_srq(uint32_t srqn) { recv_.forget_srq(srqn); }

	/** The QP is being destroyed: drops the cached tables of its queues. */
	void forget_tables();

	/** Ends messages in progress that have matched a tag, as flushed. */
	virtual void release_tags();

	/** Writes the state that explains what the QP does or waits for. */
	virtual void describe(Json &to) const;

	Timer timer;
	TimerOwner timer_owner() const
	{
		return {config_.is_wq ? TimerOwner::Kind::Wq : TimerOwner::Kind::Qp, number};
	}

	/** db_page of a QP without queues. */
	static constexpr uint32_t kNoPage = UINT32_MAX;

protected:
	void set_state(hw::tern_hw_qp_state to)
	{
		data_.ports.observer.state_changed(number, state_, to);
		state_ = to;
	}
	/** Makes the QP expire at @deadline (ns) or earlier. */
	void set_timer(uint64_t deadline)
	{
		if (deadline < timer.deadline)
			data_.timers.move(timer_owner(), timer, deadline);
	}
	/** As Sender::transmit(). */
	virtual bool take_turn(unsigned &budget) = 0;
	/** The timer has expired in a state other than ERR. The implementation must set the timer
	 * again for deadlines that have not passed yet. */
	virtual void on_timer(uint64_t now) = 0;
	/** A queue or CQ cannot be used: raises the event and enters ERR. */
	void fatal();
	/** To ERR: everything posted, now or later, is flushed. */
	virtual void enter_error() = 0;
	/** The QP has entered ERR. */
	void start_flush();
	/** The send queue has failed, and the QP has entered SQE. */
	void start_send_flush();
	/** In ERR: completes outstanding requests as flushed, oldest first, up to @budget. Returns
	 * whether none is left. */
	virtual bool flush_requests(unsigned &) { return true; }
	/** Whether WQEs posted to the send queue are flushed. */
	bool flushes_sends() const
	{
		return state_ == hw::TERN_QPS_ERR || state_ == hw::TERN_QPS_SQE;
	}
	/** For access by peers. */
	Memory::Target target() const { return {config_.pdn, number}; }

	/* Pages on demand: an operation that gets Access::NeedPages stops, and the host is
	 * notified. */
	using Side = QpSide;
	/** The last access of @side must be repeated after the host has resumed the QP. Has no
	 * effect in ERR. */
	void wait_for_pages(Side side);
	bool waits_for_pages(Side side) const { return page_waits_.waits(side); }
	/** The host has provided the pages (@ok), or cannot. */
	virtual void resume_requester(bool ok) = 0;
	virtual void resume_responder(bool ok) = 0;

	/* The rate limit applies to the send queue; responses are not limited. Congestion control
	 * and an injected rate limit both. */
	void set_rate_limit(const hw::tern_hw_rate_limit &limit);
	const hw::tern_hw_rate_limit &rate_limit() const { return rates_.limit(); }
	bool rate_limited() const { return rates_.limits_requests(data_.ports.clock.now()); }
	bool slowed() const
	{
		return !rates_.none() && rates_.limits_responses(data_.ports.clock.now());
	}
	/** Whether the next frame must wait; if so, the QP is scheduled when it may be sent. */
	bool paced() { return !rates_.none() && wait_for_rate(Side::Requester); }
	/** As above, for a READ response. */
	bool response_paced() { return !rates_.none() && wait_for_rate(Side::Responder); }
	/** Whether the next frame will have to wait after one of @size bytes. */
	bool paced_after(size_t size) const
	{
		return !rates_.none() && rates_.exhausted_by(data_.ports.clock.now(), size);
	}
	/** Charges a sent frame of @size bytes to the rates. */
	void pace(size_t size) { spend_rate(Side::Requester, size); }
	void pace_response(size_t size) { spend_rate(Side::Responder, size); }
	/** What controls the rate, from now on. Congestion control must not be off. */
	RateControl &rate_control()
	{
		return rates_.control(data_.congestion, data_.config.link_speed_mbps);
	}

	/** Whether a WQE is in the send queue; if not, requests a doorbell for the next. If the
	 * record is broken, the QP fails. */
	bool send_posted();
	/** Copies bytes [@offset, @offset + to.size()) of the data of @wqe. */
	Access gather_send(const SendWqe &wqe, uint64_t offset, std::span<std::byte> to);
	/** Finds the host memory of @size such bytes; false if they must be copied. */
	bool locate_send(const SendWqe &wqe, uint64_t offset, size_t size, HostRanges &ranges);
	/** Executes an operation on this card's keys. */
	hw::tern_hw_cqe_status execute_local(const SendWqe &wqe);
	/** A request of @op (TERN_COMP_*) has ended; counts it if the QP has a counter for it. If
	 * the value cannot be written, the QP fails. */
	void count(uint32_t op, bool success, uint64_t bytes)
	{
		if (counts(op) && !counters_->count(data_.memory.host(), op, success, bytes))
			fatal();
	}
	/** Whether the QP has a counter for @op. */
	bool counts(uint32_t op) const { return counters_ && counters_->has(op); }
	/** Ends a send WQE that succeeds without a completion. */
	void end_silently(uint8_t opcode, uint32_t bytes) { count_send(opcode, true, bytes); }
	/** Ends a send WQE with a completion; if the CQ cannot take it, the QP fails. */
	void complete_send(uint32_t wqe_index, uint8_t opcode, hw::tern_hw_cqe_status status,
	                   uint32_t byte_len);

	/** Completes the claimed receive WQE with @cqe, in which what was claimed is filled in. */
	void complete_recv(hw::tern_hw_cqe cqe, bool solicited);
	/** As above, with an error or as flushed, which is counted. */
	void complete_recv_error(bool solicited, hw::tern_hw_cqe_status status);
	/** Writes a CQE for entry @entry of the tag list, which is not claimed. */
	void complete_tag(uint32_t entry, const TagReport &report, uint32_t byte_len,
	                  bool solicited);
	/** Resets both queues and all state of this class. */
	void reset_queues();

	DataPath &data_;
	QpConfig config_;
	SendQueue sq_;
	hw::tern_hw_qp_state state_ = hw::TERN_QPS_RESET;
	RecvClaims recv_;
	PageWaits page_waits_;

private:
	void count_send(uint8_t opcode, bool success, uint64_t bytes);
	bool wait_for_rate(Side side);
	void spend_rate(Side side, size_t size)
	{
		if (!rates_.none())
			rates_.sent(side, data_.ports.clock.now(), size);
	}
	void report_faults();
	/** These flush up to @budget WQEs and return whether none is left. */
	bool flush_send(unsigned &budget);
	bool flush_recv(unsigned &budget);
	void flush_next_send();
	void complete(uint32_t cqn, hw::tern_hw_cqe &cqe, bool solicited);

	StatsSet *stats_set_ = nullptr;
	std::unique_ptr<AttachedCounters> counters_; /* null if none was ever attached */
	bool last_wqe_reported_ = false;
	uint32_t failed_sends_end_ = 0; /* in SQE: end of the WQEs posted before the error */
	uint64_t flush_interval_ = 0;   /* ns; in ERR, the interval of flushing later posts */
	QpRates rates_;
	uint64_t resume_at_ = UINT64_MAX;       /* ns; a turn ended because of a rate */
	uint8_t failure_ = hw::TERN_WC_SUCCESS; /* of the first CQE with an error but flushed */
};

} // namespace tern
