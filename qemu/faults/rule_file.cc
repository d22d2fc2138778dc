// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/faults/rule_file.h"

#include <algorithm>
#include <utility>

#include "qemu/rnic/json.h"

namespace tern::faults {

using fabric::TomlTable;

namespace {

constexpr std::string_view kAction = "action";
constexpr std::string_view kKeys[] = {"from",   "to", "host",  "link",
                                      "opcode", "qp", "psn",   "retransmission",
                                      "nth",    "by", "every", "probability"};

RuleWord read_word(TomlTable &table, std::string_view key, std::string value)
{
	/* A blank would begin another word, and a semicolon another rule. */
	if (value.find_first_of(" \t\r\n\f\v;") != value.npos)
		table.fail(key, json_string(value) + " has a blank or a semicolon");
	return {std::string(key), std::move(value), table.position_of(key)};
}

RuleTable read_rule(TomlTable table)
{
	std::vector<RuleWord> words;
	for (const std::string_view key : kKeys)
		if (table.has(key))
			words.push_back(read_word(table, key, table.scalar(key)));
	if (table.flag("once", false))
		words.push_back(read_word(table, "once", ""));
	const auto place = [](const RuleWord &word) {
		return std::pair(word.at.line, word.at.column);
	};
	std::ranges::sort(words, {}, place);
	words.insert(words.begin(), read_word(table, kAction, table.text(kAction)));
	table.end();
	return {std::move(table), std::move(words)};
}

void describe(Json &json, const RuleTable &rule)
{
	json.object("", [&] {
		json.number("line", rule.table.position_of("").line);
		json.list("words", [&] {
			for (const RuleWord &word : rule.words)
				json.object("", [&] {
					json.text("key", word.key);
					if (!word.value.empty())
						json.text("value", word.value);
					json.number("line", word.at.line);
				});
		});
	});
}

} // namespace

std::string RuleWord::with(std::string_view other) const
{
	if (key == kAction)
		return std::string(other);
	return value.empty() ? key : key + "=" + std::string(other);
}

std::vector<RuleTable> read_rules(TomlTable &file)
{
	std::vector<RuleTable> rules;
	for (TomlTable &table : file.tables("rule"))
		rules.push_back(read_rule(std::move(table)));
	return rules;
}

std::string describe_rules(const std::string &path)
{
	const toml::table parsed = fabric::parse_toml_file(path);
	TomlTable file(parsed, "", path);
	const auto rules = read_rules(file);
	if (!file.has("link"))
		file.end();
	if (rules.empty())
		file.fail("rule", "is missing");
	Json json;
	json.object("", [&] {
		json.list("rules", [&] {
			for (const RuleTable &rule : rules)
				describe(json, rule);
		});
	});
	return json.written();
}

} // namespace tern::faults
