// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues of users in the kernel: create, destroy and post. */
#include <linux/bitmap.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "ib.h"

static int tern_srq_post(struct tern_srq *srq, const struct ib_recv_wr *wr)
{
	u32 segs = (1U << srq->k.ring.layout.log_stride) / TERN_SEG_SIZE;
	struct tern_kverbs_srq *k = &srq->k;
	u32 slot;

	if (wr->num_sge < 0 || wr->num_sge > srq->max_sge)
		return -EINVAL;
	if (!k->free_count)
		return -ENOMEM;
	slot = k->free[--k->free_count];
	tern_wr_write_recv(tern_ring_srq_wqe(&k->ring, slot), segs, wr, &k->recvs[slot]);
	__set_bit(slot, k->posted);
	tern_ring_srq_enter(&k->ring, k->pi++, slot);
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
	tern_ring_srq_publish(&srq->k.ring, srq->k.pi);
	spin_unlock_irqrestore(&srq->k.lock, flags);

	if (err)
		*bad_wr = wr;
	return err;
}

/* The card has consumed the WQE in @slot. Interrupts are off. */
bool tern_kverbs_srq_complete(struct tern_srq *srq, u32 slot, struct tern_recv *recv)
{
	struct tern_kverbs_srq *k = &srq->k;
	u32 slots = tern_ring_srq_slots(&k->ring);
	bool known;

	spin_lock(&k->lock);
	known = slot < slots && __test_and_clear_bit(slot, k->posted);
	if (known) {
		*recv = k->recvs[slot];
		k->free[k->free_count++] = slot;
	}
	spin_unlock(&k->lock);
	return known;
}

/* ---- create and destroy ------------------------------------------------------------- */

static void tern_kverbs_srq_free(struct tern_kverbs_srq *k)
{
	bitmap_free(k->posted);
	kvfree(k->free);
	kvfree(k->recvs);
}

static int tern_kverbs_srq_alloc(struct tern_kverbs_srq *k, u32 slots)
{
	u32 slot;

	spin_lock_init(&k->lock);
	k->recvs = kvcalloc(slots, sizeof(*k->recvs), GFP_KERNEL);
	k->free = kvcalloc(slots, sizeof(*k->free), GFP_KERNEL);
	k->posted = bitmap_zalloc(slots, GFP_KERNEL);
	if (!k->recvs || !k->free || !k->posted) {
		tern_kverbs_srq_free(k);
		return -ENOMEM;
	}
	for (slot = 0; slot < slots; slot++)
		k->free[slot] = slot;
	k->free_count = slots;
	return 0;
}

int tern_kverbs_srq_create(struct tern_srq *srq, const struct tern_srq_layout *layout,
			   struct tern_hw_create_srq *hw)
{
	struct tern_dev *tdev = to_tdev(srq->ibsrq.device);
	int err;

	err = tern_kverbs_srq_alloc(&srq->k, 1U << layout->log_size);
	if (err)
		return err;
	err = tern_ring_srq_init(tdev, &srq->k.ring, layout);
	if (err)
		goto err_slots;
	err = tern_srq_core_create(tdev, &srq->core, &srq->k.ring.buf, layout, hw);
	if (err)
		goto err_ring;
	srq->kernel = true;
	return 0;

err_ring:
	tern_ring_srq_exit(tdev, &srq->k.ring);
err_slots:
	tern_kverbs_srq_free(&srq->k);
	return err;
}

void tern_kverbs_srq_destroy(struct tern_srq *srq)
{
	struct tern_dev *tdev = to_tdev(srq->ibsrq.device);

	tern_srq_core_destroy(tdev, &srq->core);
	tern_ring_srq_exit(tdev, &srq->k.ring);
	tern_kverbs_srq_free(&srq->k);
}
