// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datapath/send_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "datapath/probes.h"

namespace tern::provider {

namespace {

using namespace tern::hw;

constexpr uint32_t kSegsPerBlock = TERN_SQ_BLOCK / TERN_SEG_SIZE;
constexpr uint32_t kAtomicSize = 8;

constexpr bool is_atomic(tern_hw_wqe_op op)
{
	return op == TERN_OP_CMP_SWAP || op == TERN_OP_FETCH_ADD;
}

/*
 * The length of the data segment for @sge. An atomic returns 8 bytes: of a longer buffer it uses
 * the first 8, as with other providers; of a shorter one the card completes it with an error.
 */
uint32_t segment_length(tern_hw_wqe_op op, const ibv_sge &sge)
{
	return is_atomic(op) ? std::min(sge.length, kAtomicSize) : sge.length;
}

/* Whether the card expects exactly one data segment. */
constexpr bool takes_one_segment(tern_hw_wqe_op op)
{
	return is_atomic(op) || op == TERN_OP_ATOMIC_WRITE;
}

constexpr bool is_send(tern_hw_wqe_op op)
{
	return op == TERN_OP_SEND || op == TERN_OP_SEND_IMM || op == TERN_OP_SEND_INV;
}

/* Whether the payload can be inline. */
constexpr bool can_inline(tern_hw_wqe_op op)
{
	return is_transfer(op) && op != TERN_OP_READ && !is_atomic(op);
}

/* Whether the control segment carries immediate data or a key. */
constexpr bool has_imm(tern_hw_wqe_op op)
{
	return op == TERN_OP_SEND_IMM || op == TERN_OP_WRITE_IMM || op == TERN_OP_SEND_INV ||
	       op == TERN_OP_LOCAL_INV;
}

/* Whether the request consumes a RECV, so that it can solicit an event. */
constexpr bool can_solicit(tern_hw_wqe_op op)
{
	return is_send(op) || op == TERN_OP_WRITE_IMM;
}

template <class Segment>
constexpr uint32_t kSegs = sizeof(Segment) / TERN_SEG_SIZE;

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
	slots_ = make_owned_array<Slot>(blocks, ArrayType::kSendRequests, config.allocator);
	if (!slots_)
		return ENOMEM;
	config_ = config;
	blocks_ = static_cast<uint32_t>(blocks);
	return 0;
}

/* The number of segments before the data. */
uint32_t SendQueue::header_segs(tern_hw_wqe_op op) const
{
	constexpr uint32_t ctrl = kSegs<tern_hw_ctrl_seg>;

	if (config_.service == Service::kUd)
		return ctrl + kSegs<tern_hw_ud_seg>;
	if (op == TERN_OP_BIND_MW)
		return ctrl + kSegs<tern_hw_bind_seg>;
	if (is_send(op) || op == TERN_OP_LOCAL_INV)
		return ctrl;
	static_assert(kSegs<tern_hw_flush_seg> == kSegs<tern_hw_atomic_seg>);
	const bool third = is_atomic(op) || op == TERN_OP_FLUSH;
	return ctrl + kSegs<tern_hw_raddr_seg> + (third ? kSegs<tern_hw_atomic_seg> : 0);
}

int SendQueue::build(const SendRequest &request, std::span<const ibv_sge> sges)
{
	if (!config_.ops.has(request.op))
		return EINVAL;
	/* ENOMEM, as other providers return for too many SGEs. */
	if (sges.size() > config_.max_sge)
		return ENOMEM;
	if (takes_one_segment(request.op) && sges.size() != 1)
		return EINVAL;
	if (!is_transfer(request.op) && !sges.empty())
		return EINVAL;

	/* SGEs of length 0 get a segment only where the card expects exactly one. */
	const bool keep_empty = takes_one_segment(request.op);
	uint32_t segs = header_segs(request.op);
	for (const ibv_sge &sge : sges)
		segs += sge.length || keep_empty;
	if (const int err = reserve(segs))
		return err;

	uint32_t at = put_headers(request, request.flags, segs, 0);
	for (const ibv_sge &sge : sges)
		if (sge.length || keep_empty)
			at = put(at, tern_hw_data_seg{sge.addr, segment_length(request.op, sge),
			                              sge.lkey});
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
	if (!config_.ops.has(request.op) || !can_inline(request.op))
		return EINVAL;

	/* ATOMIC_WRITE does not need max_inline: each WQE has room for its data. */
	const uint32_t room = request.op == TERN_OP_ATOMIC_WRITE ? kAtomicSize : config_.max_inline;
	uint32_t length = 0;
	for (const Piece &p : pieces) {
		const size_t piece = piece_of(p).length;
		if (piece > room - length)
			return ENOMEM;
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

/*
 * Whether a WQE of @segs segments fits now. Returns 0 or ENOMEM. Also limits the number of
 * requests, as the ring has room for max_wr of the largest size and for more of others: a program
 * sizes its CQ by max_wr.
 */
int SendQueue::reserve(uint32_t segs) const
{
	/* Acquire: complete() has read the slots that the new WQE overwrites. */
	const Position used = next_ - completed_.load(std::memory_order_acquire);
	const bool fits =
	        blocks_of(segs) <= blocks_ - block_of(used) && used / kRequest < config_.max_wr;

	return fits ? 0 : ENOMEM;
}

namespace {

/* Without destination yet: zero. */
tern_hw_ud_seg ud_seg(const SendRequest &request)
{
	tern_hw_ud_seg seg = request.address ? *request.address : tern_hw_ud_seg{};

	seg.dest_qpn = request.dest_qpn & TERN_DB_NUM_MASK;
	seg.qkey = request.qkey;
	return seg;
}

tern_hw_bind_seg bind_seg(const SendRequest &request)
{
	return {.addr = request.remote_addr,
	        .length = request.bind_length,
	        .rkey = request.rkey,
	        .lkey = request.bind_lkey,
	        .access = request.bind_access,
	        .rsvd = {}};
}

tern_hw_atomic_seg atomic_seg(const SendRequest &request)
{
	return {request.swap_add, request.op == TERN_OP_CMP_SWAP ? request.compare : 0};
}

tern_hw_flush_seg flush_seg(const SendRequest &request)
{
	return {.length = request.flush_length,
	        .type = request.flush_type,
	        .level = request.flush_level,
	        .rsvd = {}};
}

} // namespace

/* Writes the segments before the data. Returns the free-running index of the next segment. */
uint32_t SendQueue::put_headers(const SendRequest &request, uint8_t flags, uint32_t segs,
                                uint32_t inline_len)
{
	uint32_t at = block_of(next_) * kSegsPerBlock;

	if (config_.signal_all)
		flags |= TERN_WQE_SIGNALED;
	if (!can_solicit(request.op))
		flags &= ~TERN_WQE_SOLICITED;
	at = put(at, tern_hw_ctrl_seg{.opcode = static_cast<uint8_t>(request.op),
	                              .flags = flags,
	                              .segs = static_cast<uint8_t>(segs),
	                              .rsvd0 = 0,
	                              .imm = has_imm(request.op) ? request.imm : __be32{},
	                              .inline_len = inline_len,
	                              .srqn = request.srqn});
	if (config_.service == Service::kUd)
		return put(at, ud_seg(request));
	if (request.op == TERN_OP_BIND_MW)
		return put(at, bind_seg(request));
	if (is_send(request.op) || request.op == TERN_OP_LOCAL_INV)
		return at;
	at = put(at, tern_hw_raddr_seg{request.remote_addr, request.rkey, {}});
	if (request.op == TERN_OP_FLUSH)
		return put(at, flush_seg(request));
	return is_atomic(request.op) ? put(at, atomic_seg(request)) : at;
}

/*
 * Writes @segment at the free-running index @seg and returns the index after it. The copy never
 * wraps: the ring is a whole number of blocks, and headers lie in the first block of their WQE.
 */
template <class Segment>
uint32_t SendQueue::put(uint32_t seg, const Segment &segment)
{
	static_assert(sizeof(segment) % TERN_SEG_SIZE == 0);
	const uint32_t at = seg & (blocks_ * kSegsPerBlock - 1);

	std::memcpy(config_.ring.data() + size_t{at} * TERN_SEG_SIZE, &segment, sizeof(segment));
	return seg + kSegs<Segment>;
}

/* Copies inline data, which may wrap at the end of the ring. */
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
	last_ = block_of(next_);
	next_ += kRequest + blocks_of(segs);
	slots_[last_ & (blocks_ - 1)] = {request.wr_id, next_};
}

void SendQueue::set_destination(const SendRequest &request)
{
	if (config_.service == Service::kUd) {
		put(last_ * kSegsPerBlock + kSegs<tern_hw_ctrl_seg>, ud_seg(request));
		return;
	}
	const uint32_t block = last_ & (blocks_ - 1);
	const __le32 srqn = request.srqn;
	std::memcpy(config_.ring.data() + size_t{block} * TERN_SQ_BLOCK +
	                    offsetof(tern_hw_ctrl_seg, srqn),
	            &srqn, sizeof(srqn));
}

void SendQueue::publish()
{
	const uint32_t old_pi = block_of(published_);
	const uint32_t pi = block_of(next_);

	if (pi == old_pi)
		return;
	/* Before the card can complete them. */
	if (tern_post_semaphore) [[unlikely]]
		report_posts();
	published_ = next_;
	const bool rings = !config_.shadow_doorbell || config_.record.publish_sq(old_pi, pi);
	if (rings)
		config_.doorbells.ring_sq(config_.qpn, pi);
	if (tern_doorbell_semaphore) [[unlikely]]
		probes::doorbell(config_.device, config_.qpn, pi, rings);
}

/* Tells observers of the WQEs built since the last publish(). */
void SendQueue::report_posts() const
{
	for (uint32_t at = block_of(published_); at != block_of(next_);
	     at = block_of(slots_[at & (blocks_ - 1)].end)) {
		tern_hw_ctrl_seg ctrl;
		const uint32_t block = at & (blocks_ - 1);

		std::memcpy(&ctrl, config_.ring.data() + size_t{block} * TERN_SQ_BLOCK,
		            sizeof(ctrl));
		probes::post(config_.device, config_.qpn, ctrl.opcode, ctrl.flags,
		             data_bytes(block, ctrl), at);
	}
}

/* The bytes of local data of the WQE that begins at @block of the ring. */
uint64_t SendQueue::data_bytes(uint32_t block, const tern_hw_ctrl_seg &ctrl) const
{
	const uint32_t first = block * kSegsPerBlock;
	uint64_t bytes = 0;

	if (ctrl.flags & TERN_WQE_INLINE)
		return ctrl.inline_len.get();
	for (uint32_t i = header_segs(static_cast<tern_hw_wqe_op>(ctrl.opcode)); i < ctrl.segs;
	     i++) {
		tern_hw_data_seg seg;
		const uint32_t at = (first + i) & (blocks_ * kSegsPerBlock - 1);

		std::memcpy(&seg, config_.ring.data() + size_t{at} * TERN_SEG_SIZE, sizeof(seg));
		bytes += seg.length.get();
	}
	return bytes;
}

void SendQueue::reset()
{
	last_ = 0;
	next_ = 0;
	published_ = 0;
	completed_.store(0, std::memory_order_relaxed);
}

} // namespace tern::provider
