/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "qemu/engine/engine.h"
#include "qemu/engine/idling.h"
#include "qemu/engine/parking.h"
#include "qemu/engine/placement.h"
#include "qemu/engine/spsc_ring.h"
#include "qemu/engine/stoppable_clock.h"
#include "qemu/engine/tracer.h"
#include "qemu/rnic/rnic.h"
#include "qemu/shm/shared_wire.h"

namespace tern {

/** A request to the engine's thread; executed in order. */
struct Command {
	enum class Kind : uint8_t {
		WriteRegister,
		ReadRegister,
		Doorbell,
		SetCable,
		Reset,
		Flush,
		Pause,
		Resume,
		Describe,
		FailQp,        /* value: its number */
		SlowQp,        /* ... and offset: kb/s */
		HoldCommands,  /* value: whether to */
		RefuseCommand, /* value: which one from now on */
		Stop,
	};

	Kind kind = Kind::Flush;
	uint32_t page = 0;
	uint32_t offset = 0;
	uint64_t value = 0;
	/* set by a caller that waits for the result */
	uint32_t *answer = nullptr;
	std::string *text = nullptr;
	Completion *done = nullptr;
};

/* Fits 9000 bytes of payload with two VLAN tags. */
constexpr size_t kMaxFrame = 9216;

struct Frame {
	uint32_t size;
	std::byte data[kMaxFrame];
};

/** An engine of a card. Its thread runs the card's core; QEMU's threads pass it commands and
 * frames. engine.h declares the interface for C. */
class Engine : private HostMemory, private Interrupts, private Wire, private shm::SharedWire::Sink {
public:
	/** @first: engine 0 of the same card; null for engine 0. */
	Engine(const tern_engine_config &config, const tern_engine_ops &ops, void *opaque,
	       Engine *first)
	        : ops_(ops), opaque_(opaque), tracer_(ops_, opaque, config.engine),
	          atomics_(first ? first->own_atomics_ : own_atomics_),
	          rnic_(rnic_config(config), Ports{*this, *this, *this, clock_, tracer_})
	{
		if (config.wire_path)
			wire_.emplace(config.wire_path, parking_.poll(), config.card,
			              config.engine);
	}

	void thread();

	bool share_ram(int fd, uint64_t size) { return wire_->share(fd, size); }
	const char *connect();

	void post(const Command &command);
	uint32_t call(Command command);
	std::string describe(int64_t qpn);
	void reset();
	void stop();

	uint64_t clock() { return stopped_ ? ~uint64_t{0} : clock_.now(); }
	bool push_received(const void *frame, size_t size);
	bool can_receive();
	const Frame *next_sent() { return sent_.front(); }
	void pop_sent();
	uint64_t take_interrupts(unsigned word) { return raised_[word].exchange(0); }

private:
	static constexpr size_t kCommands = 4096;
	static constexpr size_t kFrames = 256;

	static Rnic::Config rnic_config(const tern_engine_config &config)
	{
		Rnic::Config to;
		std::memcpy(to.mac.data(), config.mac, to.mac.size());
		to.engine = config.engine;
		to.engines = config.engines;
		to.vectors = config.vectors;
		to.doorbell_pages = config.doorbell_pages;
		to.link_speed_mbps = config.link_speed_mbps;
		to.device_memory = {static_cast<std::byte *>(config.device_memory),
		                    config.device_memory_size};
		return to;
	}

	/* HostMemory */
	bool read(Iova from, std::span<std::byte> to) override
	{
		return ops_.dma_read(opaque_, from, to.data(), to.size());
	}
	bool write(Iova to, std::span<const std::byte> from) override
	{
		return ops_.dma_write(opaque_, to, from.data(), from.size());
	}
	bool store_release(Iova to, uint64_t value) override
	{
		return ops_.dma_store64(opaque_, to, value);
	}
	bool load_acquire(Iova from, uint32_t &value) override
	{
		return ops_.dma_load32(opaque_, from, &value);
	}
	void lock_atomics() override { atomics_.lock(); }
	void unlock_atomics() override { atomics_.unlock(); }

	/* Interrupts */
	void raise(unsigned vector) override;

	/* Wire */
	bool transmit(std::span<const std::byte> frame) override;
	Destination full() const override { return wire_ ? wire_->full() : 0; }
	Lend lend(std::span<const std::byte> head, std::span<const HostRange> payload,
	          uint32_t segment, const Loan &loan) override;
	uint64_t recall(const Recall &what) override;

	/* SharedWire::Sink */
	void frame(std::span<const std::byte> frame) override
	{
		if (!plugged_)
			return;
		work_done_++;
		rnic_.receive(frame);
	}
	void lent(std::span<const std::byte> head,
	          std::span<const std::span<const std::byte>> payload, uint32_t segment) override
	{
		if (!plugged_)
			return;
		work_done_++;
		rnic_.receive(head, payload, segment);
	}
	void revoked(uint32_t packets) override { rnic_.lost(packets); }

	bool do_round();
	void announce();
	void release_dma();
	bool maintain_wire();
	bool update_link();
	void set_cable(bool plugged);
	void do_commands();
	void do_command(const Command &command);
	bool do_received();
	bool timer_due();
	std::optional<Destination> take_room();
	void discard_received();
	bool has_work();
	bool poll();
	bool short_sleep();
	std::optional<uint64_t> time_left();
	void idle();
	void sleep();

	void sleep_without_bql();

	const tern_engine_ops ops_;
	void *const opaque_;
	Tracer tracer_;

	/* Protects atomic operations on memory against those of the card's other engines: all use
	 * the mutex of engine 0. Held during one operation; a thread that holds it may take the
	 * BQL, so a thread with the BQL never takes it. */
	std::mutex own_atomics_;
	std::mutex &atomics_;

	Parking parking_;

	/* Used by the engine's thread; replaces the rings received_ and sent_. */
	std::optional<shm::SharedWire> wire_;
	std::string wire_error_;
	bool plugged_ = false;
	bool link_up_ = false;

	StoppableClock clock_;
	Rnic rnic_;
	AdaptivePolicy polling_;
	AdaptivePolicy short_sleeping_;
	std::optional<Placement> placement_; /* used by the engine's thread */
	/* Used by the engine's thread: work done since it was last idle. */
	unsigned work_done_ = 0;
	bool short_slept_ = false;
	bool dma_held_ = false;

	SpscRing<Command, kCommands> commands_;
	/* Frames to the card, and frames from it. */
	SpscRing<Frame, kFrames> received_;
	SpscRing<Frame, kFrames> sent_;

	/* The producer found its ring full and waits until it is half empty. */
	std::atomic<bool> receive_blocked_{false};
	std::atomic<bool> send_blocked_{false};

	std::array<std::atomic<uint64_t>, TERN_ENGINE_MAX_VECTORS / 64> raised_{};

	/* used by the engine's thread */
	bool paused_ = true;
	bool stopping_ = false;

	/* protected by the BQL */
	bool stopped_ = false;
	unsigned waiters_ = 0;
};

} // namespace tern
