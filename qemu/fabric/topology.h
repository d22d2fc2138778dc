/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "qemu/fabric/switch.h"
#include "qemu/rnic/formats/gid.h"

namespace tern::fabric {

/** Connects switches and the ports of hosts by links, and computes the shortest routes over the
 * links that are up. */
class Fabric {
public:
	/** What a link ends at. */
	struct End {
		enum class Kind { Host, Switch };
		Kind kind;
		unsigned number;

		bool operator==(const End &) const = default;
	};

	/** All random choices follow from @seed. */
	Fabric(EventLoop &loop, uint64_t seed) : loop_(loop), seed_(seed) {}

	/** The number of the new switch. */
	unsigned add_switch(const SwitchConfig &config);
	/** Adds a host with the address @mac, whose frames @owner receives, and returns its number.
	 * It has no link yet. @loop: the host's event loop, which may be ahead of the switches'
	 * loop or behind it by up to the delay of the host's link. */
	unsigned add_host(const Mac &mac, PortOwner &owner, EventLoop &loop);
	/** Adds a host without an address, and returns its number; learn() adds its addresses. */
	unsigned add_host(PortOwner &owner);
	/** @host has @mac (a number, as of mac_at()) now; frames to it take the shortest paths. */
	void learn(unsigned host, uint64_t mac);
	/** Whether frames to @mac go to @host. */
	bool is_at(unsigned host, uint64_t mac) const;
	/** Whether it is known which host frames to @mac go to. */
	bool knows(uint64_t mac) const { return locations_.contains(mac); }
	/** The number of the new link. A host has one link; connect all before the first frame. */
	unsigned connect(const End &a, const End &b, const LinkConfig &link);
	/** Computes the routes; to be called when all is connected. */
	void update_routes();
	/** Cuts or mends a link; the routes follow at once. */
	void set_link(unsigned link, bool up);

	FramePool &pool() { return pool_; }
	Port &host_port(unsigned host) { return *hosts_[host].port; }
	bool has_link(unsigned host) const { return hosts_[host].port != nullptr; }
	size_t switches() const { return switches_.size(); }
	Switch &at(unsigned number) { return *switches_[number]; }
	size_t links() const { return links_.size(); }
	/** The two ports of a link. */
	struct Ends {
		Port *a;
		Port *b;
	};
	Ends ends(unsigned link) const { return {links_[link].a, links_[link].b}; }

private:
	struct Host {
		std::optional<Mac> mac;
		PortOwner *owner;
		EventLoop *loop;
		std::unique_ptr<Port> port;
		std::optional<Location> location; /* none: not at a switch */
		LearnedAddresses learned{};
	};
	struct Link {
		End from;
		End to;
		Port *a;
		Port *b;
	};
	/** A link to another switch, as seen from one. */
	struct Neighbour {
		unsigned number;
		uint16_t port;
		uint16_t far_port;
	};

	Port &add_port(const End &end, const LinkConfig &link);
	void locate(const End &end, const End &at, const Port &port);
	std::vector<std::vector<Neighbour>> neighbours() const;
	void update_tree(const std::vector<std::vector<Neighbour>> &neighbours);

	EventLoop &loop_;
	uint64_t seed_;
	FramePool pool_;
	Locations locations_;
	std::vector<std::unique_ptr<Switch>> switches_;
	std::vector<Host> hosts_;
	std::vector<Link> links_;
};

} // namespace tern::fabric
