/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <string>
#include <vector>

#include "qemu/shm/address_page.h"
#include "qemu/shm/segment.h"
#include "qemu/wire/port.h"
#include "qemu/wire/switch.h"

namespace tern::wire {

class SharedPort;

/** The hosts that share memory; each two of them get a pair of rings. */
class SharedHosts {
public:
	SharedHosts();

	/** Begins a step of the switch, in which may_admit() is true until a host is added. */
	void begin_step() { may_admit_ = true; }
	/** A host that joins costs the switch a pair of rings with each other host. More than one
	 * in a step would keep the others' frames waiting. */
	bool may_admit() const { return may_admit_; }
	/** Connects @port with all other hosts. */
	void add(SharedPort &port);
	void remove(SharedPort &port);
	/** Replaces the rings of @port and host @id, unless they are recent. */
	void renew(SharedPort &port, Switch::PortId id);

	/** Returns a new descriptor of the address page. Returns none, with the cause in errno, if
	 * that fails. */
	Fd address_page() const;
	/** Publishes the addresses and lanes known to @ethernet, and whether every frame must pass
	 * through the switch. */
	void publish(const Switch &ethernet, bool through_switch);

private:
	SteadyTime &paired(const SharedPort &one, const SharedPort &other);
	void pair(SharedPort &one, SharedPort &other);
	void write_addresses(const Switch &ethernet);
	void write_lanes(const Switch &ethernet);

	std::vector<SharedPort *> ports_;
	bool may_admit_ = true;
	/* time of pairing, indexed by two ids */
	std::vector<SteadyTime> paired_;
	Fd page_fd_;
	shm::Mapping page_memory_;
	shm::AddressPage *page_ = nullptr;
	int page_error_ = 0; /* why there is no page */
	/* version of the published addresses */
	uint64_t changes_ = 0;
};

} // namespace tern::wire
