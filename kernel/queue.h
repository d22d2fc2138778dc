/* SPDX-License-Identifier: GPL-2.0 */
/* CQs, QPs and SRQs as the card knows them, whoever owns their rings: a process or this driver. */
#ifndef TERN_QUEUE_H
#define TERN_QUEUE_H

#include <linux/workqueue.h>

#include "pages.h"

struct tern_dev;
struct tern_eq;

struct tern_cq_core {
	u32 cqn;
	struct tern_eq *eq;
	/* Called from interrupt handlers. */
	void (*completed)(struct tern_cq_core *cq);
	void (*failed)(struct tern_cq_core *cq);
	/* Called in a context like that of interrupts; NULL where nobody waits for the card. */
	void (*died)(struct tern_cq_core *cq);
};

struct tern_qp_core {
	u32 qpn;
	struct tern_dev *tdev;
	struct work_struct fault_work;	/* brings the pages that it waits for */
	/* Called from interrupt handlers with an enum tern_hw_event. */
	void (*event)(struct tern_qp_core *qp, u8 type);
};

struct tern_srq_core {
	u32 srqn;
	/* Called from interrupt handlers with an enum tern_hw_event. */
	void (*event)(struct tern_srq_core *srq, u8 type);
};

struct tern_wq_core {
	u32 wqn;
	/* Called from interrupt handlers with an enum tern_hw_event. */
	void (*event)(struct tern_wq_core *wq, u8 type);
};

/* Where the parts of a CQ's buffer are: the CQEs at 0, then the record. */
struct tern_cq_layout {
	u8 log_size;
	u32 record_offset;
	u32 size;
};

/*
 * Where the parts of a QP's buffer are: the SQ at 0, the RQ, then the record. A stride of 0
 * stands for no RQ.
 */
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
 * the tag operations of one that has them; of others tag_ops_offset is 0.
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

int tern_cq_core_create(struct tern_dev *tdev, struct tern_cq_core *cq, const struct tern_buf *buf,
			const struct tern_cq_layout *layout, u32 db_page);
int tern_cq_core_move(struct tern_dev *tdev, struct tern_cq_core *cq, const struct tern_buf *buf,
		      const struct tern_cq_layout *layout);
void tern_cq_core_destroy(struct tern_dev *tdev, struct tern_cq_core *cq);

/* What creates a QP besides its buffer. */
struct tern_qp_core_params {
	u8 type;		/* enum tern_hw_qp_type */
	u8 flags;		/* TERN_QP_* */
	u32 pdn;
	u32 send_cqn;
	u32 recv_cqn;
	u32 db_page;
	u32 srqn;		/* with TERN_QP_SRQ */
	u32 xrcdn;		/* with TERN_QPT_XRC_TGT */
};

/* Without @buf it is a QP that has no queues. */
int tern_qp_core_create(struct tern_dev *tdev, struct tern_qp_core *qp, const struct tern_buf *buf,
			const struct tern_qp_layout *layout,
			const struct tern_qp_core_params *params);
void tern_qp_core_destroy(struct tern_dev *tdev, struct tern_qp_core *qp);

/* What creates an SRQ besides its buffer; an XRC one has xrcdn and cqn, one with tags has cqn. */
struct tern_srq_core_params {
	u32 pdn;
	u32 xrcdn;
	u32 cqn;
	u32 db_page;		/* of tag operations */
};

int tern_srq_core_create(struct tern_dev *tdev, struct tern_srq_core *srq,
			 const struct tern_buf *buf, const struct tern_srq_layout *layout,
			 const struct tern_srq_core_params *params);
int tern_srq_core_move(struct tern_dev *tdev, struct tern_srq_core *srq,
		       const struct tern_buf *buf, const struct tern_srq_layout *layout);
void tern_srq_core_destroy(struct tern_dev *tdev, struct tern_srq_core *srq);

struct tern_wq_core_params {
	u32 pdn;
	u32 cqn;
};

int tern_wq_core_create(struct tern_dev *tdev, struct tern_wq_core *wq, const struct tern_buf *buf,
			const struct tern_wq_layout *layout,
			const struct tern_wq_core_params *params);
void tern_wq_core_destroy(struct tern_dev *tdev, struct tern_wq_core *wq);

/* From interrupt handlers. */
void tern_cq_completed(struct tern_dev *tdev, u32 cqn);
void tern_cq_failed(struct tern_dev *tdev, u32 cqn);
void tern_qp_event(struct tern_dev *tdev, u32 qpn, u8 type);
void tern_srq_event(struct tern_dev *tdev, u32 srqn, u8 type);
void tern_wq_event(struct tern_dev *tdev, u32 wqn, u8 type);

/* odp.c */
void tern_qp_fault_init(struct tern_dev *tdev, struct tern_qp_core *qp);
void tern_qp_page_fault(struct tern_dev *tdev, u32 qpn);

/* After the card's death. */
void tern_cqs_died(struct tern_dev *tdev);

#endif
