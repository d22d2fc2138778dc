// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs_cq.h"

#include <cerrno>
#include <mutex>
#include <utility>

#include "datapath/work_completion.h"
#include "rdma/tern-abi.h"
#include "verbs.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::private_abi;

namespace {

using CreateCqResponse = Response<CreateCqResp, tern_create_cq_resp>;
static_assert(CreateCqResponse::kPacked);
using ResizeCqResponse = Response<ResizeCqResp, tern_resize_cq_resp>;
static_assert(ResizeCqResponse::kPacked);

/* Maps the buffer of 1 << log_size CQEs and finds its parts. Returns 0 or an errno. */
template <class Resp>
int map(int fd, const Resp &resp, Mapping &mapping, CompletionQueue::Buffer &parts)
{
	if (const int err = mapping.map(fd, resp.buf_key, resp.buf_len, PROT_READ | PROT_WRITE))
		return err;

	const uint64_t ring_size = uint64_t{sizeof(hw::tern_hw_cqe)} << (resp.log_size & 31);
	auto *record = mapping.at<hw::tern_hw_cq_record>(resp.record_offset);
	if (resp.record_offset < ring_size || !record)
		return EPROTO;
	parts = {
	        .ring = mapping.slice(0, ring_size),
	        .record = CqRecord(record),
	};
	return 0;
}

/* Maps the buffer and attaches the queue to it. Returns 0 or an errno. */
int map_queue(Cq &cq, Context &context, const tern_create_cq_resp &resp)
{
	CompletionQueue::Buffer parts;

	if (const int err = map(context.verbs.context.cmd_fd, resp, cq.mapping, parts))
		return err;
	return cq.queue.init({
	        .buffer = parts,
	        .doorbells = context.doorbell_page(),
	        .cqn = resp.cqn,
	        .device = context.device_name(),
	        .qps = &context.state.qps,
	        .srqs = &context.state.srqs,
	        .plain_srqs = &context.state.plain_srqs,
	        .wqs = &context.state.wqs,
	});
}

/* Creates @cq in the kernel and maps its queue. Returns 0 or an errno. */
int create(Cq &cq, Context &context, int cqe, ibv_comp_channel *channel, int comp_vector)
{
	CreateCqCmd cmd = {};
	CreateCqResponse resp = {};

	if (const int err = ibv_cmd_create_cq(&context.verbs.context, cqe, channel, comp_vector,
	                                      &cq.verbs.cq, &cmd, sizeof(cmd), &resp, sizeof(resp)))
		return err;
	const int err = map_queue(cq, context, resp.tern);
	if (err)
		ibv_cmd_destroy_cq(&cq.verbs.cq);
	return err;
}

/* Checks @attr and applies what the driver does not see. Returns 0 or an errno. */
int configure(Cq &cq, const ibv_cq_init_attr_ex &attr, const Context &context)
{
	constexpr uint32_t kKnownFlags =
	        IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	constexpr uint32_t kKnownMask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	const uint32_t flags = attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr.flags : 0;

	if (attr.comp_mask & ~kKnownMask || flags & ~kKnownFlags)
		return EINVAL;
	/* The card always stops at a full CQ. */
	if (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
		return EOPNOTSUPP;
	if (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		cq.queue.lock().set_single_threaded();
	if (attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		if (!attr.parent_domain || !Pd::of(attr.parent_domain)->is_parent_domain())
			return EINVAL;
		cq.domain = DomainUse(attr.parent_domain);
	}
	return set_poll_ops(cq, attr.wc_flags, context);
}

/* Returns what it was before. */
bool set_moderated(CompletionQueue &queue, bool moderated)
{
	const std::lock_guard guard(queue.lock());

	return queue.set_moderated(moderated);
}

} // namespace

ibv_cq *create_cq(ibv_context *ibv, int cqe, ibv_comp_channel *channel, int comp_vector)
{
	return make_object<ibv_cq, Cq>(
	        [&](Cq &cq) { return create(cq, *Context::of(ibv), cqe, channel, comp_vector); });
}

/* Each CQE has all fields, so the driver creates the same CQ for any wc_flags. */
ibv_cq_ex *create_cq_ex(ibv_context *ibv, ibv_cq_init_attr_ex *attr)
{
	return make_object<ibv_cq_ex, Cq>([&](Cq &cq) {
		Context &context = *Context::of(ibv);

		if (const int err = configure(cq, *attr, context))
			return err;
		return create(cq, context, static_cast<int>(attr->cqe), attr->channel,
		              static_cast<int>(attr->comp_vector));
	});
}

int destroy_cq(ibv_cq *cq)
{
	return free_object(ibv_cmd_destroy_cq(cq), Cq::of(cq));
}

/*
 * The lock keeps pollers out while the card copies the CQEs. The driver cannot undo the move: if
 * the new ring cannot be mapped, the CQ is closed, so that a program does not wait for ever at the
 * old one.
 */
int resize_cq(ibv_cq *ibv, int cqe)
{
	Cq &cq = *Cq::of(ibv);
	ResizeCqCmd cmd = {};
	ResizeCqResponse resp = {};
	Mapping mapping;
	CompletionQueue::Buffer parts;

	if (!Context::of(ibv->context)->has(TERN_CAP_MODIFY_CQ))
		return EOPNOTSUPP;
	const std::lock_guard guard(cq.queue.lock());
	if (cq.queue.closed())
		return EIO;
	cq.queue.release();
	if (const int err = ibv_cmd_resize_cq(ibv, cqe, &cmd, sizeof(cmd), &resp, sizeof(resp)))
		return err;
	int err = map(ibv->context->cmd_fd, resp.tern, mapping, parts);
	if (!err)
		err = cq.queue.move(parts);
	if (err)
		cq.queue.close();
	else
		cq.mapping = std::move(mapping);
	return err;
}

/*
 * Another thread may arm the CQ meanwhile. arm() has to know for as long as the card may hold an
 * event back: before the command if that begins, after it if that ends.
 */
int modify_cq(ibv_cq *cq, ibv_modify_cq_attr *attr)
{
	ModifyCqCmd cmd = {};
	CompletionQueue &queue = Cq::of(cq)->queue;
	const bool changes = attr->attr_mask & IBV_CQ_ATTR_MODERATE;
	const bool begins = changes && attr->moderate.cq_period;

	if (!Context::of(cq->context)->has(TERN_CAP_MODIFY_CQ))
		return EOPNOTSUPP;
	const bool before = begins && set_moderated(queue, true);
	const int err = ibv_cmd_modify_cq(cq, attr, &cmd, sizeof(cmd));
	if (err && begins)
		set_moderated(queue, before);
	else if (!err && changes && !begins)
		set_moderated(queue, false);
	return err;
}

int poll_cq(ibv_cq *cq, int num_entries, ibv_wc *wc)
{
	return poll_list(Cq::of(cq)->queue, num_entries, wc);
}

int req_notify_cq(ibv_cq *cq, int solicited_only)
{
	CompletionQueue &queue = Cq::of(cq)->queue;
	const std::lock_guard guard(queue.lock());

	if (queue.closed())
		return EIO;
	queue.arm(solicited_only);
	return 0;
}

} // namespace tern::provider
