// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/vfio/options.h"

#include <bit>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <sys/random.h>

#include "tern/tern_hw.h"

namespace tern::vfio {

/* The limits of the same properties of the QEMU device. */
constexpr uint32_t kMaxDoorbellPages = 65536;
constexpr uint32_t kMinDeviceMemory = 4096;
constexpr uint32_t kMaxDeviceMemory = 256 << 20;
constexpr uint32_t kMaxSpeed = 4'000'000; /* Mb/s; in kb/s it must fit into 32 bits */

const char *const kUsage =
        "usage: tern-card --socket PATH --wire PATH [OPTION...]\n"
        "\n"
        "A Tern card, to which QEMU (10.1 or newer) connects by -device vfio-user-pci.\n"
        "\n"
        "  --socket PATH       the Unix socket for QEMU\n"
        "  --wire PATH         the socket of tern-switch --shared\n"
        "  --mac ADDRESS       as 52:54:00:12:34:56; else one of chance\n"
        "  --engines N         1 to 16 (1)\n"
        "  --vectors N         1 to 256 (8)\n"
        "  --doorbell-pages N  a power of two, up to 65536 (2048)\n"
        "  --dm-size BYTES     device memory: 0 or a power of two, 4096 to 268435456 (1048576)\n"
        "  --speed MBPS        as told to the driver, 1 to 4000000 (100000)\n"
        "  --trace             what happens, to standard error\n"
        "  --help              this text\n";

static bool parse_number(std::string_view text, uint32_t &value)
{
	const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
	return error == std::errc() && end == text.end();
}

static bool parse_mac(std::string_view text, std::array<uint8_t, 6> &mac)
{
	if (text.size() != 3 * mac.size() - 1)
		return false;
	for (size_t i = 0; i < mac.size(); i++) {
		const std::string_view byte = text.substr(3 * i, 2);
		const auto [end, error] = std::from_chars(byte.begin(), byte.end(), mac[i], 16);
		if (error != std::errc() || end != byte.end() ||
		    (i + 1 < mac.size() && text[3 * i + 2] != ':'))
			return false;
	}
	return !(mac[0] & 1); /* no group's */
}

static std::string check(const Options &options)
{
	const Card::Config &card = options.card;
	if (options.socket.empty() || card.wire.empty())
		return "--socket and --wire are needed; see --help";
	if (card.engines < 1 || card.engines > hw::TERN_MAX_ENGINES)
		return "--engines: 1 to 16";
	if (card.vectors < 1 || card.vectors > TERN_ENGINE_MAX_VECTORS)
		return "--vectors: 1 to 256";
	if (!std::has_single_bit(card.doorbell_pages) || card.doorbell_pages > kMaxDoorbellPages ||
	    card.doorbell_pages < card.engines)
		return "--doorbell-pages: a power of two, at most 65536, and one for each engine";
	if (card.device_memory &&
	    (!std::has_single_bit(card.device_memory) || card.device_memory < kMinDeviceMemory ||
	     card.device_memory > kMaxDeviceMemory))
		return "--dm-size: 0 or a power of two, 4096 to 268435456";
	if (card.speed < 1 || card.speed > kMaxSpeed)
		return "--speed: 1 to 4000000";
	return {};
}

/* Chooses an address from the range that QEMU uses for its cards. */
static void choose_mac(std::array<uint8_t, 6> &mac)
{
	mac = {0x52, 0x54, 0x00};
	[[maybe_unused]] const ssize_t size = getrandom(&mac[3], 3, 0);
}

std::string parse_options(int argc, char **argv, Options &options)
{
	Card::Config &card = options.card;
	const std::pair<std::string_view, std::string *> texts[] = {{"--socket", &options.socket},
	                                                            {"--wire", &card.wire}};
	const std::pair<std::string_view, uint32_t *> numbers[] = {
	        {"--engines", &card.engines},
	        {"--vectors", &card.vectors},
	        {"--doorbell-pages", &card.doorbell_pages},
	        {"--dm-size", &card.device_memory},
	        {"--speed", &card.speed},
	};
	choose_mac(card.mac);
	for (int i = 1; i < argc; i++) {
		const std::string_view name = argv[i];
		if (name == "--help") {
			options.help = true;
			return {};
		}
		if (name == "--trace") {
			card.trace = true;
			continue;
		}
		const char *value = argv[++i];
		bool known = name == "--mac";
		bool right = known && value && parse_mac(value, card.mac);
		for (const auto &[text, to] : texts) {
			if (name != text)
				continue;
			known = true;
			right = value != nullptr;
			*to = right ? value : "";
		}
		for (const auto &[number, to] : numbers) {
			if (name != number)
				continue;
			known = true;
			right = value && parse_number(value, *to);
		}
		if (!known)
			return std::string(name) + ": no such option; see --help";
		if (!value)
			return std::string(name) + " needs a value";
		if (!right)
			return std::string(name) + ": " + value + " is no " +
			       (name == "--mac" ? "address" : "number");
	}
	return check(options);
}

} // namespace tern::vfio
