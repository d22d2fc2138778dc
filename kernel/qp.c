// SPDX-License-Identifier: GPL-2.0
/* Queue pairs: types, sizes, create and destroy. Processes post without the driver. */
#include <linux/log2.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_verbs.h>
#include <rdma/tern-abi.h>
#include <rdma/uverbs_ioctl.h>

#include "ib.h"

/* ---- events --------------------------------------------------------------------- */

static int tern_ib_qp_event_type(u8 type)
{
	switch (type) {
	case TERN_EVENT_QP_FATAL:
		return IB_EVENT_QP_FATAL;
	case TERN_EVENT_QP_REQ_ERR:
		return IB_EVENT_QP_REQ_ERR;
	case TERN_EVENT_QP_ACCESS_ERR:
		return IB_EVENT_QP_ACCESS_ERR;
	case TERN_EVENT_COMM_EST:
		return IB_EVENT_COMM_EST;
	case TERN_EVENT_SQ_DRAINED:
		return IB_EVENT_SQ_DRAINED;
	case TERN_EVENT_LAST_WQE:
		return IB_EVENT_QP_LAST_WQE_REACHED;
	default:
		return -1;
	}
}

void tern_ib_qp_event(struct tern_qp_core *core, u8 type)
{
	struct tern_qp *qp = container_of(core, struct tern_qp, core);
	struct ib_qp *ibqp = &qp->ibqp;
	int ib_type = tern_ib_qp_event_type(type);
	struct ib_event event = {
		.device = ibqp->device,
		.element.qp = ibqp,
		.event = ib_type,
	};

	/* The QP raises no second page fault before RESUME_QP. */
	if (type == TERN_EVENT_PAGE_FAULT)
		queue_work(to_tib(ibqp->device)->fault_wq, &qp->fault_work);
	else if (ib_type >= 0 && ibqp->event_handler)
		ibqp->event_handler(&event, ibqp->qp_context);
}

/*
 * Raises the event for which __ib_drain_srq() waits to drain a QP with an SRQ, as a dead card does
 * not raise it. The handler of the QP may receive the event twice.
 */
void tern_ib_qp_died(struct tern_qp_core *core)
{
	struct tern_qp *qp = container_of(core, struct tern_qp, core);

	if (qp->kernel && qp->ibqp.srq && READ_ONCE(qp->state) == IB_QPS_ERR)
		tern_ib_qp_event(core, TERN_EVENT_LAST_WQE);
}

/* ---- types --------------------------------------------------------------------------- */

struct tern_qp_kind {
	u32 cap;		/* the TERN_CAP_* that it needs */
	u8 type;		/* enum tern_hw_qp_type */
	u8 sq_head;		/* bytes of a send WQE before the payload; 0: no send queue */
	bool rq;
	bool srq;		/* may use an SRQ */
	bool user;		/* processes may create it */
	bool kernel;		/* the kernel may create it */
	u32 create_flags;	/* supported IB_QP_CREATE_* */
};

#define TERN_HEAD	sizeof(struct tern_hw_ctrl_seg)
#define TERN_HEAD_RDMA	(TERN_HEAD + sizeof(struct tern_hw_raddr_seg))
#define TERN_HEAD_UD	(TERN_HEAD + sizeof(struct tern_hw_ud_seg))

/* The kind of @type, or NULL if the card does not support it. */
static const struct tern_qp_kind *tern_qp_kind_of(const struct tern_dev *tdev,
						  enum ib_qp_type type)
{
	static const struct tern_qp_kind kinds[] = {
		[IB_QPT_GSI] = { .cap = TERN_CAP_UD, .type = TERN_QPT_GSI, .kernel = true,
				 .sq_head = TERN_HEAD_UD, .rq = true },
		[IB_QPT_RC] = { .cap = TERN_CAP_RC, .type = TERN_QPT_RC,
				.user = true, .kernel = true,
				.sq_head = TERN_HEAD_RDMA, .rq = true, .srq = true },
		[IB_QPT_UC] = { .cap = TERN_CAP_UC, .type = TERN_QPT_UC,
				.user = true, .kernel = true,
				.sq_head = TERN_HEAD_RDMA, .rq = true, .srq = true },
		[IB_QPT_UD] = { .cap = TERN_CAP_UD, .type = TERN_QPT_UD,
				.user = true, .kernel = true,
				.sq_head = TERN_HEAD_UD, .rq = true, .srq = true,
				.create_flags = IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK },
		[IB_QPT_RAW_PACKET] = { .cap = TERN_CAP_RAW, .type = TERN_QPT_RAW, .user = true,
					.sq_head = TERN_HEAD, .rq = true },
		[IB_QPT_XRC_INI] = { .cap = TERN_CAP_XRC, .type = TERN_QPT_XRC_INI, .user = true,
				     .sq_head = TERN_HEAD_RDMA },
		/* ib_core creates it without udata, then shares it between processes. */
		[IB_QPT_XRC_TGT] = { .cap = TERN_CAP_XRC, .type = TERN_QPT_XRC_TGT,
				     .kernel = true },
	};

	if ((u32)type >= ARRAY_SIZE(kinds) || !kinds[type].cap || !(tdev->caps & kinds[type].cap))
		return NULL;
	return &kinds[type];
}

static bool tern_qp_init_supported(const struct tern_qp_kind *kind,
				   const struct ib_qp_init_attr *init, bool user)
{
	bool tags = init->srq && init->srq->srq_type == IB_SRQT_TM;

	return kind && (user ? kind->user : kind->kernel) &&
	       !(init->srq && !kind->srq) && !(tags && kind->type != TERN_QPT_RC) &&
	       !(init->create_flags & ~kind->create_flags);
}

/* Only the first engine receives frames that are not RoCE. */
static bool tern_qp_gets_frames(const struct ib_qp *ibqp)
{
	struct tern_dev *tdev = to_tdev(ibqp->device);

	return tern_engine_of(tdev, to_tpd(ibqp->pd)->pdn) == &tdev->engines[0];
}

/* ---- sizes ------------------------------------------------------------------------ */

static int tern_check_cap(const struct tern_dev *tdev, const struct ib_qp_cap *cap)
{
	const struct tern_device_attr *attr = &tdev->attr;

	if (cap->max_send_wr > 1U << attr->max_sq_log_size ||
	    cap->max_recv_wr > 1U << attr->max_rq_log_size ||
	    cap->max_send_sge > attr->max_send_sge ||
	    cap->max_recv_sge > attr->max_recv_sge ||
	    cap->max_inline_data > attr->max_inline)
		return -EINVAL;
	return 0;
}

/* The blocks of the largest send WQE. Atomic, bind and REG_MR WQEs always fit in one block. */
static u32 tern_sq_wqe_blocks(u32 head, const struct ib_qp_cap *cap)
{
	u32 payload = max_t(u32, cap->max_send_sge * TERN_SEG_SIZE, cap->max_inline_data);

	static_assert(TERN_HEAD_RDMA + sizeof(struct tern_hw_atomic_seg) +
		      sizeof(struct tern_hw_data_seg) <= TERN_SQ_BLOCK);
	static_assert(TERN_HEAD + sizeof(struct tern_hw_bind_seg) <= TERN_SQ_BLOCK);
	static_assert(TERN_HEAD + sizeof(struct tern_hw_reg_seg) <= TERN_SQ_BLOCK);

	return DIV_ROUND_UP(head + payload, TERN_SQ_BLOCK);
}

/* Returns the log2 of the send queue in blocks, and raises @cap to what it can hold. */
static u8 tern_qp_plan_sq(const struct tern_dev *tdev, u32 head, struct ib_qp_cap *cap)
{
	const struct tern_device_attr *attr = &tdev->attr;
	u32 blocks = tern_sq_wqe_blocks(head, cap);
	u32 payload = blocks * TERN_SQ_BLOCK - head;
	u8 log_size = order_base_2(max(cap->max_send_wr, 1U) * blocks);

	cap->max_send_wr = (1U << log_size) / blocks;
	cap->max_send_sge = min_t(u32, payload / TERN_SEG_SIZE, attr->max_send_sge);
	cap->max_inline_data = min_t(u32, payload, attr->max_inline);
	return log_size;
}

/* Returns the log2 of the stride, and raises @cap to what 1 << @log_size WQEs can hold. */
static u8 tern_qp_plan_rq(const struct tern_dev *tdev, u8 log_size, struct ib_qp_cap *cap)
{
	u8 stride = order_base_2(max(cap->max_recv_sge, 1U) * TERN_SEG_SIZE);

	cap->max_recv_wr = 1U << log_size;
	cap->max_recv_sge = min_t(u32, (1U << stride) / TERN_SEG_SIZE, tdev->attr.max_recv_sge);
	return stride;
}

/* Plans the queues of a QP for @cap, and raises @cap to what they can hold. */
static int tern_qp_plan_cap(const struct tern_dev *tdev, const struct tern_qp_kind *kind,
			    bool rq, struct ib_qp_cap *cap, struct tern_qp_layout *layout)
{
	u8 sq_log, rq_log = 0, stride = 0;

	sq_log = tern_qp_plan_sq(tdev, kind->sq_head, cap);
	if (sq_log > tdev->attr.max_sq_log_size)
		return -EINVAL;
	if (rq) {
		rq_log = order_base_2(max(cap->max_recv_wr, 1U));
		stride = tern_qp_plan_rq(tdev, rq_log, cap);
	} else {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	}
	tern_qp_plan(layout, sq_log, rq_log, stride);
	return 0;
}

/*
 * Raises @cap such that a WQE has room for a masked atomic, the only operation besides those with
 * payload that takes more than one block. Processes have no verb for it.
 */
static void tern_qp_fit_masked_atomic(struct ib_qp_cap *cap)
{
	u32 segs = (sizeof(struct tern_hw_atomic_seg) + sizeof(struct tern_hw_atomic_mask_seg) +
		    sizeof(struct tern_hw_data_seg)) / TERN_SEG_SIZE;

	cap->max_send_sge = max(cap->max_send_sge, segs);
}

/* ---- create and destroy ------------------------------------------------------------- */

/*
 * Takes tern_qp.lock and returns true, unless the QP has been destroyed. A command that may come
 * after DESTROY_QP is sent under this lock, or it could reach the next QP of this number, which may
 * belong to another process.
 */
bool tern_qp_lock_living(struct tern_qp *qp)
{
	mutex_lock(&qp->lock);
	if (!qp->destroyed)
		return true;
	mutex_unlock(&qp->lock);
	return false;
}

/*
 * A caller of tern_qp_lock_living() that finds the QP destroyed relies on it that the card's QP is
 * gone, too: tern_counter_dealloc() then destroys the statistics that the QP was bound to.
 */
void tern_qp_destroy_core(struct tern_qp *qp)
{
	mutex_lock(&qp->lock);
	qp->destroyed = true;
	tern_qp_core_destroy(to_tdev(qp->ibqp.device), &qp->core);
	mutex_unlock(&qp->lock);
}

static u8 tern_qp_flags(const struct ib_qp_init_attr *init)
{
	u8 flags = 0;

	if (init->sq_sig_type == IB_SIGNAL_ALL_WR)
		flags |= TERN_QP_SIGNAL_ALL;
	if (init->srq)
		flags |= TERN_QP_SRQ;
	if (init->create_flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK)
		flags |= TERN_QP_NO_MC_LOOPBACK;
	return flags;
}

static void tern_qp_describe(const struct tern_qp *qp, const struct tern_qp_kind *kind,
			     const struct ib_qp_init_attr *init, struct tern_hw_create_qp *hw)
{
	*hw = (struct tern_hw_create_qp) {
		.type = kind->type,
		.flags = tern_qp_flags(init),
		.pdn = cpu_to_le32(to_tpd(qp->ibqp.pd)->pdn),
		.send_cqn = cpu_to_le32(to_tcq(init->send_cq)->core.cqn),
		.recv_cqn = cpu_to_le32(init->recv_cq ? to_tcq(init->recv_cq)->core.cqn : 0),
		.db_page = cpu_to_le32(TERN_DB_PAGE_KERNEL),
		.srqn = cpu_to_le32(init->srq ? to_tsrq(init->srq)->core.srqn : 0),
	};
}

static int tern_uqp_respond(struct ib_udata *udata, const struct tern_qp *qp,
			    const struct tern_qp_layout *layout)
{
	struct tern_create_qp_resp resp = {
		.buf_key = qp->ubuf.key,
		.buf_len = PAGE_ALIGN(layout->size),
		.rq_offset = layout->rq_offset,
		.record_offset = layout->record_offset,
		.qpn = qp->core.qpn,
		.sq_log_size = layout->sq_log_size,
		.rq_log_size = layout->rq_log_size,
		.rq_log_stride = layout->rq_log_stride,
	};

	return tern_udata_respond(udata, &resp, sizeof(resp));
}

static int tern_uqp_create(struct tern_qp *qp, const struct tern_qp_layout *layout,
			   struct tern_hw_create_qp *hw, struct ib_udata *udata)
{
	struct tern_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct tern_ucontext, ibucontext);
	struct tern_dev *tdev = to_tdev(qp->ibqp.device);
	int err;

	err = tern_ubuf_create(uctx, &qp->ubuf, layout->size);
	if (err)
		return err;
	hw->db_page = cpu_to_le32(uctx->db_page);
	err = tern_qp_core_create(tdev, &qp->core, qp->ubuf.buf, layout, hw);
	if (err)
		goto err_ubuf;
	err = tern_uqp_respond(udata, qp, layout);
	if (err)
		goto err_core;
	return 0;

err_core:
	tern_qp_destroy_core(qp);
err_ubuf:
	tern_ubuf_destroy(&qp->ubuf);
	return err;
}

static void tern_uqp_destroy(struct tern_qp *qp)
{
	tern_qp_destroy_core(qp);
	tern_ubuf_destroy(&qp->ubuf);
}

/*
 * An XRC target QP has no queues. ib_core owns it on behalf of the processes that share the
 * domain.
 */
static int tern_xrc_tgt_create(struct tern_qp *qp, const struct ib_qp_init_attr *init)
{
	struct tern_hw_create_qp hw = {
		.type = TERN_QPT_XRC_TGT,
		.xrcdn = cpu_to_le32(to_txrcd(init->xrcd)->xrcdn),
	};

	return tern_qp_core_create(to_tdev(qp->ibqp.device), &qp->core, NULL, NULL, &hw);
}

static int tern_qp_create_queues(struct tern_qp *qp, const struct tern_qp_kind *kind,
				 const struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct tern_dev *tdev = to_tdev(qp->ibqp.device);
	bool rq = kind->rq && !init->srq;
	struct tern_hw_create_qp hw;
	struct tern_qp_layout layout;
	int err;

	qp->cap = init->cap;
	if (!rq) {	/* nobody reads these, so their limits do not apply */
		qp->cap.max_recv_wr = 0;
		qp->cap.max_recv_sge = 0;
	}
	if (!udata && kind->type == TERN_QPT_RC && tdev->caps & TERN_CAP_MASKED_ATOMIC)
		tern_qp_fit_masked_atomic(&qp->cap);
	err = tern_udata_no_input(udata) ?: tern_check_cap(tdev, &qp->cap) ?:
	      tern_qp_plan_cap(tdev, kind, rq, &qp->cap, &layout);
	if (err)
		return err;

	tern_qp_describe(qp, kind, init, &hw);
	return udata ? tern_uqp_create(qp, &layout, &hw, udata) :
		       tern_kverbs_qp_create(qp, &layout, &hw);
}

/* The card raises no more page faults of the QP. */
static void tern_qp_cancel_faults(struct tern_qp *qp)
{
	cancel_work_sync(&qp->fault_work);	/* queues bring_work */
	cancel_work_sync(&qp->bring_work);
}

int tern_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	const struct tern_qp_kind *kind = tern_qp_kind_of(to_tdev(ibqp->device), init->qp_type);
	struct tern_qp *qp = to_tqp(ibqp);
	int err;

	if (!tern_qp_init_supported(kind, init, udata) ||
	    (init->qp_type == IB_QPT_RAW_PACKET && !tern_qp_gets_frames(ibqp)))
		return -EOPNOTSUPP;

	mutex_init(&qp->lock);
	qp->state = IB_QPS_RESET;
	qp->sig_type = init->sq_sig_type;
	qp->create_flags = init->create_flags;
	qp->core.event = tern_ib_qp_event;
	qp->core.died = tern_ib_qp_died;
	INIT_WORK(&qp->fault_work, tern_odp_fault_work);
	INIT_WORK(&qp->bring_work, tern_odp_bring_work);
	if (init->rwq_ind_tbl)
		err = tern_rss_qp_create(qp, init, udata);
	else if (init->qp_type == IB_QPT_XRC_TGT)
		err = tern_xrc_tgt_create(qp, init);
	else
		err = tern_qp_create_queues(qp, kind, init, udata);
	if (err) {
		tern_qp_cancel_faults(qp);
		mutex_destroy(&qp->lock);
		return err;
	}

	init->cap = qp->cap;
	ibqp->qp_num = qp->core.qpn;
	return 0;
}

/* ib_core still queries the QP until it has taken it out of its own table, so the lock stays. */
int tern_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct tern_qp *qp = to_tqp(ibqp);

	if (ibqp->rwq_ind_tbl)
		tern_cmd_destroy_qp(to_tdev(ibqp->device), qp->core.qpn);
	else if (ibqp->qp_type == IB_QPT_XRC_TGT)
		tern_qp_destroy_core(qp);
	else if (qp->kernel)
		tern_kverbs_qp_destroy(qp);
	else
		tern_uqp_destroy(qp);
	tern_qp_cancel_faults(qp);
	return 0;
}
