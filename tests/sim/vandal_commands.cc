// SPDX-License-Identifier: GPL-2.0-or-later
/* The admin commands of a vandal. */
#include <algorithm>

#include "qemu/rnic/network/multicast.h"
#include "tests/sim/vandal.h"

namespace tern::sim {

using namespace hw;

tern_hw_pages Vandal::pages()
{
	tern_hw_pages p{};
	p.iova = rng_.chance(1, 8) ? rng_.next() : somewhere();
	if (rng_.chance(1, 3)) {
		p.levels = static_cast<uint8_t>(rng_.below(6));
		p.page_shift = static_cast<uint8_t>(rng_.between(10, 31));
	}
	return p;
}

void Vandal::command()
{
	/* Any command of the interface, and at times an unknown opcode. */
	auto c = test::make_command(TERN_AQ_QUERY_DEVICE);
	c.opcode = static_cast<uint16_t>(
	        rng_.chance(1, 50)  ? rng_.below(1 << 16)
	        : rng_.chance(1, 8) ? rng_.between(1, 2)
	                            : rng_.between(TERN_AQ_CREATE_EQ, TERN_AQ_ATTACH_COMP_COUNTER));
	if (rng_.chance(1, 8))
		rng_.fill(std::as_writable_bytes(std::span(c.body)));
	else if (!fill_memory(c) && !fill_queue(c) && !fill_srq(c) && !fill_ethernet(c) &&
	         !fill_other(c))
		c.object.id = rng_.chance(1, 4) ? qpn() : number();
	submit(c);
}

bool Vandal::fill_memory(tern_hw_aq_cmd &c)
{
	switch (c.opcode.get()) {
	case TERN_AQ_CREATE_MR:
		c.create_mr.start = rng_.chance(1, 2) ? rng_.next() : 0;
		c.create_mr.length = rng_.below(1 << 20);
		c.create_mr.pages = pages();
		c.create_mr.pdn = number();
		c.create_mr.access = static_cast<uint8_t>(rng_.below(128));
		c.create_mr.flags = static_cast<uint8_t>(rng_.chance(1, 4) ? rng_.below(4) : 0);
		return true;
	case TERN_AQ_MODIFY_MR:
		c.modify_mr.key = key();
		c.modify_mr.mask = static_cast<uint8_t>(rng_.between(1, 7));
		if (c.modify_mr.mask & TERN_MODIFY_MR_PD)
			c.modify_mr.to.pdn = number();
		if (c.modify_mr.mask & TERN_MODIFY_MR_ACCESS)
			c.modify_mr.to.access = static_cast<uint8_t>(rng_.below(128));
		if (c.modify_mr.mask & TERN_MODIFY_MR_TRANSLATION) {
			c.modify_mr.to.start = rng_.chance(1, 2) ? rng_.next() : 0;
			c.modify_mr.to.length = rng_.below(1 << 20);
			c.modify_mr.to.pages = pages();
		}
		return true;
	case TERN_AQ_ALLOC_MW:
		c.alloc_mw.pdn = number();
		c.alloc_mw.type = static_cast<uint8_t>(rng_.below(3));
		return true;
	case TERN_AQ_DEALLOC_MW:
	case TERN_AQ_DESTROY_MR:
	case TERN_AQ_SYNC_MR:
		c.object.id = key();
		return true;
	default:
		return false;
	}
}

bool Vandal::fill_queue(tern_hw_aq_cmd &c)
{
	switch (c.opcode.get()) {
	case TERN_AQ_CREATE_EQ:
		c.create_eq.pages = pages();
		c.create_eq.vector = number();
		c.create_eq.log_size = static_cast<uint8_t>(rng_.below(9));
		return true;
	case TERN_AQ_CREATE_CQ:
		c.create_cq.pages = pages();
		c.create_cq.record = somewhere();
		c.create_cq.eqn = number();
		c.create_cq.log_size = static_cast<uint8_t>(rng_.below(8));
		return true;
	case TERN_AQ_RESIZE_CQ:
		c.resize_cq.pages = pages();
		/* Mostly the old place of the record, since the host goes on to use that. */
		c.resize_cq.record = rng_.chance(3, 4) ? cq_->record : somewhere();
		c.resize_cq.cqn = rng_.chance(1, 2) ? cq_->number : number();
		c.resize_cq.log_size = static_cast<uint8_t>(rng_.below(9));
		return true;
	case TERN_AQ_MODERATE_CQ:
		c.moderate_cq.cqn = rng_.chance(1, 2) ? cq_->number : number();
		c.moderate_cq.count = static_cast<uint16_t>(rng_.below(4));
		c.moderate_cq.period = static_cast<uint16_t>(rng_.below(8));
		return true;
	case TERN_AQ_CREATE_QP:
		c.create_qp.pages = pages();
		c.create_qp.record = somewhere();
		c.create_qp.sq_log_size = static_cast<uint8_t>(rng_.below(8));
		c.create_qp.rq_offset = 64u << 7;
		c.create_qp.rq_log_size = static_cast<uint8_t>(rng_.below(6));
		c.create_qp.rq_log_stride = static_cast<uint8_t>(rng_.between(4, 9));
		c.create_qp.pdn = number();
		c.create_qp.send_cqn = number();
		c.create_qp.recv_cqn = number();
		c.create_qp.type = static_cast<uint8_t>(rng_.below(13));
		c.create_qp.flags = static_cast<uint8_t>(rng_.below(8));
		if (c.create_qp.flags & TERN_QP_SRQ) {
			c.create_qp.srqn = number();
			c.create_qp.rq_log_size = c.create_qp.rq_log_stride = 0;
		}
		return true;
	case TERN_AQ_RESUME_QP:
		c.resume_qp.qpn = qpn();
		c.resume_qp.requester = static_cast<uint8_t>(rng_.below(4));
		c.resume_qp.responder = static_cast<uint8_t>(rng_.below(4));
		return true;
	case TERN_AQ_QUERY_QP:
	case TERN_AQ_DESTROY_QP:
	case TERN_AQ_QUERY_FAULT:
		c.object.id = qpn();
		return true;
	default:
		return false;
	}
}

bool Vandal::fill_srq(tern_hw_aq_cmd &c)
{
	switch (c.opcode.get()) {
	case TERN_AQ_CREATE_SRQ:
		c.create_srq.pages = pages();
		c.create_srq.record = somewhere();
		c.create_srq.ring_offset = 1u << 12;
		c.create_srq.pdn = number();
		c.create_srq.xrcdn = number();
		c.create_srq.cqn = number();
		c.create_srq.log_size = static_cast<uint8_t>(rng_.below(5));
		c.create_srq.log_stride = static_cast<uint8_t>(rng_.between(4, 9));
		if (rng_.chance(1, 2)) {
			c.create_srq.flags = TERN_SRQ_TAGS;
			c.create_srq.xrcdn = 0u;
			c.create_srq.log_tags = static_cast<uint8_t>(rng_.below(12));
			c.create_srq.log_tag_ops = static_cast<uint8_t>(rng_.below(5));
			c.create_srq.tag_ops_offset = 1u << 13;
			c.create_srq.db_page = static_cast<uint32_t>(rng_.below(3));
		}
		return true;
	case TERN_AQ_RESIZE_SRQ:
		c.resize_srq.pages = pages();
		c.resize_srq.record = somewhere();
		c.resize_srq.srqn = number();
		c.resize_srq.ring_offset = 1u << 12;
		c.resize_srq.log_size = static_cast<uint8_t>(rng_.below(6));
		return true;
	case TERN_AQ_QUERY_SRQ:
	case TERN_AQ_DESTROY_SRQ:
		c.object.id = srqs_[rng_.below(srqs_.size())]->number;
		return true;
	case TERN_AQ_SET_SRQ_LIMIT:
		c.set_srq_limit.srqn = number();
		c.set_srq_limit.limit = number();
		return true;
	default:
		return false;
	}
}

bool Vandal::fill_ethernet(tern_hw_aq_cmd &c)
{
	switch (c.opcode.get()) {
	case TERN_AQ_CREATE_WQ:
		c.create_wq.pages = pages();
		c.create_wq.record = somewhere();
		c.create_wq.pdn = number();
		c.create_wq.cqn = number();
		c.create_wq.log_size = static_cast<uint8_t>(rng_.below(6));
		c.create_wq.log_stride = static_cast<uint8_t>(rng_.between(4, 9));
		return true;
	case TERN_AQ_MODIFY_WQ:
		c.modify_wq.wqn = number();
		c.modify_wq.state = static_cast<uint8_t>(rng_.below(4));
		return true;
	case TERN_AQ_CREATE_WQ_TABLE:
		c.create_wq_table.iova = somewhere();
		c.create_wq_table.log_size = static_cast<uint8_t>(rng_.below(2));
		return true;
	case TERN_AQ_CREATE_RSS_QP:
		c.create_rss_qp.pdn = number();
		c.create_rss_qp.table = number();
		c.create_rss_qp.hash_fields = static_cast<uint32_t>(rng_.below(257));
		return true;
	case TERN_AQ_SET_ETH_RSS:
		c.set_eth_rss.iova = somewhere();
		c.set_eth_rss.log_size = static_cast<uint8_t>(rng_.below(9));
		return true;
	case TERN_AQ_SET_ETH:
		c.set_eth.mask = static_cast<uint32_t>(rng_.below(9));
		std::ranges::copy(node_.mac, c.set_eth.mac);
		c.set_eth.mtu = static_cast<uint16_t>(rng_.between(60, 9001));
		c.set_eth.rx_mode = static_cast<uint32_t>(rng_.below(5));
		return true;
	case TERN_AQ_CREATE_FLOW:
		fill_flow(c.create_flow);
		return true;
	case TERN_AQ_SET_GID:
		/* A random GID and MAC are not those of a victim. RoCE has no defence against a
		 * host that takes the address of another. */
		c.set_gid.index = number();
		c.set_gid.type = static_cast<uint8_t>(rng_.below(4));
		c.set_gid.vlan = uint16_t{0xffff};
		rng_.fill(std::as_writable_bytes(std::span(c.set_gid.gid)));
		rng_.fill(std::as_writable_bytes(std::span(c.set_gid.mac)));
		return true;
	default:
		return false;
	}
}

/* A flow matches what make_frame() puts into frames. */
void Vandal::fill_flow(tern_hw_create_flow &flow)
{
	flow.qpn = rng_.chance(3, 4) ? qps_[kFirstRaw + rng_.below(2)]->number : qpn();
	flow.priority = static_cast<uint16_t>(rng_.below(3));
	flow.type = static_cast<uint8_t>(rng_.chance(1, 2) ? 0 : rng_.below(5));
	flow.counters = rng_.chance(1, 4) ? number() : 0;
	if (flow.type != TERN_FLOW_NORMAL)
		return;
	if (rng_.chance(1, 2)) {
		std::ranges::copy(rng_.chance(1, 2) ? node_.mac : multicast_mac(group(1)),
		                  flow.key.dmac);
		std::ranges::fill(flow.mask.dmac, 0xff);
	}
	if (rng_.chance(1, 2)) {
		flow.ip_version = rng_.chance(1, 2) ? 4 : 6;
		flow.mask.tos = 1;
		flow.mask.ip_proto = 0xff;
		flow.key.ip_proto = 17;
		flow.mask.dst_port = uint16_t{0xffff};
		flow.key.dst_port = static_cast<uint16_t>(1000 + rng_.below(4));
	}
	if (rng_.chance(1, 4)) {
		flow.mask.vlan_tci = uint16_t{0x0fff};
		flow.key.vlan_tci = kFrameVlan;
	}
}

bool Vandal::fill_other(tern_hw_aq_cmd &c)
{
	switch (c.opcode.get()) {
	case TERN_AQ_QUERY_STATS:
		c.query_stats.iova = somewhere();
		c.query_stats.count = number();
		c.query_stats.set = rng_.chance(1, 4) ? uint32_t{TERN_STATS_UNBOUND} : number();
		return true;
	case TERN_AQ_BIND_STATS:
		c.bind_stats.qpn = qpn();
		c.bind_stats.set = number();
		return true;
	case TERN_AQ_CREATE_COMP_COUNTER:
		c.create_comp_counter.record = somewhere() & ~63ull;
		c.create_comp_counter.unit = static_cast<uint8_t>(rng_.below(2));
		return true;
	case TERN_AQ_MODIFY_COMP_COUNTER:
		c.modify_comp_counter.operand = rng_.next();
		c.modify_comp_counter.id = number();
		c.modify_comp_counter.value = static_cast<uint8_t>(rng_.below(2));
		c.modify_comp_counter.change = static_cast<uint8_t>(rng_.below(2));
		return true;
	case TERN_AQ_ATTACH_COMP_COUNTER:
		c.attach_comp_counter.qpn = qpn();
		c.attach_comp_counter.id = number();
		c.attach_comp_counter.ops = static_cast<uint32_t>(rng_.between(1, 63));
		return true;
	case TERN_AQ_ATTACH_MCAST:
	case TERN_AQ_DETACH_MCAST: {
		c.mcast.qpn =
		        rng_.chance(3, 4) ? qps_[kFirstDatagram + rng_.below(2)]->number : qpn();
		const Gid mgid = group(rng_.below(2));
		std::ranges::copy(mgid.bytes, c.mcast.mgid);
		return true;
	}
	case TERN_AQ_SET_CONGESTION:
		c.set_congestion.param = static_cast<uint32_t>(rng_.below(TERN_CC_COUNT + 1));
		c.set_congestion.value =
		        rng_.chance(1, 2) ? static_cast<uint32_t>(rng_.below(1 << 16)) : number();
		return true;
	default:
		return false;
	}
}

void Vandal::page()
{
	const uint64_t leaf = rng_.below(on_demand_->buffer.leaves());
	if (rng_.chance(1, 4)) {
		on_demand_->buffer.take_away(leaf);
		auto c = test::make_command(TERN_AQ_SYNC_MR);
		c.object.id = on_demand_->key;
		return submit(c);
	}
	on_demand_->buffer.bring(leaf, rng_.chance(3, 4));
	auto query = test::make_command(TERN_AQ_QUERY_FAULT);
	auto c = test::make_command(TERN_AQ_RESUME_QP);
	c.resume_qp.requester = c.resume_qp.responder =
	        rng_.chance(3, 4) ? TERN_RESUME_RETRY : TERN_RESUME_FAIL;
	for (const auto &qp : qps_) {
		query.object.id = c.resume_qp.qpn = qp->number;
		/* RESUME_QP answers only what QUERY_FAULT has told. */
		submit(query);
		submit(c);
	}
}

void Vandal::connect()
{
	auto c = test::make_command(TERN_AQ_MODIFY_QP);
	const Node &to = victim();
	tern_hw_qp_attr &a = c.modify_qp.attr;
	constexpr uint32_t kMasks[] = {
	        TERN_QP_STATE,
	        TERN_QP_STATE | TERN_QP_PKEY_INDEX | TERN_QP_PORT | TERN_QP_ACCESS_FLAGS,
	        TERN_QP_STATE | TERN_QP_AV | TERN_QP_PATH_MTU | TERN_QP_DEST_QPN | TERN_QP_RQ_PSN |
	                TERN_QP_MAX_DEST_RD_ATOMIC | TERN_QP_MIN_RNR_TIMER,
	        TERN_QP_STATE | TERN_QP_TIMEOUT | TERN_QP_RETRY_CNT | TERN_QP_RNR_RETRY |
	                TERN_QP_SQ_PSN | TERN_QP_MAX_QP_RD_ATOMIC};
	const uint64_t step = rng_.below(4);
	c.modify_qp.qpn = qpn();
	c.modify_qp.attr_mask = kMasks[step];
	a.state = static_cast<uint8_t>(step ? step : rng_.below(8));
	a.port = 1;
	a.access = 15;
	a.path_mtu = static_cast<uint8_t>(rng_.below(7));
	a.timeout = static_cast<uint8_t>(rng_.below(12));
	a.retry_cnt = a.rnr_retry = static_cast<uint8_t>(rng_.below(8));
	a.max_rd_atomic = a.max_dest_rd_atomic = static_cast<uint8_t>(rng_.below(17));
	a.dest_qpn = static_cast<uint32_t>(rng_.below(6));
	std::ranges::copy(rng_.chance(1, 2) ? to.mac : node_.mac, a.dmac);
	std::ranges::copy(rng_.chance(1, 2) ? to.gids[0].gid.bytes : node_.gids[0].gid.bytes,
	                  a.dgid);
	submit(c);
}

void Vandal::submit(const tern_hw_aq_cmd &c)
{
	test::Driver &d = node_.driver;
	d.memory.put(d.aq + (aq_pi_ & ((1u << d.aq_log_size) - 1)) * TERN_AQ_ENTRY, c);
	node_.card.write_register(TERN_REG_AQ_PI, ++aq_pi_);
	node_.card.run(16);
}

} // namespace tern::sim
