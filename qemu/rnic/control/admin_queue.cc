// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/control/admin_queue.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "qemu/rnic/card.h"
#include "qemu/rnic/control/commands.h"

namespace tern {

using namespace hw;

namespace {

/* Units of a command that does little: what it takes to read it, execute it and answer. */
constexpr unsigned kCommandCost = 2;

} // namespace

bool AdminQueue::enable(Iova commands, Iova completions, uint32_t log_size)
{
	if (log_size < 1 || log_size > 10 || (commands & 4095) || (completions & 4095))
		return false;
	commands_ = commands;
	completions_ = completions;
	log_size_ = log_size;
	return true;
}

void AdminQueue::ring(uint32_t pi)
{
	if (pi - ci_ > 1u << log_size_)
		card_.stop(TERN_FATAL_AQ_INDEX);
	else
		pi_ = pi;
}

bool AdminQueue::run(unsigned budget)
{
	while (budget && !holds() && has_work() && card_.fatal == TERN_FATAL_NONE)
		if (!step(budget))
			card_.stop(TERN_FATAL_AQ_DMA);
	if (holds() && has_work() && !running_ && card_.fatal == TERN_FATAL_NONE && !fetch())
		card_.stop(TERN_FATAL_AQ_DMA);
	return has_work() && !holds() && card_.fatal == TERN_FATAL_NONE;
}

bool AdminQueue::step(unsigned &budget)
{
	/* {} may leave bytes behind the union's first member uninitialised. */
	tern_hw_aq_cqe completion;
	std::memset(static_cast<void *>(&completion), 0, sizeof(completion));
	if (!running_) {
		if (!fetch())
			return false;
		budget -= std::min(budget, kCommandCost);
		if (refuses())
			return complete(TERN_AQ_NO_RESOURCE, completion);
	}
	Slice slice{.budget = budget, .spent = spent_};
	const auto status = execute(card_, command_, completion, slice);
	spent_ += budget - slice.budget;
	budget = slice.budget;
	return !status || complete(*status, completion);
}

bool AdminQueue::fetch()
{
	HostMemory &host = card_.memory.host();
	running_ = host.read(commands_ + offset(), std::as_writable_bytes(std::span(&command_, 1)));
	spent_ = 0;
	if (running_)
		card_.ports.observer.command_started(command_.opcode.get(), command_.id.get());
	return running_;
}

bool AdminQueue::refuses()
{
	if (!refuse_in_ || !may_lack_resources(command_.opcode.get()))
		return false;
	refuse_in_--;
	return !refuse_in_;
}

uint16_t AdminQueue::offset_in_command(const void *field) const
{
	if (!field)
		return 0;
	return static_cast<uint16_t>(static_cast<const std::byte *>(field) -
	                             reinterpret_cast<const std::byte *>(&command_));
}

bool AdminQueue::complete(const CommandStatus &status, tern_hw_aq_cqe &completion)
{
	if (status != TERN_AQ_OK)
		card_.stats.add(TERN_STAT_AQ_ERRORS);
	const uint16_t field = offset_in_command(status.field());
	if (field)
		completion.refused.field = field;
	card_.ports.observer.command_done(command_.opcode.get(), command_.id.get(), status.value(),
	                                  field);
	completion.id = command_.id;
	completion.status = static_cast<uint8_t>(status.value());
	completion.phase = !((ci_ >> log_size_) & 1);
	const Iova place = completions_ + offset();
	ci_++;
	running_ = false;
	if (answers_before_hold_)
		answers_before_hold_--;

	HostMemory &host = card_.memory.host();
	const auto bytes = std::as_writable_bytes(std::span(&completion, 1));
	if (card_.falsifier.due())
		card_.ports.observer.falsified("completion of command", command_.opcode.get(),
		                               card_.falsifier.change(bytes));
	uint64_t last;
	std::memcpy(&last, bytes.data() + bytes.size() - sizeof(last), sizeof(last));
	if (!host.write(place, bytes.first(bytes.size() - sizeof(last))) ||
	    !host.store_release(place + bytes.size() - sizeof(last), last))
		return false;
	if (raise_interrupts)
		card_.ports.interrupts.raise(0);
	return true;
}

} // namespace tern
