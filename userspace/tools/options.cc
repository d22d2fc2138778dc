// SPDX-License-Identifier: GPL-2.0-or-later
#include "options.h"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <cstdio>
#include <system_error>

#include "text.h"

namespace tern::tools {

namespace {

void print_error(const char *program, const std::exception &error)
{
	std::fprintf(stderr, "%s: %s\n", program, printable(error.what()).c_str());
}

} // namespace

/*
 * "+:" has getopt_long() stop at an argument that is no option, and tell a missing value from an
 * unknown option. The word at hand is remembered before the call, as getopt_long() goes on to the
 * next word only after the last short option of a word.
 */
int next_option(int argc, char **argv, const option *options)
{
	opterr = 0;
	const char *word = argv[std::max(optind, 1)]; /* zero has getopt_long() begin anew */
	const int found = getopt_long(argc, argv, "+:", options, nullptr);

	if (found == '?')
		throw UsageError(std::string("wrong option ") + word + "; see --help");
	if (found == ':')
		throw UsageError(std::string(word) + " needs a value; see --help");
	if (found == -1 && optind != argc)
		throw UsageError(std::string("unexpected argument ") + argv[optind] +
		                 "; see --help");
	return found;
}

uint32_t parse_number(const char *option, const std::string &text, uint32_t least, uint32_t most)
{
	const bool hex = text.starts_with("0x");
	const char *end = text.data() + text.size();
	uint32_t value = 0;
	const auto parsed = std::from_chars(text.data() + (hex ? 2 : 0), end, value, hex ? 16 : 10);

	if (parsed.ec != std::errc() || parsed.ptr != end || value < least || value > most)
		throw UsageError(std::string(option) + " takes a number from " +
		                 std::to_string(least) + " to " + std::to_string(most) +
		                 ", not \"" + text + "\"");
	return value;
}

uint32_t parse_seconds(const char *option, const std::string &text)
{
	constexpr double kDay = 86400;
	const char *end = text.data() + text.size();
	double value = 0;
	const auto parsed = std::from_chars(text.data(), end, value);

	if (parsed.ec != std::errc() || parsed.ptr != end || !(value >= 0.001 && value <= kDay))
		throw UsageError(std::string(option) +
		                 " takes seconds from 0.001 to 86400, not \"" + text + "\"");
	return static_cast<uint32_t>(value * 1000);
}

ListenAddress parse_listen(const char *option, const std::string &text)
{
	const size_t colon = text.rfind(':');
	ListenAddress result;
	in_addr address;

	if (colon != std::string::npos)
		result.address = text.substr(0, colon);
	if (inet_pton(AF_INET, result.address.c_str(), &address) != 1)
		throw UsageError(std::string(option) + " takes [IPV4-ADDRESS:]PORT, not \"" + text +
		                 "\"");
	result.port =
	        static_cast<uint16_t>(parse_number(option, text.substr(colon + 1), 1, UINT16_MAX));
	return result;
}

int report_errors(const char *program, int (*run)(int argc, char **argv), int argc, char **argv)
{
	try {
		return run(argc, argv);
	} catch (const UsageError &error) {
		print_error(program, error);
		return 2;
	} catch (const std::exception &error) {
		print_error(program, error);
		return 1;
	}
}

} // namespace tern::tools
