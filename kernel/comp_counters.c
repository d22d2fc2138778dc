// SPDX-License-Identifier: GPL-2.0
/*
 * Completion counters: how many requests, or bytes, of the QPs that a counter is attached to have
 * completed, and how many requests have failed. The card keeps both values in memory that the
 * process maps.
 */
#include <rdma/ib_verbs.h>
#include <rdma/tern-abi.h>
#include <rdma/uverbs_ioctl.h>

#include "ib.h"

static_assert(IB_QP_ATTACH_COMP_CNTR_OP_SEND == TERN_COMP_SEND);
static_assert(IB_QP_ATTACH_COMP_CNTR_OP_RECV == TERN_COMP_RECV);
static_assert(IB_QP_ATTACH_COMP_CNTR_OP_RDMA_READ == TERN_COMP_READ);
static_assert(IB_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ == TERN_COMP_REMOTE_READ);
static_assert(IB_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE == TERN_COMP_WRITE);
static_assert(IB_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE == TERN_COMP_REMOTE_WRITE);
static_assert(IB_COMP_CNTR_ENTRY_COMP == (u32)TERN_COMP_COMPLETED);
static_assert(IB_COMP_CNTR_ENTRY_ERR == (u32)TERN_COMP_FAILED);
static_assert(IB_COMP_CNTR_MODIFY_OP_SET == (u32)TERN_COMP_SET);
static_assert(IB_COMP_CNTR_MODIFY_OP_INC == (u32)TERN_COMP_ADD);

/* All operations that some type of QP has. */
#define TERN_COMP_OPS \
	(TERN_COMP_SEND | TERN_COMP_RECV | TERN_COMP_READ | TERN_COMP_REMOTE_READ | \
	 TERN_COMP_WRITE | TERN_COMP_REMOTE_WRITE)

static u32 tern_comp_ops(const struct ib_qp *ibqp)
{
	u32 recv = ibqp->srq && ibqp->srq->srq_type == IB_SRQT_TM ? 0 : TERN_COMP_RECV;

	switch (ibqp->qp_type) {
	case IB_QPT_RC:
		return (TERN_COMP_OPS & ~TERN_COMP_RECV) | recv;
	case IB_QPT_UC:
		return TERN_COMP_SEND | TERN_COMP_WRITE | TERN_COMP_REMOTE_WRITE | recv;
	case IB_QPT_UD:
		return TERN_COMP_SEND | recv;
	case IB_QPT_XRC_INI:
		return TERN_COMP_SEND | TERN_COMP_READ | TERN_COMP_WRITE;
	case IB_QPT_XRC_TGT:
		return TERN_COMP_RECV | TERN_COMP_REMOTE_READ | TERN_COMP_REMOTE_WRITE;
	default:
		return 0;
	}
}

static int tern_query_comp_cntr_caps(struct ib_device *ibdev, struct ib_comp_cntr_caps *caps,
				     struct uverbs_attr_bundle *attrs)
{
	caps->max_value = U64_MAX;
	caps->max_counters = to_tdev(ibdev)->attr.max_comp_counters;
	caps->supported_qp_attach_ops = TERN_COMP_OPS;
	return 0;
}

/* Creates the counter in the card, with its record in cc->ubuf. */
static int tern_comp_cntr_create_core(struct tern_ucontext *uctx, struct tern_comp_cntr *cc,
				      u8 unit)
{
	struct tern_hw_create_comp_counter hw = {
		.record = cpu_to_le64(tern_buf_dma(cc->ubuf.buf, 0)),
		.db_page = cpu_to_le32(uctx->db_page),
		.unit = unit,
	};

	return tern_cmd_create_comp_counter(uctx->engine, &hw, &cc->id);
}

static int tern_create_comp_cntr(struct ib_comp_cntr *ibcc, struct uverbs_attr_bundle *attrs)
{
	struct tern_ucontext *uctx = to_tucontext(attrs->context);
	struct tern_comp_cntr *cc = to_tcomp_cntr(ibcc);
	u32 unit;
	int err;

	err = uverbs_copy_from(&unit, attrs, TERN_ATTR_CREATE_COMP_CNTR_UNIT);
	if (err)
		return err;
	if (unit > TERN_COMP_BYTES)
		return -EINVAL;

	err = tern_ubuf_create(uctx, &cc->ubuf, sizeof(*cc->record));
	if (err)
		return err;
	cc->record = tern_buf_at(cc->ubuf.buf, 0);
	err = tern_comp_cntr_create_core(uctx, cc, unit);
	if (err)
		goto err_ubuf;
	err = uverbs_copy_to(attrs, TERN_ATTR_CREATE_COMP_CNTR_RESP_KEY, &cc->ubuf.key,
			     sizeof(cc->ubuf.key));
	if (err)
		goto err_core;
	return 0;

err_core:
	tern_cmd_destroy_comp_counter(uctx->engine->tdev, cc->id);
err_ubuf:
	tern_ubuf_destroy(&cc->ubuf);
	return err;
}

/* ib_core does not destroy a counter that is attached to a QP. */
static int tern_destroy_comp_cntr(struct ib_comp_cntr *ibcc)
{
	struct tern_comp_cntr *cc = to_tcomp_cntr(ibcc);

	tern_cmd_destroy_comp_counter(to_tdev(ibcc->device), cc->id);
	tern_ubuf_destroy(&cc->ubuf);
	return 0;
}

static int tern_modify_comp_cntr(struct ib_comp_cntr *ibcc, enum ib_comp_cntr_entry entry,
				 enum ib_comp_cntr_modify_op op, u64 value)
{
	struct tern_hw_modify_comp_counter hw = {
		.operand = cpu_to_le64(value),
		.id = cpu_to_le32(to_tcomp_cntr(ibcc)->id),
		.value = entry,
		.change = op,
	};

	return tern_cmd_modify_comp_counter(to_tdev(ibcc->device), &hw);
}

/* Serves processes that have not mapped the record. */
static int tern_read_comp_cntr(struct ib_comp_cntr *ibcc, enum ib_comp_cntr_entry entry, u64 *value)
{
	const struct tern_hw_comp_record *record = to_tcomp_cntr(ibcc)->record;
	const __le64 *from = entry == IB_COMP_CNTR_ENTRY_ERR ? &record->failed : &record->completed;

	/* What the card wrote before it counted can be read after this. */
	*value = le64_to_cpu(smp_load_acquire(from));
	return 0;
}

static int tern_qp_attach_comp_cntr(struct ib_qp *ibqp, struct ib_comp_cntr *ibcc,
				    struct ib_qp_attach_comp_cntr_attr *attr)
{
	struct tern_qp *qp = to_tqp(ibqp);
	struct tern_hw_attach_comp_counter hw = {
		.qpn = cpu_to_le32(qp->core.qpn),
		.id = cpu_to_le32(to_tcomp_cntr(ibcc)->id),
		.ops = cpu_to_le32(attr->op_mask),
	};
	int err;

	if (attr->op_mask & ~tern_comp_ops(ibqp))
		return -EOPNOTSUPP;
	if (!tern_qp_lock_living(qp))
		return -ENOENT;
	err = tern_cmd_attach_comp_counter(to_tdev(ibqp->device), &hw);
	mutex_unlock(&qp->lock);
	return err;
}

const struct ib_device_ops tern_comp_cntr_ops = {
	.query_comp_cntr_caps = tern_query_comp_cntr_caps,
	.create_comp_cntr = tern_create_comp_cntr,
	.destroy_comp_cntr = tern_destroy_comp_cntr,
	.modify_comp_cntr = tern_modify_comp_cntr,
	.read_comp_cntr = tern_read_comp_cntr,
	.qp_attach_comp_cntr = tern_qp_attach_comp_cntr,

	INIT_RDMA_OBJ_SIZE(ib_comp_cntr, tern_comp_cntr, ibcc),
};
