// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs_srq.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

#include "context.h"
#include "datapath/work_request.h"
#include "rdma/tern-abi.h"
#include "verbs.h"
#include "verbs_cq.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::private_abi;

namespace {

using CreateSrqResponse = Response<CreateSrqResp, tern_create_srq_resp>;
static_assert(CreateSrqResponse::kPacked);

/* The command for an SRQ with tags; other SRQs have no driver part. */
struct CreateTmSrqCmd {
	CreateSrqCmd srq;
	tern_create_srq_cmd tern;
};
static_assert(offsetof(CreateTmSrqCmd, tern) == sizeof(CreateSrqCmd));

/* The capabilities that an SRQ of @type needs, nullopt if the type is unknown. */
std::optional<uint32_t> caps_needed(ibv_srq_type type)
{
	switch (type) {
	case IBV_SRQT_BASIC:
		return TERN_CAP_SRQ;
	case IBV_SRQT_XRC:
		return TERN_CAP_SRQ | TERN_CAP_XRC;
	case IBV_SRQT_TM:
		return TERN_CAP_SRQ | TERN_CAP_TAG_MATCHING;
	default:
		return std::nullopt;
	}
}

/* Maps the buffer and finds its parts. Returns 0 or an errno. */
int map(int fd, const tern_srq_buf &buf, Mapping &mapping, SharedRecvQueue::Buffer &parts)
{
	if (const int err = mapping.map(fd, buf.buf_key, buf.buf_len, PROT_READ | PROT_WRITE))
		return err;

	const uint32_t entries = 1u << (buf.log_size & 31);
	auto *record = mapping.at<hw::tern_hw_srq_record>(buf.record_offset);
	if (!record)
		return EPROTO;
	parts = {
	        .slots = mapping.slice(0, uint64_t{entries} << (buf.log_stride & 31)),
	        .ring = mapping.slice(buf.ring_offset, uint64_t{entries} * sizeof(hw::__le32)),
	        .record = SrqRecord(record),
	        .entries = entries,
	        .log_stride = buf.log_stride,
	};
	return 0;
}

/* Maps the buffer and attaches the queue to it. Returns 0 or an errno. */
int map_queue(Srq &srq, const tern_srq_buf &buf, uint32_t max_sge)
{
	SharedRecvQueue::Buffer parts;

	if (const int err = map(srq.verbs.srq.context->cmd_fd, buf, srq.mapping, parts))
		return err;
	srq.srqn = buf.srqn;
	return srq.queue.init(parts, max_sge, srq.domain.allocator());
}

/* Attaches the tag queue to its part of the buffer. Returns 0 or an errno. */
int init_tags(Srq &srq, Context &context, const tern_srq_buf &buf)
{
	return srq.tags.init({
	        .ring = srq.mapping.slice(buf.tag_ops_offset, uint64_t{sizeof(hw::tern_hw_tag_op)}
	                                                              << (buf.log_tag_ops & 31)),
	        .entries = 1u << (buf.log_tags & 31),
	        .srqn = buf.srqn,
	        .doorbells = context.doorbell_page(),
	        .allocator = srq.domain.allocator(),
	});
}

/*
 * Inserts the SRQ into a table. If it has a CQ of its own, first removes CQEs of an earlier SRQ
 * with this number. Returns 0 or an errno.
 */
int add_to_table(Srq &srq, Context &context)
{
	if (!srq.has_cq()) {
		if (!context.state.plain_srqs.reserve(srq.srqn))
			return ENOMEM;
		context.state.plain_srqs.insert(srq.srqn, {&srq.queue, nullptr});
		return 0;
	}
	CompletionQueue &cq = Cq::of(srq.verbs.cq)->queue;

	if (!context.state.srqs.reserve(srq.srqn))
		return ENOMEM;
	const std::lock_guard guard(cq.lock());
	cq.drop_srq(srq.srqn);
	context.state.srqs.insert(srq.srqn, {&srq.queue, &cq},
	                          {srq.has_tags() ? &srq.tags : nullptr, &cq});
	return 0;
}

/* Removes the SRQ from its table, unless a newer SRQ has its number. */
void remove_from_table(Srq &srq, Context &context)
{
	if (!srq.has_cq()) {
		context.state.plain_srqs.remove(srq.srqn, &srq.queue);
		return;
	}
	CompletionQueue &cq = Cq::of(srq.verbs.cq)->queue;
	const std::lock_guard guard(cq.lock());

	if (context.state.srqs.remove(srq.srqn, &srq.queue))
		cq.drop_srq(srq.srqn);
}

/*
 * Switches to the buffer that the driver has moved the SRQ to, with @slots for @entries. The driver
 * cannot undo the move, so after an error the SRQ takes no more requests.
 */
int move_queue(Srq &srq, const tern_srq_buf &buf, uint32_t entries,
               OwnedArray<SharedRecvQueue::Slot> &slots)
{
	Mapping mapping;
	SharedRecvQueue::Buffer parts;
	int err = map(srq.verbs.srq.context->cmd_fd, buf, mapping, parts);

	if (!err)
		err = parts.entries == entries ? srq.queue.move(parts, slots) : EPROTO;
	if (err)
		srq.queue.close();
	else
		srq.mapping = std::move(mapping);
	return err;
}

/* Maps the queues of a new SRQ and inserts it into the table. Returns 0 or an errno. */
int set_up(Srq &srq, Context &context, const tern_srq_buf &buf, uint32_t max_sge)
{
	int err = map_queue(srq, buf, max_sge);

	if (!err && srq.has_tags())
		err = init_tags(srq, context, buf);
	if (!err)
		err = add_to_table(srq, context);
	return err;
}

/* Creates @srq in the kernel and sets up its queues. Returns 0 or an errno. */
int create(Srq &srq, Context &context, ibv_srq_type type, ibv_srq_init_attr_ex &attr)
{
	CreateTmSrqCmd cmd = {};
	CreateSrqResponse resp = {};
	const bool tags = type == IBV_SRQT_TM;

	if (tags)
		cmd.tern.max_ops = attr.tm_cap.max_ops;
	if (const int err = ibv_cmd_create_srq_ex(&context.verbs.context, &srq.verbs, &attr,
	                                          &cmd.srq, tags ? sizeof(cmd) : sizeof(cmd.srq),
	                                          &resp, sizeof(resp)))
		return err;
	srq.verbs.srq_type = type;
	srq.verbs.srq.srq_context = attr.srq_context;
	srq.verbs.srq.pd = attr.pd;
	srq.domain = DomainUse(attr.pd);
	const int err = set_up(srq, context, resp.tern.buf, attr.attr.max_sge);
	if (err)
		ibv_cmd_destroy_srq(&srq.verbs.srq);
	return err;
}

/* No card is used with larger SRQs (tern_limit_attr() of the driver). */
constexpr uint32_t kMostEntries = 1u << 20;

/* The number of slots of @srq now. */
uint32_t entries_of(Srq &srq)
{
	const std::lock_guard guard(srq.queue.lock());
	return srq.queue.entries();
}

/*
 * Resizes @srq. As the resize cannot be undone, what can fail comes first: the check of a limit
 * that @attr has besides, and the allocation of an array for the new size. The application's
 * allocators may post, so they are called without the lock, also to free the array that is not
 * needed afterwards. Returns 0 or an errno.
 */
int resize(Srq &srq, ibv_srq_attr *attr, int attr_mask)
{
	tern_srq_buf buf = {};
	ModifySrqCmd<tern_modify_srq_cmd> cmd = {};
	OwnedArray<SharedRecvQueue::Slot> slots; /* before the guard: freed after unlocking */
	/* As the driver does it: rounds up, and does not shrink. */
	const uint32_t old_entries = entries_of(srq);
	const uint64_t entries =
	        std::max<uint64_t>(old_entries, std::bit_ceil(uint64_t{attr->max_wr}));

	if (entries > kMostEntries || (attr_mask & IBV_SRQ_LIMIT && attr->srq_limit > entries))
		return EINVAL;
	if (entries > old_entries) {
		slots = srq.queue.make_slots(static_cast<uint32_t>(entries));
		if (!slots)
			return ENOMEM;
	}
	cmd.tern.buf_addr = reinterpret_cast<uintptr_t>(&buf);
	/* The driver copies the posted WQEs: keep posts out until the switch to the new buffer. */
	const std::lock_guard guard(srq.queue.lock());
	if (const int err =
	            ibv_cmd_modify_srq(&srq.verbs.srq, attr, IBV_SRQ_MAX_WR, &cmd, sizeof(cmd)))
		return err;
	return buf.buf_len ? move_queue(srq, buf, static_cast<uint32_t>(entries), slots) : 0;
}

} // namespace

ibv_srq *create_srq_ex(ibv_context *ibv, ibv_srq_init_attr_ex *attr)
{
	return make_object<ibv_srq, Srq>([&](Srq &srq) {
		Context &context = *Context::of(ibv);
		const ibv_srq_type type =
		        attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
		const std::optional<uint32_t> needed = caps_needed(type);

		if (!needed)
			return EINVAL;
		return context.has(*needed) ? create(srq, context, type, *attr) : EOPNOTSUPP;
	});
}

ibv_srq *create_srq(ibv_pd *pd, ibv_srq_init_attr *attr)
{
	ibv_srq_init_attr_ex ex = {};

	ex.srq_context = attr->srq_context;
	ex.attr = attr->attr;
	ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	ex.srq_type = IBV_SRQT_BASIC;
	ex.pd = pd;
	ibv_srq *srq = create_srq_ex(pd->context, &ex);
	if (srq)
		attr->attr = ex.attr;
	return srq;
}

int modify_srq(ibv_srq *ibv, ibv_srq_attr *attr, int attr_mask)
{
	if (attr_mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	/* Two commands: if one command failed, it would be unknown whether it moved the SRQ. */
	if (attr_mask & IBV_SRQ_MAX_WR)
		if (const int err = resize(*Srq::of(ibv), attr, attr_mask))
			return err;
	if (attr_mask == IBV_SRQ_MAX_WR)
		return 0;
	Command<ModifySrqCore> cmd = {};
	return ibv_cmd_modify_srq(ibv, attr, attr_mask & ~IBV_SRQ_MAX_WR, &cmd, sizeof(cmd));
}

int query_srq(ibv_srq *srq, ibv_srq_attr *attr)
{
	QuerySrqCmd cmd = {};

	return ibv_cmd_query_srq(srq, attr, &cmd, sizeof(cmd));
}

int get_srq_num(ibv_srq *ibv, uint32_t *number)
{
	const Srq &srq = *Srq::of(ibv);

	if (!srq.is_xrc())
		return EOPNOTSUPP;
	*number = srq.srqn;
	return 0;
}

int destroy_srq(ibv_srq *ibv)
{
	Srq *srq = Srq::of(ibv);

	if (const int err = ibv_cmd_destroy_srq(ibv))
		return err;
	remove_from_table(*srq, *Context::of(ibv->context));
	Owned<Srq>{srq};
	return 0;
}

int post_srq_ops(ibv_srq *ibv, ibv_ops_wr *wr, ibv_ops_wr **bad_wr)
{
	Srq &srq = *Srq::of(ibv);

	if (!srq.has_tags()) [[unlikely]]
		return refuse_list(wr, bad_wr);
	return post_ops_list(srq.tags, wr, bad_wr);
}

int post_srq_recv(ibv_srq *srq, ibv_recv_wr *wr, ibv_recv_wr **bad_wr)
{
	return post_recv_list(Srq::of(srq)->queue, wr, bad_wr);
}

} // namespace tern::provider
