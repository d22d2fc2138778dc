/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "qemu/fabric/ingress.h"
#include "qemu/fabric/learned_addresses.h"
#include "qemu/fabric/port.h"
#include "qemu/fabric/red.h"

namespace tern::fabric {

/** The parameters of each port of a switch. */
struct SwitchConfig {
	uint64_t queue_limit = 1 << 20; /* bytes in each queue that is not lossless */
	Weights weights{};
	Red red{};
	PfcConfig pfc{};
};

constexpr uint64_t kGroupBit = uint64_t{1} << 40; /* of an address as a number */

/** An address as a number, its first byte in 47:40. */
uint64_t mac_at(std::span<const std::byte> frame, size_t offset);

/** Where the hosts are. */
struct Location {
	unsigned switch_number = 0;
	uint16_t port = 0;

	bool operator==(const Location &) const = default;
};
using Locations = std::unordered_map<uint64_t, Location>;

/**
 * A switch that holds a frame in the queue of the port that it goes out by, from its last bit in to
 * its last bit out.
 *
 * Frames to hosts of the topology take one of the shortest paths, chosen by a hash of the flow.
 * All others go along a spanning tree: to where their destination was heard, or everywhere.
 */
class Switch : private PortOwner {
public:
	struct Stats {
		uint64_t flooded = 0;
		uint64_t filtered = 0;    /* would go back to where they came from, or too short */
		uint64_t unreachable = 0; /* the host's switch cannot be reached */
		uint64_t pfc_dropped = 0; /* beyond the headroom */
	};

	/** All references must outlive this. */
	Switch(EventLoop &loop, FramePool &pool, const Locations &locations, unsigned number,
	       const SwitchConfig &config, uint64_t seed)
	        : number(number), loop_(loop), pool_(pool), locations_(locations), config_(config),
	          random_(seed)
	{
	}

	Port &add_port(const LinkConfig &link);
	size_t ports() const { return ports_.size(); }
	Port &port(unsigned i) { return ports_[i]->port; }
	const Ingress &ingress(unsigned i) const { return ports_[i]->ingress; }

	/** @next_hops: the ports on shortest paths to each switch. */
	void set_routes(std::vector<std::vector<uint16_t>> next_hops);
	/** Whether @port is an edge of the spanning tree. */
	void set_tree(uint16_t port, bool is_edge) { ports_[port]->in_tree = is_edge; }

	Stats stats() const;

	const unsigned number;

private:
	struct SwitchPort {
		SwitchPort(EventLoop &loop, FramePool &pool, PortOwner &owner, uint16_t number,
		           const SwitchConfig &config, const LinkConfig &link)
		        : port(loop, pool, owner, number, config.weights, link),
		          ingress(loop, port, config.pfc)
		{
		}

		Port port;
		Ingress ingress;
		bool in_tree = true;
		LearnedAddresses learned;
	};

	void arrived(Port &port, FramePtr frame) override;
	void sending(Port &port, Frame &frame) override;
	void departed(Port &port, const Frame &frame) override;
	void link_returned(Port &port) override { ports_[port.number]->ingress.link_returned(); }
	void route(FramePtr frame, const Location &to);
	void flood(FramePtr frame);
	void learn(const Frame &frame);
	bool admit(Frame &frame, uint32_t copies);
	void queue(FramePtr frame, uint16_t out);
	void send(FramePtr frame, uint16_t out);

	EventLoop &loop_;
	FramePool &pool_;
	const Locations &locations_;
	const SwitchConfig config_;
	std::mt19937_64 random_;
	std::vector<std::unique_ptr<SwitchPort>> ports_;
	std::vector<std::vector<uint16_t>> next_hops_; /* by switch */
	std::unordered_map<uint64_t, uint16_t> learned_;
	CopyCounts copies_; /* of lossless frames */
	Stats stats_;
};

} // namespace tern::fabric
