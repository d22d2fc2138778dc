// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/queues/wqe.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "qemu/rnic/all_zero.h"
#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/tcp.h"

namespace tern {

using namespace hw;

namespace {

constexpr uint8_t kKnownFlags =
        TERN_WQE_SIGNALED | TERN_WQE_SOLICITED | TERN_WQE_FENCE | TERN_WQE_INLINE;
constexpr uint32_t kMaxSrqn = 0xffffff;

/** Reads the segments of a WQE in order, never past its end. */
class Segments {
public:
	Segments(std::span<const std::byte> raw) : raw_(raw) {}

	template <typename Seg>
	bool take(Seg &seg)
	{
		static_assert(sizeof(Seg) % TERN_SEG_SIZE == 0);
		if (left() < sizeof(Seg))
			return false;
		std::memcpy(&seg, raw_.data() + at_, sizeof(Seg));
		at_ += sizeof(Seg);
		return true;
	}
	size_t offset() const { return at_; }
	size_t left() const { return raw_.size() - at_; }

private:
	std::span<const std::byte> raw_;
	size_t at_ = 0;
};

constexpr uint32_t bits(auto... opcodes)
{
	return (0 | ... | (1u << opcodes));
}

/* The operations of each service (IBA 9.8, 10.8.4). */
constexpr uint32_t opcodes_of(tern_hw_qp_type type)
{
	constexpr uint32_t kUnreliable =
	        bits(TERN_OP_SEND, TERN_OP_SEND_IMM, TERN_OP_WRITE, TERN_OP_WRITE_IMM);
	constexpr uint32_t kReliable =
	        kUnreliable | bits(TERN_OP_READ, TERN_OP_CMP_SWAP, TERN_OP_FETCH_ADD,
	                           TERN_OP_SEND_INV, TERN_OP_LOCAL_INV, TERN_OP_BIND_MW,
	                           TERN_OP_REG_MR, TERN_OP_ATOMIC_WRITE, TERN_OP_FLUSH);
	switch (type) {
	case TERN_QPT_RC:
		return kReliable | bits(TERN_OP_MASKED_CMP_SWAP, TERN_OP_MASKED_FETCH_ADD);
	case TERN_QPT_XRC_INI:
		return kReliable;
	case TERN_QPT_UC:
		return kUnreliable | bits(TERN_OP_BIND_MW);
	case TERN_QPT_UD:
	case TERN_QPT_GSI:
		return bits(TERN_OP_SEND, TERN_OP_SEND_IMM);
	case TERN_QPT_ETH:
	case TERN_QPT_RAW:
		return bits(TERN_OP_SEND);
	default:
		return 0;
	}
}

bool takes_opcode(tern_hw_qp_type type, uint8_t opcode)
{
	return opcode < 32 && (opcodes_of(type) & 1u << opcode);
}

bool takes_remote_address(uint8_t opcode)
{
	return (opcode >= TERN_OP_WRITE && opcode <= TERN_OP_READ) ||
	       opcode == TERN_OP_ATOMIC_WRITE || opcode == TERN_OP_FLUSH || is_atomic(opcode);
}

/* Fields of the control segment whose meaning depends on the QP type. */
bool decode_own_fields(SendWqe &wqe, tern_hw_qp_type type, const tern_hw_ctrl_seg &ctrl)
{
	wqe.srqn = 0;
	wqe.offload = {};
	if (type != TERN_QPT_ETH) {
		wqe.srqn = ctrl.srqn.get();
		return wqe.srqn <= (type == TERN_QPT_XRC_INI ? kMaxSrqn : 0);
	}
	const auto eth = std::bit_cast<tern_hw_eth_ctrl_seg>(ctrl);
	wqe.offload = {eth.csum_start.get(), eth.csum_offset.get(), eth.mss.get()};
	if (eth.rsvd1.get())
		return false;
	if (!eth.csum_start.get())
		return !eth.csum_offset.get() && !eth.mss.get();
	return eth.csum_start.get() >= sizeof(headers::Ethernet) &&
	       (!eth.mss.get() || eth.csum_offset.get() == offsetof(headers::Tcp, checksum));
}

bool decode_datagram(SendWqe &wqe, tern_hw_qp_type type, Segments &in)
{
	if (type != TERN_QPT_UD && type != TERN_QPT_GSI)
		return true;
	tern_hw_ud_seg ud;
	if (!in.take(ud))
		return false;
	DatagramAddress &to = wqe.to;
	std::ranges::copy(ud.dgid, to.dgid.bytes.begin());
	std::ranges::copy(ud.dmac, to.dmac.begin());
	to.sgid_index = ud.sgid_index;
	to.hop_limit = ud.hop_limit;
	to.traffic_class = ud.traffic_class;
	to.sl = ud.sl;
	to.udp_sport = ud.udp_sport.get();
	to.flow_label = ud.flow_label.get();
	to.dest_qpn = ud.dest_qpn.get();
	to.qkey = ud.qkey.get();
	return to.sl <= 15 && to.flow_label <= 0xfffff && to.dest_qpn <= kMulticastQpn &&
	       (to.dest_qpn == kMulticastQpn) == to.dgid.is_multicast() && !ud.rsvd[0].get() &&
	       !ud.rsvd[1].get();
}

/* Reads the operands and the masks. A fetch-add compares nothing, so its fields for that must be
 * zero. */
bool decode_atomic(SendWqe &wqe, Segments &in)
{
	tern_hw_atomic_seg atomic;
	tern_hw_atomic_mask_seg masks{};
	if (!in.take(atomic) || (takes_masks(wqe.opcode) && !in.take(masks)))
		return false;
	wqe.swap_add = atomic.swap_add.get();
	wqe.compare = atomic.compare.get();
	wqe.swap_add_mask = masks.swap_add.get();
	wqe.compare_mask = masks.compare.get();
	const bool swap = wqe.opcode == TERN_OP_CMP_SWAP || wqe.opcode == TERN_OP_MASKED_CMP_SWAP;
	return swap || (!wqe.compare && !wqe.compare_mask);
}

bool decode_remote(SendWqe &wqe, Segments &in)
{
	if (!takes_remote_address(wqe.opcode))
		return true;

	tern_hw_raddr_seg raddr;
	if (!in.take(raddr) || raddr.rsvd.get())
		return false;
	wqe.remote_addr = raddr.addr.get();
	wqe.rkey = raddr.rkey.get();
	return !is_atomic(wqe.opcode) || decode_atomic(wqe, in);
}

bool decode_bind(BindRequest &bind, Segments &in)
{
	tern_hw_bind_seg seg;
	if (!in.take(seg) || !all_zero(seg.rsvd))
		return false;
	bind = {seg.addr.get(), seg.length.get(), seg.rkey.get(), seg.lkey.get(), seg.access};
	return true;
}

bool decode_registration(RegisterRequest &reg, Segments &in)
{
	tern_hw_reg_seg seg;
	if (!in.take(seg) || !all_zero(seg.rsvd))
		return false;
	reg = {seg.start.get(), seg.length.get(), seg.key.get(), seg.access, seg.pages};
	return true;
}

/* A FLUSH has no data. */
bool decode_flush(SendWqe &wqe, Segments &in)
{
	tern_hw_flush_seg seg;
	if (!in.take(seg) || !all_zero(seg.rsvd))
		return false;
	wqe.flush = {seg.length.get(), seg.type, seg.level};
	return in.left() == 0 && !(wqe.flags & TERN_WQE_INLINE) && seg.type &&
	       !(seg.type & ~kFlushTypes) && seg.level <= TERN_FLUSH_MR &&
	       wqe.flush.length <= kMaxFlushRange;
}

/* Local operations have no data and send nothing. */
bool decode_local(SendWqe &wqe, Segments &in)
{
	if (wqe.flags & (TERN_WQE_INLINE | TERN_WQE_SOLICITED))
		return false;
	if (wqe.opcode == TERN_OP_BIND_MW && !decode_bind(wqe.bind, in))
		return false;
	if (wqe.opcode == TERN_OP_REG_MR && !decode_registration(wqe.reg, in))
		return false;
	return in.left() == 0;
}

bool decode_inline(SendWqe &wqe, const Segments &in, uint32_t length)
{
	if (wqe.expects_data() || length > TERN_MAX_INLINE || length > in.left())
		return false;
	if (in.left() - length >= TERN_SEG_SIZE)
		return false;
	wqe.inline_offset = static_cast<uint16_t>(in.offset());
	wqe.inline_size = static_cast<uint16_t>(length);
	wqe.length = length;
	return wqe.opcode != TERN_OP_ATOMIC_WRITE || length == kAtomicSize;
}

bool decode_sges(SendWqe &wqe, Segments &in)
{
	while (in.left()) {
		tern_hw_data_seg seg;
		if (wqe.sge_count == wqe.sge.size() || !in.take(seg))
			return false;
		if (seg.length.get() > kMaxSgeLength)
			return false;
		wqe.sge[wqe.sge_count++] = {seg.addr.get(), seg.length.get(), seg.lkey.get()};
		wqe.length += seg.length.get();
	}
	const bool eight_bytes = is_atomic(wqe.opcode) || wqe.opcode == TERN_OP_ATOMIC_WRITE;
	return !eight_bytes || (wqe.sge_count == 1 && wqe.length == kAtomicSize);
}

} // namespace

Fetch decode(SendWqe &wqe, unsigned segs, tern_hw_qp_type type)
{
	Segments in(std::span(wqe.raw).first(segs * TERN_SEG_SIZE));
	tern_hw_ctrl_seg ctrl;
	if (!in.take(ctrl))
		return Fetch::Invalid;

	wqe.opcode = ctrl.opcode;
	wqe.flags = ctrl.flags;
	wqe.imm = ctrl.imm.get();
	wqe.length = 0;
	wqe.sge_count = 0;
	wqe.inline_offset = 0;
	wqe.inline_size = 0;
	if (!takes_opcode(type, ctrl.opcode))
		return Fetch::Invalid;
	if ((ctrl.flags & ~kKnownFlags) || ctrl.rsvd0 || !decode_own_fields(wqe, type, ctrl))
		return Fetch::Invalid;
	if (!decode_datagram(wqe, type, in) || !decode_remote(wqe, in))
		return Fetch::Invalid;

	if (wqe.is_local())
		return !ctrl.inline_len.get() && decode_local(wqe, in) ? Fetch::Ok : Fetch::Invalid;

	if (wqe.opcode == TERN_OP_FLUSH)
		return !ctrl.inline_len.get() && decode_flush(wqe, in) ? Fetch::Ok : Fetch::Invalid;

	const bool is_inline = ctrl.flags & TERN_WQE_INLINE;
	if (!is_inline && ctrl.inline_len.get())
		return Fetch::Invalid;
	const bool ok =
	        is_inline ? decode_inline(wqe, in, ctrl.inline_len.get()) : decode_sges(wqe, in);
	return ok ? Fetch::Ok : Fetch::Invalid;
}

Fetch fetch_recv(Memory &memory, const PageList &pages, uint64_t offset, uint8_t log_stride,
                 RecvWqe &wqe)
{
	std::array<tern_hw_data_seg, TERN_MAX_RECV_SGE> segs;
	const unsigned count = (1u << log_stride) / TERN_SEG_SIZE;
	if (!pages.read(memory.tables(), memory.host(), offset,
	                std::as_writable_bytes(std::span(segs).first(count))))
		return Fetch::Fault;

	wqe.sge_count = 0;
	wqe.length = 0;
	for (unsigned i = 0; i < count && segs[i].lkey.get() != TERN_LKEY_END; i++) {
		if (segs[i].length.get() > kMaxSgeLength)
			return Fetch::Invalid;
		wqe.sge[wqe.sge_count++] = {segs[i].addr.get(), segs[i].length.get(),
		                            segs[i].lkey.get()};
		wqe.length += segs[i].length.get();
	}
	return Fetch::Ok;
}

} // namespace tern
