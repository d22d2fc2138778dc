/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tests/sim/node.h"
#include "tests/sim/rng.h"

namespace tern::sim {

/** What a kernel does for a host's regions on demand: brings pages when the card asks, which may
 * take its time, and takes some away again, or moves them. */
class Pager {
public:
	using Fail = std::function<void(const std::string &)>;

	Pager(Node &node, Rng rng, Fail fail);
	~Pager() { *alive_ = false; }

	/** PAGE_FAULT of QP @qpn. */
	void on_fault(uint32_t qpn);
	/** Takes some page away. */
	void act();

private:
	void resolve(uint32_t qpn);
	/** What RESUME_QP is to say of @fault. */
	hw::tern_hw_resume bring(const hw::tern_hw_fault &fault);

	Node &node_;
	Rng rng_;
	Fail fail_;
	std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

} // namespace tern::sim
