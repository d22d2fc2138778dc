// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datapath/completion_queue.h"

#include <atomic>
#include <bit>
#include <cerrno>

#include "datapath/barrier.h"
#include "datapath/probes.h"
#include "datapath/recv_queue.h"
#include "datapath/send_queue.h"
#include "datapath/shared_recv_queue.h"
#include "datapath/tag_queue.h"

namespace tern::provider {

using namespace tern::hw;

namespace {

constexpr uint8_t kRecvOpcode = 0x80; /* set in the opcode of every receive completion */

/* The last eight bytes of a CQE, which the card writes last and with a single store. */
std::atomic_ref<uint64_t> tail_word(tern_hw_cqe *cqe)
{
	static_assert(sizeof(tern_hw_cqe) - offsetof(tern_hw_cqe, qpn) == sizeof(uint64_t));
	return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t *>(&cqe->qpn));
}

/*
 * The SL of a received datagram. RoCE has no SL; as with mlx5, and as UCX requires, the field holds
 * the packet's type. Bit 3: UDP; bits 2:0: header is a GRH (0), IPv6 (1) or IPv4 (2).
 */
uint8_t packet_type(uint8_t net_type)
{
	switch (net_type) {
	case TERN_NET_IPV4:
		return 0xa;
	case TERN_NET_IPV6:
		return 0x9;
	default:
		return 0;
	}
}

} // namespace

struct CompletionQueue::Tail {
	__le32 qpn_word;
	uint8_t opcode;
	uint8_t status;
	uint8_t flags;
	uint8_t phase;

	uint32_t qpn() const { return qpn_word.get() & TERN_DB_NUM_MASK; }
	bool is_recv() const { return opcode & kRecvOpcode; }
	/* then qpn() is a WQ number */
	bool is_of_wq() const { return is_recv() && flags & TERN_CQE_WQ; }
	bool is_tagged() const { return opcode == TERN_CQE_TAG_RECV; }
	bool is_tag_op() const { return opcode >= TERN_CQE_TAG_ADD && opcode <= TERN_CQE_TAG_SYNC; }
};

int CompletionQueue::init(const Config &config)
{
	config_ = config;
	return move(config.buffer);
}

int CompletionQueue::move(const Buffer &buffer)
{
	const size_t entries = buffer.ring.size() / sizeof(tern_hw_cqe);

	if (!std::has_single_bit(entries) || buffer.ring.size() % sizeof(tern_hw_cqe))
		return EINVAL;
	config_.buffer = buffer;
	entries_ = static_cast<uint32_t>(entries);
	return 0;
}

tern_hw_cqe *CompletionQueue::slot(uint32_t index) const
{
	return reinterpret_cast<tern_hw_cqe *>(config_.buffer.ring.data()) +
	       (index & (entries_ - 1));
}

/*
 * Reads the tail of CQE @index. Returns whether the card has written that CQE in this pass over
 * the ring: the phase bit is 1 in the first pass and alternates. The card stores the tail after the
 * rest of the CQE, so reads of the rest must follow this load.
 */
bool CompletionQueue::read_tail(uint32_t index, Tail &tail) const
{
	tail = std::bit_cast<Tail>(tail_word(slot(index)).load(std::memory_order_relaxed));
	from_card_barrier();
	const uint8_t expected = index & entries_ ? 0 : TERN_PHASE;
	return (tail.phase & TERN_PHASE) == expected;
}

bool CompletionQueue::next(Completion &completion)
{
	Tail tail;

	while (read_tail(ci_, tail)) {
		const tern_hw_cqe &cqe = *slot(ci_++);
		if (resolve(cqe, tail, completion))
			return true;
	}
	return false;
}

bool CompletionQueue::resolve(const tern_hw_cqe &cqe, const Tail &tail,
                              Completion &completion) const
{
	if (!find_request(cqe, tail, completion.wr_id))
		return false;
	completion.timestamp = cqe.timestamp.get();
	completion.tag = cqe.tag.get();
	completion.app_ctx = cqe.app_ctx.get();
	completion.qpn = tail.qpn();
	completion.byte_len = cqe.byte_len.get();
	completion.src_qpn = cqe.src_qpn.get();
	completion.imm = cqe.imm;
	completion.vlan = cqe.vlan.get();
	completion.opcode = tail.opcode;
	completion.status = tail.status;
	completion.flags = tail.flags;
	completion.sl = packet_type(cqe.net_type);
	if (tern_complete_semaphore) [[unlikely]]
		probes::complete(config_.device, config_.cqn, completion.qpn, completion.opcode,
		                 completion.flags, completion.status, completion.byte_len,
		                 cqe.wqe_index.get());
	return true;
}

/* Completes the request of @cqe on its queue. False if that queue is destroyed. */
bool CompletionQueue::find_request(const tern_hw_cqe &cqe, const Tail &tail, uint64_t &wr_id) const
{
	const uint32_t qpn = tail.qpn();
	const uint32_t index = cqe.wqe_index.get();
	const auto complete = [&](auto *queue) {
		if (queue)
			wr_id = queue->complete(index);
		return queue != nullptr;
	};

	if (!tail.is_recv())
		return complete(config_.qps->find<SendQueue>(qpn, this));
	if (tail.is_of_wq())
		return complete(config_.wqs->find<RecvQueue>(qpn, this));
	if (tail.is_tagged() || tail.is_tag_op())
		return find_tagged(cqe, tail, wr_id);
	if (cqe.srqn.get()) {
		SharedRecvQueue *srq = srq_of(cqe, qpn);
		/* The number of a QP that is being destroyed may be another's, of other CQs. */
		if (!srq)
			free_slot(cqe);
		return complete(srq);
	}
	return complete(config_.qps->find<RecvQueue>(qpn, this));
}

/* find_request() for tag operations and for tagged buffers that received a message. */
bool CompletionQueue::find_tagged(const tern_hw_cqe &cqe, const Tail &tail, uint64_t &wr_id) const
{
	const uint32_t index = cqe.wqe_index.get();
	auto *queue = config_.srqs->find<TagQueue>(cqe.srqn.get(), this);

	if (!queue)
		return false;
	wr_id = tail.is_tagged() ? queue->receive(index, tail.flags & TERN_CQE_TAG_DATA)
	                         : queue->complete(index, tail.status == TERN_WC_SUCCESS);
	return true;
}

/*
 * The SRQ that @cqe names if it has no CQ of its own. It is found through its QP, as it can
 * complete to many CQs and lives longer than its QPs. Null for another SRQ, and for a destroyed QP.
 */
SharedRecvQueue *CompletionQueue::plain_srq_of(const tern_hw_cqe &cqe, uint32_t qpn) const
{
	auto *srq = config_.qps->find<SharedRecvQueue>(qpn, this);
	const auto *named = config_.plain_srqs->find<SharedRecvQueue>(cqe.srqn.get(), nullptr);

	return srq == named ? srq : nullptr;
}

/*
 * SRQs of type XRC and TM complete to their own CQ and are found by SRQ number, as an XRC QP may
 * belong to another process. The other SRQs come first: one of them may have the number of an SRQ
 * that the driver has destroyed and that waits in ibv_destroy_srq() for acknowledged events.
 */
SharedRecvQueue *CompletionQueue::srq_of(const tern_hw_cqe &cqe, uint32_t qpn) const
{
	if (auto *srq = plain_srq_of(cqe, qpn))
		return srq;
	return config_.srqs->find<SharedRecvQueue>(cqe.srqn.get(), this);
}

/*
 * Frees the slot that a receive CQE of a destroyed QP names. By the number in the CQE, as the QP's
 * number may be that of a new QP, with another SRQ or none.
 */
void CompletionQueue::free_slot(const tern_hw_cqe &cqe) const
{
	if (auto *srq = config_.plain_srqs->find<SharedRecvQueue>(cqe.srqn.get(), nullptr))
		srq->complete(cqe.wqe_index.get());
}

void CompletionQueue::release()
{
	if (released_ != ci_) {
		released_ = ci_;
		config_.buffer.record.publish(ci_);
	}
	/* Forget indices behind ci_: they would come to lie before it again, after 2^32 CQEs. */
	armed_ = armed_ && is_ahead(armed_from_);
	moved_ = moved_ && is_ahead(moved_last_);
}

/*
 * The card raises the event at once if a CQE exists at or after the given index. The event of an
 * earlier request is for the first CQE at or after the index of that request. So ask for CQEs after
 * that one, as mlx5 does by the index of its last event. Then no event is raised twice for a CQE,
 * which perftest's latency tests would count as two completions. And none is lost, however many
 * CQEs the program polls for each event, and whether it arms before it polls or after. (UCX arms
 * and sleeps, without a poll between.)
 *
 * With moderation the card may not have raised that event yet, and a later index would end it. So
 * a moderated CQ is always armed from the first CQE that is not polled.
 */
void CompletionQueue::arm(bool solicited_only)
{
	Tail tail;
	uint32_t from = ci_;

	if (armed_ && !moderated_ && is_ahead(armed_from_))
		from = armed_from_ + read_tail(armed_from_, tail);
	/* For a request for solicited CQEs, which CQE raised its event is not known. */
	armed_ = !solicited_only;
	armed_from_ = from;
	/* The card knows the last solicited CQE by the index at which it wrote the CQE. */
	if (moved_ && is_ahead(moved_last_))
		solicited_only = false;
	config_.doorbells.arm_cq(config_.cqn, solicited_only, from);
}

/*
 * Removes the unpolled CQEs that @match accepts, so that they take no room: moves those that stay
 * together, to the newest places, and advances the consumer index. Each place keeps its phase bit.
 * The card may write more meanwhile: it writes at its producer index only, and reads CQEs only for
 * RESIZE_CQ, under the same lock. Completions that next() returned are copies, so this is possible
 * within a poll, too.
 *
 * An index that the card was armed with stays good, as the card compares it with its producer
 * index, which does not change.
 */
template <class Match>
void CompletionQueue::drop_if(Match match)
{
	Tail tail;
	uint32_t end = ci_, dropped = 0;

	while (end - ci_ < entries_ && read_tail(end, tail))
		end++;
	for (uint32_t i = end; i-- != ci_;) {
		read_tail(i, tail);
		if (match(*slot(i), tail)) {
			dropped++;
		} else if (dropped) {
			tern_hw_cqe cqe = *slot(i);
			cqe.phase = slot(i + dropped)->phase;
			*slot(i + dropped) = cqe;
			moved_ = true;
			moved_last_ = end - 1;
		}
	}
	if (!dropped)
		return;
	ci_ += dropped;
	release();
}

void CompletionQueue::drop_qp(uint32_t qpn)
{
	drop_if([&](const tern_hw_cqe &cqe, const Tail &tail) {
		const uint32_t srqn = cqe.srqn.get();

		if (tail.qpn() != qpn || tail.is_of_wq())
			return false;
		if (tail.is_recv() && srqn) {
			/* CQEs of an SRQ with its own CQ stay valid after the QP. */
			if (!plain_srq_of(cqe, qpn) &&
			    config_.srqs->find<SharedRecvQueue>(srqn, this))
				return false;
			free_slot(cqe);
		}
		return true;
	});
}

void CompletionQueue::drop_wq(uint32_t wqn)
{
	drop_if([&](const tern_hw_cqe &, const Tail &tail) {
		return tail.is_of_wq() && tail.qpn() == wqn;
	});
}

void CompletionQueue::drop_srq(uint32_t srqn)
{
	drop_if([&](const tern_hw_cqe &cqe, const Tail &tail) {
		return tail.is_recv() && cqe.srqn.get() == srqn && !plain_srq_of(cqe, tail.qpn());
	});
}

} // namespace tern::provider
