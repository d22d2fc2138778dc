// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace tern::tools {

/**
 * @text for a terminal, which obeys control characters: bytes outside of printable ASCII, also ends
 * of lines, as "?". Programs without rights choose their names and those that they report.
 */
std::string printable(std::string_view text);

/** @text between the quotes of a Prometheus label: as printable(), and quotes and backslashes
 * escaped. */
std::string quotable(std::string_view text);

/** As std::printf() prints it. */
__attribute__((format(printf, 1, 2))) std::string print(const char *format, ...);

} // namespace tern::tools
