// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/engine/engine_class.h"

#include <algorithm>
#include <cstring>
#include <sched.h>
#include <sys/prctl.h>
#include <utility>

namespace tern {
namespace {

/* Command::value of Describe; else a QP's number. */
constexpr uint64_t kAllQps = ~uint64_t{0};

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
	case Command::Kind::FailQp:
		*command.answer = rnic_.fail_qp(static_cast<uint32_t>(command.value));
		break;
	case Command::Kind::SlowQp:
		*command.answer =
		        rnic_.slow_qp(static_cast<uint32_t>(command.value), command.offset);
		break;
	case Command::Kind::HoldCommands:
		rnic_.hold_commands(command.value != 0);
		break;
	case Command::Kind::RefuseCommand:
		rnic_.refuse_command(static_cast<uint32_t>(command.value));
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
