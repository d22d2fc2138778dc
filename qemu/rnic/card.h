/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "qemu/rnic/control/admin_queue.h"
#include "qemu/rnic/control/object_table.h"
#include "qemu/rnic/control/registers.h"
#include "qemu/rnic/formats/gid.h"
#include "qemu/rnic/memory/counted_memory.h"
#include "qemu/rnic/memory/region.h"
#include "qemu/rnic/port/gid_table.h"
#include "qemu/rnic/port/port.h"
#include "qemu/rnic/port/receive_wq.h"
#include "qemu/rnic/ports.h"
#include "qemu/rnic/queues/completion_queue.h"
#include "qemu/rnic/queues/event_queue.h"
#include "qemu/rnic/queues/shared_recv_queue.h"
#include "qemu/rnic/queues/wqe.h"
#include "qemu/rnic/rnic.h"
#include "qemu/rnic/stats.h"
#include "qemu/rnic/timers.h"
#include "qemu/rnic/transport/qp.h"
#include "tern/tern_hw.h"

namespace tern {

struct ProtectionDomain {
	uint32_t users = 0; /* QPs and SRQs */
};

struct XrcDomain {
	uint32_t users = 0; /* SRQs and QPs */
};

/* Limits reported by QUERY_DEVICE. */
inline constexpr uint32_t kMaxQps = 1u << 17;
inline constexpr uint32_t kGsiQpn = 1; /* IBA 3.9.3 */
inline constexpr uint32_t kMaxCqs = 1u << 17;
inline constexpr uint32_t kMaxRegions = (1u << hw::TERN_ENGINE_SHIFT) - 1;
inline constexpr uint32_t kMaxPds = 1u << 16;
inline constexpr uint32_t kMaxSrqs = 1u << 16;
inline constexpr uint32_t kMaxWqs = 1u << 16;
inline constexpr uint32_t kMaxWqTables = 1u << 12;
inline constexpr uint32_t kMaxXrcds = 1u << 16;
inline constexpr uint32_t kMaxGids = 128;
inline constexpr uint32_t kMaxMessage = 1u << 30;
inline constexpr uint8_t kMaxLogSq = 18;
inline constexpr uint8_t kMaxLogRq = 16;
inline constexpr uint8_t kMaxLogSrq = 16;
inline constexpr uint32_t kMaxTagQueues = 1u << 12;
inline constexpr uint8_t kMaxLogTags = 10;
inline constexpr uint8_t kMaxLogTagOps = 10;
inline constexpr uint8_t kMaxLogCq = 22;
inline constexpr uint8_t kMaxLogEq = 16;
inline constexpr uint8_t kMaxRdAtomic = 16;
inline constexpr uint8_t kAckDelay = 15;

/** All state of one card between two resets. */
struct Card {
	Card(const Rnic::Config &config, const Ports &ports, bool link_up);

	/** Writes @cqe and raises the event if one is due. Returns false if the CQ cannot be
	 * used. */
	bool complete(uint32_t cqn, const hw::tern_hw_cqe &cqe, bool solicited);
	/** Raises the event of @cq, or sets its timer, as @outcome says. */
	void notify(uint32_t cqn, CompletionQueue &cq, CompletionQueue::Outcome outcome);
	/** Takes a WQE from SRQ @srqn and raises the events that this causes. */
	SharedRecvQueue::Take take_shared(uint32_t srqn, uint32_t &slot);
	/** A slot of SRQ @srqn could not be read: the SRQ fails. */
	void fail_srq(uint32_t srqn);
	/** Executes the tag operations posted to @srq. */
	void run_tag_ops(uint32_t srqn, SharedRecvQueue &srq);
	/** Raises SRQ_LIMIT if @srq has reached its limit. */
	void check_srq_limit(uint32_t srqn, SharedRecvQueue &srq);
	/** Raises an asynchronous event on the EQ of vector 0; dropped if there is none. */
	void raise_event(hw::tern_hw_event type, uint32_t id);
	/** Drops pending events of a destroyed object, because its number may be reused. */
	void drop_events(std::span<const hw::tern_hw_event> events, uint32_t id);
	/** An address vector with the source @source; the caller adds the destination. */
	AddressVector source_address(const GidEntry &source) const;
	/** Makes @qp expire at @deadline (ns) or earlier. */
	void set_timer(Qp &qp, uint64_t deadline);
	/** @qp is being destroyed. */
	void drop_timer(Qp &qp);
	void drop_timer(uint32_t cqn, CompletionQueue &cq);
	void run_timers(uint64_t now);
	/** Stops the card until the next reset. */
	void stop(hw::tern_hw_fatal reason);

	EventQueue::Host event_host() { return {dma, memory.tables(), ports.interrupts, stats}; }
	EventQueue *eq_of_vector(uint32_t vector) const;

	Rnic::Config config;
	Ports ports;
	Stats stats;
	Registers regs;
	CountedMemory dma;
	Memory memory;
	Port port;
	TimerQueue timers;
	AdminQueue admin;

	ObjectTable<EventQueue> eqs;
	ObjectTable<ProtectionDomain> pds;
	ObjectTable<CompletionQueue> cqs;
	ObjectTable<XrcDomain> xrcds;
	ObjectTable<SharedRecvQueue> srqs;
	uint32_t tag_queues = 0; /* SRQs with a tag list, which takes memory */
	ObjectTable<ReceiveWq> wqs;
	ObjectTable<WqTable> wq_tables;
	ObjectTable<Qp> qps;
	ObjectTable<FlowCounters> flow_counters;
	GidTable gids;

	bool link_up;
	bool enabled = false;
	hw::tern_hw_fatal fatal = hw::TERN_FATAL_NONE;

	/* One decoded WQE of each kind at a time: QPs take turns. */
	SendWqe scratch_send;
	RecvWqe scratch_recv;

private:
	void expire_moderation(uint32_t cqn);
};

} // namespace tern
