// SPDX-License-Identifier: GPL-2.0
/*
 * What `rdma resource show` says about objects besides what ib_core knows: with -dd the driver's
 * details, with -r what the card itself answers.
 */
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>
#include <uapi/rdma/rdma_netlink.h>

#include "compat.h"
#include "ib.h"

struct tern_detail {
	const char *name;
	u64 value;
	bool hex;
};

static int tern_put_details(struct sk_buff *msg, const struct tern_detail *details, u32 count)
{
	struct nlattr *table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	int err = 0;
	u32 i;

	if (!table)
		return -EMSGSIZE;
	for (i = 0; !err && i < count; i++)
		err = details[i].hex ?
			      rdma_nl_put_driver_u64_hex(msg, details[i].name, details[i].value) :
			      rdma_nl_put_driver_u64(msg, details[i].name, details[i].value);
	if (err) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}

static int tern_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct tern_dev *tdev = to_tdev(ibqp->device);
	struct tern_qp *qp = to_tqp(ibqp);
	struct tern_hw_faults faults = {};
	u32 qpn = qp->core.qpn;
	struct tern_qp_view view;
	bool found;

	if (!tern_qp_lock_living(qp))
		return 0;
	found = tern_qp_core_view(tdev, qpn, &view);
	if (found && tdev->caps & TERN_CAP_ODP)
		tern_cmd_query_fault(tdev, qpn, &faults);
	mutex_unlock(&qp->lock);
	if (!found)
		return 0;
	return tern_put_details(msg, (const struct tern_detail[]) {
		{ "engine", qpn >> TERN_ENGINE_SHIFT },
		{ "sq_size", view.sq_blocks },
		{ "sq_pi", view.sq_pi },
		{ "sq_event", view.sq_event },
		{ "rq_size", view.rq_wqes },
		{ "rq_pi", view.rq_pi },
		{ "req_page_fault", !!faults.requester.length },
		{ "resp_page_fault", !!faults.responder.length },
	}, 8);
}

/* struct tern_hw_qp_attr, as QUERY_QP answers. An error would end the list of all QPs. */
static int tern_fill_res_qp_entry_raw(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct tern_hw_qp_attr attr;

	if (tern_query_qp_hw(to_tqp(ibqp), &attr))
		return 0;
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(attr), &attr);
}

static int tern_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	u32 cqn = to_tcq(ibcq)->core.cqn;
	struct tern_cq_view view;

	if (!tern_cq_core_view(to_tdev(ibcq->device), cqn, &view))
		return 0;
	return tern_put_details(msg, (const struct tern_detail[]) {
		{ "cqn", cqn, true },
		{ "eqn", view.eqn, true },
		{ "cq_size", view.cqes },
		{ "ci", view.ci },
		{ "pi", view.pi },
	}, 5);
}

/*
 * "pages" of a region for fast registration is its capacity. It is zero for regions of device
 * memory, DMA regions of the kernel and on-demand regions.
 */
static int tern_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct tern_mr *mr = to_tmr(ibmr);

	return tern_put_details(msg, (const struct tern_detail[]) {
		{ "access", mr->access, true },
		{ "page_shift", mr->table.shift },
		{ "pages", mr->table.leaves },
		{ "levels", mr->table.levels },
		{ "on_demand", !!mr->odp },
		{ "odp_tables", mr->odp ? tern_odp_tables(mr->odp) : 0 },
	}, 6);
}

#ifdef TERN_HAVE_FILL_RES_SRQ
static int tern_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	const struct tern_srq *srq = to_tsrq(ibsrq);
	u32 limit;

	if (tern_cmd_query_srq(to_tdev(ibsrq->device), srq->core.srqn, &limit))
		return 0;
	return tern_put_details(msg, (const struct tern_detail[]) {
		{ "srq_size", 1U << READ_ONCE(srq->layout.log_size) },
		{ "max_sge", srq->max_sge },
		{ "limit", limit },
	}, 3);
}
#endif

const struct ib_device_ops tern_restrack_ops = {
	.fill_res_qp_entry = tern_fill_res_qp_entry,
	.fill_res_qp_entry_raw = tern_fill_res_qp_entry_raw,
	.fill_res_cq_entry = tern_fill_res_cq_entry,
	.fill_res_mr_entry = tern_fill_res_mr_entry,
#ifdef TERN_HAVE_FILL_RES_SRQ
	.fill_res_srq_entry = tern_fill_res_srq_entry,
#endif
};
