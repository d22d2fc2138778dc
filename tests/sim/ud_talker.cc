// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/ud_talker.h"

#include <algorithm>
#include <cstring>

#include "qemu/rnic/network/multicast.h"

namespace tern::sim {

using namespace hw;

namespace {

constexpr uint32_t kGrh = 40;
/* The sender and the number of the message. */
constexpr uint32_t kTag = 8;

uint32_t word_at(std::span<const std::byte> data, size_t offset)
{
	Le<uint32_t> word;
	std::memcpy(&word, data.data() + offset, sizeof(word));
	return word.get();
}

} // namespace

UdTalker::UdTalker(Node &n, Rng rng, uint32_t pd, const test::QpOptions &options,
                   const Conditions &conditions, Party &party, Fail fail)
        : Talker(n, rng, pd, options, conditions, kGrh + 2 * party.max_datagram, std::move(fail)),
          party_(party), me_(party.talkers.size())
{
	party.talkers.push_back(this);
}

void UdTalker::join(Group &group)
{
	auto c = test::make_command(TERN_AQ_ATTACH_MCAST);
	c.mcast.qpn = qp->number;
	std::ranges::copy(group.mgid.bytes, c.mcast.mgid);
	expect(node.driver.status_of(c) == TERN_AQ_OK, "ATTACH_MCAST");
	group.members.push_back(this);
}

void UdTalker::start()
{
	for (uint32_t n = 0; n < 1u << qp->options.rq_log_size; n++)
		post_recv();
	qp->start(party_.qkey, static_cast<uint32_t>(rng_.below(1 << 24)));
	for (unsigned n = 0; n < conditions_.messages; n++)
		plan_.push_back(plan_one(n));
}

UdTalker::Message UdTalker::plan_one(unsigned n)
{
	Message m{};
	if (rng_.chance(1, 4)) {
		m.group = &party_.groups[rng_.below(party_.groups.size())];
		m.sgid_index = m.group->sgid_indices[rng_.below(m.group->sgid_indices.size())];
	} else {
		m.to = party_.talkers[rng_.below(party_.talkers.size())];
		m.sgid_index = static_cast<uint8_t>(rng_.below(node.gids.size()));
	}
	m.imm = rng_.chance(1, 3);
	if (rng_.chance(1, 8))
		m.fate = static_cast<Fate>(rng_.between(1, 3));
	const auto length =
	        m.fate == Fate::TooLong
	                ? party_.max_datagram + 1
	                : static_cast<uint32_t>(rng_.between(kTag, party_.max_datagram));
	m.data = content(n, length);
	const Le<uint32_t> sender = static_cast<uint32_t>(me_);
	std::memcpy(m.data.data() + 4, &sender, sizeof(sender));
	return m;
}

tern_hw_ud_seg UdTalker::address(const Message &m)
{
	tern_hw_ud_seg to{};
	const Gid &dgid = m.group ? m.group->mgid : m.to->node.gids[m.sgid_index].gid;
	const Mac dmac = m.group ? multicast_mac(dgid) : m.to->node.mac;
	std::ranges::copy(dgid.bytes, to.dgid);
	std::ranges::copy(dmac, to.dmac);
	to.sgid_index = m.fate == Fate::NoGid ? 77 : m.sgid_index;
	to.hop_limit = 64;
	to.udp_sport = 0xc000;
	to.dest_qpn = m.group ? kMulticastQpn : m.to->qp->number;
	to.sl = static_cast<uint8_t>(rng_.below(8));
	/* Sometimes the QP is to put in its own. */
	to.qkey = m.fate == Fate::WrongKey ? party_.qkey ^ 1
	          : rng_.chance(1, 3)      ? 0x80000000 | static_cast<uint32_t>(rng_.next())
	                                   : party_.qkey;
	return to;
}

test::SendRequest UdTalker::request(unsigned n)
{
	const Message &m = plan_[n];
	test::SendRequest r;
	r.opcode = m.imm ? TERN_OP_SEND_IMM : TERN_OP_SEND;
	r.imm = n;
	r.flags = rng_.chance(1, 4) ? TERN_WQE_SOLICITED : 0;
	r.sges = source(n, m.data);
	r.to = address(m);
	return r;
}

bool UdTalker::is_for(const Message &m, const UdTalker &receiver) const
{
	if (m.fate != Fate::Good)
		return false;
	if (!m.group)
		return m.to == &receiver;
	return std::ranges::count(m.group->members, &receiver) != 0 &&
	       !(qp->options.no_mc_loopback && &receiver.node == &node);
}

void UdTalker::arrived(const tern_hw_cqe &cqe, const std::vector<std::byte> &data)
{
	if (data.size() < kGrh + kTag)
		return failure("shorter than any");
	const auto payload = std::span(data).subspan(kGrh);
	const uint32_t n = word_at(payload, 0);
	const uint32_t from = word_at(payload, 4);
	if (from >= party_.talkers.size() || n >= conditions_.messages)
		return failure("a message of nobody");
	const UdTalker &sender = *party_.talkers[from];
	const Message &m = sender.plan_[n];
	expect(std::ranges::equal(payload, m.data), "wrong data");
	expect(sender.is_for(m, *this), "a message for somebody else");
	expect((cqe.flags & TERN_CQE_GRH) != 0, "no GRH");
	expect(((cqe.flags & TERN_CQE_IMM) != 0) == m.imm, "immediate data, or none");
	expect(!m.imm || cqe.imm.get() == n, "wrong immediate data");
	check_origin(cqe, sender, m, std::span(data).first(kGrh));
	const bool first = got_.emplace(from, n).second;
	expect(first || conditions_.duplicates, "a message twice");
}

void UdTalker::check_origin(const tern_hw_cqe &cqe, const UdTalker &sender, const Message &m,
                            std::span<const std::byte> grh) const
{
	const NodeGid &source = sender.node.gids[m.sgid_index];
	const bool ipv4 = source.type == TERN_GID_ROCE_V2 && source.gid.is_ipv4();
	const auto type = source.type == TERN_GID_ROCE_V1 ? TERN_NET_ROCE_V1
	                  : ipv4                          ? TERN_NET_IPV4
	                                                  : TERN_NET_IPV6;
	expect(cqe.src_qpn.get() == sender.qp->number, "wrong source QP");
	expect(cqe.net_type == type, "wrong kind of network header");
	const auto sgid = std::as_bytes(std::span(source.gid.bytes));
	expect(ipv4 ? std::ranges::equal(grh.subspan(32, 4), sgid.last(4))
	            : std::ranges::equal(grh.subspan(8, 16), sgid),
	       "wrong source address in the GRH");
	const uint16_t vlan = cqe.vlan.get();
	expect((vlan == 0xffff ? vlan : vlan & 0xfff) == source.vlan, "wrong VLAN");
	if (!conditions_.corrupt)
		expect(std::ranges::equal(cqe.smac, sender.node.mac), "wrong source MAC");
}

void UdTalker::verify()
{
	if (!conditions_.perfect)
		return;
	for (uint32_t from = 0; from < party_.talkers.size(); from++) {
		const UdTalker &sender = *party_.talkers[from];
		for (unsigned n = 0; n < conditions_.messages; n++)
			if (sender.was_sent(n) && sender.is_for(sender.plan_[n], *this) &&
			    !got_.contains({from, n}))
				failure("message " + std::to_string(n) + " of talker " +
				        std::to_string(from) + " did not arrive");
	}
}

} // namespace tern::sim
