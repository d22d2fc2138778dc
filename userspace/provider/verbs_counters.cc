// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Counters of flows. The card counts packets and bytes; the program attaches them to indices. */
#include "verbs_counters.h"

#include <cerrno>
#include <cstddef>
#include <mutex>

#include "context.h"
#include "rdma/tern-abi.h"
#include "spinlock.h"
#include "verbs.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::private_abi;

namespace {

/* The largest index that a program may attach a counter to. */
constexpr uint32_t kMaxIndex = 31;

/** Counters: the object of libibverbs, and what is attached to each index. */
struct Counters {
	VerbsCounters verbs;
	Spinlock lock;      /* protects the rest */
	uint32_t users = 0; /* flows that exist or are being created with them */
	/* How often each counter is attached to each index, which aggregates them. */
	uint32_t attached[kMaxIndex + 1][TERN_COUNTER_COUNT] = {};

	static Counters *of(ibv_counters *counters)
	{
		return reinterpret_cast<Counters *>(counters);
	}
};
static_assert(offsetof(VerbsCounters, counters) == 0);

static_assert(int{IBV_COUNTER_PACKETS} == int{TERN_COUNTER_PACKETS});
static_assert(int{IBV_COUNTER_BYTES} == int{TERN_COUNTER_BYTES});

/* The value of an index to which each counter is attached as often as @attached says. */
uint64_t aggregate(const uint32_t (&attached)[TERN_COUNTER_COUNT],
                   const uint64_t (&card_values)[TERN_COUNTER_COUNT])
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < TERN_COUNTER_COUNT; i++)
		sum += attached[i] * card_values[i];
	return sum;
}

bool is_used(Counters &counters)
{
	const std::lock_guard guard(counters.lock);

	return counters.users;
}

} // namespace

ibv_counters *create_counters(ibv_context *context, ibv_counters_init_attr *attr)
{
	return make_object<ibv_counters, Counters>([&](Counters &counters) {
		if (!Context::of(context)->has(TERN_CAP_FLOW_COUNTERS))
			return EOPNOTSUPP;
		return ibv_cmd_create_counters(context, attr, &counters.verbs, nullptr);
	});
}

/* A flow is counted from its creation on if it is created with the object; a flow that exists
 * cannot be added. */
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
	if (counters.users)
		return EBUSY;
	counters.attached[attr->index][attr->counter_desc]++;
	return 0;
}

void add_counters_user(ibv_counters *ibv)
{
	Counters &counters = *Counters::of(ibv);
	const std::lock_guard guard(counters.lock);

	counters.users++;
}

void drop_counters_user(ibv_counters *ibv)
{
	Counters &counters = *Counters::of(ibv);
	const std::lock_guard guard(counters.lock);

	counters.users--;
}

int read_counters(ibv_counters *ibv, uint64_t *values, uint32_t count, uint32_t flags)
{
	Counters &counters = *Counters::of(ibv);
	uint64_t card_values[TERN_COUNTER_COUNT] = {};

	if (const int err = ibv_cmd_read_counters(&counters.verbs, card_values, TERN_COUNTER_COUNT,
	                                          flags, nullptr))
		return err;
	const std::lock_guard guard(counters.lock);
	for (uint32_t i = 0; i < count; i++)
		values[i] = i <= kMaxIndex ? aggregate(counters.attached[i], card_values) : 0;
	return 0;
}

int destroy_counters(ibv_counters *ibv)
{
	Counters *counters = Counters::of(ibv);

	/* The driver may have destroyed the last flow, but not yet destroy_flow(). */
	if (is_used(*counters))
		return EBUSY;
	return free_object(ibv_cmd_destroy_counters(&counters->verbs), counters);
}

} // namespace tern::provider
