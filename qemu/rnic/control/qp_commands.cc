// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/control/qp_commands.h"

#include "qemu/rnic/card.h"
#include "qemu/rnic/control/command_fields.h"
#include "qemu/rnic/control/commands.h"
#include "qemu/rnic/limits.h"
#include "qemu/rnic/port/eth_qp.h"
#include "qemu/rnic/transport/rc_qp.h"
#include "qemu/rnic/transport/uc_qp.h"
#include "qemu/rnic/transport/ud_qp.h"

namespace tern {

using namespace hw;

namespace {

/* Packets that a QP may still send when it is destroyed. */
constexpr uint64_t kDestroyBudget = 256;

/* The flags of CREATE_QP that are valid for a type. */
uint8_t flags_of_type(uint8_t type)
{
	switch (type) {
	case TERN_QPT_RC:
	case TERN_QPT_UC:
		return TERN_QP_SIGNAL_ALL | TERN_QP_SRQ;
	case TERN_QPT_UD:
		return TERN_QP_SIGNAL_ALL | TERN_QP_SRQ | TERN_QP_NO_MC_LOOPBACK;
	default:
		return TERN_QP_SIGNAL_ALL;
	}
}

CommandStatus check_recv_queue(const tern_hw_create_qp &cmd)
{
	const uint8_t log_stride = cmd.rq_log_stride;
	const bool allowed = !(cmd.flags & TERN_QP_SRQ) && cmd.type != TERN_QPT_XRC_INI;
	return check_fields({{cmd.rq_log_stride,
	                      !log_stride || (allowed && log_stride >= 4 && log_stride <= 9)},
	                     {cmd.rq_log_size, cmd.rq_log_size <= (log_stride ? kMaxLogRq : 0)}});
}

bool is_kernel_only(uint8_t type)
{
	return type == TERN_QPT_GSI || type == TERN_QPT_ETH;
}

} // namespace

bool engine_supports(const Card &card, uint8_t type)
{
	return card.config.engine == 0 || (!is_kernel_only(type) && type != TERN_QPT_RAW);
}

namespace {

/* Whether a QP of @type has a send queue of its own, which an XRC target has not. */
bool has_queues(uint8_t type)
{
	switch (type) {
	case TERN_QPT_GSI:
	case TERN_QPT_RC:
	case TERN_QPT_UC:
	case TERN_QPT_UD:
	case TERN_QPT_ETH:
	case TERN_QPT_XRC_INI:
	case TERN_QPT_RAW:
		return true;
	default:
		return false;
	}
}

/* Whether the engine already has the maximum number of QPs of that type. */
bool at_limit(const Card &card, uint8_t type)
{
	return (type == TERN_QPT_GSI && card.qps.find(kGsiQpn)) ||
	       (type == TERN_QPT_ETH && card.port.ethernet.full());
}

CommandStatus check_values(const Card &card, const tern_hw_create_qp &cmd)
{
	const uint32_t page = cmd.db_page.get();
	const auto valid = check_fields(
	        {{cmd.type, has_queues(cmd.type) && engine_supports(card, cmd.type)},
	         {cmd.record, cmd.record.get() % kRecordAlign == 0},
	         {cmd.recv_cqn, cmd.type != TERN_QPT_XRC_INI || !cmd.recv_cqn.get()},
	         {cmd.db_page, page_valid(card, page) &&
	                               (!is_kernel_only(cmd.type) || page == TERN_DB_PAGE_KERNEL)},
	         {cmd.sq_log_size, cmd.sq_log_size <= kMaxLogSq},
	         {cmd.flags, !(cmd.flags & ~flags_of_type(cmd.type))},
	         {cmd.rsvd, all_zero(cmd.rsvd)},
	         {cmd.srqn, (cmd.flags & TERN_QP_SRQ) || !cmd.srqn.get()},
	         {cmd.xrcdn, !cmd.xrcdn.get()}});
	if (valid != TERN_AQ_OK)
		return valid;
	const uint32_t offset = cmd.rq_offset.get();
	if (offset % TERN_SQ_BLOCK || offset < uint64_t{TERN_SQ_BLOCK} << cmd.sq_log_size)
		return bad_field(cmd.rq_offset);
	return check_recv_queue(cmd);
}

CommandStatus check_objects(const Card &card, const tern_hw_create_qp &cmd)
{
	const bool receives = cmd.type != TERN_QPT_XRC_INI;
	if (!card.pds.find(cmd.pdn.get()) || !card.cqs.find(cmd.send_cqn.get()) ||
	    (receives && !card.cqs.find(cmd.recv_cqn.get())))
		return TERN_AQ_BAD_OBJECT;
	if (!(cmd.flags & TERN_QP_SRQ))
		return TERN_AQ_OK;
	const SharedRecvQueue *srq = card.srqs.find(cmd.srqn.get());
	if (!srq)
		return TERN_AQ_BAD_OBJECT;
	/* An XRC SRQ is named by packets, not by a QP. */
	if (srq->config().xrcdn || (srq->tags() && cmd.type != TERN_QPT_RC))
		return bad_field(cmd.srqn);
	return TERN_AQ_OK;
}

} // namespace

void count_users(Card &card, const QpConfig &config, int n)
{
	add_users(card.pds.find(config.pdn), n);
	add_users(card.cqs.find(config.send_cqn), n);
	add_users(card.cqs.find(config.recv_cqn), n);
	add_users(card.srqs.find(config.srqn), n);
	add_users(card.xrcds.find(config.xrcdn), n);
	add_users(card.wq_tables.find(config.wq_table), n);
}

namespace {

std::unique_ptr<Qp> make_qp(Card &card, const QpConfig &config, SendQueue sq, RecvQueue rq)
{
	switch (config.type) {
	case TERN_QPT_RC:
	case TERN_QPT_XRC_INI:
	case TERN_QPT_XRC_TGT:
		return std::make_unique<RcQp>(card, config, std::move(sq), std::move(rq));
	case TERN_QPT_UC:
		return std::make_unique<UcQp>(card, config, std::move(sq), std::move(rq));
	case TERN_QPT_UD:
	case TERN_QPT_GSI:
		return std::make_unique<UdQp>(card, config, std::move(sq), std::move(rq));
	default: /* ETH, RAW */
		return std::make_unique<EthQp>(card, card.port, config, std::move(sq),
		                               std::move(rq));
	}
}

CommandStatus insert(Card &card, std::unique_ptr<Qp> qp, tern_hw_created &result)
{
	/* An XRC target has no PD. */
	const QpConfig &config = qp->config();
	const uint32_t owner = config.type == TERN_QPT_XRC_TGT ? card.xrcds.owner(config.xrcdn)
	                                                       : card.pds.owner(config.pdn);
	if (config.type != TERN_QPT_GSI)
		return created(card.qps, std::move(qp), owner, result);
	card.qps.insert_at(kGsiQpn, std::move(qp));
	result.id = kGsiQpn;
	return TERN_AQ_OK;
}

} // namespace

CommandStatus add_qp(Card &card, std::unique_ptr<Qp> qp, tern_hw_created &result)
{
	if (at_limit(card, qp->config().type))
		return TERN_AQ_BUSY;
	const auto status = insert(card, std::move(qp), result);
	if (status != TERN_AQ_OK)
		return status;
	Qp *object = card.qps.find(result.id.get());
	object->begin(result.id.get());
	if (object->config().type == TERN_QPT_ETH)
		card.port.ethernet.add(static_cast<EthQp &>(*object));
	count_users(card, object->config(), 1);
	return TERN_AQ_OK;
}

namespace {

/* An XRC target has no queues; its buffers come from SRQs. */
CommandStatus create_xrc_target(Card &card, const tern_hw_create_qp &cmd, tern_hw_created &result)
{
	tern_hw_create_qp rest = cmd;
	rest.type = 0;
	rest.xrcdn = 0u;
	const auto valid = check_zero(cmd, rest);
	if (valid != TERN_AQ_OK)
		return valid;
	if (!card.xrcds.find(cmd.xrcdn.get()))
		return TERN_AQ_BAD_OBJECT;
	const QpConfig config{
	        .type = TERN_QPT_XRC_TGT, .db_page = Qp::kNoPage, .xrcdn = cmd.xrcdn.get()};
	return add_qp(card, make_qp(card, config, {}, {}), result);
}

} // namespace

CommandStatus create_qp(Card &card, const tern_hw_create_qp &cmd, tern_hw_created &result)
{
	if (cmd.type == TERN_QPT_XRC_TGT)
		return create_xrc_target(card, cmd, result);
	auto valid = check_values(card, cmd);
	if (valid == TERN_AQ_OK)
		valid = check_objects(card, cmd);
	if (valid != TERN_AQ_OK)
		return valid;
	const uint64_t rq_size =
	        cmd.rq_log_stride ? uint64_t{1} << (cmd.rq_log_size + cmd.rq_log_stride) : 0;
	const auto pages = PageList::make(cmd.pages, 0, cmd.rq_offset.get() + rq_size);
	if (!pages)
		return bad_field(cmd.pages);

	const QpConfig config{.type = static_cast<tern_hw_qp_type>(cmd.type),
	                      .pdn = cmd.pdn.get(),
	                      .send_cqn = cmd.send_cqn.get(),
	                      .recv_cqn = cmd.recv_cqn.get(),
	                      .db_page = cmd.db_page.get(),
	                      .srqn = cmd.srqn.get(),
	                      .signal_all = (cmd.flags & TERN_QP_SIGNAL_ALL) != 0,
	                      .no_mc_loopback = (cmd.flags & TERN_QP_NO_MC_LOOPBACK) != 0};
	SendQueue sq(*pages, cmd.sq_log_size, cmd.record.get(), config.type);
	RecvQueue rq;
	if (rq_size)
		rq = RecvQueue(*pages, cmd.rq_offset.get(), cmd.rq_log_size, cmd.rq_log_stride,
		               cmd.record.get());
	return add_qp(card, make_qp(card, config, std::move(sq), std::move(rq)), result);
}

std::optional<CommandStatus> modify_qp(Card &card, const tern_hw_modify_qp &cmd, Slice &slice)
{
	Qp *qp = card.qps.find(cmd.qpn.get());
	if (!qp)
		return TERN_AQ_BAD_OBJECT;
	auto valid = check_fields({{cmd.attr.rsvd, !cmd.attr.rsvd},
	                           {cmd.attr.rate_limit.rsvd, all_zero(cmd.attr.rate_limit.rsvd)}});
	if (valid == TERN_AQ_OK)
		valid = qp->check(cmd);
	if (valid != TERN_AQ_OK)
		return valid;
	const Stats::Scope scope(card.stats, qp->stats_set());
	/* They must not be executed if the QP returns to RTS. */
	if (qp->state() == TERN_QPS_SQE && !qp->flush_failed_sends(slice.budget))
		return std::nullopt;
	qp->modify(cmd);
	if (qp->state() == TERN_QPS_RESET &&
	    !card.memory.release_windows(cmd.qpn.get(), slice.budget))
		return std::nullopt;
	return TERN_AQ_OK;
}

CommandStatus query_qp(Card &card, uint32_t qpn, tern_hw_qp_attr &attr)
{
	const Qp *qp = card.qps.find(qpn);
	if (!qp)
		return TERN_AQ_BAD_OBJECT;
	qp->query(attr);
	return TERN_AQ_OK;
}

CommandStatus query_fault(Card &card, uint32_t qpn, tern_hw_faults &faults)
{
	Qp *qp = card.qps.find(qpn);
	if (!qp)
		return TERN_AQ_BAD_OBJECT;
	qp->query_faults(faults);
	return TERN_AQ_OK;
}

CommandStatus resume_qp(Card &card, const tern_hw_resume_qp &cmd)
{
	const auto valid = check_fields({{cmd.requester, cmd.requester <= TERN_RESUME_FAIL},
	                                 {cmd.responder, cmd.responder <= TERN_RESUME_FAIL},
	                                 {cmd.rsvd, all_zero(cmd.rsvd)}});
	if (valid != TERN_AQ_OK)
		return valid;
	Qp *qp = card.qps.find(cmd.qpn.get());
	if (!qp)
		return TERN_AQ_BAD_OBJECT;
	qp->resume(static_cast<tern_hw_resume>(cmd.requester),
	           static_cast<tern_hw_resume>(cmd.responder));
	return TERN_AQ_OK;
}

CommandStatus bind_stats(Card &card, const tern_hw_bind_stats &cmd)
{
	Qp *qp = card.qps.find(cmd.qpn.get());
	StatsSet *set = card.stats_sets.find(cmd.set.get());
	if (!qp || (cmd.set.get() && !set))
		return TERN_AQ_BAD_OBJECT;
	add_users(set, 1);
	add_users(qp->stats_set(), -1);
	qp->bind(set);
	return TERN_AQ_OK;
}

std::optional<CommandStatus> destroy_qp(Card &card, uint32_t qpn, Slice &slice)
{
	Qp *qp = card.qps.find(qpn);
	if (!qp)
		return TERN_AQ_BAD_OBJECT;
	const FrameSink *sink = qp->frame_sink();
	if (sink && sink->flows)
		return TERN_AQ_BUSY;
	const Stats::Scope scope(card.stats, qp->stats_set());
	/* Programs post datagrams and exit at once; send those before the QP is destroyed. A parked
	 * QP tries again, because there may be room by now. */
	card.scheduler.activate(*qp);
	if (slice.spent < kDestroyBudget &&
	    (!slice.budget || (qp->transmit(slice.budget) && !slice.budget)))
		return std::nullopt;
	if (qp->state() != TERN_QPS_RESET)
		qp->reset();
	if (!card.memory.release_windows(qpn, slice.budget) ||
	    !card.groups.forget(qpn, slice.budget))
		return std::nullopt;
	count_users(card, qp->config(), -1);
	add_users(qp->stats_set(), -1);
	qp->detach_counters();
	card.scheduler.remove(*qp);
	card.timers.drop(qp->timer_owner(), qp->timer);
	card.drop_events(kQpEvents, qpn);
	qp->forget_tables();
	card.qps.remove(qpn);
	return TERN_AQ_OK;
}

} // namespace tern
