/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tests/sim/area.h"
#include "tests/sim/node.h"
#include "tests/sim/rng.h"
#include "tests/support/host.h"

namespace tern::sim {

/**
 * A shared receive queue of a program, and the buffers in its slots. Which sender's message comes
 * into which slot is not known before it arrives.
 */
class SharedInbox {
public:
	SharedInbox(Node &node, Rng &rng, uint32_t pd, const test::SrqOptions &options,
	            uint32_t max_size);

	/** Posts some of what is free; sometimes the queue grows. */
	void act(Rng &rng);
	/** The bytes in the buffers of @slot, of which @size arrived; it is free again. */
	std::vector<std::byte> take(uint32_t slot, size_t size);
	uint32_t number() const { return srq_->number; }
	/** Takes it down. False when that fails. */
	bool destroy();

private:
	test::Driver &driver_;
	uint32_t max_size_;
	Area area_;
	std::unique_ptr<test::HostSrq> srq_;
	std::map<uint32_t, std::vector<Sge>> slots_; /* that are posted */
};

} // namespace tern::sim
