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

/** A message that has matched a tag and whose data the card fetches from the sender: by a READ,
 * followed by a SEND of the headers with opcode FIN to tell the sender. */
struct Rendezvous {
	uint32_t entry = 0; /* in the tag list */
	Sge buffer;
	headers::TagMatching tag{};
	headers::Rendezvous from{};

	/** Builds the work requests of READ and FIN, as if read from a send queue. */
	void make_read(SendWqe &wqe) const;
	void make_fin(SendWqe &wqe) const;
};

/** The rendezvous of a QP in the order of their messages, which is also that of their READs and
 * FINs. */
class RendezvousQueue {
public:
	void push(const Rendezvous &rendezvous) { items_.push_back(rendezvous); }

	/** Whether a READ, or a FIN, is to be started. */
	bool read_due() const { return reads_started_ != first_ + items_.size(); }
	bool fin_due() const { return fins_started_ != reads_ended_; }
	bool due() const { return read_due() || fin_due(); }
	/** Number of the rendezvous whose READ (@fin: FIN) is next. */
	uint32_t next(bool fin) const { return fin ? fins_started_ : reads_started_; }
	void start(bool fin) { (fin ? fins_started_ : reads_started_)++; }
	const Rendezvous &operator[](uint32_t number) const { return items_[number - first_]; }
	uint32_t reads_under_way() const { return reads_started_ - reads_ended_; }
	/** READs and FINs under way. */
	uint32_t requests() const { return reads_under_way() + fins_started_ - first_; }

	/** The oldest outstanding READ, or FIN, has completed. */
	void end_read() { reads_ended_++; }
	void end_fin();

	/** Drops all; calls @lost(entry) for those whose READ has not completed. */
	template <typename Lost>
	void clear(Lost lost);

private:
	RingBuffer<Rendezvous> items_;
	/* Free-running numbers: first_ <= fins_started_ <= reads_ended_ <= reads_started_ */
	uint32_t first_ = 0;
	uint32_t fins_started_ = 0;
	uint32_t reads_ended_ = 0;
	uint32_t reads_started_ = 0;
};

template <typename Lost>
void RendezvousQueue::clear(Lost lost)
{
	const uint32_t fetched = reads_ended_ - first_;
	/* Empty the queue before calling @lost, which may re-enter it. */
	const auto items = std::exchange(items_, {});
	first_ += static_cast<uint32_t>(items.size());
	fins_started_ = reads_ended_ = reads_started_ = first_;
	for (size_t i = fetched; i < items.size(); i++)
		lost(items[i].entry);
}

} // namespace tern
