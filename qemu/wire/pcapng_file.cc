// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/pcapng_file.h"

#include <fcntl.h>

namespace tern::wire {

namespace {

constexpr uint32_t kSectionHeader = 0x0a0d0d0a, kInterface = 1, kEnhancedPacket = 6;
constexpr uint32_t kByteOrder = 0x1a2b3c4d;
constexpr uint32_t kUnknownLength = 0xffffffff; /* each half of it */
constexpr uint16_t kEthernet = 1;               /* link type */
constexpr uint16_t kEndOfOptions = 0, kComment = 1, kInterfaceName = 2, kTimeResolution = 9;
constexpr char kNanoseconds = 9; /* negative power of ten */
constexpr uint64_t kNsPerSecond = 1000000000;

} // namespace

/* Integers have this machine's byte order, which the section header tells. */
void PcapngFile::put(std::span<const std::byte> bytes)
{
	body_.insert(body_.end(), bytes.begin(), bytes.end());
}

void PcapngFile::put16(uint16_t value)
{
	put(std::as_bytes(std::span(&value, 1)));
}

void PcapngFile::put32(uint32_t value)
{
	put(std::as_bytes(std::span(&value, 1)));
}

void PcapngFile::pad()
{
	while (body_.size() % sizeof(uint32_t))
		body_.push_back(std::byte{0});
}

void PcapngFile::put_option(uint16_t code, std::string_view value)
{
	put16(code);
	put16(static_cast<uint16_t>(value.size()));
	put(std::as_bytes(std::span(value)));
	pad();
}

void PcapngFile::end_options()
{
	put16(kEndOfOptions);
	put16(0);
}

/* Type and length come before the body, the length behind it, too. */
void PcapngFile::write_block(uint32_t type)
{
	const auto length = static_cast<uint32_t>(body_.size() + 3 * sizeof(uint32_t));
	const uint32_t head[] = {type, length};
	std::fwrite(head, sizeof(head), 1, file_.get());
	std::fwrite(body_.data(), 1, body_.size(), file_.get());
	std::fwrite(&length, sizeof(length), 1, file_.get());
	body_.clear();
}

std::string PcapngFile::open(const std::string &path)
{
	const std::string error = open_output(path, O_TRUNC, file_);
	if (!error.empty())
		return error;
	put32(kByteOrder);
	put16(1); /* version 1.0 */
	put16(0);
	put32(kUnknownLength);
	put32(kUnknownLength);
	write_block(kSectionHeader);
	return {};
}

uint32_t PcapngFile::interface_of(const Captured &captured)
{
	const auto number = static_cast<uint32_t>(interfaces_.size());
	const auto [place, fresh] = interfaces_.try_emplace(captured.port, number);
	if (!fresh)
		return place->second;
	put16(kEthernet);
	put16(0);
	put32(kSnapLength);
	put_option(kInterfaceName, captured.link.empty() ? "port " + std::to_string(captured.port)
	                                                 : std::string(captured.link));
	put_option(kTimeResolution, {&kNanoseconds, 1});
	end_options();
	write_block(kInterface);
	return number;
}

bool PcapngFile::write(const Captured &captured)
{
	const uint32_t interface = interface_of(captured);
	const uint64_t time = static_cast<uint64_t>(captured.time.tv_sec) * kNsPerSecond +
	                      static_cast<uint64_t>(captured.time.tv_nsec);
	const auto size = static_cast<uint32_t>(captured.frame.size());
	put32(interface);
	put32(static_cast<uint32_t>(time >> 32));
	put32(static_cast<uint32_t>(time));
	put32(size); /* captured */
	put32(size); /* on the wire */
	put(captured.frame);
	pad();
	for (const FaultEvent &event : captured.events)
		put_option(kComment, to_string(event));
	if (!captured.events.empty())
		end_options();
	write_block(kEnhancedPacket);
	return true;
}

bool PcapngFile::finish()
{
	return std::fflush(file_.get()) == 0 && !std::ferror(file_.get());
}

} // namespace tern::wire
