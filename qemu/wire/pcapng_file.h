/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "qemu/wire/capture_file.h"
#include "qemu/wire/output_file.h"

namespace tern::wire {

/** A pcapng file (draft-ietf-opsawg-pcapng) with an interface for each port and a comment for each
 * fault, which libpcap cannot write. */
class PcapngFile final : public CaptureFile {
public:
	std::string open(const std::string &path) override;
	bool write(const Captured &captured) override;
	bool finish() override;

private:
	/* A block's body is composed first, as its length comes before it. */
	void put(std::span<const std::byte> bytes);
	void put16(uint16_t value);
	void put32(uint32_t value);
	void put_option(uint16_t code, std::string_view value);
	void end_options();
	void pad();
	void write_block(uint32_t type);
	uint32_t interface_of(const Captured &captured);

	OutputFile file_;
	std::vector<std::byte> body_;
	std::map<unsigned, uint32_t> interfaces_; /* by port */
};

} // namespace tern::wire
