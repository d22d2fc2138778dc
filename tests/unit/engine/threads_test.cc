// SPDX-License-Identifier: GPL-2.0-or-later
/* Two engines run in threads of their own, on a wire of shared memory. Another thread for each host
 * runs its program, and one thread reads the engines' state. `make test-threads` runs this test
 * with ThreadSanitizer. */
#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>
#include <unistd.h>

#include "qemu/wire/server.h"
#include "tests/unit/engine/engine_host.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kSlot = 8192; /* bytes; more than a packet */
constexpr uint32_t kSlots = 64;
constexpr unsigned kRounds = 1500;

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
			EngineHost &host = hosts.emplace_back(number, path.c_str());
			const char *error = host.start();
			ASSERT_EQ(error, nullptr) << error;
			host.set_up(uint64_t{3} * kSlots * kSlot);
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
