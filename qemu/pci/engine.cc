// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/pci/engine.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <sched.h>
#include <span>
#include <string>
#include <sys/prctl.h>
#include <utility>

#include "qemu/pci/idling.h"
#include "qemu/pci/parking.h"
#include "qemu/pci/placement.h"
#include "qemu/pci/spsc_ring.h"
#include "qemu/pci/stoppable_clock.h"
#include "qemu/pci/tracer.h"
#include "qemu/rnic/rnic.h"
#include "qemu/shm/shared_wire.h"

namespace tern {
namespace {

/* A request to the engine's thread; executed in order. */
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

/* Command::value of Describe; else a QP's number. */
constexpr uint64_t kAllQps = ~uint64_t{0};

constexpr size_t kCommands = 4096;
constexpr size_t kFrames = 256;

/* Work per round, before the engine looks at its queues again. */
constexpr unsigned kRunBudget = 16;
constexpr unsigned kReceiveBudget = 32;
constexpr unsigned kCommandBudget = 64;
/* Rounds after which a busy engine wakes the hosts it has sent frames to. */
constexpr unsigned kAnnounceInterval = 32;
/* Rounds after which a busy engine reacquires the memory map. */
constexpr unsigned kHoldInterval = 64;
/* Rounds after which a busy engine reads the wire's socket. It may have to wait for other hosts
 * then, so it does not hold the memory map. */
constexpr unsigned kWireInterval = 128;
static_assert(kWireInterval % kHoldInterval == 0);

} // namespace

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

/* ---- the engine's thread ------------------------------------------------- */

void Engine::thread()
{
	/* The default slack would lengthen each short sleep by 50 us. */
	prctl(PR_SET_TIMERSLACK, 1);
	placement_.emplace();
	for (unsigned round = 0;; round++) {
		if (!commands_.empty()) {
			release_dma();
			do_commands();
			/* Who stops the engine joins this thread with the BQL, which DMA behind an
			 * IOMMU waits for. */
			if (stopping_)
				break;
		}
		if (round % kHoldInterval == 0)
			release_dma();
		if (wire_ && round % kWireInterval == 0) {
			wire_->receive_messages(monotonic_ns());
			maintain_wire();
		}
		const bool more = (!paused_ && do_round()) || !commands_.empty();
		if (wire_ && (!more || round % kAnnounceInterval == 0))
			announce();
		if (!more) {
			release_dma();
			idle();
		}
	}
	release_dma();
	wire_.reset();
}

/* Returns true if there is more to do. */
bool Engine::do_round()
{
	if (!std::exchange(dma_held_, true))
		ops_.dma_hold(opaque_);
	bool more = do_received();
	/* What waits in the inbox may acknowledge what a timer would send again. */
	for (size_t looked_at = kReceiveBudget; more && timer_due() && looked_at < kFrames;
	     looked_at += kReceiveBudget)
		more = do_received();
	while (const auto destination = take_room())
		rnic_.wire_ready(*destination);
	more |= rnic_.run(kRunBudget);
	return more;
}

void Engine::announce()
{
	const std::optional<uint32_t> cpu = wire_->announce();
	if (cpu && placement_->crowded(wire_->hosts()))
		placement_->join(*cpu, monotonic_ns());
}

void Engine::release_dma()
{
	if (std::exchange(dma_held_, false))
		ops_.dma_release(opaque_);
}

/* Returns true if the link state has changed. */
bool Engine::maintain_wire()
{
	wire_->maintain(monotonic_ns());
	return update_link();
}

bool Engine::update_link()
{
	const bool up = plugged_ && (!wire_ || wire_->up());
	/* The event of a change would be written to the memory of a stopped machine. */
	if (paused_ || up == link_up_)
		return false;
	link_up_ = up;
	rnic_.set_link(up);
	return true;
}

void Engine::set_cable(bool plugged)
{
	if (plugged != plugged_)
		discard_received();
	plugged_ = plugged;
	update_link();
}

void Engine::do_commands()
{
	for (unsigned i = 0; i < kCommandBudget && !stopping_; i++) {
		const Command *next = commands_.front();
		if (!next)
			return;
		const Command command = *next;
		commands_.pop();
		do_command(command);
	}
}

void Engine::do_command(const Command &command)
{
	switch (command.kind) {
	case Command::Kind::WriteRegister:
		tracer_.register_write(command.offset, static_cast<uint32_t>(command.value));
		rnic_.write_register(command.offset, static_cast<uint32_t>(command.value));
		break;
	case Command::Kind::ReadRegister:
		*command.answer = rnic_.read_register(command.offset);
		tracer_.register_read(command.offset, *command.answer);
		break;
	case Command::Kind::Doorbell:
		tracer_.doorbell(command.page, command.offset, command.value);
		rnic_.doorbell(command.page, command.offset, command.value);
		break;
	case Command::Kind::SetCable:
		set_cable(command.value != 0);
		break;
	case Command::Kind::Reset:
		discard_received();
		rnic_.reset();
		break;
	case Command::Kind::Flush:
		rnic_.recall();
		break;
	case Command::Kind::Pause:
		clock_.stop();
		paused_ = true;
		break;
	case Command::Kind::Resume:
		clock_.start();
		paused_ = false;
		update_link();
		break;
	case Command::Kind::Describe:
		*command.text = rnic_.describe(command.value == kAllQps
		                                       ? std::nullopt
		                                       : std::optional<uint32_t>(command.value));
		break;
	case Command::Kind::Stop:
		recall(Recall::everything());
		stopping_ = true;
		break;
	}
	if (command.done)
		command.done->signal();
}

/* Returns true if there may be more frames. */
bool Engine::do_received()
{
	if (wire_)
		return wire_->receive(kReceiveBudget, *this);
	for (unsigned i = 0; i < kReceiveBudget; i++) {
		const Frame *frame = received_.front();
		if (!frame)
			return false;
		this->frame({frame->data, frame->size});
		received_.pop();
		std::atomic_thread_fence(std::memory_order_seq_cst);
		if (receive_blocked_.load(std::memory_order_relaxed) && received_.half_empty() &&
		    receive_blocked_.exchange(false))
			ops_.receive_ready(opaque_);
	}
	return true;
}

/* Whether a timer is about to expire with frames in the inbox. Rings in shared memory have more
 * room, and hosts that fill them must not delay this one's packets by that much. */
bool Engine::timer_due()
{
	const auto deadline = wire_ ? std::nullopt : rnic_.next_deadline();
	return deadline && *deadline <= clock_.now();
}

void Engine::discard_received()
{
	if (wire_)
		wire_->discard_received();
	while (received_.front())
		received_.pop();
	if (receive_blocked_.exchange(false))
		ops_.receive_ready(opaque_);
}

/* A destination that has room again after it had none. */
std::optional<Wire::Destination> Engine::take_room()
{
	if (wire_)
		return wire_->take_room();
	const bool room = send_blocked_.load(std::memory_order_relaxed) && sent_.half_empty() &&
	                  send_blocked_.exchange(false);
	return room ? std::optional<Destination>(0) : std::nullopt;
}

bool Engine::has_work()
{
	if (!commands_.empty())
		return true;
	if (paused_)
		return false;
	if (wire_)
		return wire_->has_frames() || wire_->has_room();
	return !received_.empty() ||
	       (send_blocked_.load(std::memory_order_relaxed) && sent_.half_empty());
}

/* Nanoseconds until the next deadline; none if there is no deadline. */
std::optional<uint64_t> Engine::time_left()
{
	std::optional<uint64_t> left;
	const auto until = [&](std::optional<uint64_t> deadline, uint64_t now) {
		if (deadline)
			left = std::min(left.value_or(~uint64_t{0}),
			                *deadline > now ? *deadline - now : 0);
	};
	if (!paused_)
		until(rnic_.next_deadline(), clock_.now());
	if (wire_)
		until(wire_->next_deadline(), monotonic_ns());
	return left;
}

void Engine::idle()
{
	const unsigned work = std::exchange(work_done_, 0);
	if (std::exchange(short_slept_, false))
		short_sleeping_.record(work >= kUsefulSleep);
	if (polling_.should_try() && poll())
		return;
	short_slept_ = short_sleeping_.should_try() && short_sleep();
	if (!short_slept_)
		sleep();
}

/* Returns true if there is work. */
bool Engine::poll()
{
	const uint64_t start = monotonic_ns();
	const uint64_t end = start + std::min(time_left().value_or(~uint64_t{0}), kPollTime);
	uint64_t now = start;
	while (!has_work() && now < end) {
		__builtin_ia32_pause();
		now = monotonic_ns();
	}
	polling_.record(now < end);
	return now < end;
}

/* Returns false if the next deadline does not leave time for it. */
bool Engine::short_sleep()
{
	if (paused_ || time_left().value_or(~uint64_t{0}) <= kShortSleepTime)
		return false;
	const timespec moment{.tv_sec = 0, .tv_nsec = kShortSleepTime};
	nanosleep(&moment, nullptr);
	return true;
}

void Engine::sleep()
{
	if (wire_ && maintain_wire())
		return;
	const std::optional<uint64_t> timeout = time_left();
	if (timeout == 0)
		return;
	const auto has_work = [this] { return this->has_work(); };
	if (!wire_) {
		parking_.sleep(timeout, has_work);
		return;
	}
	placement_->leave(monotonic_ns());
	/* A paused engine receives no frames, so it does not ask to be woken for them. */
	if (!paused_)
		wire_->sleeps(static_cast<uint32_t>(std::max(sched_getcpu(), 0)));
	const bool message = parking_.sleep(timeout, has_work);
	wire_->awake();
	if (message)
		wire_->receive_messages(monotonic_ns());
}

void Engine::raise(unsigned vector)
{
	if (vector >= TERN_ENGINE_MAX_VECTORS)
		return;
	std::atomic<uint64_t> &word = raised_[vector / 64];
	/* A bit that was already set has been announced and is still to be taken. */
	const uint64_t bit = uint64_t{1} << (vector % 64);
	if (!(word.fetch_or(bit) & bit))
		ops_.interrupts_pending(opaque_);
}

bool Engine::transmit(std::span<const std::byte> frame)
{
	if (!plugged_ || frame.size() > kMaxFrame)
		return true; /* too long for any wire: dropped */
	work_done_++;
	if (wire_)
		return wire_->send(frame);
	Frame *slot = sent_.reserve();
	if (!slot) {
		send_blocked_.store(true, std::memory_order_relaxed);
		/* Either this thread sees the new room, or the consumer sees the flag. */
		std::atomic_thread_fence(std::memory_order_seq_cst);
		slot = sent_.reserve();
		if (!slot)
			return false;
		send_blocked_.store(false, std::memory_order_relaxed);
	}
	slot->size = static_cast<uint32_t>(frame.size());
	std::memcpy(slot->data, frame.data(), frame.size());
	sent_.commit();
	ops_.frames_pending(opaque_);
	return true;
}

Wire::Lend Engine::lend(std::span<const std::byte> head, std::span<const HostRange> payload,
                        uint32_t segment, const Loan &loan)
{
	if (!plugged_ || !wire_ || !wire_->can_lend(head))
		return Lend::Refused;
	std::array<tern_ram_range, shm::kMaxRanges> found;
	std::array<shm::RamRange, shm::kMaxRanges> ranges;
	size_t count = 0;
	for (const HostRange &range : payload) {
		const size_t parts =
		        ops_.dma_find_shared(opaque_, range.iova, range.size, found.data() + count,
		                             found.size() - count);
		if (!parts)
			return Lend::Refused;
		count += parts;
	}
	std::ranges::transform(std::span(found).first(count), ranges.begin(),
	                       [](const tern_ram_range &from) {
		                       return shm::RamRange{from.block, from.size, from.offset};
	                       });
	work_done_++;
	const auto result = wire_->lend(head, std::span(ranges).first(count), segment, loan);
	tracer_.lent(loan, payload, segment, result);
	return result;
}

uint64_t Engine::recall(const Recall &what)
{
	const uint64_t revoked = wire_ ? wire_->recall(what, [this] { release_dma(); }) : 0;
	tracer_.recalled(what, revoked);
	return revoked;
}

/* ---- QEMU's threads, under the BQL ------------------------------------------ */

const char *Engine::connect()
{
	wire_error_ = wire_->connect();
	return wire_error_.empty() ? nullptr : wire_error_.c_str();
}

void Engine::post(const Command &command)
{
	Command *slot = commands_.reserve();
	while (!slot && !stopped_) {
		sleep_without_bql();
		slot = commands_.reserve();
	}
	if (stopped_) {
		if (command.done)
			command.done->signal();
		return;
	}
	*slot = command;
	commands_.commit();
	parking_.wake();
}

uint32_t Engine::call(Command command)
{
	uint32_t answer = ~0u;
	if (stopped_)
		return answer;
	Completion done;
	command.answer = &answer;
	command.done = &done;
	waiters_++;
	post(command);
	ops_.unlock();
	done.wait();
	ops_.lock();
	waiters_--;
	return answer;
}

/* Empty when the engine has stopped. */
std::string Engine::describe(int64_t qpn)
{
	std::string text;
	call({.kind = Command::Kind::Describe,
	      .value = qpn < 0 ? kAllQps : static_cast<uint64_t>(qpn),
	      .text = &text});
	return text;
}

void Engine::reset()
{
	call({.kind = Command::Kind::Reset});
	for (auto &word : raised_)
		word.store(0);
}

void Engine::stop()
{
	call({.kind = Command::Kind::Stop});
	stopped_ = true;
	/* The engine's thread has left the ring to this one; complete the commands behind Stop. */
	while (waiters_) {
		while (const Command *command = commands_.front()) {
			if (command->done)
				command->done->signal();
			commands_.pop();
		}
		sleep_without_bql();
	}
}

/* Sleeps briefly without the BQL. waiters_ keeps stop() from returning meanwhile. */
void Engine::sleep_without_bql()
{
	const timespec moment{.tv_sec = 0, .tv_nsec = 20'000};
	waiters_++;
	ops_.unlock();
	nanosleep(&moment, nullptr);
	ops_.lock();
	waiters_--;
}

bool Engine::can_receive()
{
	if (!received_.full())
		return true;
	receive_blocked_.store(true, std::memory_order_relaxed);
	/* As in transmit(). */
	std::atomic_thread_fence(std::memory_order_seq_cst);
	if (received_.full())
		return false;
	receive_blocked_.store(false, std::memory_order_relaxed);
	return true;
}

bool Engine::push_received(const void *frame, size_t size)
{
	if (size > kMaxFrame || stopped_)
		return true; /* dropped */
	if (!can_receive())
		return false;
	Frame *slot = received_.reserve();
	slot->size = static_cast<uint32_t>(size);
	std::memcpy(slot->data, frame, size);
	received_.commit();
	parking_.wake();
	return true;
}

void Engine::pop_sent()
{
	sent_.pop();
	std::atomic_thread_fence(std::memory_order_seq_cst);
	if (send_blocked_.load(std::memory_order_relaxed) && sent_.half_empty())
		parking_.wake();
}

} // namespace tern

/* ---- C interface ---------------------------------------------------------------- */

using tern::Command;

struct tern_engine final : tern::Engine {
	using Engine::Engine;
};

tern_engine *tern_engine_new(const tern_engine_config *config, const tern_engine_ops *ops,
                             void *opaque)
{
	return new tern_engine(*config, *ops, opaque, config->first);
}

void tern_engine_free(tern_engine *engine)
{
	delete engine;
}

bool tern_engine_share_ram(tern_engine *engine, int fd, uint64_t size)
{
	return engine->share_ram(fd, size);
}

const char *tern_engine_connect(tern_engine *engine)
{
	return engine->connect();
}

void tern_engine_run(tern_engine *engine)
{
	engine->thread();
}

void tern_engine_stop(tern_engine *engine)
{
	engine->stop();
}

void tern_engine_write_register(tern_engine *engine, uint32_t offset, uint32_t value)
{
	engine->post({.kind = Command::Kind::WriteRegister, .offset = offset, .value = value});
}

void tern_engine_doorbell(tern_engine *engine, uint32_t page, uint32_t offset, uint64_t value)
{
	engine->post(
	        {.kind = Command::Kind::Doorbell, .page = page, .offset = offset, .value = value});
}

void tern_engine_set_cable(tern_engine *engine, bool plugged)
{
	engine->post({.kind = Command::Kind::SetCable, .value = plugged});
}

uint32_t tern_engine_read_register(tern_engine *engine, uint32_t offset)
{
	return engine->call({.kind = Command::Kind::ReadRegister, .offset = offset});
}

uint64_t tern_engine_clock(tern_engine *engine)
{
	return engine->clock();
}

void tern_engine_reset(tern_engine *engine)
{
	engine->reset();
}

void tern_engine_flush(tern_engine *engine)
{
	engine->call({.kind = Command::Kind::Flush});
}

void tern_engine_pause(tern_engine *engine, bool pause)
{
	engine->call({.kind = pause ? Command::Kind::Pause : Command::Kind::Resume});
}

char *tern_engine_describe(tern_engine *engine, int64_t qpn)
{
	const std::string text = engine->describe(qpn);
	return text.empty() ? nullptr : strdup(text.c_str());
}

bool tern_engine_receive(tern_engine *engine, const void *frame, size_t size)
{
	return engine->push_received(frame, size);
}

bool tern_engine_can_receive(tern_engine *engine)
{
	return engine->can_receive();
}

const uint8_t *tern_engine_next_frame(tern_engine *engine, size_t *size)
{
	const tern::Frame *frame = engine->next_sent();
	if (!frame)
		return nullptr;
	*size = frame->size;
	return reinterpret_cast<const uint8_t *>(frame->data);
}

void tern_engine_frame_done(tern_engine *engine)
{
	engine->pop_sent();
}

uint64_t tern_engine_take_interrupts(tern_engine *engine, unsigned word)
{
	return engine->take_interrupts(word);
}
