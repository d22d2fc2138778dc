// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/qp_attr.h"

#include "qemu/rnic/limits.h"

#include <algorithm>

#include "qemu/rnic/formats/psn.h"

namespace tern {

using namespace hw;

namespace {

/* A set of QP types as a bit mask. */
using Types = uint32_t;
constexpr Types kRc = 1u << TERN_QPT_RC;
constexpr Types kUc = 1u << TERN_QPT_UC;
constexpr Types kUd = 1u << TERN_QPT_UD;
constexpr Types kGsi = 1u << TERN_QPT_GSI;
constexpr Types kXrcIni = 1u << TERN_QPT_XRC_INI;
constexpr Types kXrcTgt = 1u << TERN_QPT_XRC_TGT;
constexpr Types kRaw = 1u << TERN_QPT_RAW;
constexpr Types kEth = 1u << TERN_QPT_ETH;
constexpr Types kConnected = kRc | kUc | kXrcIni | kXrcTgt;
constexpr Types kDatagram = kUd | kGsi;
constexpr Types kResponder = kRc | kXrcTgt; /* of a reliable service */
constexpr Types kFrames = kRaw | kEth;
constexpr Types kPaced = kRc | kUc | kXrcIni | kUd | kRaw;
constexpr Types kAll = kConnected | kDatagram;

/* A transition with its required and optional attributes for QPs of @types. The rules of one
 * transition add up. */
struct Rule {
	tern_hw_qp_state from;
	tern_hw_qp_state to;
	Types types;
	uint32_t required;
	uint32_t optional;
};

constexpr auto kReset = TERN_QPS_RESET;
constexpr auto kInit = TERN_QPS_INIT;
constexpr auto kRtr = TERN_QPS_RTR;
constexpr auto kRts = TERN_QPS_RTS;
constexpr auto kSqd = TERN_QPS_SQD;
constexpr auto kSqe = TERN_QPS_SQE;

constexpr uint32_t kPort = TERN_QP_PKEY_INDEX | TERN_QP_PORT;
constexpr uint32_t kPath = TERN_QP_AV | TERN_QP_PATH_MTU | TERN_QP_DEST_QPN | TERN_QP_RQ_PSN;
constexpr uint32_t kRetry = TERN_QP_TIMEOUT | TERN_QP_RETRY_CNT | TERN_QP_RNR_RETRY;
constexpr uint32_t kResponderLimits = TERN_QP_MAX_DEST_RD_ATOMIC | TERN_QP_MIN_RNR_TIMER;

constexpr Rule kRules[] = {
        {kReset, kInit, kConnected, kPort | TERN_QP_ACCESS_FLAGS, 0},
        {kReset, kInit, kUd, kPort | TERN_QP_QKEY, 0},
        /* Optional: there is one port, and the GSI's Q_Key is fixed. */
        {kReset, kInit, kGsi, TERN_QP_PKEY_INDEX, TERN_QP_PORT | TERN_QP_QKEY},
        {kReset, kInit, kFrames, 0, 0},
        {kReset, kInit, kRaw, 0, TERN_QP_PORT},

        {kInit, kInit, kConnected, 0, kPort | TERN_QP_ACCESS_FLAGS},
        {kInit, kInit, kDatagram, 0, kPort | TERN_QP_QKEY},
        {kInit, kInit, kFrames, 0, 0},
        {kInit, kInit, kRaw, 0, TERN_QP_PORT},

        {kInit, kRtr, kConnected, kPath, TERN_QP_ACCESS_FLAGS | TERN_QP_PKEY_INDEX},
        {kInit, kRtr, kResponder, kResponderLimits, 0},
        {kInit, kRtr, kDatagram, 0, TERN_QP_PKEY_INDEX | TERN_QP_QKEY},
        {kInit, kRtr, kFrames, 0, 0},

        {kRtr, kRts, kAll, TERN_QP_SQ_PSN, TERN_QP_CUR_STATE},
        {kRtr, kRts, kConnected, 0, TERN_QP_ACCESS_FLAGS},
        {kRtr, kRts, kDatagram, 0, TERN_QP_QKEY},
        {kRtr, kRts, kRc | kXrcIni, kRetry | TERN_QP_MAX_QP_RD_ATOMIC, 0},
        {kRtr, kRts, kXrcTgt, TERN_QP_TIMEOUT, 0},
        {kRtr, kRts, kResponder, 0, TERN_QP_MIN_RNR_TIMER},
        {kRtr, kRts, kFrames, 0, 0},
        {kRtr, kRts, kPaced, 0, TERN_QP_RATE_LIMIT},

        {kRts, kRts, kConnected, 0, TERN_QP_CUR_STATE | TERN_QP_ACCESS_FLAGS},
        {kRts, kRts, kDatagram, 0, TERN_QP_CUR_STATE | TERN_QP_QKEY},
        {kRts, kRts, kResponder, 0, TERN_QP_MIN_RNR_TIMER},
        {kRts, kRts, kFrames, 0, 0},
        {kRts, kRts, kPaced, 0, TERN_QP_RATE_LIMIT},

        {kRts, kSqd, kAll, 0, TERN_QP_EN_SQD_ASYNC_NOTIFY},

        {kSqd, kSqd, kConnected, 0, TERN_QP_AV | TERN_QP_ACCESS_FLAGS | TERN_QP_PKEY_INDEX},
        {kSqd, kSqd, kDatagram, 0, TERN_QP_PKEY_INDEX | TERN_QP_QKEY},
        {kSqd, kSqd, kConnected & ~kUc, 0, TERN_QP_PORT | TERN_QP_TIMEOUT},
        {kSqd, kSqd, kRc | kXrcIni, 0, kRetry | TERN_QP_MAX_QP_RD_ATOMIC},
        {kSqd, kSqd, kResponder, 0, kResponderLimits},

        {kSqd, kRts, kConnected, 0, TERN_QP_CUR_STATE | TERN_QP_ACCESS_FLAGS},
        {kSqd, kRts, kDatagram, 0, TERN_QP_CUR_STATE | TERN_QP_QKEY},
        {kSqd, kRts, kResponder, 0, TERN_QP_MIN_RNR_TIMER},

        /* SQE exists for unreliable services only. */
        {kSqe, kRts, kUc, 0, TERN_QP_CUR_STATE | TERN_QP_ACCESS_FLAGS},
        {kSqe, kRts, kDatagram, 0, TERN_QP_CUR_STATE | TERN_QP_QKEY},
};

bool step_valid(tern_hw_qp_type type, tern_hw_qp_state from, tern_hw_qp_state to,
                uint32_t attributes)
{
	if (to == TERN_QPS_RESET || to == TERN_QPS_ERR)
		return attributes == 0;
	bool known = false;
	uint32_t required = 0;
	uint32_t allowed = 0;
	for (const Rule &rule : kRules) {
		if (rule.from != from || rule.to != to || !(rule.types & 1u << type))
			continue;
		known = true;
		required |= rule.required;
		allowed |= rule.required | rule.optional;
	}
	return known && (attributes & required) == required && !(attributes & ~allowed);
}

/* Checks the values of the attributes selected by @mask. */
CommandStatus check_values(uint32_t mask, const tern_hw_qp_attr &a)
{
	const auto within = [mask](uint32_t bit, uint64_t value, uint64_t low, uint64_t high) {
		return !(mask & bit) || (value >= low && value <= high);
	};
	constexpr uint8_t kRemoteRights = TERN_ACCESS_LOCAL_WRITE | TERN_ACCESS_REMOTE_WRITE |
	                                  TERN_ACCESS_REMOTE_READ | TERN_ACCESS_REMOTE_ATOMIC |
	                                  TERN_ACCESS_FLUSH_GLOBAL;
	return check_fields(
	        {{a.access, within(TERN_QP_ACCESS_FLAGS, a.access & ~kRemoteRights, 0, 0)},
	         {a.path_mtu, within(TERN_QP_PATH_MTU, a.path_mtu, 1, 5)},
	         {a.timeout, within(TERN_QP_TIMEOUT, a.timeout, 0, 31)},
	         {a.retry_cnt, within(TERN_QP_RETRY_CNT, a.retry_cnt, 0, 7)},
	         {a.rnr_retry, within(TERN_QP_RNR_RETRY, a.rnr_retry, 0, 7)},
	         {a.min_rnr_timer, within(TERN_QP_MIN_RNR_TIMER, a.min_rnr_timer, 0, 31)},
	         {a.max_rd_atomic,
	          within(TERN_QP_MAX_QP_RD_ATOMIC, a.max_rd_atomic, 0, kMaxRdAtomic)},
	         {a.max_dest_rd_atomic,
	          within(TERN_QP_MAX_DEST_RD_ATOMIC, a.max_dest_rd_atomic, 0, kMaxRdAtomic)},
	         {a.rq_psn, within(TERN_QP_RQ_PSN, a.rq_psn.get(), 0, Psn::kMask)},
	         {a.sq_psn, within(TERN_QP_SQ_PSN, a.sq_psn.get(), 0, Psn::kMask)},
	         {a.dest_qpn, within(TERN_QP_DEST_QPN, a.dest_qpn.get(), 0, 0xffffff)},
	         {a.pkey_index, within(TERN_QP_PKEY_INDEX, a.pkey_index.get(), 0, 0)},
	         {a.port, within(TERN_QP_PORT, a.port, 1, 1)},
	         {a.flow_label, within(TERN_QP_AV, a.flow_label.get(), 0, 0xfffff)},
	         {a.sl, within(TERN_QP_AV, a.sl, 0, 15)},
	         {a.en_sqd_async_notify,
	          within(TERN_QP_EN_SQD_ASYNC_NOTIFY, a.en_sqd_async_notify, 0, 1)},
	         {a.rate_limit.rate,
	          within(TERN_QP_RATE_LIMIT, a.rate_limit.rate.get(), 0, TERN_MAX_RATE_LIMIT)}});
}

} // namespace

tern_hw_qp_state next_state(tern_hw_qp_state from, uint32_t mask, const tern_hw_qp_attr &attr)
{
	return mask & TERN_QP_STATE ? static_cast<tern_hw_qp_state>(attr.state) : from;
}

CommandStatus check_attributes(tern_hw_qp_type type, tern_hw_qp_state from, uint32_t mask,
                               const tern_hw_qp_attr &attr)
{
	if (!step_valid(type, from, next_state(from, mask, attr), mask & ~TERN_QP_STATE))
		return TERN_AQ_BAD_STATE;
	if ((mask & TERN_QP_CUR_STATE) && attr.cur_state != static_cast<uint8_t>(from))
		return TERN_AQ_BAD_STATE;
	return check_values(mask, attr);
}

void take_attributes(uint32_t mask, const tern_hw_qp_attr &from, tern_hw_qp_attr &to)
{
	const auto take = [&](uint32_t bit, auto member) {
		if (mask & bit)
			to.*member = from.*member;
	};
	take(TERN_QP_ACCESS_FLAGS, &tern_hw_qp_attr::access);
	take(TERN_QP_PKEY_INDEX, &tern_hw_qp_attr::pkey_index);
	take(TERN_QP_PORT, &tern_hw_qp_attr::port);
	take(TERN_QP_QKEY, &tern_hw_qp_attr::qkey);
	take(TERN_QP_PATH_MTU, &tern_hw_qp_attr::path_mtu);
	take(TERN_QP_TIMEOUT, &tern_hw_qp_attr::timeout);
	take(TERN_QP_RETRY_CNT, &tern_hw_qp_attr::retry_cnt);
	take(TERN_QP_RNR_RETRY, &tern_hw_qp_attr::rnr_retry);
	take(TERN_QP_MIN_RNR_TIMER, &tern_hw_qp_attr::min_rnr_timer);
	take(TERN_QP_MAX_QP_RD_ATOMIC, &tern_hw_qp_attr::max_rd_atomic);
	take(TERN_QP_MAX_DEST_RD_ATOMIC, &tern_hw_qp_attr::max_dest_rd_atomic);
	take(TERN_QP_RQ_PSN, &tern_hw_qp_attr::rq_psn);
	take(TERN_QP_SQ_PSN, &tern_hw_qp_attr::sq_psn);
	take(TERN_QP_DEST_QPN, &tern_hw_qp_attr::dest_qpn);
	take(TERN_QP_EN_SQD_ASYNC_NOTIFY, &tern_hw_qp_attr::en_sqd_async_notify);
	if (!(mask & TERN_QP_AV))
		return;
	to.sgid_index = from.sgid_index;
	std::ranges::copy(from.dgid, to.dgid);
	std::ranges::copy(from.dmac, to.dmac);
	to.traffic_class = from.traffic_class;
	to.hop_limit = from.hop_limit;
	to.flow_label = from.flow_label;
	to.udp_sport = from.udp_sport;
	to.sl = from.sl;
}

} // namespace tern
