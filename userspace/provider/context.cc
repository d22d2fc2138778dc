// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "context.h"

#include <cerrno>

#include "rdma/tern-abi.h"
#include "verbs.h"

namespace tern::provider {

using namespace tern::abi34;

namespace {

using GetContextResponse = Response<GetContextResp, tern_alloc_ucontext_resp>;
static_assert(GetContextResponse::kPacked);

constexpr uint32_t kNoDriverId = 0; /* RDMA_DRIVER_UNKNOWN: the kernel has no number for Tern */

constexpr ContextOps kContextOps = [] {
	ContextOps ops = {};
	ops.alloc_mw = alloc_mw;
	ops.alloc_pd = alloc_pd;
	ops.attach_mcast = ibv_cmd_attach_mcast;
	ops.bind_mw = bind_mw;
	ops.close_xrcd = close_xrcd;
	ops.create_ah = create_ah;
	ops.create_cq = create_cq;
	ops.create_cq_ex = create_cq_ex;
	ops.create_flow = create_flow;
	ops.create_qp = create_qp;
	ops.create_qp_ex = create_qp_ex;
	ops.create_srq = create_srq;
	ops.create_srq_ex = create_srq_ex;
	ops.dealloc_mw = dealloc_mw;
	ops.dealloc_pd = dealloc_pd;
	ops.dereg_mr = dereg_mr;
	ops.destroy_ah = destroy_ah;
	ops.destroy_cq = destroy_cq;
	ops.destroy_flow = destroy_flow;
	ops.destroy_qp = destroy_qp;
	ops.destroy_srq = destroy_srq;
	ops.detach_mcast = ibv_cmd_detach_mcast;
	ops.free_context = free_context;
	ops.get_srq_num = get_srq_num;
	ops.modify_qp = modify_qp;
	ops.modify_srq = modify_srq;
	ops.open_qp = open_qp;
	ops.open_xrcd = open_xrcd;
	ops.poll_cq = poll_cq;
	ops.post_recv = post_recv;
	ops.post_send = post_send;
	ops.post_srq_recv = post_srq_recv;
	ops.query_device_ex = query_device_ex;
	ops.query_port = query_port;
	ops.query_qp = query_qp;
	ops.query_rt_values = query_rt_values;
	ops.query_srq = query_srq;
	ops.reg_mr = reg_mr;
	ops.req_notify_cq = req_notify_cq;
	return ops;
}();

/* Gets our context from the kernel and maps the doorbell page. Returns 0 or an errno. */
int set_up(Context &context, int cmd_fd)
{
	GetContextCmd cmd = {};
	GetContextResponse resp = {};

	if (const int err =
	            ibv_cmd_get_context(&context.verbs, &cmd, sizeof(cmd), &resp, sizeof(resp)))
		return err;
	if (resp.tern.db_len < hw::TERN_DB_PAGE_SIZE)
		return EPROTO;
	context.state.caps = resp.tern.caps;
	return context.state.doorbells.map(cmd_fd, resp.tern.db_key, resp.tern.db_len,
	                                   PROT_READ | PROT_WRITE);
}

} // namespace

verbs_context *alloc_context(ibv_device *device, int cmd_fd, void *)
{
	auto *context = static_cast<Context *>(_verbs_init_and_alloc_context(
	        device, cmd_fd, sizeof(Context), nullptr, kNoDriverId));
	if (!context)
		return nullptr;
	new (&context->state) ContextState();

	if (const int err = set_up(*context, cmd_fd)) {
		context->state.~ContextState();
		verbs_uninit_context(&context->verbs);
		std::free(context);
		errno = err;
		return nullptr;
	}
	verbs_set_ops(&context->verbs, &kContextOps);
	return &context->verbs;
}

void free_context(ibv_context *ibv)
{
	Context *context = Context::of(ibv);

	context->state.~ContextState();
	verbs_uninit_context(&context->verbs);
	std::free(context);
}

} // namespace tern::provider
