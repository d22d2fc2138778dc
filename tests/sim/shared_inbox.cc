// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/shared_inbox.h"

namespace tern::sim {

using namespace hw;

SharedInbox::SharedInbox(Node &node, Rng &rng, uint32_t pd, const test::SrqOptions &options,
                         uint32_t max_size)
        : driver_(node.driver), max_size_(max_size),
          area_(node, rng, pd, uint64_t{max_size} * 64, TERN_ACCESS_LOCAL_WRITE, false),
          srq_(driver_.create_srq(options))
{
}

void SharedInbox::act(Rng &rng)
{
	if (srq_->options.log_size < 6 && rng.chance(1, 50))
		srq_->resize(srq_->options.log_size + 1);
	for (auto n = rng.below(6); n > 0 && !srq_->full(); n--) {
		std::vector<Sge> sges;
		const auto pieces = rng.between(1, 1u << (srq_->options.log_stride - 4));
		const uint64_t begin = uint64_t{srq_->next_slot()} * max_size_;
		uint32_t used = 0;
		for (auto i = pieces; i > 0; i--) {
			const uint32_t left = max_size_ - used;
			const auto part = static_cast<uint32_t>(i == 1 ? left : rng.below(left));
			sges.push_back(area_.mr.sge(begin + used, part));
			used += part;
		}
		slots_[srq_->post(sges)] = std::move(sges);
	}
}

std::vector<std::byte> SharedInbox::take(uint32_t slot, size_t size)
{
	std::vector<std::byte> data;
	for (const Sge &sge : slots_[slot]) {
		const auto part = area_.mr.read(sge.addr - area_.mr.va, sge.length);
		data.insert(data.end(), part.begin(), part.end());
	}
	data.resize(size);
	srq_->release(slot);
	return data;
}

bool SharedInbox::destroy()
{
	return driver_.destroy(TERN_AQ_DESTROY_SRQ, srq_->number) == TERN_AQ_OK &&
	       driver_.destroy(TERN_AQ_DESTROY_MR, area_.mr.key) == TERN_AQ_OK;
}

} // namespace tern::sim
