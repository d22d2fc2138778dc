// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/uc_talker.h"

#include <algorithm>
#include <cstring>

namespace tern::sim {

using namespace hw;

namespace {

bool has_imm(uint8_t opcode)
{
	return opcode == TERN_OP_SEND_IMM || opcode == TERN_OP_WRITE_IMM;
}

bool is_write(uint8_t opcode)
{
	return opcode == TERN_OP_WRITE || opcode == TERN_OP_WRITE_IMM;
}

bool all_zero(std::span<const std::byte> bytes)
{
	return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

} // namespace

UcTalker::UcTalker(Node &n, Rng rng, uint32_t pd, const test::QpOptions &options,
                   const Conditions &conditions, Fail fail)
        : Talker(n, rng, pd, options, conditions, kMaxSize, std::move(fail)),
          slots_(n.driver.create_mr(pd, 0x777000, kSlots * kMaxSize,
                                    TERN_ACCESS_LOCAL_WRITE | TERN_ACCESS_REMOTE_WRITE, {2, 12}))
{
}

void UcTalker::connect(UcTalker &a, UcTalker &b)
{
	Rng &rng = a.rng_;
	const auto gid = static_cast<uint8_t>(rng.below(a.node.gids.size()));
	const auto mtu = static_cast<uint8_t>(rng.between(1, 5));
	UcTalker *ends[2] = {&a, &b};
	test::Connection c[2];
	for (int i = 0; i < 2; i++) {
		UcTalker &remote = *ends[!i];
		ends[i]->peer_ = &remote;
		ends[i]->mtu_ = 128u << mtu;
		c[i].mtu = mtu;
		c[i].dest_qpn = remote.qp->number;
		c[i].sgid_index = gid;
		c[i].dgid = remote.node.gids[gid].gid;
		c[i].dmac = remote.node.mac;
		/* Half of the connections run over the wrap of the PSN. */
		c[i].sq_psn = static_cast<uint32_t>(rng.chance(1, 2) ? 0xffffff - rng.below(100)
		                                                     : rng.below(1 << 24));
	}
	for (int i = 0; i < 2; i++)
		c[i].rq_psn = c[!i].sq_psn;
	for (int i = 0; i < 2; i++) {
		ends[i]->qp->to_init(c[i]);
		ends[i]->qp->to_rtr(c[i]);
		for (uint32_t n = 0; n < 1u << ends[i]->qp->options.rq_log_size; n++)
			ends[i]->post_recv();
	}
	for (int i = 0; i < 2; i++)
		ends[i]->qp->to_rts(c[i]);
	a.plan();
	b.plan();
}

void UcTalker::plan()
{
	constexpr uint8_t kOpcodes[] = {TERN_OP_SEND, TERN_OP_SEND_IMM, TERN_OP_WRITE,
	                                TERN_OP_WRITE_IMM};
	const auto length = [this](uint32_t least) {
		const uint64_t most = rng_.chance(1, 3) ? kMaxSize : std::min(3 * mtu_, kMaxSize);
		return static_cast<uint32_t>(rng_.between(least, most));
	};
	for (unsigned slot = 0; slot < kSlots; slot++) {
		peer_->slot_sizes_.push_back(length(0));
		const uint32_t chunks = (peer_->slot_sizes_.back() + mtu_ - 1) / mtu_;
		peer_->writers_.emplace_back(chunks, -1);
	}
	for (unsigned n = 0; n < conditions_.messages; n++) {
		const uint8_t opcode = kOpcodes[rng_.below(std::size(kOpcodes))];
		const auto slot = static_cast<unsigned>(rng_.below(kSlots));
		/* A SEND tells its number by its first bytes, or as immediate data. */
		const uint32_t size = is_write(opcode) ? peer_->slot_sizes_[slot]
		                                       : length(has_imm(opcode) ? 0 : 4);
		plan_.push_back({opcode, slot, size > 0 && rng_.chance(1, 25), content(n, size)});
	}
}

test::SendRequest UcTalker::request(unsigned n)
{
	const Message &m = plan_[n];
	test::SendRequest r;
	r.opcode = m.opcode;
	r.imm = n;
	r.flags = rng_.chance(1, 4) ? TERN_WQE_SOLICITED : 0;
	r.sges = source(n, m.data);
	if (is_write(m.opcode)) {
		r.remote_addr = peer_->slots_.va + uint64_t{m.slot} * kMaxSize;
		r.rkey = peer_->slots_.key;
	}
	if (m.bad)
		for (Sge &sge : r.sges)
			sge.lkey ^= 1;
	return r;
}

void UcTalker::arrived(const tern_hw_cqe &cqe, const std::vector<std::byte> &data)
{
	const bool imm = cqe.flags & TERN_CQE_IMM;
	Le<uint32_t> number = 0u;
	if (imm)
		number = cqe.imm.get();
	else if (data.size() >= sizeof(number))
		std::memcpy(&number, data.data(), sizeof(number));
	const unsigned n = number.get();
	if (n >= conditions_.messages)
		return failure("a message of nobody");
	const Message &m = peer_->plan_[n];
	expect(static_cast<int>(n) > last_, "a message out of order or twice");
	expect(has_imm(m.opcode) == imm, "immediate data, or none, where it must not be");
	expect(cqe.byte_len.get() == m.data.size(), "a message of another length");
	expect(!m.bad, "a message that could not be sent");
	last_ = static_cast<int>(n);
	got_.insert(n);
	if (is_write(m.opcode)) {
		expect(cqe.opcode == TERN_CQE_RECV_WRITE_IMM, "not a WRITE");
		for (int &writer : writers_[m.slot])
			writer = std::max(writer, static_cast<int>(n));
		check_slot(m.slot);
	} else {
		expect(cqe.opcode == TERN_CQE_RECV, "not a SEND");
		expect(data == m.data, "wrong data");
	}
}

int UcTalker::find_writer(unsigned slot, uint64_t offset, std::span<const std::byte> chunk,
                          int from) const
{
	for (auto n = static_cast<unsigned>(std::max(from, 0)); n < conditions_.messages; n++) {
		const Message &m = peer_->plan_[n];
		if (!is_write(m.opcode) || m.slot != slot)
			continue;
		if (std::ranges::equal(chunk, std::span(m.data).subspan(offset, chunk.size())))
			return static_cast<int>(n);
	}
	return -1;
}

void UcTalker::check_slot(unsigned slot)
{
	const auto bytes = slots_.read(uint64_t{slot} * kMaxSize, slot_sizes_[slot]);
	for (size_t i = 0; i < writers_[slot].size(); i++) {
		const uint64_t offset = i * mtu_;
		const auto chunk = std::span(bytes).subspan(
		        offset, std::min<size_t>(mtu_, bytes.size() - offset));
		int &writer = writers_[slot][i];
		if (writer < 0 && all_zero(chunk))
			continue;
		writer = find_writer(slot, offset, chunk, writer);
		if (writer < 0)
			return failure("a slot holds what is wrong, or older than what it held");
	}
}

void UcTalker::verify()
{
	for (unsigned slot = 0; slot < kSlots; slot++)
		check_slot(slot);
	if (!conditions_.perfect)
		return;
	std::vector<int> newest(kSlots, -1);
	for (unsigned n = 0; n < conditions_.messages; n++) {
		const Message &m = peer_->plan_[n];
		if (!peer_->was_sent(n))
			continue;
		if (m.opcode != TERN_OP_WRITE && !got_.contains(n))
			failure("message " + std::to_string(n) + " did not arrive");
		if (is_write(m.opcode))
			newest[m.slot] = static_cast<int>(n);
	}
	for (unsigned slot = 0; slot < kSlots; slot++) {
		std::ranges::fill(writers_[slot], newest[slot]);
		check_slot(slot);
	}
}

} // namespace tern::sim
