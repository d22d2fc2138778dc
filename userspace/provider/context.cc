// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "context.h"

#include <cerrno>

#include <rdma/ib_user_ioctl_cmds.h>

#include "ioctl.h"
#include "rdma/tern-abi.h"
#include "verbs.h"

namespace tern::provider {

using namespace tern::private_abi;

namespace {

using GetContextResponse = Response<GetContextResp, tern_alloc_ucontext_resp>;
static_assert(GetContextResponse::kPacked);

constexpr uint32_t kNoDriverId = 0; /* RDMA_DRIVER_UNKNOWN: the kernel has no number for Tern */

constexpr ContextOps kContextOps = [] {
	ContextOps ops = {};
	ops.advise_mr = ibv_cmd_advise_mr;
	ops.alloc_dm = alloc_dm;
	ops.alloc_mw = alloc_mw;
	ops.alloc_null_mr = alloc_null_mr;
	ops.alloc_parent_domain = alloc_parent_domain;
	ops.alloc_pd = alloc_pd;
	ops.alloc_td = alloc_td;
	ops.attach_counters_point_flow = attach_counters_point_flow;
	ops.attach_mcast = ibv_cmd_attach_mcast;
	ops.bind_mw = bind_mw;
	ops.close_xrcd = close_xrcd;
	ops.create_ah = create_ah;
	TERN_SINCE_65(ops.create_comp_cntr = create_comp_cntr;)
	ops.create_counters = create_counters;
	ops.create_cq = create_cq;
	ops.create_cq_ex = create_cq_ex;
	ops.create_flow = create_flow;
	ops.create_qp = create_qp;
	ops.create_qp_ex = create_qp_ex;
	ops.create_rwq_ind_table = create_rwq_ind_table;
	ops.create_srq = create_srq;
	ops.create_srq_ex = create_srq_ex;
	ops.create_wq = create_wq;
	ops.dealloc_mw = dealloc_mw;
	ops.dealloc_pd = dealloc_pd;
	ops.dealloc_td = dealloc_td;
	ops.dereg_mr = dereg_mr;
	ops.destroy_ah = destroy_ah;
	TERN_SINCE_65(ops.destroy_comp_cntr = destroy_comp_cntr;)
	ops.destroy_counters = destroy_counters;
	ops.destroy_cq = destroy_cq;
	ops.destroy_flow = destroy_flow;
	ops.destroy_qp = destroy_qp;
	ops.destroy_rwq_ind_table = destroy_rwq_ind_table;
	ops.destroy_srq = destroy_srq;
	ops.destroy_wq = destroy_wq;
	ops.detach_mcast = ibv_cmd_detach_mcast;
	TERN_SINCE_65(ops.dm_export_dmabuf_fd = dm_export_dmabuf_fd;)
	ops.free_context = free_context;
	ops.free_dm = free_dm;
	ops.get_srq_num = get_srq_num;
	ops.import_dm = import_dm;
	ops.import_mr = import_mr;
	ops.import_pd = import_pd;
	TERN_SINCE_65(ops.inc_comp_cntr = ibv_cmd_inc_comp_cntr;)
	TERN_SINCE_65(ops.inc_err_comp_cntr = ibv_cmd_inc_err_comp_cntr;)
	ops.modify_cq = modify_cq;
	ops.modify_qp = modify_qp;
	ops.modify_qp_rate_limit = modify_qp_rate_limit;
	ops.modify_srq = modify_srq;
	ops.modify_wq = modify_wq;
	ops.open_qp = open_qp;
	ops.open_xrcd = open_xrcd;
	ops.poll_cq = poll_cq;
	ops.post_recv = post_recv;
	ops.post_send = post_send;
	ops.post_srq_ops = post_srq_ops;
	ops.post_srq_recv = post_srq_recv;
	TERN_SINCE_65(ops.qp_attach_comp_cntr = qp_attach_comp_cntr;)
	TERN_SINCE_65(ops.query_comp_cntr_caps = ibv_cmd_query_comp_cntr_caps;)
	ops.query_device_ex = query_device_ex;
	ops.query_port = query_port;
	TERN_SINCE_65(ops.query_port_speed = ibv_cmd_query_port_speed;)
	ops.query_qp = query_qp;
	ops.query_rt_values = query_rt_values;
	ops.query_srq = query_srq;
	TERN_SINCE_65(ops.read_comp_cntr = read_comp_cntr;)
	ops.read_counters = read_counters;
	TERN_SINCE_65(ops.read_err_comp_cntr = read_err_comp_cntr;)
	ops.reg_dm_mr = reg_dm_mr;
	ops.reg_dmabuf_mr = reg_dmabuf_mr;
	ops.reg_mr = reg_mr;
	ops.req_notify_cq = req_notify_cq;
	ops.rereg_mr = rereg_mr;
	ops.resize_cq = resize_cq;
	TERN_SINCE_65(ops.set_comp_cntr = ibv_cmd_set_comp_cntr;)
	TERN_SINCE_65(ops.set_err_comp_cntr = ibv_cmd_set_err_comp_cntr;)
	ops.unimport_dm = unimport_dm;
	ops.unimport_mr = unimport_mr;
	ops.unimport_pd = unimport_pd;
	return ops;
}();

/* Creates a context in the kernel. Returns 0 or an errno. */
int get_context(verbs_context &verbs, tern_alloc_ucontext_resp &tern)
{
	GetContextCmd cmd = {};
	GetContextResponse resp = {};
	const int err = ibv_cmd_get_context(&verbs, &cmd, sizeof(cmd) TERN_SINCE_65(, nullptr),
	                                    &resp, sizeof(resp));

	tern = resp.tern;
	return err;
}

/* Queries the existing context of the file. Returns 0 or an errno. */
int query_context(verbs_context &verbs, tern_alloc_ucontext_resp &tern)
{
	Ioctl<1> driver(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT);

	driver.out(TERN_ATTR_QUERY_CONTEXT_RESP, tern);
	return ibv_cmd_query_context(&verbs.context, driver.link());
}

/* Stores the capabilities of @tern and maps the doorbell page. Returns 0 or an errno. */
int set_up(ContextState &state, int cmd_fd, const tern_alloc_ucontext_resp &tern)
{
	if (tern.db_len < hw::TERN_DB_PAGE_SIZE)
		return EPROTO;
	state.caps = tern.caps;
	return state.doorbells.map(cmd_fd, tern.db_key, tern.db_len, PROT_READ | PROT_WRITE);
}

verbs_context *make_context(ibv_device *device, int cmd_fd,
                            int (*get_response)(verbs_context &, tern_alloc_ucontext_resp &))
{
	auto *context = static_cast<Context *>(_verbs_init_and_alloc_context(
	        device, cmd_fd, sizeof(Context), nullptr, kNoDriverId));
	if (!context)
		return nullptr;
	new (&context->state) ContextState();

	tern_alloc_ucontext_resp resp = {};
	int err = get_response(context->verbs, resp);
	if (!err)
		err = set_up(context->state, cmd_fd, resp);
	if (err) {
		context->state.~ContextState();
		verbs_uninit_context(&context->verbs);
		std::free(context);
		errno = err;
		return nullptr;
	}
	verbs_set_ops(&context->verbs, &kContextOps);
	return &context->verbs;
}

} // namespace

verbs_context *alloc_context(ibv_device *device, int cmd_fd, void *)
{
	return make_context(device, cmd_fd, get_context);
}

verbs_context *import_context(ibv_device *device, int cmd_fd)
{
	return make_context(device, cmd_fd, query_context);
}

void free_context(ibv_context *ibv)
{
	Context *context = Context::of(ibv);

	context->state.~ContextState();
	verbs_uninit_context(&context->verbs);
	std::free(context);
}

} // namespace tern::provider
