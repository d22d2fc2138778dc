/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "qemu/engine/engine.h"
#include "qemu/engine/frame_rings.h"
#include "qemu/engine/guest_memory.h"
#include "qemu/engine/idling.h"
#include "qemu/engine/link.h"
#include "qemu/engine/parking.h"
#include "qemu/engine/pending_interrupts.h"
#include "qemu/engine/placement.h"
#include "qemu/engine/spsc_ring.h"
#include "qemu/engine/stoppable_clock.h"
#include "qemu/engine/tracer.h"
#include "qemu/rnic/rnic.h"

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
		HoldCommands,  /* value: whether to; offset: answers before */
		RefuseCommand, /* value: which one from now on */
		Falsify,       /* value: one of how many; offset: the seed */
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

/** An engine of a card. Its thread runs the card's core; QEMU's threads pass it commands and
 * frames. engine.h declares the interface for C. */
class Engine {
public:
	/** @first: engine 0 of the same card; null for engine 0. */
	Engine(const tern_engine_config &config, const tern_engine_ops &ops, void *opaque,
	       Engine *first)
	        : ops_(ops), tracer_(ops_, opaque, config.engine),
	          memory_(ops_, opaque, first ? &first->memory_ : nullptr),
	          interrupts_(ops_, opaque),
	          link_(config, ops_, opaque, memory_, parking_, tracer_),
	          rnic_(rnic_config(config), Ports{memory_, interrupts_, link_, clock_, tracer_})
	{
	}

	/** Returns false if there was no descriptor left for it. */
	bool usable() const { return parking_.can_wake(); }

	void thread();

	bool share_ram(int fd, uint64_t size) { return link_.shared()->share(fd, size); }
	const char *connect();

	void post(const Command &command);
	uint32_t call(Command command);
	std::string describe(int64_t qpn);
	void reset();
	void stop();

	uint64_t clock() { return stopped_ ? ~uint64_t{0} : clock_.now(); }
	bool push_received(std::span<const std::byte> frame);
	FrameRings &frames() { return link_.rings(); }
	uint64_t take_interrupts(unsigned word) { return interrupts_.take(word); }

private:
	static constexpr size_t kCommands = 4096;

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

	bool do_round();
	bool timer_due();
	bool has_work();
	void do_commands();
	void do_command(const Command &command);

	void read_wire();
	void announce();
	bool maintain_wire();
	bool update_link();

	std::optional<uint64_t> time_left();
	void idle();
	void sleep();
	void sleep_on(shm::SharedWire &wire, std::optional<uint64_t> timeout);

	void sleep_without_bql();

	const tern_engine_ops ops_;
	Tracer tracer_;
	GuestMemory memory_;
	PendingInterrupts interrupts_;
	Parking parking_;
	Link link_;
	std::string connect_error_;
	StoppableClock clock_;
	Rnic rnic_;
	SpscRing<Command, kCommands> commands_;

	/* used by the engine's thread */
	Idling idling_;
	std::optional<Placement> placement_;
	bool link_up_ = false; /* as the card was told */
	bool paused_ = true;
	bool stopping_ = false;

	/* protected by the BQL */
	bool stopped_ = false;
	unsigned waiters_ = 0;
};

} // namespace tern
