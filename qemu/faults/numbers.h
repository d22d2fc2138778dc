/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers in the lines of the control socket. Each function takes the whole text, or returns none.
 */
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace tern::faults {

/** Parses a decimal number. */
template <typename Number>
std::optional<Number> parse_decimal(std::string_view text)
{
	Number number{};
	const char *end = text.data() + text.size();
	const auto [stopped, error] = std::from_chars(text.data(), end, number);
	if (error != std::errc() || stopped != end)
		return std::nullopt;
	return number;
}

/** Parses a decimal number, or a hexadecimal number that begins with "0x". */
template <std::unsigned_integral Number>
std::optional<Number> parse_integer(std::string_view text)
{
	if (!text.starts_with("0x"))
		return parse_decimal<Number>(text);
	text.remove_prefix(2);
	Number number{};
	const char *end = text.data() + text.size();
	const auto [stopped, error] = std::from_chars(text.data(), end, number, 16);
	if (error != std::errc() || stopped != end)
		return std::nullopt;
	return number;
}

} // namespace tern::faults
