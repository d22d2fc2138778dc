/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "qemu/rnic/formats/tag_header.h"
#include "qemu/rnic/memory/region.h"
#include "qemu/rnic/queues/wqe.h"
#include "qemu/rnic/ring_buffer.h"

namespace tern {

/** A message that has matched a tag and whose data this card fetches from the sender's memory: by a
 * READ, and then it tells the sender by a SEND of the headers, with opcode FIN. */
struct Rendezvous {
	uint32_t entry = 0; /* of the list */
	Sge buffer;
	headers::TagMatching tag{};
	headers::Rendezvous from{};

	/** The work requests, as if they came from a send queue. */
	void make_read(SendWqe &wqe) const;
	void make_fin(SendWqe &wqe) const;
};

/** Those of a QP, in the order of their messages, which is that of their READs and of their FINs.
 */
class RendezvousQueue {
public:
	void push(const Rendezvous &rendezvous) { items_.push_back(rendezvous); }

	/** Whether one waits for its READ, or its FIN, to be started. */
	bool read_due() const { return reads_started_ != first_ + items_.size(); }
	bool fin_due() const { return fins_started_ != reads_ended_; }
	bool due() const { return read_due() || fin_due(); }
	/** Number of the one whose READ, or @fin, is next. */
	uint32_t next(bool fin) const { return fin ? fins_started_ : reads_started_; }
	void start(bool fin) { (fin ? fins_started_ : reads_started_)++; }
	const Rendezvous &operator[](uint32_t number) const { return items_[number - first_]; }
	uint32_t reads_under_way() const { return reads_started_ - reads_ended_; }

	/** The oldest READ, or FIN, under way has ended. */
	void end_read() { reads_ended_++; }
	void end_fin();

	/** Forgets all; @lost(entry) is told of those whose READ has not ended. */
	template <typename Lost>
	void clear(Lost lost);

private:
	RingBuffer<Rendezvous> items_;
	/* numbers, free-running: first_ <= fins_started_ <= reads_ended_ <= reads_started_ */
	uint32_t first_ = 0;
	uint32_t fins_started_ = 0;
	uint32_t reads_ended_ = 0;
	uint32_t reads_started_ = 0;
};

template <typename Lost>
void RendezvousQueue::clear(Lost lost)
{
	const uint32_t fetched = reads_ended_ - first_;
	/* Empty before anyone is told, who may come back to us. */
	const auto items = std::exchange(items_, {});
	first_ += static_cast<uint32_t>(items.size());
	fins_started_ = reads_ended_ = reads_started_ = first_;
	for (size_t i = fetched; i < items.size(); i++)
		lost(items[i].entry);
}

} // namespace tern
