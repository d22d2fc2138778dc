// SPDX-License-Identifier: GPL-2.0-or-later
/* Two engines run in threads of their own, on a wire of shared memory. Another thread for each host
 * runs its program, and one thread reads the engines' state. `make test-threads` runs this test
 * with ThreadSanitizer. */
#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <unistd.h>

#include "qemu/engine/engine.h"
#include "qemu/shm/segment.h"
#include "qemu/wire/server.h"
#include "tests/support/flat_memory.h"
#include "tests/support/host.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr size_t kMemory = 16 << 20;
constexpr uint32_t kSlot = 8192; /* bytes; more than a packet */
constexpr uint32_t kSlots = 64;
constexpr unsigned kRounds = 1500;

/* What QEMU's lock is to the callers of an engine. */
std::mutex lock;

/** A host with its card. */
class EngineHost {
public:
	EngineHost(uint8_t number, const std::string &wire)
	        : mac{2, 0, 0, 0, 0, number}, gid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0,
	                                           0, number}},
	          segment(shm::make_segment("tern-test", kMemory)), memory(kMemory, segment.get()),
	          engine(make(wire), tern_engine_free),
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
		if (!tern_engine_share_ram(engine.get(), segment.get(), kMemory))
			return "the memory cannot be shared";
		if (const char *error = tern_engine_connect(engine.get()))
			return error;
		thread_ = std::jthread(tern_engine_run, engine.get());
		const std::scoped_lock held(lock);
		tern_engine_pause(engine.get(), false);
		tern_engine_set_cable(engine.get(), true);
		return nullptr;
	}
	void set_up()
	{
		driver.enable();
		driver.set_gid(0, TERN_GID_ROCE_V2, gid);
		const uint32_t pd = driver.alloc_pd();
		cq = driver.create_cq(driver.create_eq(0));
		mr.emplace(driver.create_mr(pd, 0, uint64_t{3} * kSlots * kSlot, kAllAccess));
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

private:
	static const tern_engine_ops kOps;

	static EngineHost &from(void *opaque) { return *static_cast<EngineHost *>(opaque); }
	tern_engine *make(const std::string &wire)
	{
		tern_engine_config config{};
		std::ranges::copy(mac, config.mac);
		config.engines = 1;
		config.vectors = 8;
		config.doorbell_pages = 16;
		config.link_speed_mbps = 100'000;
		config.wire_path = wire.c_str();
		return tern_engine_new(&config, &kOps, this);
	}

	std::jthread thread_; /* ends before the engine does */
};

const tern_engine_ops EngineHost::kOps = {
        .dma_hold = [](void *) {},
        .dma_release = [](void *) {},
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
        .frames_pending = [](void *) {},
        .receive_ready = [](void *) {},
        .trace = [](void *, uint32_t, const char *, const char *) {},
        .unlock = [] { lock.unlock(); },
        .lock = [] { lock.lock(); },
};

/** Writes to the peer and reads back, again and again; returns what went wrong, or empty. */
std::string exchange(EngineHost &host, const HostMr &peer)
{
	const auto perform = [&](uint8_t opcode, uint64_t local, uint64_t remote) {
		host.qp->post_send({.opcode = opcode,
		                    .remote_addr = remote,
		                    .rkey = peer.key,
		                    .sges = {host.mr->sge(local, kSlot)}});
		for (;;) {
			if (const auto cqe = host.cq->poll())
				return cqe->status == TERN_WC_SUCCESS;
			std::this_thread::yield();
		}
	};
	constexpr uint64_t kArea = uint64_t{kSlots} * kSlot;
	std::vector<std::byte> data(kSlot);
	for (unsigned round = 0; round < kRounds; round++) {
		const uint64_t slot = uint64_t{round % kSlots} * kSlot;
		for (size_t i = 0; i < data.size(); i++)
			data[i] = static_cast<std::byte>(i * 7 + round);
		host.mr->write(slot, data);
		if (!perform(TERN_OP_WRITE, slot, kArea + slot))
			return "a WRITE has failed";
		if (!perform(TERN_OP_READ, 2 * kArea + slot, kArea + slot))
			return "a READ has failed";
		if (host.mr->read(2 * kArea + slot, kSlot) != data)
			return "other bytes came back in round " + std::to_string(round);
	}
	return {};
}

class EngineThreads : public testing::Test {
protected:
	void SetUp() override
	{
		ASSERT_EQ(server.listen_for_shared(path), "");
		serving = std::jthread([this](const std::stop_token &stop) {
			while (!stop.stop_requested())
				server.step(1);
		});
		for (uint8_t number : {1, 2}) {
			EngineHost &host = hosts.emplace_back(number, path);
			const char *error = host.start();
			ASSERT_EQ(error, nullptr) << error;
			host.set_up();
		}
		hosts[0].connect(hosts[1]);
		hosts[1].connect(hosts[0]);
	}

	const std::string path = testing::TempDir() + "tern-threads-" + std::to_string(getpid());
	wire::Server server;
	std::jthread serving;
	std::deque<EngineHost> hosts;
};

/* Meanwhile somebody asks for the state, pauses the cards and reads their registers. */
TEST_F(EngineThreads, TrafficWhileSomebodyLooks)
{
	std::atomic<unsigned> ended = 0;
	std::array<std::string, 2> wrong;
	std::vector<std::jthread> programs;
	for (size_t i = 0; i < 2; i++)
		programs.emplace_back([&, i] {
			wrong[i] = exchange(hosts[i], *hosts[1 - i].mr);
			ended++;
		});
	unsigned looks = 0;
	for (; ended < 2; looks++) {
		for (EngineHost &host : hosts) {
			const std::scoped_lock held(lock);
			char *text = tern_engine_describe(host.engine.get(), -1);
			EXPECT_NE(text, nullptr);
			std::free(text);
			EXPECT_EQ(tern_engine_read_register(host.engine.get(), TERN_REG_STATUS),
			          TERN_STATUS_READY);
			tern_engine_pause(host.engine.get(), true);
			tern_engine_pause(host.engine.get(), false);
			tern_engine_flush(host.engine.get());
		}
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
	}
	programs.clear();
	EXPECT_GT(looks, 0u);
	for (const std::string &error : wrong)
		EXPECT_EQ(error, "");
	for (EngineHost &host : hosts) {
		EXPECT_EQ(host.driver.stat(TERN_STAT_RESP_WRITES), kRounds);
		EXPECT_GT(host.driver.stat(TERN_STAT_TX_FRAMES), 0u);
	}
}

/* As while QEMU has stopped the machine. */
TEST_F(EngineThreads, CommandsOfAPausedCardAreExecutedWhenItGoesOn)
{
	EngineHost &host = hosts[0];
	const auto pause = [&](bool paused) {
		const std::scoped_lock held(lock);
		tern_engine_pause(host.engine.get(), paused);
	};
	pause(true);
	std::atomic<bool> going_on = false;
	const std::jthread later([&] {
		std::this_thread::sleep_for(std::chrono::milliseconds(100));
		going_on = true;
		pause(false);
	});
	host.driver.alloc_pd();
	EXPECT_TRUE(going_on);
}

/* A driver that has seen the end of a reset may free what its interrupt handlers use. */
TEST_F(EngineThreads, NoInterruptFollowsReset)
{
	EngineHost &host = hosts[0];
	host.takes_interrupts = false;
	tern_engine *engine = host.engine.get();
	const auto execute = [&](uint32_t ctrl) {
		const std::scoped_lock held(lock);
		tern_engine_write_register(engine, TERN_REG_CTRL, ctrl);
		tern_engine_read_register(engine, TERN_REG_STATUS); /* after all before it */
	};
	for (const uint32_t ctrl : {TERN_CTRL_ENABLE | TERN_CTRL_AQ_IRQ, TERN_CTRL_RESET}) {
		execute(TERN_CTRL_ENABLE | TERN_CTRL_AQ_IRQ);
		host.driver.alloc_pd();
		execute(ctrl);
		EXPECT_EQ(tern_engine_take_interrupts(engine, 0) != 0, ctrl != TERN_CTRL_RESET);
	}
}

} // namespace
} // namespace tern::test
