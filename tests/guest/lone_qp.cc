// SPDX-License-Identifier: GPL-2.0-or-later
#include "lone_qp.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>

namespace tern::guest {

namespace {

constexpr uint8_t kPort = 1;
constexpr uint32_t kQkey = 0x11223344;
constexpr uint32_t kPsn = 0x123456;

ibv_ah_attr address_of_self(const Device &device)
{
	ibv_ah_attr ah = {};
	ah.is_global = 1;
	ah.grh.dgid = device.gid();
	ah.grh.sgid_index = device.gid_index();
	ah.grh.hop_limit = 64;
	ah.port_num = kPort;
	return ah;
}

} // namespace

void XrcdCloser::operator()(ibv_xrcd *xrcd) const
{
	ibv_close_xrcd(xrcd);
}

CqPtr make_cq(const Device &device, int cqe)
{
	CqPtr cq(ibv_create_cq(device.context(), cqe, nullptr, nullptr, 0));
	check(cq.get(), "ibv_create_cq: %s", std::strerror(errno));
	return cq;
}

XrcdPtr make_xrcd(const Device &device)
{
	ibv_xrcd_init_attr init = {};
	init.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	init.fd = -1;
	init.oflags = O_CREAT;
	XrcdPtr xrcd(ibv_open_xrcd(device.context(), &init));
	check(xrcd.get(), "ibv_open_xrcd: %s", std::strerror(errno));
	return xrcd;
}

SrqPtr make_srq(const Device &device, uint32_t max_wr)
{
	ibv_srq_init_attr init = {};
	init.attr = {.max_wr = max_wr, .max_sge = 1, .srq_limit = 0};
	SrqPtr srq(ibv_create_srq(device.pd(), &init));
	check(srq.get(), "ibv_create_srq: %s", std::strerror(errno));
	return srq;
}

AhPtr make_ah_to_self(const Device &device)
{
	ibv_ah_attr attr = address_of_self(device);
	AhPtr ah(ibv_create_ah(device.pd(), &attr));
	check(ah.get(), "ibv_create_ah: %s", std::strerror(errno));
	return ah;
}

const char *name_of(ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return "RC";
	case IBV_QPT_UC:
		return "UC";
	case IBV_QPT_UD:
		return "UD";
	case IBV_QPT_RAW_PACKET:
		return "RAW_PACKET";
	case IBV_QPT_XRC_SEND:
		return "XRC_SEND";
	case IBV_QPT_XRC_RECV:
		return "XRC_RECV";
	default:
		return "?";
	}
}

const char *name_of(ibv_qp_state state)
{
	static constexpr const char *names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
	return state <= IBV_QPS_ERR ? names[state] : "?";
}

/* ---- the table --------------------------------------------------------------------- */

namespace {

/* What of an attribute's meaning a service has at all. */
struct Service {
	bool connected; /* an address, a peer QP, PSNs, remote rights */
	bool requester; /* waits for acknowledgements */
	bool responder; /* gives them */
	bool datagram;  /* has a Q_Key */
};

Service service_of(ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return {.connected = true, .requester = true, .responder = true, .datagram = false};
	case IBV_QPT_XRC_SEND:
		return {.connected = true,
		        .requester = true,
		        .responder = false,
		        .datagram = false};
	case IBV_QPT_XRC_RECV:
		return {.connected = true,
		        .requester = false,
		        .responder = true,
		        .datagram = false};
	case IBV_QPT_UC:
		return {.connected = true,
		        .requester = false,
		        .responder = false,
		        .datagram = false};
	case IBV_QPT_UD:
		return {.connected = false,
		        .requester = false,
		        .responder = false,
		        .datagram = true};
	default:
		return {};
	}
}

int when(bool has, int attributes)
{
	return has ? attributes : 0;
}

/* RESET to INIT, and what may be said again in INIT. */
int init_attributes(ibv_qp_type type)
{
	const Service s = service_of(type);
	return IBV_QP_PORT | when(s.connected, IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS) |
	       when(s.datagram, IBV_QP_PKEY_INDEX | IBV_QP_QKEY);
}

Transition to_rtr(const Service &s)
{
	return {.legal = true,
	        .required = when(s.connected,
	                         IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
	                    when(s.responder, IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	        .optional = when(s.connected,
	                         IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH) |
	                    when(s.datagram, IBV_QP_PKEY_INDEX | IBV_QP_QKEY)};
}

/* What may be changed each time that the QP goes to RTS. */
int rts_optional(const Service &s)
{
	return when(s.connected, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH |
	                                 IBV_QP_PATH_MIG_STATE) |
	       when(s.responder, IBV_QP_MIN_RNR_TIMER) |
	       when(s.datagram, IBV_QP_CUR_STATE | IBV_QP_QKEY);
}

Transition rtr_to_rts(ibv_qp_type type, const Service &s)
{
	return {.legal = true,
	        .required = when(s.connected || s.datagram, IBV_QP_SQ_PSN) |
	                    when(s.requester, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	                                              IBV_QP_MAX_QP_RD_ATOMIC) |
	                    when(type == IBV_QPT_XRC_RECV, IBV_QP_TIMEOUT),
	        .optional = rts_optional(s)};
}

Transition in_sqd(ibv_qp_type type, const Service &s)
{
	const bool reliable = s.requester || s.responder;
	return {.legal = true,
	        .required = 0,
	        .optional = when(s.connected, IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
	                                              IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE) |
	                    when(reliable, IBV_QP_PORT | IBV_QP_TIMEOUT) |
	                    when(s.requester,
	                         IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) |
	                    when(s.responder, IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) |
	                    when(type == IBV_QPT_UD, IBV_QP_PKEY_INDEX | IBV_QP_QKEY)};
}

Transition sqe_to_rts(ibv_qp_type type)
{
	if (type == IBV_QPT_UC)
		return {true, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS};
	return {true, 0, when(type == IBV_QPT_UD, IBV_QP_CUR_STATE | IBV_QP_QKEY)};
}

} // namespace

Transition transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to)
{
	const Service s = service_of(type);
	const auto is = [&](ibv_qp_state a, ibv_qp_state b) { return from == a && to == b; };

	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
		return {true, 0, 0};
	if (is(IBV_QPS_RESET, IBV_QPS_INIT))
		return {true, init_attributes(type), 0};
	if (is(IBV_QPS_INIT, IBV_QPS_INIT))
		return {true, 0, when(s.connected || s.datagram, init_attributes(type))};
	if (is(IBV_QPS_INIT, IBV_QPS_RTR))
		return to_rtr(s);
	if (is(IBV_QPS_RTR, IBV_QPS_RTS))
		return rtr_to_rts(type, s);
	if (is(IBV_QPS_RTS, IBV_QPS_RTS) || is(IBV_QPS_SQD, IBV_QPS_RTS))
		return {true, 0, rts_optional(s)};
	if (is(IBV_QPS_RTS, IBV_QPS_SQD))
		return {true, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY};
	if (is(IBV_QPS_SQD, IBV_QPS_SQD))
		return in_sqd(type, s);
	if (is(IBV_QPS_SQE, IBV_QPS_RTS))
		return sqe_to_rts(type);
	return {};
}

/* ---- LoneQp --------------------------------------------------------------------------- */

LoneQp::LoneQp(const Device &device, ibv_qp_type type, CqPtr cq)
        : device_(device), type_(type), cq_(std::move(cq))
{
	ibv_qp_init_attr_ex init = {};
	init.qp_type = type;
	init.cap = {.max_send_wr = 8,
	            .max_recv_wr = 8,
	            .max_send_sge = 1,
	            .max_recv_sge = 1,
	            .max_inline_data = 0};
	if (type == IBV_QPT_XRC_RECV) {
		xrcd_ = make_xrcd(device);
		init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		init.xrcd = xrcd_.get();
	} else {
		init.comp_mask = IBV_QP_INIT_ATTR_PD;
		init.pd = device.pd();
		init.send_cq = cq_.get();
		init.recv_cq = type == IBV_QPT_XRC_SEND ? nullptr : cq_.get();
	}
	qp_.reset(ibv_create_qp_ex(device.context(), &init));
	check(qp_.get(), "a QP of type %s: %s", name_of(type), std::strerror(errno));
	peer_qpn_ = qp_->qp_num;
	peer_gid_ = device.gid();
}

void LoneQp::aim_at(Peer &peer)
{
	peer_qpn_ = peer.exchange(qp_->qp_num);
	peer_gid_ = peer.exchange(device_.gid());
}

ibv_qp_attr LoneQp::attributes() const
{
	ibv_qp_attr attr = {};
	attr.en_sqd_async_notify = 1;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	attr.port_num = kPort;
	attr.qkey = kQkey;
	attr.ah_attr = address_of_self(device_);
	attr.ah_attr.grh.dgid = peer_gid_;
	attr.alt_ah_attr = attr.ah_attr;
	attr.alt_port_num = kPort;
	attr.path_mtu = std::min(device_.port().active_mtu, IBV_MTU_1024);
	attr.path_mig_state = IBV_MIG_MIGRATED;
	attr.timeout = kPatientTimeout;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.min_rnr_timer = 12;
	attr.max_rd_atomic = 1;
	attr.max_dest_rd_atomic = 1;
	attr.rq_psn = kPsn;
	attr.sq_psn = kPsn;
	attr.dest_qp_num = peer_qpn_;
	return attr;
}

int LoneQp::modify(ibv_qp_attr &attr, int mask) const
{
	return ibv_modify_qp(qp_.get(), &attr, mask);
}

int LoneQp::go(ibv_qp_state to, int mask) const
{
	ibv_qp_attr attr = attributes();
	attr.qp_state = to;
	if (mask & IBV_QP_CUR_STATE)
		attr.cur_qp_state = state();
	return modify(attr, mask | IBV_QP_STATE);
}

ibv_qp_attr LoneQp::query() const
{
	constexpr int kAll = (IBV_QP_DEST_QPN << 1) - 1;
	ibv_qp_attr attr = {};
	ibv_qp_init_attr init = {};
	const int err = ibv_query_qp(qp_.get(), &attr, kAll, &init);
	check(!err, "ibv_query_qp: %s", std::strerror(err));
	return attr;
}

void LoneQp::step(ibv_qp_state to) const
{
	const ibv_qp_state from = state();
	const Transition t = transition(type_, from, to);
	const int err = go(to, t.required);
	check(t.legal && !err, "%s: from %s to %s: %s", name_of(type_), name_of(from), name_of(to),
	      std::strerror(err));
}

void LoneQp::lead_to(ibv_qp_state to) const
{
	step(IBV_QPS_RESET);
	if (to == IBV_QPS_RESET)
		return;
	step(IBV_QPS_INIT);
	if (to == IBV_QPS_ERR)
		return step(IBV_QPS_ERR);
	for (int s = IBV_QPS_RTR; s <= to; s++)
		step(static_cast<ibv_qp_state>(s));
	/* Without work the send queue is drained at once. */
	check(eventually([&] { return !query().sq_draining; }), "the idle send queue never drains");
}

int LoneQp::post_send(uint64_t wr_id, ibv_sge sge, ibv_ah *ah) const
{
	ibv_send_wr wr = {}, *bad = nullptr;
	wr.wr_id = wr_id;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	if (ah)
		wr.wr.ud = {.ah = ah, .remote_qpn = qp_->qp_num, .remote_qkey = kQkey};
	return ibv_post_send(qp_.get(), &wr, &bad);
}

int LoneQp::post_recv(uint64_t wr_id, ibv_sge sge) const
{
	ibv_recv_wr wr = {}, *bad = nullptr;
	wr.wr_id = wr_id;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	return ibv_post_recv(qp_.get(), &wr, &bad);
}

ibv_wc LoneQp::completion() const
{
	ibv_wc wc = {};
	check(eventually([&] { return ibv_poll_cq(cq_.get(), 1, &wc) > 0; }, 30s), "no completion");
	return wc;
}

bool LoneQp::silent() const
{
	ibv_wc wc = {};
	return !eventually([&] { return ibv_poll_cq(cq_.get(), 1, &wc) > 0; }, 200ms);
}

} // namespace tern::guest
