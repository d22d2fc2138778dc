/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rings of CQs, QPs, SRQs and WQs: where the parts of a queue's buffer are and, for queues that
 * the driver itself works on, access to the entries and indices. All access to such a ring and
 * its record goes through here. The order of memory accesses:
 *
 *  - consumer: test the phase bit, then read the rest of the entry, then publish the consumer
 *    index.
 *  - producer: write the entry, then publish the producer index, then (send queues only) read
 *    the event index, then ring the doorbell if the event index asks for it.
 */
#ifndef TERN_RING_H
#define TERN_RING_H

#include "pages.h"

/* Where the parts of a CQ's buffer are: the CQEs at 0, then the record. */
struct tern_cq_layout {
	u8 log_size;
	u32 record_offset;
	u32 size;
};

/* Where the parts of a QP's buffer are: the SQ at 0, the RQ, then the record. Stride 0: no RQ. */
struct tern_qp_layout {
	u8 sq_log_size;
	u8 rq_log_size;
	u8 rq_log_stride;
	u32 rq_offset;
	u32 record_offset;
	u32 size;
};

/*
 * Where the parts of an SRQ's buffer are: the slots at 0, the index ring, then the record, then
 * the ring of tag operations. tag_ops_offset is 0 in an SRQ without tag matching.
 */
struct tern_srq_layout {
	u8 log_size;
	u8 log_stride;
	u8 log_tags;
	u8 log_tag_ops;
	u32 ring_offset;
	u32 record_offset;
	u32 tag_ops_offset;
	u32 size;
};

/* Where the parts of a WQ's buffer are: the WQEs at 0, then the record. */
struct tern_wq_layout {
	u8 log_size;
	u8 log_stride;
	u32 record_offset;
	u32 size;
};

void tern_cq_plan(struct tern_cq_layout *layout, u8 log_size);
void tern_qp_plan(struct tern_qp_layout *layout, u8 sq_log_size, u8 rq_log_size, u8 rq_log_stride);
void tern_srq_plan(struct tern_srq_layout *layout, u8 log_size, u8 log_stride);
void tern_srq_plan_tags(struct tern_srq_layout *layout, u8 log_tags, u8 log_tag_ops);
void tern_wq_plan(struct tern_wq_layout *layout, u8 log_size, u8 log_stride);

/*
 * How many entries of a ring, from @ci on, the card has written and the host not consumed. @entry
 * is the size of an entry, whose last byte has the phase.
 */
u32 tern_ring_pending(const struct tern_buf *buf, u8 log_size, u32 entry, u32 ci);

struct tern_ring_cq {
	u32 cqn;		/* set when the CQ is created */
	struct tern_cq_layout layout;
	struct tern_buf buf;
	struct tern_hw_cq_record *record;
	u32 ci;
	struct tern_hw_cqe cqe;	/* what tern_ring_cq_next() returned */
};

int tern_ring_cq_init(struct tern_dev *tdev, struct tern_ring_cq *cq, u8 log_size);
void tern_ring_cq_exit(struct tern_dev *tdev, struct tern_ring_cq *cq);
const struct tern_hw_cqe *tern_ring_cq_next(struct tern_ring_cq *cq);
bool tern_ring_cq_written(const struct tern_ring_cq *cq, u32 index);
void tern_ring_cq_consumed(struct tern_ring_cq *cq);
void tern_ring_cq_arm(struct tern_dev *tdev, struct tern_ring_cq *cq, bool solicited);
void tern_ring_cq_disown(struct tern_ring_cq *cq);

static inline u32 tern_ring_cq_size(const struct tern_ring_cq *cq)
{
	return 1U << cq->layout.log_size;
}

static inline void tern_ring_cq_pop(struct tern_ring_cq *cq)
{
	cq->ci++;
}

struct tern_ring_qp {
	u32 qpn;		/* set when the QP is created */
	struct tern_qp_layout layout;
	struct tern_buf buf;
	struct tern_hw_qp_record *record;
	u32 sq_pi;		/* the published index */
};

int tern_ring_qp_init(struct tern_dev *tdev, struct tern_ring_qp *qp,
		      const struct tern_qp_layout *layout);
void tern_ring_qp_exit(struct tern_dev *tdev, struct tern_ring_qp *qp);
void tern_ring_qp_publish_sq(struct tern_dev *tdev, struct tern_ring_qp *qp, u32 pi);
void tern_ring_qp_publish_rq(struct tern_ring_qp *qp, u32 pi);
void tern_ring_qp_reset(struct tern_ring_qp *qp);

static inline u32 tern_ring_qp_sq_blocks(const struct tern_ring_qp *qp)
{
	return 1U << qp->layout.sq_log_size;
}

static inline u32 tern_ring_qp_rq_slots(const struct tern_ring_qp *qp)
{
	return 1U << qp->layout.rq_log_size;
}

/* Segment @seg of the send WQE that begins at block @block. A WQE may wrap at the ring's end. */
static inline void *tern_ring_qp_sq_seg(const struct tern_ring_qp *qp, u32 block, u32 seg)
{
	u32 mask = (TERN_SQ_BLOCK << qp->layout.sq_log_size) - 1;

	return tern_buf_at(&qp->buf, (block * TERN_SQ_BLOCK + seg * TERN_SEG_SIZE) & mask);
}

static inline void *tern_ring_qp_rq_wqe(const struct tern_ring_qp *qp, u32 index)
{
	u32 slot = index & (tern_ring_qp_rq_slots(qp) - 1);

	return tern_buf_at(&qp->buf, qp->layout.rq_offset + (slot << qp->layout.rq_log_stride));
}

struct tern_ring_srq {
	struct tern_srq_layout layout;
	struct tern_buf buf;
	struct tern_hw_srq_record *record;
};

int tern_ring_srq_init(struct tern_dev *tdev, struct tern_ring_srq *srq,
		       const struct tern_srq_layout *layout);
void tern_ring_srq_exit(struct tern_dev *tdev, struct tern_ring_srq *srq);
void tern_ring_srq_enter(struct tern_ring_srq *srq, u32 pi, u32 slot);
void tern_ring_srq_publish(struct tern_ring_srq *srq, u32 pi);

static inline u32 tern_ring_srq_slots(const struct tern_ring_srq *srq)
{
	return 1U << srq->layout.log_size;
}

static inline void *tern_ring_srq_wqe(const struct tern_ring_srq *srq, u32 slot)
{
	return tern_buf_at(&srq->buf, (size_t)slot << srq->layout.log_stride);
}

#endif
