// SPDX-License-Identifier: GPL-2.0
/* Layouts of queues, and rings that the driver works on. ring.h states the order of accesses. */
#include <linux/kernel.h>

#include "hw.h"
#include "ring.h"

/* ---- layouts ---------------------------------------------------------------------- */

void tern_cq_plan(struct tern_cq_layout *layout, u8 log_size)
{
	layout->log_size = log_size;
	layout->record_offset = sizeof(struct tern_hw_cqe) << log_size;
	layout->size = layout->record_offset + sizeof(struct tern_hw_cq_record);
}

/* Receive WQEs are aligned to their size, so none crosses a page boundary. */
void tern_qp_plan(struct tern_qp_layout *layout, u8 sq_log_size, u8 rq_log_size, u8 rq_log_stride)
{
	u32 sq_bytes = TERN_SQ_BLOCK << sq_log_size;
	u32 rq_bytes = rq_log_stride ? 1U << (rq_log_size + rq_log_stride) : 0;
	u32 stride = 1U << rq_log_stride;

	layout->sq_log_size = sq_log_size;
	layout->rq_log_size = rq_log_size;
	layout->rq_log_stride = rq_log_stride;
	layout->rq_offset = ALIGN(sq_bytes, max_t(u32, stride, TERN_SQ_BLOCK));
	layout->record_offset = ALIGN(layout->rq_offset + rq_bytes,
				      sizeof(struct tern_hw_qp_record));
	layout->size = layout->record_offset + sizeof(struct tern_hw_qp_record);
}

/* Slots are aligned to their size, as receive WQEs are. */
void tern_srq_plan(struct tern_srq_layout *layout, u8 log_size, u8 log_stride)
{
	u32 slot_bytes = 1U << (log_size + log_stride);
	u32 ring_bytes = sizeof(__le32) << log_size;

	*layout = (struct tern_srq_layout) {
		.log_size = log_size,
		.log_stride = log_stride,
		.ring_offset = ALIGN(slot_bytes, TERN_SQ_BLOCK),
	};
	layout->record_offset = ALIGN(layout->ring_offset + ring_bytes,
				      sizeof(struct tern_hw_srq_record));
	layout->size = layout->record_offset + sizeof(struct tern_hw_srq_record);
}

/* After tern_srq_plan(). */
void tern_srq_plan_tags(struct tern_srq_layout *layout, u8 log_tags, u8 log_tag_ops)
{
	layout->log_tags = log_tags;
	layout->log_tag_ops = log_tag_ops;
	layout->tag_ops_offset = layout->size;
	layout->size += sizeof(struct tern_hw_tag_op) << log_tag_ops;
}

void tern_wq_plan(struct tern_wq_layout *layout, u8 log_size, u8 log_stride)
{
	layout->log_size = log_size;
	layout->log_stride = log_stride;
	layout->record_offset = ALIGN(1U << (log_size + log_stride),
				      sizeof(struct tern_hw_qp_record));
	layout->size = layout->record_offset + sizeof(struct tern_hw_qp_record);
}

/* ---- any ring of the card ---------------------------------------------------------- */

static bool tern_ring_written(const struct tern_buf *buf, u8 log_size, u32 entry, u32 index)
{
	u32 size = 1U << log_size;
	const u8 *phase = tern_buf_at(buf, (size_t)(index & (size - 1)) * entry + entry - 1);

	return (READ_ONCE(*phase) & TERN_PHASE) == (index & size ? 0 : TERN_PHASE);
}

/* The card writes entries in order, so the ones that it has not written come last. */
u32 tern_ring_pending(const struct tern_buf *buf, u8 log_size, u32 entry, u32 ci)
{
	u32 from = 0, to = 1U << log_size;

	while (from < to) {
		u32 middle = from + (to - from) / 2;

		if (tern_ring_written(buf, log_size, entry, ci + middle))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* ---- CQs --------------------------------------------------------------------------- */

int tern_ring_cq_init(struct tern_dev *tdev, struct tern_ring_cq *cq, u8 log_size)
{
	int err;

	tern_cq_plan(&cq->layout, log_size);
	err = tern_buf_init(tdev, &cq->buf, cq->layout.size, GFP_KERNEL);
	if (err)
		return err;
	cq->ci = 0;
	cq->record = tern_buf_at(&cq->buf, cq->layout.record_offset);
	return 0;
}

void tern_ring_cq_exit(struct tern_dev *tdev, struct tern_ring_cq *cq)
{
	tern_buf_exit(tdev, &cq->buf);
}

static const struct tern_hw_cqe *tern_ring_cq_entry(const struct tern_ring_cq *cq, u32 index)
{
	u32 slot = index & (tern_ring_cq_size(cq) - 1);

	return tern_buf_at(&cq->buf, slot * sizeof(struct tern_hw_cqe));
}

/* Returns whether the card has written the CQE @index. The host must not have consumed it yet. */
bool tern_ring_cq_written(const struct tern_ring_cq *cq, u32 index)
{
	u8 phase = index & tern_ring_cq_size(cq) ? 0 : TERN_PHASE;

	return (READ_ONCE(tern_ring_cq_entry(cq, index)->phase) & TERN_PHASE) == phase;
}

/*
 * Returns the next completion, or NULL. Returns a copy, valid until the next call: a faulty card
 * may overwrite the ring entry at any time, also between a check and the use.
 */
const struct tern_hw_cqe *tern_ring_cq_next(struct tern_ring_cq *cq)
{
	if (!tern_ring_cq_written(cq, cq->ci))
		return NULL;
	dma_rmb();
	cq->cqe = *tern_ring_cq_entry(cq, cq->ci);
	barrier(); /* the compiler must not read the ring entry again */
	return &cq->cqe;
}

/* Gives the popped entries back to the card. */
void tern_ring_cq_consumed(struct tern_ring_cq *cq)
{
	mb(); /* read the entries before the card may overwrite them */
	WRITE_ONCE(cq->record->ci, cpu_to_le32(cq->ci));
}

/* Asks for an event. If the CQ has completions that are not consumed, it comes at once. */
void tern_ring_cq_arm(struct tern_dev *tdev, struct tern_ring_cq *cq, bool solicited)
{
	u32 flags = solicited ? TERN_DB_CQ_SOLICITED : 0;

	tern_db_ring(tdev, TERN_DB_CQ_ARM, cq->cqn | flags, cq->ci);
}

/* Sets the QPN of the completion of tern_ring_cq_next() to 0, which no QP has. */
void tern_ring_cq_disown(struct tern_ring_cq *cq)
{
	u32 index = cq->ci & ((1U << cq->layout.log_size) - 1);
	struct tern_hw_cqe *cqe = tern_buf_at(&cq->buf, index * sizeof(*cqe));

	cqe->qpn = 0;
}

/* ---- QPs --------------------------------------------------------------------------- */

int tern_ring_qp_init(struct tern_dev *tdev, struct tern_ring_qp *qp,
		      const struct tern_qp_layout *layout)
{
	int err = tern_buf_init(tdev, &qp->buf, layout->size, GFP_KERNEL);

	if (err)
		return err;
	qp->layout = *layout;
	qp->sq_pi = 0;
	qp->record = tern_buf_at(&qp->buf, layout->record_offset);
	return 0;
}

void tern_ring_qp_exit(struct tern_dev *tdev, struct tern_ring_qp *qp)
{
	tern_buf_exit(tdev, &qp->buf);
}

/* Whether the event index asks for a doorbell when the producer index goes from @old to @pi. */
static bool tern_ring_qp_wants_doorbell(const struct tern_dev *tdev,
					const struct tern_ring_qp *qp, u32 old, u32 pi)
{
	u32 event;

	if (!(tdev->caps & TERN_CAP_SHADOW_DB))
		return true;
	mb(); /* the card stores sq_event, then loads sq_pi: one side sees the other's store */
	event = le32_to_cpu(READ_ONCE(qp->record->sq_event));
	return pi - event - 1 < pi - old;
}

/* Publishes all send WQEs before block @pi. */
void tern_ring_qp_publish_sq(struct tern_dev *tdev, struct tern_ring_qp *qp, u32 pi)
{
	u32 old = qp->sq_pi;

	dma_wmb(); /* the WQEs before the index */
	WRITE_ONCE(qp->record->sq_pi, cpu_to_le32(pi));
	qp->sq_pi = pi;
	if (tern_ring_qp_wants_doorbell(tdev, qp, old, pi))
		tern_db_ring(tdev, TERN_DB_SQ, qp->qpn, pi);
}

/* Publishes all receive WQEs before @pi. The card loads the index when it needs a WQE. */
void tern_ring_qp_publish_rq(struct tern_ring_qp *qp, u32 pi)
{
	dma_wmb(); /* the WQEs before the index */
	WRITE_ONCE(qp->record->rq_pi, cpu_to_le32(pi));
}

/* The QP is in RESET: the card has reset its indices, and does not read the rings. */
void tern_ring_qp_reset(struct tern_ring_qp *qp)
{
	qp->sq_pi = 0;
	WRITE_ONCE(qp->record->sq_pi, 0);
	WRITE_ONCE(qp->record->rq_pi, 0);
}

/* ---- SRQs -------------------------------------------------------------------------- */

int tern_ring_srq_init(struct tern_dev *tdev, struct tern_ring_srq *srq,
		       const struct tern_srq_layout *layout)
{
	int err = tern_buf_init(tdev, &srq->buf, layout->size, GFP_KERNEL);

	if (err)
		return err;
	srq->layout = *layout;
	srq->record = tern_buf_at(&srq->buf, layout->record_offset);
	return 0;
}

void tern_ring_srq_exit(struct tern_dev *tdev, struct tern_ring_srq *srq)
{
	tern_buf_exit(tdev, &srq->buf);
}

/* Makes the WQE in @slot entry @pi of the index ring. */
void tern_ring_srq_enter(struct tern_ring_srq *srq, u32 pi, u32 slot)
{
	u32 entry = pi & (tern_ring_srq_slots(srq) - 1);
	__le32 *at = tern_buf_at(&srq->buf, srq->layout.ring_offset + entry * sizeof(*at));

	*at = cpu_to_le32(slot);
}

/* Publishes all receive WQEs before @pi. The card loads the index when it needs a WQE. */
void tern_ring_srq_publish(struct tern_ring_srq *srq, u32 pi)
{
	dma_wmb(); /* the WQEs and the ring before the index */
	WRITE_ONCE(srq->record->pi, cpu_to_le32(pi));
}
