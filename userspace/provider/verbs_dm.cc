// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Device memory: memory of the card, mapped into the process. */
#include <cerrno>
#include <cstring>

#include <rdma/ib_user_ioctl_cmds.h>
#include <unistd.h>

#include "context.h"
#include "datapath/barrier.h"
#include "ioctl.h"
#include "mapping.h"
#include "rdma/tern-abi.h"
#include "verbs.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::private_abi;

namespace {

/** Device memory: the object of libibverbs, and its mapping. */
struct Dm {
	VerbsDm verbs;
	uint64_t length = 0;
	uint64_t key = 0; /* of its mapping */
	Mapping mapping;  /* whole pages */

	static Dm *of(ibv_dm *dm) { return reinterpret_cast<Dm *>(dm); }
};
static_assert(offsetof(VerbsDm, dm) == 0);

constexpr uint64_t kAlign = 4; /* of the offset and length of a copy */

/* Returns 0 or an errno. */
int check_range(const Dm &dm, uint64_t offset, uint64_t length)
{
	if (offset > dm.length || length > dm.length - offset)
		return EFAULT;
	return offset % kAlign || length % kAlign ? EINVAL : 0;
}

/*
 * The mapping is write-combining: the CPU may delay stores to it and reorder loads from it. A full
 * barrier after stores makes the stores visible to the card before later posts. A full barrier
 * before loads orders the loads after the poll of the completion whose data they read.
 */
int copy_to(ibv_dm *ibv, uint64_t offset, const void *from, size_t length)
{
	const Dm &dm = *Dm::of(ibv);

	if (const int err = check_range(dm, offset, length))
		return err;
	std::memcpy(dm.mapping.data() + offset, from, length);
	full_barrier();
	return 0;
}

int copy_from(void *to, ibv_dm *ibv, uint64_t offset, size_t length)
{
	const Dm &dm = *Dm::of(ibv);

	if (const int err = check_range(dm, offset, length))
		return err;
	full_barrier();
	std::memcpy(to, dm.mapping.data() + offset, length);
	return 0;
}

uint64_t page_size()
{
	return static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

/* Maps the @length bytes of @key for @dm. Returns 0 or an errno. */
int map(Dm &dm, ibv_context *context, uint64_t key, uint64_t length)
{
	const uint64_t page = page_size();

	dm.length = length;
	dm.key = key;
	dm.verbs.dm.memcpy_to_dm = copy_to;
	dm.verbs.dm.memcpy_from_dm = copy_from;
	return dm.mapping.map(context->cmd_fd, key, (length + page - 1) & ~(page - 1),
	                      PROT_READ | PROT_WRITE);
}

int create(Dm &dm, ibv_context *context, const ibv_alloc_dm_attr &attr)
{
	Ioctl<1> driver(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
	uint64_t key = 0;

	driver.out(TERN_ATTR_ALLOC_DM_RESP_KEY, key);
	if (const int err = ibv_cmd_alloc_dm(context, &attr, &dm.verbs, driver.link()))
		return err;
	const int err = map(dm, context, key, attr.length);
	if (err)
		ibv_cmd_free_dm(&dm.verbs);
	return err;
}

int find(Dm &dm, ibv_context *context, uint32_t handle)
{
	uint64_t key = 0, length = 0;

	if (const int err = Ioctl<3>(UVERBS_OBJECT_DM, TERN_METHOD_DM_QUERY)
	                            .object(TERN_ATTR_DM_QUERY_HANDLE, handle)
	                            .out(TERN_ATTR_DM_QUERY_RESP_KEY, key)
	                            .out(TERN_ATTR_DM_QUERY_RESP_LENGTH, length)
	                            .execute(context))
		return err;
	dm.verbs.handle = dm.verbs.dm.handle = handle;
	dm.verbs.dm.comp_mask = IBV_DM_MASK_HANDLE;
	dm.verbs.dm.context = context;
	return map(dm, context, key, length);
}

} // namespace

ibv_dm *alloc_dm(ibv_context *context, ibv_alloc_dm_attr *attr)
{
	return make_object<ibv_dm, Dm>([&](Dm &dm) {
		if (!Context::of(context)->has(TERN_CAP_DM))
			return EOPNOTSUPP;
		return attr->comp_mask ? EINVAL : create(dm, context, *attr);
	});
}

int free_dm(ibv_dm *ibv)
{
	Dm *dm = Dm::of(ibv);

	return free_object(ibv_cmd_free_dm(&dm->verbs), dm);
}

#if TERN_IBVERBS_PRIVATE == 65
int dm_export_dmabuf_fd(ibv_dm *ibv)
{
	return ibv_cmd_export_dmabuf_fd(ibv->context,
	                                static_cast<off_t>(Dm::of(ibv)->key / page_size()));
}
#endif

ibv_dm *import_dm(ibv_context *context, uint32_t handle)
{
	return make_object<ibv_dm, Dm>([&](Dm &dm) { return find(dm, context, handle); });
}

void unimport_dm(ibv_dm *dm)
{
	Owned<Dm>{Dm::of(dm)};
}

ibv_mr *reg_dm_mr(ibv_pd *pd, ibv_dm *dm, uint64_t offset, size_t length, unsigned access)
{
	return make_object<ibv_mr, VerbsMr>([&](VerbsMr &mr) {
		return ibv_cmd_reg_dm_mr(pd, &Dm::of(dm)->verbs, offset, length, access, &mr,
		                         nullptr);
	});
}

} // namespace tern::provider
