// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs_pd.h"

#include <cerrno>

#include <rdma/ib_user_ioctl_cmds.h>

#include "ioctl.h"
#include "rdma/tern-abi.h"
#include "verbs.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::private_abi;

namespace {

using AllocPdResponse = Response<AllocPdResp, tern_alloc_pd_resp>;
static_assert(AllocPdResponse::kPacked);

/* Makes @domain a parent domain as @attr says. Returns 0 or EINVAL. */
int configure(Pd &domain, const ibv_parent_domain_init_attr &attr)
{
	/* IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC of rdma-core 65 permits a provider
	 * to allocate memory that a confidential guest does not protect. This provider allocates
	 * none, so the flag has no effect. */
	constexpr uint32_t kAllowUnprotected = 1 << 2;
	constexpr uint32_t kKnown = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
	                            IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | kAllowUnprotected;
	const bool allocators = attr.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;

	if (!attr.pd || attr.comp_mask & ~kKnown || (allocators && (!attr.alloc || !attr.free)))
		return EINVAL;
	Pd *pd = Pd::of(attr.pd);
	domain.base_pd = Use(pd->is_parent_domain() ? pd->base_pd.get() : pd);
	domain.verbs = *attr.pd;
	if (attr.td)
		domain.thread_domain = Use(ThreadDomain::of(attr.td));
	if (allocators) {
		ibv_parent_domain_init_attr given = attr;
		if (!(attr.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT))
			given.pd_context = nullptr;
		domain.allocator.emplace(&domain.verbs, given);
	}
	return 0;
}

} // namespace

ibv_pd *alloc_pd(ibv_context *context)
{
	return make_object<ibv_pd, Pd>([&](Pd &pd) {
		AllocPdCmd cmd = {};
		AllocPdResponse resp = {};

		return ibv_cmd_alloc_pd(context, &pd.verbs, &cmd, sizeof(cmd), &resp, sizeof(resp));
	});
}

/* The query checks that @handle is a PD; its response is not needed. */
ibv_pd *import_pd(ibv_context *context, uint32_t handle)
{
	return make_object<ibv_pd, Pd>([&](Pd &pd) {
		tern_alloc_pd_resp resp = {};

		pd.verbs.context = context;
		pd.verbs.handle = handle;
		return Ioctl<2>(UVERBS_OBJECT_PD, TERN_METHOD_PD_QUERY)
		        .object(TERN_ATTR_PD_QUERY_HANDLE, handle)
		        .out(TERN_ATTR_PD_QUERY_RESP, resp)
		        .execute(context);
	});
}

/* Cannot fail, so parent domains of an imported PD may outlive the import. */
void unimport_pd(ibv_pd *ibv)
{
	Pd *pd = Pd::of(ibv);

	if (pd->users.give_up())
		Owned<Pd>{pd};
}

ibv_td *alloc_td(ibv_context *context, ibv_td_init_attr *attr)
{
	return make_object<ibv_td, ThreadDomain>([&](ThreadDomain &td) {
		td.verbs.context = context;
		return attr->comp_mask ? EINVAL : 0;
	});
}

int dealloc_td(ibv_td *ibv)
{
	ThreadDomain *td = ThreadDomain::of(ibv);

	if (td->users.any())
		return EBUSY;
	Owned<ThreadDomain>{td};
	return 0;
}

ibv_pd *alloc_parent_domain(ibv_context *, ibv_parent_domain_init_attr *attr)
{
	return make_object<ibv_pd, Pd>([&](Pd &domain) { return configure(domain, *attr); });
}

int dealloc_pd(ibv_pd *ibv)
{
	Pd *pd = Pd::of(ibv);

	if (pd->users.any())
		return EBUSY;
	if (!pd->is_parent_domain())
		if (const int err = ibv_cmd_dealloc_pd(ibv))
			return err;
	Owned<Pd>{pd};
	return 0;
}

} // namespace tern::provider
