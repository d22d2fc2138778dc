// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues. Processes post to theirs without the driver. */
#include <linux/log2.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>
#include <rdma/tern-abi.h>
#include <rdma/uverbs_ioctl.h>

#include "ib.h"

static void tern_ib_srq_event(struct tern_srq_core *core, u8 type)
{
	struct ib_srq *ibsrq = &container_of(core, struct tern_srq, core)->ibsrq;
	struct ib_event event = {
		.device = ibsrq->device,
		.element.srq = ibsrq,
		.event = type == TERN_EVENT_SRQ_LIMIT ? IB_EVENT_SRQ_LIMIT_REACHED :
							IB_EVENT_SRQ_ERR,
	};

	if (ibsrq->event_handler)
		ibsrq->event_handler(&event, ibsrq->srq_context);
}

/* ---- sizes ------------------------------------------------------------------------ */

static int tern_srq_check_attr(const struct tern_dev *tdev, const struct ib_srq_attr *attr)
{
	if (attr->max_wr > 1U << tdev->attr.max_srq_log_size ||
	    attr->max_sge > tdev->attr.max_recv_sge)
		return -EINVAL;
	return 0;
}

/* Plans a buffer for @attr, and raises @attr to what it can hold. */
static void tern_srq_plan_attr(const struct tern_dev *tdev, struct ib_srq_attr *attr,
			       struct tern_srq_layout *layout)
{
	u8 log_size = order_base_2(max(attr->max_wr, 1U));
	u8 stride = order_base_2(max(attr->max_sge, 1U) * TERN_SEG_SIZE);

	tern_srq_plan(layout, log_size, stride);
	attr->max_wr = 1U << log_size;
	attr->max_sge = min_t(u32, (1U << stride) / TERN_SEG_SIZE, tdev->attr.max_recv_sge);
}

/* Adds the ring of tag operations. */
static int tern_srq_plan_tm(const struct tern_dev *tdev, u32 max_num_tags, struct ib_udata *udata,
			    struct tern_srq_layout *layout)
{
	struct tern_create_srq_cmd cmd;
	int err;

	err = tern_udata_read(udata, &cmd, sizeof(cmd));
	if (err)
		return err;
	if (cmd.reserved || !max_num_tags || max_num_tags > 1U << tdev->attr.max_log_tags ||
	    cmd.max_ops > 1U << tdev->attr.max_log_tag_ops)
		return -EINVAL;
	tern_srq_plan_tags(layout, order_base_2(max_num_tags), order_base_2(max(cmd.max_ops, 1U)));
	return 0;
}

/* ---- create and destroy ------------------------------------------------------------- */

static void tern_srq_describe(const struct tern_srq *srq, const struct ib_srq_init_attr *init,
			      struct tern_hw_create_srq *hw)
{
	*hw = (struct tern_hw_create_srq) { .pdn = cpu_to_le32(to_tpd(srq->ibsrq.pd)->pdn) };
	if (init->srq_type == IB_SRQT_XRC)
		hw->xrcdn = cpu_to_le32(to_txrcd(init->ext.xrc.xrcd)->xrcdn);
	if (ib_srq_has_cq(init->srq_type))
		hw->cqn = cpu_to_le32(to_tcq(init->ext.cq)->core.cqn);
}

static void tern_usrq_locate(const struct tern_srq *srq, const struct tern_ubuf *ubuf,
			     const struct tern_srq_layout *layout, struct tern_srq_buf *where)
{
	*where = (struct tern_srq_buf) {
		.buf_key = ubuf->key,
		.buf_len = PAGE_ALIGN(layout->size),
		.ring_offset = layout->ring_offset,
		.record_offset = layout->record_offset,
		.srqn = srq->core.srqn,
		.log_size = layout->log_size,
		.log_stride = layout->log_stride,
		.log_tags = layout->log_tags,
		.log_tag_ops = layout->log_tag_ops,
		.tag_ops_offset = layout->tag_ops_offset,
	};
}

static int tern_usrq_respond(struct ib_udata *udata, const struct tern_srq *srq)
{
	struct tern_create_srq_resp resp;

	tern_usrq_locate(srq, &srq->ubuf, &srq->layout, &resp.buf);
	return tern_udata_respond(udata, &resp, sizeof(resp));
}

static int tern_usrq_create(struct tern_srq *srq, struct tern_hw_create_srq *hw,
			    struct ib_udata *udata)
{
	struct tern_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct tern_ucontext, ibucontext);
	struct tern_dev *tdev = to_tdev(srq->ibsrq.device);
	int err;

	err = tern_ubuf_create(uctx, &srq->ubuf, srq->layout.size);
	if (err)
		return err;
	if (srq->layout.tag_ops_offset)
		hw->db_page = cpu_to_le32(uctx->db_page);
	err = tern_srq_core_create(tdev, &srq->core, srq->ubuf.buf, &srq->layout, hw);
	if (err)
		goto err_ubuf;
	err = tern_usrq_respond(udata, srq);
	if (err)
		goto err_core;
	return 0;

err_core:
	tern_srq_core_destroy(tdev, &srq->core);
err_ubuf:
	tern_ubuf_destroy(&srq->ubuf);
	return err;
}

static void tern_usrq_destroy(struct tern_srq *srq)
{
	tern_srq_core_destroy(to_tdev(srq->ibsrq.device), &srq->core);
	tern_ubuf_destroy(&srq->ubuf);
}

/* XRC and tag matching are for processes only. */
static bool tern_srq_type_supported(const struct tern_dev *tdev, enum ib_srq_type type, bool user)
{
	return type == IB_SRQT_BASIC ||
	       (type == IB_SRQT_XRC && user && tdev->caps & TERN_CAP_XRC) ||
	       (type == IB_SRQT_TM && user && tdev->caps & TERN_CAP_TAG_MATCHING);
}

static int tern_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
			   struct ib_udata *udata)
{
	struct tern_dev *tdev = to_tdev(ibsrq->device);
	struct tern_srq *srq = to_tsrq(ibsrq);
	struct ib_srq_attr attr = init->attr;
	struct tern_hw_create_srq hw;
	int err;

	if (!tern_srq_type_supported(tdev, init->srq_type, udata))
		return -EOPNOTSUPP;
	err = tern_srq_check_attr(tdev, &attr);
	if (err)
		return err;
	tern_srq_plan_attr(tdev, &attr, &srq->layout);
	err = init->srq_type == IB_SRQT_TM ?
		      tern_srq_plan_tm(tdev, init->ext.tag_matching.max_num_tags, udata,
				       &srq->layout) :
		      tern_udata_no_input(udata);
	if (err)
		return err;

	mutex_init(&srq->lock);
	srq->max_sge = attr.max_sge;
	srq->core.event = tern_ib_srq_event;
	tern_srq_describe(srq, init, &hw);
	err = udata ? tern_usrq_create(srq, &hw, udata) :
		      tern_kverbs_srq_create(srq, &srq->layout, &hw);
	if (err) {
		mutex_destroy(&srq->lock);
		return err;
	}

	init->attr = attr;
	if (init->srq_type == IB_SRQT_XRC)
		ibsrq->ext.xrc.srq_num = srq->core.srqn;
	return 0;
}

static int tern_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct tern_srq *srq = to_tsrq(ibsrq);

	if (srq->kernel)
		tern_kverbs_srq_destroy(srq);
	else
		tern_usrq_destroy(srq);
	mutex_destroy(&srq->lock);
	return 0;
}

/* ---- resize ------------------------------------------------------------------------- */

static void tern_srq_copy_slots(const struct tern_buf *from, const struct tern_srq_layout *old,
				const struct tern_buf *to)
{
	u32 slot;

	for (slot = 0; slot < 1U << old->log_size; slot++) {
		size_t offset = (size_t)slot << old->log_stride;

		memcpy(tern_buf_at(to, offset), tern_buf_at(from, offset), 1U << old->log_stride);
	}
}

static __le32 *tern_srq_ring_at(const struct tern_buf *buf, const struct tern_srq_layout *layout,
				u32 index)
{
	u32 entry = index & ((1U << layout->log_size) - 1);

	return tern_buf_at(buf, layout->ring_offset + entry * sizeof(__le32));
}

/* Entries keep their index, so their place in the larger ring differs. */
static void tern_srq_copy_ring(const struct tern_buf *from, const struct tern_srq_layout *old,
			       const struct tern_buf *to, const struct tern_srq_layout *new)
{
	const struct tern_hw_srq_record *from_record = tern_buf_at(from, old->record_offset);
	struct tern_hw_srq_record *to_record = tern_buf_at(to, new->record_offset);
	u32 pi = le32_to_cpu(READ_ONCE(from_record->pi));
	u32 size = 1U << old->log_size;
	u32 i;

	for (i = pi - size; i != pi; i++)
		*tern_srq_ring_at(to, new, i) = *tern_srq_ring_at(from, old, i);
	to_record->pi = cpu_to_le32(pi);
}

/*
 * Tells the process about the new buffer before the card moves there, since after the move nothing
 * may fail.
 */
static int tern_usrq_move(struct tern_srq *srq, const struct tern_ubuf *ubuf,
			  const struct tern_srq_layout *layout, void __user *to)
{
	struct tern_srq_buf where;

	tern_srq_copy_slots(srq->ubuf.buf, &srq->layout, ubuf->buf);
	tern_srq_copy_ring(srq->ubuf.buf, &srq->layout, ubuf->buf, layout);
	tern_usrq_locate(srq, ubuf, layout, &where);
	if (copy_to_user(to, &where, sizeof(where)))
		return -EFAULT;
	return tern_srq_core_move(to_tdev(srq->ibsrq.device), &srq->core, ubuf->buf, layout);
}

static int tern_usrq_grow(struct tern_srq *srq, u32 max_wr, void __user *to,
			  struct ib_udata *udata)
{
	struct tern_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct tern_ucontext, ibucontext);
	struct tern_srq_layout layout;
	struct tern_ubuf ubuf;
	int err;

	tern_srq_plan(&layout, order_base_2(max_wr), srq->layout.log_stride);
	err = tern_ubuf_create(uctx, &ubuf, layout.size);
	if (err)
		return err;
	err = tern_usrq_move(srq, &ubuf, &layout, to);
	if (err) {
		tern_ubuf_destroy(&ubuf);
		return err;
	}

	tern_ubuf_destroy(&srq->ubuf);
	srq->ubuf = ubuf;
	srq->layout = layout;
	return 0;
}

static int tern_usrq_resize(struct tern_srq *srq, u32 max_wr, struct ib_udata *udata)
{
	struct tern_srq_buf unchanged = {};
	struct tern_modify_srq_cmd cmd = {};
	void __user *to;
	int err;

	if (!max_wr || max_wr > 1U << to_tdev(srq->ibsrq.device)->attr.max_srq_log_size ||
	    udata->inlen < sizeof(cmd))
		return -EINVAL;
	err = ib_copy_from_udata(&cmd, udata, sizeof(cmd));
	if (err)
		return err;

	to = u64_to_user_ptr(cmd.buf_addr);
	if (max_wr > 1U << srq->layout.log_size)
		return tern_usrq_grow(srq, max_wr, to, udata);
	return copy_to_user(to, &unchanged, sizeof(unchanged)) ? -EFAULT : 0;
}

/* ---- modify and query --------------------------------------------------------------- */

static int tern_srq_set_limit(struct tern_srq *srq, u32 limit)
{
	if (limit > 1U << srq->layout.log_size)
		return -EINVAL;
	return tern_cmd_set_srq_limit(to_tdev(srq->ibsrq.device), srq->core.srqn, limit);
}

static int tern_srq_modify_locked(struct tern_srq *srq, const struct ib_srq_attr *attr, int mask,
				  struct ib_udata *udata)
{
	int err = 0;

	if (mask & IB_SRQ_MAX_WR)
		err = tern_usrq_resize(srq, attr->max_wr, udata);
	if (!err && mask & IB_SRQ_LIMIT)
		err = tern_srq_set_limit(srq, attr->srq_limit);
	return err;
}

/* Only a resize has driver data. */
static bool tern_srq_modify_input_ok(struct ib_udata *udata, int mask)
{
	size_t known = mask & IB_SRQ_MAX_WR ? sizeof(struct tern_modify_srq_cmd) : 0;

	return !udata || udata->inlen <= known ||
	       ib_is_udata_cleared(udata, known, udata->inlen - known);
}

static int tern_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
			   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct tern_srq *srq = to_tsrq(ibsrq);
	int err;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT) || !tern_srq_modify_input_ok(udata, mask))
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR && (!udata || srq->layout.tag_ops_offset))
		return -EOPNOTSUPP;

	mutex_lock(&srq->lock);
	err = tern_srq_modify_locked(srq, attr, mask, udata);
	mutex_unlock(&srq->lock);
	return err;
}

static int tern_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct tern_srq *srq = to_tsrq(ibsrq);

	attr->max_sge = srq->max_sge;
	mutex_lock(&srq->lock);
	attr->max_wr = 1U << srq->layout.log_size;
	mutex_unlock(&srq->lock);
	return tern_cmd_query_srq(to_tdev(ibsrq->device), srq->core.srqn, &attr->srq_limit);
}

const struct ib_device_ops tern_srq_ops = {
	.create_srq = tern_create_srq,
	.modify_srq = tern_modify_srq,
	.query_srq = tern_query_srq,
	.destroy_srq = tern_destroy_srq,
	.post_srq_recv = tern_post_srq_recv,

	INIT_RDMA_OBJ_SIZE(ib_srq, tern_srq, ibsrq),
};
