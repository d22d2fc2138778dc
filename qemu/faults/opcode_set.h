/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <string_view>

#include "qemu/faults/passage.h"

namespace tern::faults {

/** The name of a packet's opcode, such as "RC_WRITE_FIRST", "RC_NAK" or "CNP"; that of an opcode
 * without a name is its number, such as "0x1f". */
std::string opcode_name(uint8_t opcode, uint8_t ack_kind);

/** A set of frames by their opcode. */
class OpcodeSet {
public:
	/**
	 * Adds what @word names, in upper or lower case: an opcode as opcode_name() has it, or
	 * without its service ("WRITE_FIRST"); a class (SEND, WRITE, READ, READ_RESPONSE, ATOMIC),
	 * also with a service ("UC_WRITE"); a service; an opcode's number; or ETHERNET for what is
	 * not RoCE. Returns false if it names nothing.
	 */
	bool add(std::string_view word);

	bool has(const std::optional<RoceFields> &roce) const;
	/** Whether some packet of the set is a request or a READ response of RC or XRC. */
	bool has_data() const;
	/** Whether some packet of the set is RoCE. */
	bool has_roce() const;

private:
	static constexpr size_t kOpcodes = 256;
	static constexpr size_t kAckKinds = 4;
	static constexpr size_t kEthernet = kOpcodes * kAckKinds;

	static constexpr size_t index(uint8_t opcode, uint8_t ack_kind)
	{
		return kOpcodes * ack_kind + opcode;
	}

	std::bitset<kEthernet + 1> members_;
};

/** Whether packets with this opcode are retransmitted with their PSN: the requests and READ
 * responses of RC and XRC. */
bool is_data(uint8_t opcode);
/** Returns whether packets with @opcode are responses, which carry the PSN of the request that they
 * answer. */
bool is_response(uint8_t opcode);

} // namespace tern::faults
