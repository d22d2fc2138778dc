// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/engine/engine_class.h"

#include <algorithm>
#include <sched.h>
#include <sys/prctl.h>

namespace tern {
namespace {

/* Command::value of Describe; else a QP's number. */
constexpr uint64_t kAllQps = ~uint64_t{0};

/* Work per round, before the engine looks at its queues again. */
constexpr unsigned kRunBudget = 16;
constexpr unsigned kReceiveBudget = 32;
constexpr unsigned kCommandBudget = 16;
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
			memory_.release();
			do_commands();
			/* The thread that stops the engine holds the BQL and waits for this one.
			 * DMA behind an IOMMU would wait for the BQL. */
			if (stopping_)
				break;
		}
		if (round % kHoldInterval == 0)
			memory_.release();
		if (round % kWireInterval == 0)
			read_wire();
		const bool more = (!paused_ && do_round()) || !commands_.empty();
		if (!more || round % kAnnounceInterval == 0)
			announce();
		if (!more) {
			memory_.release();
			idle();
		}
	}
	memory_.release();
	link_.disconnect();
}

/* Returns true if there is more to do. */
bool Engine::do_round()
{
	memory_.hold();
	bool more = link_.receive(kReceiveBudget, rnic_);
	/* A frame not yet received may acknowledge a packet that a due timer would retransmit. */
	for (size_t looked_at = kReceiveBudget;
	     more && timer_due() && looked_at < FrameRings::kFrames; looked_at += kReceiveBudget)
		more = link_.receive(kReceiveBudget, rnic_);
	while (const auto destination = link_.take_room())
		rnic_.wire_ready(*destination);
	more |= rnic_.run(kRunBudget);
	return more;
}

/* Whether a timer is due and arrived frames are to be processed before it. Always false with the
 * wire in shared memory (Link::receives_before_timers()). */
bool Engine::timer_due()
{
	const auto deadline = link_.receives_before_timers() ? rnic_.next_deadline() : std::nullopt;
	return deadline && *deadline <= clock_.now();
}

void Engine::read_wire()
{
	if (shm::SharedWire *wire = link_.shared()) {
		wire->receive_messages(monotonic_ns());
		maintain_wire();
	}
}

void Engine::announce()
{
	shm::SharedWire *wire = link_.shared();
	if (!wire)
		return;
	const std::optional<uint32_t> cpu = wire->announce();
	if (cpu && placement_->crowded(wire->hosts()))
		placement_->join(*cpu, monotonic_ns());
}

/* Returns true if the link state has changed. */
bool Engine::maintain_wire()
{
	link_.shared()->maintain(monotonic_ns());
	return update_link();
}

bool Engine::update_link()
{
	/* The event of a change would be written to the memory of a stopped machine. */
	if (paused_ || link_.up() == link_up_)
		return false;
	link_up_ = link_.up();
	rnic_.set_link(link_up_);
	return true;
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
		/* No interrupt follows a reset. */
		if (rnic_.write_register(command.offset, static_cast<uint32_t>(command.value)))
			interrupts_.clear();
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
		link_.plug(command.value != 0);
		update_link();
		break;
	case Command::Kind::Reset:
		link_.discard_received();
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
		rnic_.hold_commands(command.value != 0, command.offset);
		break;
	case Command::Kind::RefuseCommand:
		rnic_.refuse_command(static_cast<uint32_t>(command.value));
		break;
	case Command::Kind::Falsify:
		rnic_.falsify(static_cast<uint32_t>(command.value), command.offset);
		break;
	case Command::Kind::Stop:
		link_.recall(Recall::everything());
		stopping_ = true;
		break;
	}
	if (command.done)
		command.done->signal();
}

bool Engine::has_work()
{
	return !commands_.empty() || (!paused_ && link_.has_work());
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
	if (const shm::SharedWire *wire = link_.shared())
		until(wire->next_deadline(), monotonic_ns());
	return left;
}

void Engine::idle()
{
	const auto has_work = [this] { return this->has_work(); };
	const auto time_left = [this] { return this->time_left(); };
	if (paused_ || !idling_.wait(link_.take_traffic(), has_work, time_left))
		sleep();
}

void Engine::sleep()
{
	shm::SharedWire *wire = link_.shared();
	if (wire && maintain_wire())
		return;
	const std::optional<uint64_t> timeout = time_left();
	if (timeout == 0)
		return;
	if (wire)
		sleep_on(*wire, timeout);
	else
		parking_.sleep(timeout, [this] { return has_work(); });
}

void Engine::sleep_on(shm::SharedWire &wire, std::optional<uint64_t> timeout)
{
	placement_->leave(monotonic_ns());
	/* A paused engine receives no frames, so it does not ask to be woken for them. */
	if (!paused_)
		wire.sleeps(static_cast<uint32_t>(std::max(sched_getcpu(), 0)));
	const bool message = parking_.sleep(timeout, [this] { return has_work(); });
	wire.awake();
	if (message)
		wire.receive_messages(monotonic_ns());
}

/* ---- QEMU's threads, under the BQL ------------------------------------------ */

const char *Engine::connect()
{
	connect_error_ = link_.shared()->connect();
	return connect_error_.empty() ? nullptr : connect_error_.c_str();
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
	interrupts_.clear();
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

bool Engine::push_received(std::span<const std::byte> frame)
{
	if (frame.size() > kMaxFrame || stopped_)
		return true; /* dropped */
	return frames().push_received(frame);
}

} // namespace tern
