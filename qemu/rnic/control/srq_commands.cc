// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/control/srq_commands.h"

#include <utility>

#include "qemu/rnic/card.h"
#include "qemu/rnic/control/command_fields.h"
#include "qemu/rnic/control/commands.h"
#include "qemu/rnic/limits.h"

namespace tern {

using namespace hw;

namespace {

constexpr uint32_t kRingAlign = 64;
/* QPs looked at for one unit of the budget. */
constexpr uint32_t kQpsPerUnit = 16;

/* Takes the ring fields that CREATE_SRQ and RESIZE_SRQ share; @log_stride was validated. */
template <typename Command>
CommandStatus take_place(const Command &cmd, uint8_t log_stride, SharedRecvQueue::Place &place)
{
	const uint32_t ring = cmd.ring_offset.get();
	const auto valid = check_fields({{cmd.record, cmd.record.get() % kRecordAlign == 0},
	                                 {cmd.log_size, cmd.log_size <= kMaxLogSrq},
	                                 {cmd.rsvd, all_zero(cmd.rsvd)}});
	if (valid != TERN_AQ_OK)
		return valid;
	if (ring % kRingAlign || ring < uint64_t{1} << (cmd.log_size + log_stride))
		return bad_field(cmd.ring_offset);
	const auto pages =
	        PageList::make(cmd.pages, 0, ring + (uint64_t{sizeof(__le32)} << cmd.log_size));
	if (!pages)
		return bad_field(cmd.pages);
	place = {*pages, ring, cmd.record.get(), cmd.log_size, log_stride};
	return TERN_AQ_OK;
}

/* The other fields of @cmd were validated. */
CommandStatus check_tag_fields(const Card &card, const tern_hw_create_srq &cmd)
{
	const bool tags = cmd.flags & TERN_SRQ_TAGS;
	const uint32_t ops = cmd.tag_ops_offset.get();
	const uint64_t ring_end =
	        cmd.ring_offset.get() + (uint64_t{sizeof(__le32)} << cmd.log_size);
	return check_fields(
	        {{cmd.xrcdn, !tags || !cmd.xrcdn.get()},
	         {cmd.cqn, tags || cmd.xrcdn.get() || !cmd.cqn.get()},
	         {cmd.flags, !(cmd.flags & ~TERN_SRQ_TAGS)},
	         {cmd.log_tags, cmd.log_tags <= (tags ? kMaxLogTags : 0)},
	         {cmd.log_tag_ops, cmd.log_tag_ops <= (tags ? kMaxLogTagOps : 0)},
	         {cmd.tag_ops_offset, tags ? ops % kRingAlign == 0 && ops >= ring_end : !ops},
	         {cmd.db_page, tags ? page_valid(card, cmd.db_page.get()) : !cmd.db_page.get()}});
}

/* The tag queue of an SRQ; @cmd was validated. */
std::optional<TagQueue> make_tags(const tern_hw_create_srq &cmd)
{
	const uint32_t offset = cmd.tag_ops_offset.get();
	const auto pages = PageList::make(
	        cmd.pages, 0, offset + (uint64_t{sizeof(tern_hw_tag_op)} << cmd.log_tag_ops));
	if (!pages)
		return std::nullopt;
	return TagQueue(TagQueue::Config{.pages = *pages,
	                                 .ring_offset = offset,
	                                 .log_ring = cmd.log_tag_ops,
	                                 .log_list = cmd.log_tags,
	                                 .db_page = cmd.db_page.get()});
}

/* Returns whether no QP has a claim on @srq any more, and none can get one. */
bool forget_srq(Card &card, uint32_t srqn, SharedRecvQueue &srq, Slice &slice)
{
	srq.closing = true;
	while (srq.forgotten < card.qps.end()) {
		if (!slice.budget)
			return false;
		slice.budget--;
		const uint32_t first = std::exchange(srq.forgotten, srq.forgotten + kQpsPerUnit);
		card.qps.for_each(first, srq.forgotten,
		                  [srqn](uint32_t, Qp &qp) { qp.forget_srq(srqn); });
	}
	return true;
}

/* Number 0 names no object. */
void count_users(Card &card, const SharedRecvQueue::Config &config, int n)
{
	add_users(card.pds.find(config.pdn), n);
	add_users(card.xrcds.find(config.xrcdn), n);
	add_users(card.cqs.find(config.cqn), n);
}

} // namespace

CommandStatus create_srq(Card &card, const tern_hw_create_srq &cmd, tern_hw_created &result)
{
	if (cmd.log_stride < 4 || cmd.log_stride > 9)
		return bad_field(cmd.log_stride);
	SharedRecvQueue::Place place;
	auto valid = take_place(cmd, cmd.log_stride, place);
	if (valid == TERN_AQ_OK)
		valid = check_tag_fields(card, cmd);
	if (valid != TERN_AQ_OK)
		return valid;
	const bool xrc = cmd.xrcdn.get();
	const bool tags = cmd.flags & TERN_SRQ_TAGS;
	if (!card.pds.find(cmd.pdn.get()) || (xrc && !card.xrcds.find(cmd.xrcdn.get())) ||
	    ((xrc || tags) && !card.cqs.find(cmd.cqn.get())))
		return TERN_AQ_BAD_OBJECT;
	auto tag_queue = tags ? make_tags(cmd) : std::nullopt;
	if (tags && !tag_queue)
		return bad_field(cmd.pages);
	if (tags && card.tag_work.size() == kMaxTagQueues)
		return TERN_AQ_NO_RESOURCE;
	const SharedRecvQueue::Config config{
	        .pdn = cmd.pdn.get(), .xrcdn = cmd.xrcdn.get(), .cqn = cmd.cqn.get()};
	const auto status = created(
	        card.srqs, std::make_unique<SharedRecvQueue>(config, place, std::move(tag_queue)),
	        card.pds.owner(config.pdn), result);
	if (status != TERN_AQ_OK)
		return status;
	count_users(card, config, 1);
	if (tags)
		card.tag_work.try_emplace(result.id.get(), card, result.id.get());
	return TERN_AQ_OK;
}

CommandStatus resize_srq(Card &card, const tern_hw_resize_srq &cmd)
{
	SharedRecvQueue *srq = card.srqs.find(cmd.srqn.get());
	if (!srq || srq->tags())
		return TERN_AQ_BAD_OBJECT;
	SharedRecvQueue::Place place;
	const auto valid = take_place(cmd, srq->place().log_stride, place);
	if (valid != TERN_AQ_OK)
		return valid;
	if (place.log_size < srq->place().log_size)
		return bad_field(cmd.log_size);
	srq->place().pages.forget(card.memory.tables());
	srq->move_to(place);
	return TERN_AQ_OK;
}

CommandStatus set_srq_limit(Card &card, const tern_hw_set_srq_limit &cmd)
{
	SharedRecvQueue *srq = card.srqs.find(cmd.srqn.get());
	if (!srq)
		return TERN_AQ_BAD_OBJECT;
	if (cmd.limit.get() > srq->entries())
		return bad_field(cmd.limit);
	srq->limit = cmd.limit.get();
	card.check_srq_limit(cmd.srqn.get(), *srq);
	return TERN_AQ_OK;
}

CommandStatus query_srq(Card &card, uint32_t srqn, tern_hw_srq_attr &attr)
{
	const SharedRecvQueue *srq = card.srqs.find(srqn);
	if (!srq)
		return TERN_AQ_BAD_OBJECT;
	attr.limit = srq->limit;
	return TERN_AQ_OK;
}

std::optional<CommandStatus> destroy_srq(Card &card, uint32_t srqn, Slice &slice)
{
	SharedRecvQueue *srq = card.srqs.find(srqn);
	if (!srq)
		return TERN_AQ_BAD_OBJECT;
	if (srq->users)
		return TERN_AQ_BUSY;
	/* An XRC message that is being received may have claimed a WQE of it. */
	if (srq->config().xrcdn && !forget_srq(card, srqn, *srq, slice))
		return std::nullopt;
	count_users(card, srq->config(), -1);
	card.tag_work.erase(srqn);
	card.drop_events(kSrqEvents, srqn);
	srq->place().pages.forget(card.memory.tables());
	card.srqs.remove(srqn);
	return TERN_AQ_OK;
}

} // namespace tern
