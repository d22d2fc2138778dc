/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/memory/region.h"
#include "qemu/rnic/queues/recv_queue.h"
#include "qemu/rnic/queues/send_queue.h"
#include "qemu/rnic/timers.h"
#include "qemu/rnic/transport/pacer.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;
class FrameSink;
class TagList;

/** What CREATE_QP says, checked. */
struct QpConfig {
	hw::tern_hw_qp_type type = hw::TERN_QPT_RC;
	uint32_t pdn = 0;
	uint32_t send_cqn = 0;
	uint32_t recv_cqn = 0;
	uint32_t db_page = 0;
	uint32_t xrcdn = 0; /* XRC_TGT */
	uint32_t srqn = 0;  /* 0: it has a receive queue of its own, or none */
	bool signal_all = false;
	bool no_mc_loopback = false;
	bool is_wq = false;    /* a WQ, which is no QP to the host */
	uint32_t wq_table = 0; /* of CREATE_RSS_QP */
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
	/** A burst for this QP arrived. How many of its packets, from the first on, are dealt with
	 * thereby; the others are to be delivered. */
	virtual uint32_t deliver_burst(const Packet &) { return 0; }
	/** A deadline set by Card::set_timer() has passed. */
	void expire(uint64_t now);
	/** MODIFY_QP, in whole or not at all. */
	virtual hw::tern_hw_aq_status modify(uint32_t mask, const hw::tern_hw_qp_attr &attr) = 0;
	virtual void query(hw::tern_hw_qp_attr &attr) const = 0;

	/** QUERY_FAULT: the pages that this QP waits for. */
	void query_faults(hw::tern_hw_faults &faults) const;
	/** RESUME_QP. */
	void resume(hw::tern_hw_resume requester, hw::tern_hw_resume responder);

	/** What flows may name; null when they may not. */
	virtual FrameSink *frame_sink() { return nullptr; }

	/** SRQ @srqn goes away: a message that has taken a WQE of it has none any more. */
	void forget_srq(uint32_t srqn);

	/** The messages under way that have matched a tag end, flushed. */
	virtual void release_tags();

	/** Frees the windows that are bound through this QP. */
	void release_windows();

	/* Book-keeping of Port (the list of QPs with something to send) and of Card (timers). */
	Qp *active_prev = nullptr;
	Qp *active_next = nullptr;
	bool active = false;
	Timer timer;
	TimerOwner timer_owner() const
	{
		return {config_.is_wq ? TimerOwner::Kind::Wq : TimerOwner::Kind::Qp, number};
	}

	/** The doorbell page of a QP without queues. */
	static constexpr uint32_t kNoPage = UINT32_MAX;

protected:
	/** A deadline has passed; others may not have, and are set anew. */
	virtual void on_timer(uint64_t now) = 0;
	/** A queue or a CQ cannot be used: to the error state, with the event. */
	void fatal();
	/** To ERR: everything posted and to be posted is flushed. */
	virtual void enter_error() = 0;
	Memory::Domain domain() const;
	/** What peers reach memory through. */
	Memory::Target target() const { return {config_.pdn, number}; }

	/* Pages on demand: what meets Access::NeedPages stops, and the host is told. */
	enum class Side : uint8_t { Requester, Responder };
	/** The access of @side that was just made has to be made again later. In ERR there is no
	 * later. */
	void wait_for_pages(Side side);
	bool waits_for_pages(Side side) const
	{
		return faults_[static_cast<size_t>(side)].has_value();
	}
	/** No side waits any more. */
	void forget_faults();
	void forget_fault(Side side) { faults_[static_cast<size_t>(side)].reset(); }
	/** The host has brought the pages (@ok), or cannot. */
	virtual void resume_requester(bool ok) = 0;
	virtual void resume_responder(bool ok) = 0;

	/* The rate limit is of what comes from the send queue; responses go at once. */
	void set_rate_limit(const hw::tern_hw_rate_limit &limit);
	const hw::tern_hw_rate_limit &rate_limit() const { return pacer_.limit(); }
	bool rate_limited() const { return pacer_.limited(); }
	/** The next frame has to wait; the QP gets a turn when it need not any more. */
	bool paced() { return pacer_.limited() && wait_for_rate(); }
	/** After a frame of @size bytes the next will have to wait. */
	bool paced_after(size_t size) const;
	/** A frame of @size bytes has gone. */
	void pace(size_t size)
	{
		if (pacer_.limited())
			spend_rate(size);
	}

	/** Whether a WQE waits in the send queue; when not, the host rings for the next. */
	bool send_posted();
	/** Copies bytes [@offset, @offset + to.size()) of what @wqe sends. */
	Access gather_send(const SendWqe &wqe, uint64_t offset, std::span<std::byte> to);
	/** Where they are instead, @size of them; false when they have to be copied. */
	bool locate_send(const SendWqe &wqe, uint64_t offset, size_t size, HostRanges &ranges);
	/** Carries out a work request on keys of this card. */
	hw::tern_hw_cqe_status execute_local(const SendWqe &wqe);
	/** Flushes the send WQEs that were not started. */
	void flush_send();
	/** Writes a completion; a CQ that cannot take it is fatal to this QP. */
	void complete_send(uint32_t wqe_index, uint8_t opcode, hw::tern_hw_cqe_status status,
	                   uint32_t byte_len);

	/* Receiving: a message claims a WQE, may load it once for each of its packets, and
	 * completes it. One is claimed at a time. */
	enum class Claim : uint8_t {
		Done,
		Empty,
		Failed, /* the queue cannot be used; the QP is in ERR */
	};
	/** Takes the next receive WQE, unless one is claimed already. */
	Claim claim_recv() { return claim_recv(config_.srqn); }
	/** As above, from SRQ @srqn; 0: the queue of its own. */
	Claim claim_recv(uint32_t srqn);
	bool has_claim() const { return claimed_.has_value(); }

	/** What an SRQ that matches tags tells of a message besides. */
	struct TagReport {
		uint8_t opcode = hw::TERN_CQE_RECV; /* enum tern_hw_cqe_op */
		uint8_t flags = 0;                  /* TERN_CQE_TAG_* */
		uint64_t tag = 0;
		uint32_t app_ctx = 0;
		hw::tern_hw_cqe_status status = hw::TERN_WC_SUCCESS; /* if all goes well */

		bool listed() const { return opcode == hw::TERN_CQE_TAG_RECV; }
		void add_to(hw::tern_hw_cqe &cqe) const;
	};
	/** The list of the SRQ; null when it has none, or cannot be used. */
	TagList *tags() const;
	/** The message takes entry @entry of the list, which it has matched. @header: bytes at its
	 * beginning that are not for the buffer. */
	void claim_tagged(uint32_t entry, const TagReport &report, size_t header);
	/** The claimed WQE is completed like this. */
	void report_claim(const TagReport &report) { claimed_->report = report; }
	size_t claim_header() const { return claimed_->header; }
	/** Tells of an entry that no message has claimed now; with TERN_CQE_TAG_DATA it is free. */
	void complete_tag(uint32_t entry, const TagReport &report, uint32_t byte_len,
	                  bool solicited);
	/** Whose buffers an SRQ has. */
	Memory::Domain recv_domain(uint32_t srqn) const;

	/** The buffers of the claimed WQE need pages. */
	bool claim_needs_pages() const { return claimed_ && claimed_->needs_pages; }
	/** Reads the claimed WQE; a fault is fatal to this QP. */
	Fetch load_recv(RecvWqe &wqe);
	/** Puts @data into the buffers of the claimed WQE. */
	Access scatter_recv(const RecvWqe &wqe, uint64_t offset, const Payload &data);
	/** Completes the claimed WQE; its index is filled in. */
	void complete_recv(hw::tern_hw_cqe cqe, bool solicited);
	/** Receive WQEs that messages can take, the claimed one among them; nothing when others
	 * take them too. */
	std::optional<uint32_t> recv_credits();
	/** Flushes the claimed WQE and the receive queue; true when there was something. */
	bool flush_recv();

	/** Both queues as they were when the QP was made. */
	void reset_queues();

	Card &card_;
	QpConfig config_;
	SendQueue sq_;
	hw::tern_hw_qp_state state_ = hw::TERN_QPS_RESET;

private:
	bool wait_for_rate();
	void spend_rate(size_t size);
	bool end_fault(Side side, hw::tern_hw_resume how);
	void tell_faults();
	Claim claim_shared(uint32_t srqn);
	void flush_claimed();
	void complete(uint32_t cqn, hw::tern_hw_cqe &cqe, bool solicited);

	/** A receive WQE, or an entry of the list of tags, that a message has taken. */
	struct Claimed {
		uint32_t srqn; /* 0: of our own receive queue */
		uint32_t index;
		bool needs_pages = false;
		TagReport report{};
		size_t header = 0;
	};

	RecvQueue rq_;
	std::optional<Claimed> claimed_;
	bool last_wqe_told_ = false;
	bool bound_windows_ = false; /* some window may be bound through us */
	Pacer pacer_;
	bool pacing_ = false; /* a turn ended for the rate limit */

	std::array<std::optional<PageFault>, 2> faults_; /* by Side */
	bool faults_told_ = false; /* PAGE_FAULT was raised, RESUME_QP did not follow yet */
};

} // namespace tern
