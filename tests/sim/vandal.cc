// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/vandal.h"

#include <algorithm>

#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/formats/tag_header.h"
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
	switch (rng_.below(12)) {
	case 0:
		if (rng_.chance(1, 10))
			node_.card.write_register(static_cast<uint32_t>(rng_.below(32) * 4),
			                          number());
		break;
	case 1 ... 2:
		node_.driver.doorbell(static_cast<uint32_t>(rng_.below(3)),
		                      static_cast<uint32_t>(rng_.below(5) * 8), number(), number());
		break;
	case 3 ... 4:
		/* Rings, records and tables lie here, and are written over. */
		node_.memory.put(arena_ + rng_.below(kArena / 4) * 4, Le<uint32_t>(number()));
		break;
	case 5 ... 6:
		command();
		break;
	case 7 ... 8:
		post();
		break;
	case 9 ... 10:
		forge();
		break;
	default:
		connect();
		break;
	}
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

void Vandal::set_up()
{
	node_.reset_card();
	test::Driver &d = node_.driver;
	test::HostEq eq = d.create_eq(0, 4);
	d.arm(eq);
	const uint32_t pd = d.alloc_pd();
	const auto cq = d.create_cq(eq, 6);
	const test::HostMr mr = d.create_mr(pd, 0, 8192, test::kAllAccess | TERN_ACCESS_MW_BIND);
	key_ = mr.key;
	windows_ = {d.alloc_mw(pd, TERN_MW_TYPE_1, 0), d.alloc_mw(pd, TERN_MW_TYPE_2, 0),
	            d.create_fast_mr(pd)};
	const uint32_t xrcd = d.alloc_xrcd();
	srqs_.clear();
	srqs_.push_back(d.create_srq({.pd = pd, .log_size = 3}));
	srqs_.push_back(d.create_srq({.pd = pd, .xrcdn = xrcd, .cqn = cq->number, .log_size = 3}));
	srqs_.push_back(d.create_srq({.pd = pd, .cqn = cq->number, .log_size = 3, .tags = true}));
	qps_.clear();
	for (int i = 0; i < 2; i++) {
		qps_.push_back(d.create_qp({.pd = pd,
		                            .send_cqn = cq->number,
		                            .recv_cqn = cq->number,
		                            .type = TERN_QPT_RAW}));
		for (const auto state : {TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS})
			qps_.back()->set_state(state);
	}
	for (int i = 0; i < 6; i++) {
		test::QpOptions o{.pd = pd,
		                  .send_cqn = cq->number,
		                  .recv_cqn = cq->number,
		                  .sq_log_size = 4,
		                  .rq_log_size = 3};
		if (i == 2)
			o.srqn = srqs_[2]->number;
		if (i == 3)
			o.srqn = srqs_[0]->number;
		if (i == 4) {
			o.type = TERN_QPT_XRC_INI;
			o.recv_cqn = 0;
		}
		if (i == 5)
			o = {.type = TERN_QPT_XRC_TGT, .xrcdn = xrcd};
		qps_.push_back(d.create_qp(o));
		const bool own = rng_.chance(1, 2);
		const Node &victim = *victims_[rng_.below(victims_.size())];
		test::Connection c;
		c.dest_qpn = static_cast<uint32_t>(rng_.between(1, 8));
		c.mtu = static_cast<uint8_t>(rng_.between(1, 5));
		c.timeout = static_cast<uint8_t>(rng_.below(12));
		c.dgid = own ? node_.gids[0].gid : victim.gids[0].gid;
		c.dmac = own ? node_.mac : victim.mac;
		qps_.back()->connect(c);
	}
	aq_pi_ = d.aq_pi;
}

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
	constexpr tern_hw_aq_op kOps[] = {
	        TERN_AQ_QUERY_DEVICE,   TERN_AQ_QUERY_STATS,  TERN_AQ_CREATE_EQ,
	        TERN_AQ_DESTROY_EQ,     TERN_AQ_ALLOC_PD,     TERN_AQ_DEALLOC_PD,
	        TERN_AQ_CREATE_MR,      TERN_AQ_DESTROY_MR,   TERN_AQ_CREATE_CQ,
	        TERN_AQ_DESTROY_CQ,     TERN_AQ_CREATE_QP,    TERN_AQ_MODIFY_QP,
	        TERN_AQ_QUERY_QP,       TERN_AQ_DESTROY_QP,   TERN_AQ_SET_ETH,
	        TERN_AQ_SET_GID,        TERN_AQ_CREATE_SRQ,   TERN_AQ_RESIZE_SRQ,
	        TERN_AQ_SET_SRQ_LIMIT,  TERN_AQ_QUERY_SRQ,    TERN_AQ_DESTROY_SRQ,
	        TERN_AQ_ALLOC_XRCD,     TERN_AQ_DEALLOC_XRCD, TERN_AQ_CREATE_FLOW,
	        TERN_AQ_DESTROY_FLOW,   TERN_AQ_ALLOC_MW,     TERN_AQ_DEALLOC_MW,
	        TERN_AQ_CREATE_FAST_MR, TERN_AQ_MODIFY_MR,    TERN_AQ_CREATE_STATS,
	        TERN_AQ_DESTROY_STATS,  TERN_AQ_BIND_STATS};
	auto c = test::make_command(kOps[rng_.below(std::size(kOps))]);
	if (rng_.chance(1, 5)) {
		rng_.fill(std::as_writable_bytes(std::span(c.body)));
		return submit(c);
	}
	switch (c.opcode.get()) {
	case TERN_AQ_CREATE_EQ:
		c.create_eq.pages = pages();
		c.create_eq.vector = number();
		c.create_eq.log_size = static_cast<uint8_t>(rng_.below(9));
		break;
	case TERN_AQ_CREATE_MR:
		c.create_mr.start = rng_.chance(1, 2) ? rng_.next() : 0;
		c.create_mr.length = rng_.below(1 << 20);
		c.create_mr.pages = pages();
		c.create_mr.pdn = number();
		c.create_mr.access = static_cast<uint8_t>(rng_.below(64));
		c.create_mr.flags = rng_.chance(1, 4) ? TERN_MR_DEVICE : 0;
		break;
	case TERN_AQ_MODIFY_MR:
		c.modify_mr.key = rng_.chance(1, 2) ? key_ : number();
		c.modify_mr.mask = static_cast<uint8_t>(rng_.between(1, 7));
		if (c.modify_mr.mask & TERN_MODIFY_MR_PD)
			c.modify_mr.to.pdn = number();
		if (c.modify_mr.mask & TERN_MODIFY_MR_ACCESS)
			c.modify_mr.to.access = static_cast<uint8_t>(rng_.below(64));
		if (c.modify_mr.mask & TERN_MODIFY_MR_TRANSLATION) {
			c.modify_mr.to.start = rng_.chance(1, 2) ? rng_.next() : 0;
			c.modify_mr.to.length = rng_.below(1 << 20);
			c.modify_mr.to.pages = pages();
		}
		break;
	case TERN_AQ_CREATE_CQ:
		c.create_cq.pages = pages();
		c.create_cq.record = somewhere();
		c.create_cq.eqn = number();
		c.create_cq.log_size = static_cast<uint8_t>(rng_.below(8));
		break;
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
		c.create_qp.flags = static_cast<uint8_t>(rng_.below(4));
		if (c.create_qp.flags & TERN_QP_SRQ) {
			c.create_qp.srqn = number();
			c.create_qp.rq_log_size = c.create_qp.rq_log_stride = 0;
		}
		break;
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
		break;
	case TERN_AQ_RESIZE_SRQ:
		c.resize_srq.pages = pages();
		c.resize_srq.record = somewhere();
		c.resize_srq.srqn = number();
		c.resize_srq.ring_offset = 1u << 12;
		c.resize_srq.log_size = static_cast<uint8_t>(rng_.below(6));
		break;
	case TERN_AQ_SET_SRQ_LIMIT:
		c.set_srq_limit.srqn = number();
		c.set_srq_limit.limit = number();
		break;
	case TERN_AQ_ALLOC_MW:
		c.alloc_mw.pdn = number();
		c.alloc_mw.type = static_cast<uint8_t>(rng_.below(3));
		break;
	case TERN_AQ_CREATE_FLOW:
		c.create_flow.qpn = number();
		c.create_flow.type = static_cast<uint8_t>(rng_.below(5));
		c.create_flow.priority = static_cast<uint16_t>(rng_.below(3));
		if (rng_.chance(1, 2)) {
			c.create_flow.ip_version = rng_.chance(1, 2) ? 4 : 6;
			c.create_flow.mask.tos = 1;
		}
		break;
	case TERN_AQ_DEALLOC_MW:
	case TERN_AQ_DESTROY_MR:
		c.object.id = key();
		break;
	case TERN_AQ_QUERY_STATS:
		c.query_stats.iova = somewhere();
		c.query_stats.count = number();
		c.query_stats.set = number();
		break;
	case TERN_AQ_BIND_STATS:
		c.bind_stats.qpn = number();
		c.bind_stats.set = number();
		break;
	case TERN_AQ_SET_GID:
		/* Not somebody else's address: RoCE has nothing against that. */
		c.set_gid.index = number();
		c.set_gid.type = static_cast<uint8_t>(rng_.below(4));
		c.set_gid.vlan = uint16_t{0xffff};
		rng_.fill(std::as_writable_bytes(std::span(c.set_gid.gid)));
		rng_.fill(std::as_writable_bytes(std::span(c.set_gid.mac)));
		break;
	default:
		c.object.id = number();
		break;
	}
	submit(c);
}

void Vandal::connect()
{
	auto c = test::make_command(TERN_AQ_MODIFY_QP);
	const Node &victim = *victims_[rng_.below(victims_.size())];
	tern_hw_qp_attr &a = c.modify_qp.attr;
	constexpr uint32_t kMasks[] = {
	        TERN_QP_STATE,
	        TERN_QP_STATE | TERN_QP_PKEY_INDEX | TERN_QP_PORT | TERN_QP_ACCESS_FLAGS,
	        TERN_QP_STATE | TERN_QP_AV | TERN_QP_PATH_MTU | TERN_QP_DEST_QPN | TERN_QP_RQ_PSN |
	                TERN_QP_MAX_DEST_RD_ATOMIC | TERN_QP_MIN_RNR_TIMER,
	        TERN_QP_STATE | TERN_QP_TIMEOUT | TERN_QP_RETRY_CNT | TERN_QP_RNR_RETRY |
	                TERN_QP_SQ_PSN | TERN_QP_MAX_QP_RD_ATOMIC};
	const uint64_t step = rng_.below(4);
	c.modify_qp.qpn = number();
	c.modify_qp.attr_mask = kMasks[step];
	a.state = static_cast<uint8_t>(step ? step : rng_.below(7));
	a.port = 1;
	a.access = 15;
	a.path_mtu = static_cast<uint8_t>(rng_.below(7));
	a.timeout = static_cast<uint8_t>(rng_.below(12));
	a.retry_cnt = a.rnr_retry = static_cast<uint8_t>(rng_.below(8));
	a.max_rd_atomic = a.max_dest_rd_atomic = static_cast<uint8_t>(rng_.below(17));
	a.dest_qpn = static_cast<uint32_t>(rng_.below(6));
	std::ranges::copy(rng_.chance(1, 2) ? victim.mac : node_.mac, a.dmac);
	std::ranges::copy(rng_.chance(1, 2) ? victim.gids[0].gid.bytes : node_.gids[0].gid.bytes,
	                  a.dgid);
	submit(c);
}

void Vandal::post()
{
	test::HostQp &qp = *qps_[rng_.below(qps_.size())];
	test::HostSrq &srq = *srqs_[rng_.below(srqs_.size())];
	if (rng_.chance(1, 30)) {
		const Iova record = rng_.chance(1, 2) ? qp.record : srq.record;
		node_.memory.put(record + rng_.below(16) * 4, Le<uint32_t>(number()));
		return;
	}
	/* The same slots again and again, whoever has them. */
	if (rng_.chance(1, 6))
		srq.release(static_cast<uint32_t>(rng_.below(rng_.chance(1, 20) ? 9 : 8)));
	if (rng_.chance(1, 4) && !srq.full())
		srq.post(Sge{rng_.below(8192), number() & 0xfff, key()});
	if (srq.options.tags && rng_.chance(1, 2))
		srq.post_tag_op(tag_op(), rng_.chance(7, 8));
	const bool receives = !qp.options.srqn && qp.options.type != TERN_QPT_XRC_INI &&
	                      qp.options.type != TERN_QPT_XRC_TGT;
	if (receives && rng_.chance(1, 3)) {
		for (auto n = rng_.between(1, 4); n > 0; n--)
			qp.post_recv(Sge{rng_.below(8192), number() & 0xfff, key()});
		return;
	}
	test::SendRequest request;
	request.opcode =
	        static_cast<uint8_t>(rng_.chance(1, 20) ? rng_.below(256) : rng_.between(1, 15));
	request.flags = static_cast<uint8_t>(rng_.below(rng_.chance(1, 20) ? 256 : 8));
	request.remote_addr = rng_.below(1024) * 8;
	request.rkey = key();
	request.imm = key();
	request.srqn = qp.options.type == TERN_QPT_XRC_INI ? number() & 7 : 0;
	if (request.opcode >= TERN_OP_LOCAL_INV && request.opcode <= TERN_OP_REG_MR)
		return post_local(qp, request);
	const bool atomic = is_atomic(request.opcode) || request.opcode == TERN_OP_ATOMIC_WRITE;
	if (takes_masks(request.opcode))
		request.masks.emplace().swap_add = rng_.next();
	if (request.opcode == TERN_OP_FLUSH)
		return post_flush(qp, request);
	for (auto n = atomic ? 1 : rng_.below(5); n > 0; n--)
		request.sges.push_back({rng_.below(4096), atomic ? 8 : number() & 0xfff, key()});
	if (request.flags & TERN_WQE_INLINE)
		request.inline_data.resize(rng_.below(200));
	auto blocks = encode(request);
	if (rng_.chance(1, 20))
		blocks[rng_.below(blocks.size())] ^= static_cast<std::byte>(rng_.next());
	qp.post_blocks(blocks);
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

/* Mostly one that RC or XRC has. */
uint8_t Vandal::forged_opcode()
{
	if (rng_.chance(1, 8))
		return static_cast<uint8_t>(rng_.below(256));
	if (rng_.chance(1, 16))
		return static_cast<uint8_t>(rng_.chance(1, 2) ? Opcode::RcMaskedCompareSwap
		                                              : Opcode::RcMaskedFetchAdd);
	const bool xrc = rng_.chance(1, 3);
	return static_cast<uint8_t>(rng_.below(0x1e) | (xrc ? 0xa0 : 0));
}

void Vandal::forge()
{
	const bool own = rng_.chance(1, 2);
	const Node &from = own ? node_ : *victims_[rng_.below(victims_.size())];
	AddressVector av;
	av.smac = from.mac;
	av.dmac = node_.mac;
	av.sgid = from.gids[0].gid;
	av.dgid = node_.gids[0].gid;
	Bth bth;
	bth.opcode = forged_opcode();
	bth.psn = Psn(static_cast<uint32_t>(rng_.below(rng_.chance(1, 4) ? 1 << 24 : 8)));
	bth.ack_request = rng_.chance(1, 2);
	bth.solicited = rng_.chance(1, 4);
	bth.dest_qpn = static_cast<uint32_t>(rng_.between(1, 10));
	ExtHeaders ext;
	ext.reth = {rng_.below(8192), key(), rng_.chance(1, 4) ? 8 : number() & 0xfff};
	ext.feth = {static_cast<uint8_t>(rng_.below(5)), static_cast<uint8_t>(rng_.below(3))};
	ext.atomic = {rng_.below(1024) * 8, key(), rng_.next(), 0};
	ext.masks = {rng_.next(), rng_.next()};
	ext.aeth = {static_cast<uint8_t>(rng_.below(128)), number()};
	ext.imm = number();
	ext.inv_rkey = key();
	ext.srqn = number();
	constexpr size_t kSizes[] = {0, 1, 8, 40, 100, 256, 512, 1024, 2048, 4096};
	const size_t size =
	        opcode_info(bth.opcode).payload ? kSizes[rng_.below(std::size(kSizes))] : 0;
	Link::Frame frame(kMaxRoceFrame);
	FrameBuilder builder(frame, PathHeader(av), bth, ext, size);
	rng_.fill(builder.payload());
	if (rng_.chance(1, 3))
		forge_tag(builder.payload());
	if (rng_.chance(1, 3)) {
		/* In pieces of any size, and at times not what the head says. */
		const auto payload = std::span<const std::byte>(builder.payload());
		const auto cut = static_cast<size_t>(rng_.below(size + 1));
		const std::span<const std::byte> pieces[] = {
		        payload.first(cut), payload.subspan(cut), payload.first(cut)};
		node_.receive(builder.head(), std::span(pieces).first(rng_.chance(1, 8) ? 3 : 2),
		              0);
		return;
	}
	if (rng_.chance(1, 3)) {
		forge_burst(builder.head(), builder.payload());
		return;
	}
	node_.receive(
	        {frame.begin(), frame.begin() + static_cast<ptrdiff_t>(builder.finish().size())});
}

void Vandal::forge_burst(std::span<const std::byte> head, std::span<const std::byte> payload)
{
	std::vector<std::span<const std::byte>> pieces(rng_.below(20), payload);
	pieces.push_back(payload.first(rng_.below(payload.size() + 1)));
	node_.receive(head, pieces,
	              rng_.chance(1, 8) ? number() : static_cast<uint32_t>(payload.size()));
}

tern_hw_tag_op Vandal::tag_op()
{
	tern_hw_tag_op op{};
	if (rng_.chance(1, 10))
		rng_.fill(std::as_writable_bytes(std::span(&op, 1)));
	op.opcode = static_cast<uint8_t>(rng_.below(5));
	op.flags = static_cast<uint8_t>(rng_.below(4));
	op.unexpected = op.flags & TERN_TAG_COUNT ? number() & 3 : 0;
	if (op.opcode == TERN_TAG_SYNC)
		return op;
	op.entry = static_cast<uint32_t>(rng_.below(9));
	if (op.opcode == TERN_TAG_DEL)
		return op;
	op.tag = rng_.below(4);
	op.mask = rng_.below(4);
	op.buf.addr = rng_.below(8192);
	op.buf.length = number() & 0xfff;
	op.buf.lkey = key();
	return op;
}

void Vandal::forge_tag(std::span<std::byte> payload)
{
	headers::TagMatching tag{};
	tag.opcode = static_cast<uint8_t>(rng_.below(5));
	tag.tag = rng_.below(4);
	headers::Rendezvous from;
	from.va = rng_.below(8192);
	from.rkey = key();
	from.length = number() & 0xfff;
	if (payload.size() < sizeof(tag) + sizeof(from))
		return;
	headers::Writer out(payload);
	out.put(tag);
	if (rng_.chance(3, 4))
		out.put(from);
}

uint32_t Vandal::key()
{
	return rng_.chance(3, 4)   ? key_
	       : rng_.chance(1, 2) ? windows_[rng_.below(windows_.size())]
	       : rng_.chance(1, 2) ? TERN_LKEY_LOCAL_DMA
	                           : number() << 8;
}

void Vandal::submit(const tern_hw_aq_cmd &c)
{
	test::Driver &d = node_.driver;
	d.memory.put(d.aq + (aq_pi_ & ((1u << d.aq_log_size) - 1)) * TERN_AQ_ENTRY, c);
	node_.card.write_register(TERN_REG_AQ_PI, ++aq_pi_);
	node_.card.run(16);
}

} // namespace tern::sim
