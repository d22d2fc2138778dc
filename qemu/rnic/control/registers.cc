// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/control/registers.h"

#include "qemu/rnic/card.h"

namespace tern {

using namespace hw;

namespace {

constexpr uint32_t kCaps =
        TERN_CAP_RC | TERN_CAP_ATOMIC | TERN_CAP_ROCE_V1 | TERN_CAP_ROCE_V2 | TERN_CAP_ETH |
        TERN_CAP_SHADOW_DB | TERN_CAP_UC | TERN_CAP_UD | TERN_CAP_MULTICAST | TERN_CAP_SRQ |
        TERN_CAP_XRC | TERN_CAP_RAW | TERN_CAP_MW | TERN_CAP_FAST_REG | TERN_CAP_MODIFY_MR |
        TERN_CAP_CLOCK | TERN_CAP_MODIFY_CQ | TERN_CAP_ATOMIC_WRITE | TERN_CAP_RSS | TERN_CAP_ODP |
        TERN_CAP_TAG_MATCHING | TERN_CAP_PACING | TERN_CAP_FLOW_COUNTERS | TERN_CAP_ETH_OFFLOAD |
        TERN_CAP_ETH_QUEUES | TERN_CAP_FLUSH | TERN_CAP_CONGESTION | TERN_CAP_QP_STATS |
        TERN_CAP_MASKED_ATOMIC | TERN_CAP_NULL_KEY | TERN_CAP_COMP_COUNTERS;

/* Operations that a doorbell executes itself, so that they apply to the next message. */
constexpr unsigned kTagOpsAtOnce = 4;

uint32_t caps(const Card &card)
{
	return kCaps | (card.config.device_memory.empty() ? 0 : TERN_CAP_DM);
}

uint32_t status(const Card &card)
{
	const bool stopped = card.fatal != TERN_FATAL_NONE;
	return (card.enabled && !stopped ? TERN_STATUS_READY : 0) |
	       (stopped ? TERN_STATUS_FATAL : 0) |
	       (static_cast<uint32_t>(card.fatal) << TERN_STATUS_REASON_SHIFT);
}

uint32_t low(uint64_t value)
{
	return static_cast<uint32_t>(value);
}

void set_low(uint64_t &to, uint32_t value)
{
	to = (to & 0xffffffff00000000) | value;
}

void set_high(uint64_t &to, uint32_t value)
{
	to = (to & 0xffffffff) | (uint64_t{value} << 32);
}

RegisterWrite write_ctrl(Card &card, uint32_t value)
{
	const bool enable = value & TERN_CTRL_ENABLE;
	if ((value & TERN_CTRL_RESET) || (card.enabled && !enable))
		return RegisterWrite::Reset;
	card.regs.ctrl = value & (TERN_CTRL_ENABLE | TERN_CTRL_AQ_IRQ);
	card.admin.raise_interrupts = value & TERN_CTRL_AQ_IRQ;
	if (enable && !card.enabled) {
		card.enabled = true;
		card.last_fatal = TERN_FATAL_NONE;
		if (!card.admin.enable(card.regs.aq_base, card.regs.acq_base,
		                       card.regs.aq_log_size))
			card.stop(TERN_FATAL_AQ_CONFIG);
	}
	return RegisterWrite::Done;
}

void ring_cq(Card &card, uint32_t page, uint32_t cqn, bool solicited, uint32_t ci)
{
	CompletionQueue *cq = card.cqs.find(cqn);
	if (!cq || cq->db_page() != page) {
		card.drop(TERN_STAT_DB_DROPPED, 0);
		return;
	}
	card.notify(cqn, *cq, cq->arm(ci, solicited));
}

void ring_eq(Card &card, uint32_t page, uint32_t eqn, uint32_t ci)
{
	EventQueue *eq = card.eqs.find(eqn);
	if (!eq || page != TERN_DB_PAGE_KERNEL || !eq->possible(ci)) {
		card.drop(TERN_STAT_DB_DROPPED, 0);
		return;
	}
	auto host = card.event_host();
	if (!eq->arm(host, ci))
		card.stop(TERN_FATAL_EQ_DMA);
}

void ring_tag_ops(Card &card, uint32_t page, uint32_t srqn, uint32_t pi)
{
	SharedRecvQueue *srq = card.srqs.find(srqn);
	if (!srq || !srq->tags() || srq->tags()->config().db_page != page) {
		card.drop(TERN_STAT_DB_DROPPED, 0);
		return;
	}
	if (!srq->tags()->ring(pi))
		card.fail_srq(srqn);
	TagWork &work = card.tag_work.at(srqn);
	unsigned budget = kTagOpsAtOnce;
	if (work.work(budget))
		card.chores.add(work);
}

} // namespace

uint32_t read_register(const Card &card, uint32_t offset)
{
	const auto &mac = card.config.mac;
	switch (offset) {
	case TERN_REG_VERSION:
		return (TERN_HW_MAJOR << 16) | TERN_HW_MINOR;
	case TERN_REG_STATUS:
		return status(card);
	case TERN_REG_CAPS:
		return caps(card);
	case TERN_REG_CTRL:
		return card.regs.ctrl;
	case TERN_REG_LINK:
		return card.link_up ? TERN_LINK_UP : 0;
	case TERN_REG_LINK_SPEED:
		return card.config.link_speed_mbps;
	case TERN_REG_MAC_LO:
		return mac[0] | (mac[1] << 8) | (mac[2] << 16) | (uint32_t{mac[3]} << 24);
	case TERN_REG_MAC_HI:
		return mac[4] | (mac[5] << 8);
	case TERN_REG_DB_PAGES:
		return card.config.doorbell_pages;
	case TERN_REG_VECTORS:
		return card.config.vectors;
	case TERN_REG_AQ_LOG_SIZE:
		return card.regs.aq_log_size;
	case TERN_REG_AQ_BASE_LO:
		return low(card.regs.aq_base);
	case TERN_REG_AQ_BASE_HI:
		return low(card.regs.aq_base >> 32);
	case TERN_REG_ACQ_BASE_LO:
		return low(card.regs.acq_base);
	case TERN_REG_ACQ_BASE_HI:
		return low(card.regs.acq_base >> 32);
	case TERN_REG_DM_SIZE:
		return static_cast<uint32_t>(card.config.device_memory.size());
	case TERN_REG_ENGINES:
		return card.config.engines;
	default:
		return 0;
	}
}

RegisterWrite write_register(Card &card, uint32_t offset, uint32_t value)
{
	switch (offset) {
	case TERN_REG_CTRL:
		return write_ctrl(card, value);
	case TERN_REG_AQ_LOG_SIZE:
		card.regs.aq_log_size = value;
		break;
	case TERN_REG_AQ_BASE_LO:
		set_low(card.regs.aq_base, value);
		break;
	case TERN_REG_AQ_BASE_HI:
		set_high(card.regs.aq_base, value);
		break;
	case TERN_REG_ACQ_BASE_LO:
		set_low(card.regs.acq_base, value);
		break;
	case TERN_REG_ACQ_BASE_HI:
		set_high(card.regs.acq_base, value);
		break;
	case TERN_REG_AQ_PI:
		if (card.enabled)
			card.admin.ring(value);
		break;
	default:
		break;
	}
	return RegisterWrite::Done;
}

void doorbell(Card &card, uint32_t page, uint32_t offset, uint64_t value)
{
	const uint32_t number = value & TERN_DB_NUM_MASK;
	const auto index = static_cast<uint32_t>(value >> TERN_DB_INDEX_SHIFT);
	switch (offset) {
	case TERN_DB_SQ: {
		Qp *qp = card.qps.find(number);
		if (qp && qp->config().db_page == page)
			qp->ring(index);
		else
			card.drop(TERN_STAT_DB_DROPPED, number);
		break;
	}
	case TERN_DB_CQ_ARM:
		ring_cq(card, page, number, value & TERN_DB_CQ_SOLICITED, index);
		break;
	case TERN_DB_EQ_ARM:
		ring_eq(card, page, number, index);
		break;
	case TERN_DB_TAG_OPS:
		ring_tag_ops(card, page, number, index);
		break;
	default:
		card.drop(TERN_STAT_DB_DROPPED, 0);
		break;
	}
}

} // namespace tern
