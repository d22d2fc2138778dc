// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/capture.h"

#include <cstdio>
#include <ctime>

namespace tern::wire {

constexpr int kSnapLength = 262144;

std::string Capture::start(const std::string &path)
{
	if (running())
		return "a capture is running";
	pcap_.reset(pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kSnapLength,
	                                                 PCAP_TSTAMP_PRECISION_NANO));
	if (!pcap_)
		return "out of memory";
	dumper_.reset(pcap_dump_open(pcap_.get(), path.c_str()));
	if (!dumper_)
		return pcap_geterr(pcap_.get());
	frames_ = 0;
	return {};
}

std::string Capture::stop()
{
	if (!running())
		return "no capture is running";
	const bool failed =
	        pcap_dump_flush(dumper_.get()) < 0 || std::ferror(pcap_dump_file(dumper_.get()));
	dumper_.reset();
	pcap_.reset();
	return failed ? "the file could not be written completely" : std::string();
}

void Capture::frame(Frame frame)
{
	timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	pcap_pkthdr header{};
	/* With nanosecond precision, tv_usec holds nanoseconds. */
	header.ts.tv_sec = now.tv_sec;
	header.ts.tv_usec = now.tv_nsec;
	header.caplen = header.len = static_cast<bpf_u_int32>(frame.size());
	pcap_dump(reinterpret_cast<u_char *>(dumper_.get()), &header,
	          reinterpret_cast<const u_char *>(frame.data()));
	frames_++;
}

} // namespace tern::wire
