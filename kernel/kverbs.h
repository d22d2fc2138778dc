/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Verbs of users in the kernel: their CQs, QPs and SRQs, and the requests that they posted.
 *
 * All locks here are taken with interrupts off, since users post and poll from any context.
 * tern.h has their order.
 */
#ifndef TERN_KVERBS_H
#define TERN_KVERBS_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "object.h"

struct tern_cq;
struct tern_qp;
struct tern_srq;

struct tern_kverbs_cq {
	struct tern_ring_cq ring;
	spinlock_t lock;	/* protects the whole struct */
	bool armed;		/* was armed once: a user that never arms gets no event */
	struct list_head sqs;	/* send queues that complete here */
	struct list_head rqs;	/* receive queues that complete here */
	struct xarray qps;	/* the QPs of these queues, by QPN */
	u32 disowned;		/* CQEs in the ring by tern_ring_cq_disown() */
};

/* A send request under way. */
struct tern_send {
	u64 wr_id;
	u8 opcode;		/* enum ib_wc_opcode */
	u8 blocks;
	bool signalled;		/* its completion has a CQE of its own */
};

struct tern_sq {
	spinlock_t lock;	/* protects the rest, except of_cq, and the send ring */
	struct tern_send *sends;	/* by block */
	u32 max_blocks;		/* of the largest WQE */
	u32 pi;
	u32 ci;
	struct list_head of_cq;	/* in tern_kverbs_cq.sqs, whose lock protects it */
};

/* A receive request under way. */
struct tern_recv {
	u64 wr_id;
	u32 length;		/* of all its buffers */
};

struct tern_rq {
	spinlock_t lock;	/* protects the rest, except of_cq, and the receive ring */
	struct tern_recv *recvs;	/* by slot */
	u32 pi;
	u32 ci;
	struct list_head of_cq;	/* in tern_kverbs_cq.rqs, whose lock protects it */
};

struct tern_kverbs_qp {
	struct tern_ring_qp ring;
	struct tern_sq sq;
	struct tern_rq rq;
};

struct tern_kverbs_srq {
	struct tern_ring_srq ring;
	spinlock_t lock;	/* protects the whole struct */
	struct tern_recv *recvs;	/* by slot */
	unsigned long *posted;	/* slots that the card has */
	u32 *free;		/* the first free_count entries are the unused slots */
	u32 free_count;
	u32 pi;
};

/* kverbs_cq.c */
int tern_kverbs_cq_create(struct tern_cq *cq, u32 cqe);
void tern_kverbs_cq_shut(struct tern_cq *cq);
void tern_kverbs_cq_free(struct tern_cq *cq);
int tern_kverbs_cq_attach(struct tern_qp *qp);
void tern_kverbs_cq_detach(struct tern_qp *qp);
void tern_kverbs_cq_forget(struct tern_qp *qp, bool destroyed);
int tern_poll_cq(struct ib_cq *ibcq, int count, struct ib_wc *wc);
int tern_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

/* kverbs_qp.c */
int tern_kverbs_qp_create(struct tern_qp *qp, const struct tern_qp_layout *layout,
			  struct tern_hw_create_qp *hw);
void tern_kverbs_qp_destroy(struct tern_qp *qp);
void tern_kverbs_qp_reset(struct tern_qp *qp);
int tern_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr);
int tern_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr);

/* kverbs_srq.c */
int tern_kverbs_srq_create(struct tern_srq *srq, const struct tern_srq_layout *layout,
			   struct tern_hw_create_srq *hw);
void tern_kverbs_srq_destroy(struct tern_srq *srq);
bool tern_kverbs_srq_complete(struct tern_srq *srq, u32 slot, struct tern_recv *recv);
int tern_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr);

/* kverbs_wr.c */
int tern_wr_write_send(struct tern_qp *qp, const struct ib_send_wr *wr, u32 block,
		       struct tern_send *send);
void tern_wr_write_recv(struct tern_hw_data_seg *wqe, u32 segs, const struct ib_recv_wr *wr,
			struct tern_recv *recv);

/* kverbs_mr.c */
#define TERN_MAX_FAST_REG_PAGES	4096

extern const struct ib_device_ops tern_fast_reg_ops;
struct ib_mr *tern_get_dma_mr(struct ib_pd *ibpd, int access);

#endif
