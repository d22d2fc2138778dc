// SPDX-License-Identifier: GPL-2.0-or-later
/* Two engines whose frames the test carries, as QEMU's net layer does. */
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/unit/engine/engine_host.h"

namespace tern::test {
namespace {

/** A door at which a thread waits while it is closed. */
class Door {
public:
	void close() { set(true); }
	void open() { set(false); }
	void pass()
	{
		std::unique_lock held(mutex_);
		waits_ = closed_;
		changed_.notify_all();
		changed_.wait(held, [this] { return !closed_; });
		waits_ = false;
	}
	void await_waiter()
	{
		std::unique_lock held(mutex_);
		changed_.wait(held, [this] { return waits_; });
	}

private:
	void set(bool closed)
	{
		const std::scoped_lock held(mutex_);
		closed_ = closed;
		changed_.notify_all();
	}

	std::mutex mutex_;
	std::condition_variable changed_;
	bool closed_ = false;
	bool waits_ = false;
};

class EngineTimers : public testing::Test {
protected:
	void SetUp() override
	{
		a.sent = [this] {
			if (stops_after_next.exchange(false))
				door.close();
		};
		a.rounds_ended = [this] { door.pass(); };
		for (EngineHost *host : {&a, &b}) {
			ASSERT_EQ(host->start(), nullptr);
			host->set_up(4096);
		}
		a.connect(b);
		b.connect(a);
	}

	/** Waits for a frame of @host and takes it. */
	static std::vector<std::byte> take_frame(EngineHost &host)
	{
		for (;;) {
			{
				const std::scoped_lock held(lock);
				size_t size;
				if (const uint8_t *frame =
				            tern_engine_next_frame(host.engine.get(), &size)) {
					const auto *bytes =
					        reinterpret_cast<const std::byte *>(frame);
					std::vector copy(bytes, bytes + size);
					tern_engine_frame_done(host.engine.get());
					return copy;
				}
			}
			std::this_thread::yield();
		}
	}
	static void give(EngineHost &host, std::span<const std::byte> frame)
	{
		const std::scoped_lock held(lock);
		ASSERT_TRUE(tern_engine_receive(host.engine.get(), frame.data(), frame.size()));
	}

	Door door; /* of the thread of a's engine, between its rounds */
	std::atomic<bool> stops_after_next = false; /* frame that is sent */
	EngineHost a{1, nullptr};
	EngineHost b{2, nullptr};
};

/* An engine has been away for longer than the timeout, and the ACK waits behind frames of others,
 * more than it takes in a round. The timer must not go off before the ACK is looked at. */
TEST_F(EngineTimers, FramesThatHaveArrivedComeBeforeTimers)
{
	constexpr int kOthers = 200;
	constexpr std::chrono::milliseconds kLongerThanAnyTimeout(300);
	stops_after_next = true;
	a.qp->post_send({.opcode = TERN_OP_WRITE, .rkey = b.mr->key, .sges = {a.mr->sge(0, 8)}});
	const auto write = take_frame(a);
	door.await_waiter();
	give(b, write);
	const auto ack = take_frame(b);
	const std::array<std::byte, 60> of_others{std::byte{2}, std::byte{0xff}};
	for (int i = 0; i < kOthers; i++)
		give(a, of_others);
	give(a, ack);
	std::this_thread::sleep_for(kLongerThanAnyTimeout);
	door.open();
	std::optional<tern_hw_cqe> cqe;
	while (!(cqe = a.cq->poll()))
		std::this_thread::yield();
	EXPECT_EQ(cqe->status, TERN_WC_SUCCESS);
	EXPECT_EQ(a.driver.stat(TERN_STAT_REQ_TIMEOUTS), 0u);
	EXPECT_EQ(a.driver.stat(TERN_STAT_REQ_RETRANSMITS), 0u);
}

} // namespace
} // namespace tern::test
