// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/card.h"

#include "qemu/rnic/limits.h"

namespace tern {

Card::Card(const CardConfig &config, const Ports &ports, bool link_up)
        : DataPath(config, ports), port(*this, qps), admin(*this), pds(kMaxPds, config.base()),
          xrcds(kMaxXrcds, config.base()), wqs(kMaxWqs, config.base()),
          wq_tables(kMaxWqTables, config.base()),
          qps(kMaxQps, config.base(), config.engine == 0 ? kGsiQpn : 0),
          flow_counters(kMaxFlowCounters, config.base()), stats_sets(kMaxStatsSets, config.base()),
          completion_counters(kMaxCompletionCounters, config.base()), link_up(link_up)
{
}

bool Card::run_timers(uint64_t now, unsigned most)
{
	for (; most; most--) {
		const auto due = timers.pop_due(now);
		if (!due)
			return false;
		if (due->kind == TimerOwner::Kind::Pause) {
			resume(due->number);
			continue;
		}
		if (due->kind == TimerOwner::Kind::Cq) {
			if (CompletionQueue *cq = cqs.find(due->number); cq->expire())
				notify(due->number, *cq, CompletionQueue::Outcome::Event);
			continue;
		}
		Qp *qp = due->kind == TimerOwner::Kind::Qp ? qps.find(due->number)
		                                           : wqs.find(due->number);
		qp->expire(now);
	}
	return timers.next() && *timers.next() <= now;
}

/* The controllers refer to the parameters; those of another algorithm go. */
bool Card::set_congestion(const CongestionParameters &parameters)
{
	if (!are_valid(parameters))
		return false;
	if (parameters.algorithm() != congestion.algorithm())
		qps.for_each([](uint32_t, Qp &qp) { qp.forget_congestion(); });
	congestion = parameters;
	out.priority_by_dscp = parameters.pfc_trust_dscp;
	for (unsigned priority = 0; priority < kPriorities; priority++)
		if (!(parameters.pfc_enable >> priority & 1))
			resume(priority);
	return true;
}

} // namespace tern
