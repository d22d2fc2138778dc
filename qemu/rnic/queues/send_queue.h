/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/memory/page_list.h"
#include "qemu/rnic/queues/wqe.h"

namespace tern {

/**
 * A send queue in host memory: blocks of 64 bytes; a WQE takes one or more. Indices are
 * free-running block numbers: head_ is the next WQE to start, pi_ the end of the posted ones.
 */
class SendQueue {
public:
	/** No send queue: nothing can be posted. */
	SendQueue() = default;
	SendQueue(const PageList &pages, uint8_t log_size, Iova record, hw::tern_hw_qp_type type)
	        : pages_(pages), record_(record), blocks_(1u << log_size), type_(type)
	{
	}

	uint32_t blocks() const { return blocks_; }
	uint32_t head() const { return head_; }
	/** End of the WQEs that are known to be posted. */
	uint32_t end() const { return pi_; }
	bool empty() const { return head_ == pi_; }

	/** Takes the doorbell's producer index. Returns false if it is impossible for this ring. */
	bool posted(uint32_t pi);
	/** Reads the producer index from the record (the shadow doorbell). */
	void reload(HostMemory &memory);
	/** Whether the record could not be read, or held an impossible index, since reset(). */
	bool broken() const { return broken_; }
	/** Requests a doorbell for the next post, then reads the record once more. Returns true if
	 * the queue is empty. */
	bool sleep(HostMemory &memory);

	/** Its page list. */
	const PageList &pages() const { return pages_; }

	/** Reads and validates the WQE that starts at block @index, which is head or an earlier
	 * one. */
	Fetch fetch(Memory &memory, uint32_t index, SendWqe &wqe) const;
	/** The WQE at head, of @blocks blocks, has been started. */
	void advance(uint32_t blocks) { head_ += blocks; }
	/** As advance(); drops all WQEs if the size of this one is unknown. */
	void consume(const SendWqe &wqe) { head_ = wqe.blocks ? head_ + wqe.blocks : pi_; }
	/** Drops all posted WQEs, because the ring's content is invalid. */
	void skip_all() { head_ = pi_; }
	/** Empties the queue, sets the indices to zero and requests a doorbell. */
	void reset(HostMemory &memory);

private:
	PageList pages_;
	Iova record_ = 0;
	uint32_t blocks_ = 0;
	hw::tern_hw_qp_type type_ = hw::TERN_QPT_RC;
	uint32_t head_ = 0;
	uint32_t pi_ = 0;
	bool broken_ = false;
};

} // namespace tern
