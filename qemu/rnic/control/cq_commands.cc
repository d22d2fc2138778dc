// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/control/cq_commands.h"

#include "qemu/rnic/card.h"
#include "qemu/rnic/control/command_fields.h"
#include "qemu/rnic/control/commands.h"
#include "qemu/rnic/limits.h"

namespace tern {

using namespace hw;

namespace {

constexpr uint64_t kNsPerUs = 1000;

/* Takes the ring fields that CREATE_CQ and RESIZE_CQ share. */
template <typename Command>
CommandStatus take_place(const Command &cmd, CompletionQueue::Place &place)
{
	const auto valid = check_fields({{cmd.record, cmd.record.get() % kRecordAlign == 0},
	                                 {cmd.log_size, cmd.log_size <= kMaxLogCq},
	                                 {cmd.rsvd, all_zero(cmd.rsvd)}});
	if (valid != TERN_AQ_OK)
		return valid;
	const auto pages = PageList::make(cmd.pages, 0, sizeof(tern_hw_cqe) << cmd.log_size);
	if (!pages)
		return bad_field(cmd.pages);
	place = {*pages, cmd.record.get(), cmd.log_size};
	return TERN_AQ_OK;
}

} // namespace

CommandStatus create_cq(Card &card, const tern_hw_create_cq &cmd, tern_hw_created &result)
{
	CompletionQueue::Place place;
	const auto valid = take_place(cmd, place);
	if (valid != TERN_AQ_OK)
		return valid;
	if (!page_valid(card, cmd.db_page.get()))
		return bad_field(cmd.db_page);
	EventQueue *eq = card.eqs.find(cmd.eqn.get());
	if (!eq)
		return TERN_AQ_BAD_OBJECT;
	const auto status =
	        created(card.cqs,
	                std::make_unique<CompletionQueue>(place, cmd.eqn.get(), cmd.db_page.get()),
	                cmd.db_page.get(), result);
	if (status == TERN_AQ_OK)
		eq->users++;
	return status;
}

std::optional<CommandStatus> resize_cq(Card &card, const tern_hw_resize_cq &cmd, Slice &slice)
{
	CompletionQueue *cq = card.cqs.find(cmd.cqn.get());
	if (!cq)
		return TERN_AQ_BAD_OBJECT;
	CompletionQueue::Place place;
	const auto valid = take_place(cmd, place);
	if (valid != TERN_AQ_OK)
		return valid;
	const PageList before = cq->pages();
	const auto status = cq->move_to(card.dma, card.memory.tables(), place, slice.budget);
	if (status)
		(status == TERN_AQ_OK ? before : place.pages).forget(card.memory.tables());
	return status;
}

CommandStatus moderate_cq(Card &card, const tern_hw_moderate_cq &cmd)
{
	CompletionQueue *cq = card.cqs.find(cmd.cqn.get());
	if (!cq)
		return TERN_AQ_BAD_OBJECT;
	const uint64_t period = cmd.period.get() * kNsPerUs;
	card.notify(cmd.cqn.get(), *cq, cq->moderate({cmd.count.get(), period}));
	return TERN_AQ_OK;
}

CommandStatus destroy_cq(Card &card, uint32_t cqn)
{
	CompletionQueue *cq = card.cqs.find(cqn);
	if (!cq)
		return TERN_AQ_BAD_OBJECT;
	if (cq->users)
		return TERN_AQ_BUSY;
	card.drop_events(kCqEvents, cqn);
	card.timers.drop({TimerOwner::Kind::Cq, cqn}, cq->timer);
	card.eqs.find(cq->eqn())->users--;
	cq->pages().forget(card.memory.tables());
	card.cqs.remove(cqn);
	return TERN_AQ_OK;
}

} // namespace tern
