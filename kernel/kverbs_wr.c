// SPDX-License-Identifier: GPL-2.0
/* Writes work requests of users in the kernel as WQEs: a function per segment. */
#include <rdma/ib_verbs.h>

#include "ib.h"

enum tern_wr_kind {
	TERN_WR_SEND = 1,
	TERN_WR_RDMA,
	TERN_WR_ATOMIC,
	TERN_WR_MASKED_ATOMIC,
	TERN_WR_LOCAL_INV,
	TERN_WR_REG_MR,
};

/* The content of imm in the control segment. */
enum tern_wr_imm {
	TERN_WR_NO_IMM,
	TERN_WR_IMM,
	TERN_WR_KEY,
};

struct tern_wr_op {
	u8 hw;		/* enum tern_hw_wqe_op */
	u8 wc;		/* enum ib_wc_opcode */
	u8 kind;	/* enum tern_wr_kind; zero: not supported */
	u8 imm;		/* enum tern_wr_imm */
};

static const struct tern_wr_op tern_wr_ops[] = {
	[IB_WR_SEND] = { TERN_OP_SEND, IB_WC_SEND, TERN_WR_SEND },
	[IB_WR_SEND_WITH_IMM] = { TERN_OP_SEND_IMM, IB_WC_SEND, TERN_WR_SEND, TERN_WR_IMM },
	[IB_WR_SEND_WITH_INV] = { TERN_OP_SEND_INV, IB_WC_SEND, TERN_WR_SEND, TERN_WR_KEY },
	[IB_WR_RDMA_WRITE] = { TERN_OP_WRITE, IB_WC_RDMA_WRITE, TERN_WR_RDMA },
	[IB_WR_RDMA_WRITE_WITH_IMM] = { TERN_OP_WRITE_IMM, IB_WC_RDMA_WRITE, TERN_WR_RDMA,
					TERN_WR_IMM },
	[IB_WR_RDMA_READ] = { TERN_OP_READ, IB_WC_RDMA_READ, TERN_WR_RDMA },
	[IB_WR_ATOMIC_CMP_AND_SWP] = { TERN_OP_CMP_SWAP, IB_WC_COMP_SWAP, TERN_WR_ATOMIC },
	[IB_WR_ATOMIC_FETCH_AND_ADD] = { TERN_OP_FETCH_ADD, IB_WC_FETCH_ADD, TERN_WR_ATOMIC },
	[IB_WR_MASKED_ATOMIC_CMP_AND_SWP] = { TERN_OP_MASKED_CMP_SWAP, IB_WC_MASKED_COMP_SWAP,
					      TERN_WR_MASKED_ATOMIC },
	[IB_WR_MASKED_ATOMIC_FETCH_AND_ADD] = { TERN_OP_MASKED_FETCH_ADD, IB_WC_MASKED_FETCH_ADD,
						TERN_WR_MASKED_ATOMIC },
	[IB_WR_LOCAL_INV] = { TERN_OP_LOCAL_INV, IB_WC_LOCAL_INV, TERN_WR_LOCAL_INV, TERN_WR_KEY },
	[IB_WR_REG_MR] = { TERN_OP_REG_MR, IB_WC_REG_MR, TERN_WR_REG_MR },
};

/* A WQE under construction. */
struct tern_wqe {
	const struct tern_ring_qp *ring;
	u32 block;
	u32 segs;
};

/* Appends @segs segments, which do not cross the end of a block. */
static void *tern_wqe_add(struct tern_wqe *wqe, u32 segs)
{
	void *at = tern_ring_qp_sq_seg(wqe->ring, wqe->block, wqe->segs);

	wqe->segs += segs;
	return at;
}

static bool tern_qp_is_datagram(const struct tern_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_UD || qp->ibqp.qp_type == IB_QPT_GSI;
}

/* Only the send queues of such QPs have room for the masks, see tern_qp_fit_masked_atomic(). */
static bool tern_qp_takes_masks(const struct tern_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_RC &&
	       to_tdev(qp->ibqp.device)->caps & TERN_CAP_MASKED_ATOMIC;
}

/* Checks only what posting must check. The card reports other errors in the completion. */
static const struct tern_wr_op *tern_wr_find_op(const struct tern_qp *qp,
						const struct ib_send_wr *wr)
{
	int flags = IB_SEND_FENCE | IB_SEND_SIGNALED | IB_SEND_SOLICITED | IB_SEND_INLINE;
	const struct tern_wr_op *op;

	if (wr->opcode >= ARRAY_SIZE(tern_wr_ops) || wr->send_flags & ~flags ||
	    wr->num_sge < 0 || wr->num_sge > qp->cap.max_send_sge)
		return NULL;
	op = &tern_wr_ops[wr->opcode];
	if (!op->kind || (tern_qp_is_datagram(qp) && op->kind != TERN_WR_SEND))
		return NULL;
	if (op->kind == TERN_WR_MASKED_ATOMIC && !tern_qp_takes_masks(qp))
		return NULL;
	/* The planned size of a WQE has no room for more behind the head of an atomic operation. */
	if ((op->kind == TERN_WR_ATOMIC || op->kind == TERN_WR_MASKED_ATOMIC) &&
	    (wr->num_sge != 1 || wr->send_flags & IB_SEND_INLINE))
		return NULL;
	return op;
}

static __be32 tern_wr_imm(const struct tern_wr_op *op, const struct ib_send_wr *wr)
{
	switch (op->imm) {
	case TERN_WR_IMM:
		return wr->ex.imm_data;
	case TERN_WR_KEY:
		return cpu_to_be32(wr->ex.invalidate_rkey);
	default:
		return 0;
	}
}

static u8 tern_wr_flags(const struct ib_send_wr *wr)
{
	u8 flags = 0;

	if (wr->send_flags & IB_SEND_SIGNALED)
		flags |= TERN_WQE_SIGNALED;
	if (wr->send_flags & IB_SEND_SOLICITED)
		flags |= TERN_WQE_SOLICITED;
	if (wr->send_flags & IB_SEND_FENCE)
		flags |= TERN_WQE_FENCE;
	return flags;
}

static int tern_wqe_add_address(struct tern_wqe *wqe, const struct ib_ud_wr *wr)
{
	struct tern_hw_ud_seg *seg;

	if (!wr->ah || wr->pkey_index)
		return -EINVAL;

	seg = tern_wqe_add(wqe, sizeof(*seg) / TERN_SEG_SIZE);
	*seg = to_tah(wr->ah)->av;
	seg->dest_qpn = cpu_to_le32(wr->remote_qpn);
	seg->qkey = cpu_to_le32(wr->remote_qkey);
	return 0;
}

static void tern_wqe_add_remote(struct tern_wqe *wqe, u64 addr, u32 rkey)
{
	struct tern_hw_raddr_seg *seg = tern_wqe_add(wqe, 1);

	*seg = (struct tern_hw_raddr_seg) {
		.addr = cpu_to_le64(addr),
		.rkey = cpu_to_le32(rkey),
	};
}

static bool tern_wr_is_swap(const struct ib_atomic_wr *wr)
{
	return wr->wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	       wr->wr.opcode == IB_WR_MASKED_ATOMIC_CMP_AND_SWP;
}

static void tern_wqe_add_atomic(struct tern_wqe *wqe, const struct ib_atomic_wr *wr)
{
	bool swap = tern_wr_is_swap(wr);
	struct tern_hw_atomic_seg *seg = tern_wqe_add(wqe, 1);

	*seg = (struct tern_hw_atomic_seg) {
		.swap_add = cpu_to_le64(swap ? wr->swap : wr->compare_add),
		.compare = cpu_to_le64(swap ? wr->compare_add : 0),
	};
}

/* An addition has its mask in compare_add_mask, as it has its operand in compare_add. */
static void tern_wqe_add_masks(struct tern_wqe *wqe, const struct ib_atomic_wr *wr)
{
	struct tern_hw_atomic_mask_seg *seg = tern_wqe_add(wqe, 1);
	bool swap = tern_wr_is_swap(wr);

	*seg = (struct tern_hw_atomic_mask_seg) {
		.swap_add = cpu_to_le64(swap ? wr->swap_mask : wr->compare_add_mask),
		.compare = cpu_to_le64(swap ? wr->compare_add_mask : 0),
	};
}

static int tern_wqe_add_registration(struct tern_wqe *wqe, const struct ib_reg_wr *wr)
{
	const struct tern_mr *mr = to_tmr(wr->mr);
	struct tern_hw_reg_seg *seg;

	if (tern_check_access(to_tdev(wr->mr->device), wr->access))
		return -EINVAL;

	seg = tern_wqe_add(wqe, sizeof(*seg) / TERN_SEG_SIZE);
	*seg = (struct tern_hw_reg_seg) {
		.start = cpu_to_le64(mr->ibmr.iova),
		.length = cpu_to_le64(mr->ibmr.length),
		.key = cpu_to_le32(wr->key),
		.access = tern_hw_access(wr->access),
	};
	tern_table_describe(&mr->table, mr->ibmr.iova, &seg->pages);
	return 0;
}

/* Appends the segments between the control segment and the payload. */
static int tern_wqe_add_head(struct tern_wqe *wqe, const struct tern_qp *qp,
			     const struct tern_wr_op *op, const struct ib_send_wr *wr)
{
	switch (op->kind) {
	case TERN_WR_SEND:
		return tern_qp_is_datagram(qp) ? tern_wqe_add_address(wqe, ud_wr(wr)) : 0;
	case TERN_WR_RDMA:
		tern_wqe_add_remote(wqe, rdma_wr(wr)->remote_addr, rdma_wr(wr)->rkey);
		return 0;
	case TERN_WR_ATOMIC:
	case TERN_WR_MASKED_ATOMIC:
		tern_wqe_add_remote(wqe, atomic_wr(wr)->remote_addr, atomic_wr(wr)->rkey);
		tern_wqe_add_atomic(wqe, atomic_wr(wr));
		if (op->kind == TERN_WR_MASKED_ATOMIC)
			tern_wqe_add_masks(wqe, atomic_wr(wr));
		return 0;
	case TERN_WR_REG_MR:
		return tern_wqe_add_registration(wqe, reg_wr(wr));
	default:
		return 0;
	}
}

static void tern_sge_to_hw(const struct ib_sge *sge, struct tern_hw_data_seg *seg)
{
	*seg = (struct tern_hw_data_seg) {
		.addr = cpu_to_le64(sge->addr),
		.length = cpu_to_le32(sge->length),
		.lkey = cpu_to_le32(sge->lkey),
	};
}

/* Appends @length bytes of inline data at @offset, segment by segment. */
static void tern_wqe_copy_inline(struct tern_wqe *wqe, u32 offset, const u8 *from, u32 length)
{
	while (length) {
		u32 in_seg = offset % TERN_SEG_SIZE;
		u32 piece = min_t(u32, length, TERN_SEG_SIZE - in_seg);
		u8 *seg = in_seg ? tern_ring_qp_sq_seg(wqe->ring, wqe->block, wqe->segs - 1) :
				   tern_wqe_add(wqe, 1);

		memcpy(seg + in_seg, from, piece);
		offset += piece;
		from += piece;
		length -= piece;
	}
}

/* Returns the number of bytes. The addresses in the list are virtual addresses. */
static int tern_wqe_add_inline(struct tern_wqe *wqe, const struct tern_qp *qp,
			       const struct ib_send_wr *wr)
{
	u32 length = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->cap.max_inline_data - length)
			return -EINVAL;
		tern_wqe_copy_inline(wqe, length, (const u8 *)(uintptr_t)sge->addr, sge->length);
		length += sge->length;
	}
	return length;
}

static void tern_wqe_add_data(struct tern_wqe *wqe, const struct ib_send_wr *wr)
{
	int i;

	for (i = 0; i < wr->num_sge; i++)
		tern_sge_to_hw(&wr->sg_list[i], tern_wqe_add(wqe, 1));
}

/* Appends the payload and completes the control segment. */
static int tern_wqe_add_payload(struct tern_wqe *wqe, const struct tern_qp *qp,
				const struct ib_send_wr *wr, struct tern_hw_ctrl_seg *ctrl)
{
	int length;

	if (!(wr->send_flags & IB_SEND_INLINE)) {
		tern_wqe_add_data(wqe, wr);
		return 0;
	}

	length = tern_wqe_add_inline(wqe, qp, wr);
	if (length < 0)
		return length;
	ctrl->flags |= TERN_WQE_INLINE;
	ctrl->inline_len = cpu_to_le32(length);
	return 0;
}

static bool tern_wr_has_payload(const struct tern_wr_op *op)
{
	return op->kind <= TERN_WR_MASKED_ATOMIC;
}

/* Writes @wr at @block of the send queue, which has room, and records it in @send. */
int tern_wr_write_send(struct tern_qp *qp, const struct ib_send_wr *wr, u32 block,
		       struct tern_send *send)
{
	struct tern_wqe wqe = { .ring = &qp->k.ring, .block = block };
	const struct tern_wr_op *op = tern_wr_find_op(qp, wr);
	struct tern_hw_ctrl_seg *ctrl;
	int err;

	if (!op)
		return -EINVAL;

	ctrl = tern_wqe_add(&wqe, 1);
	*ctrl = (struct tern_hw_ctrl_seg) {
		.opcode = op->hw,
		.flags = tern_wr_flags(wr),
		.imm = tern_wr_imm(op, wr),
	};
	err = tern_wqe_add_head(&wqe, qp, op, wr);
	if (!err && tern_wr_has_payload(op))
		err = tern_wqe_add_payload(&wqe, qp, wr, ctrl);
	if (err)
		return err;

	ctrl->segs = wqe.segs;
	*send = (struct tern_send) {
		.wr_id = wr->wr_id,
		.opcode = op->wc,
		.blocks = DIV_ROUND_UP(wqe.segs * TERN_SEG_SIZE, TERN_SQ_BLOCK),
		.signalled = qp->sig_type == IB_SIGNAL_ALL_WR || (ctrl->flags & TERN_WQE_SIGNALED),
	};
	return 0;
}

/* Writes @wr to a receive WQE of @segs segments, and records it in @recv. */
void tern_wr_write_recv(struct tern_hw_data_seg *wqe, u32 segs, const struct ib_recv_wr *wr,
			struct tern_recv *recv)
{
	u64 length = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		tern_sge_to_hw(&wr->sg_list[i], &wqe[i]);
		length += wr->sg_list[i].length;
	}
	*recv = (struct tern_recv) {
		.wr_id = wr->wr_id,
		.length = min_t(u64, length, U32_MAX),
	};
	if (i < segs)
		wqe[i] = (struct tern_hw_data_seg) { .lkey = cpu_to_le32(TERN_LKEY_END) };
}
