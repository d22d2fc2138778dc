/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A driver and a provider for tests: they know the card only as tern_hw.h describes it, that is by
 * registers, doorbells and structures in host memory.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "qemu/rnic/formats/gid.h"
#include "qemu/rnic/memory/region.h"
#include "qemu/rnic/rnic.h"
#include "tern/tern_hw.h"
#include "tests/support/fake_host.h"
#include "tests/support/page_tables.h"

namespace tern::test {

/** How a buffer is laid out in host memory; levels 0 is contiguous. */
struct Layout {
	unsigned levels = 0;
	unsigned page_shift = 12;
	bool on_demand = false; /* of regions only */
};

/** The entry at @at, if it has @phase. The card stores its last eight bytes, with the phase, after
 * the rest. */
template <typename Entry>
std::optional<Entry> read_entry(const FakeMemory &memory, Iova at, uint8_t phase)
{
	constexpr size_t kRest = sizeof(Entry) - sizeof(uint64_t);
	Entry entry{};
	const auto bytes = std::as_writable_bytes(std::span(&entry, 1));
	memory.peek(at + kRest, bytes.subspan(kRest));
	if (entry.phase != phase)
		return std::nullopt;
	memory.peek(at, bytes.first(kRest));
	return entry;
}

/** A ring of entries with a phase, written by the card and read by the host. */
template <typename Entry>
class PhaseRing {
public:
	PhaseRing(FakeMemory &memory, unsigned log_size, Layout layout = {})
	        : memory_(&memory),
	          buffer_(memory, sizeof(Entry) << log_size, layout.levels, layout.page_shift),
	          log_size_(log_size)
	{
	}

	/** Where the card writes the next entry. */
	Iova next() const
	{
		return buffer_.at(uint64_t{ci & ((1u << log_size_) - 1)} * sizeof(Entry));
	}
	/** The next entry, if the card has written it. */
	std::optional<Entry> poll()
	{
		const auto entry =
		        read_entry<Entry>(*memory_, next(), (ci >> log_size_) & 1 ? 0 : 1);
		ci += entry.has_value();
		return entry;
	}

	const Buffer &buffer() const { return buffer_; }
	unsigned log_size() const { return log_size_; }
	uint32_t ci = 0; /* free-running */

private:
	FakeMemory *memory_;
	Buffer buffer_;
	unsigned log_size_;
};

class Driver;

struct HostEq {
	uint32_t number = 0;
	PhaseRing<hw::tern_hw_eqe> ring;
};

/** A completion queue of the host. */
class HostCq {
public:
	HostCq(Driver &driver, unsigned log_size, Layout layout);

	/** The next completion; the record tells the card that it was taken. */
	std::optional<hw::tern_hw_cqe> poll();
	/** Takes all there are. */
	std::vector<hw::tern_hw_cqe> drain();
	void arm(bool solicited_only = false);

	uint32_t number = 0;
	uint32_t db_page = 0;
	Iova record;
	PhaseRing<hw::tern_hw_cqe> ring;

private:
	Driver &driver_;
};

/** A registered buffer. */
struct HostMr {
	uint32_t key = 0;
	uint64_t va = 0;
	uint64_t size = 0;
	uint64_t first = 0; /* byte of the buffer at which the region starts */
	Buffer buffer;
	std::span<std::byte> device{}; /* of a region of device memory, which has no buffer */

	std::vector<std::byte> read(uint64_t offset, size_t n) const;
	void write(uint64_t offset, std::span<const std::byte> data);
	uint64_t read_u64(uint64_t offset) const;
	void write_u64(uint64_t offset, uint64_t value);
	Sge sge(uint64_t offset, uint32_t length) const { return {va + offset, length, key}; }
};

/** A send work request, as a program words it. */
struct SendRequest {
	uint8_t opcode = hw::TERN_OP_SEND;
	uint8_t flags = TERN_WQE_SIGNALED;
	uint32_t imm = 0;
	uint32_t srqn = 0;
	uint64_t remote_addr = 0;
	uint32_t rkey = 0;
	uint64_t swap_add = 0;
	uint64_t compare = 0;
	std::vector<Sge> sges{};
	std::vector<std::byte> inline_data{};   /* with TERN_WQE_INLINE */
	std::optional<hw::tern_hw_ud_seg> to{}; /* of datagrams */
	std::optional<hw::tern_hw_bind_seg> bind{};
	std::optional<hw::tern_hw_reg_seg> reg{};
	std::optional<hw::tern_hw_flush_seg> flush{};
	std::optional<hw::tern_hw_atomic_mask_seg> masks{};
};

/** The WQE, filled up to whole blocks. */
std::vector<std::byte> encode(const SendRequest &request);

struct SrqOptions {
	uint32_t pd = 0;
	uint32_t xrcdn = 0;
	uint32_t cqn = 0;
	uint8_t log_size = 4;
	uint8_t log_stride = 6;
	bool tags = false; /* it matches tags; then it has cqn */
	uint8_t log_tags = 3;
	uint8_t log_tag_ops = 2;
	uint32_t db_page = 0;
	Layout layout{};
};

/** A shared receive queue of the host: hands out its slots, and gets them back. */
class HostSrq {
public:
	HostSrq(Driver &driver, const SrqOptions &options);

	bool full() const { return free_.empty(); }
	/** The slot of the next post. */
	uint32_t next_slot() const { return free_.front(); }
	/** Posts, and returns the slot. */
	uint32_t post(std::span<const Sge> sges);
	uint32_t post(const Sge &sge) { return post(std::span(&sge, 1)); }
	/** A CQE named @slot. */
	void release(uint32_t slot) { free_.push_back(slot); }
	hw::tern_hw_aq_status set_limit(uint32_t limit);
	uint32_t query_limit();
	/** Posts a tag operation, and rings; its index. */
	uint32_t post_tag_op(const hw::tern_hw_tag_op &op, bool ring = true);
	/** Moves to a buffer of 1 << @log_size slots. */
	hw::tern_hw_aq_status resize(uint8_t log_size);

	SrqOptions options;
	uint32_t number = 0;
	Iova record;
	uint32_t ring_offset;
	uint32_t tag_ops_offset;
	Buffer buffer;
	uint32_t pi = 0;
	uint32_t tag_pi = 0;

private:
	static uint64_t size_of(const SrqOptions &o);
	void write_entry(uint32_t index, uint32_t slot);

	Driver &driver_;
	std::deque<uint32_t> free_;
	std::vector<uint32_t> posted_; /* slot of each post so far */
};

struct QpOptions {
	uint32_t pd = 0;
	uint32_t send_cqn = 0;
	uint32_t recv_cqn = 0;
	uint32_t db_page = 0;
	uint8_t type = hw::TERN_QPT_RC;
	uint8_t sq_log_size = 6;
	uint8_t rq_log_size = 5;
	uint8_t rq_log_stride = 6;
	bool signal_all = false;
	bool no_mc_loopback = false;
	uint32_t xrcdn = 0;
	uint32_t srqn = 0; /* then there is no receive queue */
	Layout layout{};
};

/** What brings a QP from RESET to RTS. */
struct Connection {
	uint32_t dest_qpn = 0;
	uint32_t rq_psn = 0;
	uint32_t sq_psn = 0;
	uint8_t mtu = 3; /* enum ib_mtu; 3 is 1024 */
	uint8_t access = TERN_ACCESS_REMOTE_WRITE | TERN_ACCESS_REMOTE_READ |
	                 TERN_ACCESS_REMOTE_ATOMIC | TERN_ACCESS_FLUSH_GLOBAL;
	uint8_t timeout = 8;
	uint8_t retry_cnt = 7;
	uint8_t rnr_retry = 7;
	uint8_t min_rnr_timer = 1;
	uint8_t max_rd_atomic = 16;
	uint8_t max_dest_rd_atomic = 16;
	uint8_t sgid_index = 0;
	uint8_t traffic_class = 0;
	uint8_t sl = 0;
	Gid dgid{};
	Mac dmac{};
	uint16_t udp_sport = 0xc000;
};

/** A queue pair of the host. */
class HostQp {
public:
	HostQp(Driver &driver, const QpOptions &options);

	/** Blocks of the send ring that are free, as far as completions told. */
	uint32_t send_room() const { return (1u << options.sq_log_size) - (sq_pi - sq_ci); }
	/** Posts without a look at the room; the index of its first block. */
	uint32_t post_send(const SendRequest &request, bool ring = true);
	/** Puts raw blocks into the ring; the index of the first. */
	uint32_t post_blocks(std::span<const std::byte> blocks, bool ring = true);
	/** Publishes sq_pi, and rings when the event index asks for it. */
	void publish();
	/** The MMIO store, asked for or not. */
	void ring_doorbell();
	void post_recv(std::span<const Sge> sges);
	void post_recv(const Sge &sge) { post_recv(std::span(&sge, 1)); }
	/** Both queues are empty again after MODIFY_QP to RESET. */
	void forget();

	hw::tern_hw_aq_status modify(uint32_t mask, const hw::tern_hw_qp_attr &attr);
	hw::tern_hw_aq_status set_state(hw::tern_hw_qp_state state, uint32_t mask = 0);
	/* The steps of connected QPs, with the attributes of their type. */
	void to_init(const Connection &c);
	void to_rtr(const Connection &c);
	void to_rts(const Connection &c);
	void connect(const Connection &c);
	/** A datagram QP from RESET to RTS. */
	void start(uint32_t qkey, uint32_t sq_psn = 0);
	hw::tern_hw_qp_attr query();

	QpOptions options;
	uint32_t number = 0;
	Iova record;
	uint32_t rq_offset;
	Buffer buffer;
	uint32_t sq_pi = 0;
	uint32_t sq_ci = 0; /* whoever polls completions moves this on */
	uint32_t rq_pi = 0;
	uint32_t published = 0; /* sq_pi as the record has it */
	unsigned doorbells = 0; /* MMIO stores */

private:
	Driver &driver_;
};

hw::tern_hw_aq_cmd make_command(hw::tern_hw_aq_op opcode);

/** How a driver reaches its card. */
struct Bars {
	std::function<void(uint32_t offset, uint32_t value)> write_register;
	std::function<void(uint32_t page, uint32_t offset, uint64_t value)> ring_doorbell;
};

/** One card's driver. Calls that must succeed throw when they do not. */
class Driver {
public:
	/** @pump: lets the card work on what it was told. */
	Driver(Bars bars, FakeMemory &memory, std::function<void()> pump);
	Driver(Rnic &card, FakeMemory &memory, std::function<void()> pump);

	/** Gives the card its admin rings and enables it. */
	void enable(unsigned log_size = 5, bool irq = false);
	/** Gives one command to the card; returns its index. */
	uint32_t submit(hw::tern_hw_aq_cmd command);
	/** The completion of the command at @index, if there is one. */
	std::optional<hw::tern_hw_aq_cqe> result(uint32_t index) const;
	/** Runs one command to its completion. */
	hw::tern_hw_aq_cqe command(hw::tern_hw_aq_cmd command);
	hw::tern_hw_aq_status status_of(const hw::tern_hw_aq_cmd &c)
	{
		return static_cast<hw::tern_hw_aq_status>(command(c).status);
	}
	hw::tern_hw_aq_status destroy(hw::tern_hw_aq_op opcode, uint32_t id);

	HostEq create_eq(uint32_t vector, unsigned log_size = 8, Layout layout = {});
	uint32_t alloc_pd();
	std::unique_ptr<HostCq> create_cq(const HostEq &eq, unsigned log_size = 8,
	                                  uint32_t db_page = 0, Layout layout = {});
	HostMr create_mr(uint32_t pd, uint64_t va, uint64_t size, uint8_t access,
	                 Layout layout = {});
	/** In device memory; the caller has looked whether there is room. */
	HostMr create_device_mr(uint32_t pd, uint64_t va, uint64_t size, uint8_t access);
	uint64_t device_room() const { return device_memory.size() - device_used; }
	uint32_t alloc_xrcd();
	uint32_t alloc_mw(uint32_t pd, hw::tern_hw_mw_type type, uint8_t variant);
	uint32_t create_fast_mr(uint32_t pd);
	std::unique_ptr<HostSrq> create_srq(const SrqOptions &options);
	std::unique_ptr<HostQp> create_qp(const QpOptions &options);
	void set_gid(uint32_t index, hw::tern_hw_gid_type type, const Gid &gid,
	             uint16_t vlan = 0xffff, const Mac &mac = {});
	uint64_t stat(hw::tern_hw_stat which, uint32_t set = hw::TERN_STATS_ALL);

	void arm(HostEq &eq);
	void doorbell(uint32_t page, uint32_t offset, uint32_t number, uint32_t index);

	FakeMemory &memory;
	std::function<void()> pump;

	std::span<std::byte> device_memory{};
	uint64_t device_used = 0;

	Iova aq = 0;
	Iova acq = 0;
	unsigned aq_log_size = 0;
	uint32_t aq_pi = 0;

private:
	uint32_t created(const hw::tern_hw_aq_cmd &command);

	const Bars bars_;
	Iova stats_ = 0;
};

/** All remote rights and the local one. */
inline constexpr uint8_t kAllAccess = TERN_ACCESS_LOCAL_WRITE | TERN_ACCESS_REMOTE_WRITE |
                                      TERN_ACCESS_REMOTE_READ | TERN_ACCESS_REMOTE_ATOMIC |
                                      TERN_ACCESS_FLUSH_GLOBAL;

} // namespace tern::test
