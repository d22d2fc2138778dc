// SPDX-License-Identifier: GPL-2.0-or-later
#include "text.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace tern::tools {

std::string printable(std::string_view text)
{
	std::string result(text);

	std::ranges::replace_if(
	        result, [](char c) { return c < ' ' || c > '~'; }, '?');
	return result;
}

std::string quotable(std::string_view text)
{
	std::string result;

	for (const char c : printable(text)) {
		if (c == '"' || c == '\\')
			result += '\\';
		result += c;
	}
	return result;
}

std::string print(const char *format, ...)
{
	va_list args, again;

	va_start(args, format);
	va_copy(again, args);
	std::string result(static_cast<size_t>(std::vsnprintf(nullptr, 0, format, args)), '\0');
	std::vsnprintf(result.data(), result.size() + 1, format, again);
	va_end(again);
	va_end(args);
	return result;
}

} // namespace tern::tools
