/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "qemu/faults/fault.h"
#include "qemu/faults/opcode_set.h"
#include "qemu/faults/passage.h"

namespace tern::faults {

/** Which frames a rule is about; what is not set does not matter. */
struct Match {
	/* Ends of links of a topology; empty: those at cards, or without a topology anywhere. */
	std::vector<unsigned> links;
	/* Addresses of hosts: the frame comes from one, goes to one, or either. */
	std::vector<uint64_t> from;
	std::vector<uint64_t> to;
	std::vector<uint64_t> host;
	std::optional<OpcodeSet> opcodes;
	std::optional<uint32_t> qpn;
	std::optional<Psn> psn;
	/* of the PSN, from that of the flow's first packet which the conditions above admit */
	std::optional<uint32_t> psn_offset;
	/* whether the flow had this PSN before */
	std::optional<bool> retransmission;
	/* only the n-th frame which the conditions above admit */
	std::optional<uint64_t> nth;

	/** Whether a frame meets the conditions that need no memory of others. */
	bool admits(const Passage &passage, const AddressTable &addresses) const;
};

/** How often a rule acts on what it matches. */
struct Frequency {
	bool once = false;
	uint64_t every = 1; /* on each n-th */
	double probability = 1;
};

/** A fault for the frames that it matches. */
class Rule {
public:
	/**
	 * Parses "ACTION [KEY=VALUE]... [once]", words separated by blanks (docs/wire.md lists
	 * all). @links: the ends of links, by their numbers. Returns an error message that begins
	 * with the key it is about, or empty.
	 */
	std::string parse(std::string_view text, std::span<const LinkEnd> links = {});

	/** Shows a frame to the rule. Returns whether the rule acts on it; @random is in [0, 1). */
	bool see(const Passage &passage, const AddressTable &addresses, double random);

	const std::string &text() const { return text_; }
	Fault fault() const { return fault_; }
	/** Nanoseconds of a delay, or the number of frames that overtake. */
	uint64_t amount() const { return amount_; }
	/** Frames matched, and those of them that it acted on. */
	uint64_t matched() const { return matched_; }
	uint64_t hits() const { return hits_; }
	/** Whether it will not act again. */
	bool spent() const { return hits_ && (frequency_.once || match_.nth); }

private:
	/* Packets with consecutive PSNs: addresses, destination QP, and whether they are responses.
	 */
	using FlowKey = std::tuple<uint64_t, uint64_t, uint32_t, bool>;
	struct Flow {
		Psn first;
		Psn highest;
		std::optional<Psn> highest_data; /* of the packets that may be retransmitted */
	};

	std::string parse_word(std::string_view key, std::string_view value,
	                       std::span<const LinkEnd> links);
	std::string parse_match(std::string_view key, std::string_view value);
	std::string parse_frequency(std::string_view key, std::string_view value);
	std::string parse_psn(std::string_view value);
	std::string parse_amount(std::string_view value);
	std::string contradiction() const;
	std::string contradiction_of_hosts() const;
	bool fits_flow(const RoceFields &roce, const Passage &passage);

	std::string text_;
	Fault fault_ = Fault::Count;
	uint64_t amount_ = 0;
	Match match_;
	Frequency frequency_;
	std::map<FlowKey, Flow> flows_;
	uint64_t matched_ = 0;
	uint64_t hits_ = 0;
};

/** An Ethernet address such as "52:54:00:77:00:01" as a number. */
std::optional<uint64_t> parse_address(std::string_view text);
/** Addresses separated by commas; empty if one is none. */
std::vector<uint64_t> parse_addresses(std::string_view text);

/** Returns the numbers of those of @links whose names one of the patterns in @text matches
 * (glob(7)). The patterns are separated by commas. Empty if one of them matches none. */
std::vector<unsigned> find_links(std::string_view text, std::span<const LinkEnd> links);

/** Whether @port has one of @hosts, or @address is one. */
bool belongs_to(uint64_t address, unsigned port, const std::vector<uint64_t> &hosts,
                const AddressTable &addresses);

} // namespace tern::faults
