/* SPDX-License-Identifier: GPL-2.0 */
/* CQs, QPs, SRQs and WQs as the card knows them. A process or the driver owns their rings. */
#ifndef TERN_OBJECT_H
#define TERN_OBJECT_H

#include "ring.h"

struct tern_dev;
struct tern_eq;

/*
 * This mark in tern_dev.cqs is set for CQs that have a recheck handler, so that the driver does
 * not visit the CQs of processes, of which there may be many.
 */
#define TERN_CQ_RECHECK	XA_MARK_0

struct tern_cq_core {
	u32 cqn;
	struct tern_eq *eq;
	/* xa_lock of tern_dev.cqs protects the next two */
	const struct tern_buf *buf;
	struct tern_cq_layout layout;
	/* Called from interrupt handlers. */
	void (*completed)(struct tern_cq_core *cq);
	void (*failed)(struct tern_cq_core *cq);
	/* Called with interrupts off by tern_cqs_recheck(). NULL: no user waits on this CQ. */
	void (*recheck)(struct tern_cq_core *cq);
};

struct tern_qp_core {
	u32 qpn;
	const struct tern_hw_qp_record *record;	/* NULL: a QP without queues */
	u32 sq_blocks;
	u32 rq_wqes;
	/* Called from interrupt handlers with an enum tern_hw_event. */
	void (*event)(struct tern_qp_core *qp, u8 type);
	/* Called with interrupts off by tern_qps_died(). NULL: the owner finds out by itself. */
	void (*died)(struct tern_qp_core *qp);
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

int tern_cq_core_create(struct tern_dev *tdev, struct tern_cq_core *cq, const struct tern_buf *buf,
			const struct tern_cq_layout *layout, u32 db_page);
int tern_cq_core_move(struct tern_dev *tdev, struct tern_cq_core *cq, const struct tern_buf *buf,
		      const struct tern_cq_layout *layout);
void tern_cq_core_destroy(struct tern_dev *tdev, struct tern_cq_core *cq);
int tern_cq_core_create_ring(struct tern_dev *tdev, struct tern_cq_core *cq,
			     struct tern_ring_cq *ring, u8 log_size);
void tern_cq_core_destroy_ring(struct tern_dev *tdev, struct tern_cq_core *cq,
			       struct tern_ring_cq *ring);

/* The indices of a CQ. */
struct tern_cq_view {
	u32 eqn;
	u32 cqes;
	u32 ci;		/* as the host has published it */
	u32 pi;		/* the CQEs that the card has written */
};

/* The indices of a QP. */
struct tern_qp_view {
	u32 sq_blocks;
	u32 rq_wqes;	/* 0: no receive queue */
	u32 sq_pi;	/* as the host has published it */
	u32 rq_pi;
	u32 sq_event;	/* the sq_pi that the card had seen when it last ran out of work */
};

bool tern_cq_core_view(struct tern_dev *tdev, u32 cqn, struct tern_cq_view *view);
bool tern_qp_core_view(struct tern_dev *tdev, u32 qpn, struct tern_qp_view *view);

/* The caller has set what @hw says besides the buffer. @buf is NULL for a QP without queues. */
int tern_qp_core_create(struct tern_dev *tdev, struct tern_qp_core *qp, const struct tern_buf *buf,
			const struct tern_qp_layout *layout, struct tern_hw_create_qp *hw);
void tern_qp_core_destroy(struct tern_dev *tdev, struct tern_qp_core *qp);
int tern_qp_core_create_ring(struct tern_dev *tdev, struct tern_qp_core *qp,
			     struct tern_ring_qp *ring, const struct tern_qp_layout *layout,
			     struct tern_hw_create_qp *hw);

/* The same of an SRQ. */
int tern_srq_core_create(struct tern_dev *tdev, struct tern_srq_core *srq,
			 const struct tern_buf *buf, const struct tern_srq_layout *layout,
			 struct tern_hw_create_srq *hw);
int tern_srq_core_move(struct tern_dev *tdev, struct tern_srq_core *srq,
		       const struct tern_buf *buf, const struct tern_srq_layout *layout);
void tern_srq_core_destroy(struct tern_dev *tdev, struct tern_srq_core *srq);

/* The same of a WQ. */
int tern_wq_core_create(struct tern_dev *tdev, struct tern_wq_core *wq, const struct tern_buf *buf,
			const struct tern_wq_layout *layout, struct tern_hw_create_wq *hw);
void tern_wq_core_destroy(struct tern_dev *tdev, struct tern_wq_core *wq);

/* For struct tern_upcalls: bring an event to the owner of the object. */
void tern_cq_event(struct tern_dev *tdev, u32 cqn, u8 type);
void tern_qp_event(struct tern_dev *tdev, u32 qpn, u8 type);
void tern_srq_event(struct tern_dev *tdev, u32 srqn, u8 type);
void tern_wq_event(struct tern_dev *tdev, u32 wqn, u8 type);

void tern_objects_init(struct tern_dev *tdev);
void tern_objects_exit(struct tern_dev *tdev);
void tern_cqs_recheck(struct tern_dev *tdev);
void tern_qps_died(struct tern_dev *tdev);

#endif
