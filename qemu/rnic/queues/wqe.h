/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decoded work requests. Every value comes from the guest and may change in host memory, so a WQE
 * is decoded and validated each time it is read.
 */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "qemu/rnic/formats/gid.h"
#include "qemu/rnic/memory/region.h"
#include "tern/tern_hw.h"

namespace tern {

/** Maximum length of one local buffer, bytes. */
inline constexpr uint32_t kMaxSgeLength = 1u << 31;

enum class Fetch {
	Ok,
	Invalid, /* the WQE is not valid */
	Fault,   /* the ring cannot be read */
};

/** The destination of a datagram. */
struct DatagramAddress {
	Gid dgid;
	Mac dmac{};
	uint8_t sgid_index = 0;
	uint8_t hop_limit = 0;
	uint8_t traffic_class = 0;
	uint8_t sl = 0;
	uint16_t udp_sport = 0;
	uint32_t flow_label = 0;
	uint32_t dest_qpn = 0;
	uint32_t qkey = 0;
};

/** Offloads for a frame to be sent. */
struct EthOffload {
	uint16_t csum_start = 0; /* 0: none */
	uint16_t csum_offset = 0;
	uint16_t mss = 0; /* 0: do not segment */
};

/** Parameters of a FLUSH. */
struct FlushRequest {
	uint32_t length = 0; /* bytes of the range */
	uint8_t type = 0;    /* TERN_FLUSH_* */
	uint8_t level = 0;   /* enum tern_hw_flush_level */
};

/** Returns whether @opcode (enum tern_hw_wqe_op, here and below) is a masked atomic. */
constexpr bool takes_masks(uint8_t opcode)
{
	return opcode == hw::TERN_OP_MASKED_CMP_SWAP || opcode == hw::TERN_OP_MASKED_FETCH_ADD;
}

/** Returns whether an ATOMIC acknowledge completes the operation. */
constexpr bool is_atomic(uint8_t opcode)
{
	return opcode == hw::TERN_OP_CMP_SWAP || opcode == hw::TERN_OP_FETCH_ADD ||
	       takes_masks(opcode);
}

/** READ and atomics: the response carries data for the local buffers. */
constexpr bool expects_data(uint8_t opcode)
{
	return opcode == hw::TERN_OP_READ || is_atomic(opcode);
}

/** READ, atomics, ATOMIC_WRITE and FLUSH: completed by a response of their own, not by an ACK. */
constexpr bool expects_response(uint8_t opcode)
{
	return expects_data(opcode) || opcode == hw::TERN_OP_ATOMIC_WRITE ||
	       opcode == hw::TERN_OP_FLUSH;
}

struct SendWqe {
	uint8_t opcode = 0; /* enum tern_hw_wqe_op */
	uint8_t flags = 0;  /* TERN_WQE_* */
	uint8_t blocks = 0; /* of 64 bytes; 0 if unknown */
	uint32_t imm = 0;   /* SEND_INV, LOCAL_INV: the key */
	uint32_t srqn = 0;  /* XRC_INI: the peer's SRQ */
	uint64_t remote_addr = 0;
	uint32_t rkey = 0;
	uint64_t swap_add = 0;
	uint64_t compare = 0;
	uint64_t swap_add_mask = 0; /* of masked atomics, as is compare_mask */
	uint64_t compare_mask = 0;
	DatagramAddress to;  /* UD and GSI */
	BindRequest bind;    /* BIND_MW */
	RegisterRequest reg; /* REG_MR */
	FlushRequest flush;  /* FLUSH */
	EthOffload offload;  /* ETH */
	uint64_t length = 0; /* bytes to send or read; 8 for atomics */

	std::array<Sge, hw::TERN_MAX_SEND_SGE> sge;
	uint8_t sge_count = 0;
	uint16_t inline_offset = 0; /* offset in raw */
	uint16_t inline_size = 0;
	std::array<std::byte, hw::TERN_MAX_SEND_SEGS * hw::TERN_SEG_SIZE> raw;

	/** The local buffers; none with TERN_WQE_INLINE. */
	std::span<const Sge> sges() const { return {sge.data(), sge_count}; }
	std::span<const std::byte> inline_data() const
	{
		return std::span(raw).subspan(inline_offset, inline_size);
	}
	/** An operation on this card's keys; sends no packet. */
	bool is_local() const
	{
		return opcode == hw::TERN_OP_LOCAL_INV || opcode == hw::TERN_OP_BIND_MW ||
		       opcode == hw::TERN_OP_REG_MR;
	}
	bool expects_response() const { return tern::expects_response(opcode); }
	bool expects_data() const { return tern::expects_data(opcode); }
};

/** Decodes raw[0 .. segs * 16) for a QP of @type; Invalid if it violates tern_hw.h. */
Fetch decode(SendWqe &wqe, unsigned segs, hw::tern_hw_qp_type type);

struct RecvWqe {
	std::array<Sge, hw::TERN_MAX_RECV_SGE> sge;
	uint8_t sge_count = 0;
	uint64_t length = 0; /* sum over all entries */

	std::span<const Sge> sges() const { return {sge.data(), sge_count}; }
};

/** Reads and validates the receive WQE of 1 << @log_stride bytes at @offset of @pages. */
Fetch fetch_recv(Memory &memory, const PageList &pages, uint64_t offset, uint8_t log_stride,
                 RecvWqe &wqe);

} // namespace tern
