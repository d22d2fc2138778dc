// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/vandal.h"

#include <algorithm>

#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/network/multicast.h"
#include "qemu/rnic/queues/wqe.h"

namespace tern::sim {

using namespace hw;

Vandal::Vandal(Node &node, Rng &rng, const std::vector<std::unique_ptr<Node>> &victims)
        : node_(node), rng_(rng), victims_(victims)
{
	arena_ = node.memory.alloc(kArena, 4096);
	static const std::vector<std::byte> noise = [] {
		std::vector<std::byte> bytes(kArena);
		Rng(kArena).fill(bytes);
		return bytes;
	}();
	node.memory.poke(arena_, noise);
	set_up();
}

void Vandal::act()
{
	switch (rng_.below(16)) {
	case 0:
		node_.card.read_register(static_cast<uint32_t>(rng_.below(64) * 4));
		if (rng_.chance(1, 10))
			node_.card.write_register(static_cast<uint32_t>(rng_.below(32) * 4),
			                          number());
		break;
	case 1 ... 2:
		node_.driver.doorbell(static_cast<uint32_t>(rng_.below(3)),
		                      static_cast<uint32_t>(rng_.below(5) * 8), number(), number());
		break;
	case 3:
		/* Rings, records and tables lie here, and are written over. */
		node_.memory.put(arena_ + rng_.below(kArena / 4) * 4, Le<uint32_t>(number()));
		break;
	case 4 ... 5:
		command();
		break;
	case 6 ... 9:
		post();
		break;
	case 10 ... 11:
		forge();
		break;
	case 12:
		node_.receive(make_frame().bytes);
		break;
	case 13:
		connect();
		break;
	case 14:
		bring_up(*qps_[rng_.below(qps_.size())], rng_);
		break;
	default:
		page();
		break;
	}
	/* A CQ that is full would end what goes on at its QPs. */
	if (rng_.chance(15, 16))
		cq_->drain();
	if (rng_.chance(1, 4))
		cq_->arm(rng_.chance(1, 4));
	node_.wake();
	if (node_.card.read_register(TERN_REG_STATUS) != TERN_STATUS_READY || rng_.chance(1, 200))
		set_up();
}

uint32_t Vandal::number()
{
	switch (rng_.below(4)) {
	case 0:
		return static_cast<uint32_t>(rng_.next());
	case 1:
		return 0u - static_cast<uint32_t>(rng_.below(4));
	default:
		return static_cast<uint32_t>(rng_.below(6));
	}
}

uint32_t Vandal::qpn()
{
	if (rng_.chance(1, 4))
		return number();
	const auto which = rng_.below(qps_.size() + 1);
	return which < qps_.size() ? qps_[which]->number : rss_qpn_;
}

Gid Vandal::group(uint64_t which)
{
	Gid mgid{{0xff, 0x0e, 0x7e, 0x44}};
	if (which)
		mgid = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 126, 68, 1}};
	return mgid;
}

void Vandal::set_up()
{
	node_.reset_card();
	test::Driver &d = node_.driver;
	test::HostEq eq = d.create_eq(0, 4);
	d.arm(eq);
	const uint32_t pd = d.alloc_pd();
	cq_ = d.create_cq(eq, 6);
	create_regions(pd);
	const uint32_t xrcd = d.alloc_xrcd();
	srqs_.clear();
	srqs_.push_back(d.create_srq({.pd = pd, .log_size = 3}));
	srqs_.push_back(d.create_srq({.pd = pd, .xrcdn = xrcd, .cqn = cq_->number, .log_size = 3}));
	srqs_.push_back(d.create_srq({.pd = pd, .cqn = cq_->number, .log_size = 3, .tags = true}));
	create_qps(pd, xrcd);
	create_spread(pd);
	aq_pi_ = d.aq_pi;
	/* The set-up takes two bytes of a script, so that most of it is left for acts. */
	Rng choices(rng_.below(1 << 16));
	control_congestion(choices);
	for (const auto &qp : qps_)
		bring_up(*qp, choices);
}

void Vandal::create_regions(uint32_t pd)
{
	test::Driver &d = node_.driver;
	d.device_used = 0;
	plain_ = d.create_mr(pd, 0, kRegion, test::kAllAccess | TERN_ACCESS_MW_BIND);
	on_demand_ = d.create_mr(pd, 0, kRegion, test::kAllAccess,
	                         {.levels = 1, .page_shift = 12, .on_demand = true});
	others_ = {d.create_mr(pd, 0, kRegion, test::kAllAccess, {.levels = 2}).key,
	           d.create_device_mr(pd, 0, kRegion, test::kAllAccess).key};
	windows_ = {d.alloc_mw(pd, TERN_MW_TYPE_1, 0), d.alloc_mw(pd, TERN_MW_TYPE_2, 0),
	            d.create_fast_mr(pd)};
}

void Vandal::create_qps(uint32_t pd, uint32_t xrcd)
{
	const test::QpOptions any{.pd = pd,
	                          .send_cqn = cq_->number,
	                          .recv_cqn = cq_->number,
	                          .sq_log_size = 5,
	                          .rq_log_size = 3};
	/* The order is that of kFirstRaw, kFirstEth and kFirstDatagram. */
	constexpr uint8_t kTypes[] = {TERN_QPT_RAW, TERN_QPT_RAW, TERN_QPT_ETH, TERN_QPT_ETH,
	                              TERN_QPT_UD,  TERN_QPT_UD,  TERN_QPT_GSI, TERN_QPT_UC,
	                              TERN_QPT_UC,  TERN_QPT_RC,  TERN_QPT_RC,  TERN_QPT_RC};
	qps_.clear();
	for (const uint8_t type : kTypes) {
		test::QpOptions o = any;
		o.type = type;
		qps_.push_back(node_.driver.create_qp(o));
	}
	test::QpOptions o = any;
	for (const size_t srq : {0, 2, 2}) {
		o.srqn = srqs_[srq]->number;
		qps_.push_back(node_.driver.create_qp(o));
	}
	o = any;
	o.type = TERN_QPT_XRC_INI;
	o.recv_cqn = 0;
	qps_.push_back(node_.driver.create_qp(o));
	qps_.push_back(node_.driver.create_qp({.type = TERN_QPT_XRC_TGT, .xrcdn = xrcd}));
}

uint32_t Vandal::create(const tern_hw_aq_cmd &c)
{
	return node_.driver.command(c).created.id.get();
}

void Vandal::create_spread(uint32_t pd)
{
	test::Driver &d = node_.driver;
	wqs_.clear();
	const Iova table = somewhere();
	for (size_t i = 0; i < kWqs; i++) {
		wqs_.push_back(std::make_unique<test::HostQp>(
		        d, test::QpOptions{.sq_log_size = 0, .rq_log_size = 3}));
		auto c = test::make_command(TERN_AQ_CREATE_WQ);
		c.create_wq.pages.iova = wqs_[i]->buffer.at(wqs_[i]->rq_offset);
		c.create_wq.record = wqs_[i]->record;
		c.create_wq.pdn = pd;
		c.create_wq.cqn = cq_->number;
		c.create_wq.log_size = 3;
		c.create_wq.log_stride = 6;
		wqs_[i]->number = create(c);
		d.memory.put(table + i * sizeof(uint32_t), Le<uint32_t>(wqs_[i]->number));
		c = test::make_command(TERN_AQ_MODIFY_WQ);
		c.modify_wq.wqn = wqs_[i]->number;
		c.modify_wq.state = TERN_WQS_RDY;
		d.command(c);
	}
	auto c = test::make_command(TERN_AQ_CREATE_WQ_TABLE);
	c.create_wq_table.iova = table;
	c.create_wq_table.log_size = 1;
	const uint32_t number = create(c);
	c = test::make_command(TERN_AQ_CREATE_RSS_QP);
	c.create_rss_qp.pdn = pd;
	c.create_rss_qp.table = number;
	c.create_rss_qp.hash_fields = 0xffu;
	std::ranges::fill(c.create_rss_qp.key, 0x6d);
	rss_qpn_ = create(c);
	c = test::make_command(TERN_AQ_CREATE_FLOW);
	c.create_flow.qpn = rss_qpn_;
	c.create_flow.key.vlan_tci = kFrameVlan;
	c.create_flow.mask.vlan_tci = headers::kVlanIdMask;
	create(c);
	/* The Ethernet function spreads its frames over its queues, too. */
	for (size_t i = 0; i < 2; i++)
		d.memory.put(table + i * sizeof(uint32_t),
		             Le<uint32_t>(qps_[kFirstEth + i]->number));
	c = test::make_command(TERN_AQ_SET_ETH_RSS);
	c.set_eth_rss.iova = table;
	c.set_eth_rss.log_size = 1;
	c.set_eth_rss.hash_fields = 0xffu;
	std::ranges::fill(c.set_eth_rss.key, 0x6d);
	d.command(c);
}

void Vandal::control_congestion(Rng &rng)
{
	auto c = test::make_command(TERN_AQ_SET_CONGESTION);
	c.set_congestion.param = TERN_CC_RP_ALGORITHM;
	c.set_congestion.value = static_cast<uint32_t>(rng.below(3));
	submit(c);
	/* Intervals are short enough to end while a script runs. */
	for (const auto param : {TERN_CC_RP_TIME_RESET, TERN_CC_RP_TIMELY_T_LOW,
	                         TERN_CC_RP_TIMELY_T_HIGH, TERN_CC_RP_TIMELY_MIN_RTT}) {
		c.set_congestion.param = static_cast<uint32_t>(param);
		c.set_congestion.value = static_cast<uint32_t>(rng.between(1, 20));
		submit(c);
	}
	c.set_congestion.param = TERN_CC_PFC_ENABLE;
	c.set_congestion.value = rng.chance(1, 2) ? 0xffu : 0u;
	submit(c);
}

namespace {

bool is_ethernet(uint8_t type)
{
	return type == TERN_QPT_RAW || type == TERN_QPT_ETH;
}

bool is_datagram(uint8_t type)
{
	return type == TERN_QPT_UD || type == TERN_QPT_GSI;
}

/* What a QP of @type needs on its way to @state. */
uint32_t mask_of_step(uint8_t type, tern_hw_qp_state state)
{
	if (state == TERN_QPS_RESET || is_ethernet(type))
		return TERN_QP_STATE;
	const bool responds = type == TERN_QPT_RC || type == TERN_QPT_XRC_TGT;
	const bool requests = type == TERN_QPT_RC || type == TERN_QPT_XRC_INI;
	switch (state) {
	case TERN_QPS_INIT:
		return TERN_QP_STATE | TERN_QP_PKEY_INDEX | TERN_QP_PORT |
		       (is_datagram(type) ? TERN_QP_QKEY : TERN_QP_ACCESS_FLAGS);
	case TERN_QPS_RTR:
		if (is_datagram(type))
			return TERN_QP_STATE;
		return TERN_QP_STATE | TERN_QP_AV | TERN_QP_PATH_MTU | TERN_QP_DEST_QPN |
		       TERN_QP_RQ_PSN |
		       (responds ? TERN_QP_MAX_DEST_RD_ATOMIC | TERN_QP_MIN_RNR_TIMER : 0);
	default:
		return TERN_QP_STATE | TERN_QP_SQ_PSN |
		       (requests ? TERN_QP_TIMEOUT | TERN_QP_RETRY_CNT | TERN_QP_RNR_RETRY |
		                           TERN_QP_MAX_QP_RD_ATOMIC
		        : type == TERN_QPT_XRC_TGT ? TERN_QP_TIMEOUT
		                                   : 0);
	}
}

} // namespace

/* The cards of all vandals have the same numbers, so that a QP's peer is itself or, elsewhere, the
 * one of its number. */
uint32_t Vandal::peer_of(const test::HostQp &qp, Rng &rng)
{
	if (rng.chance(1, 8))
		return static_cast<uint32_t>(rng.below(20));
	switch (qp.options.type) {
	case TERN_QPT_XRC_INI:
		return qp.number + 1;
	case TERN_QPT_XRC_TGT:
		return qp.number - 1;
	default:
		return qp.number;
	}
}

const Node &Vandal::stranger(Rng &rng)
{
	const Node &any = *victims_[rng.below(victims_.size())];
	return &any != &node_ ? any : *victims_[victims_.front().get() == &node_ ? 1 : 0];
}

/* Both sides of a connection must agree on its path. So mostly the number tells it, which is the
 * same on both. */
Vandal::Path Vandal::path_of(const test::HostQp &qp, Rng &rng)
{
	const uint64_t choice = rng.chance(1, 8) ? rng.below(256) : qp.number;
	return {.to = choice % 2 ? node_ : stranger(rng),
	        .gid = choice % node_.gids.size(),
	        .mtu = static_cast<uint8_t>(1 + choice % 5)};
}

tern_hw_qp_attr Vandal::attributes(const test::HostQp &qp, Rng &rng)
{
	const Path path = path_of(qp, rng);
	tern_hw_qp_attr a{};
	a.port = 1;
	a.access = test::kAllAccess;
	a.path_mtu = path.mtu;
	a.sgid_index = static_cast<uint8_t>(path.gid);
	a.timeout = static_cast<uint8_t>(rng.below(12));
	a.retry_cnt = a.rnr_retry = static_cast<uint8_t>(rng.below(8));
	a.min_rnr_timer = static_cast<uint8_t>(rng.between(1, 4));
	a.max_rd_atomic = static_cast<uint8_t>(rng.below(17));
	a.max_dest_rd_atomic = 16;
	a.dest_qpn = peer_of(qp, rng);
	a.qkey = kQkey;
	std::ranges::copy(path.to.mac, a.dmac);
	std::ranges::copy(path.to.gids[a.sgid_index].gid.bytes, a.dgid);
	a.hop_limit = 64;
	a.udp_sport = uint16_t{0xc000};
	return a;
}

void Vandal::bring_up(test::HostQp &qp, Rng &rng)
{
	auto c = test::make_command(TERN_AQ_MODIFY_QP);
	c.modify_qp.qpn = qp.number;
	c.modify_qp.attr = attributes(qp, rng);
	for (const auto state : {TERN_QPS_RESET, TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS}) {
		c.modify_qp.attr.state = static_cast<uint8_t>(state);
		c.modify_qp.attr_mask = mask_of_step(qp.options.type, state);
		submit(c);
		if (state == TERN_QPS_RESET)
			qp.forget();
	}
	if (!rng.chance(1, 8))
		return;
	c.modify_qp.attr_mask = TERN_QP_STATE | TERN_QP_RATE_LIMIT;
	c.modify_qp.attr.rate_limit.rate = static_cast<uint32_t>(rng.below(50'000'000));
	c.modify_qp.attr.rate_limit.burst = static_cast<uint32_t>(rng.below(1 << 16));
	submit(c);
}

void Vandal::post()
{
	test::HostQp &qp = *qps_[rng_.below(qps_.size())];
	const uint8_t type = qp.options.type;
	if (rng_.chance(1, 30)) {
		const Iova record =
		        rng_.chance(1, 2) ? qp.record : srqs_[rng_.below(srqs_.size())]->record;
		node_.memory.put(record + rng_.below(16) * 4, Le<uint32_t>(number()));
		return;
	}
	post_srq();
	if (type == TERN_QPT_XRC_TGT)
		return;
	if (!qp.options.srqn && type != TERN_QPT_XRC_INI && rng_.chance(1, 3))
		return post_receives(is_ethernet(type) && rng_.chance(1, 2)
		                             ? *wqs_[rng_.below(wqs_.size())]
		                             : qp);
	if (is_ethernet(type) && rng_.chance(7, 8))
		return post_frame(qp);
	test::SendRequest request;
	request.opcode = static_cast<uint8_t>(rng_.chance(1, 20) ? rng_.below(256)
	                                      : is_datagram(type) || rng_.chance(1, 4)
	                                              ? rng_.between(1, 2)
	                                              : rng_.between(1, 15));
	request.flags = static_cast<uint8_t>(rng_.below(rng_.chance(1, 20) ? 256 : 16));
	request.remote_addr = rng_.below(kRegion / 8) * 8;
	request.rkey = key();
	request.imm = key();
	request.srqn = type != TERN_QPT_XRC_INI ? 0
	               : rng_.chance(1, 4)      ? number()
	                                        : srqs_[1]->number;
	if (is_datagram(type))
		request.to = datagram_address();
	if (request.opcode >= TERN_OP_LOCAL_INV && request.opcode <= TERN_OP_REG_MR)
		return post_local(qp, request);
	const bool atomic = is_atomic(request.opcode) || request.opcode == TERN_OP_ATOMIC_WRITE;
	if (takes_masks(request.opcode))
		request.masks.emplace().swap_add = rng_.next();
	if (request.opcode == TERN_OP_FLUSH)
		return post_flush(qp, request);
	const bool to_tags = qp.options.srqn == srqs_[2]->number;
	if (request.opcode <= TERN_OP_SEND_IMM && rng_.chance(to_tags ? 7 : 1, 8)) {
		/* A message that has a tag. */
		std::vector<std::byte> head(32);
		forge_tag(head);
		plain_->write(0, head);
		request.sges.push_back(
		        {0, static_cast<uint32_t>(rng_.chance(1, 2) ? 32 : rng_.between(32, 4096)),
		         plain_->key});
	} else {
		for (auto n = atomic ? 1 : rng_.below(5); n > 0; n--)
			request.sges.push_back(
			        {rng_.below(4096), atomic ? 8 : number() & 0xfff, key()});
	}
	if (request.flags & TERN_WQE_INLINE)
		request.inline_data.resize(rng_.below(200));
	auto blocks = encode(request);
	if (rng_.chance(1, 20))
		blocks[rng_.below(blocks.size())] ^= static_cast<std::byte>(rng_.next());
	qp.post_blocks(blocks);
}

void Vandal::post_receives(test::HostQp &qp)
{
	/* Frames and GRHs need some room. */
	for (auto n = rng_.between(1, 4); n > 0; n--)
		qp.post_recv(
		        Sge{rng_.below(4096), rng_.chance(1, 2) ? 4096 : number() & 0xfff, key()});
}

void Vandal::post_srq()
{
	test::HostSrq &srq = *srqs_[rng_.below(srqs_.size())];
	/* Requests of all QPs share these slots. */
	if (rng_.chance(1, 6))
		srq.release(static_cast<uint32_t>(rng_.below(rng_.chance(1, 20) ? 9 : 8)));
	if (rng_.chance(1, 4) && !srq.full())
		srq.post(Sge{rng_.below(kRegion), number() & 0xfff, key()});
	if (srq.options.tags && rng_.chance(1, 2))
		srq.post_tag_op(tag_op(), rng_.chance(7, 8));
}

tern_hw_ud_seg Vandal::datagram_address()
{
	const bool own = rng_.chance(1, 2);
	const Node &to = own ? node_ : victim();
	tern_hw_ud_seg seg{};
	seg.sgid_index = static_cast<uint8_t>(rng_.below(rng_.chance(1, 16) ? 256 : 4));
	seg.hop_limit = 64;
	seg.udp_sport = uint16_t{0xc000};
	seg.sl = static_cast<uint8_t>(rng_.below(8));
	seg.qkey = rng_.chance(1, 4) ? static_cast<uint32_t>(rng_.next()) : kQkey;
	seg.dest_qpn = qpn();
	Gid dgid = to.gids[seg.sgid_index % to.gids.size()].gid;
	Mac dmac = to.mac;
	if (rng_.chance(1, 3)) {
		dgid = group(rng_.below(2));
		dmac = multicast_mac(dgid);
		seg.dest_qpn = kMulticastQpn;
	}
	std::ranges::copy(dgid.bytes, seg.dgid);
	std::ranges::copy(dmac, seg.dmac);
	return seg;
}

void Vandal::post_flush(test::HostQp &qp, test::SendRequest &request)
{
	request.flush.emplace();
	request.flush->length = number();
	request.flush->type = static_cast<uint8_t>(rng_.below(5));
	request.flush->level = static_cast<uint8_t>(rng_.below(3));
	qp.post_blocks(encode(request));
}

void Vandal::post_local(test::HostQp &qp, test::SendRequest &request)
{
	request.flags &= TERN_WQE_SIGNALED | TERN_WQE_FENCE;
	if (rng_.chance(3, 4))
		request.imm = windows_[rng_.below(windows_.size())];
	if (request.opcode == TERN_OP_BIND_MW) {
		request.bind.emplace();
		request.bind->addr = rng_.below(8192);
		request.bind->length = rng_.below(4096);
		request.bind->rkey = windows_[rng_.below(2)];
		request.bind->lkey = key();
		request.bind->access = static_cast<uint8_t>(rng_.below(8) * 2);
	} else if (request.opcode == TERN_OP_REG_MR) {
		request.reg.emplace();
		request.reg->length = rng_.below(8192);
		request.reg->pages = pages();
		request.reg->key = windows_[2];
		request.reg->access = static_cast<uint8_t>(rng_.below(32));
	}
	qp.post_blocks(encode(request));
}

tern_hw_tag_op Vandal::tag_op()
{
	tern_hw_tag_op op{};
	if (rng_.chance(1, 16))
		rng_.fill(std::as_writable_bytes(std::span(&op, 1)));
	op.opcode = TERN_TAG_ADD;
	if (!rng_.chance(1, 2))
		op.opcode = static_cast<uint8_t>(rng_.below(5));
	op.flags = static_cast<uint8_t>(rng_.chance(7, 8) ? TERN_TAG_SIGNALED : rng_.below(4));
	op.unexpected = op.flags & TERN_TAG_COUNT ? number() & 3 : 0;
	if (op.opcode == TERN_TAG_SYNC)
		return op;
	op.entry = static_cast<uint32_t>(rng_.below(9));
	if (op.opcode == TERN_TAG_DEL)
		return op;
	op.mask = rng_.below(4);
	op.tag = rng_.chance(3, 4) ? op.mask.get() : rng_.below(4);
	op.buf.addr = rng_.below(4096);
	op.buf.length = rng_.chance(1, 2) ? 4096 : number() & 0xfff;
	op.buf.lkey = key();
	return op;
}

uint32_t Vandal::key()
{
	switch (rng_.below(8)) {
	case 0 ... 2:
		return plain_->key;
	case 3 ... 4:
		return on_demand_->key;
	case 5:
		return others_[rng_.below(others_.size())];
	case 6:
		return windows_[rng_.below(windows_.size())];
	default:
		return rng_.chance(1, 2) ? TERN_LKEY_LOCAL_DMA : number() << 8;
	}
}

} // namespace tern::sim
