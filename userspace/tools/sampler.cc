// SPDX-License-Identifier: GPL-2.0-or-later
#include "sampler.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "text.h"

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

/* What the outputs name a QP by. They have no control characters of names. */
auto label_of(const QpSample &qp)
{
	return std::tuple(qp.pid, printable(qp.device), qp.qpn, printable(qp.program));
}

void add(Counter &sum, const Counter &more)
{
	sum.total += more.total;
	sum.recent += more.recent;
}

void add(Buckets &sum, const Buckets &more)
{
	std::ranges::transform(sum, more, sum.begin(), std::plus());
}

} // namespace

void QpSample::merge(const QpSample &other)
{
	for (uint32_t i = 0; i < TERN_GROUPS; i++) {
		add(messages[i], other.messages[i]);
		add(bytes[i], other.bytes[i]);
	}
	add(errors, other.errors);
	add(page_faults, other.page_faults);
	add(latency, other.latency);
	add(recent_latency, other.recent_latency);
	latency_ns += other.latency_ns;
	outstanding += other.outstanding;
	/* A number is that of one QP at a time. The queues of another have no part in it. */
	if (other.exists) {
		send_cq = other.send_cq;
		recv_cq = other.recv_cq;
		exists = true;
	}
}

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
	/* A process may have used several QPs of the same number and device name: after the device
	 * is registered anew, the process has another address of the name. */
	std::map<decltype(label_of({})), QpSample> merged;
	for (const Counts::Qp &qp : counts.qps) {
		const QpSample one = sample(counts, qp);
		const auto [place, is_new] = merged.try_emplace(label_of(one), one);
		if (!is_new)
			place->second.merge(one);
	}
	for (auto &[label, qp] : merged)
		result.qps.push_back(std::move(qp));
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

	result.exists = now.named;
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
	result.page_faults = count(now.page_faults, before.page_faults);
	result.latency_ns = now.latency_ns;
	/* The map is read while it changes, so completed may be ahead of posted. */
	result.outstanding = now.posted > now.completed ? now.posted - now.completed : 0;

	const auto device = std::ranges::find(counts.devices, result.device, &Device::name);
	if (device != counts.devices.end()) {
		result.send_cq = depth_of(*device, now.send_cqn);
		result.recv_cq = depth_of(*device, now.recv_cqn);
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
