// SPDX-License-Identifier: GPL-2.0
/*
 * CQs and QPs as the card knows them: making them, and bringing their events to
 * whoever owns them.
 *
 * An event may race with the destruction of its object. Destroying takes the object out of the
 * table first, then out of the card, then waits for the handlers that could have
 * found it. So a number is free in the table before the card can give it out again, and no
 * handler holds an object that is freed.
 */
#include <linux/log2.h>

#include "queue.h"
#include "tern.h"

void tern_cq_plan(struct tern_cq_layout *layout, u8 log_size)
{
	layout->log_size = log_size;
	layout->record_offset = sizeof(struct tern_hw_cqe) << log_size;
	layout->size = layout->record_offset + sizeof(struct tern_hw_cq_record);
}

/* Receive WQEs are aligned to their size, so none straddles a page. */
void tern_qp_plan(struct tern_qp_layout *layout, u8 sq_log_size, u8 rq_log_size, u8 rq_log_stride)
{
	u32 sq_bytes = TERN_SQ_BLOCK << sq_log_size;
	u32 rq_bytes = 1U << (rq_log_size + rq_log_stride);
	u32 stride = 1U << rq_log_stride;

	layout->sq_log_size = sq_log_size;
	layout->rq_log_size = rq_log_size;
	layout->rq_log_stride = rq_log_stride;
	layout->rq_offset = ALIGN(sq_bytes, max_t(u32, stride, TERN_SQ_BLOCK));
	layout->record_offset = ALIGN(layout->rq_offset + rq_bytes,
				      sizeof(struct tern_hw_qp_record));
	layout->size = layout->record_offset + sizeof(struct tern_hw_qp_record);
}

/* The caller has set eq and the handlers. */
int tern_cq_core_create(struct tern_dev *tdev, struct tern_cq_core *cq, const struct tern_buf *buf,
			const struct tern_cq_layout *layout, u32 db_page)
{
	struct tern_create_cq_params params = {
		.record = tern_buf_dma(buf, layout->record_offset),
		.eqn = cq->eq->eqn,
		.db_page = db_page,
		.log_size = layout->log_size,
	};
	int err;

	tern_table_describe(&buf->table, 0, &params.pages);
	err = tern_cmd_create_cq(tdev, &params, &cq->cqn);
	if (err)
		return err;

	err = xa_insert(&tdev->cqs, cq->cqn, cq, GFP_KERNEL);
	if (err)
		tern_cmd_destroy_cq(tdev, cq->cqn);
	return err;
}

void tern_cq_core_destroy(struct tern_dev *tdev, struct tern_cq_core *cq)
{
	xa_erase(&tdev->cqs, cq->cqn);
	tern_cmd_destroy_cq(tdev, cq->cqn);
	tern_eqs_synchronize(tdev, cq->eq);
}

/* The caller has set the handler. */
int tern_qp_core_create(struct tern_dev *tdev, struct tern_qp_core *qp, const struct tern_buf *buf,
			const struct tern_qp_layout *layout,
			const struct tern_qp_core_params *core)
{
	struct tern_create_qp_params params = {
		.record = tern_buf_dma(buf, layout->record_offset),
		.rq_offset = layout->rq_offset,
		.pdn = core->pdn,
		.send_cqn = core->send_cqn,
		.recv_cqn = core->recv_cqn,
		.db_page = core->db_page,
		.type = core->type,
		.sq_log_size = layout->sq_log_size,
		.rq_log_size = layout->rq_log_size,
		.rq_log_stride = layout->rq_log_stride,
		.flags = core->flags,
	};
	int err;

	tern_table_describe(&buf->table, 0, &params.pages);
	err = tern_cmd_create_qp(tdev, &params, &qp->qpn);
	if (err)
		return err;

	err = xa_insert(&tdev->qps, qp->qpn, qp, GFP_KERNEL);
	if (err)
		tern_cmd_destroy_qp(tdev, qp->qpn);
	return err;
}

void tern_qp_core_destroy(struct tern_dev *tdev, struct tern_qp_core *qp)
{
	xa_erase(&tdev->qps, qp->qpn);
	tern_cmd_destroy_qp(tdev, qp->qpn);
	tern_eqs_synchronize(tdev, NULL);
}

void tern_cq_completed(struct tern_dev *tdev, u32 cqn)
{
	struct tern_cq_core *cq = xa_load(&tdev->cqs, cqn);

	if (cq)
		cq->completed(cq);
}

void tern_cq_failed(struct tern_dev *tdev, u32 cqn)
{
	struct tern_cq_core *cq = xa_load(&tdev->cqs, cqn);

	if (cq)
		cq->failed(cq);
}

void tern_qp_event(struct tern_dev *tdev, u32 qpn, u8 type)
{
	struct tern_qp_core *qp = xa_load(&tdev->qps, qpn);

	if (qp)
		qp->event(qp, type);
}
