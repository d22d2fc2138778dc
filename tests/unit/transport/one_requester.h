/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of the requester share. */
#pragma once

#include "tests/unit/transport/one_connection.h"

namespace tern::test {

using namespace hw;

constexpr uint32_t kMtu = 256;
constexpr uint64_t kTimeout = (4 * 4096ull) << 8; /* of connection() */
constexpr uint8_t kNoCredits = kAethAck | 31;     /* none are counted */

class Requester : public OneConnection {
protected:
	static uint32_t psn(uint32_t n) { return psn_after(kSqPsn, n); }
	uint32_t post(SendRequest request)
	{
		const uint32_t index = qp_->post_send(request);
		run();
		return index;
	}
	SendRequest send(uint32_t length, uint8_t flags = TERN_WQE_SIGNALED) const
	{
		return {.opcode = TERN_OP_SEND, .flags = flags, .sges = {mr_->sge(0, length)}};
	}
	SendRequest write(uint32_t length, uint8_t flags = TERN_WQE_SIGNALED) const
	{
		return {.opcode = TERN_OP_WRITE,
		        .flags = flags,
		        .remote_addr = 0x1000,
		        .rkey = 0x77,
		        .sges = {mr_->sge(0, length)}};
	}
	SendRequest write_imm(uint32_t length) const
	{
		auto request = write(length);
		request.opcode = TERN_OP_WRITE_IMM;
		return request;
	}
	SendRequest read(uint32_t length, uint64_t to = 0x8000,
	                 uint8_t flags = TERN_WQE_SIGNALED) const
	{
		return {.opcode = TERN_OP_READ,
		        .flags = flags,
		        .remote_addr = 0x1000,
		        .rkey = 0x77,
		        .sges = {mr_->sge(to, length)}};
	}
	SendRequest add() const
	{
		return {.opcode = TERN_OP_FETCH_ADD,
		        .remote_addr = 0x1000,
		        .rkey = 0x77,
		        .swap_add = 5,
		        .sges = {mr_->sge(0x9000, 8)}};
	}
	SendRequest atomic_write(uint32_t length = 8) const
	{
		return {.opcode = TERN_OP_ATOMIC_WRITE,
		        .remote_addr = 0x1000,
		        .rkey = 0x77,
		        .sges = {mr_->sge(16, length)}};
	}
	/** The peer acknowledges up to packet @n. */
	void ack(uint32_t n, uint8_t syndrome = kNoCredits, uint32_t msn = 0)
	{
		TestPacket p{.opcode = Opcode::RcAcknowledge, .psn = psn(n)};
		p.ext.aeth = {syndrome, msn};
		give(p);
	}
	void read_response(Opcode opcode, uint32_t n, size_t size, std::byte fill = std::byte{0x5a})
	{
		TestPacket p{.opcode = opcode,
		             .psn = psn(n),
		             .payload = std::vector<std::byte>(size, fill)};
		p.ext.aeth = {kNoCredits, 0};
		give(p);
	}
	std::vector<uint32_t> psns_sent()
	{
		std::vector<uint32_t> result;
		for (const auto &p : all_sent())
			result.push_back((p.psn - kSqPsn) & 0xffffff);
		return result;
	}
	using Psns = std::vector<uint32_t>;
	/** Completions, as (WQE index, status). */
	std::vector<std::pair<uint32_t, int>> completions()
	{
		std::vector<std::pair<uint32_t, int>> result;
		for (const auto &c : cq_->drain())
			result.emplace_back(c.wqe_index.get(), c.status);
		return result;
	}
	using Completions = std::vector<std::pair<uint32_t, int>>;
};

} // namespace tern::test
