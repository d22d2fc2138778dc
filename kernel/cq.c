// SPDX-License-Identifier: GPL-2.0
/* Completion queues. Processes poll theirs without the driver. */
#include <linux/log2.h>
#include <rdma/ib_verbs.h>
#include <rdma/tern-abi.h>
#include <rdma/uverbs_ioctl.h>

#include "eq.h"
#include "compat.h"
#include "ib.h"

static void tern_ib_cq_completed(struct tern_cq_core *core)
{
	struct ib_cq *ibcq = &container_of(core, struct tern_cq, core)->ibcq;

	if (ibcq->comp_handler)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
}

static void tern_ib_cq_failed(struct tern_cq_core *core)
{
	struct ib_cq *ibcq = &container_of(core, struct tern_cq, core)->ibcq;
	struct ib_event event = {
		.device = ibcq->device,
		.element.cq = ibcq,
		.event = IB_EVENT_CQ_ERR,
	};

	if (ibcq->event_handler)
		ibcq->event_handler(&event, ibcq->cq_context);
}

static int tern_ucq_respond(struct ib_udata *udata, const struct tern_cq *cq,
			    const struct tern_cq_layout *layout)
{
	struct tern_create_cq_resp resp = {
		.buf_key = cq->ubuf.key,
		.buf_len = PAGE_ALIGN(layout->size),
		.record_offset = layout->record_offset,
		.cqn = cq->core.cqn,
		.log_size = layout->log_size,
	};

	return tern_udata_respond(udata, &resp, sizeof(resp));
}

static int tern_ucq_create(struct tern_cq *cq, u32 cqe, struct ib_udata *udata)
{
	struct tern_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct tern_ucontext, ibucontext);
	struct tern_dev *tdev = to_tdev(cq->ibcq.device);
	struct tern_cq_layout layout;
	int err;

	tern_cq_plan(&layout, order_base_2(cqe));
	err = tern_ubuf_create(uctx, &cq->ubuf, layout.size);
	if (err)
		return err;
	err = tern_cq_core_create(tdev, &cq->core, cq->ubuf.buf, &layout, uctx->db_page);
	if (err)
		goto err_ubuf;
	err = tern_ucq_respond(udata, cq, &layout);
	if (err)
		goto err_core;

	mutex_init(&cq->lock);
	cq->ibcq.cqe = 1 << layout.log_size;
	return 0;

err_core:
	tern_cq_core_destroy(tdev, &cq->core);
err_ubuf:
	tern_ubuf_destroy(&cq->ubuf);
	return err;
}

static void tern_ucq_destroy(struct tern_cq *cq)
{
	tern_cq_core_destroy(to_tdev(cq->ibcq.device), &cq->core);
	tern_ubuf_destroy(&cq->ubuf);
	mutex_destroy(&cq->lock);
}

static bool tern_cq_size_ok(const struct tern_dev *tdev, u32 cqe)
{
	return cqe >= 1 && cqe <= 1U << tdev->attr.max_cq_log_size;
}

static int tern_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			  struct ib_udata *udata)
{
	struct tern_dev *tdev = to_tdev(ibcq->device);
	struct tern_cq *cq = to_tcq(ibcq);

	/* Every CQE has a timestamp. */
	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION ||
	    (attr->flags && !(tdev->caps & TERN_CAP_CLOCK)))
		return -EOPNOTSUPP;
	if (!tern_cq_size_ok(tdev, attr->cqe) || tern_udata_no_input(udata))
		return -EINVAL;

	cq->core.eq = tern_eq_of_comp_vector(tern_engine_of_user(ibcq->device, udata),
					     attr->comp_vector);
	cq->core.completed = tern_ib_cq_completed;
	cq->core.failed = tern_ib_cq_failed;
	return udata ? tern_ucq_create(cq, attr->cqe, udata) :
		       tern_kverbs_cq_create(cq, attr->cqe);
}

#ifdef TERN_HAVE_CREATE_CQ_ATTRS
static int tern_create_cq_attrs(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
				struct uverbs_attr_bundle *attrs)
{
	return tern_create_cq(ibcq, attr, attrs ? &attrs->driver_udata : NULL);
}
#else
#define tern_create_cq_attrs tern_create_cq
#endif

static int tern_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct tern_cq *cq = to_tcq(ibcq);

	if (ibcq->uobject) {
		tern_ucq_destroy(cq);
		return 0;
	}
	tern_kverbs_cq_shut(cq);
	tern_cancel_cq_work(ibcq);
	tern_kverbs_cq_free(cq);
	return 0;
}

#ifdef TERN_HAVE_PRE_DESTROY_CQ
/* ib_free_cq() calls this before it cancels the work that polls, which events would queue again. */
static int tern_pre_destroy_cq(struct ib_cq *ibcq)
{
	tern_kverbs_cq_shut(to_tcq(ibcq));
	return 0;
}

/* ib_free_cq() calls this in place of tern_destroy_cq(). */
static void tern_post_destroy_cq(struct ib_cq *ibcq)
{
	tern_kverbs_cq_free(to_tcq(ibcq));
}
#endif

/* ---- resize and moderate ------------------------------------------------------------ */

static void tern_ucq_copy_record(const struct tern_buf *from, const struct tern_cq_layout *old,
				 const struct tern_buf *to, const struct tern_cq_layout *layout)
{
	const struct tern_hw_cq_record *record = tern_buf_at(from, old->record_offset);
	struct tern_hw_cq_record *to_record = tern_buf_at(to, layout->record_offset);

	to_record->ci = READ_ONCE(record->ci);
}

/*
 * Tells the process about the new buffer before the card moves there, since after the move nothing
 * may fail.
 */
static int tern_ucq_move(struct tern_cq *cq, const struct tern_ubuf *ubuf,
			 const struct tern_cq_layout *layout, struct ib_udata *udata)
{
	struct tern_resize_cq_resp resp = {
		.buf_key = ubuf->key,
		.buf_len = PAGE_ALIGN(layout->size),
		.record_offset = layout->record_offset,
		.log_size = layout->log_size,
	};
	struct tern_cq_layout old;
	int err;

	err = tern_udata_respond(udata, &resp, sizeof(resp));
	if (err)
		return err;
	tern_cq_plan(&old, ilog2(cq->ibcq.cqe));
	tern_ucq_copy_record(cq->ubuf.buf, &old, ubuf->buf, layout);
	return tern_cq_core_move(to_tdev(cq->ibcq.device), &cq->core, ubuf->buf, layout);
}

static int tern_ucq_resize(struct tern_cq *cq, int cqe, struct ib_udata *udata)
{
	struct tern_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct tern_ucontext, ibucontext);
	struct tern_cq_layout layout;
	struct tern_ubuf ubuf;
	int err;

	tern_cq_plan(&layout, order_base_2(cqe));
	err = tern_ubuf_create(uctx, &ubuf, layout.size);
	if (err)
		return err;
	err = tern_ucq_move(cq, &ubuf, &layout, udata);
	if (err) {
		tern_ubuf_destroy(&ubuf);
		return err;
	}

	tern_ubuf_destroy(&cq->ubuf);
	cq->ubuf = ubuf;
	cq->ibcq.cqe = 1 << layout.log_size;
	return 0;
}

/* For CQs of processes only: without udata the caller is in the kernel. */
static int tern_resize_user_cq(struct ib_cq *ibcq, tern_cqe_count cqe, struct ib_udata *udata)
{
	struct tern_cq *cq = to_tcq(ibcq);
	int err;

	if (!udata)
		return -EOPNOTSUPP;
	if (!tern_cq_size_ok(to_tdev(ibcq->device), cqe))
		return -EINVAL;
	err = tern_udata_no_input(udata);
	if (err)
		return err;

	mutex_lock(&cq->lock);
	err = tern_ucq_resize(cq, cqe, udata);
	mutex_unlock(&cq->lock);
	return err;
}

static int tern_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	return tern_cmd_moderate_cq(to_tdev(ibcq->device), to_tcq(ibcq)->core.cqn, count, period);
}

const struct ib_device_ops tern_cq_ops = {
	.create_cq = tern_create_cq_attrs,
	.destroy_cq = tern_destroy_cq,
#ifdef TERN_HAVE_PRE_DESTROY_CQ
	.pre_destroy_cq = tern_pre_destroy_cq,
	.post_destroy_cq = tern_post_destroy_cq,
#endif

	INIT_RDMA_OBJ_SIZE(ib_cq, tern_cq, ibcq),
};

const struct ib_device_ops tern_modify_cq_ops = {
	.resize_user_cq = tern_resize_user_cq,
	.modify_cq = tern_modify_cq,
};
