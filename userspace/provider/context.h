// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "datapath/doorbell.h"
#include "datapath/queue_table.h"
#include "mapping.h"
#include "private_abi.h"

namespace tern::provider {

/** The provider's state of an opened device. */
struct ContextState {
	Mapping doorbells;
	uint32_t caps = 0; /* TERN_CAP_* */
	QpTable qps;
	SrqTable srqs;
	PlainSrqTable plain_srqs;
	WqTable wqs;
};

/** An opened device. libibverbs allocates it zeroed; context.cc constructs the state in place. */
struct Context {
	verbs_context verbs;
	union {
		ContextState state;
	};

	static Context *of(ibv_context *context)
	{
		return reinterpret_cast<Context *>(reinterpret_cast<char *>(context) -
		                                   offsetof(verbs_context, context));
	}

	/** The name of the RDMA device, for probes. */
	const char *device_name() const { return verbs.context.device->name; }
	DoorbellPage doorbell_page() const { return DoorbellPage(state.doorbells.data()); }
	/** Whether the card has all of @caps (TERN_CAP_*). */
	bool has(uint32_t caps) const { return (state.caps & caps) == caps; }
};

verbs_context *alloc_context(ibv_device *device, int cmd_fd, void *private_data);
verbs_context *import_context(ibv_device *device, int cmd_fd);
void free_context(ibv_context *context);

} // namespace tern::provider
