/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "qemu/rnic/chores.h"
#include "qemu/rnic/config.h"
#include "qemu/rnic/congestion/parameters.h"
#include "qemu/rnic/environment.h"
#include "qemu/rnic/falsifier.h"
#include "qemu/rnic/formats/pause.h"
#include "qemu/rnic/memory/counted_memory.h"
#include "qemu/rnic/memory/region.h"
#include "qemu/rnic/network/gid_table.h"
#include "qemu/rnic/network/multicast.h"
#include "qemu/rnic/network/scheduler.h"
#include "qemu/rnic/network/transmitter.h"
#include "qemu/rnic/object_table.h"
#include "qemu/rnic/queues/completion_queue.h"
#include "qemu/rnic/queues/event_queue.h"
#include "qemu/rnic/queues/shared_recv_queue.h"
#include "qemu/rnic/queues/wqe.h"
#include "qemu/rnic/stats.h"
#include "qemu/rnic/timers.h"

namespace tern {

/** What the QPs of an engine use while they send and receive. QPs work with this alone; admin
 * commands, registers and the dispatch of received frames are in what contains it. */
struct DataPath {
	DataPath(const CardConfig &config, const Ports &ports);
	DataPath(const DataPath &) = delete;
	DataPath &operator=(const DataPath &) = delete;

	/** Writes @cqe and raises the event if one is due. Returns false if the CQ cannot be
	 * used. */
	bool complete(uint32_t cqn, const hw::tern_hw_cqe &cqe, bool solicited);
	/** Raises the event of @cq, or sets its timer, as @outcome says. */
	void notify(uint32_t cqn, CompletionQueue &cq, CompletionQueue::Outcome outcome);
	/** Takes a WQE from SRQ @srqn and raises the events that this causes. */
	SharedRecvQueue::Take take_shared(uint32_t srqn, uint32_t &slot);
	/** A slot of SRQ @srqn could not be read: the SRQ fails. */
	void fail_srq(uint32_t srqn);
	/** Executes tag operations posted to @srq, up to @budget. Returns true if there are more.
	 */
	bool run_tag_ops(uint32_t srqn, SharedRecvQueue &srq, unsigned &budget);
	/** Raises SRQ_LIMIT if @srq has reached its limit. */
	void check_srq_limit(uint32_t srqn, SharedRecvQueue &srq);
	/** Raises an asynchronous event on the EQ of vector 0. If there is none, the event waits
	 * until there is one; only LINK is dropped, because the register LINK has its state. */
	void raise_event(hw::tern_hw_event type, uint32_t id);
	/** There is an EQ of vector 0 now: raises the events that have waited for it. */
	void raise_pending_events();
	/** Drops pending events of a destroyed object, because its number may be reused. */
	void drop_events(std::span<const hw::tern_hw_event> events, uint32_t id);
	/** An address vector with the source @source; the caller adds the destination. */
	AddressVector source_address(const GidEntry &source) const;
	/** Obeys a pause frame (802.1Qbb): stops the priorities that it pauses for the given times,
	 * and resumes those with a time of zero. Ignores priorities without PFC. */
	void pause(const PauseTimes &times);
	/** The pause of @priority is over. */
	void resume(unsigned priority);
	/** A frame, or a doorbell, is dropped: counts @reason. */
	void drop(hw::tern_hw_stat reason, uint32_t qpn);
	/** Stops the card until the next reset. */
	void stop(hw::tern_hw_fatal reason);

	/** Whether QPs react to CNPs, and what they send says so (ECT). */
	bool takes_cnps() const { return congestion.algorithm() == CongestionAlgorithm::Dcqcn; }
	/** Whether QPs react to round-trip times. */
	bool takes_rtts() const { return congestion.algorithm() == CongestionAlgorithm::Timely; }

	EventQueue::Host event_host()
	{
		return {dma, memory.tables(), ports.interrupts, stats, falsifier, ports.observer};
	}
	EventQueue *eq_of_vector(uint32_t vector) const;

	/** A copy of @cqe, of CQ @cqn, that the falsifier has changed. */
	hw::tern_hw_cqe falsified(uint32_t cqn, hw::tern_hw_cqe cqe);

	const CardConfig config;
	Ports ports;
	Stats stats;
	Falsifier falsifier;
	CountedMemory dma;
	Memory memory;
	CongestionParameters congestion;
	GidTable gids;
	MulticastGroups groups;
	Scheduler scheduler;
	Transmitter out;
	Chores chores;
	TimerQueue timers;
	std::array<Timer, kPriorities> pause_timers;
	ObjectTable<EventQueue> eqs;
	PendingEvents pending_events; /* of vector 0 while it has no EQ */
	ObjectTable<CompletionQueue> cqs;
	ObjectTable<SharedRecvQueue> srqs;
	hw::tern_hw_fatal fatal = hw::TERN_FATAL_NONE;

	/*
	 * The decoded WQEs, one of each kind, shared by all QPs because a decoded WQE is large and
	 * one QP works at a time.
	 *
	 * scratch_send: a requester notes in its loaded_ which of its WQEs is here. loaded_ is
	 * valid only within one call from outside (transmit, receive, resume), because other QPs
	 * use scratch_send between the calls: each such call begins by clearing it. Within a call
	 * only load() and the functions that start a request write scratch_send, and they update
	 * loaded_; the flush, which writes it too, runs in ERR and SQE, where no request is left
	 * to load. Code that needs the WQE of a request calls load() first and keeps no reference
	 * past the call.
	 *
	 * scratch_recv: written by RecvClaims for each packet and used for that packet only.
	 */
	SendWqe scratch_send;
	RecvWqe scratch_recv;
};

} // namespace tern
