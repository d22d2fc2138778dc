// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/json.h"

#include <algorithm>

namespace tern {

namespace {

/* Returns the number of bytes of the well-formed UTF-8 character at the front of @text, which is
 * not empty, or 0 if there is none (RFC 3629, section 4). */
size_t utf8_size(std::string_view text)
{
	const auto byte = [&](size_t i) {
		return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0};
	};
	const uint8_t first = byte(0);
	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	/* The limits exclude longer forms than needed, surrogates, and what is above U+10FFFF. */
	const uint8_t lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
	const uint8_t highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
	if (byte(1) < lowest || byte(1) > highest)
		return 0;
	const size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	for (size_t i = 2; i < size; i++)
		if (byte(i) >> 6 != 2)
			return 0;
	return size;
}

} // namespace

std::string json_string(std::string_view text)
{
	std::string out = "\"";
	while (!text.empty()) {
		const size_t size = utf8_size(text);
		const char first = text.front();
		if (!size) {
			out += "\\ufffd";
		} else if (static_cast<uint8_t>(first) < ' ') {
			char escape[8];
			std::snprintf(escape, sizeof(escape), "\\u%04x", first);
			out += escape;
		} else {
			if (first == '"' || first == '\\')
				out += '\\';
			out += text.substr(0, size);
		}
		text.remove_prefix(std::max<size_t>(size, 1));
	}
	return out + '"';
}

} // namespace tern
