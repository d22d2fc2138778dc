// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ibv_wr_* calls. One call begins a request; setters, in any order, set its data and its
 * destination. The setter of the data builds the WQE, and a later destination is written into it.
 * The next request or wr_complete() builds a WQE without data. After an error wr_complete() drops
 * the whole list.
 */
#include <bit>
#include <cerrno>

#include "datapath/address_handle.h"
#include "datapath/work_request.h"
#include "terndv.h"
#include "verbs_qp.h"

namespace tern::provider {

using namespace tern::hw;

namespace {

void set_error(PendingRequest &pending, int error)
{
	if (!pending.error)
		pending.error = error;
}

/* Builds the WQE of the pending request with @build(request), which adds the data. */
template <class Build>
void set_data(Qp &qp, Build build)
{
	PendingRequest &pending = qp.pending;

	if (!pending.active || pending.built) {
		set_error(pending, EINVAL);
		return;
	}
	pending.built = true;
	if (!pending.error)
		pending.error = build(pending.request);
}

/* Completes the pending request, if there is one. */
void finish_request(Qp &qp)
{
	PendingRequest &pending = qp.pending;

	if (!pending.active)
		return;
	if (!pending.built)
		set_data(qp, [&](const SendRequest &r) {
			return qp.sq.build(r, std::span<const ibv_sge>());
		});
	if (!pending.has_destination)
		set_error(pending, EINVAL);
	pending.active = false;
}

/* Whether each request of @service needs a destination of its own. */
bool needs_destination(Service service)
{
	return service == Service::kUd || service == Service::kXrcSend;
}

SendRequest &begin(ibv_qp_ex *ibv, tern_hw_wqe_op op)
{
	Qp &qp = *Qp::of(ibv);
	PendingRequest &pending = qp.pending;

	finish_request(qp);
	pending.active = true;
	pending.built = false;
	pending.has_destination = !is_sent(op) || !needs_destination(qp.service);
	pending.request = {};
	pending.request.op = op;
	pending.request.wr_id = ibv->wr_id;
	/* Ignores IBV_SEND_INLINE: the setter decides. */
	if (!wqe_flags(ibv->wr_flags, pending.request.flags))
		set_error(pending, EINVAL);
	return pending.request;
}

/* Sets the destination of the pending request with @set(request). */
template <class Set>
void set_destination(Qp &qp, Set set)
{
	PendingRequest &pending = qp.pending;

	if (!pending.active || pending.has_destination) {
		set_error(pending, EINVAL);
		return;
	}
	pending.has_destination = true;
	set(pending.request);
	if (pending.built && !pending.error)
		qp.sq.set_destination(pending.request);
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

void wr_send_inv(ibv_qp_ex *qp, uint32_t rkey)
{
	begin(qp, TERN_OP_SEND_INV).imm = rkey;
}

void wr_local_inv(ibv_qp_ex *qp, uint32_t rkey)
{
	begin(qp, TERN_OP_LOCAL_INV).imm = rkey;
}

void wr_bind_mw(ibv_qp_ex *qp, ibv_mw *mw, uint32_t rkey, const ibv_mw_bind_info *info)
{
	SendRequest &request = begin(qp, TERN_OP_BIND_MW);

	if (const int err = set_bind(mw, rkey, *info, request))
		set_error(Qp::of(qp)->pending, err);
}

void wr_set_ud_addr(ibv_qp_ex *qp, ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	set_destination(*Qp::of(qp), [&](SendRequest &request) {
		request.address = &Ah::of(ah)->segment;
		request.dest_qpn = qpn;
		request.qkey = qkey;
	});
}

void wr_set_xrc_srqn(ibv_qp_ex *qp, uint32_t srqn)
{
	set_destination(*Qp::of(qp), [&](SendRequest &request) { request.srqn = srqn; });
}

void wr_set_sge_list(ibv_qp_ex *ibv, size_t num_sge, const ibv_sge *sges)
{
	Qp &qp = *Qp::of(ibv);

	set_data(qp, [&](const SendRequest &r) {
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

	set_data(qp, [&](const SendRequest &r) {
		return qp.sq.build_inline(r, std::span<const ibv_data_buf>(bufs, num_buf));
	});
}

void wr_set_inline_data(ibv_qp_ex *qp, void *addr, size_t length)
{
	const ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(qp, 1, &buf);
}

/* Has its data as argument, not from a setter. */
void wr_atomic_write(ibv_qp_ex *ibv, uint32_t rkey, uint64_t addr, const void *data)
{
	begin_remote(ibv, TERN_OP_ATOMIC_WRITE, rkey, addr);
	wr_set_inline_data(ibv, const_cast<void *>(data), sizeof(uint64_t));
}

/* Sets the operands of a FLUSH. With FLUSH_MR there is no range. False if one is invalid. */
bool set_flush(SendRequest &request, size_t len, uint8_t type, uint8_t level)
{
	constexpr uint8_t kTypes = TERN_FLUSH_GLOBAL | TERN_FLUSH_PERSISTENT;
	constexpr size_t kMaxRange = size_t{1} << 31;
	static_assert(int{TERNDV_FLUSH_GLOBAL} == TERN_FLUSH_GLOBAL &&
	              int{TERNDV_FLUSH_PERSISTENT} == TERN_FLUSH_PERSISTENT &&
	              int{TERNDV_FLUSH_RANGE} == TERN_FLUSH_RANGE &&
	              int{TERNDV_FLUSH_MR} == TERN_FLUSH_MR);

	if (level == TERN_FLUSH_MR)
		len = 0;
	request.flush_length = static_cast<uint32_t>(len);
	request.flush_type = type;
	request.flush_level = level;
	return type && !(type & ~kTypes) && level <= TERN_FLUSH_MR && len <= kMaxRange;
}

void wr_flush(ibv_qp_ex *ibv, uint32_t rkey, uint64_t addr, size_t len, uint8_t type, uint8_t level)
{
	SendRequest &request = begin_remote(ibv, TERN_OP_FLUSH, rkey, addr);

	if (!set_flush(request, len, type, level) || !Qp::of(ibv)->flushes)
		set_error(Qp::of(ibv)->pending, EINVAL);
}

void set_wr_flush(auto &qp)
{
	if constexpr (private_abi::kHasWrFlush<decltype(qp)>)
		qp.wr_flush = wr_flush;
	Qp::of(&qp)->flushes = true;
}

void wr_start(ibv_qp_ex *ibv)
{
	Qp &qp = *Qp::of(ibv);

	qp.sq.lock().lock();
	qp.pending = {};
	if (!qp.sq.is_open())
		set_error(qp.pending, EINVAL);
}

int wr_complete(ibv_qp_ex *ibv)
{
	Qp &qp = *Qp::of(ibv);

	finish_request(qp);
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

struct ExOp {
	uint64_t flag;
	tern_hw_wqe_op op;
	void (*set)(ibv_qp_ex &qp);
};

constexpr ExOp kExOps[] = {
        {IBV_QP_EX_WITH_RDMA_WRITE, TERN_OP_WRITE,
         [](ibv_qp_ex &qp) { qp.wr_rdma_write = wr_rdma_write; }},
        {IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, TERN_OP_WRITE_IMM,
         [](ibv_qp_ex &qp) { qp.wr_rdma_write_imm = wr_rdma_write_imm; }},
        {IBV_QP_EX_WITH_SEND, TERN_OP_SEND, [](ibv_qp_ex &qp) { qp.wr_send = wr_send; }},
        {IBV_QP_EX_WITH_SEND_WITH_IMM, TERN_OP_SEND_IMM,
         [](ibv_qp_ex &qp) { qp.wr_send_imm = wr_send_imm; }},
        {IBV_QP_EX_WITH_RDMA_READ, TERN_OP_READ,
         [](ibv_qp_ex &qp) { qp.wr_rdma_read = wr_rdma_read; }},
        {IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, TERN_OP_CMP_SWAP,
         [](ibv_qp_ex &qp) { qp.wr_atomic_cmp_swp = wr_atomic_cmp_swp; }},
        {IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, TERN_OP_FETCH_ADD,
         [](ibv_qp_ex &qp) { qp.wr_atomic_fetch_add = wr_atomic_fetch_add; }},
        {IBV_QP_EX_WITH_ATOMIC_WRITE, TERN_OP_ATOMIC_WRITE,
         [](ibv_qp_ex &qp) { qp.wr_atomic_write = wr_atomic_write; }},
        {TERNDV_QP_EX_WITH_FLUSH, TERN_OP_FLUSH, set_wr_flush},
        {IBV_QP_EX_WITH_LOCAL_INV, TERN_OP_LOCAL_INV,
         [](ibv_qp_ex &qp) { qp.wr_local_inv = wr_local_inv; }},
        {IBV_QP_EX_WITH_BIND_MW, TERN_OP_BIND_MW,
         [](ibv_qp_ex &qp) { qp.wr_bind_mw = wr_bind_mw; }},
        {IBV_QP_EX_WITH_SEND_WITH_INV, TERN_OP_SEND_INV,
         [](ibv_qp_ex &qp) { qp.wr_send_inv = wr_send_inv; }},
};

} // namespace

int set_send_ops(Qp &qp, uint64_t wanted, OpSet ops)
{
	ibv_qp_ex &ex = qp.verbs.qp_ex;

	for (const ExOp &o : kExOps) {
		if (!(wanted & o.flag) || !ops.has(o.op))
			continue;
		o.set(ex);
		wanted &= ~o.flag;
	}
	if (wanted)
		return EOPNOTSUPP;

	ex.wr_start = wr_start;
	ex.wr_complete = wr_complete;
	ex.wr_abort = wr_abort;
	ex.wr_set_sge = wr_set_sge;
	ex.wr_set_sge_list = wr_set_sge_list;
	ex.wr_set_inline_data = wr_set_inline_data;
	ex.wr_set_inline_data_list = wr_set_inline_data_list;
	if (qp.service == Service::kUd)
		ex.wr_set_ud_addr = wr_set_ud_addr;
	if (qp.service == Service::kXrcSend)
		ex.wr_set_xrc_srqn = wr_set_xrc_srqn;
	return 0;
}

} // namespace tern::provider

[[gnu::visibility("default")]] void terndv_wr_flush(ibv_qp_ex *qp, uint32_t rkey,
                                                    uint64_t remote_addr, size_t len, uint8_t type,
                                                    uint8_t level)
{
	tern::provider::wr_flush(qp, rkey, remote_addr, len, type, level);
}
