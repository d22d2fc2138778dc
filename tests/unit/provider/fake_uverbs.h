// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A host with one Tern card, as libibverbs sees it: a sysfs tree and a uverbs file. This
 * process' own open(), stat(), fstat(), socket(), write() and ioctl() stand before those of libc;
 * all else that libibverbs and the plugin do is real. The file is a memfd: what the driver would
 * let a process map is memory in it, and keys are offsets into it.
 */
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "rdma/tern-abi.h"
#include "tern/tern_hw.h"

namespace tern::provider::test {

class FakeUverbs {
public:
	static FakeUverbs &instance();

	/** Makes the card answer to @modalias, and forgets what earlier tests did. */
	void reset(const std::string &modalias =
	                   "pci:v00001234d00007E44sv00001AF4sd00001100bc02sc00i00");

	/* ---- how the driver is to behave ---- */

	static constexpr uint32_t kAllCaps = ~0u;
	uint32_t caps = kAllCaps;
	uint32_t next_qpn = 0x100;
	uint32_t next_srqn = 0x300;
	uint32_t next_wqn = 0x500;
	uint8_t queried_state = 0; /* what ibv_query_qp() finds */
	bool bad_dm_key = false;
	static constexpr uint64_t kMaxDm = 1 << 20;
	/** Fails the next command of that number. */
	void fail(uint32_t command, int error) { failures_[command] = error; }
	/** May spoil what the driver answers. */
	std::function<void(tern_alloc_ucontext_resp &)> on_context;
	std::function<void(tern_create_cq_resp &)> on_cq;
	std::function<void(tern_resize_cq_resp &)> on_resize_cq;
	std::function<void(tern_create_qp_resp &)> on_qp;
	std::function<void(tern_create_wq_resp &)> on_wq;
	std::function<void(tern_srq_buf &)> on_srq; /* also of a resize */
	/** What another thread does while the driver modifies a QP or a WQ. */
	std::function<void()> on_modify;
	/** The same when the driver has changed how a CQ is moderated. */
	std::function<void()> on_moderate;
	/** The same after the driver has read the state of a QP. */
	std::function<void()> on_query;

	/* ---- what became of it ---- */

	/* alive */
	int contexts = 0, pds = 0, mrs = 0, cqs = 0, qps = 0;
	int ahs = 0, srqs = 0, xrcds = 0, mws = 0, groups = 0, flows = 0;
	int wqs = 0, tables = 0;
	int dms = 0, counters = 0;
	tern_create_cq_resp last_cq{}; /* after a resize, the new place */
	ib_uverbs_cq_moderation last_moderation{};
	tern_create_qp_resp last_qp{};
	tern_srq_buf last_srq{};
	uint32_t last_max_ops = 0; /* of an SRQ with tags */
	tern_create_wq_resp last_wq{};
	std::vector<uint32_t> last_table; /* handles */
	tern_create_rss_qp_cmd last_rss{};
	uint32_t last_qp_pd = 0;              /* handle */
	ib_uverbs_ex_modify_qp last_modify{}; /* with a rate limit */
	tern_modify_qp_cmd last_rate{};
	uint32_t last_flow_counters = 0; /* handle, of the first spec */
	std::array<uint64_t, TERN_COUNTER_COUNT> counted{};
	uint32_t last_create_flags = 0; /* of a QP */
	struct {
		uint32_t flags, access;
		uint64_t start, iova;
	} last_rereg{};
	std::array<uint64_t, 3> last_dmabuf{}; /* offset, iova, file */
	uint64_t dm_key = 0, dm_length = 0;    /* of the last device memory */
	unsigned writes = 0;                   /* commands so far */

	static constexpr uint32_t kPdHandle = 11, kMrHandle = 12, kDmHandle = 17,
	                          kCountersHandle = 20, kMrKey = 0x1200;

	/** The card's view of the memory under @key. */
	std::byte *memory(uint64_t key) { return memory_ + key; }
	template <class T>
	T *at(uint64_t key)
	{
		return reinterpret_cast<T *>(memory(key));
	}
	uint64_t doorbell(unsigned offset) const;
	/** What the card's clock is to show. */
	void set_clock(uint64_t ns);
	/** The card writes a CQE to the CQ that was made last. False if that is full. */
	bool complete(uint32_t qpn, uint8_t opcode, uint32_t wqe_index);
	/** How many mappings of the file this process has, our own not counted. */
	static int mappings();

	/* ---- for the replaced functions ---- */

	bool is_device_path(const char *path) const;
	bool is_device(int fd) const;
	int open_device();
	/** Takes a command, one at a time. Returns 0 or an errno. */
	int command(std::span<const std::byte> request);
	int ioctl(ib_uverbs_ioctl_hdr &request);

private:
	FakeUverbs();
	~FakeUverbs();
	uint64_t allocate(size_t size);

	int do_command(std::span<const std::byte> request);
	int do_ioctl(ib_uverbs_ioctl_hdr &request);
	template <class T>
	static void respond(uint64_t response, const T &value, size_t room)
	{
		std::memcpy(reinterpret_cast<void *>(response), &value,
		            std::min(room, sizeof(value)));
	}
	tern_alloc_ucontext_resp describe_context() const;
	/* The QP of a request, which is plain or extended. */
	template <class Request>
	tern_create_qp_resp make_qp(const Request &request);
	/* Commands of the other objects than those of an RC connection. */
	int command_of_service(uint32_t number, const std::byte *body, size_t room);
	/* Moves the last CQ as driver and card do. */
	int resize_cq(const ib_uverbs_resize_cq &cmd, size_t room);
	int create_ah(const std::byte *body, size_t room);
	void add_tags(const ib_uverbs_create_xsrq &cmd, tern_srq_buf &buf);
	int create_srq(const ib_uverbs_create_xsrq &cmd, size_t room);
	int modify_srq(const std::byte *body);
	/* Commands of WQs and their tables. */
	int command_of_wq(uint32_t number, const std::byte *body);
	int create_wq(const ib_uverbs_ex_cmd_hdr &ex, const ib_uverbs_ex_create_wq &cmd);
	tern_srq_buf make_srq_buf(uint32_t srqn, uint32_t entries);

	/* Commands and the card may be in different threads, and on_*() give commands. */
	std::recursive_mutex mutex_;
	uint32_t cq_pi_ = 0; /* of the last CQ */
	std::map<uint32_t, int> failures_;
	int memfd_ = -1;
	std::byte *memory_ = nullptr;
	uint64_t used_ = 0;
	uint64_t doorbell_key_ = 0;
	std::string sysfs_;
};

} // namespace tern::provider::test
