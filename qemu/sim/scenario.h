/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qemu/fabric/plan.h"
#include "qemu/rnic/congestion/parameters.h"
#include "qemu/rnic/formats/gid.h"

namespace tern::sim {

enum class Service : uint8_t { Rc, Uc, Ud };
enum class Operation : uint8_t { Write, Send, Read };

/** What a scenario file says, with all patterns and counts resolved. Times in ns, sizes in bytes,
 * rates in bits per second. */
struct Scenario : fabric::Plan {
	/** A queue pair at each end, and what the first sends. */
	struct Flow {
		unsigned from; /* cards */
		unsigned to;
		Service service;
		Operation operation;
		uint64_t size;     /* of a message */
		uint64_t depth;    /* messages outstanding */
		uint64_t rate;     /* of new messages; 0: one as soon as another has completed */
		uint64_t messages; /* the end comes after as many; 0: never */
		uint64_t start;
		uint64_t end;
		uint8_t dscp;
		uint8_t timeout;   /* of the QP, as the verbs have it */
		unsigned rotation; /* flows with the same number send in turn; 0: sends by itself */
	};
	struct Fault {
		unsigned link;
		uint64_t down; /* when it goes down */
		uint64_t up;   /* and up again */
	};

	/** A faults::Rule. */
	struct Rule {
		std::string text;
		std::string shown; /* ... with names in place of addresses */
	};

	uint64_t duration = 10'000'000;
	uint64_t warmup = 0;             /* results are of what comes after it */
	uint64_t sample = 0;             /* between two points of the curves */
	uint64_t mtu = 1024;             /* of paths */
	CongestionParameters congestion; /* of all cards */
	std::vector<Flow> flows;
	unsigned rotations = 0; /* the highest Flow::rotation */
	std::vector<Fault> faults;
	std::vector<Rule> rules;
};

/** The address of card @number, from 0. */
Mac mac_of_card(unsigned number);

/** Reads a TOML file (docs/fabric.md); throws a fabric::TomlError. */
Scenario read_scenario(const std::string &path);
/** As read_scenario(), of @text; errors name @path. */
Scenario parse_scenario(const std::string &text, const std::string &path);
/** Checks all of the file @path for real time, in which only the plan has an effect. It may have no
 * duration, and at most @max_cards. Returns the plan; throws a fabric::TomlError. */
fabric::Plan check_scenario(const toml::table &file, const std::string &path, size_t max_cards);

} // namespace tern::sim
