/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "qemu/fabric/toml_table.h"

namespace tern::faults {

/** A word of a rule, as Rule::parse() reads it. */
struct RuleWord {
	std::string key;   /* the first word of a rule has "action" */
	std::string value; /* empty: the key stands alone */
	toml::source_position at;

	/** Returns the word with @other in place of its value. */
	std::string with(std::string_view other) const;
	std::string text() const { return with(value); }
};

/** A table [[rule]] of a file. */
struct RuleTable {
	fabric::TomlTable table;
	std::vector<RuleWord> words; /* in the order of the file, but the action is the first */
};

/** Takes the tables [[rule]] from @file. Throws a fabric::TomlError if a key is unknown, or if a
 * value cannot be a word. The rest is left to Rule::parse(). */
std::vector<RuleTable> read_rules(fabric::TomlTable &file);

/** Reads the rules of the file @path, which may be a topology, too. Returns them as JSON in one
 * line: each with its line in the file, and its words with their lines. Throws a
 * fabric::TomlError, also if there are no rules. */
std::string describe_rules(const std::string &path);

} // namespace tern::faults
