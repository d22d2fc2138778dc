// SPDX-License-Identifier: GPL-2.0
/* Receive work queues of processes. RSS QPs (rss.c) spread frames over them. */
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/tern-abi.h>
#include <rdma/uverbs_ioctl.h>

#include "ib.h"

static void tern_ib_wq_event(struct tern_wq_core *core, u8 type)
{
	struct ib_wq *ibwq = &container_of(core, struct tern_wq, core)->ibwq;
	struct ib_event event = {
		.device = ibwq->device,
		.element.wq = ibwq,
		.event = IB_EVENT_WQ_FATAL,
	};

	/* ib_core sets the object, which its handler uses, after tern_create_wq(). */
	if (type == TERN_EVENT_WQ_FATAL && ibwq->event_handler && READ_ONCE(ibwq->uobject))
		ibwq->event_handler(&event, ibwq->wq_context);
}

static int tern_wq_respond(struct ib_udata *udata, const struct tern_wq *wq,
			   const struct tern_wq_layout *layout)
{
	struct tern_create_wq_resp resp = {
		.buf_key = wq->ubuf.key,
		.buf_len = PAGE_ALIGN(layout->size),
		.record_offset = layout->record_offset,
		.wqn = wq->core.wqn,
		.log_size = layout->log_size,
		.log_stride = layout->log_stride,
	};

	return tern_udata_respond(udata, &resp, sizeof(resp));
}

static int tern_wq_create_queue(struct tern_wq *wq, const struct tern_wq_layout *layout,
				struct tern_hw_create_wq *hw, struct ib_udata *udata)
{
	struct tern_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct tern_ucontext, ibucontext);
	struct tern_dev *tdev = to_tdev(uctx->ibucontext.device);
	int err;

	err = tern_ubuf_create(uctx, &wq->ubuf, layout->size);
	if (err)
		return err;
	err = tern_wq_core_create(tdev, &wq->core, wq->ubuf.buf, layout, hw);
	if (err)
		goto err_ubuf;
	err = tern_wq_respond(udata, wq, layout);
	if (err)
		goto err_core;
	return 0;

err_core:
	tern_wq_core_destroy(tdev, &wq->core);
err_ubuf:
	tern_ubuf_destroy(&wq->ubuf);
	return err;
}

static int tern_wq_check_init(const struct tern_dev *tdev, const struct ib_wq_init_attr *init,
			      struct ib_udata *udata)
{
	const struct tern_device_attr *attr = &tdev->attr;

	if (!udata || init->wq_type != IB_WQT_RQ || init->create_flags)
		return -EOPNOTSUPP;
	/* UVERBS_METHOD_WQ_CREATE without a CQ: uverbs passes on the error pointer. */
	if (IS_ERR_OR_NULL(init->cq))
		return -EINVAL;
	if (!init->max_wr || init->max_wr > 1U << attr->max_rq_log_size ||
	    init->max_sge > attr->max_recv_sge)
		return -EINVAL;
	return tern_udata_no_input(udata);
}

/* Plans the queue, and raises @init to what it can hold. */
static void tern_wq_plan_init(const struct tern_dev *tdev, struct ib_wq_init_attr *init,
			      struct tern_wq_layout *layout)
{
	tern_wq_plan(layout, order_base_2(init->max_wr),
		     order_base_2(max(init->max_sge, 1U) * TERN_SEG_SIZE));
	init->max_wr = 1U << layout->log_size;
	init->max_sge = min_t(u32, (1U << layout->log_stride) / TERN_SEG_SIZE,
			      tdev->attr.max_recv_sge);
}

static struct ib_wq *tern_create_wq(struct ib_pd *ibpd, struct ib_wq_init_attr *init,
				    struct ib_udata *udata)
{
	struct tern_dev *tdev = to_tdev(ibpd->device);
	struct tern_hw_create_wq hw;
	struct tern_wq_layout layout;
	struct tern_wq *wq;
	int err;

	err = tern_wq_check_init(tdev, init, udata);
	if (err)
		return ERR_PTR(err);

	wq = kzalloc(sizeof(*wq), GFP_KERNEL_ACCOUNT);
	if (!wq)
		return ERR_PTR(-ENOMEM);
	mutex_init(&wq->lock);
	/* An event may come before ib_core sets the device. It does not set the handler. */
	wq->ibwq.device = ibpd->device;
	wq->ibwq.event_handler = init->event_handler;
	wq->ibwq.wq_context = init->wq_context;
	wq->core.event = tern_ib_wq_event;
	tern_wq_plan_init(tdev, init, &layout);
	hw = (struct tern_hw_create_wq) {
		.pdn = cpu_to_le32(to_tpd(ibpd)->pdn),
		.cqn = cpu_to_le32(to_tcq(init->cq)->core.cqn),
	};
	err = tern_wq_create_queue(wq, &layout, &hw, udata);
	if (err) {
		mutex_destroy(&wq->lock);
		kfree(wq);
		return ERR_PTR(err);
	}
	wq->ibwq.wq_num = wq->core.wqn;
	return &wq->ibwq;
}

static int tern_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata)
{
	struct tern_wq *wq = to_twq(ibwq);

	tern_wq_core_destroy(to_tdev(ibwq->device), &wq->core);
	tern_ubuf_destroy(&wq->ubuf);
	mutex_destroy(&wq->lock);
	kfree(wq);
	return 0;
}

/* The card may have moved a ready WQ to ERR by itself. It checks every transition again. */
static bool tern_wq_may_be_in(const struct tern_wq *wq, u32 state)
{
	return state == wq->ibwq.state || (state == IB_WQS_ERR && wq->ibwq.state == IB_WQS_RDY);
}

static int tern_modify_wq_locked(struct tern_wq *wq, const struct ib_wq_attr *attr, u32 mask)
{
	int err;

	if (mask & IB_WQ_CUR_STATE && !tern_wq_may_be_in(wq, attr->curr_wq_state))
		return -EINVAL;
	if (!(mask & IB_WQ_STATE))
		return 0;
	err = tern_cmd_modify_wq(to_tdev(wq->ibwq.device), wq->core.wqn, attr->wq_state);
	if (!err)
		wq->ibwq.state = attr->wq_state;
	return err;
}

static int tern_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask,
			  struct ib_udata *udata)
{
	struct tern_wq *wq = to_twq(ibwq);
	int err;

	static_assert((int)IB_WQS_RESET == (int)TERN_WQS_RESET &&
		      (int)IB_WQS_RDY == (int)TERN_WQS_RDY &&
		      (int)IB_WQS_ERR == (int)TERN_WQS_ERR);

	if (mask & ~(IB_WQ_STATE | IB_WQ_CUR_STATE))
		return -EOPNOTSUPP;
	if (mask & IB_WQ_STATE && attr->wq_state > IB_WQS_ERR)
		return -EINVAL;
	err = tern_udata_no_input(udata);
	if (err)
		return err;

	mutex_lock(&wq->lock);
	err = tern_modify_wq_locked(wq, attr, mask);
	mutex_unlock(&wq->lock);
	return err;
}

const struct ib_device_ops tern_wq_ops = {
	.create_wq = tern_create_wq,
	.modify_wq = tern_modify_wq,
	.destroy_wq = tern_destroy_wq,
};
