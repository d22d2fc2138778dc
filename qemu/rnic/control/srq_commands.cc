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

/* The ring fields that CREATE_SRQ and RESIZE_SRQ share; none if invalid. */
template <typename Command>
std::optional<SharedRecvQueue::Place> make_place(const Command &cmd, uint8_t log_stride)
{
	const uint32_t ring = cmd.ring_offset.get();
	if (!all_zero(cmd.rsvd) || cmd.log_size > kMaxLogSrq || log_stride < 4 || log_stride > 9 ||
	    cmd.record.get() % kRecordAlign || ring % kRingAlign ||
	    ring < uint64_t{1} << (cmd.log_size + log_stride))
		return std::nullopt;
	const auto pages =
	        PageList::make(cmd.pages, 0, ring + (uint64_t{sizeof(__le32)} << cmd.log_size));
	if (!pages)
		return std::nullopt;
	return SharedRecvQueue::Place{*pages, ring, cmd.record.get(), cmd.log_size, log_stride};
}

bool tag_fields_valid(const Card &card, const tern_hw_create_srq &cmd)
{
	if (cmd.flags & ~TERN_SRQ_TAGS)
		return false;
	const uint32_t ops = cmd.tag_ops_offset.get();
	if (!(cmd.flags & TERN_SRQ_TAGS))
		return !cmd.log_tags && !cmd.log_tag_ops && !ops && !cmd.db_page.get();
	return !cmd.xrcdn.get() && cmd.log_tags <= kMaxLogTags &&
	       cmd.log_tag_ops <= kMaxLogTagOps && ops % kRingAlign == 0 &&
	       ops >= cmd.ring_offset.get() + (uint64_t{sizeof(__le32)} << cmd.log_size) &&
	       page_valid(card, cmd.db_page.get());
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

tern_hw_aq_status create_srq(Card &card, const tern_hw_create_srq &cmd, tern_hw_created &result)
{
	const auto place = make_place(cmd, cmd.log_stride);
	const bool xrc = cmd.xrcdn.get();
	const bool tags = cmd.flags & TERN_SRQ_TAGS;
	if (!place || !tag_fields_valid(card, cmd) || (!xrc && !tags && cmd.cqn.get()))
		return TERN_AQ_BAD_FIELD;
	if (!card.pds.find(cmd.pdn.get()) || (xrc && !card.xrcds.find(cmd.xrcdn.get())) ||
	    ((xrc || tags) && !card.cqs.find(cmd.cqn.get())))
		return TERN_AQ_BAD_OBJECT;
	auto tag_queue = tags ? make_tags(cmd) : std::nullopt;
	if (tags && !tag_queue)
		return TERN_AQ_BAD_FIELD;
	if (tags && card.tag_work.size() == kMaxTagQueues)
		return TERN_AQ_NO_RESOURCE;
	const SharedRecvQueue::Config config{
	        .pdn = cmd.pdn.get(), .xrcdn = cmd.xrcdn.get(), .cqn = cmd.cqn.get()};
	const auto status = created(
	        card.srqs, std::make_unique<SharedRecvQueue>(config, *place, std::move(tag_queue)),
	        result);
	if (status != TERN_AQ_OK)
		return status;
	count_users(card, config, 1);
	if (tags)
		card.tag_work.try_emplace(result.id.get(), card, result.id.get());
	return TERN_AQ_OK;
}

tern_hw_aq_status resize_srq(Card &card, const tern_hw_resize_srq &cmd)
{
	SharedRecvQueue *srq = card.srqs.find(cmd.srqn.get());
	if (!srq || srq->tags())
		return TERN_AQ_BAD_OBJECT;
	const auto place = make_place(cmd, srq->place().log_stride);
	if (!place || place->log_size < srq->place().log_size)
		return TERN_AQ_BAD_FIELD;
	srq->place().pages.forget(card.memory.tables());
	srq->move_to(*place);
	return TERN_AQ_OK;
}

tern_hw_aq_status set_srq_limit(Card &card, const tern_hw_set_srq_limit &cmd)
{
	SharedRecvQueue *srq = card.srqs.find(cmd.srqn.get());
	if (!srq)
		return TERN_AQ_BAD_OBJECT;
	if (cmd.limit.get() > srq->entries())
		return TERN_AQ_BAD_FIELD;
	srq->limit = cmd.limit.get();
	card.check_srq_limit(cmd.srqn.get(), *srq);
	return TERN_AQ_OK;
}

tern_hw_aq_status query_srq(Card &card, uint32_t srqn, tern_hw_srq_attr &attr)
{
	const SharedRecvQueue *srq = card.srqs.find(srqn);
	if (!srq)
		return TERN_AQ_BAD_OBJECT;
	attr.limit = srq->limit;
	return TERN_AQ_OK;
}

std::optional<tern_hw_aq_status> destroy_srq(Card &card, uint32_t srqn, Slice &slice)
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
