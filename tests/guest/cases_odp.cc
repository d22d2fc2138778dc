// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Regions on demand: memory that was never touched, and memory that is taken away, moved and
 * shared while requests run over it.
 */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

namespace tern::guest {
namespace {

constexpr size_t kSlot = 65536;
constexpr size_t kSlots = 16;
constexpr unsigned kMostRounds = 12;
constexpr int kAccess = kAllAccess | IBV_ACCESS_ON_DEMAND;

bool offered(const Device &device)
{
	ibv_device_attr_ex attr = {};
	check(!ibv_query_device_ex(device.context(), nullptr, &attr), "ibv_query_device_ex");
	return (attr.odp_caps.general_caps & IBV_ODP_SUPPORT) &&
	       (attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT);
}

/** An anonymous mapping, MAP_PRIVATE or MAP_SHARED by @kind, without pages until it is accessed. */
class Mapping {
public:
	explicit Mapping(size_t size, int kind = MAP_PRIVATE)
	        : size_(size), kind_(kind), data_(map(nullptr, 0))
	{
	}
	~Mapping() { munmap(data_, size_); }
	Mapping(const Mapping &) = delete;
	Mapping &operator=(const Mapping &) = delete;

	uint8_t *data() const { return data_; }
	std::span<uint8_t> slot(size_t i) const { return {data_ + i * kSlot, kSlot}; }

	/** Takes slot @i from the card's side of things in one of several ways; it reads as zero
	 * then. */
	void lose(size_t i, unsigned way) const
	{
		/* What another thread maps must not come into the gap that this one makes. */
		static std::mutex alone;
		const std::lock_guard lock(alone);
		uint8_t *p = slot(i).data();
		void *moved;
		switch (way % 3) {
		case 0:
			check(!madvise(p, kSlot, MADV_DONTNEED), "madvise");
			break;
		case 1:
			check(!munmap(p, kSlot), "munmap");
			remap(p);
			break;
		default:
			moved = mremap(p, kSlot, kSlot, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
			check(moved != MAP_FAILED, "mremap");
			munmap(moved, kSlot);
			break;
		}
	}
	/** A child shares all pages for a moment; what is written meanwhile moves. */
	void share() const
	{
		const pid_t child = fork();
		check(child >= 0, "fork");
		if (!child) {
			usleep(2000);
			_exit(0);
		}
		waitpid(child, nullptr, 0);
	}

private:
	uint8_t *map(void *at, int flags) const
	{
		void *p = mmap(at, at ? kSlot : size_, PROT_READ | PROT_WRITE,
		               kind_ | MAP_ANONYMOUS | flags, -1, 0);
		check(p != MAP_FAILED, "mmap");
		return static_cast<uint8_t *>(p);
	}
	void remap(uint8_t *at) const { map(at, MAP_FIXED); }

	size_t size_;
	int kind_;
	uint8_t *data_;
};

/** A mapping and the region that reaches it: of its own, or that of the whole address space. */
struct Paged {
	Paged(const Device &device, size_t size, bool implicit)
	        : memory(size), mr(implicit ? ibv_reg_mr(device.pd(), nullptr, SIZE_MAX, kAccess)
	                                    : ibv_reg_mr(device.pd(), memory.data(), size, kAccess))
	{
		check(mr.get(), "ibv_reg_mr on demand: %s", std::strerror(errno));
	}
	ibv_sge sge(size_t offset, size_t length) const
	{
		return {reinterpret_cast<uint64_t>(memory.data()) + offset,
		        static_cast<uint32_t>(length), mr->lkey};
	}
	RemoteBuffer remote(size_t size) const
	{
		return {reinterpret_cast<uint64_t>(memory.data()), size, mr->rkey};
	}

	Mapping memory;
	MrPtr mr;
};

void untouched(Session &s, bool implicit)
{
	constexpr size_t kSize = kSlots * kSlot;
	Endpoint ep(s);
	Paged paged(s.device, kSize, implicit);
	const RemoteBuffer remote = s.peer.exchange(paged.remote(kSize));
	ep.connect();
	if (!s.active)
		ep.recv(7, paged.sge(kSlot + 100, kSlot));
	if (s.active) {
		Paged local(s.device, kSize, implicit);
		/* READ of pages that do not exist yet, to pages that do not exist either. */
		ep.send(1, IBV_WR_RDMA_READ, local.sge(0, kSlot), remote, 8 * kSlot);
		ep.expect_send(1);
		const std::vector<uint8_t> zeros(kSlot);
		check(!std::memcmp(local.memory.data(), zeros.data(), kSlot), "READ of nothing");
		/* What was read only is written now. */
		fill(local.memory.slot(0), s.seed);
		ep.send(2, IBV_WR_RDMA_WRITE, local.sge(0, kSlot), remote, 8 * kSlot + 5);
		ep.expect_send(2);
		ep.send(3, IBV_WR_SEND, local.sge(0, kSlot));
		ep.expect_send(3);
		ep.fetch_add(4, local.sge(4 * kSlot + 8, 8), remote, 12 * kSlot, 42);
		ep.expect_send(4);
		ep.fetch_add(5, local.sge(4 * kSlot + 8, 8), remote, 12 * kSlot, 1);
		ep.expect_send(5);
		uint64_t before;
		std::memcpy(&before, local.memory.data() + 4 * kSlot + 8, sizeof(before));
		check(before == 42, "the second atomic found %lu", before);
	} else {
		check(ep.expect_recv(7).byte_len == kSlot, "length of the SEND");
	}
	s.peer.barrier(1);
	if (!s.active) {
		const uint8_t *data = paged.memory.data();
		check_filled({data + 8 * kSlot + 5, kSlot}, s.seed, "WRITE");
		check_filled({data + kSlot + 100, kSlot}, s.seed, "SEND");
		uint64_t sum;
		std::memcpy(&sum, data + 12 * kSlot, sizeof(sum));
		check(sum == 43, "the atomics made %lu", sum);
	}
	s.peer.barrier(2);
}

/*
 * The process registers memory with IBV_ACCESS_HUGETLB, but the kernel may have few huge pages, or
 * none. The peer writes to each page, beginning with the last. Then the process discards one page,
 * and the peer reads them all: the others must keep their contents.
 */
void huge_pages(Session &s)
{
	constexpr size_t kHuge = 2 << 20, kPages = 3, kSize = kPages * kHuge;
	constexpr uint32_t kLength = 4096;
	Endpoint ep(s);
	Buffer local(s.device, kLength);
	/* Map one huge page more, so that the region can begin on the boundary of a huge page. */
	Mapping memory(kSize + kHuge);
	uint8_t *huge = memory.data() + (-reinterpret_cast<uintptr_t>(memory.data()) & (kHuge - 1));
	madvise(huge, kSize, MADV_HUGEPAGE);
	const MrPtr mr(ibv_reg_mr(s.device.pd(), huge, kSize, kAccess | IBV_ACCESS_HUGETLB));
	check(mr.get(), "ibv_reg_mr of huge pages on demand: %s", std::strerror(errno));
	const RemoteBuffer remote =
	        s.peer.exchange(RemoteBuffer{reinterpret_cast<uint64_t>(huge), kSize, mr->rkey});
	const auto content = [&](size_t page) { return s.seed + page; };

	ep.connect();
	for (size_t page = kPages; s.active && page-- > 0;) {
		const size_t at = page * kHuge + page * kLength;
		fill({local.data(), kLength}, content(page));
		ep.send(1, IBV_WR_RDMA_WRITE, local.sge(0, kLength), remote, at);
		ep.expect_send(1);
	}
	s.peer.barrier(1);
	if (!s.active) {
		for (size_t page = 0; page < kPages; page++)
			check_filled({huge + page * kHuge + page * kLength, kLength}, content(page),
			             "WRITE");
		check(!madvise(huge + kHuge, kHuge, MADV_DONTNEED), "madvise");
	}
	s.peer.barrier(2);
	for (size_t page = 0; s.active && page < kPages; page++) {
		const std::vector<uint8_t> zeros(kLength);
		ep.send(2, IBV_WR_RDMA_READ, local.sge(0, kLength), remote,
		        page * kHuge + page * kLength);
		ep.expect_send(2);
		if (page == 1)
			check(!std::memcmp(local.data(), zeros.data(), kLength), "READ of nothing");
		else
			check_filled({local.data(), kLength}, content(page), "READ");
	}
	s.peer.barrier(3);
}

/** Takes every other slot away, and shares the others, until it is stopped. */
class Disturber {
public:
	Disturber(const Mapping &memory, size_t first, uint64_t seed)
	        : thread_([this, &memory, first, seed] { run(memory, first, seed); })
	{
	}
	/** Throws what went wrong. */
	void stop()
	{
		stop_ = true;
		thread_.join();
		check(failure_.empty(), "%s", failure_.c_str());
	}
	~Disturber()
	{
		stop_ = true;
		if (thread_.joinable())
			thread_.join();
	}

private:
	void run(const Mapping &memory, size_t first, uint64_t seed)
	try {
		std::mt19937_64 random(seed);
		while (!stop_) {
			const size_t i = first + random() % (kSlots / 2) * 2;
			memory.lose(i, static_cast<unsigned>(random()));
			memory.slot(i)[random() % kSlot] = 1;
			if (random() % 4 == 0)
				memory.share();
			usleep(500);
		}
	} catch (const CheckFailed &e) {
		failure_ = e.what();
	}

	std::atomic<bool> stop_ = false;
	std::string failure_;
	std::thread thread_;
};

/*
 * In each round half of the slots on both sides carry traffic, and the other half is torn away at
 * the same time; then they change places. Each half of them gets its turn at least once.
 */
void churn(Session &s, bool implicit)
{
	constexpr size_t kSize = kSlots * kSlot;
	Endpoint ep(s);
	Paged paged(s.device, kSize, implicit);
	const RemoteBuffer remote = s.peer.exchange(paged.remote(kSize));
	ep.connect();
	const auto end = Clock::now() + std::chrono::seconds(s.seconds);
	const auto both_go_on = [&](unsigned round) {
		const bool here = round < 2 || (round < kMostRounds && Clock::now() < end);
		return s.peer.exchange(here) && here;
	};
	for (unsigned round = 0; both_go_on(round); round++) {
		const size_t first = round % 2;
		const auto seed = [&](size_t i) { return s.seed + round * kSlots + i; };
		if (s.active)
			for (size_t i = first; i < kSlots; i += 2)
				fill(paged.memory.slot(i), seed(i));
		s.peer.barrier(10 + round);
		Disturber disturber(paged.memory, 1 - first, s.seed + round);
		if (s.active) {
			for (size_t i = first; i < kSlots; i += 2)
				ep.send(i, IBV_WR_RDMA_WRITE, paged.sge(i * kSlot, kSlot), remote,
				        i * kSlot);
			for (size_t i = first; i < kSlots; i += 2)
				ep.expect_send(i);
			/* Back to where it came from, which is gone meanwhile. */
			for (size_t i = first; i < kSlots; i += 2) {
				paged.memory.lose(i, round + static_cast<unsigned>(i));
				ep.send(i, IBV_WR_RDMA_READ, paged.sge(i * kSlot, kSlot), remote,
				        i * kSlot);
			}
			for (size_t i = first; i < kSlots; i += 2)
				ep.expect_send(i);
		}
		s.peer.barrier(100 + round);
		disturber.stop();
		for (size_t i = first; i < kSlots; i += 2)
			check_filled(paged.memory.slot(i), seed(i), s.active ? "READ" : "WRITE");
	}
	s.peer.barrier(3);
}

/* What is not mapped cannot be brought: the request fails, and nobody waits for ever. */
void unmapped(Session &s)
{
	const auto hole = [](Paged &paged) {
		check(!munmap(paged.memory.slot(3).data(), kSlot), "munmap");
	};
	for (const bool here : {true, false}) {
		Endpoint ep(s);
		Paged paged(s.device, kSlots * kSlot, false);
		if (here == s.active)
			hole(paged);
		const RemoteBuffer remote = s.peer.exchange(paged.remote(kSlots * kSlot));
		ep.connect();
		if (s.active) {
			ep.send(1, IBV_WR_RDMA_WRITE, paged.sge(3 * kSlot, 8), remote, 3 * kSlot);
			ep.expect_send(1, here ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR);
		}
		s.peer.barrier(here);
		if (here == s.active)
			mmap(paged.memory.slot(3).data(), kSlot, PROT_READ,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	s.device.noted_events();
	check_device_works(s);
}

/* One thread advises without faults while another one advises with them, for the same pages. */
void advice_race(Session &s)
{
	constexpr size_t kSize = 64 * kSlot;
	Paged paged(s.device, kSize, s.active);
	const auto advise = [&](ibv_advise_mr_advice advice) {
		ibv_sge all = paged.sge(0, kSize);
		return ibv_advise_mr(s.device.pd(), advice, IBV_ADVISE_MR_FLAG_FLUSH, &all, 1);
	};
	std::atomic<bool> stop = false;
	std::atomic<int> failure = 0;
	std::thread looker([&] {
		while (!stop && !failure)
			failure = advise(IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT);
	});
	int err = 0;
	const auto end = Clock::now() + std::chrono::seconds(s.seconds);
	for (unsigned round = 0; !err && (round < kMostRounds || Clock::now() < end); round++) {
		madvise(paged.memory.data(), kSize, MADV_DONTNEED);
		err = advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE);
	}
	stop = true;
	looker.join();
	check(!err && !failure, "ibv_advise_mr: %s", std::strerror(err ? err : failure.load()));
}

void prefetch(Session &s)
{
	constexpr size_t kSize = kSlots * kSlot;
	Endpoint ep(s);
	Paged paged(s.device, kSize, s.active);
	ibv_sge all = paged.sge(0, kSize);
	const auto advise = [&](ibv_advise_mr_advice advice, uint32_t flags) {
		return ibv_advise_mr(s.device.pd(), advice, flags, &all, 1);
	};
	check(!advise(IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0), "prefetch of nothing");
	check(!advise(IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH), "prefetch");
	const int err = advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH);
	check(!err, "prefetch to write: %s", std::strerror(err));
	unsigned char resident[kSize / 4096];
	check(!mincore(paged.memory.data(), kSize, resident), "mincore");
	for (const unsigned char page : resident)
		check(page & 1, "a page that was prefetched is not there");
	all.lkey++;
	check(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0), "prefetch by a wrong key");
	const RemoteBuffer remote = s.peer.exchange(paged.remote(kSize));
	ep.connect();
	if (s.active) {
		fill(paged.memory.slot(0), s.seed);
		ep.send(1, IBV_WR_RDMA_WRITE, paged.sge(0, kSlot), remote, kSlot);
		ep.expect_send(1);
	}
	s.peer.barrier(1);
	if (!s.active)
		check_filled(paged.memory.slot(1), s.seed, "WRITE");
	s.peer.barrier(2);
}

/*
 * The process reads shared memory, the peer writes to it by RDMA, and the process prefetches it for
 * reading. Then the kernel reclaims the pages. It must preserve those that the peer has written, as
 * they are dirty, and discards clean pages. The first page is clean, and shows when this happens.
 */
void reclaimed(Session &s)
{
	constexpr size_t kSize = kSlots * kSlot, kPage = 4096;
	Endpoint ep(s);
	Buffer local(s.device, kSlot);
	const Mapping memory(kSize, MAP_SHARED);
	const MrPtr mr(ibv_reg_mr(s.device.pd(), memory.data(), kSize, kAccess));
	check(mr.get(), "ibv_reg_mr on demand: %s", std::strerror(errno));
	const auto address = reinterpret_cast<uint64_t>(memory.data());
	for (size_t at = 0; at < kSize; at += kPage)
		check(!*const_cast<volatile uint8_t *>(memory.data() + at), "memory is not zero");
	const RemoteBuffer remote = s.peer.exchange(RemoteBuffer{address, kSize, mr->rkey});
	ep.connect();
	if (s.active) {
		fill({local.data(), kSlot}, s.seed);
		ep.send(1, IBV_WR_RDMA_WRITE, local.sge(0, kSlot), remote, kSlot);
		ep.expect_send(1);
	}
	s.peer.barrier(1);
	if (!s.active) {
		ibv_sge written = {address + kSlot, kSlot, mr->lkey};
		check(!ibv_advise_mr(s.device.pd(), IBV_ADVISE_MR_ADVICE_PREFETCH,
		                     IBV_ADVISE_MR_FLAG_FLUSH, &written, 1),
		      "prefetch");
		const auto first_is_gone = [&] {
			unsigned char resident;
			check(!madvise(memory.data(), kSize, MADV_PAGEOUT), "madvise");
			check(!mincore(memory.data(), kPage, &resident), "mincore");
			return !(resident & 1);
		};
		check(eventually(first_is_gone), "the kernel does not reclaim clean pages");
		check_filled(memory.slot(1), s.seed, "WRITE");
	}
	s.peer.barrier(2);
}

/** Returns how many tables `rdma resource` shows for @mr: in its line or, with iproute2 7.3, in an
 * indented one below that. */
unsigned long tables_of(const ibv_mr &mr)
{
	const std::unique_ptr<FILE, int (*)(FILE *)> shown(popen("rdma -dd resource show mr", "r"),
	                                                   pclose);
	check(shown.get(), "popen");
	char key[32], line[1024];
	std::snprintf(key, sizeof(key), " lkey 0x%x ", mr.lkey);
	bool is_about = false;
	while (std::fgets(line, sizeof(line), shown.get())) {
		if (line[0] != ' ')
			is_about = std::strstr(line, key);
		const char *tables = std::strstr(line, "odp_tables ");
		if (tables && is_about)
			return std::strtoul(tables + std::strlen("odp_tables "), nullptr, 10);
	}
	check(false, "no tables of region 0x%x", mr.lkey);
	return 0;
}

/* The driver allocates tables of an implicit region as its pages are mapped, and frees them when
 * the pages are unmapped. */
void tables_go(Session &s)
{
	constexpr size_t kChild = 2 << 20;
	constexpr size_t kChildren = 64;
	Endpoint ep(s);
	Paged paged(s.device, kChildren * kChild, true);
	uint8_t *memory = paged.memory.data();
	const auto advise = [&](ibv_advise_mr_advice advice, uint32_t length) {
		std::vector<ibv_sge> parts;
		for (size_t i = 0; i < kChildren; i++)
			parts.push_back(paged.sge(i * kChild, length));
		return ibv_advise_mr(s.device.pd(), advice, IBV_ADVISE_MR_FLAG_FLUSH, parts.data(),
		                     parts.size());
	};
	const auto bring = [&] { return advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 1); };
	const unsigned long before = tables_of(*paged.mr);
	const auto all_gone = [&] { return tables_of(*paged.mr) == before; };

	check(!bring(), "prefetch");
	unsigned long now = tables_of(*paged.mr);
	check(now >= before + kChildren, "%lu tables, and %lu with pages", before, now);
	for (size_t i = 0; i < kChildren; i += 2)
		check(!madvise(memory + i * kChild, 4096, MADV_DONTNEED), "madvise");
	check(eventually([&] { return tables_of(*paged.mr) <= now - kChildren / 2; }),
	      "tables of half of the pages stay");
	check(!bring(), "prefetch of what is there and what is not");
	check(!madvise(memory, kChildren * kChild, MADV_DONTNEED), "madvise");
	check(eventually(all_gone), "tables stay: %lu, %lu at first", tables_of(*paged.mr), before);

	/* Advice about pages that are absent or inaccessible leaves no tables behind. */
	check(!advise(IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, kChild), "prefetch of nothing");
	check(eventually(all_gone), "tables for nothing: %lu", tables_of(*paged.mr));
	check(!mprotect(memory, kChildren * kChild, PROT_NONE), "mprotect");
	check(bring(), "prefetch of what nobody may touch");
	check(eventually(all_gone), "tables for a hole: %lu", tables_of(*paged.mr));
	check(!mprotect(memory, kChildren * kChild, PROT_READ | PROT_WRITE), "mprotect");

	const RemoteBuffer remote = s.peer.exchange(paged.remote(kChildren * kChild));
	ep.connect();
	if (s.active) {
		fill({memory, kSlot}, s.seed);
		ep.send(1, IBV_WR_RDMA_WRITE, paged.sge(0, kSlot), remote, 5 * kChild - 100);
		ep.expect_send(1);
	}
	s.peer.barrier(1);
	if (!s.active)
		check_filled({memory + 5 * kChild - 100, kSlot}, s.seed, "WRITE");
	s.peer.barrier(2);
}

/** Runs @body where both sides have it. */
template <class Body>
void where_offered(Session &s, Body body)
{
	const bool ours = offered(s.device);
	if (s.peer.exchange(ours) && ours)
		body(s);
	else
		lacking("regions on demand");
}

constexpr Case kCases[] = {
        {"odp-untouched", "on demand: pages that do not exist yet, of every kind of request",
         [](Session &s) { where_offered(s, [](Session &t) { untouched(t, false); }); }},
        {"odp-implicit", "the same by a region that is the whole address space",
         [](Session &s) { where_offered(s, [](Session &t) { untouched(t, true); }); }},
        {"odp-churn", "on demand: munmap, mremap, madvise and fork under traffic",
         [](Session &s) { where_offered(s, [](Session &t) { churn(t, false); }); }},
        {"odp-implicit-churn", "the same by a region that is the whole address space",
         [](Session &s) { where_offered(s, [](Session &t) { churn(t, true); }); }},
        {"odp-huge-pages", "on demand: huge pages, as the process says",
         [](Session &s) { where_offered(s, huge_pages); }},
        {"odp-unmapped", "on demand: requests over a hole fail",
         [](Session &s) { where_offered(s, unmapped); }},
        {"odp-prefetch", "ibv_advise_mr, with data",
         [](Session &s) { where_offered(s, prefetch); }},
        {"odp-advice", "ibv_advise_mr with and without faults, over the same pages at once",
         [](Session &s) { where_offered(s, advice_race); }},
        {"odp-reclaimed", "on demand: shared memory that the kernel reclaims",
         [](Session &s) { where_offered(s, reclaimed); }},
        {"odp-tables", "tables of an implicit region, which go with the pages",
         [](Session &s) { where_offered(s, tables_go); }},
};

} // namespace

std::span<const Case> odp_cases()
{
	return kCases;
}

} // namespace tern::guest
