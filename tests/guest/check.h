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

[[gnu::format(printf, 1, 0)]] inline std::string vformat(const char *fmt, va_list args)
{
	char text[512];
	std::vsnprintf(text, sizeof(text), fmt, args);
	return text;
}

[[gnu::format(printf, 1, 2)]] inline std::string format(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	std::string text = vformat(fmt, args);
	va_end(args);
	return text;
}

/** Ends the case with a reason, which is put into words only then, unless @ok. */
[[gnu::format(printf, 2, 3)]] inline void check(bool ok, const char *fmt, ...)
{
	if (ok) [[likely]]
		return;
	va_list args;
	va_start(args, fmt);
	std::string text = vformat(fmt, args);
	va_end(args);
	throw CheckFailed(text);
}

/**
 * Says that a case leaves something out because the stack or the device lacks @what. vm.checks
 * compares these lines with what each stack is known to lack.
 */
inline void lacking(const char *what)
{
	std::printf("  lacking: %s\n", what);
}

} // namespace tern::guest
