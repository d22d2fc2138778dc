/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/memory/page_list.h"
#include "qemu/rnic/queues/wqe.h"

namespace tern {

/**
 * A send queue in host memory: blocks of 64 bytes, a WQE takes one or more. Indices are
 * free-running block numbers. head is the next WQE to start; pi is where the host's posts end.
 */
class SendQueue {
public:
	/** None: nothing can be posted. */
	SendQueue() = default;
	SendQueue(const PageList &pages, uint8_t log_size, Iova record, hw::tern_hw_qp_type type)
	        : pages_(pages), record_(record), blocks_(1u << log_size), type_(type)
	{
	}

	uint32_t blocks() const { return blocks_; }
	uint32_t head() const { return head_; }
	bool empty() const { return head_ == pi_; }

	/** The doorbell's producer index. False when it is not possible for this ring. */
	bool posted(uint32_t pi);
	/** Takes over the producer index in the record (the shadow doorbell), if it is a possible
	 * one. */
	void reload(HostMemory &memory);
	/** Asks the host to ring for the next post, then looks once more. True when the queue is
	 * really empty. */
	bool sleep(HostMemory &memory);

	/** Reads and checks the WQE that starts at block @index (head, or an earlier one again). */
	Fetch fetch(Memory &memory, uint32_t index, SendWqe &wqe) const;
	/** The WQE at head, of @blocks blocks, was started. */
	void advance(uint32_t blocks) { head_ += blocks; }
	/** Gives up all that is posted: the ring makes no sense any more. */
	void skip_all() { head_ = pi_; }
	/** Empty, indices at zero, doorbell wanted. */
	void reset(HostMemory &memory);

private:
	PageList pages_;
	Iova record_ = 0;
	uint32_t blocks_ = 0;
	hw::tern_hw_qp_type type_ = hw::TERN_QPT_RC;
	uint32_t head_ = 0;
	uint32_t pi_ = 0;
};

} // namespace tern
