/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What tests of the front end for vfio-user share: messages, memory, and a card that only notes. */
#pragma once

#include <cstring>
#include <fcntl.h>
#include <linux/vfio.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "qemu/vfio/session.h"

namespace tern::vfio::test {

/** A memfd as QEMU makes it for guest memory. */
inline Fd guest_memory(size_t size, int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
{
	Fd fd(memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (ftruncate(fd.get(), static_cast<off_t>(size)) ||
	    (seals && fcntl(fd.get(), F_ADD_SEALS, seals)))
		return Fd();
	return fd;
}

inline DmaMap whole(uint64_t address, uint64_t size)
{
	return {.argsz = sizeof(DmaMap),
	        .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
	        .offset = 0,
	        .address = address,
	        .size = size};
}

template <typename T>
Message message(Command command, const T &body, std::string_view data = {})
{
	Message made{};
	made.header.command = static_cast<uint16_t>(command);
	made.data.resize(sizeof(body) + data.size());
	made.header.size = static_cast<uint32_t>(sizeof(Header) + made.data.size());
	std::memcpy(made.data.data(), &body, sizeof(body));
	if (!data.empty())
		std::memcpy(made.data.data() + sizeof(body), data.data(), data.size());
	return made;
}

template <typename T>
T body(const Reply &reply)
{
	T value{};
	if (reply.data.size() >= sizeof(value))
		std::memcpy(&value, reply.data.data(), sizeof(value));
	return value;
}

/** Notes what it is told; its registers read as 0x5a. */
class NotingDevice final : public Device {
public:
	void read_bar(unsigned bar, uint64_t offset, std::span<std::byte> to) override
	{
		note("read", bar, offset, to.size());
		for (std::byte &b : to)
			b = std::byte{0x5a};
	}
	void write_bar(unsigned bar, uint64_t offset, std::span<const std::byte> from) override
	{
		note("write", bar, offset, from.size());
	}
	void reset() override { said += "reset "; }
	void flush() override { said += "flush "; }
	void plug(bool plugged) override { said += plugged ? "plug " : "unplug "; }

	std::string take() { return std::exchange(said, {}); }

private:
	void note(const char *what, unsigned bar, uint64_t offset, size_t size)
	{
		said += std::string(what) + std::to_string(bar) + "+" + std::to_string(offset) +
		        ":" + std::to_string(size) + " ";
	}

	std::string said;
};

} // namespace tern::vfio::test
