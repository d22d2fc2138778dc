// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/data_path.h"

#include <utility>

#include "qemu/rnic/limits.h"

namespace tern {

using namespace hw;

DataPath::DataPath(const CardConfig &config, const Ports &ports)
        : config(config), ports(ports), dma(ports.memory, stats),
          memory(dma, kMaxRegions, config.device_memory, config.base()), gids(kMaxGids),
          out(this->config, gids, ports.wire, scheduler, stats), eqs(config.vectors, config.base()),
          cqs(kMaxCqs, config.base()), srqs(kMaxSrqs, config.base())
{
}

EventQueue *DataPath::eq_of_vector(uint32_t vector) const
{
	EventQueue *found = nullptr;
	eqs.for_each([&](uint32_t, EventQueue &eq) {
		if (eq.vector() == vector)
			found = &eq;
	});
	return found;
}

bool DataPath::complete(uint32_t cqn, const tern_hw_cqe &cqe, bool solicited)
{
	CompletionQueue *cq = cqs.find(cqn);
	const auto pushed = cq->push(dma, memory.tables(),
	                             falsifier.due() ? falsified(cqn, cqe) : cqe, solicited);
	if (pushed == CompletionQueue::Outcome::Failed) {
		stats.add(TERN_STAT_CQ_OVERRUNS);
		raise_event(TERN_EVENT_CQ_ERR, cqn);
	}
	if (pushed != CompletionQueue::Outcome::Done)
		notify(cqn, *cq, pushed);
	return !cq->failed();
}

tern_hw_cqe DataPath::falsified(uint32_t cqn, tern_hw_cqe cqe)
{
	const size_t offset = falsifier.change(std::as_writable_bytes(std::span(&cqe, 1)));
	ports.observer.falsified("CQE of CQ", cqn, offset);
	return cqe;
}

void DataPath::notify(uint32_t cqn, CompletionQueue &cq, CompletionQueue::Outcome outcome)
{
	if (outcome == CompletionQueue::Outcome::Later)
		timers.move({TimerOwner::Kind::Cq, cqn}, cq.timer, ports.clock.now() + cq.period());
	if (outcome != CompletionQueue::Outcome::Event)
		return;
	timers.drop({TimerOwner::Kind::Cq, cqn}, cq.timer);
	auto host = event_host();
	if (!eqs.find(cq.eqn())->post(host, TERN_EVENT_COMP, cqn))
		stop(TERN_FATAL_EQ_DMA);
}

SharedRecvQueue::Take DataPath::take_shared(uint32_t srqn, uint32_t &slot)
{
	SharedRecvQueue *srq = srqs.find(srqn);
	const auto taken = srq->take(memory, slot);
	if (taken == SharedRecvQueue::Take::Failed)
		raise_event(TERN_EVENT_SRQ_ERR, srqn);
	else if (taken == SharedRecvQueue::Take::Done)
		check_srq_limit(srqn, *srq);
	return taken;
}

void DataPath::fail_srq(uint32_t srqn)
{
	if (srqs.find(srqn)->fail())
		raise_event(TERN_EVENT_SRQ_ERR, srqn);
}

bool DataPath::run_tag_ops(uint32_t srqn, SharedRecvQueue &srq, unsigned &budget)
{
	for (; !srq.failed() && !srq.tags()->empty(); budget--) {
		if (!budget)
			return true;
		tern_hw_cqe cqe;
		const auto step = srq.tags()->execute(memory, cqe);
		cqe.srqn = srqn;
		cqe.timestamp = ports.clock.now();
		if (step == TagQueue::Step::Fault ||
		    (step == TagQueue::Step::Complete && !complete(srq.config().cqn, cqe, false)))
			fail_srq(srqn);
	}
	return false;
}

void DataPath::check_srq_limit(uint32_t srqn, SharedRecvQueue &srq)
{
	if (srq.limit_reached(memory))
		raise_event(TERN_EVENT_SRQ_LIMIT, srqn);
}

void DataPath::raise_event(tern_hw_event type, uint32_t id)
{
	auto host = event_host();
	EventQueue *eq = eq_of_vector(0);
	if (!eq && type != TERN_EVENT_LINK)
		pending_events.emplace(type, id);
	if (eq && !eq->post(host, type, id))
		stop(TERN_FATAL_EQ_DMA);
}

void DataPath::raise_pending_events()
{
	for (const auto &[type, id] : std::exchange(pending_events, {}))
		raise_event(type, id);
}

void DataPath::drop_events(std::span<const tern_hw_event> events, uint32_t id)
{
	for (const tern_hw_event type : events)
		pending_events.erase({type, id});
	eqs.for_each([&](uint32_t, EventQueue &eq) { eq.forget(events, id); });
}

void DataPath::pause(const PauseTimes &times)
{
	for (unsigned priority = 0; priority < kPriorities; priority++) {
		if (!times[priority] || !(congestion.pfc_enable >> priority & 1))
			continue;
		stats.add(static_cast<tern_hw_stat>(TERN_STAT_RX_PRIO0_PAUSE + priority));
		if (!*times[priority]) {
			resume(priority);
			continue;
		}
		const uint64_t bits = *times[priority] * kPauseQuantum;
		out.pause(priority, true);
		timers.move({TimerOwner::Kind::Pause, priority}, pause_timers[priority],
		            ports.clock.now() + bits * 1000 / config.link_speed_mbps);
	}
}

void DataPath::resume(unsigned priority)
{
	timers.drop({TimerOwner::Kind::Pause, priority}, pause_timers[priority]);
	out.pause(priority, false);
	scheduler.unpark(static_cast<Wire::Destination>(Scheduler::kPaused + priority));
}

AddressVector DataPath::source_address(const GidEntry &source) const
{
	AddressVector av;
	av.roce_v2 = source.type == TERN_GID_ROCE_V2;
	av.smac = source.mac == Mac{} ? out.mac : source.mac;
	av.vlan = source.vlan;
	av.sgid = source.gid;
	return av;
}

void DataPath::drop(tern_hw_stat reason, uint32_t qpn)
{
	stats.add(reason);
	ports.observer.dropped(reason, qpn);
}

void DataPath::stop(tern_hw_fatal reason)
{
	if (fatal == TERN_FATAL_NONE)
		fatal = reason;
}

} // namespace tern
