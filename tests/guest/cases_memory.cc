// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory other than plain buffers: the card's own, dma-bufs, and regions that change. */
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"
#include "dma_buf.h"

namespace tern::guest {
namespace {

constexpr size_t kSize = 8192, kHalf = kSize / 2;

using DmPtr = std::unique_ptr<ibv_dm, Releaser<ibv_free_dm>>;

/** Device memory with a region over all of it. */
class DeviceBuffer {
public:
	DeviceBuffer(const Device &device, size_t size) : size_(size)
	{
		ibv_alloc_dm_attr attr = {.length = size, .log_align_req = 3, .comp_mask = 0};
		dm_.reset(ibv_alloc_dm(device.context(), &attr));
		check(dm_.get(), "ibv_alloc_dm: %s", std::strerror(errno));
		mr_.reset(ibv_reg_dm_mr(device.pd(), dm_.get(), 0, size,
		                        kAllAccess | IBV_ACCESS_ZERO_BASED));
		check(mr_.get(), "ibv_reg_dm_mr: %s", std::strerror(errno));
	}

	ibv_dm *dm() const { return dm_.get(); }
	RemoteBuffer remote() const { return {0, size_, mr_->rkey}; }
	ibv_sge sge(size_t offset, size_t length) const
	{
		return {offset, static_cast<uint32_t>(length), mr_->lkey};
	}
	std::vector<uint8_t> read(size_t offset, size_t length) const
	{
		std::vector<uint8_t> bytes(length);
		const int err = ibv_memcpy_from_dm(bytes.data(), dm_.get(), offset, length);
		check(!err, "ibv_memcpy_from_dm: %s", std::strerror(err));
		return bytes;
	}
	void write(size_t offset, std::span<const uint8_t> bytes) const
	{
		const int err = ibv_memcpy_to_dm(dm_.get(), offset, bytes.data(), bytes.size());
		check(!err, "ibv_memcpy_to_dm: %s", std::strerror(err));
	}
	uint64_t word(size_t offset) const
	{
		uint64_t value;
		std::memcpy(&value, read(offset, sizeof(value)).data(), sizeof(value));
		return value;
	}

private:
	DmPtr dm_;
	MrPtr mr_;
	size_t size_;
};

/* As source and as target of each operation. */
void device_memory(Session &s)
{
	Endpoint ep(s);
	const DeviceBuffer dm(s.device, kSize);
	const Buffer host(s.device, kSize);

	ep.connect();
	if (!s.active)
		ep.recv(1, dm.sge(kHalf, kHalf));
	const RemoteBuffer remote = s.peer.exchange(dm.remote());
	if (s.active) {
		host.fill(1);
		ep.send(1, IBV_WR_RDMA_WRITE, host.sge(0, kHalf), remote);
		ep.send(2, IBV_WR_RDMA_READ, dm.sge(0, kHalf), remote);
		ep.expect_send(1);
		ep.expect_send(2);
		check_filled(dm.read(0, kHalf), 1, "what READ brought to device memory");
		ep.send(3, IBV_WR_SEND, dm.sge(0, kHalf));
		ep.expect_send(3);
	} else {
		ep.expect_recv(1);
		check_filled(dm.read(0, kHalf), 1, "what WRITE brought to device memory");
		check_filled(dm.read(kHalf, kHalf), 1, "what SEND brought to device memory");
		const uint64_t value = 41;
		dm.write(8, {reinterpret_cast<const uint8_t *>(&value), sizeof(value)});
	}
	s.peer.barrier(1);
	if (s.active) {
		ep.fetch_add(4, dm.sge(16, 8), remote, 8, 1);
		ep.expect_send(4);
		check(dm.word(16) == 41, "fetch and add brought %lu", dm.word(16));
		ep.cmp_swap(5, dm.sge(16, 8), remote, 8, 42, 7);
		ep.expect_send(5);
		check(dm.word(16) == 42, "compare and swap brought %lu", dm.word(16));
	}
	s.peer.barrier(2);
	if (!s.active)
		check(dm.word(8) == 7, "atomics left %lu in device memory", dm.word(8));
	expect_write(s, remote, kSize - 16, IBV_WC_SUCCESS);
	expect_write(s, remote, kSize - 8, IBV_WC_REM_ACCESS_ERR);
}

/* Bounds and alignment of copies, and that no one finds what another left. */
void device_memory_limits(Session &s)
{
	constexpr size_t kMuch = 64 << 10;
	std::vector<uint8_t> bytes(kMuch, 0xff);
	ibv_device_attr_ex attr;

	check(!ibv_query_device_ex(s.device.context(), nullptr, &attr), "ibv_query_device_ex");
	check(attr.max_dm_size >= kMuch, "%lu bytes of device memory", attr.max_dm_size);
	ibv_alloc_dm_attr too_much = {
	        .length = attr.max_dm_size + 1, .log_align_req = 0, .comp_mask = 0};
	check(!ibv_alloc_dm(s.device.context(), &too_much), "there is more than max_dm_size");
	{
		const DeviceBuffer dm(s.device, kMuch);
		dm.write(0, bytes);
		ibv_dm *raw = dm.dm();
		check(ibv_memcpy_to_dm(raw, 2, bytes.data(), 4) == EINVAL, "unaligned offset");
		check(ibv_memcpy_to_dm(raw, 0, bytes.data(), 2) == EINVAL, "unaligned length");
		check(ibv_memcpy_to_dm(raw, kMuch, bytes.data(), 4) == EFAULT, "past the end");
		check(ibv_memcpy_from_dm(bytes.data(), raw, ~uint64_t{3}, 8) == EFAULT,
		      "an offset that wraps");
		check(!ibv_reg_dm_mr(s.device.pd(), raw, 4, kMuch,
		                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED),
		      "a region past the end");
		check(!ibv_reg_dm_mr(s.device.pd(), raw, 0, 64, IBV_ACCESS_LOCAL_WRITE),
		      "a region with addresses");
	}
	const DeviceBuffer again(s.device, kMuch);
	const auto found = again.read(0, kMuch);
	check(found == std::vector<uint8_t>(kMuch), "device memory is not clean");
}

/* A dma-buf keeps pages of device memory whose owner has freed it: nobody else gets them. */
void device_memory_exported(Session &s)
{
	using Export = int(ibv_dm *);
	auto *const dm_export =
	        reinterpret_cast<Export *>(dlsym(RTLD_DEFAULT, "ibv_dm_export_dmabuf_fd"));
	ibv_device_attr_ex attr;

	check(!ibv_query_device_ex(s.device.context(), nullptr, &attr), "ibv_query_device_ex");
	ibv_alloc_dm_attr all = {.length = attr.max_dm_size, .log_align_req = 0, .comp_mask = 0};
	/* The peer may be on the same card. */
	if (s.active) {
		Socket dma_buf;
		{
			const DeviceBuffer dm(s.device, kSize);
			dma_buf = Socket(dm_export ? dm_export(dm.dm()) : -1);
		}
		if (dma_buf.fd() < 0) {
			lacking("dma-bufs of device memory");
		} else {
			check(!ibv_alloc_dm(s.device.context(), &all),
			      "pages of a dma-buf were given away");
			dma_buf = Socket();
			const DmPtr dm(ibv_alloc_dm(s.device.context(), &all));
			check(dm.get(), "a dma-buf that is closed keeps pages");
		}
	}
	s.peer.barrier(1);
}

/* Whether @bytes are those of the pattern of @seed from @offset on. */
bool has_pattern(std::span<const uint8_t> bytes, uint64_t seed, size_t offset)
{
	for (const uint8_t byte : bytes)
		if (byte != pattern(seed, offset++))
			return false;
	return true;
}

/* A region without memory reads as zeroes and ignores what is written. */
void null_region(Session &s)
{
	constexpr uint32_t kLong = 6000, kShort = 100, kWord = sizeof(uint64_t);
	Endpoint ep(s, {.sge = 3});
	const Buffer buffer(s.device, kSize);
	const MrPtr null(ibv_alloc_null_mr(s.device.pd()));
	if (!null && errno == EOPNOTSUPP)
		return lacking("null regions");
	check(null.get(), "ibv_alloc_null_mr: %s", std::strerror(errno));
	const auto nothing = [&](uint32_t length) {
		return ibv_sge{0xdead'beef, length, null->lkey};
	};
	ep.connect();
	const RemoteBuffer remote = ep.exchange(buffer);

	buffer.fill(1);
	if (!s.active)
		ep.recv(1, std::array{buffer.sge(0, kLong), nothing(kShort),
		                      buffer.sge(kLong, kShort)});
	s.peer.barrier(1);
	if (s.active) {
		ep.send(1, IBV_WR_SEND,
		        std::array{nothing(kLong), buffer.sge(0, kShort), nothing(kShort)});
		ep.expect_send(1);
		ep.send(2, IBV_WR_RDMA_READ, std::array{nothing(kShort), buffer.sge(0, kShort)},
		        remote, kLong);
		ep.expect_send(2);
		ep.fetch_add(3, nothing(kWord), remote, 0, 7);
		ep.expect_send(3);
		check(has_pattern(buffer.bytes().first(kShort), 1, kLong + kShort), "bytes read");
		check(has_pattern(buffer.bytes().subspan(kShort), 1, kShort), "other bytes");
	} else {
		check(ep.expect_recv(1).byte_len == kLong + 2 * kShort, "length of the SEND");
	}
	s.peer.barrier(2);
	if (!s.active) {
		const auto zeroes = buffer.bytes().subspan(kWord, kLong + kShort - kWord);
		check(buffer.bytes()[0] == 7, "a word after a fetch and add");
		check(std::ranges::count(zeroes, 0) == std::ssize(zeroes), "zeroes sent");
		check(has_pattern(buffer.bytes().subspan(kLong + kShort), 1, kLong + kShort),
		      "bytes behind them");
	}
	s.peer.barrier(3);
}

void rereg(const Buffer &buffer, int flags, ibv_pd *pd, const Buffer *to, int access)
{
	const int err = ibv_rereg_mr(buffer.mr(), flags, pd, to ? to->data() : nullptr,
	                             to ? to->size() : 0, access);
	check(!err, "ibv_rereg_mr with flags %d: %d, %s", flags, err, std::strerror(errno));
}

/* Each part of a region changes, and the key stays. */
void rereg_parts(Session &s)
{
	const Buffer buffer(s.device, kSize), other(s.device, kSize);
	const PdPtr pd(ibv_alloc_pd(s.device.context()));
	const RemoteBuffer mine{buffer.addr(), kSize, buffer.rkey()};
	const RemoteBuffer moved{other.addr(), kSize, buffer.rkey()};
	const auto theirs = s.peer.exchange(std::array{mine, moved});
	const auto change = [&](int flags, ibv_pd *to_pd, const Buffer *to, int access) {
		if (!s.active)
			rereg(buffer, flags, to_pd, to, access);
		s.peer.barrier(1);
	};

	expect_write(s, theirs[0], 0, IBV_WC_SUCCESS);
	change(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, &other, 0);
	expect_write(s, theirs[0], 0, IBV_WC_REM_ACCESS_ERR);
	expect_write(s, theirs[1], 32, IBV_WC_SUCCESS);
	if (!s.active)
		check_filled(other.bytes().subspan(32, 16), 32, "where the region moved to");
	change(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, IBV_ACCESS_REMOTE_READ);
	expect_write(s, theirs[1], 0, IBV_WC_REM_ACCESS_ERR);
	change(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, kAllAccess);
	expect_write(s, theirs[1], 0, IBV_WC_SUCCESS);
	change(IBV_REREG_MR_CHANGE_PD, pd.get(), nullptr, 0);
	expect_write(s, theirs[1], 0, IBV_WC_REM_ACCESS_ERR);
	change(IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS |
	               IBV_REREG_MR_CHANGE_TRANSLATION,
	       s.device.pd(), &buffer, kAllAccess);
	expect_write(s, theirs[0], 64, IBV_WC_SUCCESS);
	if (!s.active)
		check_filled(buffer.bytes().subspan(64, 16), 64, "where the region moved back");
}

/* A region that was registered for reading is pinned anew to be written. */
void rereg_writable(Session &s)
{
	const Buffer buffer(s.device, kSize, IBV_ACCESS_REMOTE_READ);
	const RemoteBuffer theirs =
	        s.peer.exchange(RemoteBuffer{buffer.addr(), kSize, buffer.rkey()});

	expect_write(s, theirs, 0, IBV_WC_REM_ACCESS_ERR);
	if (!s.active)
		rereg(buffer, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, kAllAccess);
	s.peer.barrier(2);
	expect_write(s, theirs, 16, IBV_WC_SUCCESS);
	if (!s.active)
		check_filled(buffer.bytes().subspan(16, 16), 16, "the region");
}

/* While the peer writes to and reads from it, a region changes and stays where it is. */
void rereg_in_use(Session &s)
{
	constexpr unsigned kRounds = 300;
	Endpoint ep(s);
	const Buffer buffer(s.device, kSize), local(s.device, kSize);

	ep.connect();
	const RemoteBuffer remote = ep.exchange(buffer);
	if (s.active) {
		for (unsigned i = 0; i < kRounds; i++) {
			guest::fill(local.bytes().first(kHalf), i);
			ep.send(2 * i, IBV_WR_RDMA_WRITE, local.sge(0, kHalf), remote, i);
			ep.send(2 * i + 1, IBV_WR_RDMA_READ, local.sge(kHalf, kHalf), remote, i);
			ep.expect_send(2 * i);
			ep.expect_send(2 * i + 1);
			check_filled(local.bytes().subspan(kHalf), i, "what was written");
		}
	} else {
		for (unsigned i = 0; i < 10 || !s.peer.readable(); i++)
			rereg(buffer, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
			      nullptr, &buffer, kAllAccess | (i % 2 ? IBV_ACCESS_MW_BIND : 0));
	}
	s.peer.barrier(3);
}

/* Addresses that count from zero, or from wherever its owner likes. */
void other_addresses(Session &s)
{
	constexpr size_t kStart = 104, kLength = 1000;
	constexpr uint64_t kIova = 0x7654'3210'0000;
	const Buffer buffer(s.device, kSize);
	const auto reg = [](ibv_mr *mr) {
		check(mr, "registration: %s", std::strerror(errno));
		return MrPtr(mr);
	};
	const MrPtr zero =
	        reg(ibv_reg_mr(s.device.pd(), buffer.data() + kStart, kLength,
	                       kAllAccess | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_RELAXED_ORDERING));
	const MrPtr iova = reg(ibv_reg_mr_iova(s.device.pd(), buffer.data() + kStart, kLength,
	                                       kIova + kStart, kAllAccess | IBV_ACCESS_HUGETLB));
	const auto theirs =
	        s.peer.exchange(std::array{RemoteBuffer{0, kLength, zero->rkey},
	                                   RemoteBuffer{kIova + kStart, kLength, iova->rkey}});

	for (const RemoteBuffer &remote : theirs) {
		const uint64_t last = kLength - 16;
		expect_write(s, remote, last, IBV_WC_SUCCESS);
		expect_write(s, remote, last + 8, IBV_WC_REM_ACCESS_ERR);
		if (!s.active) {
			check_filled(buffer.bytes().subspan(kStart + last, 16), last, "the region");
			std::memset(buffer.data(), 0, kSize);
		}
		s.peer.barrier(4);
	}
}

/** A dma-buf and its bytes. */
class DmaBuf {
public:
	DmaBuf(Socket buffer, size_t size) : buffer_(std::move(buffer))
	{
		void *p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd(), 0);
		check(p != MAP_FAILED, "mmap: %s", std::strerror(errno));
		bytes_ = {static_cast<uint8_t *>(p), size};
	}
	DmaBuf(const DmaBuf &) = delete;
	DmaBuf &operator=(const DmaBuf &) = delete;
	~DmaBuf() { munmap(bytes_.data(), bytes_.size()); }

	int fd() const { return buffer_.fd(); }
	std::span<uint8_t> bytes() const { return bytes_; }

private:
	Socket buffer_;
	std::span<uint8_t> bytes_;
};

constexpr size_t kPage = 4096;
constexpr uint32_t kDmaBufPages = 16;

void use_dma_buf(Session &s, const DmaBuf &buffer)
{
	constexpr size_t kOffset = 4096 + 16;
	constexpr uint64_t kIova = 0x1234'5678'9010;
	Endpoint ep(s);
	const MrPtr mr(
	        ibv_reg_dmabuf_mr(s.device.pd(), kOffset, kSize, kIova, buffer.fd(), kAllAccess));
	check(mr.get(), "ibv_reg_dmabuf_mr: %s", std::strerror(errno));
	const auto sge = [&](size_t offset) { return ibv_sge{kIova + offset, kHalf, mr->lkey}; };
	const auto part = [&](size_t offset) {
		return buffer.bytes().subspan(kOffset + offset, kHalf);
	};

	ep.connect();
	const RemoteBuffer remote = s.peer.exchange(RemoteBuffer{kIova, kSize, mr->rkey});
	if (s.active) {
		guest::fill(part(0), 5);
		ep.send(1, IBV_WR_RDMA_WRITE, sge(0), remote, kHalf);
		ep.send(2, IBV_WR_RDMA_READ, sge(kHalf), remote, kHalf);
		ep.expect_send(1);
		ep.expect_send(2);
		check_filled(part(kHalf), 5, "what READ brought to the dma-buf");
	}
	s.peer.barrier(1);
	if (!s.active)
		check_filled(part(kHalf), 5, "what WRITE brought to the dma-buf");
	expect_write(s, remote, kSize - 8, IBV_WC_REM_ACCESS_ERR);
}

void dma_buf_of_vgem(Session &s)
{
	use_dma_buf(s, {vgem_buffer(kDmaBufPages), kDmaBufPages * kPage});
}

void dma_buf_of_memory_file(Session &s)
{
	const bool ours = !access(kUdmabuf, F_OK);
	const bool theirs = s.peer.exchange(ours);
	if (ours && theirs)
		use_dma_buf(s, {memory_file_buffer(kDmaBufPages), kDmaBufPages * kPage});
	else
		lacking(kUdmabuf);
}

constexpr Case kCases[] = {
        {"device-memory", "the card's memory as source and target", device_memory},
        {"device-memory-limits", "copies and regions past its end, and what others left",
         device_memory_limits},
        {"device-memory-exported", "a dma-buf of device memory that is freed",
         device_memory_exported},
        {"null-region", "a region without memory at both ends", null_region},
        {"rereg", "pages, domain and rights of a region change", rereg_parts},
        {"rereg-writable", "a region for reading is to be written", rereg_writable},
        {"rereg-in-use", "a region changes while the peer uses it", rereg_in_use},
        {"other-addresses", "zero-based regions, and addresses of one's own", other_addresses},
        {"dma-buf-vgem", "a region in a dma-buf of a graphics driver", dma_buf_of_vgem},
        {"dma-buf-memfd", "a region in a dma-buf of a memory file", dma_buf_of_memory_file},
};

} // namespace

/* Each error breaks the connection, so each access has one of its own. */
void expect_write(Session &s, const RemoteBuffer &remote, uint64_t offset, ibv_wc_status status)
{
	Endpoint ep(s);
	const Buffer local(s.device, 16);
	ep.connect();
	if (s.active) {
		local.fill(offset);
		ep.send(1, IBV_WR_RDMA_WRITE, local.sge(0, 16), remote, offset);
		ep.expect_send(1, status);
	}
	s.peer.barrier(1);
}

std::span<const Case> memory_cases()
{
	return kCases;
}

} // namespace tern::guest
