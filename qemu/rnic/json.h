/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tern {

/** Returns @text as a string of JSON, in quotes and with escapes (RFC 8259, section 7). Replaces
 * each byte that is not UTF-8 by U+FFFD. */
std::string json_string(std::string_view text);

/** Writes JSON. Names are the program's own and need no escapes; within a list, and for the whole,
 * the name is empty. */
class Json {
public:
	/** @body writes the members. */
	template <typename Body>
	void object(std::string_view name, Body body)
	{
		enclose(name, "{}", body);
	}
	template <typename Body>
	void list(std::string_view name, Body body)
	{
		enclose(name, "[]", body);
	}
	void number(std::string_view name, uint64_t value) { add(name, std::to_string(value)); }
	void real(std::string_view name, double value)
	{
		char text[32];
		std::snprintf(text, sizeof(text), "%.10g", value);
		add(name, text);
	}
	/** @value of a unit a thousand times as small as the one that is written. */
	void thousandths(std::string_view name, uint64_t value)
	{
		const std::string digits = std::to_string(1000 + value % 1000).substr(1);
		add(name, std::to_string(value / 1000) + "." + digits);
	}
	void flag(std::string_view name, bool value) { add(name, value ? "true" : "false"); }
	void text(std::string_view name, std::string_view value) { add(name, json_string(value)); }

	/** Hexadecimal, with a colon after each @group bytes: addresses. */
	void bytes(std::string_view name, std::span<const uint8_t> bytes, size_t group)
	{
		static constexpr std::string_view kDigits = "0123456789abcdef";
		std::string value;
		for (size_t i = 0; i < bytes.size(); i++) {
			value += i && i % group == 0 ? ":" : "";
			value += kDigits[bytes[i] >> 4];
			value += kDigits[bytes[i] & 15];
		}
		text(name, value);
	}

	const std::string &written() const { return text_; }

private:
	template <typename Body>
	void enclose(std::string_view name, const char *brackets, Body body)
	{
		add(name, {brackets, 1});
		first_ = true;
		body();
		text_ += brackets[1];
		first_ = false;
	}
	void add(std::string_view name, std::string_view value)
	{
		if (!std::exchange(first_, false))
			text_ += ',';
		if (!name.empty())
			text_.append("\"").append(name).append("\":");
		text_ += value;
	}

	std::string text_;
	bool first_ = true;
};

} // namespace tern
