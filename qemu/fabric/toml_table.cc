// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/toml_table.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

namespace tern::fabric {

namespace {

const toml::table kEmpty;

/* Far more than anything that is simulated, and exact as a double. */
constexpr double kMaxQuantity = 1e15;

/* What @name_of makes of each item. */
template <typename T, typename NameOf = std::identity>
std::string list_of(std::span<const T> items, NameOf name_of = {})
{
	std::string all;
	for (const T &item : items)
		all += (all.empty() ? "" : ", ") + std::string(std::invoke(name_of, item));
	return all;
}

/* Returns @value in the largest unit in which it is a whole number. */
std::string with_unit(double value, std::span<const Unit> units)
{
	Unit largest = units.front();
	for (const Unit &unit : units)
		if (unit.factor > largest.factor && std::fmod(value, unit.factor) == 0)
			largest = unit;
	std::ostringstream text;
	text << std::llround(value / largest.factor) << " " << largest.name;
	return text.str();
}

[[noreturn]] void fail(const toml::parse_error &error, const std::string &path)
{
	std::ostringstream text;
	text << path << ":";
	if (const auto line = error.source().begin.line) /* 0: the file cannot be read */
		text << line << ":";
	text << " " << error.description();
	throw TomlError(text.str());
}

} // namespace

toml::table parse_toml_file(const std::string &path)
try {
	/* The parser does not say why a file cannot be read. */
	std::ifstream file(path, std::ios::binary);
	file.peek(); /* a folder can be opened, but not read */
	if (file.bad() || !file.is_open())
		throw TomlError(path + ": " + std::strerror(errno));
	std::ostringstream text;
	text << file.rdbuf();
	return toml::parse(text.str());
} catch (const toml::parse_error &error) {
	fail(error, path);
}

toml::table parse_toml(const std::string &text, const std::string &path)
try {
	return toml::parse(text);
} catch (const toml::parse_error &error) {
	fail(error, path);
}

toml::source_position TomlTable::position_of(std::string_view key) const
{
	const toml::node *node = table_.get(key);
	return (node ? node->source() : table_.source()).begin;
}

void TomlTable::fail(std::string_view key, const std::string &what) const
{
	const auto line = position_of(key).line;
	const std::string path = name_.empty() ? std::string(key) : name_ + "." + std::string(key);
	throw TomlError(file_ + ":" + std::to_string(line) + ": " + path + ": " + what);
}

const toml::node *TomlTable::find(std::string_view key)
{
	known_.emplace(key);
	return table_.get(key);
}

const toml::node &TomlTable::need(std::string_view key)
{
	const toml::node *node = find(key);
	if (!node)
		fail(key, "is missing");
	return *node;
}

std::string TomlTable::string_of(std::string_view key, const toml::node &node) const
{
	const auto value = node.value_exact<std::string>();
	if (!value || value->empty())
		fail(key, "must be a string");
	return *value;
}

std::string TomlTable::text(std::string_view key)
{
	return string_of(key, need(key));
}

std::string TomlTable::scalar(std::string_view key)
{
	const toml::node &node = need(key);
	if (const auto flag = node.value_exact<bool>())
		return *flag ? "yes" : "no";
	if (!node.is_number() && !node.is_string())
		fail(key, "must be a string, a number, true or false");
	if (node.is_string())
		return string_of(key, node);
	std::ostringstream text;
	if (const auto whole = node.value_exact<int64_t>())
		text << *whole;
	else
		text << *node.value<double>();
	return text.str();
}

bool TomlTable::flag(std::string_view key, bool missing)
{
	const toml::node *node = find(key);
	if (!node)
		return missing;
	const auto value = node->value_exact<bool>();
	if (!value)
		fail(key, "must be true or false");
	return *value;
}

size_t TomlTable::word(std::string_view key, std::span<const std::string_view> words)
{
	const toml::node *node = find(key);
	if (!node)
		return 0;
	const auto found = std::ranges::find(words, string_of(key, *node));
	if (found == words.end())
		fail(key, "must be one of " + list_of(words));
	return static_cast<size_t>(found - words.begin());
}

uint64_t TomlTable::whole(std::string_view key, const toml::node &node, uint64_t least,
                          uint64_t most) const
{
	const auto value = node.value_exact<int64_t>();
	if (!value || *value < 0 || static_cast<uint64_t>(*value) < least ||
	    static_cast<uint64_t>(*value) > most)
		fail(key, "must be a whole number from " + std::to_string(least) + " to " +
		                  std::to_string(most));
	return static_cast<uint64_t>(*value);
}

uint64_t TomlTable::integer(std::string_view key, uint64_t least, uint64_t most,
                            std::optional<uint64_t> missing)
{
	const toml::node *node = find(key);
	if (!node && missing)
		return *missing;
	return whole(key, need(key), least, most);
}

double TomlTable::share(std::string_view key, double missing)
{
	const toml::node *node = find(key);
	if (!node)
		return missing;
	const auto value = node->value<double>();
	if (!value || !(*value >= 0 && *value <= 1))
		fail(key, "must be a number from 0 to 1");
	return *value;
}

uint64_t TomlTable::quantity(std::string_view key, std::span<const Unit> units, uint64_t least,
                             std::optional<uint64_t> missing)
{
	const toml::node *node = find(key);
	if (!node && missing)
		return *missing;
	const std::string text = string_of(key, need(key));
	double number = 0;
	const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
	std::string_view name(rest, text.data() + text.size());
	name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
	const auto unit = std::ranges::find(units, name, &Unit::name);
	if (error != std::errc() || unit == units.end())
		fail(key, "must be a number with one of the units " + list_of(units, &Unit::name));
	const double value = number * unit->factor;
	if (!(value >= static_cast<double>(least) && value <= kMaxQuantity))
		fail(key, "must be from " + with_unit(static_cast<double>(least), units) + " to " +
		                  with_unit(kMaxQuantity, units));
	return static_cast<uint64_t>(value + 0.5);
}

std::vector<uint64_t> TomlTable::integers(std::string_view key, uint64_t most)
{
	const toml::array *array = need(key).as_array();
	if (!array)
		fail(key, "must be a list of whole numbers");
	std::vector<uint64_t> all;
	for (const toml::node &each : *array)
		all.push_back(whole(key, each, 0, most));
	return all;
}

std::vector<std::string> TomlTable::texts(std::string_view key)
{
	const toml::node &node = need(key);
	const toml::array *array = node.as_array();
	if (!array)
		return {string_of(key, node)};
	std::vector<std::string> all;
	for (const toml::node &each : *array)
		all.push_back(string_of(key, each));
	return all;
}

TomlTable TomlTable::table(std::string_view key)
{
	const toml::node *node = find(key);
	if (node && !node->is_table())
		fail(key, "must be a table, [" + std::string(key) + "]");
	return {node ? *node->as_table() : kEmpty, std::string(key), file_};
}

std::vector<TomlTable> TomlTable::tables(std::string_view key)
{
	std::vector<TomlTable> all;
	const toml::node *node = find(key);
	if (!node)
		return all;
	const toml::array *array = node->as_array();
	if (!array || !array->is_homogeneous<toml::table>())
		fail(key, "must be tables, [[" + std::string(key) + "]]");
	for (const toml::node &each : *array)
		all.emplace_back(*each.as_table(), std::string(key), file_);
	return all;
}

void TomlTable::end() const
{
	for (const auto &[key, node] : table_)
		if (!known_.contains(key.str()))
			fail(key.str(), "there is no such key");
}

} // namespace tern::fabric
