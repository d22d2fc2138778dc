// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/control/admin_queue.h"

#include <cstring>
#include <span>

#include "qemu/rnic/card.h"
#include "qemu/rnic/control/commands.h"

namespace tern {

using namespace hw;

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
	while (ci_ != pi_ && card_.fatal == TERN_FATAL_NONE) {
		if (!budget--)
			return true;
		if (!execute_next())
			card_.stop(TERN_FATAL_AQ_DMA);
	}
	return false;
}

bool AdminQueue::execute_next()
{
	HostMemory &host = card_.memory.host();
	const uint64_t offset = uint64_t{ci_ & ((1u << log_size_) - 1)} * TERN_AQ_ENTRY;
	tern_hw_aq_cmd command;
	if (!host.read(commands_ + offset, std::as_writable_bytes(std::span(&command, 1))))
		return false;

	/* Not {}, which may leave bytes behind the union's first member uninitialised. */
	tern_hw_aq_cqe completion;
	std::memset(static_cast<void *>(&completion), 0, sizeof(completion));
	const tern_hw_aq_status status = execute(card_, command, completion);
	if (status != TERN_AQ_OK)
		card_.stats.add(TERN_STAT_AQ_ERRORS);
	completion.id = command.id;
	completion.status = static_cast<uint8_t>(status);
	completion.phase = !((ci_ >> log_size_) & 1);
	ci_++;

	const auto bytes = std::as_bytes(std::span(&completion, 1));
	uint64_t last;
	std::memcpy(&last, bytes.data() + bytes.size() - sizeof(last), sizeof(last));
	if (!host.write(completions_ + offset, bytes.first(bytes.size() - sizeof(last))) ||
	    !host.store_release(completions_ + offset + bytes.size() - sizeof(last), last))
		return false;
	if (raise_interrupts)
		card_.ports.interrupts.raise(0);
	return true;
}

} // namespace tern
