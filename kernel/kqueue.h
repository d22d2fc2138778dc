/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queues whose rings this driver itself works on. All access to such a ring and its record
 * goes through here, and here alone is the order of memory accesses:
 *
 *  - to consume: see the phase bit, then read the rest of the entry; read the entry,
 *    then publish the consumer index.
 *  - to produce: write the entry, then publish the producer index, then (send queues) read
 *    whether the card wants the doorbell, then ring it.
 */
#ifndef TERN_KQUEUE_H
#define TERN_KQUEUE_H

#include "queue.h"

struct tern_kcq {
	struct tern_cq_core *core;
	struct tern_cq_layout layout;
	struct tern_buf buf;
	struct tern_hw_cq_record *record;
	u32 ci;
};

/* The caller has set @core's eq and handlers. */
int tern_kcq_create(struct tern_dev *tdev, struct tern_kcq *cq, struct tern_cq_core *core,
		    u8 log_size);
void tern_kcq_destroy(struct tern_dev *tdev, struct tern_kcq *cq);
const struct tern_hw_cqe *tern_kcq_next(const struct tern_kcq *cq);
void tern_kcq_consumed(struct tern_kcq *cq);
void tern_kcq_arm(struct tern_dev *tdev, struct tern_kcq *cq, bool solicited);
void tern_kcq_disown(struct tern_kcq *cq);

static inline void tern_kcq_pop(struct tern_kcq *cq)
{
	cq->ci++;
}

struct tern_kqp {
	struct tern_qp_core *core;
	struct tern_qp_layout layout;
	struct tern_buf buf;
	struct tern_hw_qp_record *record;
	u32 sq_pi;		/* as published */
};

/* The caller has set @core's handler; @layout is a plan. */
int tern_kqp_create(struct tern_dev *tdev, struct tern_kqp *qp, struct tern_qp_core *core,
		    const struct tern_qp_layout *layout,
		    const struct tern_qp_core_params *params);
/* Between the two the card no longer looks at the rings, and the caller may empty them. */
void tern_kqp_stop(struct tern_dev *tdev, struct tern_kqp *qp);
void tern_kqp_free(struct tern_dev *tdev, struct tern_kqp *qp);
void tern_kqp_publish_sq(struct tern_dev *tdev, struct tern_kqp *qp, u32 pi);
void tern_kqp_publish_rq(struct tern_kqp *qp, u32 pi);
void tern_kqp_reset(struct tern_kqp *qp);

static inline u32 tern_kqp_sq_blocks(const struct tern_kqp *qp)
{
	return 1U << qp->layout.sq_log_size;
}

static inline u32 tern_kqp_rq_slots(const struct tern_kqp *qp)
{
	return 1U << qp->layout.rq_log_size;
}

/* Segment @seg of the send WQE that begins at block @block; the ring wraps inside a WQE too. */
static inline void *tern_kqp_sq_seg(const struct tern_kqp *qp, u32 block, u32 seg)
{
	u32 mask = (TERN_SQ_BLOCK << qp->layout.sq_log_size) - 1;

	return tern_buf_at(&qp->buf, (block * TERN_SQ_BLOCK + seg * TERN_SEG_SIZE) & mask);
}

static inline void *tern_kqp_rq_wqe(const struct tern_kqp *qp, u32 index)
{
	u32 slot = index & (tern_kqp_rq_slots(qp) - 1);

	return tern_buf_at(&qp->buf, qp->layout.rq_offset + (slot << qp->layout.rq_log_stride));
}

struct tern_ksrq {
	struct tern_srq_core *core;
	struct tern_srq_layout layout;
	struct tern_buf buf;
	struct tern_hw_srq_record *record;
};

/* The caller has set @core's handler; @layout is a plan. */
int tern_ksrq_create(struct tern_dev *tdev, struct tern_ksrq *srq, struct tern_srq_core *core,
		     const struct tern_srq_layout *layout,
		     const struct tern_srq_core_params *params);
void tern_ksrq_destroy(struct tern_dev *tdev, struct tern_ksrq *srq);
void tern_ksrq_enter(struct tern_ksrq *srq, u32 pi, u32 slot);
void tern_ksrq_publish(struct tern_ksrq *srq, u32 pi);

static inline u32 tern_ksrq_slots(const struct tern_ksrq *srq)
{
	return 1U << srq->layout.log_size;
}

static inline void *tern_ksrq_wqe(const struct tern_ksrq *srq, u32 slot)
{
	return tern_buf_at(&srq->buf, (size_t)slot << srq->layout.log_stride);
}

#endif
