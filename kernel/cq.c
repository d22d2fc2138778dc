// SPDX-License-Identifier: GPL-2.0
/* Completion queues. Processes poll theirs without our help. */
#include <linux/log2.h>
#include <rdma/ib_verbs.h>
#include <rdma/tern-abi.h>
#include <rdma/uverbs_ioctl.h>

#include "ib.h"
#include "tern.h"

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
}

static int tern_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			  struct ib_udata *udata)
{
	struct tern_dev *tdev = to_tdev(ibcq->device);
	struct tern_cq *cq = to_tcq(ibcq);

	/* All CQEs have a timestamp. */
	if (attr->flags & ~(tdev->caps & TERN_CAP_CLOCK ? IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION : 0))
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > 1U << tdev->attr.max_cq_log_size ||
	    tern_udata_no_input(udata))
		return -EINVAL;

	cq->core.eq = tern_eq_of_comp_vector(tdev, attr->comp_vector);
	cq->core.completed = tern_ib_cq_completed;
	cq->core.failed = tern_ib_cq_failed;
	return udata ? tern_ucq_create(cq, attr->cqe, udata) :
		       tern_kernel_cq_create(cq, attr->cqe);
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

	if (ibcq->uobject)
		tern_ucq_destroy(cq);
	else
		tern_kernel_cq_destroy(cq);
	return 0;
}

const struct ib_device_ops tern_cq_ops = {
	.create_cq = tern_create_cq_attrs,
	.destroy_cq = tern_destroy_cq,

	INIT_RDMA_OBJ_SIZE(ib_cq, tern_cq, ibcq),
};
