// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/control/completion_counter_commands.h"

#include "qemu/rnic/control/command_fields.h"

namespace tern {

using namespace hw;

namespace {

/* Returns the operations that can be counted for @qp. Those of its type can, but not receives from
 * an SRQ with tag matching, because the card completes some of these without a QP. */
uint32_t countable_ops(const Card &card, const Qp &qp)
{
	const SharedRecvQueue *srq = card.srqs.find(qp.config().srqn);
	const uint32_t recv = srq && srq->tags() ? 0 : TERN_COMP_RECV;
	switch (qp.config().type) {
	case TERN_QPT_RC:
		return TERN_COMP_SEND | TERN_COMP_READ | TERN_COMP_WRITE | TERN_COMP_REMOTE_READ |
		       TERN_COMP_REMOTE_WRITE | recv;
	case TERN_QPT_UC:
		return TERN_COMP_SEND | TERN_COMP_WRITE | TERN_COMP_REMOTE_WRITE | recv;
	case TERN_QPT_GSI:
	case TERN_QPT_UD:
		return TERN_COMP_SEND | recv;
	case TERN_QPT_XRC_INI:
		return TERN_COMP_SEND | TERN_COMP_READ | TERN_COMP_WRITE;
	case TERN_QPT_XRC_TGT:
		return TERN_COMP_RECV | TERN_COMP_REMOTE_READ | TERN_COMP_REMOTE_WRITE;
	default:
		return 0;
	}
}

} // namespace

CommandStatus create_completion_counter(Card &card, const tern_hw_create_comp_counter &cmd,
                                        tern_hw_created &result)
{
	const auto valid = check_fields({{cmd.record, cmd.record.get() % kRecordAlign == 0},
	                                 {cmd.db_page, page_valid(card, cmd.db_page.get())},
	                                 {cmd.unit, cmd.unit <= TERN_COMP_BYTES},
	                                 {cmd.rsvd, all_zero(cmd.rsvd)}});
	if (valid != TERN_AQ_OK)
		return valid;
	auto counter = std::make_unique<CompletionCounter>(
	        cmd.record.get(), static_cast<tern_hw_comp_unit>(cmd.unit));
	const CompletionCounter &made = *counter;
	const auto status =
	        created(card.completion_counters, std::move(counter), cmd.db_page.get(), result);
	/* Write the record last, because a command that fails must not touch it. */
	if (status != TERN_AQ_OK || made.begin(card.memory.host()))
		return status;
	card.completion_counters.remove(result.id.get());
	return TERN_AQ_DMA_FAULT;
}

CommandStatus modify_completion_counter(Card &card, const tern_hw_modify_comp_counter &cmd)
{
	const auto valid = check_fields({{cmd.value, cmd.value <= TERN_COMP_FAILED},
	                                 {cmd.change, cmd.change <= TERN_COMP_ADD},
	                                 {cmd.rsvd, all_zero(cmd.rsvd)}});
	if (valid != TERN_AQ_OK)
		return valid;
	CompletionCounter *counter = card.completion_counters.find(cmd.id.get());
	if (!counter)
		return TERN_AQ_BAD_OBJECT;
	return counter->change(card.memory.host(), static_cast<tern_hw_comp_value>(cmd.value),
	                       static_cast<tern_hw_comp_change>(cmd.change), cmd.operand.get())
	               ? TERN_AQ_OK
	               : TERN_AQ_DMA_FAULT;
}

CommandStatus attach_completion_counter(Card &card, const tern_hw_attach_comp_counter &cmd)
{
	Qp *qp = card.qps.find(cmd.qpn.get());
	CompletionCounter *counter = card.completion_counters.find(cmd.id.get());
	if (!qp || !counter)
		return TERN_AQ_BAD_OBJECT;
	const uint32_t ops = cmd.ops.get();
	const auto valid = check_fields({{cmd.ops, ops && !(ops & ~countable_ops(card, *qp))},
	                                 {cmd.rsvd, !cmd.rsvd.get()}});
	if (valid != TERN_AQ_OK)
		return valid;
	if (qp->state() != TERN_QPS_RESET && qp->state() != TERN_QPS_INIT)
		return TERN_AQ_BAD_STATE;
	return qp->attach(*counter, ops) ? TERN_AQ_OK : TERN_AQ_BUSY;
}

} // namespace tern
