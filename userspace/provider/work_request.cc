// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "work_request.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace tern::provider {

using namespace tern::hw;

namespace {

/* False for an operation that the card does not have. Applications may give us any number. */
bool wqe_op(const ibv_send_wr &wr, tern_hw_wqe_op &op)
{
	uint32_t opcode;
	static_assert(sizeof(opcode) == sizeof(wr.opcode));
	std::memcpy(&opcode, &wr.opcode, sizeof(opcode));

	switch (opcode) {
	case IBV_WR_SEND:
		op = TERN_OP_SEND;
		return true;
	case IBV_WR_SEND_WITH_IMM:
		op = TERN_OP_SEND_IMM;
		return true;
	case IBV_WR_RDMA_WRITE:
		op = TERN_OP_WRITE;
		return true;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		op = TERN_OP_WRITE_IMM;
		return true;
	case IBV_WR_RDMA_READ:
		op = TERN_OP_READ;
		return true;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		op = TERN_OP_CMP_SWAP;
		return true;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		op = TERN_OP_FETCH_ADD;
		return true;
	default:
		return false;
	}
}

/* The address and what goes with it, where the operation has them. */
void set_target(const ibv_send_wr &wr, SendRequest &request)
{
	switch (request.op) {
	case TERN_OP_WRITE:
	case TERN_OP_WRITE_IMM:
	case TERN_OP_READ:
		request.remote_addr = wr.wr.rdma.remote_addr;
		request.rkey = wr.wr.rdma.rkey;
		break;
	case TERN_OP_CMP_SWAP:
		request.remote_addr = wr.wr.atomic.remote_addr;
		request.rkey = wr.wr.atomic.rkey;
		request.swap_add = wr.wr.atomic.swap;
		request.compare = wr.wr.atomic.compare_add;
		break;
	case TERN_OP_FETCH_ADD:
		request.remote_addr = wr.wr.atomic.remote_addr;
		request.rkey = wr.wr.atomic.rkey;
		request.swap_add = wr.wr.atomic.compare_add;
		break;
	default:
		break;
	}
}

int build_send(SendQueue &sq, const ibv_send_wr &wr)
{
	SendRequest request;

	if (wr.num_sge < 0 || !wqe_op(wr, request.op) || !wqe_flags(wr.send_flags, request.flags))
		return EINVAL;
	request.wr_id = wr.wr_id;
	request.imm = std::bit_cast<__be32>(wr.imm_data);
	set_target(wr, request);

	const std::span<const ibv_sge> sges(wr.sg_list, static_cast<size_t>(wr.num_sge));
	if (wr.send_flags & IBV_SEND_INLINE)
		return sq.build_inline(request, sges);
	return sq.build(request, sges);
}

ibv_wc_opcode wc_opcode(uint8_t opcode)
{
	switch (opcode) {
	case TERN_OP_WRITE:
	case TERN_OP_WRITE_IMM:
		return IBV_WC_RDMA_WRITE;
	case TERN_OP_READ:
		return IBV_WC_RDMA_READ;
	case TERN_OP_CMP_SWAP:
		return IBV_WC_COMP_SWAP;
	case TERN_OP_FETCH_ADD:
		return IBV_WC_FETCH_ADD;
	case TERN_CQE_RECV:
		return IBV_WC_RECV;
	case TERN_CQE_RECV_WRITE_IMM:
		return IBV_WC_RECV_RDMA_WITH_IMM;
	default:
		return IBV_WC_SEND;
	}
}

void fill_wc(const Completion &c, ibv_wc &wc)
{
	wc.wr_id = c.wr_id;
	wc.status = static_cast<ibv_wc_status>(c.status);
	wc.opcode = wc_opcode(c.opcode);
	wc.vendor_err = 0;
	wc.byte_len = c.byte_len;
	wc.imm_data = std::bit_cast<uint32_t>(c.imm);
	wc.qp_num = c.qpn;
	wc.src_qp = 0;
	wc.wc_flags = c.flags & TERN_CQE_IMM ? IBV_WC_WITH_IMM : 0;
	wc.pkey_index = 0;
	wc.slid = 0;
	wc.sl = 0;
	wc.dlid_path_bits = 0;
}

} // namespace

bool wqe_flags(unsigned send_flags, uint8_t &flags)
{
	constexpr unsigned kKnown =
	        IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

	if (send_flags & ~kKnown)
		return false;
	flags = 0;
	if (send_flags & IBV_SEND_SIGNALED)
		flags |= TERN_WQE_SIGNALED;
	if (send_flags & IBV_SEND_SOLICITED)
		flags |= TERN_WQE_SOLICITED;
	if (send_flags & IBV_SEND_FENCE)
		flags |= TERN_WQE_FENCE;
	return true;
}

int post_send_list(SendQueue &sq, ibv_send_wr *wr, ibv_send_wr **bad_wr)
{
	const std::lock_guard guard(sq.lock());
	int err = 0;

	for (; wr; wr = wr->next) {
		err = build_send(sq, *wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	sq.publish();
	return err;
}

int post_recv_list(RecvQueue &rq, ibv_recv_wr *wr, ibv_recv_wr **bad_wr)
{
	const std::lock_guard guard(rq.lock());
	int err = 0;

	for (; wr; wr = wr->next) {
		err = wr->num_sge < 0 ? EINVAL
		                      : rq.build(wr->wr_id,
		                                 {wr->sg_list, static_cast<size_t>(wr->num_sge)});
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	rq.publish();
	return err;
}

int poll_list(CompletionQueue &cq, int count, ibv_wc *wc)
{
	const std::lock_guard guard(cq.lock());
	Completion completion;
	int n = 0;

	while (n < count && cq.next(completion))
		fill_wc(completion, wc[n++]);
	cq.release();
	return n;
}

} // namespace tern::provider
