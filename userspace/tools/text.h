// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace tern::tools {

/**
 * @text between the quotes of a JSON string or of a Prometheus label: quotes and backslashes
 * escaped, other bytes outside of printable ASCII as "?". Programs choose their names.
 */
std::string quotable(std::string_view text);

/** As std::printf() prints it. */
__attribute__((format(printf, 1, 2))) std::string print(const char *format, ...);

} // namespace tern::tools
