/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <memory>
#include <vector>

#include <pcap/pcap.h>

#include "qemu/wire/capture_file.h"

namespace tern::wire {

/** A pcap file with nanoseconds. */
class PcapFile final : public CaptureFile {
public:
	/** @mirror: the layout of Lumina's mirrored packets (docs/wire.md). It has RoCEv2 over IPv4
	 * alone. */
	explicit PcapFile(bool mirror) : mirror_(mirror) {}

	std::string open(const std::string &path) override;
	bool write(const Captured &captured) override;
	bool finish() override;

private:
	struct Close {
		void operator()(pcap_t *pcap) const { pcap_close(pcap); }
		void operator()(pcap_dumper_t *dumper) const { pcap_dump_close(dumper); }
	};

	bool write_mirrored(const Captured &captured);
	void put(Frame frame, const timespec &time);

	const bool mirror_;
	uint32_t sequence_ = 0; /* of mirrored packets */
	std::vector<std::byte> scratch_;
	std::unique_ptr<pcap_t, Close> pcap_;
	std::unique_ptr<pcap_dumper_t, Close> dumper_;
};

} // namespace tern::wire
