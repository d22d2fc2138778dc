// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A host with one Tern card, as libibverbs sees it: a sysfs tree and a uverbs file. This
 * process' own open(), stat(), fstat(), socket() and write() stand before those of libc; all
 * else that libibverbs and the plugin do is real. The file is a memfd: what the driver would
 * let a process map is memory in it, and keys are offsets into it.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

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

	uint32_t caps = TERN_CAP_RC | TERN_CAP_ATOMIC | TERN_CAP_SHADOW_DB;
	uint32_t next_qpn = 0x100;
	/** Fails the next command of that number. */
	void fail(uint32_t command, int error) { failures_[command] = error; }
	/** May spoil what the driver answers. */
	std::function<void(tern_alloc_ucontext_resp &)> on_context;
	std::function<void(tern_create_cq_resp &)> on_cq;
	std::function<void(tern_create_qp_resp &)> on_qp;

	/* ---- what became of it ---- */

	int contexts = 0, pds = 0, mrs = 0, cqs = 0, qps = 0; /* alive */
	tern_create_cq_resp last_cq{};
	tern_create_qp_resp last_qp{};
	unsigned writes = 0; /* commands so far */

	/** The card's view of the memory under @key. */
	std::byte *memory(uint64_t key) { return memory_ + key; }
	template <class T>
	T *at(uint64_t key)
	{
		return reinterpret_cast<T *>(memory(key));
	}
	uint64_t doorbell(unsigned offset) const;
	/** How many mappings of the file this process has, our own not counted. */
	static int mappings();

	/* ---- for the replaced functions ---- */

	bool is_device_path(const char *path) const;
	bool is_device(int fd) const;
	int open_device();
	/** Takes a command. Returns 0 or an errno. */
	int command(std::span<const std::byte> request);

private:
	FakeUverbs();
	~FakeUverbs();
	uint64_t allocate(size_t size);

	template <class T>
	void respond(uint64_t response, const T &value, size_t room);

	std::map<uint32_t, int> failures_;
	int memfd_ = -1;
	std::byte *memory_ = nullptr;
	uint64_t used_ = 0;
	uint64_t doorbell_key_ = 0;
	std::string sysfs_;
};

} // namespace tern::provider::test
