// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/shm/segment.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace tern::shm {

namespace {

std::atomic<uint64_t> mapped; /* by all threads */

bool reserve_address_space(size_t size)
{
	uint64_t before = mapped;
	do {
		if (size > kMaxMapped - before)
			return false;
	} while (!mapped.compare_exchange_weak(before, before + size));
	return true;
}

} // namespace

Fd make_segment(const char *name, size_t size)
{
	Fd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (!fd || ftruncate(fd.get(), static_cast<off_t>(size)) ||
	    fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return Fd();
	return fd;
}

bool seal_for_readers(int fd)
{
	constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
	/* Fails if another engine has done it. */
	fcntl(fd, F_ADD_SEALS, kSeals | F_SEAL_SEAL);
	const int seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && (seals & kSeals) == kSeals;
}

Fd reopen_for_reading(int fd)
{
	const std::string path = "/proc/self/fd/" + std::to_string(fd);
	return Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

size_t segment_size(int fd)
{
	struct stat status;
	return fstat(fd, &status) || status.st_size < 0 ? 0 : static_cast<size_t>(status.st_size);
}

std::string check_segment(int fd, size_t size)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0)
		return "not a memfd";
	if (!(seals & F_SEAL_SHRINK))
		return "not sealed against shrinking";
	/* Check the size after the seal, when it cannot shrink any more. */
	if (size == 0 || segment_size(fd) < size)
		return "too short";
	return {};
}

Mapping::~Mapping()
{
	if (bytes_.empty())
		return;
	munmap(bytes_.data(), bytes_.size());
	mapped -= bytes_.size();
}

std::string Mapping::map(const Fd &fd, size_t size, Access access)
{
	if (const std::string error = check_segment(fd.get(), size); !error.empty())
		return error;
	if (!reserve_address_space(size))
		return "too large";
	const int protection = access == Access::Read ? PROT_READ : PROT_READ | PROT_WRITE;
	void *const at = mmap(nullptr, size, protection, MAP_SHARED, fd.get(), 0);
	if (at == MAP_FAILED) {
		mapped -= size;
		return std::strerror(errno);
	}
	*this = Mapping();
	bytes_ = {static_cast<std::byte *>(at), size};
	return {};
}

std::string Mapping::replace(const Fd &fd)
{
	if (const std::string error = check_segment(fd.get(), bytes_.size()); !error.empty())
		return error;
	void *const at = mmap(bytes_.data(), bytes_.size(), PROT_READ | PROT_WRITE,
	                      MAP_SHARED | MAP_FIXED, fd.get(), 0);
	return at == MAP_FAILED ? std::strerror(errno) : std::string();
}

} // namespace tern::shm
