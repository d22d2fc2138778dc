// SPDX-License-Identifier: GPL-2.0-or-later
/* Regions, windows, memory of the device; and what a process does to its address space. */
#include <rdma/ib_user_ioctl_verbs.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "uverbs_fuzzer.h"

namespace tern::guest::uverbs {
namespace {

constexpr size_t kPage = Memory::kPage;
constexpr uint32_t kLocalWrite = IB_UVERBS_ACCESS_LOCAL_WRITE,
                   kRemote = IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_READ |
                             IB_UVERBS_ACCESS_REMOTE_ATOMIC,
                   kOnDemand = IB_UVERBS_ACCESS_ON_DEMAND, kZeroBased = IB_UVERBS_ACCESS_ZERO_BASED,
                   kBind = IB_UVERBS_ACCESS_MW_BIND;

/* --- regions --- */

uint32_t access(Fuzzer &f, uint32_t more = 0)
{
	if (f.rng.chance(1, 8))
		return f.flags(0xff);
	return kLocalWrite | kRemote | kBind | more;
}

int register_mr(Fuzzer &f, ib_uverbs_reg_mr &in, uint64_t first)
{
	ib_uverbs_reg_mr_resp out = {};
	in.pd_handle = f.handle(Kind::kPd);
	const int err = f.call(
	        Command{.number = IB_USER_VERBS_CMD_REG_MR, .in = part(in), .out = part(out)});
	if (!err)
		f.created(Kind::kMr,
		          {.handle = out.mr_handle,
		           .number = out.lkey,
		           .key = first,
		           .type = in.access_flags & kOnDemand ? uint8_t{1} : uint8_t{0}});
	return err;
}

int register_range(Fuzzer &f, uint32_t flags)
{
	ib_uverbs_reg_mr in = {};
	uint64_t length;
	const uint64_t start = f.memory(length);
	in.start = f.value(start);
	in.length = f.value(length);
	in.hca_va =
	        f.value(f.rng.chance(1, 2) ? start : (start & (kPage - 1)) + (f.rng.next() << 12));
	in.access_flags = flags;
	return register_mr(f, in, flags & kZeroBased ? 0 : in.hca_va);
}

int reg_mr(Fuzzer &f)
{
	return register_range(f, access(f));
}

int reg_mr_on_demand(Fuzzer &f)
{
	return register_range(f, access(f, kOnDemand));
}

int reg_mr_implicit(Fuzzer &f)
{
	ib_uverbs_reg_mr in = {};
	in.length = f.value(~uint64_t{0});
	in.access_flags = access(f, kOnDemand);
	uint64_t length;
	return register_mr(f, in, f.memory(length));
}

int rereg_mr(Fuzzer &f)
{
	ib_uverbs_rereg_mr in = {};
	ib_uverbs_rereg_mr_resp out;
	uint64_t length;
	const uint64_t start = f.memory(length);
	in.mr_handle = f.handle(Kind::kMr);
	in.flags = f.value(static_cast<uint32_t>(f.rng.below(8)));
	in.start = f.value(start);
	in.length = f.value(length);
	in.hca_va = f.value(start);
	in.pd_handle = f.handle(Kind::kPd);
	in.access_flags = access(f);
	return f.call(
	        Command{.number = IB_USER_VERBS_CMD_REREG_MR, .in = part(in), .out = part(out)});
}

int reg_mr_dma_buf(Fuzzer &f)
{
	const uint64_t offset = f.value(kPage * f.rng.below(64)), length = f.value(kPage * 16);
	const uint64_t iova = f.value(offset);
	uint32_t lkey = 0, rkey;
	Method method(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
	method.handle(UVERBS_ATTR_REG_DMABUF_MR_HANDLE)
	        .handle(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, f.handle(Kind::kPd))
	        .in(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, offset)
	        .in(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, length)
	        .in(UVERBS_ATTR_REG_DMABUF_MR_IOVA, iova)
	        .in(UVERBS_ATTR_REG_DMABUF_MR_FD,
	            f.value(static_cast<uint32_t>(f.process.dma_buf.fd())))
	        .in(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, f.value(kLocalWrite | kRemote))
	        .out(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, lkey)
	        .out(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, rkey);
	const int err = f.call(method);
	if (!err)
		f.created(Kind::kMr, {.handle = method.result(0), .number = lkey, .key = iova});
	return err;
}

int query_mr(Fuzzer &f)
{
	uint32_t lkey, rkey;
	uint64_t length, iova;
	Method method(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR);
	method.handle(UVERBS_ATTR_QUERY_MR_HANDLE, f.handle(Kind::kMr))
	        .out(UVERBS_ATTR_QUERY_MR_RESP_LKEY, lkey)
	        .out(UVERBS_ATTR_QUERY_MR_RESP_RKEY, rkey)
	        .out(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, length)
	        .out(UVERBS_ATTR_QUERY_MR_RESP_IOVA, iova);
	return f.call(method);
}

int advise_mr(Fuzzer &f)
{
	ib_uverbs_sge parts[4];
	for (ib_uverbs_sge &sge : parts) {
		const Object region = f.object(Kind::kMr, 1);
		sge = {f.value(region.key), f.value(static_cast<uint32_t>(f.rng.below(64 * kPage))),
		       f.value(region.number)};
	}
	Method method(UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR);
	method.handle(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, f.handle(Kind::kPd))
	        .in(UVERBS_ATTR_ADVISE_MR_ADVICE, f.value(f.rng.below(3)))
	        .in(UVERBS_ATTR_ADVISE_MR_FLAGS, f.value(static_cast<uint32_t>(f.rng.below(2))))
	        .in(UVERBS_ATTR_ADVISE_MR_SGE_LIST, parts, sizeof(parts[0]) * (1 + f.rng.below(4)));
	return f.call(method);
}

int alloc_mw(Fuzzer &f)
{
	ib_uverbs_alloc_mw in = {};
	ib_uverbs_alloc_mw_resp out = {};
	in.pd_handle = f.handle(Kind::kPd);
	in.mw_type = f.value(static_cast<uint8_t>(1 + f.rng.below(2)));
	const int err = f.call(
	        Command{.number = IB_USER_VERBS_CMD_ALLOC_MW, .in = part(in), .out = part(out)});
	if (!err)
		f.created(Kind::kMw, {.handle = out.mw_handle, .number = out.rkey});
	return err;
}

/* --- memory of the device --- */

int alloc_dm(Fuzzer &f)
{
	const uint64_t length = f.value(1 + f.rng.below(16 * kPage));
	uint64_t key = 0;
	Method method(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
	method.handle(UVERBS_ATTR_ALLOC_DM_HANDLE)
	        .in(UVERBS_ATTR_ALLOC_DM_LENGTH, length)
	        .in(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, f.value(static_cast<uint32_t>(f.rng.below(15))))
	        .out(TERN_ATTR_ALLOC_DM_RESP_KEY, key);
	const int err = f.call(method);
	if (!err)
		f.created(Kind::kDm,
		          {.handle = method.result(0),
		           .key = key,
		           .length = static_cast<uint32_t>((length + kPage - 1) & ~(kPage - 1))});
	return err;
}

int query_dm(Fuzzer &f)
{
	uint64_t key, length;
	Method method(UVERBS_OBJECT_DM, TERN_METHOD_DM_QUERY);
	method.handle(TERN_ATTR_DM_QUERY_HANDLE, f.handle(Kind::kDm))
	        .out(TERN_ATTR_DM_QUERY_RESP_KEY, key)
	        .out(TERN_ATTR_DM_QUERY_RESP_LENGTH, length);
	return f.call(method);
}

int reg_mr_dm(Fuzzer &f)
{
	const Object dm = f.object(Kind::kDm);
	const uint64_t length = 4 * (1 + f.rng.below(std::max(dm.length / kPage, size_t{1})));
	uint32_t lkey = 0, rkey;
	Method method(UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG);
	method.handle(UVERBS_ATTR_REG_DM_MR_HANDLE)
	        .in(UVERBS_ATTR_REG_DM_MR_OFFSET, f.value(uint64_t{0}))
	        .in(UVERBS_ATTR_REG_DM_MR_LENGTH, f.value(length))
	        .handle(UVERBS_ATTR_REG_DM_MR_PD_HANDLE, f.handle(Kind::kPd))
	        .in(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, access(f, kZeroBased))
	        .handle(UVERBS_ATTR_REG_DM_MR_DM_HANDLE, dm.handle)
	        .out(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, lkey)
	        .out(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, rkey);
	const int err = f.call(method);
	if (!err)
		f.created(Kind::kMr, {.handle = method.result(0), .number = lkey});
	return err;
}

/* --- mappings of the device --- */

int map(Fuzzer &f)
{
	const MapKey key = f.context->any_key(f.rng);
	const size_t slot = f.rng.below(Arena::kSlots);
	const size_t length = f.value(key.length);
	if (!length || length > Arena::kSlot)
		return kNothing;
	const int protection =
	        f.value(PROT_READ | PROT_WRITE) & (PROT_READ | PROT_WRITE | PROT_EXEC);
	const int kind = f.rng.chance(1, 12) ? MAP_PRIVATE : MAP_SHARED;
	const int populate = f.rng.chance(1, 8) ? MAP_POPULATE : 0;
	f.process.arena.cover(slot);
	void *at = mmap(f.process.arena.at(slot), length, protection, kind | MAP_FIXED | populate,
	                f.context->fd(), static_cast<off_t>(f.value(key.offset)));
	if (at == MAP_FAILED)
		return errno;
	f.process.arena.length[slot] = length;
	return 0;
}

int unmap(Fuzzer &f)
{
	f.process.arena.cover(f.rng.below(Arena::kSlots));
	return 0;
}

/** Moves, shrinks or grows a mapping, or (from a length of zero) doubles it. */
int remap(Fuzzer &f)
{
	Arena &arena = f.process.arena;
	const size_t from = f.rng.below(Arena::kSlots), to = f.rng.below(Arena::kSlots);
	const size_t length = arena.length[from];
	if (!length || from == to)
		return kNothing;
	const size_t half = (length / 2 + kPage - 1) & ~(kPage - 1);
	const size_t old = f.one_of<size_t>({length, length, half, 0});
	const size_t next = f.one_of<size_t>({length, half, length + kPage, 2 * length});
	void *at = mremap(arena.at(from), old, std::min(next, Arena::kSlot),
	                  MREMAP_MAYMOVE | MREMAP_FIXED, arena.at(to));
	const int err = at == MAP_FAILED ? errno : 0;
	if (err)
		return err;
	arena.length[to] = std::min(next, Arena::kSlot);
	if (old) {
		arena.length[from] = 0;
		arena.cover_hole(from);
	}
	return 0;
}

/** A part of a mapping, or of the memory that is registered. */
char *some_pages(Fuzzer &f, size_t &length)
{
	const size_t slot = f.rng.below(Arena::kSlots);
	const bool device = f.rng.chance(1, 2) && f.process.arena.length[slot];
	char *base = device ? f.process.arena.at(slot) : f.process.memory.base();
	const size_t pages = (device ? Arena::kSlot : Memory::kSize) / kPage;
	const size_t first = device ? f.rng.below(4) : f.rng.below(pages);
	length = kPage * (1 + f.rng.below(std::min<size_t>(pages - first, 64)));
	return base + first * kPage;
}

int protect(Fuzzer &f)
{
	size_t length;
	char *at = some_pages(f, length);
	const int most = f.one_of<int>({PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
	                                PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC});
	return mprotect(at, length, most) ? errno : 0;
}

int advise(Fuzzer &f)
{
	size_t length;
	char *at = some_pages(f, length);
	const int advice =
	        f.one_of<int>({MADV_DONTNEED, MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_DONTFORK,
	                       MADV_DOFORK, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_PAGEOUT, MADV_COLD,
	                       MADV_MERGEABLE, MADV_UNMERGEABLE, MADV_WIPEONFORK, MADV_KEEPONFORK,
	                       MADV_POPULATE_WRITE, MADV_DONTDUMP});
	return madvise(at, length, advice) ? errno : 0;
}

/** Other pages in place of those that may be registered. */
int replace(Fuzzer &f)
{
	char *base = f.process.memory.base();
	const size_t first = kPage * f.rng.below(Memory::kSize / kPage);
	const size_t length = std::min(kPage * (1 + f.rng.below(32)), Memory::kSize - first);
	const bool of_file = f.rng.chance(1, 3);
	const int flags = MAP_FIXED | (of_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
	const off_t offset = static_cast<off_t>(of_file ? first % Memory::kPart : 0);
	void *at = mmap(base + first, length, PROT_READ | PROT_WRITE, flags,
	                of_file ? f.process.memory.file() : -1, offset);
	return at == MAP_FAILED ? errno : 0;
}

thread_local sigjmp_buf t_fault;
thread_local volatile sig_atomic_t t_writing;

void on_fault(int signal)
{
	if (t_writing)
		siglongjmp(t_fault, 1);
	::signal(signal, SIG_DFL);
	raise(signal);
}

/** Random values in rings, records and doorbells. */
[[gnu::noinline]] int write_words(Fuzzer &f)
{
	const size_t slot = f.rng.below(Arena::kSlots);
	const size_t words = f.process.arena.length[slot] / sizeof(uint64_t);
	if (!words)
		return kNothing;
	const size_t first = f.rng.below(f.rng.chance(1, 2) ? 8 : words);
	const size_t end = std::min(first + 1 + f.rng.below(16), words);
	auto *at = reinterpret_cast<volatile uint64_t *>(f.process.arena.at(slot));
	for (size_t i = first; i < end; i++) {
		const uint64_t number = f.object(Kind::kQp).number;
		at[i] = f.one_of<uint64_t>({f.rng.next(), f.rng.below(256), at[i] + 1, number,
		                            f.rng.below(64) << 32 | number});
	}
	return 0;
}

/** The mapping may go meanwhile. */
int poke(Fuzzer &f)
{
	if (sigsetjmp(t_fault, 1)) {
		t_writing = 0;
		return EFAULT;
	}
	t_writing = 1;
	const int err = write_words(f);
	t_writing = 0;
	return err;
}

/** A process that shares the file, and has the mappings that it inherits. */
int fork_child(Fuzzer &f)
{
	Context &one = f.process.contexts[0], &two = f.process.contexts[1];
	std::unique_lock first(one.lock), second(two.lock);
	const pid_t child = fork();
	first.unlock();
	second.unlock();
	if (child < 0)
		return errno;
	if (!child) {
		for (uint64_t steps = f.rng.below(40); steps; steps--)
			f.step();
		_exit(0);
	}
	if (f.rng.chance(1, 3))
		kill(child, SIGKILL);
	waitpid(child, nullptr, 0);
	return 0;
}

constexpr Operation kOperations[] = {
        {"reg_mr", 20, reg_mr, true},
        {"reg_mr_on_demand", 12, reg_mr_on_demand, true},
        {"reg_mr_implicit", 5, reg_mr_implicit, true},
        {"reg_mr_dma_buf", 8, reg_mr_dma_buf, true},
        {"reg_mr_dm", 8, reg_mr_dm, true},
        {"rereg_mr", 12, rereg_mr},
        {"query_mr", 4, query_mr},
        {"advise_mr", 15, advise_mr},
        {"dereg_mr", 15, destroy<Kind::kMr>},
        {"alloc_mw", 10, alloc_mw, true},
        {"dealloc_mw", 6, destroy<Kind::kMw>},
        {"alloc_dm", 8, alloc_dm, true},
        {"query_dm", 4, query_dm},
        {"free_dm", 5, destroy<Kind::kDm>},
        {"map", 30, map},
        {"unmap", 12, unmap},
        {"remap", 8, remap},
        {"protect", 8, protect},
        {"advise", 12, advise},
        {"replace", 10, replace},
        {"poke", 30, poke},
        {"fork", 1, fork_child},
};

} // namespace

std::span<const Operation> memory_operations()
{
	static const bool handled = [] {
		signal(SIGSEGV, on_fault);
		signal(SIGBUS, on_fault);
		return true;
	}();
	static_cast<void>(handled);
	return kOperations;
}

} // namespace tern::guest::uverbs
