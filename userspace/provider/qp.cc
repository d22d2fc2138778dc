// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "qp.h"

#include <cerrno>
#include <mutex>
#include <utility>

#include "context.h"
#include "cq.h"
#include "memory.h"
#include "rdma/tern-abi.h"
#include "verbs.h"
#include "work_request.h"

namespace tern::provider {

using namespace tern::abi34;

namespace {

using CreateQpResponse = Response<CreateQpResp, tern_create_qp_resp>;
static_assert(CreateQpResponse::kPacked);

/* Holds the locks of both CQs of a QP, taken in the order of their addresses. */
class CqPairLock {
public:
	CqPairLock(CompletionQueue &a, CompletionQueue &b) : first_(&a), second_(&b)
	{
		if (second_ < first_)
			std::swap(first_, second_);
		first_->lock().lock();
		if (second_ != first_)
			second_->lock().lock();
	}
	~CqPairLock()
	{
		if (second_ != first_)
			second_->lock().unlock();
		first_->lock().unlock();
	}
	CqPairLock(const CqPairLock &) = delete;
	CqPairLock &operator=(const CqPairLock &) = delete;

	/* Voids what is left of @qpn in both. */
	void drop(uint32_t qpn)
	{
		first_->drop(qpn);
		if (second_ != first_)
			second_->drop(qpn);
	}

private:
	CompletionQueue *first_;
	CompletionQueue *second_;
};

CompletionQueue &send_cq_of(const Qp &qp)
{
	return Cq::of(qp.verbs.qp.send_cq)->queue;
}

CompletionQueue &recv_cq_of(const Qp &qp)
{
	return Cq::of(qp.verbs.qp.recv_cq)->queue;
}

/* Lays the queues over what the driver made. Returns 0 or an errno. */
int attach(Qp &qp, Context &context, const tern_create_qp_resp &resp,
           const ibv_qp_init_attr_ex &attr)
{
	if (const int err = qp.mapping.map(context.verbs.context.cmd_fd, resp.buf_key, resp.buf_len,
	                                   PROT_READ | PROT_WRITE))
		return err;

	const auto sq_ring =
	        qp.mapping.slice(0, uint64_t{hw::TERN_SQ_BLOCK} << (resp.sq_log_size & 31));
	const auto rq_ring = qp.mapping.slice(
	        resp.rq_offset, uint64_t{1} << ((resp.rq_log_size + resp.rq_log_stride) & 63));
	const auto record = qp.mapping.slice(resp.record_offset, sizeof(hw::tern_hw_qp_record));
	qp.has_rq = attr.cap.max_recv_wr > 0;
	if (sq_ring.empty() || record.empty() || (qp.has_rq && rq_ring.empty()))
		return EPROTO;

	qp.record = QpRecord(reinterpret_cast<hw::tern_hw_qp_record *>(record.data()));
	if (const int err = qp.rq.init({
	            .ring = qp.has_rq ? rq_ring : std::span<std::byte>(),
	            .record = qp.record,
	            .entries = qp.has_rq ? 1u << (resp.rq_log_size & 31) : 0,
	            .log_stride = resp.rq_log_stride,
	            .max_sge = attr.cap.max_recv_sge,
	    }))
		return err;
	return qp.sq.init({
	        .ring = sq_ring,
	        .record = qp.record,
	        .doorbells = context.doorbell_page(),
	        .qpn = resp.qpn,
	        .max_sge = attr.cap.max_send_sge,
	        .max_inline = attr.cap.max_inline_data,
	        .shadow_doorbell = (context.state.caps & TERN_CAP_SHADOW_DB) != 0,
	        .atomics = (context.state.caps & TERN_CAP_ATOMIC) != 0,
	        .signal_all = attr.sq_sig_all != 0,
	});
}

/*
 * Makes completions find the QP. What an earlier QP of this number left in the CQs is voided
 * first: this one has completed nothing yet.
 */
int enter(Qp &qp, Context &context)
{
	const uint32_t qpn = qp.verbs.qp.qp_num;
	CompletionQueue &send_cq = send_cq_of(qp), &recv_cq = recv_cq_of(qp);

	if (!context.state.qps.reserve(qpn))
		return ENOMEM;
	CqPairLock cqs(send_cq, recv_cq);
	cqs.drop(qpn);
	context.state.qps.insert(qpn, {&qp.sq, &send_cq}, {qp.has_rq ? &qp.rq : nullptr, &recv_cq});
	return 0;
}

/*
 * Takes the QP, which the kernel has destroyed, from its CQs. The kernel may have given the
 * number to another QP by now. If the table has that one already, enter() has voided what we left
 * in the CQs that it shares with us, and what is there now can be its own; in our other
 * CQs nothing of this number finds a queue any more.
 */
void leave(Qp &qp, Context &context)
{
	const uint32_t qpn = qp.verbs.qp.qp_num;
	CqPairLock cqs(send_cq_of(qp), recv_cq_of(qp));

	if (context.state.qps.remove(qpn, &qp.sq))
		cqs.drop(qpn);
}

/*
 * Empties the queues of a QP that is in RESET now. Not before the command: it could fail, and
 * the card looks at the record as long as the QP lives. It has set sq_event to zero itself.
 */
void rewind(Qp &qp)
{
	const std::lock_guard sq_guard(qp.sq.lock());
	const std::lock_guard rq_guard(qp.rq.lock());
	CqPairLock cqs(send_cq_of(qp), recv_cq_of(qp));

	cqs.drop(qp.verbs.qp.qp_num);
	qp.sq.reset();
	qp.rq.reset();
	qp.record.clear();
}

} // namespace

ibv_qp *create_qp_ex(ibv_context *ibv, ibv_qp_init_attr_ex *attr)
{
	Context &context = *Context::of(ibv);
	const uint64_t send_ops =
	        attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags : 0;

	if (attr->qp_type != IBV_QPT_RC || attr->srq ||
	    attr->comp_mask & ~(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) {
		errno = EOPNOTSUPP;
		return nullptr;
	}
	if (!attr->send_cq || !attr->recv_cq) {
		errno = EINVAL;
		return nullptr;
	}
	Owned<Qp> qp = make_owned<Qp>();
	if (!qp) {
		errno = ENOMEM;
		return nullptr;
	}
	if (const int err = set_send_ops(*qp, send_ops)) {
		errno = err;
		return nullptr;
	}

	CreateQpCmd cmd = {};
	CreateQpResponse resp = {};
	int err =
	        ibv_cmd_create_qp_ex(ibv, &qp->verbs, attr, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		errno = err;
		return nullptr;
	}
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		qp->verbs.comp_mask |= kVerbsQpEx;

	err = attach(*qp, context, resp.tern, *attr);
	if (!err)
		err = enter(*qp, context);
	if (err) {
		ibv_cmd_destroy_qp(&qp->verbs.qp);
		errno = err;
		return nullptr;
	}
	return &qp.release()->verbs.qp;
}

ibv_qp *create_qp(ibv_pd *pd, ibv_qp_init_attr *attr)
{
	ibv_qp_init_attr_ex ex = {};

	ex.qp_context = attr->qp_context;
	ex.send_cq = attr->send_cq;
	ex.recv_cq = attr->recv_cq;
	ex.srq = attr->srq;
	ex.cap = attr->cap;
	ex.qp_type = attr->qp_type;
	ex.sq_sig_all = attr->sq_sig_all;
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd;
	ibv_qp *qp = create_qp_ex(pd->context, &ex);
	if (qp)
		attr->cap = ex.cap;
	return qp;
}

int modify_qp(ibv_qp *qp, ibv_qp_attr *attr, int attr_mask)
{
	ModifyQpCmd cmd = {};

	if (const int err = ibv_cmd_modify_qp(qp, attr, attr_mask, &cmd, sizeof(cmd)))
		return err;
	if (attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		rewind(*Qp::of(qp));
	return 0;
}

int query_qp(ibv_qp *qp, ibv_qp_attr *attr, int attr_mask, ibv_qp_init_attr *init_attr)
{
	QueryQpCmd cmd = {};

	return ibv_cmd_query_qp(qp, attr, attr_mask, init_attr, &cmd, sizeof(cmd));
}

int destroy_qp(ibv_qp *ibv)
{
	Qp *qp = Qp::of(ibv);

	if (const int err = ibv_cmd_destroy_qp(ibv))
		return err;
	leave(*qp, *Context::of(ibv->context));
	Owned<Qp>{qp};
	return 0;
}

int post_send(ibv_qp *qp, ibv_send_wr *wr, ibv_send_wr **bad_wr)
{
	return post_send_list(Qp::of(qp)->sq, wr, bad_wr);
}

int post_recv(ibv_qp *qp, ibv_recv_wr *wr, ibv_recv_wr **bad_wr)
{
	return post_recv_list(Qp::of(qp)->rq, wr, bad_wr);
}

} // namespace tern::provider
