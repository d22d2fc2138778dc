/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of the responder share. */
#pragma once

#include "tests/unit/transport/one_connection.h"

namespace tern::test {

using namespace hw;

constexpr size_t kMtu = 256;
constexpr uint8_t kSeqNak = nak_syndrome(NakCode::PsnSequenceError);
constexpr uint8_t kInvalidNak = nak_syndrome(NakCode::InvalidRequest);
constexpr uint8_t kAccessNak = nak_syndrome(NakCode::RemoteAccessError);
constexpr uint8_t kOperationNak = nak_syndrome(NakCode::RemoteOperationalError);

inline std::vector<std::byte> bytes(size_t n, unsigned from = 1)
{
	std::vector<std::byte> data(n);
	for (size_t i = 0; i < n; i++)
		data[i] = static_cast<std::byte>(i * 3 + from);
	return data;
}

class Responder : public OneConnection {
protected:
	static uint32_t psn(uint32_t n) { return psn_after(kRqPsn, n); }
	TestPacket send_only(uint32_t n, size_t size = 10) const
	{
		return {.opcode = Opcode::RcSendOnly,
		        .psn = psn(n),
		        .ack_request = true,
		        .payload = bytes(size)};
	}
	TestPacket send(Opcode opcode, uint32_t n, size_t size = kMtu) const
	{
		return {.opcode = opcode,
		        .psn = psn(n),
		        .ack_request = true,
		        .payload = bytes(size)};
	}
	TestPacket write(Opcode opcode, uint32_t n, uint64_t offset, uint32_t length,
	                 size_t size) const
	{
		TestPacket p{.opcode = opcode,
		             .psn = psn(n),
		             .ack_request = true,
		             .payload = bytes(size)};
		p.ext.reth = {mr_->va + offset, mr_->key, length};
		return p;
	}
	TestPacket read(uint32_t n, uint64_t offset, uint32_t length) const
	{
		TestPacket p{.opcode = Opcode::RcReadRequest, .psn = psn(n), .ack_request = true};
		p.ext.reth = {mr_->va + offset, mr_->key, length};
		return p;
	}
	TestPacket add(uint32_t n, uint64_t offset, uint64_t value) const
	{
		TestPacket p{.opcode = Opcode::RcFetchAdd, .psn = psn(n), .ack_request = true};
		p.ext.atomic = {mr_->va + offset, mr_->key, value, 0};
		return p;
	}
	TestPacket atomic_write(uint32_t n, uint64_t offset, size_t size = 8) const
	{
		return write(Opcode::RcAtomicWrite, n, offset, 8, size);
	}
	std::vector<uint32_t> psns_sent()
	{
		std::vector<uint32_t> result;
		for (const auto &p : all_sent())
			result.push_back((p.psn - kRqPsn) & 0xffffff);
		return result;
	}
	void expect_error(uint32_t n, uint8_t syndrome, tern_hw_event type)
	{
		expect_aeth(n, syndrome);
		EXPECT_TRUE(event(type, qp_->number));
		EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	}
	void post_recv(uint32_t length = 4096) { qp_->post_recv(mr_->sge(0x10000, length)); }
};

} // namespace tern::test
