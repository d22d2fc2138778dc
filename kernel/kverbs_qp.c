// SPDX-License-Identifier: GPL-2.0
/* Queue pairs of users in the kernel: create, destroy and post. */
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "ib.h"

/* ---- posting ---------------------------------------------------------------------- */

/* A dead card completes nothing, so the driver must raise the event of the CQ. */
static void tern_posted(struct tern_qp *qp)
{
	struct tern_dev *tdev = to_tdev(qp->ibqp.device);

	/*
	 * Pairs with the barrier in schedule_work() of tern_cqs_recheck(): either this function
	 * sees the dead card, or the check of all CQs after its death sees what was posted. A
	 * receive rings no doorbell, and the end of a lock does not order a later read.
	 */
	smp_mb();
	if (unlikely(tern_is_dead(tdev)))
		tern_cqs_recheck(tdev);
}

static bool tern_can_send(const struct tern_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	return state != IB_QPS_RESET && state != IB_QPS_INIT && state != IB_QPS_RTR;
}

static int tern_sq_post(struct tern_qp *qp, const struct ib_send_wr *wr)
{
	struct tern_sq *sq = &qp->k.sq;
	u32 blocks = tern_ring_qp_sq_blocks(&qp->k.ring);
	struct tern_send *send = &sq->sends[sq->pi & (blocks - 1)];
	int err;

	if (blocks - (sq->pi - sq->ci) < sq->max_blocks)
		return -ENOMEM;
	err = tern_wr_write_send(qp, wr, sq->pi, send);
	if (err)
		return err;
	sq->pi += send->blocks;
	return 0;
}

int tern_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr)
{
	struct tern_qp *qp = to_tqp(ibqp);
	struct tern_sq *sq = &qp->k.sq;
	unsigned long flags;
	int err = 0;
	u32 pi;

	spin_lock_irqsave(&sq->lock, flags);
	pi = sq->pi;
	for (; wr; wr = wr->next) {
		err = tern_can_send(qp) ? tern_sq_post(qp, wr) : -EINVAL;
		if (err)
			break;
	}
	if (sq->pi != pi)
		tern_ring_qp_publish_sq(to_tdev(ibqp->device), &qp->k.ring, sq->pi);
	spin_unlock_irqrestore(&sq->lock, flags);

	if (err)
		*bad_wr = wr;
	tern_posted(qp);
	return err;
}

static int tern_rq_post(struct tern_qp *qp, const struct ib_recv_wr *wr)
{
	const struct tern_ring_qp *ring = &qp->k.ring;
	u32 segs = (1U << ring->layout.rq_log_stride) / TERN_SEG_SIZE;
	u32 slots = tern_ring_qp_rq_slots(ring);
	struct tern_rq *rq = &qp->k.rq;

	if (wr->num_sge < 0 || wr->num_sge > qp->cap.max_recv_sge)
		return -EINVAL;
	if (rq->pi - rq->ci == slots)
		return -ENOMEM;
	tern_wr_write_recv(tern_ring_qp_rq_wqe(ring, rq->pi), segs, wr,
			   &rq->recvs[rq->pi & (slots - 1)]);
	rq->pi++;
	return 0;
}

int tern_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr)
{
	struct tern_qp *qp = to_tqp(ibqp);
	struct tern_rq *rq = &qp->k.rq;
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&rq->lock, flags);
	for (; wr; wr = wr->next) {
		err = READ_ONCE(qp->state) == IB_QPS_RESET || !rq->recvs ?
			      -EINVAL : tern_rq_post(qp, wr);
		if (err)
			break;
	}
	tern_ring_qp_publish_rq(&qp->k.ring, rq->pi);
	spin_unlock_irqrestore(&rq->lock, flags);

	if (err)
		*bad_wr = wr;
	tern_posted(qp);
	return err;
}

/* ---- create and destroy ------------------------------------------------------------- */

static void tern_kverbs_qp_free(struct tern_kverbs_qp *k)
{
	kvfree(k->rq.recvs);
	kvfree(k->sq.sends);
}

static int tern_kverbs_qp_alloc(struct tern_qp *qp, const struct tern_qp_layout *layout)
{
	u32 blocks = 1U << layout->sq_log_size;
	struct tern_sq *sq = &qp->k.sq;
	struct tern_rq *rq = &qp->k.rq;

	spin_lock_init(&sq->lock);
	spin_lock_init(&rq->lock);
	/* The plan has room for max_send_wr requests of the largest size. */
	sq->max_blocks = blocks / qp->cap.max_send_wr;
	sq->sends = kvcalloc(blocks, sizeof(*sq->sends), GFP_KERNEL);
	if (!sq->sends)
		return -ENOMEM;
	if (!layout->rq_log_stride)
		return 0;
	rq->recvs = kvcalloc(1U << layout->rq_log_size, sizeof(*rq->recvs), GFP_KERNEL);
	if (!rq->recvs) {
		tern_kverbs_qp_free(&qp->k);
		return -ENOMEM;
	}
	return 0;
}

int tern_kverbs_qp_create(struct tern_qp *qp, const struct tern_qp_layout *layout,
			  struct tern_hw_create_qp *hw)
{
	struct tern_dev *tdev = to_tdev(qp->ibqp.device);
	int err;

	err = tern_kverbs_qp_alloc(qp, layout);
	if (err)
		return err;
	err = tern_qp_core_create_ring(tdev, &qp->core, &qp->k.ring, layout, hw);
	if (err)
		goto err_free;
	err = tern_kverbs_cq_attach(qp);
	if (err)
		goto err_core;
	qp->kernel = true;
	return 0;

err_core:
	tern_qp_destroy_core(qp);
	tern_ring_qp_exit(tdev, &qp->k.ring);
err_free:
	tern_kverbs_qp_free(&qp->k);
	return err;
}

void tern_kverbs_qp_destroy(struct tern_qp *qp)
{
	struct tern_dev *tdev = to_tdev(qp->ibqp.device);

	tern_kverbs_cq_detach(qp);
	tern_qp_destroy_core(qp);
	tern_kverbs_cq_forget(qp, true);
	tern_ring_qp_exit(tdev, &qp->k.ring);
	tern_kverbs_qp_free(&qp->k);
}

/* The card has reset its indices and dropped what was posted (IBA 10.3.1.1). */
void tern_kverbs_qp_reset(struct tern_qp *qp)
{
	struct tern_sq *sq = &qp->k.sq;
	struct tern_rq *rq = &qp->k.rq;

	tern_kverbs_cq_forget(qp, false);
	spin_lock_irq(&sq->lock);
	spin_lock(&rq->lock);
	sq->pi = 0;
	sq->ci = 0;
	rq->pi = 0;
	rq->ci = 0;
	tern_ring_qp_reset(&qp->k.ring);
	spin_unlock(&rq->lock);
	spin_unlock_irq(&sq->lock);
}
