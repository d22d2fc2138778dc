/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages of the vfio-user protocol, as QEMU's docs/interop/vfio-user.rst specifies them: a
 * header, a structure that depends on the command, and data. Numbers have the byte order of the
 * host. Constants of the structures are those of <linux/vfio.h>.
 */
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "qemu/shm/fd.h"

namespace tern::vfio {

/* What a guest reads and writes is little-endian, and is taken out of messages as it is. */
static_assert(std::endian::native == std::endian::little);

constexpr uint16_t kMajor = 0;
constexpr uint16_t kMinor = 0;

/** Bytes of data in one message, as told to the client. */
constexpr uint32_t kMaxTransfer = 64 * 1024;
/** Descriptors in one message, as told to the client; QEMU accepts no larger number. */
constexpr size_t kMaxFds = 16;
/** DMA ranges at a time, as told to the client. */
constexpr size_t kMaxRanges = 4096;
constexpr uint64_t kPageSize = 4096;

enum class Command : uint16_t {
	Version = 1,
	DmaMap = 2,
	DmaUnmap = 3,
	GetDeviceInfo = 4,
	GetRegionInfo = 5,
	GetIrqInfo = 7,
	SetIrqs = 8,
	RegionRead = 9,
	RegionWrite = 10,
	Reset = 13,
};

constexpr uint32_t kTypeMask = 0xf;
constexpr uint32_t kTypeCommand = 0;
constexpr uint32_t kTypeReply = 1;
constexpr uint32_t kNoReply = 1 << 4;
constexpr uint32_t kError = 1 << 5;

struct Header {
	uint16_t id;
	uint16_t command;
	uint32_t size; /* of the whole message */
	uint32_t flags;
	uint32_t error;
};
static_assert(sizeof(Header) == 16);

struct Version {
	uint16_t major;
	uint16_t minor;
};
static_assert(sizeof(Version) == 4);

struct DmaMap {
	uint32_t argsz;
	uint32_t flags; /* VFIO_DMA_MAP_FLAG_* */
	uint64_t offset;
	uint64_t address;
	uint64_t size;
};
static_assert(sizeof(DmaMap) == 32);

struct DmaUnmap {
	uint32_t argsz;
	uint32_t flags; /* VFIO_DMA_UNMAP_FLAG_* */
	uint64_t address;
	uint64_t size;
};
static_assert(sizeof(DmaUnmap) == 24);

struct DeviceInfo {
	uint32_t argsz;
	uint32_t flags; /* VFIO_DEVICE_FLAGS_* */
	uint32_t regions;
	uint32_t irqs;
};
static_assert(sizeof(DeviceInfo) == 16);

struct RegionInfo {
	uint32_t argsz;
	uint32_t flags; /* VFIO_REGION_INFO_FLAG_* */
	uint32_t index;
	uint32_t cap_offset;
	uint64_t size;
	uint64_t offset;
};
static_assert(sizeof(RegionInfo) == 32);

struct IrqInfo {
	uint32_t argsz;
	uint32_t flags; /* VFIO_IRQ_INFO_* */
	uint32_t index;
	uint32_t count;
};
static_assert(sizeof(IrqInfo) == 16);

struct IrqSet {
	uint32_t argsz;
	uint32_t flags; /* VFIO_IRQ_SET_* */
	uint32_t index;
	uint32_t start;
	uint32_t count;
};
static_assert(sizeof(IrqSet) == 20);

struct RegionAccess {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
};
static_assert(sizeof(RegionAccess) == 16);

constexpr size_t kMaxMessage = sizeof(Header) + sizeof(RegionAccess) + kMaxTransfer;

/** A message of the client. Nobody else can change it any more. */
struct Message {
	Header header;
	std::vector<std::byte> data; /* behind the header */
	std::vector<Fd> fds;
};

/** Our answer. With an error it has no data. */
struct Reply {
	int error = 0; /* errno */
	std::vector<std::byte> data;
	int fd = -1; /* goes along; it is not the reply's own */
	/** The client violates the protocol: the connection ends, and there is no reply. */
	bool malformed = false;

	static Reply failed(int error)
	{
		Reply reply;
		reply.error = error;
		return reply;
	}
	static Reply end()
	{
		Reply reply;
		reply.malformed = true;
		return reply;
	}

	template <typename T>
	void append(const T &value)
	{
		static_assert(std::is_trivially_copyable_v<T>);
		append_bytes(std::as_bytes(std::span(&value, 1)));
	}
	void append_bytes(std::span<const std::byte> bytes)
	{
		data.insert(data.end(), bytes.begin(), bytes.end());
	}
};

} // namespace tern::vfio
