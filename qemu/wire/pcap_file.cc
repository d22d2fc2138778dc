// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/pcap_file.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fcntl.h>

#include "qemu/fabric/classify.h"
#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/packet.h"
#include "qemu/wire/output_file.h"

namespace tern::wire {

using faults::Fault;

namespace {

constexpr uint64_t kNsPerSecond = 1000000000;

/* The events of Lumina's switch. A packet with several has the one that weighs most. */
constexpr uint8_t kNoEvent = 0, kDropEvent = 1, kMarkEvent = 2, kBitErrorEvent = 3;

/* A mark may also be that of a switch's queue, which is no fault. */
uint8_t mirror_event(const Captured &captured)
{
	const auto &events = captured.events;
	const auto has = [&](Fault fault) {
		return std::ranges::any_of(
		        events, [&](const FaultEvent &event) { return event.fault == fault; });
	};
	if (has(Fault::Drop))
		return kDropEvent;
	if (has(Fault::Corrupt))
		return kBitErrorEvent;
	return has(Fault::Mark) || fabric::is_marked(captured.frame) ? kMarkEvent : kNoEvent;
}

/* The lower 48 bits, as an Ethernet address. */
Mac to_mac(uint64_t number)
{
	Mac mac;
	for (size_t i = mac.size(); i-- > 0; number >>= 8)
		mac[i] = static_cast<uint8_t>(number);
	return mac;
}

} // namespace

std::string PcapFile::open(const std::string &path)
{
	pcap_.reset(pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kSnapLength,
	                                                 PCAP_TSTAMP_PRECISION_NANO));
	if (!pcap_)
		return "out of memory";
	OutputFile file;
	const std::string error = open_output(path, O_TRUNC, file);
	if (!error.empty())
		return error;
	/* The dumper owns the file from here on, also if it cannot write to it. */
	dumper_.reset(pcap_dump_fopen(pcap_.get(), file.release()));
	return dumper_ ? "" : pcap_geterr(pcap_.get());
}

bool PcapFile::finish()
{
	return pcap_dump_flush(dumper_.get()) == 0 && !std::ferror(pcap_dump_file(dumper_.get()));
}

bool PcapFile::write(const Captured &captured)
{
	if (mirror_)
		return write_mirrored(captured);
	put(captured.frame, captured.time);
	return true;
}

bool PcapFile::write_mirrored(const Captured &captured)
{
	headers::Ethernet link;
	headers::Ipv4 ip;
	headers::Reader in(captured.frame);
	if (roce_transport(captured.frame).empty() || !in.take(link) ||
	    link.ethertype.get() != headers::kEtherIpv4 || !in.take(ip))
		return false;
	link.dmac = to_mac(static_cast<uint64_t>(captured.time.tv_sec) * kNsPerSecond +
	                   static_cast<uint64_t>(captured.time.tv_nsec));
	link.smac = to_mac(++sequence_);
	ip.ttl = mirror_event(captured);
	ip.identification = static_cast<uint16_t>(captured.port);
	ip.checksum = 0;
	ip.checksum = static_cast<uint16_t>(~headers::ipv4_sum(ip));
	scratch_.assign(captured.frame.begin(), captured.frame.end());
	std::memcpy(scratch_.data(), &link, sizeof(link));
	std::memcpy(scratch_.data() + sizeof(link), &ip, sizeof(ip));
	put(scratch_, captured.time);
	return true;
}

void PcapFile::put(Frame frame, const timespec &time)
{
	pcap_pkthdr header{};
	/* With nanosecond precision, tv_usec holds nanoseconds. */
	header.ts.tv_sec = time.tv_sec;
	header.ts.tv_usec = time.tv_nsec;
	header.caplen = header.len = static_cast<bpf_u_int32>(frame.size());
	pcap_dump(reinterpret_cast<u_char *>(dumper_.get()), &header,
	          reinterpret_cast<const u_char *>(frame.data()));
}

} // namespace tern::wire
