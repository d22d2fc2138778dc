// SPDX-License-Identifier: GPL-2.0-or-later
#include "dma_buf.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

namespace tern::guest {
namespace {

/* Of the DRM's interface, whose headers are no part of the C library's. */
struct CreateDumb {
	uint32_t height, width, bits_per_pixel, flags;
	uint32_t handle, pitch; /* this and the rest: answers */
	uint64_t size;
};
struct PrimeHandle {
	uint32_t handle, flags;
	int32_t fd;
};
constexpr unsigned long kCreateDumb = _IOWR('d', 0xb2, CreateDumb);
constexpr unsigned long kHandleToFd = _IOWR('d', 0x2d, PrimeHandle);

} // namespace

Socket vgem_buffer(uint32_t pages)
{
	constexpr uint32_t kPixelBits = 32, kPixelsOfPage = 4096 * 8 / kPixelBits;
	const Socket card(open("/dev/dri/card0", O_RDWR | O_CLOEXEC));
	check(card.fd() >= 0, "/dev/dri/card0: %s", std::strerror(errno));
	CreateDumb create = {.height = pages,
	                     .width = kPixelsOfPage,
	                     .bits_per_pixel = kPixelBits,
	                     .flags = 0,
	                     .handle = 0,
	                     .pitch = 0,
	                     .size = 0};
	check(!ioctl(card.fd(), kCreateDumb, &create), "CREATE_DUMB: %s", std::strerror(errno));
	PrimeHandle prime = {.handle = create.handle, .flags = O_RDWR | O_CLOEXEC, .fd = -1};
	check(!ioctl(card.fd(), kHandleToFd, &prime), "PRIME_HANDLE_TO_FD: %s",
	      std::strerror(errno));
	return Socket(prime.fd);
}

Socket memory_file_buffer(uint32_t pages)
{
	const size_t size = size_t{pages} * 4096;
	const Socket file(memfd_create("tern", MFD_ALLOW_SEALING | MFD_CLOEXEC));
	check(file.fd() >= 0 && !ftruncate(file.fd(), static_cast<off_t>(size)) &&
	              !fcntl(file.fd(), F_ADD_SEALS, F_SEAL_SHRINK),
	      "a memory file: %s", std::strerror(errno));
	const Socket exporter(open(kUdmabuf, O_RDWR | O_CLOEXEC));
	check(exporter.fd() >= 0, "%s: %s", kUdmabuf, std::strerror(errno));
	udmabuf_create create = {.memfd = static_cast<uint32_t>(file.fd()),
	                         .flags = UDMABUF_FLAGS_CLOEXEC,
	                         .offset = 0,
	                         .size = size};
	Socket buffer(ioctl(exporter.fd(), UDMABUF_CREATE, &create));
	check(buffer.fd() >= 0, "UDMABUF_CREATE: %s", std::strerror(errno));
	return buffer;
}

} // namespace tern::guest
