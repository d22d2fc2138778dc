// SPDX-License-Identifier: GPL-2.0
/*
 * CQs, QPs, SRQs and WQs as the card knows them: creates and destroys them, and passes their
 * events to their owners.
 *
 * An event may race with the destruction of its object. Destroying takes the object out of the
 * table first, then out of the card, then waits for the handlers that could have found it. So a
 * number is free in the table before the card can reuse it, and no handler holds an object that
 * is freed.
 */
#include "cmd.h"
#include "eq.h"
#include "object.h"
#include "tern.h"

/*
 * Takes an object out of the card that, because of @err, is not in its table. If its number is in
 * use there, the card has given it to two objects, and @destroy could hit the other one.
 */
static void tern_object_drop(struct tern_dev *tdev, u32 num, int err,
			     void (*destroy)(struct tern_dev *tdev, u32 num))
{
	if (err == -EBUSY)
		tern_cmd_wrong_number(tdev, num);
	else
		destroy(tdev, num);
}

/* The caller has set eq and the handlers of @cq. */
int tern_cq_core_create(struct tern_dev *tdev, struct tern_cq_core *cq, const struct tern_buf *buf,
			const struct tern_cq_layout *layout, u32 db_page)
{
	struct tern_hw_create_cq hw = {
		.record = cpu_to_le64(tern_buf_dma(buf, layout->record_offset)),
		.eqn = cpu_to_le32(cq->eq->eqn),
		.db_page = cpu_to_le32(db_page),
		.log_size = layout->log_size,
	};
	int err;

	cq->buf = buf;
	cq->layout = *layout;
	tern_table_describe(&buf->table, 0, &hw.pages);
	err = tern_cmd_create_cq(tdev, &hw, &cq->cqn);
	if (err)
		return err;

	err = xa_insert_bh(&tdev->cqs, cq->cqn, cq, GFP_KERNEL);
	if (err) {
		tern_object_drop(tdev, cq->cqn, err, tern_cmd_destroy_cq);
		return err;
	}
	if (cq->recheck) {
		xa_lock_bh(&tdev->cqs);
		__xa_set_mark(&tdev->cqs, cq->cqn, TERN_CQ_RECHECK);
		xa_unlock_bh(&tdev->cqs);
	}
	return 0;
}

/* Moves the CQ to @buf, whose record the caller has filled. Then the old buffer is unused. */
int tern_cq_core_move(struct tern_dev *tdev, struct tern_cq_core *cq, const struct tern_buf *buf,
		      const struct tern_cq_layout *layout)
{
	struct tern_hw_resize_cq hw = {
		.record = cpu_to_le64(tern_buf_dma(buf, layout->record_offset)),
		.cqn = cpu_to_le32(cq->cqn),
		.log_size = layout->log_size,
	};
	int err;

	tern_table_describe(&buf->table, 0, &hw.pages);
	err = tern_cmd_resize_cq(tdev, &hw);
	if (err)
		return err;
	xa_lock_bh(&tdev->cqs);
	cq->buf = buf;
	cq->layout = *layout;
	xa_unlock_bh(&tdev->cqs);
	return 0;
}

void tern_cq_core_destroy(struct tern_dev *tdev, struct tern_cq_core *cq)
{
	xa_erase_bh(&tdev->cqs, cq->cqn);
	tern_cmd_destroy_cq(tdev, cq->cqn);
	tern_eqs_synchronize(tdev);
}

/* Allocates the ring of a CQ that the driver itself polls, and creates the CQ. */
int tern_cq_core_create_ring(struct tern_dev *tdev, struct tern_cq_core *cq,
			     struct tern_ring_cq *ring, u8 log_size)
{
	int err;

	err = tern_ring_cq_init(tdev, ring, log_size);
	if (err)
		return err;
	err = tern_cq_core_create(tdev, cq, &ring->buf, &ring->layout, TERN_DB_PAGE_KERNEL);
	if (err) {
		tern_ring_cq_exit(tdev, ring);
		return err;
	}
	ring->cqn = cq->cqn;
	return 0;
}

void tern_cq_core_destroy_ring(struct tern_dev *tdev, struct tern_cq_core *cq,
			       struct tern_ring_cq *ring)
{
	tern_cq_core_destroy(tdev, cq);
	tern_ring_cq_exit(tdev, ring);
}

static void tern_qp_describe_buf(const struct tern_buf *buf, const struct tern_qp_layout *layout,
				 struct tern_hw_create_qp *hw)
{
	tern_table_describe(&buf->table, 0, &hw->pages);
	hw->record = cpu_to_le64(tern_buf_dma(buf, layout->record_offset));
	hw->rq_offset = cpu_to_le32(layout->rq_offset);
	hw->sq_log_size = layout->sq_log_size;
	hw->rq_log_size = layout->rq_log_size;
	hw->rq_log_stride = layout->rq_log_stride;
}

/* The caller has set the handler. */
int tern_qp_core_create(struct tern_dev *tdev, struct tern_qp_core *qp, const struct tern_buf *buf,
			const struct tern_qp_layout *layout, struct tern_hw_create_qp *hw)
{
	int err;

	if (buf) {
		qp->record = tern_buf_at(buf, layout->record_offset);
		qp->sq_blocks = 1U << layout->sq_log_size;
		qp->rq_wqes = layout->rq_log_stride ? 1U << layout->rq_log_size : 0;
		tern_qp_describe_buf(buf, layout, hw);
	}
	err = tern_cmd_create_qp(tdev, hw, &qp->qpn);
	if (err)
		return err;

	err = xa_insert(&tdev->qps, qp->qpn, qp, GFP_KERNEL);
	if (err)
		tern_object_drop(tdev, qp->qpn, err, tern_cmd_destroy_qp);
	return err;
}

void tern_qp_core_destroy(struct tern_dev *tdev, struct tern_qp_core *qp)
{
	xa_erase(&tdev->qps, qp->qpn);
	tern_cmd_destroy_qp(tdev, qp->qpn);
	tern_eqs_synchronize(tdev);
}

/*
 * Allocates the rings of a QP that the driver itself posts to, and creates the QP. Such a QP is
 * taken down by tern_qp_core_destroy(), after which the card no longer reads the rings and the
 * caller may empty them, then by tern_ring_qp_exit().
 */
int tern_qp_core_create_ring(struct tern_dev *tdev, struct tern_qp_core *qp,
			     struct tern_ring_qp *ring, const struct tern_qp_layout *layout,
			     struct tern_hw_create_qp *hw)
{
	int err;

	err = tern_ring_qp_init(tdev, ring, layout);
	if (err)
		return err;
	err = tern_qp_core_create(tdev, qp, &ring->buf, layout, hw);
	if (err) {
		tern_ring_qp_exit(tdev, ring);
		return err;
	}
	ring->qpn = qp->qpn;
	return 0;
}

/* The caller has set the handler. */
int tern_srq_core_create(struct tern_dev *tdev, struct tern_srq_core *srq,
			 const struct tern_buf *buf, const struct tern_srq_layout *layout,
			 struct tern_hw_create_srq *hw)
{
	int err;

	tern_table_describe(&buf->table, 0, &hw->pages);
	hw->record = cpu_to_le64(tern_buf_dma(buf, layout->record_offset));
	hw->ring_offset = cpu_to_le32(layout->ring_offset);
	hw->log_size = layout->log_size;
	hw->log_stride = layout->log_stride;
	hw->flags = layout->tag_ops_offset ? TERN_SRQ_TAGS : 0;
	hw->log_tags = layout->log_tags;
	hw->log_tag_ops = layout->log_tag_ops;
	hw->tag_ops_offset = cpu_to_le32(layout->tag_ops_offset);
	err = tern_cmd_create_srq(tdev, hw, &srq->srqn);
	if (err)
		return err;

	err = xa_insert(&tdev->srqs, srq->srqn, srq, GFP_KERNEL);
	if (err)
		tern_object_drop(tdev, srq->srqn, err, tern_cmd_destroy_srq);
	return err;
}

/* Moves the SRQ to @buf, which the caller has filled. Then the old buffer is unused. */
int tern_srq_core_move(struct tern_dev *tdev, struct tern_srq_core *srq,
		       const struct tern_buf *buf, const struct tern_srq_layout *layout)
{
	struct tern_hw_resize_srq hw = {
		.record = cpu_to_le64(tern_buf_dma(buf, layout->record_offset)),
		.srqn = cpu_to_le32(srq->srqn),
		.ring_offset = cpu_to_le32(layout->ring_offset),
		.log_size = layout->log_size,
	};

	tern_table_describe(&buf->table, 0, &hw.pages);
	return tern_cmd_resize_srq(tdev, &hw);
}

void tern_srq_core_destroy(struct tern_dev *tdev, struct tern_srq_core *srq)
{
	xa_erase(&tdev->srqs, srq->srqn);
	tern_cmd_destroy_srq(tdev, srq->srqn);
	tern_eqs_synchronize(tdev);
}

/* The caller has set the handler. */
int tern_wq_core_create(struct tern_dev *tdev, struct tern_wq_core *wq, const struct tern_buf *buf,
			const struct tern_wq_layout *layout, struct tern_hw_create_wq *hw)
{
	int err;

	tern_table_describe(&buf->table, 0, &hw->pages);
	hw->record = cpu_to_le64(tern_buf_dma(buf, layout->record_offset));
	hw->log_size = layout->log_size;
	hw->log_stride = layout->log_stride;
	err = tern_cmd_create_wq(tdev, hw, &wq->wqn);
	if (err)
		return err;

	err = xa_insert(&tdev->wqs, wq->wqn, wq, GFP_KERNEL);
	if (err)
		tern_object_drop(tdev, wq->wqn, err, tern_cmd_destroy_wq);
	return err;
}

void tern_wq_core_destroy(struct tern_dev *tdev, struct tern_wq_core *wq)
{
	xa_erase(&tdev->wqs, wq->wqn);
	tern_cmd_destroy_wq(tdev, wq->wqn);
	tern_eqs_synchronize(tdev);
}

/* ---- looking at them ---------------------------------------------------------------- */

/*
 * An object leaves its table before its memory is freed, so the lock of the table keeps the rings.
 * Both functions return whether there is such an object with queues.
 */
bool tern_cq_core_view(struct tern_dev *tdev, u32 cqn, struct tern_cq_view *view)
{
	const struct tern_hw_cq_record *record;
	const struct tern_cq_core *cq;

	xa_lock_bh(&tdev->cqs);
	cq = xa_load(&tdev->cqs, cqn);
	if (cq) {
		record = tern_buf_at(cq->buf, cq->layout.record_offset);
		view->eqn = cq->eq->eqn;
		view->cqes = 1U << cq->layout.log_size;
		view->ci = le32_to_cpu(READ_ONCE(record->ci));
		view->pi = view->ci + tern_ring_pending(cq->buf, cq->layout.log_size,
							sizeof(struct tern_hw_cqe), view->ci);
	}
	xa_unlock_bh(&tdev->cqs);
	return cq;
}

bool tern_qp_core_view(struct tern_dev *tdev, u32 qpn, struct tern_qp_view *view)
{
	const struct tern_qp_core *qp;
	bool found;

	xa_lock(&tdev->qps);
	qp = xa_load(&tdev->qps, qpn);
	found = qp && qp->record;
	if (found)
		*view = (struct tern_qp_view) {
			.sq_blocks = qp->sq_blocks,
			.rq_wqes = qp->rq_wqes,
			.sq_pi = le32_to_cpu(READ_ONCE(qp->record->sq_pi)),
			.rq_pi = le32_to_cpu(READ_ONCE(qp->record->rq_pi)),
			.sq_event = le32_to_cpu(READ_ONCE(qp->record->sq_event)),
		};
	xa_unlock(&tdev->qps);
	return found;
}

/* ---- events ------------------------------------------------------------------------ */

void tern_cq_event(struct tern_dev *tdev, u32 cqn, u8 type)
{
	struct tern_cq_core *cq = xa_load(&tdev->cqs, cqn);

	if (!cq)
		return;
	if (type == TERN_EVENT_COMP)
		cq->completed(cq);
	else
		cq->failed(cq);
}

void tern_qp_event(struct tern_dev *tdev, u32 qpn, u8 type)
{
	struct tern_qp_core *qp = xa_load(&tdev->qps, qpn);

	if (qp)
		qp->event(qp, type);
}

void tern_srq_event(struct tern_dev *tdev, u32 srqn, u8 type)
{
	struct tern_srq_core *srq = xa_load(&tdev->srqs, srqn);

	if (srq)
		srq->event(srq, type);
}

void tern_wq_event(struct tern_dev *tdev, u32 wqn, u8 type)
{
	struct tern_wq_core *wq = xa_load(&tdev->wqs, wqn);

	if (wq)
		wq->event(wq, type);
}

/* ---- events of the kernel's CQs that the driver raises by itself ------------------------ */

/*
 * The lock keeps the CQs from being freed. Handlers expect interrupts to be off, but on PREEMPT_RT,
 * where they run in threads and the locks that they take may sleep.
 */
static void tern_cqs_recheck_work(struct work_struct *work)
{
	struct tern_dev *tdev = container_of(work, struct tern_dev, recheck);
	struct tern_cq_core *cq;
	unsigned long cqn, flags;

	xa_lock_bh(&tdev->cqs);
	xa_for_each_marked(&tdev->cqs, cqn, cq, TERN_CQ_RECHECK) {
		if (!IS_ENABLED(CONFIG_PREEMPT_RT))
			local_irq_save(flags);
		cq->recheck(cq);
		if (!IS_ENABLED(CONFIG_PREEMPT_RT))
			local_irq_restore(flags);
	}
	xa_unlock_bh(&tdev->cqs);
}

/*
 * Raises the events of the kernel's CQs that have completions. The driver calls this after the card
 * has died, because it flushes what users have posted, and periodically, because an event may have
 * been lost. A work item raises them, because a user may post, and thus call this, under a lock
 * that its event handler takes.
 */
void tern_cqs_recheck(struct tern_dev *tdev)
{
	schedule_work(&tdev->recheck);
}

/*
 * Tells the owners of QPs that the card has died. As above, the lock keeps the QPs from being
 * freed, and handlers expect interrupts to be off.
 */
void tern_qps_died(struct tern_dev *tdev)
{
	struct tern_qp_core *qp;
	unsigned long qpn, flags;

	/* If this loop does not see a QP in ERR, the code that moves the QP sees the dead card. */
	smp_mb();
	xa_lock(&tdev->qps);
	xa_for_each(&tdev->qps, qpn, qp) {
		if (!qp->died)
			continue;
		if (!IS_ENABLED(CONFIG_PREEMPT_RT))
			local_irq_save(flags);
		qp->died(qp);
		if (!IS_ENABLED(CONFIG_PREEMPT_RT))
			local_irq_restore(flags);
	}
	xa_unlock(&tdev->qps);
}

/* ---- the tables ------------------------------------------------------------------------ */

void tern_objects_init(struct tern_dev *tdev)
{
	xa_init(&tdev->cqs);
	xa_init(&tdev->qps);
	xa_init(&tdev->srqs);
	xa_init(&tdev->wqs);
	INIT_WORK(&tdev->recheck, tern_cqs_recheck_work);
}

/* No object is left, and no code that could find the card dead. */
void tern_objects_exit(struct tern_dev *tdev)
{
	cancel_work_sync(&tdev->recheck);
}
