/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/memory/page_list.h"
#include "qemu/rnic/queues/tag_list.h"
#include "tern/tern_hw.h"

namespace tern {

/** What an SRQ that matches tags has besides its slots: a list of buffers, and in host memory the
 * ring of operations by which the host changes it. */
class TagQueue {
public:
	struct Config {
		PageList pages;
		uint32_t ring_offset = 0;
		uint8_t log_ring = 0;
		uint8_t log_list = 0;
		uint32_t db_page = 0;
	};

	explicit TagQueue(const Config &config) : config_(config), list_(1u << config.log_list) {}

	const Config &config() const { return config_; }
	TagList &list() { return list_; }

	/** The doorbell. False when it says more than the ring holds. */
	bool ring(uint32_t pi);
	enum class Step {
		None, /* nothing is posted */
		Done,
		Complete, /* done, and the CQE is to be written */
		Fault,    /* the ring could not be read */
	};
	/** Executes the operation that was posted first; @cqe lacks its SRQN and timestamp. */
	Step execute(Memory &memory, hw::tern_hw_cqe &cqe);

private:
	hw::tern_hw_cqe_status execute(const hw::tern_hw_tag_op &op);

	Config config_;
	TagList list_;
	uint32_t ci_ = 0;
	uint32_t pi_ = 0;
};

} // namespace tern
