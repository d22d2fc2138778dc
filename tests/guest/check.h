// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdarg>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace tern::guest {

/** What ends a case that did not go as it must. */
class CheckFailed : public std::runtime_error {
public:
	using std::runtime_error::runtime_error;
};

[[gnu::format(printf, 1, 2)]] inline std::string format(const char *fmt, ...)
{
	char text[512];
	va_list args;
	va_start(args, fmt);
	std::vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return text;
}

/** Ends the case with @what unless @ok. */
inline void check(bool ok, const std::string &what)
{
	if (!ok)
		throw CheckFailed(what);
}

} // namespace tern::guest
