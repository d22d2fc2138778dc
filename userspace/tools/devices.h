// SPDX-License-Identifier: GPL-2.0-or-later
/* What the kernel tells of Tern's devices and their queues. */
#pragma once

#include <array>
#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tern::tools {

/** The counters that tell of repeated and delayed work; the names are those of hw_counters. */
inline constexpr std::array kCounters{
        "roce_retrans_pkts", "local_ack_timeout_err", "packet_seq_err",
        "rcvd_rnr_err",      "send_rnr_err",          "page_faults",
};

/** How full a CQ is: CQEs that the program has not consumed, and how many fit. */
struct CqDepth {
	uint32_t depth = 0;
	uint32_t size = 0;
};

struct Device {
	std::string name; /* of the RDMA device */
	std::string pci;
	std::array<std::optional<uint64_t>, kCounters.size()> counters{}; /* none: not readable */
	std::map<uint32_t, CqDepth> cqs; /* by number; empty without debugfs */
};

/** Reads all Tern devices of the host whose sysfs is mounted at @sys. */
std::vector<Device> read_devices(const std::string &sys = "/sys");

/** Reads the device of @folder, in class/infiniband of @sys. Nothing if it has vanished. */
std::optional<Device> read_device(const std::string &folder, const std::string &sys);

/** Returns the name of each Tern device of this host, by its PCI address. */
std::map<std::string, std::string> device_names();

/** Throws Error if a Tern device of this host has a card that does not answer the driver. */
void check_devices();

/** Parses the driver's debugfs file "CQs". Returns the depth of each CQ, by its number. */
std::map<uint32_t, CqDepth> parse_cqs(std::istream &file);

/** Whether a device has a QP of that number now. Throws Error if debugfs does not tell. */
bool has_qp(uint32_t qpn);

} // namespace tern::tools
