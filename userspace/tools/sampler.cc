// SPDX-License-Identifier: GPL-2.0-or-later
#include "sampler.h"

#include <algorithm>
#include <cstring>

namespace tern::tools {

namespace {

/* A counter that is less than before belongs to an object that has replaced the one before. */
Counter count(uint64_t now, uint64_t before)
{
	return {now, now < before ? now : now - before};
}

std::string text(const char *chars, size_t size)
{
	return {chars, strnlen(chars, size)};
}

std::optional<CqDepth> depth_of(const Device &device, uint32_t cqn)
{
	const auto cq = device.cqs.find(cqn);

	return cq == device.cqs.end() ? std::nullopt : std::optional(cq->second);
}

uint64_t faults_of(const std::vector<Counts::Faults> &faults, const std::string &pci, uint32_t qpn)
{
	for (const Counts::Faults &fault : faults)
		if (fault.key.qpn == qpn && text(fault.key.pci, sizeof(fault.key.pci)) == pci)
			return fault.number;
	return 0;
}

} // namespace

bool QpSample::is_active() const
{
	const auto moves = [](const Counter &counter) { return counter.recent != 0; };

	return outstanding || moves(errors) || moves(page_faults) ||
	       std::ranges::any_of(messages, moves) || total(recent_latency);
}

Sampler::Sampler(Counts first) : last_(std::move(first))
{
	for (const Counts::Qp &qp : last_.qps)
		totals_[id_of(qp.key)] = qp.stats;
}

Sample Sampler::next(Counts counts)
{
	Sample result{.interval_ms = counts.time_ms - last_.time_ms, .devices = {}, .qps = {}};

	for (Device &device : counts.devices) {
		repeat_unknown(device);
		result.devices.push_back(sample(device));
	}
	for (const Counts::Qp &qp : counts.qps)
		result.qps.push_back(sample(counts, qp));
	std::ranges::sort(result.qps, {},
	                  [](const QpSample &qp) { return std::tie(qp.pid, qp.device, qp.qpn); });
	*this = Sampler(std::move(counts));
	return result;
}

QpSample Sampler::sample(const Counts &counts, const Counts::Qp &qp) const
{
	static constexpr tern_qp_stats kNone{};
	const tern_qp_stats &now = qp.stats;
	const auto found = totals_.find(id_of(qp.key));
	const tern_qp_stats &before = found == totals_.end() ? kNone : found->second;
	QpSample result;

	result.pid = qp.key.tgid;
	result.qpn = qp.key.qpn;
	result.program = text(now.program, sizeof(now.program));
	result.device = text(now.device, sizeof(now.device));
	for (uint32_t i = 0; i < TERN_GROUPS; i++) {
		result.messages[i] = count(now.messages[i], before.messages[i]);
		result.bytes[i] = count(now.bytes[i], before.bytes[i]);
	}
	for (uint32_t i = 0; i < TERN_LATENCY_BUCKETS; i++) {
		result.latency[i] = now.latency[i];
		result.recent_latency[i] = count(now.latency[i], before.latency[i]).recent;
	}
	result.errors = count(now.errors, before.errors);
	result.latency_ns = now.latency_ns;
	/* The map is read while it changes, so completed may be ahead of posted. */
	result.outstanding = now.posted > now.completed ? now.posted - now.completed : 0;

	const auto device = std::ranges::find(counts.devices, result.device, &Device::name);
	if (device != counts.devices.end()) {
		result.send_cq = depth_of(*device, now.send_cqn);
		result.recv_cq = depth_of(*device, now.recv_cqn);
		result.page_faults = count(faults_of(counts.faults, device->pci, qp.key.qpn),
		                           faults_of(last_.faults, device->pci, qp.key.qpn));
	}
	return result;
}

/* A counter that cannot be read keeps its last value. Otherwise its next value would be taken for
 * the rate of one interval. */
void Sampler::repeat_unknown(Device &device) const
{
	const auto before = std::ranges::find(last_.devices, device.name, &Device::name);

	for (size_t i = 0; before != last_.devices.end() && i < kCounters.size(); i++)
		if (!device.counters[i])
			device.counters[i] = before->counters[i];
}

DeviceSample Sampler::sample(const Device &device) const
{
	const auto before = std::ranges::find(last_.devices, device.name, &Device::name);
	DeviceSample result{.name = device.name, .counters = {}};

	for (size_t i = 0; i < kCounters.size(); i++) {
		const uint64_t now = device.counters[i].value_or(0);
		result.counters[i] = count(now, before == last_.devices.end()
		                                        ? now
		                                        : before->counters[i].value_or(now));
	}
	return result;
}

} // namespace tern::tools
