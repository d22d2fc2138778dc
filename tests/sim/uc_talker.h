/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "tests/sim/talker.h"

namespace tern::sim {

/**
 * One end of an unreliable connection. Each message arrives whole and in order or not at all; of a
 * WRITE packets may be lost, but what is written never gives way to something older.
 */
class UcTalker final : public Talker {
public:
	UcTalker(Node &node, Rng rng, uint32_t pd, const test::QpOptions &options,
	         const Conditions &conditions, Fail fail);
	/** Connects both ways, and plans what both send. */
	static void connect(UcTalker &a, UcTalker &b);

	void verify() override;

	static constexpr uint32_t kMaxSize = 8192;

private:
	static constexpr unsigned kSlots = 4;

	struct Message {
		uint8_t opcode;
		unsigned slot; /* of the peer, for WRITEs */
		bool bad;
		std::vector<std::byte> data;
	};

	test::SendRequest request(unsigned n) override;
	bool is_bad(unsigned n) const override { return plan_[n].bad; }
	void arrived(const hw::tern_hw_cqe &cqe, const std::vector<std::byte> &data) override;

	void plan();
	void check_slot(unsigned slot);
	/** Which message of the peer, not before @from, the bytes at @offset of @slot are of. */
	int find_writer(unsigned slot, uint64_t offset, std::span<const std::byte> chunk,
	                int from) const;

	UcTalker *peer_ = nullptr;
	uint32_t mtu_ = 0;
	std::vector<Message> plan_;
	test::HostMr slots_;                    /* the peer writes them */
	std::vector<uint32_t> slot_sizes_;      /* as the peer writes them */
	std::vector<std::vector<int>> writers_; /* of each packet of each slot, as last seen */
	int last_ = -1;                         /* message of the peer that arrived last */
	std::set<unsigned> got_;
};

} // namespace tern::sim
