/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/sim/talker.h"

namespace tern::sim {

class UdTalker;

/** A multicast group, and who is attached to it. */
struct Group {
	Gid mgid;
	std::vector<uint8_t> sgid_indices; /* of senders, by address family */
	std::vector<UdTalker *> members;
};

/** What the datagram QPs of one run know of each other. */
struct Party {
	uint32_t qkey = 0;
	uint32_t max_datagram = 0;
	std::vector<UdTalker *> talkers;
	std::vector<Group> groups;
};

/** A datagram QP, which sends to any other, to itself and to groups. */
class UdTalker final : public Talker {
public:
	UdTalker(Node &node, Rng rng, uint32_t pd, const test::QpOptions &options,
	         const Conditions &conditions, Party &party, Fail fail);

	void join(Group &group);
	/** Once all talkers are there. */
	void start();
	void verify() override;

private:
	enum class Fate : uint8_t { Good, WrongKey, TooLong, NoGid };

	struct Message {
		UdTalker *to; /* null: a multicast */
		Group *group;
		uint8_t sgid_index;
		bool imm;
		Fate fate;
		std::vector<std::byte> data;
	};

	test::SendRequest request(unsigned n) override;
	bool is_bad(unsigned n) const override
	{
		return plan_[n].fate == Fate::TooLong || plan_[n].fate == Fate::NoGid;
	}
	void arrived(const hw::tern_hw_cqe &cqe, const std::vector<std::byte> &data) override;

	Message plan_one(unsigned n);
	hw::tern_hw_ud_seg address(const Message &m);
	/** Whether @receiver is one of those whom @m is for. */
	bool is_for(const Message &m, const UdTalker &receiver) const;
	void check_origin(const hw::tern_hw_cqe &cqe, const UdTalker &sender, const Message &m,
	                  std::span<const std::byte> grh) const;

	Party &party_;
	size_t me_;
	std::vector<Message> plan_;
	std::set<std::pair<uint32_t, uint32_t>> got_; /* sender and number */
};

} // namespace tern::sim
