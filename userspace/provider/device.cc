// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Registers the provider with libibverbs when it is loaded. */
#include <cstddef>
#include <cstdio>

#include "context.h"
#include "owned.h"
#include "private_abi.h"
#include "rdma/tern-abi.h"
#include "tern/tern_hw.h"
#include "terndv.h"

namespace tern::provider {

using namespace tern::private_abi;

namespace {

VerbsDevice *alloc_device(SysfsDevice *)
{
	return make_owned<VerbsDevice>().release();
}

void uninit_device(VerbsDevice *device)
{
	Owned<VerbsDevice>{device};
}

constexpr MatchEntry kMatchTable[] = {
        {.driver_data = nullptr,
         .u = {},
         .vendor = hw::TERN_PCI_VENDOR_ID,
         .device = hw::TERN_PCI_DEVICE_ID,
         .kind = kMatchPci},
        {},
};

constexpr DeviceOps kDeviceOps = {
        .name = "tern",
        .min_abi_version = TERN_UVERBS_ABI_VERSION,
        .max_abi_version = TERN_UVERBS_ABI_VERSION,
        .match_table = kMatchTable,
        .static_providers = nullptr,
        .match_device = nullptr,
        .alloc_context = alloc_context,
        .import_context = import_context,
        .alloc_device = alloc_device,
        .uninit_device = uninit_device,
};

/*
 * rdma-core 34 to 39 has the same private version but a shorter table of verbs. rdma-core 40 added
 * this symbol with the current table, so the loader refuses to load the provider with an older one.
 */
[[gnu::used]] int (*const kNeedsTableOf40)(ibv_qp *, ibv_wr_opcode,
                                           uint32_t) = ibv_query_qp_data_in_order;

/* Whether libibverbs finds the mark of an extended QP where this library sets it. */
bool has_our_layout()
{
	struct {
		VerbsQp qp;
		char behind[64]; /* a longer layout is read here */
	} probe = {};

	probe.qp.comp_mask = kVerbsQpEx;
	return ibv_qp_to_qp_ex(&probe.qp.qp);
}

[[gnu::constructor]] void register_driver()
{
	if (has_our_layout())
		TERN_VERSIONED(verbs_register_driver_, TERN_IBVERBS_PRIVATE)(&kDeviceOps);
	else
		std::fprintf(stderr,
		             "libtern: built for rdma-core %s, which this libibverbs is not of: "
		             "no Tern card can be used\n",
		             kRdmaCore);
}

} // namespace

} // namespace tern::provider

[[gnu::visibility("default")]] bool terndv_is_supported(ibv_device *device)
{
	using namespace tern::provider;
	return reinterpret_cast<VerbsDevice *>(device)->ops == &kDeviceOps;
}
