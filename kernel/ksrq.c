// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues of the kernel's users: which slot holds which request. */
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "ib.h"

static int tern_srq_post(struct tern_srq *srq, const struct ib_recv_wr *wr)
{
	u32 segs = (1U << srq->k.ring.layout.log_stride) / TERN_SEG_SIZE;
	struct tern_kernel_srq *k = &srq->k;
	u32 slot;

	if (wr->num_sge < 0 || wr->num_sge > srq->max_sge)
		return -EINVAL;
	if (!k->free_count)
		return -ENOMEM;
	slot = k->free[--k->free_count];
	tern_wr_write_recv(tern_ksrq_wqe(&k->ring, slot), segs, wr);
	k->wr_ids[slot] = wr->wr_id;
	tern_ksrq_enter(&k->ring, k->pi++, slot);
	return 0;
}

int tern_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr)
{
	struct tern_srq *srq = to_tsrq(ibsrq);
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&srq->k.lock, flags);
	for (; wr; wr = wr->next) {
		err = tern_srq_post(srq, wr);
		if (err)
			break;
	}
	tern_ksrq_publish(&srq->k.ring, srq->k.pi);
	spin_unlock_irqrestore(&srq->k.lock, flags);

	if (err)
		*bad_wr = wr;
	return err;
}

/* The card is done with the WQE in @slot. Interrupts are off. */
bool tern_kernel_srq_complete(struct tern_srq *srq, u32 slot, u64 *wr_id)
{
	struct tern_kernel_srq *k = &srq->k;
	u32 slots = tern_ksrq_slots(&k->ring);
	bool known;

	spin_lock(&k->lock);
	known = slot < slots && k->free_count < slots;
	if (known) {
		*wr_id = k->wr_ids[slot];
		k->free[k->free_count++] = slot;
	}
	spin_unlock(&k->lock);
	return known;
}

/* ---- create and destroy ------------------------------------------------------------- */

static void tern_kernel_srq_free(struct tern_kernel_srq *k)
{
	kvfree(k->free);
	kvfree(k->wr_ids);
}

static int tern_kernel_srq_alloc(struct tern_kernel_srq *k, u32 slots)
{
	u32 slot;

	spin_lock_init(&k->lock);
	k->wr_ids = kvcalloc(slots, sizeof(*k->wr_ids), GFP_KERNEL);
	k->free = kvcalloc(slots, sizeof(*k->free), GFP_KERNEL);
	if (!k->wr_ids || !k->free) {
		tern_kernel_srq_free(k);
		return -ENOMEM;
	}
	for (slot = 0; slot < slots; slot++)
		k->free[slot] = slot;
	k->free_count = slots;
	return 0;
}

int tern_kernel_srq_create(struct tern_srq *srq, const struct tern_srq_layout *layout,
			   const struct tern_srq_core_params *params)
{
	int err;

	err = tern_kernel_srq_alloc(&srq->k, 1U << layout->log_size);
	if (err)
		return err;
	err = tern_ksrq_create(to_tdev(srq->ibsrq.device), &srq->k.ring, &srq->core, layout,
			       params);
	if (err) {
		tern_kernel_srq_free(&srq->k);
		return err;
	}
	srq->kernel = true;
	return 0;
}

void tern_kernel_srq_destroy(struct tern_srq *srq)
{
	tern_ksrq_destroy(to_tdev(srq->ibsrq.device), &srq->k.ring);
	tern_kernel_srq_free(&srq->k);
}
