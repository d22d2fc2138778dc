// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The states of QPs: every transition with every attribute, what is refused, and what a query
 * tells. Each side leads QPs of its own, whose peers are they themselves.
 */
#include <cerrno>
#include <cstring>

#include "cases.h"
#include "lone_qp.h"

namespace tern::guest {
namespace {

constexpr int kStandardBits = (IBV_QP_DEST_QPN << 1) - 1;

constexpr ibv_qp_state kStates[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                    IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};

/* Attributes that uverbs takes out of the mask before anybody looks at it. */
int ignored(ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	case IBV_QPT_XRC_RECV:
		return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	default:
		return 0;
	}
}

/*
 * Legal, yet refused: uverbs has no alternate paths on Ethernet, and to a new address in SQD
 * it adds the port, which it does not allow for UC.
 */
int refused(ibv_qp_type type, ibv_qp_state from)
{
	const bool uc_address = type == IBV_QPT_UC && from == IBV_QPS_SQD;
	return IBV_QP_ALT_PATH | (uc_address ? IBV_QP_AV : 0);
}

/* One QP, tried with one transition after the other. */
class Trial {
public:
	Trial(const Device &device, ibv_qp_type type) : type_(type), qp_(device, type) {}

	void try_all(ibv_qp_state from, ibv_qp_state to);

private:
	void attempt(ibv_qp_state from, ibv_qp_state to, int mask, bool good);

	ibv_qp_type type_;
	LoneQp qp_;
};

void Trial::attempt(ibv_qp_state from, ibv_qp_state to, int mask, bool good)
{
	if (qp_.state() != from)
		qp_.lead_to(from);
	const int err = qp_.go(to, mask);
	check(err == (good ? 0 : EINVAL), "%s: from %s to %s with attributes %#x: %s%s",
	      name_of(type_), name_of(from), name_of(to), static_cast<unsigned>(mask),
	      std::strerror(err), good ? ", but it is legal" : " instead of EINVAL");
	const ibv_qp_state now = qp_.state(), expected = good ? to : from;
	check(now == expected, "%s: in %s after it was %s from %s to %s", name_of(type_),
	      name_of(now), good ? "led" : "refused to go", name_of(from), name_of(to));
}

void Trial::try_all(ibv_qp_state from, ibv_qp_state to)
{
	const Transition t = transition(type_, from, to);

	attempt(from, to, t.required, t.legal);
	for (int bit = IBV_QP_STATE << 1; bit & kStandardBits; bit <<= 1) {
		if (t.required & bit) {
			attempt(from, to, t.required & ~bit, false);
			continue;
		}
		const int takes = (t.optional & ~refused(type_, from)) | ignored(type_);
		attempt(from, to, t.required | bit, t.legal && takes & bit);
	}
}

void every_transition(Session &s, ibv_qp_type type)
{
	Trial trial(s.device, type);
	for (const ibv_qp_state from : kStates) {
		if (from == IBV_QPS_SQE) /* only an error leads there: see sqe-uc and sqe-ud */
			continue;
		/* A raw QP has no packets under way that SQD could wait for. */
		if (from == IBV_QPS_SQD && type == IBV_QPT_RAW_PACKET)
			continue;
		for (const ibv_qp_state to : kStates)
			if (to != IBV_QPS_SQD || type != IBV_QPT_RAW_PACKET)
				trial.try_all(from, to);
	}
}

template <ibv_qp_type type>
void life(Session &s)
{
	every_transition(s, type);
}

/* ---- values -------------------------------------------------------------------------- */

struct BadValue {
	const char *what;
	ibv_qp_state from, to;
	int bit;
	void (*spoil)(ibv_qp_attr &attr, const Device &device);
};

constexpr BadValue kBadValues[] = {
        {"P_Key index", IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX,
         [](ibv_qp_attr &a, const Device &) { a.pkey_index = 1; }},
        {"port", IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PORT,
         [](ibv_qp_attr &a, const Device &) { a.port_num = 2; }},
        {"rights", IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_ACCESS_FLAGS,
         [](ibv_qp_attr &a, const Device &) { a.qp_access_flags = 1 << 15; }},
        {"path MTU", IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_PATH_MTU,
         [](ibv_qp_attr &a, const Device &) { a.path_mtu = static_cast<ibv_mtu>(6); }},
        {"path MTU 0", IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_PATH_MTU,
         [](ibv_qp_attr &a, const Device &) { a.path_mtu = static_cast<ibv_mtu>(0); }},
        {"GID index", IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV,
         [](ibv_qp_attr &a, const Device &) { a.ah_attr.grh.sgid_index = 250; }},
        {"address without GRH", IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV,
         [](ibv_qp_attr &a, const Device &) { a.ah_attr.is_global = 0; }},
        {"reads to answer", IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_MAX_DEST_RD_ATOMIC,
         [](ibv_qp_attr &a, const Device &d) {
	         a.max_dest_rd_atomic = static_cast<uint8_t>(d.attr().max_qp_rd_atom + 1);
         }},
        {"RNR timer", IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_MIN_RNR_TIMER,
         [](ibv_qp_attr &a, const Device &) { a.min_rnr_timer = 32; }},
        {"peer QPN", IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_DEST_QPN,
         [](ibv_qp_attr &a, const Device &) { a.dest_qp_num = 1 << 24; }},
        {"timeout", IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_TIMEOUT,
         [](ibv_qp_attr &a, const Device &) { a.timeout = 32; }},
        {"retries", IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_RETRY_CNT,
         [](ibv_qp_attr &a, const Device &) { a.retry_cnt = 8; }},
        {"RNR retries", IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_RNR_RETRY,
         [](ibv_qp_attr &a, const Device &) { a.rnr_retry = 8; }},
        {"reads to ask", IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_MAX_QP_RD_ATOMIC,
         [](ibv_qp_attr &a, const Device &d) {
	         a.max_rd_atomic = static_cast<uint8_t>(d.attr().max_qp_init_rd_atom + 1);
         }},
};

void bad_values(Session &s)
{
	const LoneQp qp(s.device, IBV_QPT_RC);
	for (const BadValue &bad : kBadValues) {
		qp.lead_to(bad.from);
		ibv_qp_attr attr = qp.attributes();
		attr.qp_state = bad.to;
		bad.spoil(attr, s.device);
		const int required = transition(IBV_QPT_RC, bad.from, bad.to).required;
		const int err = qp.modify(attr, IBV_QP_STATE | required | bad.bit);
		check(err == EINVAL, "a bad %s: %s instead of EINVAL", bad.what,
		      std::strerror(err));
		check(qp.state() == bad.from, "a bad %s: the QP has moved", bad.what);
	}
}

/* Programs give a QP the rights of their regions. Those that only a region has do nothing. */
void region_rights(Session &s)
{
	constexpr unsigned kOfQps =
	        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	constexpr unsigned kOfRegions[] = {IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_MW_BIND,
	                                   IBV_ACCESS_ZERO_BASED,  IBV_ACCESS_ON_DEMAND,
	                                   IBV_ACCESS_HUGETLB,     IBV_ACCESS_RELAXED_ORDERING};
	const LoneQp qp(s.device, IBV_QPT_RC);
	const int required = transition(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT).required;
	for (const unsigned right : kOfRegions) {
		qp.lead_to(IBV_QPS_RESET);
		ibv_qp_attr attr = qp.attributes();
		attr.qp_state = IBV_QPS_INIT;
		attr.qp_access_flags = kOfQps | right;
		const int err = qp.modify(attr, IBV_QP_STATE | required);
		check(!err, "right %#x: %s", right, std::strerror(err));
		check((qp.query().qp_access_flags & kOfQps) == kOfQps, "right %#x: the QP has %#x",
		      right, qp.query().qp_access_flags);
	}
}

/* Well-formed requests for what the card does not do. */
void unsupported(Session &s)
{
	const LoneQp qp(s.device, IBV_QPT_RC);
	for (const ibv_mig_state state : {IBV_MIG_REARM, IBV_MIG_ARMED}) {
		qp.lead_to(IBV_QPS_RTS);
		ibv_qp_attr attr = {};
		attr.path_mig_state = state;
		const int err = qp.modify(attr, IBV_QP_PATH_MIG_STATE);
		check(err == EOPNOTSUPP, "path migration: %s instead of EOPNOTSUPP",
		      std::strerror(err));
	}
}

/* A modify with a wrong cur_qp_state is refused and changes nothing. */
void wrong_cur_state(Session &s)
{
	const LoneQp qp(s.device, IBV_QPT_RC);
	qp.lead_to(IBV_QPS_RTS);
	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_RTS;
	attr.cur_qp_state = IBV_QPS_SQD;
	const int err = qp.modify(attr, IBV_QP_STATE | IBV_QP_CUR_STATE);
	check(err == EINVAL, "a wrong current state: %s instead of EINVAL", std::strerror(err));
	check(qp.state() == IBV_QPS_RTS, "the QP has moved");
}

/* ---- queries ------------------------------------------------------------------------- */

void check_attribute(unsigned is, unsigned expected, const char *what)
{
	check(is == expected, "ibv_query_qp tells %s %u instead of %u", what, is, expected);
}

/* But for the hop limit, which ib_core takes from the route. */
void check_address(const ibv_ah_attr &is, const ibv_ah_attr &expected)
{
	check_attribute(is.is_global, 1, "is_global");
	check(!std::memcmp(&is.grh.dgid, &expected.grh.dgid, sizeof(is.grh.dgid)),
	      "ibv_query_qp tells another destination GID");
	check_attribute(is.grh.sgid_index, expected.grh.sgid_index, "sgid_index");
	check_attribute(is.grh.traffic_class, expected.grh.traffic_class, "traffic_class");
	check_attribute(is.grh.flow_label, expected.grh.flow_label, "flow_label");
	check_attribute(is.sl, expected.sl, "sl");
	check_attribute(is.static_rate, expected.static_rate, "static_rate");
	check_attribute(is.port_num, expected.port_num, "port_num of the address");
}

ibv_qp_attr unusual(const LoneQp &qp)
{
	ibv_qp_attr attr = qp.attributes();
	attr.qp_access_flags = IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ;
	attr.path_mtu = IBV_MTU_512;
	attr.timeout = 17;
	attr.retry_cnt = 3;
	attr.rnr_retry = 5;
	attr.min_rnr_timer = 21;
	attr.max_rd_atomic = 3;
	attr.max_dest_rd_atomic = 2;
	attr.rq_psn = 0xabcdef;
	attr.sq_psn = 0xfedcba;
	attr.dest_qp_num = 0x654321;
	attr.ah_attr.grh.traffic_class = 0x68;
	attr.ah_attr.grh.flow_label = 0x98765;
	attr.ah_attr.sl = 4;
	attr.ah_attr.static_rate = IBV_RATE_10_GBPS;
	return attr;
}

void query_connected(Session &s)
{
	const LoneQp qp(s.device, IBV_QPT_RC);
	ibv_qp_attr set = unusual(qp);
	for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
		const Transition t = transition(IBV_QPT_RC, qp.state(), to);
		set.qp_state = to;
		check(!qp.modify(set, IBV_QP_STATE | t.required), "to %s", name_of(to));
	}

	const ibv_qp_attr is = qp.query();
	check_attribute(is.qp_state, IBV_QPS_RTS, "qp_state");
	check_attribute(is.cur_qp_state, IBV_QPS_RTS, "cur_qp_state");
	check_attribute(is.qp_access_flags, set.qp_access_flags, "qp_access_flags");
	check_attribute(is.path_mtu, set.path_mtu, "path_mtu");
	check_attribute(is.path_mig_state, IBV_MIG_MIGRATED, "path_mig_state");
	check_attribute(is.port_num, set.port_num, "port_num");
	check_attribute(is.timeout, set.timeout, "timeout");
	check_attribute(is.retry_cnt, set.retry_cnt, "retry_cnt");
	check_attribute(is.rnr_retry, set.rnr_retry, "rnr_retry");
	check_attribute(is.min_rnr_timer, set.min_rnr_timer, "min_rnr_timer");
	check_attribute(is.max_rd_atomic, set.max_rd_atomic, "max_rd_atomic");
	check_attribute(is.max_dest_rd_atomic, set.max_dest_rd_atomic, "max_dest_rd_atomic");
	check_attribute(is.rq_psn, set.rq_psn, "rq_psn");
	check_attribute(is.sq_psn, set.sq_psn, "sq_psn");
	check_attribute(is.dest_qp_num, set.dest_qp_num, "dest_qp_num");
	check_address(is.ah_attr, set.ah_attr);
}

void query_datagram(Session &s)
{
	const LoneQp qp(s.device, IBV_QPT_UD);
	qp.lead_to(IBV_QPS_RTS);
	check_attribute(qp.query().qkey, qp.attributes().qkey, "qkey");
	ibv_qp_attr attr = {};
	attr.qkey = 0x777;
	check(!qp.modify(attr, IBV_QP_QKEY), "another Q_Key in RTS");
	check_attribute(qp.query().qkey, 0x777, "qkey");
}

void query_created(Session &s)
{
	const CqPtr cq = make_cq(s.device, 16);
	const SrqPtr srq = make_srq(s.device, 16);
	ibv_qp_init_attr init = {};
	init.send_cq = cq.get();
	init.recv_cq = cq.get();
	init.srq = srq.get();
	init.qp_type = IBV_QPT_RC;
	init.sq_sig_all = 1;
	init.cap = {.max_send_wr = 5,
	            .max_recv_wr = 0,
	            .max_send_sge = 3,
	            .max_recv_sge = 0,
	            .max_inline_data = 100};
	const QpPtr qp(ibv_create_qp(s.device.pd(), &init));
	check(qp.get(), "ibv_create_qp with an SRQ: %s", std::strerror(errno));

	ibv_qp_attr attr = {};
	ibv_qp_init_attr told = {};
	check(!ibv_query_qp(qp.get(), &attr, IBV_QP_CAP, &told), "ibv_query_qp");
	check(told.send_cq == cq.get() && told.recv_cq == cq.get() && told.srq == srq.get(),
	      "ibv_query_qp tells other queues");
	check_attribute(told.qp_type, IBV_QPT_RC, "qp_type");
	check_attribute(static_cast<unsigned>(told.sq_sig_all), 1, "sq_sig_all");
	check_attribute(attr.cap.max_send_wr, init.cap.max_send_wr, "max_send_wr");
	check_attribute(attr.cap.max_send_sge, init.cap.max_send_sge, "max_send_sge");
	check_attribute(attr.cap.max_inline_data, init.cap.max_inline_data, "max_inline_data");
	check_attribute(attr.cap.max_recv_wr, 0, "max_recv_wr");
	check_attribute(attr.cap.max_recv_sge, 0, "max_recv_sge");
}

constexpr Case kCases[] = {
        {"life-rc", "RC: every transition with every attribute", life<IBV_QPT_RC>},
        {"life-uc", "UC: every transition with every attribute", life<IBV_QPT_UC>},
        {"life-ud", "UD: every transition with every attribute", life<IBV_QPT_UD>},
        {"life-xrc-send", "XRC_SEND: every transition with every attribute",
         life<IBV_QPT_XRC_SEND>},
        {"life-xrc-recv", "XRC_RECV: every transition with every attribute",
         life<IBV_QPT_XRC_RECV>},
        {"life-raw", "RAW_PACKET: every transition with every attribute", life<IBV_QPT_RAW_PACKET>},
        {"bad-values", "attributes out of range", bad_values},
        {"region-rights", "rights that only regions have", region_rights},
        {"unsupported", "path migration", unsupported},
        {"wrong-cur-state", "a wrong current state", wrong_cur_state},
        {"query-connected", "a query tells what an RC QP was given", query_connected},
        {"query-datagram", "a query tells what a UD QP was given", query_datagram},
        {"query-created", "a query tells how a QP was created", query_created},
};

} // namespace

std::span<const Case> lifecycle_cases()
{
	return kCases;
}

} // namespace tern::guest
