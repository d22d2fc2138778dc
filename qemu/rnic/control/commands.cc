// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/control/commands.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "qemu/rnic/card.h"
#include "qemu/rnic/control/command_fields.h"
#include "qemu/rnic/control/completion_counter_commands.h"
#include "qemu/rnic/control/congestion_commands.h"
#include "qemu/rnic/control/cq_commands.h"
#include "qemu/rnic/control/flow_commands.h"
#include "qemu/rnic/control/mcast_commands.h"
#include "qemu/rnic/control/memory_commands.h"
#include "qemu/rnic/control/qp_commands.h"
#include "qemu/rnic/control/rss_commands.h"
#include "qemu/rnic/control/srq_commands.h"
#include "qemu/rnic/limits.h"

namespace tern {

using namespace hw;

namespace {

constexpr uint16_t kMinMtu = 68;
constexpr uint16_t kMaxMtu = 9000;

/* ---- QUERY ---- */

CommandStatus query_device(Card &, tern_hw_device_attr &attr)
{
	attr.fw_version = (uint32_t{TERN_HW_MAJOR} << 16) | TERN_HW_MINOR;
	attr.max_qp = kMaxQps;
	attr.max_cq = kMaxCqs;
	attr.max_mr = kMaxRegions;
	attr.max_pd = kMaxPds;
	attr.max_gids = kMaxGids;
	attr.max_mr_size = kMaxRegionSize;
	attr.page_size_cap =
	        ((1ull << (TERN_MAX_PAGE_SHIFT + 1)) - 1) & ~((1ull << TERN_MIN_PAGE_SHIFT) - 1);
	attr.max_sq_log_size = kMaxLogSq;
	attr.max_rq_log_size = kMaxLogRq;
	attr.max_cq_log_size = kMaxLogCq;
	attr.max_rd_atomic = kMaxRdAtomic;
	attr.local_ca_ack_delay = kAckDelay;
	attr.max_mtu = kMaxMtu;
	attr.max_send_sge = TERN_MAX_SEND_SGE;
	attr.max_recv_sge = TERN_MAX_RECV_SGE;
	attr.max_inline = TERN_MAX_INLINE;
	attr.max_srq = kMaxSrqs;
	attr.max_xrcd = kMaxXrcds;
	attr.max_mcast_groups = MulticastGroups::kMaxGroups;
	attr.max_mcast_qps = MulticastGroups::kMaxQps;
	attr.max_flows = kMaxFlows;
	attr.max_srq_log_size = kMaxLogSrq;
	attr.max_log_tags = kMaxLogTags;
	attr.max_log_tag_ops = kMaxLogTagOps;
	attr.max_wq = kMaxWqs;
	attr.max_wq_tables = kMaxWqTables;
	attr.max_counters = kMaxFlowCounters;
	attr.max_stats_sets = kMaxStatsSets;
	attr.max_comp_counters = kMaxCompletionCounters;
	return TERN_AQ_OK;
}

const Counters *find_counters(const Card &card, uint32_t set)
{
	if (set == TERN_STATS_ALL)
		return &card.stats.all();
	if (set == TERN_STATS_UNBOUND)
		return &card.stats.unbound();
	const StatsSet *object = card.stats_sets.find(set);
	return object ? &object->counters : nullptr;
}

CommandStatus query_stats(Card &card, const tern_hw_query_stats &cmd)
{
	const uint32_t count = cmd.count.get();
	if (count > TERN_STAT_COUNT)
		return bad_field(cmd.count);
	const Counters *counters = find_counters(card, cmd.set.get());
	if (!counters)
		return TERN_AQ_BAD_OBJECT;
	std::array<__le64, TERN_STAT_COUNT> values;
	for (uint32_t i = 0; i < count; i++)
		values[i] = (*counters)[static_cast<tern_hw_stat>(i)];
	return card.memory.host().write(cmd.iova.get(),
	                                std::as_bytes(std::span(values).first(count)))
	               ? TERN_AQ_OK
	               : TERN_AQ_DMA_FAULT;
}

/* ---- CREATE ---- */

CommandStatus create_eq(Card &card, const tern_hw_create_eq &cmd, tern_hw_created &result)
{
	const auto valid =
	        check_fields({{cmd.vector, cmd.vector.get() < card.config.vectors},
	                      {cmd.log_size, cmd.log_size >= 1 && cmd.log_size <= kMaxLogEq},
	                      {cmd.rsvd, all_zero(cmd.rsvd)}});
	if (valid != TERN_AQ_OK)
		return valid;
	if (card.eq_of_vector(cmd.vector.get()))
		return TERN_AQ_BUSY;
	const auto pages = PageList::make(cmd.pages, 0, sizeof(tern_hw_eqe) << cmd.log_size);
	if (!pages)
		return bad_field(cmd.pages);
	const auto status = created(
	        card.eqs, std::make_unique<EventQueue>(*pages, cmd.log_size, cmd.vector.get()),
	        TERN_DB_PAGE_KERNEL, result);
	if (status == TERN_AQ_OK && !cmd.vector.get())
		card.raise_pending_events();
	return status;
}

/* Creates an object of the process to which doorbell page @page belongs. */
template <typename T>
CommandStatus create_owned(Card &card, ObjectTable<T> &table, const tern_hw_object &page,
                           tern_hw_created &result)
{
	if (!page_valid(card, page.id.get()))
		return bad_field(page.id);
	return created(table, std::make_unique<T>(), page.id.get(), result);
}

/* ---- DESTROY ---- */

CommandStatus destroy_eq(Card &card, uint32_t eqn)
{
	const EventQueue *eq = card.eqs.find(eqn);
	const PageList pages = eq ? eq->pages() : PageList();
	/* No COMP is among them: its CQ would use the EQ. */
	const PendingEvents waiting = eq ? eq->waiting() : PendingEvents();
	const auto status = destroy_unused(card.eqs, eqn);
	if (status != TERN_AQ_OK)
		return status;
	for (const auto &[type, id] : waiting)
		card.raise_event(type, id);
	pages.forget(card.memory.tables());
	return status;
}

/* ---- SET ---- */

CommandStatus set_gid(Card &card, const tern_hw_set_gid &cmd)
{
	const uint16_t vlan = cmd.vlan.get();
	const auto valid = check_fields({{cmd.index, cmd.index.get() < card.gids.size()},
	                                 {cmd.type, cmd.type <= TERN_GID_ROCE_V2},
	                                 {cmd.rsvd0, !cmd.rsvd0},
	                                 {cmd.vlan, vlan == kNoVlan || vlan <= 4095},
	                                 {cmd.mac, !(cmd.mac[0] & 1)},
	                                 {cmd.rsvd1, all_zero(cmd.rsvd1)}});
	if (valid != TERN_AQ_OK)
		return valid;
	GidEntry entry;
	entry.type = static_cast<tern_hw_gid_type>(cmd.type);
	entry.vlan = vlan;
	std::ranges::copy(cmd.gid, entry.gid.bytes.begin());
	std::ranges::copy(cmd.mac, entry.mac.begin());
	card.gids.set(cmd.index.get(), entry);
	return TERN_AQ_OK;
}

CommandStatus set_eth(Card &card, const tern_hw_set_eth &cmd)
{
	const uint32_t mask = cmd.mask.get();
	const uint16_t mtu = cmd.mtu.get();
	if (mask & ~(TERN_ETH_MAC | TERN_ETH_MTU | TERN_ETH_RX_MODE))
		return bad_field(cmd.mask);
	if ((mask & TERN_ETH_MTU) && (mtu < kMinMtu || mtu > kMaxMtu))
		return bad_field(cmd.mtu);
	if ((mask & TERN_ETH_MAC) && (cmd.mac[0] & 1))
		return bad_field(cmd.mac);
	if ((mask & TERN_ETH_RX_MODE) &&
	    (cmd.rx_mode.get() & ~(TERN_ETH_PROMISC | TERN_ETH_ALLMULTI)))
		return bad_field(cmd.rx_mode);

	if (mask & TERN_ETH_MAC)
		std::ranges::copy(cmd.mac, card.out.mac.begin());
	if (mask & TERN_ETH_MTU)
		card.out.mtu = mtu;
	if (mask & TERN_ETH_RX_MODE)
		card.port.rx_mode = cmd.rx_mode.get();
	return TERN_AQ_OK;
}

/* Commands whose body is a struct tern_hw_object. */
bool names_object(uint16_t opcode)
{
	switch (opcode) {
	case TERN_AQ_DESTROY_EQ:
	case TERN_AQ_ALLOC_PD:
	case TERN_AQ_DEALLOC_PD:
	case TERN_AQ_DESTROY_MR:
	case TERN_AQ_SYNC_MR:
	case TERN_AQ_CREATE_FAST_MR:
	case TERN_AQ_DEALLOC_MW:
	case TERN_AQ_DESTROY_CQ:
	case TERN_AQ_QUERY_QP:
	case TERN_AQ_DESTROY_QP:
	case TERN_AQ_QUERY_FAULT:
	case TERN_AQ_QUERY_SRQ:
	case TERN_AQ_DESTROY_SRQ:
	case TERN_AQ_ALLOC_XRCD:
	case TERN_AQ_DEALLOC_XRCD:
	case TERN_AQ_DESTROY_FLOW:
	case TERN_AQ_DESTROY_WQ:
	case TERN_AQ_DESTROY_WQ_TABLE:
	case TERN_AQ_CREATE_COUNTERS:
	case TERN_AQ_DESTROY_COUNTERS:
	case TERN_AQ_READ_COUNTERS:
	case TERN_AQ_DESTROY_STATS:
	case TERN_AQ_DESTROY_COMP_COUNTER:
		return true;
	default:
		return false;
	}
}

} // namespace

bool may_lack_resources(uint16_t opcode)
{
	switch (opcode) {
	case TERN_AQ_CREATE_EQ:
	case TERN_AQ_ALLOC_PD:
	case TERN_AQ_CREATE_MR:
	case TERN_AQ_MODIFY_MR:
	case TERN_AQ_CREATE_FAST_MR:
	case TERN_AQ_ALLOC_MW:
	case TERN_AQ_CREATE_CQ:
	case TERN_AQ_RESIZE_CQ:
	case TERN_AQ_MODERATE_CQ:
	case TERN_AQ_CREATE_QP:
	case TERN_AQ_MODIFY_QP:
	case TERN_AQ_CREATE_SRQ:
	case TERN_AQ_RESIZE_SRQ:
	case TERN_AQ_SET_SRQ_LIMIT:
	case TERN_AQ_ALLOC_XRCD:
	case TERN_AQ_ATTACH_MCAST:
	case TERN_AQ_CREATE_FLOW:
	case TERN_AQ_CREATE_WQ:
	case TERN_AQ_MODIFY_WQ:
	case TERN_AQ_CREATE_WQ_TABLE:
	case TERN_AQ_CREATE_RSS_QP:
	case TERN_AQ_CREATE_COUNTERS:
	case TERN_AQ_SET_GID:
	case TERN_AQ_SET_ETH:
	case TERN_AQ_SET_ETH_RSS:
	case TERN_AQ_SET_CONGESTION:
	case TERN_AQ_CREATE_STATS:
	case TERN_AQ_BIND_STATS:
	case TERN_AQ_CREATE_COMP_COUNTER:
	case TERN_AQ_ATTACH_COMP_COUNTER:
		return true;
	default:
		return false;
	}
}

std::optional<CommandStatus> execute(Card &card, const tern_hw_aq_cmd &command,
                                     tern_hw_aq_cqe &completion, Slice &slice)
{
	if (command.rsvd.get())
		return bad_field(command.rsvd);
	if (names_object(command.opcode.get()) && command.object.rsvd.get())
		return bad_field(command.object.rsvd);
	const uint32_t id = command.object.id.get();

	switch (command.opcode.get()) {
	case TERN_AQ_QUERY_DEVICE:
		return query_device(card, completion.device);
	case TERN_AQ_QUERY_STATS:
		return query_stats(card, command.query_stats);
	case TERN_AQ_CREATE_EQ:
		return create_eq(card, command.create_eq, completion.created);
	case TERN_AQ_DESTROY_EQ:
		return destroy_eq(card, id);
	case TERN_AQ_ALLOC_PD:
		return create_owned(card, card.pds, command.object, completion.created);
	case TERN_AQ_DEALLOC_PD:
		return destroy_unused(card.pds, id);
	case TERN_AQ_CREATE_MR:
		return create_mr(card, command.create_mr, completion.created);
	case TERN_AQ_MODIFY_MR:
		return modify_mr(card, command.modify_mr);
	case TERN_AQ_DESTROY_MR:
		return destroy_mr(card, id);
	case TERN_AQ_SYNC_MR:
		return sync_mr(card, command.object);
	case TERN_AQ_CREATE_FAST_MR:
		return create_fast_mr(card, id, completion.created);
	case TERN_AQ_ALLOC_MW:
		return alloc_mw(card, command.alloc_mw, completion.created);
	case TERN_AQ_DEALLOC_MW:
		return dealloc_mw(card, id);
	case TERN_AQ_CREATE_CQ:
		return create_cq(card, command.create_cq, completion.created);
	case TERN_AQ_DESTROY_CQ:
		return destroy_cq(card, id);
	case TERN_AQ_RESIZE_CQ:
		return resize_cq(card, command.resize_cq, slice);
	case TERN_AQ_MODERATE_CQ:
		return moderate_cq(card, command.moderate_cq);
	case TERN_AQ_CREATE_QP:
		return create_qp(card, command.create_qp, completion.created);
	case TERN_AQ_MODIFY_QP:
		return modify_qp(card, command.modify_qp, slice);
	case TERN_AQ_QUERY_QP:
		return query_qp(card, id, completion.qp);
	case TERN_AQ_DESTROY_QP:
		return destroy_qp(card, id, slice);
	case TERN_AQ_QUERY_FAULT:
		return query_fault(card, id, completion.faults);
	case TERN_AQ_RESUME_QP:
		return resume_qp(card, command.resume_qp);
	case TERN_AQ_CREATE_SRQ:
		return create_srq(card, command.create_srq, completion.created);
	case TERN_AQ_RESIZE_SRQ:
		return resize_srq(card, command.resize_srq);
	case TERN_AQ_SET_SRQ_LIMIT:
		return set_srq_limit(card, command.set_srq_limit);
	case TERN_AQ_QUERY_SRQ:
		return query_srq(card, id, completion.srq);
	case TERN_AQ_DESTROY_SRQ:
		return destroy_srq(card, id, slice);
	case TERN_AQ_ALLOC_XRCD:
		return create_owned(card, card.xrcds, command.object, completion.created);
	case TERN_AQ_DEALLOC_XRCD:
		return destroy_unused(card.xrcds, id);
	case TERN_AQ_CREATE_WQ:
		return create_wq(card, command.create_wq, completion.created);
	case TERN_AQ_MODIFY_WQ:
		return modify_wq(card, command.modify_wq);
	case TERN_AQ_DESTROY_WQ:
		return destroy_wq(card, id);
	case TERN_AQ_CREATE_WQ_TABLE:
		return create_wq_table(card, command.create_wq_table, completion.created);
	case TERN_AQ_DESTROY_WQ_TABLE:
		return destroy_wq_table(card, id);
	case TERN_AQ_SET_ETH_RSS:
		return set_eth_rss(card, command.set_eth_rss);
	case TERN_AQ_CREATE_RSS_QP:
		return create_rss_qp(card, command.create_rss_qp, completion.created);
	case TERN_AQ_CREATE_FLOW:
		return create_flow(card, command.create_flow, completion.created);
	case TERN_AQ_DESTROY_FLOW:
		return destroy_flow(card, id);
	case TERN_AQ_CREATE_COUNTERS:
		return create_owned(card, card.flow_counters, command.object, completion.created);
	case TERN_AQ_READ_COUNTERS:
		return read_counters(card, id, completion.counters);
	case TERN_AQ_DESTROY_COUNTERS:
		return destroy_unused(card.flow_counters, id);
	case TERN_AQ_CREATE_STATS:
		return created(card.stats_sets, std::make_unique<StatsSet>(), TERN_DB_PAGE_KERNEL,
		               completion.created);
	case TERN_AQ_DESTROY_STATS:
		return destroy_unused(card.stats_sets, id);
	case TERN_AQ_BIND_STATS:
		return bind_stats(card, command.bind_stats);
	case TERN_AQ_CREATE_COMP_COUNTER:
		return create_completion_counter(card, command.create_comp_counter,
		                                 completion.created);
	case TERN_AQ_DESTROY_COMP_COUNTER:
		return destroy_unused(card.completion_counters, id);
	case TERN_AQ_MODIFY_COMP_COUNTER:
		return modify_completion_counter(card, command.modify_comp_counter);
	case TERN_AQ_ATTACH_COMP_COUNTER:
		return attach_completion_counter(card, command.attach_comp_counter);
	case TERN_AQ_ATTACH_MCAST:
		return attach_mcast(card, command.mcast);
	case TERN_AQ_DETACH_MCAST:
		return detach_mcast(card, command.mcast);
	case TERN_AQ_QUERY_CONGESTION:
		return query_congestion(card, completion.congestion);
	case TERN_AQ_SET_CONGESTION:
		return set_congestion(card, command.set_congestion);
	case TERN_AQ_SET_GID:
		return set_gid(card, command.set_gid);
	case TERN_AQ_SET_ETH:
		return set_eth(card, command.set_eth);
	default:
		return TERN_AQ_BAD_OPCODE;
	}
}

} // namespace tern
