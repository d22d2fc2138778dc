// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Counters of flows: the card counts packets and bytes, the program says which of them is where. */
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <mutex>

#include "context.h"
#include "rdma/tern-abi.h"
#include "spinlock.h"
#include "verbs.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::abi34;

namespace {

/* Values that one object can have; a program that wants more is confused. */
constexpr uint32_t kMaxIndex = 31;

/** Counters of libibverbs, first, with what their values mean. */
struct Counters {
	VerbsCounters verbs;
	Spinlock lock;
	uint8_t meaning[kMaxIndex + 1] = {}; /* of a value: 1 + enum tern_counter; 0: nothing */

	static Counters *of(ibv_counters *counters)
	{
		return reinterpret_cast<Counters *>(counters);
	}
};
static_assert(offsetof(VerbsCounters, counters) == 0);

static_assert(int{IBV_COUNTER_PACKETS} == int{TERN_COUNTER_PACKETS});
static_assert(int{IBV_COUNTER_BYTES} == int{TERN_COUNTER_BYTES});

} // namespace

ibv_counters *create_counters(ibv_context *context, ibv_counters_init_attr *attr)
{
	return make_object<ibv_counters, Counters>([&](Counters &counters) {
		if (!Context::of(context)->has(TERN_CAP_FLOW_COUNTERS))
			return EOPNOTSUPP;
		return ibv_cmd_create_counters(context, attr, &counters.verbs, nullptr);
	});
}

/* What is counted is all that the flows take which are created with the object, from their first
 * frame on; so there is nothing to do for a flow that exists. */
int attach_counters_point_flow(ibv_counters *ibv, ibv_counter_attach_attr *attr, ibv_flow *flow)
{
	Counters &counters = *Counters::of(ibv);

	if (attr->comp_mask || flow)
		return EOPNOTSUPP;
	if (static_cast<unsigned>(attr->counter_desc) >= TERN_COUNTER_COUNT)
		return EOPNOTSUPP;
	if (attr->index > kMaxIndex)
		return EINVAL;
	const std::lock_guard guard(counters.lock);
	counters.meaning[attr->index] = static_cast<uint8_t>(1 + attr->counter_desc);
	return 0;
}

int read_counters(ibv_counters *ibv, uint64_t *values, uint32_t count, uint32_t flags)
{
	Counters &counters = *Counters::of(ibv);
	uint64_t of_card[TERN_COUNTER_COUNT] = {};

	if (const int err = ibv_cmd_read_counters(&counters.verbs, of_card, TERN_COUNTER_COUNT,
	                                          flags, nullptr))
		return err;
	const std::lock_guard guard(counters.lock);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t meaning = i <= kMaxIndex ? counters.meaning[i] : 0;

		values[i] = meaning ? of_card[meaning - 1] : 0;
	}
	return 0;
}

int destroy_counters(ibv_counters *ibv)
{
	Counters *counters = Counters::of(ibv);

	if (const int err = ibv_cmd_destroy_counters(&counters->verbs))
		return err;
	Owned<Counters>{counters};
	return 0;
}

} // namespace tern::provider
