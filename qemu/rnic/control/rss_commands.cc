// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/control/rss_commands.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "qemu/rnic/card.h"
#include "qemu/rnic/control/command_fields.h"
#include "qemu/rnic/control/qp_commands.h"
#include "qemu/rnic/limits.h"
#include "qemu/rnic/port/rss_qp.h"

namespace tern {

using namespace hw;

namespace {

constexpr uint32_t kAllFields = TERN_HASH_SRC_IPV4 | TERN_HASH_DST_IPV4 | TERN_HASH_SRC_IPV6 |
                                TERN_HASH_DST_IPV6 | TERN_HASH_SRC_PORT_TCP |
                                TERN_HASH_DST_PORT_TCP | TERN_HASH_SRC_PORT_UDP |
                                TERN_HASH_DST_PORT_UDP;

CommandStatus check_values(const tern_hw_create_wq &cmd)
{
	return check_fields({{cmd.record, cmd.record.get() % kRecordAlign == 0},
	                     {cmd.log_size, cmd.log_size <= kMaxLogRq},
	                     {cmd.log_stride, cmd.log_stride >= 4 && cmd.log_stride <= 9},
	                     {cmd.rsvd, all_zero(cmd.rsvd)}});
}

/* None if the memory is not accessible. */
std::optional<std::vector<__le32>> read_table(Card &card, Iova from, uint8_t log_size)
{
	std::vector<__le32> entries(size_t{1} << log_size);
	if (!card.dma.read(from, std::as_writable_bytes(std::span(entries))))
		return std::nullopt;
	return entries;
}

} // namespace

CommandStatus create_wq(Card &card, const tern_hw_create_wq &cmd, tern_hw_created &result)
{
	const auto valid = check_values(cmd);
	if (valid != TERN_AQ_OK)
		return valid;
	const auto pages =
	        PageList::make(cmd.pages, 0, uint64_t{1} << (cmd.log_size + cmd.log_stride));
	if (!pages)
		return bad_field(cmd.pages);
	if (!card.pds.find(cmd.pdn.get()) || !card.cqs.find(cmd.cqn.get()))
		return TERN_AQ_BAD_OBJECT;

	const QpConfig config{.type = TERN_QPT_RAW,
	                      .pdn = cmd.pdn.get(),
	                      .recv_cqn = cmd.cqn.get(),
	                      .db_page = Qp::kNoPage,
	                      .is_wq = true};
	auto wq = std::make_unique<ReceiveWq>(
	        card, card.port, config,
	        RecvQueue(*pages, 0, cmd.log_size, cmd.log_stride, cmd.record.get()));
	const auto status = created(card.wqs, std::move(wq), card.pds.owner(cmd.pdn.get()), result);
	if (status != TERN_AQ_OK)
		return status;
	card.wqs.find(result.id.get())->number = result.id.get();
	count_users(card, config, 1);
	return TERN_AQ_OK;
}

CommandStatus modify_wq(Card &card, const tern_hw_modify_wq &cmd)
{
	ReceiveWq *wq = card.wqs.find(cmd.wqn.get());
	if (!wq)
		return TERN_AQ_BAD_OBJECT;
	const auto valid = check_fields(
	        {{cmd.state, cmd.state <= TERN_WQS_ERR}, {cmd.rsvd, all_zero(cmd.rsvd)}});
	if (valid != TERN_AQ_OK)
		return valid;
	return wq->enter(static_cast<tern_hw_wq_state>(cmd.state));
}

CommandStatus destroy_wq(Card &card, uint32_t wqn)
{
	ReceiveWq *wq = card.wqs.find(wqn);
	if (!wq)
		return TERN_AQ_BAD_OBJECT;
	if (wq->users)
		return TERN_AQ_BUSY;
	count_users(card, wq->config(), -1);
	card.timers.drop(wq->timer_owner(), wq->timer);
	card.drop_events(kWqEvents, wqn);
	wq->forget_tables();
	card.wqs.remove(wqn);
	return TERN_AQ_OK;
}

CommandStatus create_wq_table(Card &card, const tern_hw_create_wq_table &cmd,
                              tern_hw_created &result)
{
	const auto valid = check_fields({{cmd.log_size, cmd.log_size <= TERN_MAX_LOG_WQ_TABLE},
	                                 {cmd.rsvd, all_zero(cmd.rsvd)}});
	if (valid != TERN_AQ_OK)
		return valid;
	const auto entries = read_table(card, cmd.iova.get(), cmd.log_size);
	if (!entries)
		return TERN_AQ_DMA_FAULT;
	auto table = std::make_unique<WqTable>();
	for (const auto &entry : *entries) {
		if (!card.wqs.find(entry.get()))
			return TERN_AQ_BAD_OBJECT;
		table->wqns.push_back(entry.get());
	}
	const auto &wqns = table->wqns;
	const auto status =
	        created(card.wq_tables, std::move(table), card.wqs.owner(wqns.front()), result);
	if (status == TERN_AQ_OK)
		for (const uint32_t wqn : wqns)
			card.wqs.find(wqn)->users++;
	return status;
}

CommandStatus destroy_wq_table(Card &card, uint32_t number)
{
	const WqTable *table = card.wq_tables.find(number);
	if (!table)
		return TERN_AQ_BAD_OBJECT;
	if (table->users)
		return TERN_AQ_BUSY;
	for (const uint32_t wqn : table->wqns)
		card.wqs.find(wqn)->users--;
	card.wq_tables.remove(number);
	return TERN_AQ_OK;
}

CommandStatus create_rss_qp(Card &card, const tern_hw_create_rss_qp &cmd, tern_hw_created &result)
{
	const auto valid =
	        check_fields({{cmd.table, engine_supports(card, TERN_QPT_RAW)},
	                      {cmd.hash_fields, !(cmd.hash_fields.get() & ~kAllFields)}});
	if (valid != TERN_AQ_OK)
		return valid;
	const WqTable *table = card.wq_tables.find(cmd.table.get());
	if (!card.pds.find(cmd.pdn.get()) || !table)
		return TERN_AQ_BAD_OBJECT;
	const QpConfig config{.type = TERN_QPT_RAW,
	                      .pdn = cmd.pdn.get(),
	                      .db_page = Qp::kNoPage,
	                      .wq_table = cmd.table.get()};
	RssQp::Spread spread{.fields = cmd.hash_fields.get()};
	std::ranges::copy(cmd.key, spread.key.begin());
	return add_qp(card, std::make_unique<RssQp>(card, card.wqs, *table, config, spread),
	              result);
}

CommandStatus set_eth_rss(Card &card, const tern_hw_set_eth_rss &cmd)
{
	const auto valid = check_fields({{cmd.hash_fields, !(cmd.hash_fields.get() & ~kAllFields)},
	                                 {cmd.log_size, cmd.log_size <= TERN_MAX_LOG_WQ_TABLE},
	                                 {cmd.rsvd, all_zero(cmd.rsvd)}});
	if (valid != TERN_AQ_OK)
		return valid;
	const auto entries = read_table(card, cmd.iova.get(), cmd.log_size);
	if (!entries)
		return TERN_AQ_DMA_FAULT;
	EthFunction::Spread spread{.table = {}, .fields = cmd.hash_fields.get()};
	std::ranges::copy(cmd.key, spread.key.begin());
	for (const auto &entry : *entries) {
		Qp *qp = card.qps.find(entry.get());
		if (!qp || qp->config().type != TERN_QPT_ETH)
			return TERN_AQ_BAD_OBJECT;
		spread.table.push_back(static_cast<EthQp *>(qp));
	}
	card.port.ethernet.set_spread(std::move(spread));
	return TERN_AQ_OK;
}

} // namespace tern
