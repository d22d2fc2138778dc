// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/card.h"

namespace tern {

using namespace hw;

Card::Card(const Rnic::Config &config, const Ports &ports, bool link_up)
        : config(config), ports(ports), dma(ports.memory, stats),
          memory(dma, kMaxRegions, config.device_memory, config.base()), port(*this), admin(*this),
          eqs(config.vectors, config.base()), pds(kMaxPds, config.base()),
          cqs(kMaxCqs, config.base()), xrcds(kMaxXrcds, config.base()),
          srqs(kMaxSrqs, config.base()), wqs(kMaxWqs, config.base()),
          wq_tables(kMaxWqTables, config.base()),
          qps(kMaxQps, config.base(), config.engine == 0 ? kGsiQpn : 0),
          flow_counters(kMaxFlowCounters, config.base()), gids(kMaxGids), link_up(link_up)
{
	port.mac = config.mac;
}

EventQueue *Card::eq_of_vector(uint32_t vector) const
{
	EventQueue *found = nullptr;
	eqs.for_each([&](uint32_t, EventQueue &eq) {
		if (eq.vector() == vector)
			found = &eq;
	});
	return found;
}

bool Card::complete(uint32_t cqn, const tern_hw_cqe &cqe, bool solicited)
{
	CompletionQueue *cq = cqs.find(cqn);
	const auto pushed = cq->push(dma, memory.tables(), cqe, solicited);
	if (pushed == CompletionQueue::Outcome::Failed) {
		stats.add(TERN_STAT_CQ_OVERRUNS);
		raise_event(TERN_EVENT_CQ_ERR, cqn);
	}
	if (pushed != CompletionQueue::Outcome::Done)
		notify(cqn, *cq, pushed);
	return !cq->failed();
}

void Card::notify(uint32_t cqn, CompletionQueue &cq, CompletionQueue::Outcome outcome)
{
	if (outcome == CompletionQueue::Outcome::Later)
		timers.move({TimerOwner::Kind::Cq, cqn}, cq.timer, ports.clock.now() + cq.period());
	if (outcome != CompletionQueue::Outcome::Event)
		return;
	drop_timer(cqn, cq);
	auto host = event_host();
	if (!eqs.find(cq.eqn())->post(host, TERN_EVENT_COMP, cqn))
		stop(TERN_FATAL_EQ_DMA);
}

SharedRecvQueue::Take Card::take_shared(uint32_t srqn, uint32_t &slot)
{
	SharedRecvQueue *srq = srqs.find(srqn);
	const auto taken = srq->take(memory, slot);
	if (taken == SharedRecvQueue::Take::Failed)
		raise_event(TERN_EVENT_SRQ_ERR, srqn);
	else if (taken == SharedRecvQueue::Take::Done)
		check_srq_limit(srqn, *srq);
	return taken;
}

void Card::fail_srq(uint32_t srqn)
{
	if (srqs.find(srqn)->fail())
		raise_event(TERN_EVENT_SRQ_ERR, srqn);
}

/* Bounded by the size of the ring. */
void Card::run_tag_ops(uint32_t srqn, SharedRecvQueue &srq)
{
	tern_hw_cqe cqe;
	TagQueue::Step step;
	while (!srq.failed() && (step = srq.tags()->execute(memory, cqe)) != TagQueue::Step::None) {
		cqe.srqn = srqn;
		cqe.timestamp = ports.clock.now();
		if (step == TagQueue::Step::Fault ||
		    (step == TagQueue::Step::Complete && !complete(srq.config().cqn, cqe, false)))
			fail_srq(srqn);
	}
}

void Card::check_srq_limit(uint32_t srqn, SharedRecvQueue &srq)
{
	if (srq.limit_reached(memory))
		raise_event(TERN_EVENT_SRQ_LIMIT, srqn);
}

void Card::raise_event(tern_hw_event type, uint32_t id)
{
	auto host = event_host();
	EventQueue *eq = eq_of_vector(0);
	if (eq && !eq->post(host, type, id))
		stop(TERN_FATAL_EQ_DMA);
}

void Card::drop_events(std::span<const tern_hw_event> events, uint32_t id)
{
	eqs.for_each([&](uint32_t, EventQueue &eq) { eq.forget(events, id); });
}

AddressVector Card::source_address(const GidEntry &source) const
{
	AddressVector av;
	av.roce_v2 = source.type == TERN_GID_ROCE_V2;
	av.smac = port.mac;
	av.vlan = source.vlan;
	av.sgid = source.gid;
	return av;
}

void Card::set_timer(Qp &qp, uint64_t deadline)
{
	if (deadline < qp.timer.deadline)
		timers.move(qp.timer_owner(), qp.timer, deadline);
}

void Card::drop_timer(Qp &qp)
{
	timers.move(qp.timer_owner(), qp.timer, Timer::kNone);
}

void Card::drop_timer(uint32_t cqn, CompletionQueue &cq)
{
	timers.move({TimerOwner::Kind::Cq, cqn}, cq.timer, Timer::kNone);
}

void Card::run_timers(uint64_t now)
{
	while (const auto due = timers.pop_due(now)) {
		if (due->kind == TimerOwner::Kind::Cq) {
			expire_moderation(due->number);
			continue;
		}
		Qp *qp = due->kind == TimerOwner::Kind::Qp ? qps.find(due->number)
		                                           : wqs.find(due->number);
		qp->expire(now);
	}
}

void Card::expire_moderation(uint32_t cqn)
{
	CompletionQueue *cq = cqs.find(cqn);
	if (cq->expire())
		notify(cqn, *cq, CompletionQueue::Outcome::Event);
}

void Card::stop(tern_hw_fatal reason)
{
	if (fatal == TERN_FATAL_NONE)
		fatal = reason;
}

} // namespace tern
