// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues of users in the kernel: work completions from CQEs.
 *
 * A dead card completes nothing, but users wait for what they posted, and post more to drain their
 * queues. Polling then completes all of it as flushed, after the CQEs that the card has written,
 * and tern_cqs_recheck() raises the events of armed CQs.
 *
 * If a card writes a CQE for a request that was not posted, or skips a signalled WQE, completions
 * that users wait for are lost. The driver then has the health check stop the card.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/log2.h>
#include <rdma/ib_verbs.h>

#include "ib.h"

#define TERN_NO_VLAN	0xffff

static struct tern_qp *tern_qp_of_sq(struct tern_sq *sq)
{
	return container_of(sq, struct tern_qp, k.sq);
}

static struct tern_qp *tern_qp_of_rq(struct tern_rq *rq)
{
	return container_of(rq, struct tern_qp, k.rq);
}

/* ---- work completions ------------------------------------------------------------ */

static u32 tern_cqe_qpn(const struct tern_hw_cqe *cqe)
{
	return le32_to_cpu(cqe->qpn) & TERN_DB_NUM_MASK;
}

static bool tern_cqe_is_receive(const struct tern_hw_cqe *cqe)
{
	return cqe->opcode == TERN_CQE_RECV || cqe->opcode == TERN_CQE_RECV_WRITE_IMM;
}

/*
 * The QP of a CQE, or NULL if it is destroyed or, with a card that does not keep to the rules, one
 * that does not complete here. The caller holds the CQ's lock, which keeps the QP.
 */
static struct tern_qp *tern_cqe_qp(struct tern_cq *cq, const struct tern_hw_cqe *cqe)
{
	struct tern_qp *qp = xa_load(&cq->k.qps, tern_cqe_qpn(cqe));
	const struct ib_cq *ibcq;

	if (!qp)
		return NULL;
	ibcq = tern_cqe_is_receive(cqe) ? qp->ibqp.recv_cq : qp->ibqp.send_cq;
	return ibcq == &cq->ibcq ? qp : NULL;
}

/* The card uses the status codes of the verbs. */
static_assert((int)IB_WC_SUCCESS == TERN_WC_SUCCESS);
static_assert((int)IB_WC_LOC_LEN_ERR == TERN_WC_LOC_LEN_ERR);
static_assert((int)IB_WC_LOC_QP_OP_ERR == TERN_WC_LOC_QP_OP_ERR);
static_assert((int)IB_WC_LOC_PROT_ERR == TERN_WC_LOC_PROT_ERR);
static_assert((int)IB_WC_WR_FLUSH_ERR == TERN_WC_WR_FLUSH_ERR);
static_assert((int)IB_WC_MW_BIND_ERR == TERN_WC_MW_BIND_ERR);
static_assert((int)IB_WC_BAD_RESP_ERR == TERN_WC_BAD_RESP_ERR);
static_assert((int)IB_WC_LOC_ACCESS_ERR == TERN_WC_LOC_ACCESS_ERR);
static_assert((int)IB_WC_REM_INV_REQ_ERR == TERN_WC_REM_INV_REQ_ERR);
static_assert((int)IB_WC_REM_ACCESS_ERR == TERN_WC_REM_ACCESS_ERR);
static_assert((int)IB_WC_REM_OP_ERR == TERN_WC_REM_OP_ERR);
static_assert((int)IB_WC_RETRY_EXC_ERR == TERN_WC_RETRY_EXC_ERR);
static_assert((int)IB_WC_RNR_RETRY_EXC_ERR == TERN_WC_RNR_RETRY_EXC_ERR);
static_assert((int)IB_WC_FATAL_ERR == TERN_WC_FATAL_ERR);
static_assert((int)IB_WC_GENERAL_ERR == TERN_WC_GENERAL_ERR);

/*
 * Completes the WQE that begins at @block and all WQEs before it. Returns false, and completes
 * nothing, if no outstanding WQE begins there or if an earlier outstanding WQE is signalled.
 */
static bool tern_sq_complete(struct tern_sq *sq, u32 block, struct ib_wc *wc)
{
	u32 mask = tern_ring_qp_sq_blocks(&tern_qp_of_sq(sq)->k.ring) - 1;
	const struct tern_send *send;
	bool known;
	u32 at;

	spin_lock(&sq->lock);
	at = sq->ci;
	send = &sq->sends[at & mask];
	while (at != block && at != sq->pi && !send->signalled) {
		at += send->blocks;
		send = &sq->sends[at & mask];
	}
	known = at == block && at != sq->pi;
	if (known) {
		wc->wr_id = send->wr_id;
		wc->opcode = send->opcode;
		sq->ci = block + send->blocks;
	}
	spin_unlock(&sq->lock);
	return known;
}

/* Returns false unless @index is the oldest outstanding receive: receives complete in order. */
static bool tern_rq_complete(struct tern_rq *rq, u32 index, struct tern_recv *recv)
{
	u32 mask = tern_ring_qp_rq_slots(&tern_qp_of_rq(rq)->k.ring) - 1;
	bool known;

	spin_lock(&rq->lock);
	known = index == rq->ci && rq->ci != rq->pi;
	if (known) {
		*recv = rq->recvs[index & mask];
		rq->ci++;
	}
	spin_unlock(&rq->lock);
	return known;
}

static u8 tern_wc_network_type(u8 net_type)
{
	switch (net_type) {
	case TERN_NET_ROCE_V1:
		return RDMA_NETWORK_ROCE_V1;
	case TERN_NET_IPV4:
		return RDMA_NETWORK_IPV4;
	default:
		return RDMA_NETWORK_IPV6;
	}
}

static void tern_wc_set_datagram(struct ib_wc *wc, const struct tern_hw_cqe *cqe)
{
	u16 vlan = le16_to_cpu(cqe->vlan);

	wc->wc_flags |= IB_WC_GRH | IB_WC_WITH_SMAC | IB_WC_WITH_NETWORK_HDR_TYPE;
	wc->src_qp = le32_to_cpu(cqe->src_qpn);
	wc->sl = cqe->sl;
	wc->network_hdr_type = tern_wc_network_type(cqe->net_type);
	ether_addr_copy(wc->smac, cqe->smac);
	if (vlan != TERN_NO_VLAN) {
		wc->wc_flags |= IB_WC_WITH_VLAN;
		wc->vlan_id = vlan & VLAN_VID_MASK;
	}
}

static void tern_wc_set_receive(struct ib_wc *wc, const struct tern_hw_cqe *cqe)
{
	wc->opcode = cqe->opcode == TERN_CQE_RECV ? IB_WC_RECV : IB_WC_RECV_RDMA_WITH_IMM;
	if (cqe->flags & TERN_CQE_IMM) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = cqe->imm;
	}
	if (cqe->flags & TERN_CQE_INV) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = be32_to_cpu(cqe->imm);
	}
	if (cqe->flags & TERN_CQE_GRH)
		tern_wc_set_datagram(wc, cqe);
}

/* @recv is what the card has completed. Its buffers cannot hold more than was posted. */
static void tern_wc_set_request(struct ib_wc *wc, const struct tern_recv *recv)
{
	wc->wr_id = recv->wr_id;
	if (wc->status == IB_WC_SUCCESS && wc->opcode == IB_WC_RECV &&
	    wc->byte_len > recv->length)
		wc->status = IB_WC_LOC_LEN_ERR;
}

/* Returns false if the CQE names no outstanding work request of a QP of this CQ. */
static bool tern_wc_from_cqe(struct tern_cq *cq, const struct tern_hw_cqe *cqe, struct ib_wc *wc)
{
	struct tern_qp *qp = tern_cqe_qp(cq, cqe);
	u32 index = le32_to_cpu(cqe->wqe_index);
	struct tern_recv recv;
	bool known;

	if (!qp)
		return false;

	*wc = (struct ib_wc) {
		.status = min_t(u8, cqe->status, IB_WC_GENERAL_ERR),
		.byte_len = le32_to_cpu(cqe->byte_len),
		.qp = &qp->ibqp,
		.port_num = TERN_PORT,
	};
	if (!tern_cqe_is_receive(cqe))
		return tern_sq_complete(&qp->k.sq, index, wc);
	tern_wc_set_receive(wc, cqe);
	known = qp->ibqp.srq ? tern_kverbs_srq_complete(to_tsrq(qp->ibqp.srq), index, &recv) :
			       tern_rq_complete(&qp->k.rq, index, &recv);
	if (known)
		tern_wc_set_request(wc, &recv);
	return known;
}

/* Whether tern_kverbs_cq_forget() has dropped @cqe. */
static bool tern_cqe_is_disowned(struct tern_kverbs_cq *k, const struct tern_hw_cqe *cqe)
{
	if (tern_cqe_qpn(cqe) || !k->disowned)
		return false;
	k->disowned--;
	return true;
}

/* ---- flushing after the card has died ----------------------------------------------- */

static struct ib_wc tern_wc_flushed(struct tern_qp *qp, u64 wr_id, enum ib_wc_opcode opcode)
{
	return (struct ib_wc) {
		.wr_id = wr_id,
		.status = IB_WC_WR_FLUSH_ERR,
		.opcode = opcode,
		.qp = &qp->ibqp,
		.port_num = TERN_PORT,
	};
}

static int tern_sq_flush(struct tern_sq *sq, int count, struct ib_wc *wc)
{
	struct tern_qp *qp = tern_qp_of_sq(sq);
	u32 mask = tern_ring_qp_sq_blocks(&qp->k.ring) - 1;
	int done = 0;

	spin_lock(&sq->lock);
	while (done < count && sq->ci != sq->pi) {
		const struct tern_send *send = &sq->sends[sq->ci & mask];

		wc[done++] = tern_wc_flushed(qp, send->wr_id, send->opcode);
		sq->ci += send->blocks;
	}
	spin_unlock(&sq->lock);
	return done;
}

static int tern_rq_flush(struct tern_rq *rq, int count, struct ib_wc *wc)
{
	struct tern_qp *qp = tern_qp_of_rq(rq);
	u32 mask = tern_ring_qp_rq_slots(&qp->k.ring) - 1;
	int done = 0;

	spin_lock(&rq->lock);
	while (done < count && rq->ci != rq->pi)
		wc[done++] = tern_wc_flushed(qp, rq->recvs[rq->ci++ & mask].wr_id, IB_WC_RECV);
	spin_unlock(&rq->lock);
	return done;
}

static int tern_kverbs_cq_flush(struct tern_kverbs_cq *k, int count, struct ib_wc *wc)
{
	struct tern_sq *sq;
	struct tern_rq *rq;
	int done = 0;

	list_for_each_entry(sq, &k->sqs, of_cq)
		done += tern_sq_flush(sq, count - done, wc + done);
	list_for_each_entry(rq, &k->rqs, of_cq)
		done += tern_rq_flush(rq, count - done, wc + done);
	return done;
}

static bool tern_kverbs_cq_has_flushed(const struct tern_kverbs_cq *k)
{
	const struct tern_sq *sq;
	const struct tern_rq *rq;

	list_for_each_entry(sq, &k->sqs, of_cq) {
		if (READ_ONCE(sq->pi) != READ_ONCE(sq->ci))
			return true;
	}
	list_for_each_entry(rq, &k->rqs, of_cq) {
		if (READ_ONCE(rq->pi) != READ_ONCE(rq->ci))
			return true;
	}
	return false;
}

static bool tern_kverbs_cq_has_qps(const struct tern_kverbs_cq *k)
{
	return !list_empty(&k->sqs) || !list_empty(&k->rqs);
}

/* Whether a poll would find a CQE or, of a dead card, return a completion. */
static bool tern_kverbs_cq_pending(const struct tern_dev *tdev, struct tern_kverbs_cq *k)
{
	return tern_ring_cq_next(&k->ring) || (tern_is_dead(tdev) && tern_kverbs_cq_has_flushed(k));
}

/*
 * For tern_cq_core.recheck: raises the event if the user has armed the CQ and can poll. If the CQ
 * has no QPs, all of its CQEs belong to destroyed QPs, and the user may be about to free the CQ:
 * the function raises no event then.
 */
static void tern_kverbs_cq_recheck(struct tern_cq_core *core)
{
	struct tern_cq *cq = container_of(core, struct tern_cq, core);
	unsigned long flags;
	bool wanted;

	spin_lock_irqsave(&cq->k.lock, flags);
	wanted = cq->k.armed && tern_kverbs_cq_has_qps(&cq->k) &&
		 tern_kverbs_cq_pending(to_tdev(cq->ibcq.device), &cq->k);
	spin_unlock_irqrestore(&cq->k.lock, flags);
	if (wanted)
		core->completed(core);
}

/* ---- verbs ----------------------------------------------------------------------------- */

int tern_poll_cq(struct ib_cq *ibcq, int count, struct ib_wc *wc)
{
	struct tern_dev *tdev = to_tdev(ibcq->device);
	struct tern_cq *cq = to_tcq(ibcq);
	struct tern_kverbs_cq *k = &cq->k;
	const struct tern_hw_cqe *cqe;
	unsigned long flags;
	u32 ci;
	int done = 0;

	spin_lock_irqsave(&k->lock, flags);
	ci = k->ring.ci;
	/* Make at most one pass over the ring: a faulty card may write CQEs without end. */
	while (done < count && k->ring.ci - ci < tern_ring_cq_size(&k->ring) &&
	       (cqe = tern_ring_cq_next(&k->ring))) {
		if (tern_wc_from_cqe(cq, cqe, &wc[done]))
			done++;
		else if (!tern_cqe_is_disowned(k, cqe))
			tern_dev_accuse(tdev, "completes what was not posted");
		tern_ring_cq_pop(&k->ring);
	}
	if (k->ring.ci != ci)
		tern_ring_cq_consumed(&k->ring);
	if (done < count && tern_is_dead(tdev))
		done += tern_kverbs_cq_flush(k, count - done, wc + done);
	spin_unlock_irqrestore(&k->lock, flags);
	return done;
}

/* Arming raises the event for CQEs that are already there, so none is missed. */
int tern_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	bool solicited = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	struct tern_dev *tdev = to_tdev(ibcq->device);
	struct tern_kverbs_cq *k = &to_tcq(ibcq)->k;
	unsigned long irq_flags;
	bool pending;

	spin_lock_irqsave(&k->lock, irq_flags);
	k->armed = true;
	tern_ring_cq_arm(tdev, &k->ring, solicited);
	pending = tern_kverbs_cq_pending(tdev, k);
	spin_unlock_irqrestore(&k->lock, irq_flags);

	if (pending && tern_is_dead(tdev))
		tern_cqs_recheck(tdev);
	return pending && (flags & IB_CQ_REPORT_MISSED_EVENTS);
}

/* ---- QPs that complete here ------------------------------------------------------------- */

/* Drops the CQEs of @qp and frees their SRQ slots. The caller holds the lock. */
static void tern_kverbs_cq_drop(struct tern_kverbs_cq *k, struct tern_qp *qp)
{
	const struct tern_hw_cqe *cqe;
	struct tern_ring_cq rest = k->ring;
	struct tern_recv recv;

	for (; rest.ci - k->ring.ci < tern_ring_cq_size(&rest); tern_ring_cq_pop(&rest)) {
		cqe = tern_ring_cq_next(&rest);
		if (!cqe)
			break;
		if (tern_cqe_qpn(cqe) != qp->core.qpn)
			continue;
		if (qp->ibqp.srq && tern_cqe_is_receive(cqe))
			tern_kverbs_srq_complete(to_tsrq(qp->ibqp.srq),
						 le32_to_cpu(cqe->wqe_index), &recv);
		tern_ring_cq_disown(&rest);
		k->disowned++;
	}
}

/*
 * Replaces the QP that has the number of @qp, if there still is one. The card has destroyed that
 * QP, or the number would not be free, but tern_kverbs_cq_forget() has not come to it. All CQEs
 * with this number are of that QP, as @qp has posted nothing yet.
 */
static bool tern_kverbs_cq_replace(struct tern_kverbs_cq *k, struct tern_qp *qp)
{
	struct tern_qp *old;

	spin_lock_irq(&k->lock);
	old = xa_load(&k->qps, qp->core.qpn);
	if (old && old != qp) {
		tern_kverbs_cq_drop(k, old);
		xa_store(&k->qps, qp->core.qpn, qp, 0); /* in place: needs no memory */
	}
	spin_unlock_irq(&k->lock);
	return old;
}

static int tern_kverbs_cq_add(struct tern_kverbs_cq *k, struct tern_qp *qp)
{
	int err;

	do {
		err = xa_insert_irq(&k->qps, qp->core.qpn, qp, GFP_KERNEL);
		if (err != -EBUSY)
			return err;
	} while (!tern_kverbs_cq_replace(k, qp));
	return 0;
}

/* On failure the QP has posted nothing yet. */
int tern_kverbs_cq_attach(struct tern_qp *qp)
{
	struct tern_kverbs_cq *send = &to_tcq(qp->ibqp.send_cq)->k;
	struct tern_kverbs_cq *recv = &to_tcq(qp->ibqp.recv_cq)->k;
	int err;

	err = tern_kverbs_cq_add(send, qp) ?: tern_kverbs_cq_add(recv, qp);
	if (err) {
		tern_kverbs_cq_forget(qp, true);
		return err;
	}
	spin_lock_irq(&send->lock);
	list_add_tail(&qp->k.sq.of_cq, &send->sqs);
	spin_unlock_irq(&send->lock);

	spin_lock_irq(&recv->lock);
	list_add_tail(&qp->k.rq.of_cq, &recv->rqs);
	spin_unlock_irq(&recv->lock);
	return 0;
}

void tern_kverbs_cq_detach(struct tern_qp *qp)
{
	struct tern_kverbs_cq *send = &to_tcq(qp->ibqp.send_cq)->k;
	struct tern_kverbs_cq *recv = &to_tcq(qp->ibqp.recv_cq)->k;

	spin_lock_irq(&send->lock);
	list_del(&qp->k.sq.of_cq);
	spin_unlock_irq(&send->lock);

	spin_lock_irq(&recv->lock);
	list_del(&qp->k.rq.of_cq);
	spin_unlock_irq(&recv->lock);
}

static void tern_kverbs_cq_forget_in(struct tern_kverbs_cq *k, struct tern_qp *qp, bool destroyed)
{
	spin_lock_irq(&k->lock);
	/* If a new QP has the number already, it has dropped the CQEs of this one. */
	if (xa_load(&k->qps, qp->core.qpn) == qp) {
		tern_kverbs_cq_drop(k, qp);
		if (destroyed)
			xa_erase(&k->qps, qp->core.qpn);
	}
	spin_unlock_irq(&k->lock);
}

/*
 * Drops the CQEs of @qp, which is destroyed or reset: its QPN or indices will be used again. No
 * poll finds or uses a destroyed QP from here on.
 */
void tern_kverbs_cq_forget(struct tern_qp *qp, bool destroyed)
{
	tern_kverbs_cq_forget_in(&to_tcq(qp->ibqp.send_cq)->k, qp, destroyed);
	if (qp->ibqp.recv_cq != qp->ibqp.send_cq)
		tern_kverbs_cq_forget_in(&to_tcq(qp->ibqp.recv_cq)->k, qp, destroyed);
}

/* ---- create and destroy ------------------------------------------------------------------- */

int tern_kverbs_cq_create(struct tern_cq *cq, u32 cqe)
{
	struct tern_dev *tdev = to_tdev(cq->ibcq.device);
	struct tern_kverbs_cq *k = &cq->k;
	u8 log_size = order_base_2(cqe);
	int err;

	spin_lock_init(&k->lock);
	INIT_LIST_HEAD(&k->sqs);
	INIT_LIST_HEAD(&k->rqs);
	xa_init_flags(&k->qps, XA_FLAGS_LOCK_IRQ);
	cq->core.recheck = tern_kverbs_cq_recheck;
	err = tern_cq_core_create_ring(tdev, &cq->core, &k->ring, log_size);
	if (!err)
		cq->ibcq.cqe = 1 << log_size;
	return err;
}

/* Ends the events of the CQ. Its ring stays, as users may poll it until tern_kverbs_cq_free(). */
void tern_kverbs_cq_shut(struct tern_cq *cq)
{
	tern_cq_core_destroy(to_tdev(cq->ibcq.device), &cq->core);
}

void tern_kverbs_cq_free(struct tern_cq *cq)
{
	tern_ring_cq_exit(to_tdev(cq->ibcq.device), &cq->k.ring);
}
