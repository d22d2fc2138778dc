/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/memory/page_list.h"
#include "qemu/rnic/queues/wqe.h"

namespace tern {

/** A receive queue in host memory: WQEs of one size, free-running indices, producer index in the
 * record. */
class RecvQueue {
public:
	/** No receive queue: never has a WQE. */
	RecvQueue() = default;
	/** @offset: of the queue in the QP's buffer, bytes. */
	RecvQueue(const PageList &pages, uint64_t offset, uint8_t log_size, uint8_t log_stride,
	          Iova record)
	        : pages_(pages), offset_(offset), record_(record), entries_(1u << log_size),
	          log_stride_(log_stride)
	{
	}

	/** Index of the WQE that the next message takes. */
	uint32_t head() const { return head_; }
	/** Receive WQEs posted and not yet taken; reads the record. An impossible index counts as
	 * none, and as broken(). */
	uint32_t posted(HostMemory &memory);
	/** Whether the record could not be read when it was last needed, or held an impossible
	 * index. */
	bool broken() const { return broken_; }
	/** As posted(), by the index last read. */
	uint32_t known() const { return pi_ - head_; }
	uint32_t entries() const { return entries_; }
	/** As posted() != 0, but reads the record only if no WQE is known. */
	bool has_wqe(HostMemory &memory) { return head_ != pi_ || posted(memory); }

	/** Its page list. */
	const PageList &pages() const { return pages_; }
	Fetch fetch(Memory &memory, uint32_t index, RecvWqe &wqe) const;
	void advance() { head_++; }
	void reset();

private:
	PageList pages_;
	uint64_t offset_ = 0;
	Iova record_ = 0;
	uint32_t entries_ = 0;
	uint8_t log_stride_ = 0;
	uint32_t head_ = 0;
	uint32_t pi_ = 0;
	bool broken_ = false;
};

} // namespace tern
