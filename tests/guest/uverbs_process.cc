// SPDX-License-Identifier: GPL-2.0-or-later
#include "uverbs_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "check.h"

namespace tern::guest::uverbs {
namespace {

constexpr uint32_t kDmaBufPages = 256;

char *map(size_t size, int protection, void *at = nullptr)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0);
	void *p = mmap(at, size, protection, flags, -1, 0);
	check(p != MAP_FAILED, "mmap: %s", std::strerror(errno));
	return static_cast<char *>(p);
}

std::string sysfs(const Options &options)
{
	return "/sys/class/infiniband/" + options.device;
}

std::string device_path(const Options &options)
{
	const std::filesystem::directory_iterator folder(sysfs(options) +
	                                                 "/device/infiniband_verbs");
	return "/dev/infiniband/" + folder->path().filename().string();
}

std::array<uint8_t, 16> own_gid(const Options &options)
{
	std::ifstream file(sysfs(options) + "/ports/1/gids/" + std::to_string(options.gid_index));
	std::array<uint8_t, 16> gid{};
	std::string word;
	for (size_t i = 0; i < gid.size() && std::getline(file, word, ':'); i += 2) {
		const unsigned long value = std::stoul(word, nullptr, 16);
		gid[i] = static_cast<uint8_t>(value >> 8);
		gid[i + 1] = static_cast<uint8_t>(value);
	}
	return gid;
}

} // namespace

/* --- contexts --- */

int Context::exchange(int fd)
{
	const std::lock_guard guard(lock);
	for (Shelf &shelf : shelves_)
		while (shelf.count)
			forget(shelf, shelf.count - 1);
	return fd_.exchange(fd);
}

void Context::forget(Shelf &shelf, size_t i)
{
	shelf.stale[shelf.gone++ % kStale] = shelf.live[i];
	shelf.live[i] = shelf.live[--shelf.count];
}

std::optional<Object> Context::any(Kind kind, Rng &rng)
{
	const std::lock_guard guard(lock);
	const Shelf &shelf = shelves_[static_cast<size_t>(kind)];
	if (!shelf.count)
		return {};
	return shelf.live[rng.below(shelf.count)];
}

std::optional<Object> Context::stale(Kind kind, Rng &rng)
{
	const std::lock_guard guard(lock);
	const Shelf &shelf = shelves_[static_cast<size_t>(kind)];
	if (!shelf.gone)
		return {};
	return shelf.stale[rng.below(std::min(shelf.gone, kStale))];
}

std::optional<Object> Context::take(Kind kind, Rng &rng)
{
	const std::lock_guard guard(lock);
	Shelf &shelf = shelves_[static_cast<size_t>(kind)];
	if (!shelf.count)
		return {};
	const size_t i = rng.below(shelf.count);
	const Object taken = shelf.live[i];
	forget(shelf, i);
	return taken;
}

std::optional<Object> Context::add(Kind kind, const Object &object, Rng &rng)
{
	const std::lock_guard guard(lock);
	Shelf &shelf = shelves_[static_cast<size_t>(kind)];
	std::optional<Object> out;
	if (shelf.count == kLive) {
		const size_t i = rng.below(kLive);
		out = shelf.live[i];
		forget(shelf, i);
	}
	shelf.live[shelf.count++] = object;
	return out;
}

void Context::update(Kind kind, const Object &object)
{
	const std::lock_guard guard(lock);
	Shelf &shelf = shelves_[static_cast<size_t>(kind)];
	for (size_t i = 0; i < shelf.count; i++)
		if (shelf.live[i].handle == object.handle)
			shelf.live[i] = object;
}

bool Context::full(Kind kind)
{
	const std::lock_guard guard(lock);
	return shelves_[static_cast<size_t>(kind)].count == kLive;
}

void Context::add_key(MapKey key)
{
	const std::lock_guard guard(lock);
	keys_[keys_added_++ % kKeys] = key;
}

MapKey Context::any_key(Rng &rng)
{
	const std::lock_guard guard(lock);
	return keys_[rng.below(std::clamp(keys_added_, size_t{1}, kKeys))];
}

/* --- memory --- */

Arena::Arena() : base_(map(kSlots * kSlot, PROT_NONE)) {}

void Arena::cover(size_t slot)
{
	length[slot] = 0;
	map(kSlot, PROT_NONE, at(slot));
}

/** Where mremap() has left a hole; another thread may have filled it already. */
void Arena::cover_hole(size_t slot)
{
	mmap(at(slot), kSlot, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
	     -1, 0);
}

Memory::Memory()
        : hole_(map(kPage, PROT_NONE)), read_only_(map(kPage, PROT_READ)),
          file_(memfd_create("memory", MFD_CLOEXEC))
{
	check(file_ >= 0 && !ftruncate(file_, kPart), "a memory file: %s", std::strerror(errno));
	char *room = map(kSize + kPart, PROT_READ | PROT_WRITE);
	base_ = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(room) + kPart - 1) &
	                                 ~(kPart - 1));
	mmap(base_ + kPart, kPart, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, 0);
	madvise(base_ + 2 * kPart, kPart, MADV_HUGEPAGE);
	std::memset(base_, 0x5a, kSize);
}

Process::Process(const Options &o, Stats &s)
        : options(o), stats(s), path(device_path(o)), gid(own_gid(o)),
          xrc_file(open("/tmp/uverbs_fuzz.xrcd", O_RDWR | O_CREAT | O_CLOEXEC, 0600)),
          dma_buf(vgem_buffer(kDmaBufPages))
{
}

} // namespace tern::guest::uverbs
