/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/config.h"
#include "qemu/rnic/control/admin_queue.h"
#include "qemu/rnic/control/registers.h"
#include "qemu/rnic/object_table.h"
#include "qemu/rnic/port/port.h"
#include "qemu/rnic/port/receive_wq.h"
#include "qemu/rnic/ports.h"
#include "qemu/rnic/transport/data_path.h"
#include "qemu/rnic/transport/qp.h"

namespace tern {

struct ProtectionDomain {
	uint32_t users = 0; /* QPs, SRQs, regions and windows */
};

struct XrcDomain {
	uint32_t users = 0; /* SRQs and QPs */
};

/** All state of one card between two resets: the data path, and what controls it. */
struct Card : DataPath {
	Card(const CardConfig &config, const Ports &ports, bool link_up);

	void run_timers(uint64_t now);

	Registers regs;
	Port port;
	AdminQueue admin;
	ObjectTable<ProtectionDomain> pds;
	ObjectTable<XrcDomain> xrcds;
	uint32_t tag_queues = 0; /* SRQs with a tag list, which takes memory */
	ObjectTable<ReceiveWq> wqs;
	ObjectTable<WqTable> wq_tables;
	ObjectTable<Qp> qps;
	ObjectTable<FlowCounters> flow_counters;
	bool link_up;
	bool enabled = false;
};

} // namespace tern
