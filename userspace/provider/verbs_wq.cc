// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receive WQs, and the indirection tables by which RSS QPs distribute frames to them. */
#include "verbs_wq.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <span>

#include "context.h"
#include "datapath/work_request.h"
#include "rdma/tern-abi.h"
#include "verbs.h"
#include "verbs_cq.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::private_abi;

namespace {

using CreateWqResponse = Response<ib_uverbs_ex_create_wq_resp, tern_create_wq_resp>;
static_assert(CreateWqResponse::kPacked);

CompletionQueue &cq_of(const Wq &wq)
{
	return Cq::of(wq.verbs.cq)->queue;
}

/* Maps the buffer and attaches the queue to it. Returns 0 or an errno. */
int map_queue(Wq &wq, const tern_create_wq_resp &resp, uint32_t max_sge)
{
	if (const int err = wq.mapping.map(wq.verbs.context->cmd_fd, resp.buf_key, resp.buf_len,
	                                   PROT_READ | PROT_WRITE))
		return err;

	auto *record = wq.mapping.at<hw::tern_hw_qp_record>(resp.record_offset);
	if (!record)
		return EPROTO;
	wq.record = QpRecord(record);
	return wq.queue.init({
	        .ring = wq.mapping.slice(0,
	                                 uint64_t{1} << ((resp.log_size + resp.log_stride) & 63)),
	        .record = wq.record,
	        .entries = 1u << (resp.log_size & 31),
	        .log_stride = resp.log_stride,
	        .max_sge = max_sge,
	        .allocator = wq.domain.allocator(),
	});
}

/* Inserts the WQ into the table, after removing the CQEs of an earlier WQ with this number. */
int add_to_table(Wq &wq, Context &context)
{
	const uint32_t wqn = wq.verbs.wq_num;
	CompletionQueue &cq = cq_of(wq);

	if (!context.state.wqs.reserve(wqn))
		return ENOMEM;
	const std::lock_guard guard(cq.lock());
	cq.drop_wq(wqn);
	context.state.wqs.insert(wqn, {&wq.queue, &cq});
	return 0;
}

void remove_from_table(Wq &wq, Context &context)
{
	const uint32_t wqn = wq.verbs.wq_num;
	CompletionQueue &cq = cq_of(wq);
	const std::lock_guard guard(cq.lock());

	if (context.state.wqs.remove(wqn, &wq.queue))
		cq.drop_wq(wqn);
}

void drop_cqes(const Wq &wq)
{
	CompletionQueue &cq = cq_of(wq);
	const std::lock_guard guard(cq.lock());

	cq.drop_wq(wq.verbs.wq_num);
}

/*
 * Empties a WQ after the transition to RESET, where the card does not read its record. Releases the
 * CQ before it locks the queue, for the reason at reset_queues() of a QP.
 */
void reset_queue(Wq &wq)
{
	drop_cqes(wq);

	const std::lock_guard guard(wq.queue.lock());

	wq.queue.reset();
	wq.record.clear();
}

/* Closes a WQ before the transition to RESET, and returns whether it was open. */
bool close_queue(Wq &wq)
{
	const std::lock_guard guard(wq.queue.lock());

	return wq.queue.close();
}

int post_wq_recv(ibv_wq *ibv, ibv_recv_wr *wr, ibv_recv_wr **bad_wr)
{
	return post_recv_list(Wq::of(ibv)->queue, wr, bad_wr);
}

int check(const ibv_wq_init_attr &attr, const Context &context)
{
	if (!context.has(TERN_CAP_RSS))
		return EOPNOTSUPP;
	if (attr.wq_type != IBV_WQT_RQ || !attr.pd || !attr.cq ||
	    attr.comp_mask & ~uint32_t{IBV_WQ_INIT_ATTR_FLAGS})
		return EINVAL;
	/* The card has none of these flags: VLAN stripping, scatter FCS, delayed drop, padding. */
	if (attr.comp_mask & IBV_WQ_INIT_ATTR_FLAGS && attr.create_flags)
		return EOPNOTSUPP;
	return 0;
}

int check(const ibv_rwq_ind_table_init_attr &attr, const Context &context)
{
	if (!context.has(TERN_CAP_RSS))
		return EOPNOTSUPP;
	if (attr.log_ind_tbl_size > hw::TERN_MAX_LOG_WQ_TABLE || !attr.ind_tbl)
		return EINVAL;
	const std::span<ibv_wq *> wqs(attr.ind_tbl, size_t{1} << attr.log_ind_tbl_size);
	return std::ranges::find(wqs, nullptr) != wqs.end() ? EINVAL : 0;
}

/* Creates @wq in the kernel and sets up its queue. Returns 0 or an errno. */
int create(Wq &wq, Context &context, ibv_wq_init_attr &attr)
{
	CreateWqCmd cmd = {};
	CreateWqResponse resp = {};

	wq.domain = DomainUse(attr.pd);
	if (wq.domain.is_single_threaded())
		wq.queue.lock().set_single_threaded();
	if (const int err = ibv_cmd_create_wq(&context.verbs.context, &attr, &wq.verbs, &cmd,
	                                      sizeof(cmd), &resp, sizeof(resp)))
		return err;
	wq.verbs.state = IBV_WQS_RESET;
	wq.verbs.post_recv = post_wq_recv;

	int err = map_queue(wq, resp.tern, attr.max_sge);
	if (!err)
		err = add_to_table(wq, context);
	if (err)
		ibv_cmd_destroy_wq(&wq.verbs);
	return err;
}

int modify(Wq &wq, ibv_wq_attr *attr)
{
	ModifyWqCmd cmd = {};

	return ibv_cmd_modify_wq(&wq.verbs, attr, &cmd, sizeof(cmd));
}

int modify_to_reset(Wq &wq, ibv_wq_attr *attr)
{
	const bool was_open = close_queue(wq);
	const int err = modify(wq, attr);

	if (!err)
		reset_queue(wq);
	else if (was_open)
		wq.queue.open();
	return err;
}

} // namespace

ibv_wq *create_wq(ibv_context *ibv, ibv_wq_init_attr *attr)
{
	return make_object<ibv_wq, Wq>([&](Wq &wq) {
		Context &context = *Context::of(ibv);
		const int err = check(*attr, context);

		return err ? err : create(wq, context, *attr);
	});
}

int modify_wq(ibv_wq *ibv, ibv_wq_attr *attr)
{
	Wq &wq = *Wq::of(ibv);

	if (!(attr->attr_mask & IBV_WQ_ATTR_STATE))
		return modify(wq, attr);
	if (attr->wq_state == IBV_WQS_RESET)
		return modify_to_reset(wq, attr);
	const int err = modify(wq, attr);
	if (!err)
		wq.queue.open();
	return err;
}

int destroy_wq(ibv_wq *ibv)
{
	Wq *wq = Wq::of(ibv);

	if (const int err = ibv_cmd_destroy_wq(ibv))
		return err;
	remove_from_table(*wq, *Context::of(ibv->context));
	Owned<Wq>{wq};
	return 0;
}

ibv_rwq_ind_table *create_rwq_ind_table(ibv_context *ibv, ibv_rwq_ind_table_init_attr *attr)
{
	return make_object<ibv_rwq_ind_table>([&](ibv_rwq_ind_table &table) {
		ib_uverbs_ex_create_rwq_ind_table_resp resp = {};

		if (const int err = check(*attr, *Context::of(ibv)))
			return err;
		return ibv_cmd_create_rwq_ind_table(ibv, attr, &table, &resp, sizeof(resp));
	});
}

int destroy_rwq_ind_table(ibv_rwq_ind_table *table)
{
	return free_object(ibv_cmd_destroy_rwq_ind_table(table), table);
}

} // namespace tern::provider
