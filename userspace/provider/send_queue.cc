// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "send_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tern::provider {

namespace {

using namespace tern::hw;

constexpr uint32_t kSegsPerBlock = TERN_SQ_BLOCK / TERN_SEG_SIZE;

constexpr bool is_atomic(tern_hw_wqe_op op)
{
	return op == TERN_OP_CMP_SWAP || op == TERN_OP_FETCH_ADD;
}

constexpr bool is_send(tern_hw_wqe_op op)
{
	return op == TERN_OP_SEND || op == TERN_OP_SEND_IMM;
}

/* Segments before the data. */
constexpr uint32_t header_segs(tern_hw_wqe_op op)
{
	return is_send(op) ? 1 : is_atomic(op) ? 3 : 2;
}

/* Only a request that consumes a RECV can solicit an event. */
constexpr bool can_solicit(tern_hw_wqe_op op)
{
	return is_send(op) || op == TERN_OP_WRITE_IMM;
}

constexpr uint32_t blocks_of(uint32_t segs)
{
	return (segs + kSegsPerBlock - 1) / kSegsPerBlock;
}

InlinePiece piece_of(const ibv_sge &sge)
{
	return {reinterpret_cast<const void *>(sge.addr), sge.length};
}

InlinePiece piece_of(const ibv_data_buf &buf)
{
	return {buf.addr, buf.length};
}

} // namespace

int SendQueue::init(const Config &config)
{
	const size_t blocks = config.ring.size() / TERN_SQ_BLOCK;

	if (!std::has_single_bit(blocks) || config.ring.size() % TERN_SQ_BLOCK ||
	    config.max_sge > TERN_MAX_SEND_SGE || config.max_inline > TERN_MAX_INLINE)
		return EINVAL;
	slots_ = make_owned_array<Slot>(blocks);
	if (!slots_)
		return ENOMEM;
	config_ = config;
	blocks_ = static_cast<uint32_t>(blocks);
	return 0;
}

int SendQueue::build(const SendRequest &request, std::span<const ibv_sge> sges)
{
	if (sges.size() > config_.max_sge)
		return EINVAL;
	if (is_atomic(request.op) && (!config_.atomics || sges.size() != 1))
		return EINVAL;

	/* A piece of no bytes needs no segment, except where the card expects exactly one. */
	const bool keep_empty = is_atomic(request.op);
	uint32_t segs = header_segs(request.op);
	for (const ibv_sge &sge : sges)
		segs += sge.length || keep_empty;
	if (const int err = reserve(segs))
		return err;

	uint32_t at = put_headers(request, request.flags, segs, 0);
	for (const ibv_sge &sge : sges)
		if (sge.length || keep_empty)
			put(at++, tern_hw_data_seg{sge.addr, sge.length, sge.lkey});
	commit(request, segs);
	return 0;
}

int SendQueue::build_inline(const SendRequest &request, std::span<const ibv_sge> pieces)
{
	return build_inline_from(request, pieces);
}

int SendQueue::build_inline(const SendRequest &request, std::span<const ibv_data_buf> pieces)
{
	return build_inline_from(request, pieces);
}

template <class Piece>
int SendQueue::build_inline_from(const SendRequest &request, std::span<const Piece> pieces)
{
	if (is_atomic(request.op) || request.op == TERN_OP_READ)
		return EINVAL;

	uint32_t length = 0;
	for (const Piece &p : pieces) {
		const size_t piece = piece_of(p).length;
		if (piece > config_.max_inline - length)
			return EINVAL;
		length += static_cast<uint32_t>(piece);
	}

	const uint32_t data_segs = (length + TERN_SEG_SIZE - 1) / TERN_SEG_SIZE;
	const uint32_t segs = header_segs(request.op) + data_segs;
	if (const int err = reserve(segs))
		return err;

	const uint32_t at = put_headers(request, request.flags | TERN_WQE_INLINE, segs, length);
	uint32_t offset = at * TERN_SEG_SIZE;
	for (const Piece &p : pieces) {
		const InlinePiece piece = piece_of(p);
		put_bytes(offset, piece.addr, piece.length);
		offset += static_cast<uint32_t>(piece.length);
	}
	static constexpr std::byte kZero[TERN_SEG_SIZE] = {};
	put_bytes(offset, kZero, data_segs * TERN_SEG_SIZE - length);
	commit(request, segs);
	return 0;
}

/* Whether a WQE of @segs segments fits now. */
int SendQueue::reserve(uint32_t segs) const
{
	/* Acquire: complete() has read the slots that we are about to write. */
	const uint32_t used = next_ - ci_.load(std::memory_order_acquire);
	return blocks_of(segs) > blocks_ - used ? ENOMEM : 0;
}

/* Writes the segments before the data and returns the number of the next, free-running. */
uint32_t SendQueue::put_headers(const SendRequest &request, uint8_t flags, uint32_t segs,
                                uint32_t inline_len)
{
	const bool imm = request.op == TERN_OP_SEND_IMM || request.op == TERN_OP_WRITE_IMM;
	uint32_t at = next_ * kSegsPerBlock;

	if (config_.signal_all)
		flags |= TERN_WQE_SIGNALED;
	if (!can_solicit(request.op))
		flags &= ~TERN_WQE_SOLICITED;
	put(at++, tern_hw_ctrl_seg{.opcode = static_cast<uint8_t>(request.op),
	                           .flags = flags,
	                           .segs = static_cast<uint8_t>(segs),
	                           .rsvd0 = 0,
	                           .imm = imm ? request.imm : __be32{},
	                           .inline_len = inline_len,
	                           .srqn = {}});
	if (!is_send(request.op))
		put(at++, tern_hw_raddr_seg{request.remote_addr, request.rkey, {}});
	if (is_atomic(request.op))
		put(at++, tern_hw_atomic_seg{request.swap_add,
		                             request.op == TERN_OP_CMP_SWAP ? request.compare : 0});
	return at;
}

/* The ring is a whole number of segments, so none of them is torn by its end. */
template <class Segment>
void SendQueue::put(uint32_t seg, const Segment &segment)
{
	static_assert(sizeof(segment) == TERN_SEG_SIZE);
	seg &= blocks_ * kSegsPerBlock - 1;
	std::memcpy(config_.ring.data() + size_t{seg} * TERN_SEG_SIZE, &segment, sizeof(segment));
}

/* Inline data may go over the end of the ring at any byte. */
void SendQueue::put_bytes(uint32_t offset, const void *data, size_t length)
{
	const size_t at = offset & (config_.ring.size() - 1);
	const size_t head = std::min(length, config_.ring.size() - at);

	if (head)
		std::memcpy(config_.ring.data() + at, data, head);
	if (length > head)
		std::memcpy(config_.ring.data(), static_cast<const std::byte *>(data) + head,
		            length - head);
}

void SendQueue::commit(const SendRequest &request, uint32_t segs)
{
	const uint32_t end = next_ + blocks_of(segs);

	slots_[next_ & (blocks_ - 1)] = {request.wr_id, end};
	next_ = end;
}

void SendQueue::publish()
{
	const uint32_t old_pi = pi_;

	if (next_ == old_pi)
		return;
	pi_ = next_;
	if (!config_.shadow_doorbell || config_.record.publish_sq(old_pi, pi_))
		config_.doorbells.ring_sq(config_.qpn, pi_);
}

void SendQueue::reset()
{
	next_ = 0;
	pi_ = 0;
	ci_.store(0, std::memory_order_relaxed);
}

} // namespace tern::provider
