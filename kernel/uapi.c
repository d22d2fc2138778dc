// SPDX-License-Identifier: GPL-2.0
/* Attributes and methods of tern-abi.h in the ioctl() interface of uverbs. */
#include <rdma/ib_verbs.h>
#include <rdma/tern-abi.h>
#include <rdma/uverbs_std_types.h>

#define UVERBS_MODULE_NAME tern
#include <rdma/uverbs_named_ioctl.h>

#include "ib.h"

/* For a process that imports the context of another one through its file. */
int tern_query_ucontext(struct ib_ucontext *ibucontext, struct uverbs_attr_bundle *attrs)
{
	struct tern_alloc_ucontext_resp resp;

	tern_ucontext_describe(to_tucontext(ibucontext), &resp);
	return uverbs_copy_to_struct_or_zero(attrs, TERN_ATTR_QUERY_CONTEXT_RESP, &resp,
					     sizeof(resp));
}

static int UVERBS_HANDLER(TERN_METHOD_PD_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_pd *ibpd = uverbs_attr_get_obj(attrs, TERN_ATTR_PD_QUERY_HANDLE);
	struct tern_alloc_pd_resp resp = { .pdn = to_tpd(ibpd)->pdn };

	return uverbs_copy_to_struct_or_zero(attrs, TERN_ATTR_PD_QUERY_RESP, &resp, sizeof(resp));
}

static int UVERBS_HANDLER(TERN_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, TERN_ATTR_DM_QUERY_HANDLE);
	u64 key = rdma_user_mmap_get_offset(to_tdm(ibdm)->entry);
	u64 length = ibdm->length;
	int err;

	err = uverbs_copy_to(attrs, TERN_ATTR_DM_QUERY_RESP_KEY, &key, sizeof(key));
	return err ?: uverbs_copy_to(attrs, TERN_ATTR_DM_QUERY_RESP_LENGTH, &length,
				     sizeof(length));
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(tern_query_context, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT,
			     UVERBS_ATTR_PTR_OUT(TERN_ATTR_QUERY_CONTEXT_RESP,
						 UVERBS_ATTR_STRUCT(struct tern_alloc_ucontext_resp,
								    reserved),
						 UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(TERN_METHOD_PD_QUERY,
			    UVERBS_ATTR_IDR(TERN_ATTR_PD_QUERY_HANDLE, UVERBS_OBJECT_PD,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(TERN_ATTR_PD_QUERY_RESP,
						UVERBS_ATTR_STRUCT(struct tern_alloc_pd_resp,
								   reserved),
						UA_MANDATORY));
ADD_UVERBS_METHODS(tern_pd_query, UVERBS_OBJECT_PD, &UVERBS_METHOD(TERN_METHOD_PD_QUERY));

ADD_UVERBS_ATTRIBUTES_SIMPLE(tern_dm_alloc, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
			     UVERBS_ATTR_PTR_OUT(TERN_ATTR_ALLOC_DM_RESP_KEY, UVERBS_ATTR_TYPE(u64),
						 UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(TERN_METHOD_DM_QUERY,
			    UVERBS_ATTR_IDR(TERN_ATTR_DM_QUERY_HANDLE, UVERBS_OBJECT_DM,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(TERN_ATTR_DM_QUERY_RESP_KEY, UVERBS_ATTR_TYPE(u64),
						UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(TERN_ATTR_DM_QUERY_RESP_LENGTH,
						UVERBS_ATTR_TYPE(u64), UA_MANDATORY));
ADD_UVERBS_METHODS(tern_dm_query, UVERBS_OBJECT_DM, &UVERBS_METHOD(TERN_METHOD_DM_QUERY));

#ifdef TERN_HAVE_COMP_CNTR
ADD_UVERBS_ATTRIBUTES_SIMPLE(tern_comp_cntr_create, UVERBS_OBJECT_COMP_CNTR,
			     UVERBS_METHOD_COMP_CNTR_CREATE,
			     UVERBS_ATTR_PTR_IN(TERN_ATTR_CREATE_COMP_CNTR_UNIT,
						UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
			     UVERBS_ATTR_PTR_OUT(TERN_ATTR_CREATE_COMP_CNTR_RESP_KEY,
						 UVERBS_ATTR_TYPE(u64), UA_MANDATORY));
#endif

const struct uapi_definition tern_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &tern_query_context),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_PD, &tern_pd_query),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &tern_dm_alloc),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &tern_dm_query),
#ifdef TERN_HAVE_COMP_CNTR
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_COMP_CNTR, &tern_comp_cntr_create),
#endif
	{}
};
