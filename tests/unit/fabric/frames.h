/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames for tests of the fabric, and hosts that keep what they get. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "qemu/fabric/topology.h"
#include "qemu/rnic/formats/packet.h"

namespace tern::fabric::test {

using Bytes = std::vector<std::byte>;

constexpr Mac mac(uint8_t i)
{
	return {2, 0, 0, 0, 0, i};
}
constexpr Mac kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/** What a RoCEv2 frame of a WRITE differs in. */
struct FrameSpec {
	uint8_t from = 1;
	uint8_t to = 2;
	uint8_t traffic_class = 0;
	uint16_t udp_sport = 0xc000;
	uint16_t vlan = kNoVlan;
	uint8_t pcp = 0;
	bool ipv6 = false;
	size_t payload = 1024;
};

inline Gid gid(uint8_t i, bool ipv6)
{
	if (ipv6)
		return {{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, i}};
	return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, i}};
}

inline Bytes roce_frame(const FrameSpec &spec)
{
	AddressVector av;
	av.smac = mac(spec.from);
	av.dmac = mac(spec.to);
	av.sgid = gid(spec.from, spec.ipv6);
	av.dgid = gid(spec.to, spec.ipv6);
	av.traffic_class = spec.traffic_class;
	av.udp_sport = spec.udp_sport;
	av.vlan = spec.vlan;
	av.sl = spec.pcp;
	Bth bth;
	bth.opcode = opcode_of(Service::Rc, Opcode::RcWriteMiddle);
	Bytes out(kMaxRoceFrame);
	FrameBuilder builder(out, PathHeader(av), bth, {}, spec.payload);
	out.resize(builder.finish().size());
	return out;
}

/** A frame of @size bytes that is not IP. */
inline Bytes plain_frame(const Mac &to, const Mac &from, size_t size = 60)
{
	Bytes frame(size);
	for (size_t i = 0; i < to.size(); i++) {
		frame[i] = std::byte{to[i]};
		frame[to.size() + i] = std::byte{from[i]};
	}
	return frame;
}

/** Keeps the frames that arrive, and when. */
struct Sink : PortOwner {
	explicit Sink(EventLoop &l) : loop(l) {}

	void arrived(Port & /* port */, FramePtr frame) override
	{
		frames.emplace_back(frame->bytes().begin(), frame->bytes().end());
		times.push_back(loop.now());
	}
	void sending(Port & /* port */, Frame & /* frame */) override {}
	void departed(Port & /* port */, const Frame & /* frame */) override { left++; }

	EventLoop &loop;
	std::vector<Bytes> frames;
	std::vector<uint64_t> times;
	uint64_t left = 0;
};

/** Hosts 1, 2, ... around switches. */
struct Net {
	static constexpr LinkConfig kLink{.rate = 8'000'000'000, .delay = 1000}; /* 1 byte a ns */

	explicit Net(unsigned count, uint64_t seed = 1) : fabric(loop, seed)
	{
		for (unsigned i = 0; i < count; i++) {
			hosts.push_back(std::make_unique<Sink>(loop));
			fabric.add_host(mac(static_cast<uint8_t>(i + 1)), *hosts.back(), loop);
		}
	}
	/** Links host @i (from 1 on) to switch @number; returns the link. */
	unsigned plug(unsigned i, unsigned number, const LinkConfig &link = kLink)
	{
		return fabric.connect({Fabric::End::Kind::Host, i - 1},
		                      {Fabric::End::Kind::Switch, number}, link);
	}
	unsigned trunk(unsigned a, unsigned b, const LinkConfig &link = kLink)
	{
		return fabric.connect({Fabric::End::Kind::Switch, a},
		                      {Fabric::End::Kind::Switch, b}, link);
	}
	void send(unsigned i, const Bytes &frame)
	{
		fabric.host_port(i - 1).send(fabric.pool().make(frame, priority_of(frame)));
	}
	void run()
	{
		while (loop.step()) {
		}
	}
	Sink &host(unsigned i) { return *hosts[i - 1]; }
	size_t received(unsigned i) { return host(i).frames.size(); }

	EventLoop loop;
	std::vector<std::unique_ptr<Sink>> hosts;
	Fabric fabric;
};

} // namespace tern::fabric::test
