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

/** The hosts that share memory, with one another too: any two get a pair of rings. */
class SharedHosts {
public:
	SharedHosts();

	/** Lets the others know of @port and @port of them. */
	void add(SharedPort &port);
	void remove(SharedPort &port);
	/** A new pair of rings for @port and host @id, if they have had theirs for some time. */
	void renew(SharedPort &port, Switch::PortId id);

	/** A new descriptor of what publish() writes. */
	Fd address_page() const;
	/** Tells all of them where the addresses and lanes are that @ethernet knows, and whether
	 * every frame has to pass there. */
	void publish(const Switch &ethernet, bool through_switch);

private:
	SteadyTime &paired(const SharedPort &one, const SharedPort &other);
	void pair(SharedPort &one, SharedPort &other);
	void write_addresses(const Switch &ethernet);
	void write_lanes(const Switch &ethernet);

	std::vector<SharedPort *> ports_;
	/* when, of any two ids */
	std::vector<SteadyTime> paired_;
	Fd page_fd_;
	shm::Mapping page_memory_;
	shm::AddressPage *page_ = nullptr;
	/* of what was published */
	uint64_t changes_ = 0;
};

} // namespace tern::wire
