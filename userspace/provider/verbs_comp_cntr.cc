// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion counters (rdma-core 65). The card writes their values to memory that is mapped here.
 */
#include "private_abi.h"

#if TERN_IBVERBS_PRIVATE == 65

#include <cerrno>
#include <cstddef>

#include <rdma/ib_user_ioctl_cmds.h>
#include <unistd.h>

#include "context.h"
#include "datapath/record.h"
#include "ioctl.h"
#include "mapping.h"
#include "rdma/tern-abi.h"
#include "verbs.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::private_abi;

namespace {

/** A completion counter: the object of libibverbs, and the values that the card writes. */
struct CompCounter {
	ibv_comp_cntr verbs;
	Mapping mapping;
	CompRecord record; /* in mapping */

	static CompCounter *of(ibv_comp_cntr *counter)
	{
		return reinterpret_cast<CompCounter *>(counter);
	}
};
static_assert(offsetof(CompCounter, verbs) == 0);

static_assert(int{IBV_COMP_CNTR_TYPE_WRS} == int{hw::TERN_COMP_REQUESTS});
static_assert(int{IBV_COMP_CNTR_TYPE_BYTES} == int{hw::TERN_COMP_BYTES});

constexpr uint32_t kOps =
        IBV_QP_ATTACH_COMP_CNTR_OP_SEND | IBV_QP_ATTACH_COMP_CNTR_OP_RECV |
        IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ | IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ |
        IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE | IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE;

/* Returns 0 or an errno. */
int create(CompCounter &counter, ibv_context *context, uint32_t unit)
{
	Ioctl<2> driver(UVERBS_OBJECT_COMP_CNTR, UVERBS_METHOD_COMP_CNTR_CREATE);
	uint64_t key = 0;

	driver.in(TERN_ATTR_CREATE_COMP_CNTR_UNIT, unit)
	        .out(TERN_ATTR_CREATE_COMP_CNTR_RESP_KEY, key);
	if (const int err = ibv_cmd_create_comp_cntr(context, &counter.verbs, driver.link()))
		return err;
	const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
	const int err = counter.mapping.map(context->cmd_fd, key, page, PROT_READ);
	if (err)
		ibv_cmd_destroy_comp_cntr(&counter.verbs);
	counter.record = CompRecord(counter.mapping.at<hw::tern_hw_comp_record>(0));
	return err;
}

} // namespace

ibv_comp_cntr *create_comp_cntr(ibv_context *context, ibv_comp_cntr_init_attr *attr)
{
	return make_object<ibv_comp_cntr, CompCounter>([&](CompCounter &counter) {
		if (!Context::of(context)->has(TERN_CAP_COMP_COUNTERS) || attr->comp_mask)
			return EOPNOTSUPP;
		if (attr->flags || static_cast<unsigned>(attr->type) > hw::TERN_COMP_BYTES)
			return EINVAL;
		return create(counter, context, attr->type);
	});
}

int destroy_comp_cntr(ibv_comp_cntr *ibv)
{
	CompCounter *counter = CompCounter::of(ibv);

	return free_object(ibv_cmd_destroy_comp_cntr(ibv), counter);
}

int qp_attach_comp_cntr(ibv_qp *qp, ibv_comp_cntr *counter, ibv_qp_attach_comp_cntr_attr *attr)
{
	/* libibverbs drops bits that it does not know. */
	if (attr->comp_mask || attr->op_mask & ~kOps)
		return EOPNOTSUPP;
	return ibv_cmd_qp_attach_comp_cntr(qp, counter, attr);
}

int read_comp_cntr(ibv_comp_cntr *counter, uint64_t *value)
{
	*value = CompCounter::of(counter)->record.completed();
	return 0;
}

int read_err_comp_cntr(ibv_comp_cntr *counter, uint64_t *value)
{
	*value = CompCounter::of(counter)->record.failed();
	return 0;
}

} // namespace tern::provider

#endif
