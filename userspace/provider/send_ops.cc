// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ibv_wr_* calls. One call begins a request and a data setter gives it its data; what the
 * setters need is only then known, so the WQE is built there. A request without a setter
 * has no data: the next call builds it. The first error of a list makes complete() drop
 * the whole list.
 */
#include <bit>
#include <cerrno>

#include "qp.h"
#include "work_request.h"

namespace tern::provider {

using namespace tern::hw;

namespace {

/* Ends the pending request with the data that @build gives it. */
template <class Build>
void finish(Qp &qp, Build build)
{
	PendingRequest &pending = qp.pending;

	if (!pending.active) {
		/* A second setter, or one without a request. */
		pending.error = pending.error ? pending.error : EINVAL;
		return;
	}
	pending.active = false;
	if (!pending.error)
		pending.error = build(pending.request);
}

void finish_without_data(Qp &qp)
{
	if (qp.pending.active)
		finish(qp, [&](const SendRequest &r) {
			return qp.sq.build(r, std::span<const ibv_sge>());
		});
}

SendRequest &begin(ibv_qp_ex *ibv, tern_hw_wqe_op op)
{
	Qp &qp = *Qp::of(ibv);
	PendingRequest &pending = qp.pending;

	finish_without_data(qp);
	pending.active = true;
	pending.request = {};
	pending.request.op = op;
	pending.request.wr_id = ibv->wr_id;
	/* IBV_SEND_INLINE means nothing here: the setter decides. */
	if (!wqe_flags(ibv->wr_flags, pending.request.flags) && !pending.error)
		pending.error = EINVAL;
	return pending.request;
}

SendRequest &begin_remote(ibv_qp_ex *ibv, tern_hw_wqe_op op, uint32_t rkey, uint64_t addr)
{
	SendRequest &request = begin(ibv, op);

	request.rkey = rkey;
	request.remote_addr = addr;
	return request;
}

void wr_send(ibv_qp_ex *qp)
{
	begin(qp, TERN_OP_SEND);
}

void wr_send_imm(ibv_qp_ex *qp, uint32_t imm)
{
	begin(qp, TERN_OP_SEND_IMM).imm = std::bit_cast<__be32>(imm);
}

void wr_rdma_write(ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	begin_remote(qp, TERN_OP_WRITE, rkey, addr);
}

void wr_rdma_write_imm(ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint32_t imm)
{
	begin_remote(qp, TERN_OP_WRITE_IMM, rkey, addr).imm = std::bit_cast<__be32>(imm);
}

void wr_rdma_read(ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	begin_remote(qp, TERN_OP_READ, rkey, addr);
}

void wr_atomic_cmp_swp(ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
	SendRequest &request = begin_remote(qp, TERN_OP_CMP_SWAP, rkey, addr);

	request.compare = compare;
	request.swap_add = swap;
}

void wr_atomic_fetch_add(ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t add)
{
	begin_remote(qp, TERN_OP_FETCH_ADD, rkey, addr).swap_add = add;
}

void wr_set_sge_list(ibv_qp_ex *ibv, size_t num_sge, const ibv_sge *sges)
{
	Qp &qp = *Qp::of(ibv);

	finish(qp, [&](const SendRequest &r) {
		return qp.sq.build(r, std::span<const ibv_sge>(sges, num_sge));
	});
}

void wr_set_sge(ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	wr_set_sge_list(qp, 1, &sge);
}

void wr_set_inline_data_list(ibv_qp_ex *ibv, size_t num_buf, const ibv_data_buf *bufs)
{
	Qp &qp = *Qp::of(ibv);

	finish(qp, [&](const SendRequest &r) {
		return qp.sq.build_inline(r, std::span<const ibv_data_buf>(bufs, num_buf));
	});
}

void wr_set_inline_data(ibv_qp_ex *qp, void *addr, size_t length)
{
	const ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(qp, 1, &buf);
}

void wr_start(ibv_qp_ex *ibv)
{
	Qp &qp = *Qp::of(ibv);

	qp.sq.lock().lock();
	qp.pending = {};
}

int wr_complete(ibv_qp_ex *ibv)
{
	Qp &qp = *Qp::of(ibv);

	finish_without_data(qp);
	const int err = qp.pending.error;
	if (err)
		qp.sq.discard();
	else
		qp.sq.publish();
	qp.sq.lock().unlock();
	return err;
}

void wr_abort(ibv_qp_ex *ibv)
{
	Qp &qp = *Qp::of(ibv);

	qp.pending = {};
	qp.sq.discard();
	qp.sq.lock().unlock();
}

} // namespace

int set_send_ops(Qp &qp, uint64_t ops)
{
	constexpr uint64_t kKnown = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
	                            IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
	                            IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	                            IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	ibv_qp_ex &ex = qp.verbs.qp_ex;

	if (ops & ~kKnown)
		return EOPNOTSUPP;
	ex.wr_start = wr_start;
	ex.wr_complete = wr_complete;
	ex.wr_abort = wr_abort;
	ex.wr_set_sge = wr_set_sge;
	ex.wr_set_sge_list = wr_set_sge_list;
	ex.wr_set_inline_data = wr_set_inline_data;
	ex.wr_set_inline_data_list = wr_set_inline_data_list;
	if (ops & IBV_QP_EX_WITH_SEND)
		ex.wr_send = wr_send;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
		ex.wr_send_imm = wr_send_imm;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE)
		ex.wr_rdma_write = wr_rdma_write;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		ex.wr_rdma_write_imm = wr_rdma_write_imm;
	if (ops & IBV_QP_EX_WITH_RDMA_READ)
		ex.wr_rdma_read = wr_rdma_read;
	if (ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		ex.wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	if (ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		ex.wr_atomic_fetch_add = wr_atomic_fetch_add;
	return 0;
}

} // namespace tern::provider
