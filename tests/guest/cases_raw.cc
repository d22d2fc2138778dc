// SPDX-License-Identifier: GPL-2.0-or-later
/* Raw packet QPs: whole frames out, and in what flows ask for. */
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "cases.h"
#include "lone_qp.h"

namespace tern::guest {
namespace {

constexpr size_t kFrame = 200;
constexpr uint16_t kEthertype = 0x88b5, kOtherEthertype = 0x88b6; /* for local experiments */
constexpr size_t kRoom = 2048;

using Mac = std::array<uint8_t, 6>;
using FlowPtr = std::unique_ptr<ibv_flow, Releaser<ibv_destroy_flow>>;

/* The MAC of the net_device that our GID is of. */
Mac own_mac(const Device &device)
{
	const std::string port = format("/sys/class/infiniband/%s/ports/1",
	                                ibv_get_device_name(device.context()->device));
	std::string netdev, text;
	std::ifstream(port + format("/gid_attrs/ndevs/%u", device.gid_index())) >> netdev;
	std::ifstream("/sys/class/net/" + netdev + "/address") >> text;
	Mac mac;
	check(std::sscanf(text.c_str(), "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2],
	                  &mac[3], &mac[4], &mac[5]) == 6,
	      "no MAC for the GID: \"%s\"", text.c_str());
	return mac;
}

/** A flow's specs, one after the other behind its head. */
struct EthFlow {
	ibv_flow_attr attr;
	ibv_flow_spec_eth eth;
};
struct UdpFlow {
	ibv_flow_attr attr;
	ibv_flow_spec_eth eth;
	ibv_flow_spec_ipv4 ip;
	ibv_flow_spec_tcp_udp udp;
};
struct PortFlow {
	ibv_flow_attr attr;
	ibv_flow_spec_eth eth;
	ibv_flow_spec_tcp_udp udp;
};

ibv_flow_spec_eth eth_spec(const Mac &destination, uint16_t ethertype)
{
	ibv_flow_spec_eth spec = {};
	spec.type = IBV_FLOW_SPEC_ETH;
	spec.size = sizeof(spec);
	std::copy(destination.begin(), destination.end(), spec.val.dst_mac);
	std::fill_n(spec.mask.dst_mac, 6, 0xff);
	spec.val.ether_type = htons(ethertype);
	spec.mask.ether_type = 0xffff;
	return spec;
}

ibv_flow_attr flow_attr(uint8_t specs, uint16_t size)
{
	ibv_flow_attr attr = {};
	attr.type = IBV_FLOW_ATTR_NORMAL;
	attr.size = size;
	attr.num_of_specs = specs;
	attr.port = 1;
	return attr;
}

FlowPtr eth_flow(const LoneQp &qp, const Mac &destination, uint16_t ethertype)
{
	EthFlow flow = {flow_attr(1, sizeof(flow)), eth_spec(destination, ethertype)};
	return FlowPtr(ibv_create_flow(qp.get(), &flow.attr));
}

void write_frame(std::span<uint8_t> frame, const Mac &to, const Mac &from, uint16_t ethertype,
                 uint64_t seed)
{
	fill(frame, seed);
	std::copy(to.begin(), to.end(), frame.begin());
	std::copy(from.begin(), from.end(), frame.begin() + 6);
	frame[12] = static_cast<uint8_t>(ethertype >> 8);
	frame[13] = static_cast<uint8_t>(ethertype);
}

/* Receives @count frames, and no other. @write(frame, n) writes what the nth is to be. */
template <class Write>
void expect_frames(Session &s, const LoneQp &qp, const Buffer &buffer, uint64_t count, Write write)
{
	std::array<uint8_t, kFrame> expected;

	for (uint64_t n = 0; n < count; n++) {
		check(!qp.post_recv(n, buffer.sge(0, kRoom)), "ibv_post_recv");
		s.peer.barrier(1);
		const ibv_wc wc = qp.completion();
		check(wc.status == IBV_WC_SUCCESS && wc.byte_len == kFrame, "RECV of %u bytes: %s",
		      wc.byte_len, ibv_wc_status_str(wc.status));
		write(std::span<uint8_t>(expected), n);
		check(std::equal(expected.begin(), expected.end(), buffer.data()),
		      "frame %lu has other bytes", n);
	}
	check(qp.silent(), "a frame that does not match the flow");
}

/* What matches arrives, byte for byte; what does not goes elsewhere. */
void frames(Session &s)
{
	constexpr uint64_t kFrames = 20;
	const LoneQp qp(s.device, IBV_QPT_RAW_PACKET);
	const Buffer buffer(s.device, kRoom);
	const Mac ours = own_mac(s.device), theirs = s.peer.exchange(ours);

	qp.lead_to(IBV_QPS_RTS);
	if (s.active) {
		for (uint64_t n = 0; n < kFrames; n++) {
			s.peer.barrier(1);
			for (const uint16_t ethertype : {kOtherEthertype, kEthertype}) {
				write_frame(buffer.bytes().first(kFrame), theirs, ours, ethertype,
				            n);
				check(!qp.post_send(n, buffer.sge(0, kFrame)), "ibv_post_send");
				const ibv_wc wc = qp.completion();
				check(wc.status == IBV_WC_SUCCESS, "SEND: %s",
				      ibv_wc_status_str(wc.status));
			}
		}
		return;
	}

	const FlowPtr flow = eth_flow(qp, ours, kEthertype);
	check(flow.get(), "ibv_create_flow: %s", std::strerror(errno));
	expect_frames(s, qp, buffer, kFrames, [&](std::span<uint8_t> frame, uint64_t n) {
		write_frame(frame, ours, theirs, kEthertype, n);
	});
}

/* A flow names a VLAN: frames of another one, or of none, are not for it. */
void vlan(Session &s)
{
	constexpr uint16_t kVlan = 77, kOtherVlan = 78, kPriority = 5 << 13, kVlanId = 0xfff;
	constexpr uint64_t kFrames = 10;
	constexpr size_t kTag = 4;
	const LoneQp qp(s.device, IBV_QPT_RAW_PACKET);
	const Buffer buffer(s.device, kRoom);
	const Mac ours = own_mac(s.device), theirs = s.peer.exchange(ours);
	const auto write_tagged = [](std::span<uint8_t> frame, const Mac &to, const Mac &from,
	                             uint16_t tci, uint64_t seed) {
		/* The frame behind its addresses moves up, to make room for the tag. */
		write_frame(frame.subspan(kTag), to, from, kEthertype, seed);
		std::copy_n(frame.begin() + kTag, 12, frame.begin());
		frame[12] = 0x81;
		frame[13] = 0;
		frame[14] = static_cast<uint8_t>(tci >> 8);
		frame[15] = static_cast<uint8_t>(tci);
	};

	qp.lead_to(IBV_QPS_RTS);
	if (s.active) {
		const auto send = [&](size_t length) {
			check(!qp.post_send(1, buffer.sge(0, length)), "ibv_post_send");
			check(qp.completion().status == IBV_WC_SUCCESS, "SEND");
		};
		for (uint64_t n = 0; n < kFrames; n++) {
			s.peer.barrier(1);
			write_frame(buffer.bytes().first(kFrame), theirs, ours, kEthertype, n);
			send(kFrame);
			for (const uint16_t id : {kOtherVlan, kVlan}) {
				write_tagged(buffer.bytes().first(kFrame), theirs, ours,
				             id | (n & 1 ? kPriority : 0), n);
				send(kFrame);
			}
		}
		return;
	}

	EthFlow steered = {flow_attr(1, sizeof(steered)), eth_spec(ours, kEthertype)};
	steered.eth.val.vlan_tag = htons(kVlan);
	steered.eth.mask.vlan_tag = htons(kVlanId);
	const FlowPtr flow(ibv_create_flow(qp.get(), &steered.attr));
	check(flow.get(), "a flow of a VLAN: %s", std::strerror(errno));
	expect_frames(s, qp, buffer, kFrames, [&](std::span<uint8_t> frame, uint64_t n) {
		write_tagged(frame, ours, theirs, kVlan | (n & 1 ? kPriority : 0), n);
	});
}

/* A flow that is gone gets nothing more. */
void flow_goes(Session &s)
{
	const LoneQp qp(s.device, IBV_QPT_RAW_PACKET);
	const Buffer buffer(s.device, kRoom);
	const Mac ours = own_mac(s.device), theirs = s.peer.exchange(ours);

	qp.lead_to(IBV_QPS_RTS);
	FlowPtr flow = s.active ? nullptr : eth_flow(qp, ours, kEthertype);
	check(s.active || flow, "ibv_create_flow: %s", std::strerror(errno));
	check(s.active || ibv_destroy_qp(qp.get()) == EBUSY, "a QP goes before its flow");
	flow.reset();
	if (!s.active)
		check(!qp.post_recv(1, buffer.sge(0, kRoom)), "ibv_post_recv");
	s.peer.barrier(1);
	if (s.active) {
		write_frame(buffer.bytes().first(kFrame), theirs, ours, kEthertype, 1);
		check(!qp.post_send(2, buffer.sge(0, kFrame)), "ibv_post_send");
		check(qp.completion().status == IBV_WC_SUCCESS, "SEND");
	}
	s.peer.barrier(2);
	check(qp.silent(), "a frame without a flow");
}

UdpFlow udp_flow(uint16_t port)
{
	UdpFlow flow = {flow_attr(3, sizeof(flow)), eth_spec({}, 0x0800), {}, {}};
	flow.ip.type = IBV_FLOW_SPEC_IPV4;
	flow.ip.size = sizeof(flow.ip);
	flow.udp.type = IBV_FLOW_SPEC_UDP;
	flow.udp.size = sizeof(flow.udp);
	flow.udp.val.dst_port = htons(port);
	flow.udp.mask.dst_port = 0xffff;
	return flow;
}

/* ---- UDP: by port to the QP, and otherwise to the net_device ------------------------------ */

constexpr uint16_t kFlowPort = 5000, kSocketPort = 5001;
constexpr size_t kHeaders = 14 + 20 + 8, kPayload = 100;

/** A socket that waits for UDP on a port. */
class UdpSocket {
public:
	explicit UdpSocket(uint16_t port) : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0))
	{
		sockaddr_in any = {};
		any.sin_family = AF_INET;
		any.sin_port = htons(port);
		check(!bind(fd_.fd(), reinterpret_cast<sockaddr *>(&any), sizeof(any)),
		      "bind to UDP port %u: %s", port, std::strerror(errno));
	}
	/** Whether a datagram has come by now, or does within @patience. */
	bool receives(Clock::duration patience) const
	{
		char byte;
		return eventually([&] { return recv(fd_.fd(), &byte, 1, 0) >= 0; }, patience);
	}

private:
	Socket fd_;
};

void put16(std::span<uint8_t> frame, size_t at, size_t value)
{
	frame[at] = static_cast<uint8_t>(value >> 8);
	frame[at + 1] = static_cast<uint8_t>(value);
}

/* The checksum of an IPv4 header whose own field is zero (RFC 1071). */
uint16_t ip_checksum(std::span<const uint8_t> header)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < header.size(); i += 2)
		sum += static_cast<uint32_t>(header[i] << 8 | header[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	return static_cast<uint16_t>(~(sum + (sum >> 16)));
}

void write_udp_frame(std::span<uint8_t> frame, const Mac &to, const Mac &from,
                     const ibv_gid &to_gid, const ibv_gid &from_gid, uint16_t port)
{
	write_frame(frame, to, from, 0x0800, port);
	const auto ip = frame.subspan(14, 20);
	std::fill(ip.begin(), ip.end(), uint8_t{0});
	ip[0] = 0x45;
	put16(ip, 2, frame.size() - 14);
	ip[8] = 64;
	ip[9] = IPPROTO_UDP;
	std::copy_n(from_gid.raw + 12, 4, &ip[12]);
	std::copy_n(to_gid.raw + 12, 4, &ip[16]);
	put16(ip, 10, ip_checksum(ip));
	const auto udp = frame.subspan(34, 8);
	put16(udp, 0, 4000);
	put16(udp, 2, port);
	put16(udp, 4, 8 + kPayload);
	put16(udp, 6, 0); /* no checksum */
}

/* A flow takes its port from the net_device, and leaves the others there. */
void udp(Session &s)
{
	constexpr size_t kLength = kHeaders + kPayload;
	const LoneQp qp(s.device, IBV_QPT_RAW_PACKET);
	const Buffer buffer(s.device, kRoom);
	const Mac ours = own_mac(s.device), theirs = s.peer.exchange(ours);
	const ibv_gid our_gid = s.device.gid(), their_gid = s.peer.exchange(our_gid);

	qp.lead_to(IBV_QPS_RTS);
	if (s.active) {
		s.peer.barrier(1);
		for (const uint16_t port : {kFlowPort, kSocketPort}) {
			write_udp_frame(buffer.bytes().first(kLength), theirs, ours, their_gid,
			                our_gid, port);
			check(!qp.post_send(1, buffer.sge(0, kLength)), "ibv_post_send");
			check(qp.completion().status == IBV_WC_SUCCESS, "SEND");
		}
		s.peer.barrier(2);
		return;
	}

	UdpFlow steered = udp_flow(kFlowPort);
	steered.eth = eth_spec(ours, 0x0800);
	const FlowPtr flow(ibv_create_flow(qp.get(), &steered.attr));
	check(flow.get(), "a UDP flow: %s", std::strerror(errno));
	const UdpSocket taken(kFlowPort), left(kSocketPort);
	check(!qp.post_recv(2, buffer.sge(0, kRoom)), "ibv_post_recv");
	s.peer.barrier(1);
	const ibv_wc wc = qp.completion();
	check(wc.status == IBV_WC_SUCCESS && wc.byte_len == kLength, "a frame of %u bytes",
	      wc.byte_len);
	std::array<uint8_t, kLength> expected;
	write_udp_frame(expected, ours, theirs, our_gid, their_gid, kFlowPort);
	check(std::equal(expected.begin(), expected.end(), buffer.data()), "another frame");
	/* The other side posts its second frame when the first one has completed. This barrier
	 * waits until both have. */
	s.peer.barrier(2);
	/* A host takes nothing from the wire that claims to come from itself. */
	if (ours != theirs)
		check(left.receives(10s), "the net_device did not get what no flow asks for");
	check(!taken.receives(500ms), "the net_device got what the flow asks for");
}

void expect_refused(const LoneQp &qp, ibv_flow_attr &attr, int error, const char *what)
{
	const FlowPtr flow(ibv_create_flow(qp.get(), &attr));
	check(!flow && errno == error, "%s: %s instead of %s", what,
	      flow ? "taken" : std::strerror(errno), std::strerror(error));
}

/* Flows that contradict themselves, and what the card does not do. */
void flows_refused(Session &s)
{
	const LoneQp qp(s.device, IBV_QPT_RAW_PACKET), ud(s.device, IBV_QPT_UD);
	UdpFlow good = udp_flow(5000);
	const FlowPtr taken(ibv_create_flow(qp.get(), &good.attr));
	check(taken.get(), "a UDP flow: %s", std::strerror(errno));

	EthFlow eth = {flow_attr(1, sizeof(eth)), eth_spec({}, kEthertype)};
	expect_refused(ud, eth.attr, EOPNOTSUPP, "a flow of a UD QP");
	eth.attr.port = 2;
	expect_refused(qp, eth.attr, EINVAL, "a port that there is not");
	eth.attr.port = 1;
	eth.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	expect_refused(qp, eth.attr, EOPNOTSUPP, "DONT_TRAP");
	eth.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	expect_refused(qp, eth.attr, EOPNOTSUPP, "EGRESS");
	eth.attr.flags = 0;
	eth.attr.port = 2;
	expect_refused(qp, eth.attr, EINVAL, "port 2");
	eth.attr.port = 1;
	eth.attr.type = IBV_FLOW_ATTR_SNIFFER;
	expect_refused(qp, eth.attr, EINVAL, "a sniffer that looks for something");

	UdpFlow wrong = udp_flow(5000);
	wrong.eth = eth_spec({}, kEthertype);
	expect_refused(qp, wrong.attr, EINVAL, "IPv4 in frames of another ethertype");
	PortFlow port = {flow_attr(2, sizeof(port)), good.eth, good.udp};
	expect_refused(qp, port.attr, EINVAL, "UDP without IP");
	eth.attr.type = static_cast<ibv_flow_attr_type>(IBV_FLOW_ATTR_SNIFFER + 1);
	expect_refused(qp, eth.attr, EINVAL, "no type");
	eth.attr.type = IBV_FLOW_ATTR_NORMAL;
	eth.attr.num_of_specs = 2;
	expect_refused(qp, eth.attr, EINVAL, "fewer specs than it says");
	eth.attr.num_of_specs = 1;
	eth.eth.type = IBV_FLOW_SPEC_VXLAN_TUNNEL;
	expect_refused(qp, eth.attr, EOPNOTSUPP, "a VXLAN tunnel");
	struct {
		ibv_flow_attr attr;
		ibv_flow_spec_eth first, second;
	} twice = {flow_attr(2, sizeof(twice)), good.eth, good.eth};
	expect_refused(qp, twice.attr, EINVAL, "two Ethernet headers");
}

/* ---- counters ----------------------------------------------------------------------------- */

struct CountersDeleter {
	void operator()(ibv_counters *counters) const { ibv_destroy_counters(counters); }
};
using CountersPtr = std::unique_ptr<ibv_counters, CountersDeleter>;

/* As eth_flow(), counted. Specs have no gaps between them, so this one has no struct. */
FlowPtr counted_flow(const LoneQp &qp, const Mac &destination, ibv_counters *counters, int times)
{
	const ibv_flow_spec_eth eth = eth_spec(destination, kEthertype);
	const ibv_flow_spec_counter_action count = {IBV_FLOW_SPEC_ACTION_COUNT, sizeof(count),
	                                            counters};
	alignas(8) std::array<std::byte, sizeof(ibv_flow_attr) + sizeof(eth) + 2 * sizeof(count)>
	        flow;
	size_t size = 0;
	const auto append = [&](const auto &part) {
		std::memcpy(flow.data() + size, &part, sizeof(part));
		size += sizeof(part);
	};
	append(flow_attr(static_cast<uint8_t>(1 + times),
	                 static_cast<uint16_t>(sizeof(ibv_flow_attr) + sizeof(eth) +
	                                       static_cast<size_t>(times) * sizeof(count))));
	append(eth);
	for (int i = 0; i < times; i++)
		append(count);
	return FlowPtr(ibv_create_flow(qp.get(), reinterpret_cast<ibv_flow_attr *>(flow.data())));
}

void attach(ibv_counters *counters, ibv_counter_description what, uint32_t index)
{
	ibv_counter_attach_attr attr = {what, index, 0};
	const int err = ibv_attach_counters_point_flow(counters, &attr, nullptr);
	check(!err, "ibv_attach_counters_point_flow: %s", std::strerror(err));
}

/* All that a flow takes is counted, received or not, and nothing else. */
void counters(Session &s)
{
	constexpr uint64_t kFrames = 12, kReceived = 5;
	const LoneQp qp(s.device, IBV_QPT_RAW_PACKET);
	const Buffer buffer(s.device, kRoom);
	const Mac ours = own_mac(s.device), theirs = s.peer.exchange(ours);

	qp.lead_to(IBV_QPS_RTS);
	if (s.active) {
		s.peer.barrier(1);
		for (uint64_t n = 0; n < kFrames; n++)
			for (const uint16_t ethertype : {kOtherEthertype, kEthertype}) {
				write_frame(buffer.bytes().first(kFrame), theirs, ours, ethertype,
				            n);
				check(!qp.post_send(n, buffer.sge(0, kFrame)), "ibv_post_send");
				check(qp.completion().status == IBV_WC_SUCCESS, "SEND");
			}
		s.peer.barrier(2);
		return;
	}

	ibv_counters_init_attr init = {};
	CountersPtr counters(ibv_create_counters(s.device.context(), &init));
	check(counters.get(), "ibv_create_counters: %s", std::strerror(errno));
	attach(counters.get(), IBV_COUNTER_BYTES, 0);
	attach(counters.get(), IBV_COUNTER_PACKETS, 2);
	/* Of an index that is attached to more than once, the value is the sum. */
	attach(counters.get(), IBV_COUNTER_PACKETS, 3);
	attach(counters.get(), IBV_COUNTER_BYTES, 3);
	check(!counted_flow(qp, ours, counters.get(), 2) && errno == EINVAL, "counted twice");
	FlowPtr flow = counted_flow(qp, ours, counters.get(), 1);
	check(flow.get(), "a flow with counters: %s", std::strerror(errno));
	ibv_counter_attach_attr late = {IBV_COUNTER_PACKETS, 0, 0};
	check(ibv_attach_counters_point_flow(counters.get(), &late, nullptr) == EBUSY,
	      "attached to counters that a flow uses");
	for (uint64_t n = 0; n < kReceived; n++)
		check(!qp.post_recv(n, buffer.sge(0, kRoom)), "ibv_post_recv");
	s.peer.barrier(1);
	s.peer.barrier(2);
	std::array<uint64_t, 4> values;
	const auto counted = [&] {
		values.fill(77);
		const int err = ibv_read_counters(counters.get(), values.data(), values.size(), 0);
		check(!err, "ibv_read_counters: %s", std::strerror(err));
		return values[2] >= kFrames;
	};
	check(eventually(counted), "%lu packets, not %lu", values[2], kFrames);
	check(values == std::array<uint64_t, 4>{kFrames * kFrame, 0, kFrames,
	                                        kFrames * kFrame + kFrames},
	      "%lu, %lu, %lu, %lu", values[0], values[1], values[2], values[3]);
	check(ibv_destroy_counters(counters.get()) == EBUSY, "counters go before their flow");
	flow.reset();
	check(!ibv_destroy_counters(counters.release()), "ibv_destroy_counters");
}

constexpr Case kCases[] = {
        {"raw", "frames that a flow asks for, and others", frames},
        {"raw-vlan", "frames of the VLAN that a flow asks for, and others", vlan},
        {"raw-udp", "a UDP port for the QP, another for the net_device", udp},
        {"raw-counters", "counters of a flow", counters},
        {"raw-flow-goes", "a flow that is destroyed", flow_goes},
        {"raw-flows-refused", "flows that are none", flows_refused},
};

} // namespace

std::span<const Case> raw_cases()
{
	return kCases;
}

} // namespace tern::guest
