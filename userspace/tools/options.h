// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <getopt.h>
#include <stdexcept>
#include <string>

namespace tern::tools {

/** What ends a tool with exit code 1; its text is the line that the user gets. */
class Error : public std::runtime_error {
public:
	using std::runtime_error::runtime_error;
};

/** A wrong command line: exit code 2. */
class UsageError : public Error {
public:
	using Error::Error;
};

/**
 * The next option of @options, as getopt_long() tells it, or -1 after the last. Throws UsageError
 * for another option, and for arguments that are no options.
 */
int next_option(int argc, char **argv, const option *options);

/** @text of @option as a whole number from @least to @most, decimal or with 0x. Throws UsageError.
 */
uint32_t parse_number(const char *option, const std::string &text, uint32_t least, uint32_t most);

/** @text of @option as a positive number of seconds, up to a day, in ms. Throws UsageError. */
uint32_t parse_seconds(const char *option, const std::string &text);

/** Where to listen: an IPv4 address and a TCP port. */
struct ListenAddress {
	std::string address = "127.0.0.1";
	uint16_t port = 0;
};

/** @text of @option as [ADDRESS:]PORT. Throws UsageError. */
ListenAddress parse_listen(const char *option, const std::string &text);

/**
 * Calls @run and turns errors into one line on stderr that begins with @program. Returns the exit
 * code: that of @run, 1 for an Error, 2 for a UsageError.
 */
int report_errors(const char *program, int (*run)(int argc, char **argv), int argc, char **argv);

} // namespace tern::tools
