// SPDX-License-Identifier: GPL-2.0-or-later
/* From counters to what terntop shows of an interval. */
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bpf/shared.h"
#include "devices.h"
#include "histogram.h"

namespace tern::tools {

/** What the BPF programs and the kernel have counted at a time. */
struct Counts {
	struct Qp {
		tern_qp_key key;
		tern_qp_stats stats;
	};

	uint64_t time_ms = 0; /* of a monotonic clock */
	std::vector<Qp> qps;
	std::vector<Device> devices;
};

/** A counter since terntop began, or since boot if the card has it, and in the interval. */
struct Counter {
	uint64_t total = 0;
	uint64_t recent = 0;
};

struct QpSample {
	bool exists = false; /* not destroyed, as far as is known */
	uint32_t pid = 0;
	uint32_t qpn = 0;
	std::string program;
	std::string device;
	std::array<Counter, TERN_GROUPS> messages;
	std::array<Counter, TERN_GROUPS> bytes;
	Counter errors;
	Counter page_faults;
	uint64_t outstanding = 0;       /* send work requests */
	std::optional<CqDepth> send_cq; /* none: not known yet, or no debugfs */
	std::optional<CqDepth> recv_cq;
	Buckets latency{}; /* since terntop began */
	Buckets recent_latency{};
	uint64_t latency_ns = 0; /* sum of all */

	/** Adds what @other has counted under the same process, program, device and number. */
	void merge(const QpSample &other);
	/** Whether the QP had any activity in the interval, or has outstanding requests. */
	bool is_active() const;
};

struct DeviceSample {
	std::string name;
	std::array<Counter, kCounters.size()> counters;
};

struct Sample {
	uint64_t interval_ms = 0;
	std::vector<DeviceSample> devices;
	std::vector<QpSample> qps; /* by process, device, number and program; each set once */
};

/** Returns when the interval ends that follows the one that was to end at @due, and ended @now. */
inline uint64_t next_due(uint64_t due, uint64_t now, uint64_t interval)
{
	/* Do not catch up with what was missed: each sample would be of no time. */
	return due + interval > now ? due + interval : now + interval;
}

/** Compares each set of counts with the one before. */
class Sampler {
public:
	/** @first is what the intervals begin with. */
	explicit Sampler(Counts first);

	Sample next(Counts counts);

private:
	using QpId = std::tuple<uint32_t, uint64_t, uint32_t>; /* process, device, number */
	using Totals = std::map<QpId, tern_qp_stats>;

	static QpId id_of(const tern_qp_key &key) { return {key.tgid, key.device, key.qpn}; }
	QpSample sample(const Counts &counts, const Counts::Qp &qp) const;
	DeviceSample sample(const Device &device) const;
	void repeat_unknown(Device &device) const;

	Counts last_;
	Totals totals_;
};

} // namespace tern::tools
