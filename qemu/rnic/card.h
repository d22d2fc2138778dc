/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <map>

#include "qemu/rnic/chores.h"
#include "qemu/rnic/config.h"
#include "qemu/rnic/control/admin_queue.h"
#include "qemu/rnic/control/registers.h"
#include "qemu/rnic/environment.h"
#include "qemu/rnic/object_table.h"
#include "qemu/rnic/port/port.h"
#include "qemu/rnic/port/receive_wq.h"
#include "qemu/rnic/queues/completion_counter.h"
#include "qemu/rnic/transport/data_path.h"
#include "qemu/rnic/transport/qp.h"

namespace tern {

struct ProtectionDomain {
	uint32_t users = 0; /* QPs, SRQs, regions and windows */
};

struct XrcDomain {
	uint32_t users = 0; /* SRQs and QPs */
};

/** Executes the operations posted to the tag queue of an SRQ. */
class TagWork final : public Chore {
public:
	TagWork(DataPath &data, uint32_t srqn) : data_(data), srqn_(srqn) {}

	bool work(unsigned &budget) override
	{
		return data_.run_tag_ops(srqn_, *data_.srqs.find(srqn_), budget);
	}

private:
	DataPath &data_;
	uint32_t srqn_;
};

/** All state of one card between two resets: the data path, and what controls it. */
struct Card : DataPath {
	Card(const CardConfig &config, const Ports &ports, bool link_up);

	/** Serves up to @most due timers; returns true if there are more. */
	bool run_timers(uint64_t now, unsigned most);
	/** Applies @parameters; false if one is out of range. */
	bool set_congestion(const CongestionParameters &parameters);

	Registers regs;
	Port port;
	AdminQueue admin;
	ObjectTable<ProtectionDomain> pds;
	ObjectTable<XrcDomain> xrcds;
	std::map<uint32_t, TagWork> tag_work; /* by SRQ; kMaxTagQueues at most */
	ObjectTable<ReceiveWq> wqs;
	ObjectTable<WqTable> wq_tables;
	ObjectTable<Qp> qps;
	ObjectTable<FlowCounters> flow_counters;
	ObjectTable<StatsSet> stats_sets;
	ObjectTable<CompletionCounter> completion_counters;
	bool link_up;
	bool enabled = false;
	/* What had stopped the card when it was reset; none once it is enabled again. */
	hw::tern_hw_fatal last_fatal = hw::TERN_FATAL_NONE;
};

} // namespace tern
