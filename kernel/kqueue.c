// SPDX-License-Identifier: GPL-2.0
/* Queues whose rings this driver itself works on; kqueue.h states the order of accesses. */
#include "hw.h"
#include "kqueue.h"

int tern_kcq_create(struct tern_dev *tdev, struct tern_kcq *cq, struct tern_cq_core *core,
		    u8 log_size)
{
	int err;

	cq->core = core;
	cq->ci = 0;
	tern_cq_plan(&cq->layout, log_size);
	err = tern_buf_init(tdev, &cq->buf, cq->layout.size, GFP_KERNEL);
	if (err)
		return err;

	cq->record = tern_buf_at(&cq->buf, cq->layout.record_offset);
	err = tern_cq_core_create(tdev, core, &cq->buf, &cq->layout, TERN_DB_PAGE_KERNEL);
	if (err)
		tern_buf_exit(tdev, &cq->buf);
	return err;
}

void tern_kcq_destroy(struct tern_dev *tdev, struct tern_kcq *cq)
{
	tern_cq_core_destroy(tdev, cq->core);
	tern_buf_exit(tdev, &cq->buf);
}

/* The next completion, or NULL. It stays valid until tern_kcq_consumed(). */
const struct tern_hw_cqe *tern_kcq_next(const struct tern_kcq *cq)
{
	u32 size = 1U << cq->layout.log_size;
	const struct tern_hw_cqe *cqe =
		tern_buf_at(&cq->buf, (cq->ci & (size - 1)) * sizeof(*cqe));
	u8 phase = cq->ci & size ? 0 : TERN_PHASE;

	if ((READ_ONCE(cqe->phase) & TERN_PHASE) != phase)
		return NULL;
	dma_rmb();
	return cqe;
}

/* Gives the popped entries back to the card. */
void tern_kcq_consumed(struct tern_kcq *cq)
{
	mb(); /* what we read of the entries is read before the card may overwrite them */
	WRITE_ONCE(cq->record->ci, cpu_to_le32(cq->ci));
}

/* Asks for an event; should there be completions past those consumed, it comes at once. */
void tern_kcq_arm(struct tern_dev *tdev, struct tern_kcq *cq, bool solicited)
{
	u32 flags = solicited ? TERN_DB_CQ_SOLICITED : 0;

	tern_db_ring(tdev, TERN_DB_CQ_ARM, cq->core->cqn | flags, cq->ci);
}

/* Makes the completion that tern_kcq_next() gave one of no QP; no object has number 0. */
void tern_kcq_disown(struct tern_kcq *cq)
{
	u32 index = cq->ci & ((1U << cq->layout.log_size) - 1);
	struct tern_hw_cqe *cqe = tern_buf_at(&cq->buf, index * sizeof(*cqe));

	cqe->qpn = 0;
}

int tern_kqp_create(struct tern_dev *tdev, struct tern_kqp *qp, struct tern_qp_core *core,
		    const struct tern_qp_layout *layout,
		    const struct tern_qp_core_params *params)
{
	int err;

	qp->core = core;
	qp->layout = *layout;
	qp->sq_pi = 0;
	err = tern_buf_init(tdev, &qp->buf, layout->size, GFP_KERNEL);
	if (err)
		return err;

	qp->record = tern_buf_at(&qp->buf, layout->record_offset);
	err = tern_qp_core_create(tdev, core, &qp->buf, layout, params);
	if (err)
		tern_buf_exit(tdev, &qp->buf);
	return err;
}

void tern_kqp_stop(struct tern_dev *tdev, struct tern_kqp *qp)
{
	tern_qp_core_destroy(tdev, qp->core);
}

void tern_kqp_free(struct tern_dev *tdev, struct tern_kqp *qp)
{
	tern_buf_exit(tdev, &qp->buf);
}

/* Whether the card asked to be told when the producer index goes from @old to @pi. */
static bool tern_kqp_wants_doorbell(const struct tern_dev *tdev, const struct tern_kqp *qp,
				    u32 old, u32 pi)
{
	u32 event;

	if (!(tdev->caps & TERN_CAP_SHADOW_DB))
		return true;
	mb(); /* the card writes sq_event, then reads sq_pi: one of us sees the other's store */
	event = le32_to_cpu(READ_ONCE(qp->record->sq_event));
	return pi - event - 1 < pi - old;
}

/* Hands all send WQEs before block @pi to the card. */
void tern_kqp_publish_sq(struct tern_dev *tdev, struct tern_kqp *qp, u32 pi)
{
	u32 old = qp->sq_pi;

	dma_wmb(); /* the WQEs before the index */
	WRITE_ONCE(qp->record->sq_pi, cpu_to_le32(pi));
	qp->sq_pi = pi;
	if (tern_kqp_wants_doorbell(tdev, qp, old, pi))
		tern_db_ring(tdev, TERN_DB_SQ, qp->core->qpn, pi);
}

/* Hands all receive WQEs before @pi to the card, which looks here by itself. */
void tern_kqp_publish_rq(struct tern_kqp *qp, u32 pi)
{
	dma_wmb(); /* the WQEs before the index */
	WRITE_ONCE(qp->record->rq_pi, cpu_to_le32(pi));
}

/* The card has begun both rings anew, and looks at them no sooner than the QP leaves RESET. */
void tern_kqp_reset(struct tern_kqp *qp)
{
	qp->sq_pi = 0;
	WRITE_ONCE(qp->record->sq_pi, 0);
	WRITE_ONCE(qp->record->rq_pi, 0);
}

int tern_ksrq_create(struct tern_dev *tdev, struct tern_ksrq *srq, struct tern_srq_core *core,
		     const struct tern_srq_layout *layout,
		     const struct tern_srq_core_params *params)
{
	int err;

	srq->core = core;
	srq->layout = *layout;
	err = tern_buf_init(tdev, &srq->buf, layout->size, GFP_KERNEL);
	if (err)
		return err;

	srq->record = tern_buf_at(&srq->buf, layout->record_offset);
	err = tern_srq_core_create(tdev, core, &srq->buf, layout, params);
	if (err)
		tern_buf_exit(tdev, &srq->buf);
	return err;
}

void tern_ksrq_destroy(struct tern_dev *tdev, struct tern_ksrq *srq)
{
	tern_srq_core_destroy(tdev, srq->core);
	tern_buf_exit(tdev, &srq->buf);
}

/* Makes the WQE in @slot the one that is posted as number @pi. */
void tern_ksrq_enter(struct tern_ksrq *srq, u32 pi, u32 slot)
{
	u32 entry = pi & (tern_ksrq_slots(srq) - 1);
	__le32 *at = tern_buf_at(&srq->buf, srq->layout.ring_offset + entry * sizeof(*at));

	*at = cpu_to_le32(slot);
}

/* Hands all receive WQEs before @pi to the card, which looks here by itself. */
void tern_ksrq_publish(struct tern_ksrq *srq, u32 pi)
{
	dma_wmb(); /* the WQEs and the ring before the index */
	WRITE_ONCE(srq->record->pi, cpu_to_le32(pi));
}
