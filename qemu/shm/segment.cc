// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/shm/segment.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace tern::shm {

namespace {

constexpr uint64_t kPageSize = 4096;

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

/* Offsets and sizes of mappings are multiples of it: the size of a huge page, if @fd has those. */
uint64_t block_size(int fd)
{
	struct stat status;
	return std::max<uint64_t>(fstat(fd, &status) ? 0 : static_cast<uint64_t>(status.st_blksize),
	                          kPageSize);
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
	if (blocks_.empty())
		return;
	munmap(blocks_.data(), blocks_.size());
	mapped -= blocks_.size();
}

std::string Mapping::map(const Fd &fd, size_t size, Access access, uint64_t offset)
{
	if (size == 0 || size > UINT64_MAX - offset)
		return "too short";
	if (const std::string error = check_segment(fd.get(), offset + size); !error.empty())
		return error;
	const uint64_t block = block_size(fd.get());
	const uint64_t before = offset % block;
	const uint64_t whole = (before + size + block - 1) / block * block;
	if (!reserve_address_space(whole))
		return "too large";
	const int protection = access == Access::Read ? PROT_READ : PROT_READ | PROT_WRITE;
	void *const at = mmap(nullptr, whole, protection, MAP_SHARED, fd.get(),
	                      static_cast<off_t>(offset - before));
	if (at == MAP_FAILED) {
		mapped -= whole;
		return std::strerror(errno);
	}
	*this = Mapping();
	blocks_ = {static_cast<std::byte *>(at), whole};
	bytes_ = blocks_.subspan(before, size);
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
