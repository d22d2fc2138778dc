// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cstddef>
#include <cstring>

#include "verbs.h"
#include "verbs_counters.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::private_abi;

namespace {

/** A flow: the object of libibverbs, and what counts it. */
struct Flow {
	ibv_flow verbs;
	ibv_counters *counters = nullptr;

	static Flow *of(ibv_flow *flow) { return reinterpret_cast<Flow *>(flow); }
};
static_assert(offsetof(Flow, verbs) == 0);

/* counters_of() reads the type and size first, which are at the beginning of every spec. */
static_assert(offsetof(ibv_flow_spec_counter_action, counters) >= sizeof(ibv_flow_spec::hdr));

/*
 * The counters that @attr names, or null. The driver refuses a flow that names counters twice.
 * Like libibverbs, trusts the sizes and the number of the specs; they follow one another without
 * gaps, so pointers in them may not be aligned.
 */
ibv_counters *counters_of(const ibv_flow_attr &attr)
{
	const auto *spec = reinterpret_cast<const std::byte *>(&attr + 1);

	for (unsigned i = 0; i < attr.num_of_specs; i++) {
		ibv_flow_spec_counter_action count;

		std::memcpy(&count, spec, sizeof(ibv_flow_spec::hdr));
		if (count.type == IBV_FLOW_SPEC_ACTION_COUNT) {
			std::memcpy(&count, spec, sizeof(count));
			return count.counters;
		}
		spec += count.size;
	}
	return nullptr;
}

/*
 * Creates @flow. Counts it as a user of its counters before the command, so that no counter can be
 * attached meanwhile. Returns 0 or an errno.
 */
int create(Flow &flow, ibv_qp *qp, ibv_flow_attr *attr)
{
	flow.counters = counters_of(*attr);
	if (flow.counters)
		add_counters_user(flow.counters);
	const int err = ibv_cmd_create_flow(qp, &flow.verbs, attr, nullptr, 0);
	if (err && flow.counters)
		drop_counters_user(flow.counters);
	return err;
}

} // namespace

ibv_flow *create_flow(ibv_qp *qp, ibv_flow_attr *attr)
{
	return make_object<ibv_flow, Flow>([&](Flow &flow) { return create(flow, qp, attr); });
}

int destroy_flow(ibv_flow *ibv)
{
	Flow *flow = Flow::of(ibv);
	const int err = ibv_cmd_destroy_flow(ibv);

	if (!err && flow->counters)
		drop_counters_user(flow->counters);
	return free_object(err, flow);
}

} // namespace tern::provider
