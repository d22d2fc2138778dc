/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <pcap/pcap.h>

#include "qemu/wire/framing.h"

namespace tern::wire {

/** Writes frames to a pcap file, as hosts sent them, before faults are applied. */
class Capture {
public:
	/** Starts a new file; returns an error message, or empty. */
	std::string start(const std::string &path);
	/** Completes the file. Returns an error message, or empty. */
	std::string stop();

	bool running() const { return dumper_ != nullptr; }
	uint64_t frames() const { return frames_; }
	void frame(Frame frame);

private:
	struct Close {
		void operator()(pcap_t *pcap) const { pcap_close(pcap); }
		void operator()(pcap_dumper_t *dumper) const { pcap_dump_close(dumper); }
	};

	std::unique_ptr<pcap_t, Close> pcap_;
	std::unique_ptr<pcap_dumper_t, Close> dumper_;
	uint64_t frames_ = 0;
};

} // namespace tern::wire
