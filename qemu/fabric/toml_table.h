/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

namespace tern::fabric {

struct Unit {
	std::string_view name;
	double factor;
};
/* Bits per second, nanoseconds, bytes. */
inline constexpr Unit kRateUnits[] = {{"b/s", 1}, {"kb/s", 1e3}, {"Mb/s", 1e6}, {"Gb/s", 1e9}};
inline constexpr Unit kTimeUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
inline constexpr Unit kSizeUnits[] = {{"B", 1},      {"KB", 1e3},      {"MB", 1e6},
                                      {"KiB", 1024}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};

/** what() is "FILE:LINE: KEY: what is wrong". */
class TomlError : public std::runtime_error {
public:
	using std::runtime_error::runtime_error;
};

/** Parse a file, or @text whose errors name @path. Throw a TomlError. */
toml::table parse_toml_file(const std::string &path);
toml::table parse_toml(const std::string &text, const std::string &path);

/** A table of a file whose values are taken one by one. What is wrong is thrown as a TomlError. */
class TomlTable {
public:
	/** Error messages name the table @name, which is empty for the whole file. */
	TomlTable(const toml::table &table, std::string name, const std::string &file)
	        : table_(table), name_(std::move(name)), file_(file)
	{
	}

	bool has(std::string_view key) const { return table_.contains(key); }
	std::string text(std::string_view key);
	/** A string, a number, or yes or no for a boolean, as text. */
	std::string scalar(std::string_view key);
	/** One of @words; its index. The first if the key is missing. */
	size_t word(std::string_view key, std::span<const std::string_view> words);
	uint64_t integer(std::string_view key, uint64_t least, uint64_t most,
	                 std::optional<uint64_t> missing = {});
	double share(std::string_view key, double missing);
	bool flag(std::string_view key, bool missing);
	/** "5 Gb/s" and the like, at least @least. */
	uint64_t quantity(std::string_view key, std::span<const Unit> units, uint64_t least,
	                  std::optional<uint64_t> missing = {});
	/** A list of whole numbers up to @most. */
	std::vector<uint64_t> integers(std::string_view key, uint64_t most);
	/** A string, or a list of strings. */
	std::vector<std::string> texts(std::string_view key);
	/** The table of that name, empty if it is missing. */
	TomlTable table(std::string_view key);
	/** The tables of [[key]]. */
	std::vector<TomlTable> tables(std::string_view key);
	/** Refuses keys that were not asked for. */
	void end() const;

	/** Returns where the value of @key is, or the table if it does not have the key. */
	toml::source_position position_of(std::string_view key) const;

	/** Throws that something is wrong with @key. */
	[[noreturn]] void fail(std::string_view key, const std::string &what) const;

private:
	const toml::node *find(std::string_view key);
	const toml::node &need(std::string_view key);
	uint64_t whole(std::string_view key, const toml::node &node, uint64_t least,
	               uint64_t most) const;
	std::string string_of(std::string_view key, const toml::node &node) const;

	const toml::table &table_;
	std::string name_;
	const std::string &file_;
	std::set<std::string, std::less<>> known_;
};

} // namespace tern::fabric
