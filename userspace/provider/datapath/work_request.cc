// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datapath/work_request.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "datapath/address_handle.h"

namespace tern::provider {

using namespace tern::hw;

namespace {

template <class WorkRequest>
bool sges_ok(const WorkRequest &wr)
{
	return wr.num_sge >= 0 && (wr.sg_list || !wr.num_sge);
}

/* Converts the opcode, which may be any number. False if it is unknown. */
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
	case IBV_WR_ATOMIC_WRITE:
		op = TERN_OP_ATOMIC_WRITE;
		return true;
	case IBV_WR_SEND_WITH_INV:
		op = TERN_OP_SEND_INV;
		return true;
	case IBV_WR_LOCAL_INV:
		op = TERN_OP_LOCAL_INV;
		return true;
	case IBV_WR_BIND_MW:
		op = TERN_OP_BIND_MW;
		return true;
	default:
		return false;
	}
}

/* Sets the operands of the operation. Returns 0 or EINVAL. */
int set_operands(const ibv_send_wr &wr, SendRequest &request)
{
	switch (request.op) {
	case TERN_OP_WRITE:
	case TERN_OP_WRITE_IMM:
	case TERN_OP_READ:
	case TERN_OP_ATOMIC_WRITE:
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
	case TERN_OP_BIND_MW:
		return set_bind(wr.bind_mw.mw, wr.bind_mw.rkey, wr.bind_mw.bind_info, request);
	default:
		break;
	}
	if (request.op == TERN_OP_WRITE_IMM || request.op == TERN_OP_SEND_IMM)
		request.imm = std::bit_cast<__be32>(wr.imm_data);
	else
		request.imm = wr.invalidate_rkey;
	return 0;
}

/* Sets the destination of UD and XRC requests. Returns 0 or EINVAL. */
int set_destination(const ibv_send_wr &wr, Service service, SendRequest &request)
{
	if (service == Service::kXrcSend && is_sent(request.op))
		request.srqn = wr.qp_type.xrc.remote_srqn;
	if (service != Service::kUd)
		return 0;
	if (!wr.wr.ud.ah)
		return EINVAL;
	request.address = &Ah::of(wr.wr.ud.ah)->segment;
	request.dest_qpn = wr.wr.ud.remote_qpn;
	request.qkey = wr.wr.ud.remote_qkey;
	return 0;
}

int build_send(SendQueue &sq, const ibv_send_wr &wr)
{
	SendRequest request;

	if (!sges_ok(wr) || !wqe_op(wr, request.op) || !wqe_flags(wr.send_flags, request.flags))
		return EINVAL;
	request.wr_id = wr.wr_id;
	if (const int err = set_operands(wr, request))
		return err;
	if (const int err = set_destination(wr, sq.service(), request))
		return err;

	if (!is_transfer(request.op))
		return sq.build(request, std::span<const ibv_sge>());
	const std::span<const ibv_sge> sges(wr.sg_list, static_cast<size_t>(wr.num_sge));
	if (wr.send_flags & IBV_SEND_INLINE)
		return sq.build_inline(request, sges);
	return sq.build(request, sges);
}

template <class Queue>
int build_recv(Queue &queue, const ibv_recv_wr &wr)
{
	if (!sges_ok(wr))
		return EINVAL;
	return queue.build(wr.wr_id, {wr.sg_list, static_cast<size_t>(wr.num_sge)});
}

/* Posts to a queue whose lock the caller holds. */
template <class Queue, class WorkRequest, class Build>
int post_locked(Queue &queue, WorkRequest *wr, WorkRequest **bad_wr, Build build)
{
	int err = 0;

	for (; wr; wr = wr->next) {
		err = build(queue, *wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	queue.publish();
	return err;
}

/* Posts to the queue of an SRQ, which has no states. */
template <class Queue, class WorkRequest, class Build>
int post_list(Queue &queue, WorkRequest *wr, WorkRequest **bad_wr, Build build)
{
	const std::lock_guard guard(queue.lock());

	return post_locked(queue, wr, bad_wr, build);
}

/* Posts to the queue of a QP or a WQ. */
template <class Queue, class WorkRequest, class Build>
int post_list_if_open(Queue &queue, WorkRequest *wr, WorkRequest **bad_wr, Build build)
{
	const std::lock_guard guard(queue.lock());

	if (!queue.is_open()) [[unlikely]]
		return refuse_list(wr, bad_wr);
	return post_locked(queue, wr, bad_wr, build);
}

} // namespace

int set_bind(const ibv_mw *mw, uint32_t rkey, const ibv_mw_bind_info &info, SendRequest &request)
{
	constexpr unsigned kRemote =
	        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	static_assert(unsigned{IBV_ACCESS_REMOTE_WRITE} == TERN_ACCESS_REMOTE_WRITE &&
	              unsigned{IBV_ACCESS_REMOTE_READ} == TERN_ACCESS_REMOTE_READ &&
	              unsigned{IBV_ACCESS_REMOTE_ATOMIC} == TERN_ACCESS_REMOTE_ATOMIC &&
	              unsigned{IBV_ACCESS_ZERO_BASED} == TERN_ACCESS_ZERO_BASED);

	if (!mw || (!info.mr && info.length))
		return EINVAL;
	/* Windows of type 1 cannot be zero-based (IBA 10.6.7.2.1). */
	const unsigned known =
	        mw->type == IBV_MW_TYPE_2 ? kRemote | IBV_ACCESS_ZERO_BASED : kRemote;
	/* Programs also pass local write, which is a right of regions only; ignore it. */
	if (info.mw_access_flags & ~(known | IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;

	request.rkey = rkey;
	request.remote_addr = info.addr;
	request.bind_length = info.length;
	request.bind_lkey = info.mr ? info.mr->lkey : 0;
	request.bind_access = static_cast<uint8_t>(info.mw_access_flags & known);
	return 0;
}

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
	return post_list_if_open(sq, wr, bad_wr, build_send);
}

int post_recv_list(RecvQueue &rq, ibv_recv_wr *wr, ibv_recv_wr **bad_wr)
{
	return post_list_if_open(rq, wr, bad_wr, build_recv<RecvQueue>);
}

int post_recv_list(SharedRecvQueue &srq, ibv_recv_wr *wr, ibv_recv_wr **bad_wr)
{
	return post_list(srq, wr, bad_wr, build_recv<SharedRecvQueue>);
}

int post_ops_list(TagQueue &queue, ibv_ops_wr *wr, ibv_ops_wr **bad_wr)
{
	return post_list(queue, wr, bad_wr,
	                 [](TagQueue &tags, ibv_ops_wr &op) { return tags.build(op); });
}

} // namespace tern::provider
