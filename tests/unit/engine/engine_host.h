/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A host whose card is an engine with its thread. */
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "qemu/engine/engine.h"
#include "qemu/shm/segment.h"
#include "tests/support/flat_memory.h"
#include "tests/support/host.h"

namespace tern::test {

using namespace hw;

/* What QEMU's lock is to the callers of an engine. */
inline std::mutex lock;

/** A host with its card, whose engine runs in a thread of its own. */
class EngineHost {
public:
	static constexpr size_t kMemory = 16 << 20;

	/** @wire_path: the socket of the wire in shared memory; null: the test carries the frames.
	 */
	EngineHost(uint8_t number, const char *wire_path)
	        : wire(wire_path), mac{2, 0, 0, 0, 0, number}, gid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	                                                            0xff, 0xff, 10, 0, 0, number}},
	          segment(shm::make_segment("tern-test", kMemory)), memory(kMemory, segment.get()),
	          engine(make(), tern_engine_free),
	          driver({[this](uint32_t offset, uint32_t value) {
		                  const std::scoped_lock held(lock);
		                  tern_engine_write_register(engine.get(), offset, value);
	                  },
	                  [this](uint32_t page, uint32_t offset, uint64_t value) {
		                  const std::scoped_lock held(lock);
		                  tern_engine_doorbell(engine.get(), page, offset, value);
	                  }},
	                 memory,
	                 /* Without a sleep, a command can fail before the thread has run. */
	                 [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); })
	{
	}
	~EngineHost()
	{
		if (thread_.joinable()) {
			const std::scoped_lock held(lock);
			tern_engine_stop(engine.get());
		}
	}

	/** Returns an error message, or null. */
	const char *start()
	{
		if (wire) {
			if (!tern_engine_share_ram(engine.get(), segment.get(), kMemory))
				return "the memory cannot be shared";
			if (const char *error = tern_engine_connect(engine.get()))
				return error;
		}
		thread_ = std::jthread(tern_engine_run, engine.get());
		const std::scoped_lock held(lock);
		tern_engine_pause(engine.get(), false);
		tern_engine_set_cable(engine.get(), true);
		return nullptr;
	}
	void set_up(uint64_t area)
	{
		driver.enable();
		driver.set_gid(0, TERN_GID_ROCE_V2, gid);
		const uint32_t pd = driver.alloc_pd();
		cq = driver.create_cq(driver.create_eq(0));
		mr.emplace(driver.create_mr(pd, 0, area, kAllAccess));
		QpOptions options;
		options.pd = pd;
		options.send_cqn = options.recv_cqn = cq->number;
		qp = driver.create_qp(options);
	}
	void connect(const EngineHost &peer)
	{
		Connection path;
		path.mtu = 5; /* 4096 */
		path.timeout = 14;
		path.dest_qpn = peer.qp->number;
		path.dgid = peer.gid;
		path.dmac = peer.mac;
		qp->connect(path);
	}

	const char *const wire;
	const Mac mac;
	const Gid gid;
	const Fd segment;
	FlatMemory memory;
	std::unique_ptr<tern_engine, void (*)(tern_engine *)> engine;
	Driver driver;
	std::unique_ptr<HostCq> cq;
	std::optional<HostMr> mr;
	std::unique_ptr<HostQp> qp;
	std::atomic<bool> takes_interrupts = true;
	/* Called by the engine's thread, set before start(): the card has sent a frame to the front
	 * end; rounds of work have ended. */
	std::function<void()> sent = [] {};
	std::function<void()> rounds_ended = [] {};

private:
	static const tern_engine_ops kOps;

	static EngineHost &from(void *opaque) { return *static_cast<EngineHost *>(opaque); }
	tern_engine *make()
	{
		tern_engine_config config{};
		std::ranges::copy(mac, config.mac);
		config.engines = 1;
		config.vectors = 8;
		config.doorbell_pages = 16;
		config.link_speed_mbps = 100'000;
		config.wire_path = wire;
		return tern_engine_new(&config, &kOps, this);
	}

	std::jthread thread_; /* ends before the engine does */
};

inline const tern_engine_ops EngineHost::kOps = {
        .dma_hold = [](void *) {},
        .dma_release = [](void *opaque) { EngineHost::from(opaque).rounds_ended(); },
        .dma_read =
                [](void *opaque, uint64_t at, void *to, size_t size) {
	                return EngineHost::from(opaque).memory.read(
	                        at, {static_cast<std::byte *>(to), size});
                },
        .dma_write =
                [](void *opaque, uint64_t to, const void *bytes, size_t size) {
	                return EngineHost::from(opaque).memory.write(
	                        to, {static_cast<const std::byte *>(bytes), size});
                },
        .dma_store64 =
                [](void *opaque, uint64_t to, uint64_t value) {
	                return EngineHost::from(opaque).memory.store_release(to, value);
                },
        .dma_load32 =
                [](void *opaque, uint64_t at, uint32_t *value) {
	                return EngineHost::from(opaque).memory.load_acquire(at, *value);
                },
        .dma_find_shared = [](void *, uint64_t at, size_t size, tern_ram_range *ranges,
                              size_t) -> size_t {
	        ranges[0] = {.block = 0, .size = static_cast<uint32_t>(size), .offset = at};
	        return at <= kMemory && size <= kMemory - at;
        },
        .interrupts_pending =
                [](void *opaque) {
	                const EngineHost &host = EngineHost::from(opaque);
	                if (host.takes_interrupts)
		                tern_engine_take_interrupts(host.engine.get(), 0);
                },
        .frames_pending = [](void *opaque) { EngineHost::from(opaque).sent(); },
        .receive_ready = [](void *) {},
        .trace = [](void *, uint32_t, const char *, const char *) {},
        .unlock = [] { lock.unlock(); },
        .lock = [] { lock.lock(); },
};

} // namespace tern::test
