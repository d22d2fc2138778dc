/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/memory/page_list.h"
#include "qemu/rnic/queues/tag_list.h"
#include "tern/tern_hw.h"

namespace tern {

/** The tag matching state of an SRQ: a list of buffers, and in host memory the ring of operations
 * by which the host changes it. */
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

	/** Doorbell. Returns false if it announces more than the ring holds. */
	bool ring(uint32_t pi);
	/** Whether no operation is posted. */
	bool empty() const { return ci_ == pi_; }
	enum class Step {
		Done,
		Complete, /* done, and the CQE must be written */
		Fault,    /* the ring could not be read */
	};
	/** Executes the oldest posted operation, if not empty(); SRQN and timestamp of @cqe are
	 * left to the caller. */
	Step execute(Memory &memory, hw::tern_hw_cqe &cqe);

private:
	hw::tern_hw_cqe_status execute(const hw::tern_hw_tag_op &op);

	Config config_;
	TagList list_;
	uint32_t ci_ = 0;
	uint32_t pi_ = 0;
};

} // namespace tern
