// SPDX-License-Identifier: GPL-2.0-or-later
/* This file has the operations on CQs, SRQs and QPs, and on the work in their rings. */
#include <rdma/ib_user_ioctl_verbs.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tern/tern_hw.h"
#include "uverbs_fuzzer.h"

namespace tern::guest::uverbs {
namespace {

constexpr uint32_t kMaxCqes = 1 << 22, kMaxSends = 1 << 18; /* of the card */
constexpr uint32_t kPsn = 0x10;
constexpr uint8_t kPort = 1;
/* enum ib_qp_state and the bits of enum ib_qp_attr_mask, which are those of tern_hw.h, too. */
constexpr uint8_t kReset = 0, kInit = 1, kRtr = 2, kRts = 3, kSqd = 4, kErr = 6;
constexpr uint32_t kRateLimit = TERN_QP_RATE_LIMIT;

/* --- CQs --- */

Object object_of(const tern_create_cq_resp &driver, uint32_t handle)
{
	return {.handle = handle,
	        .number = driver.cqn,
	        .key = driver.buf_key,
	        .length = driver.buf_len,
	        .record_offset = driver.record_offset};
}

/** Of most CQs none. */
int32_t channel(Fuzzer &f)
{
	return f.rng.chance(1, 2) ? -1 : static_cast<int32_t>(f.handle(Kind::kChannel));
}

int create_cq(Fuzzer &f)
{
	ib_uverbs_create_cq in = {};
	ib_uverbs_create_cq_resp out = {};
	tern_create_cq_resp driver = {};
	in.cqe = f.size(kLarge, kMaxCqes);
	in.comp_vector = f.value(0u);
	in.comp_channel = channel(f);
	in.reserved = f.value(0u);
	const int err = f.call(Command{.number = IB_USER_VERBS_CMD_CREATE_CQ,
	                               .in = part(in),
	                               .out = part(out),
	                               .driver_out = part(driver)});
	if (!err)
		f.created(Kind::kCq, object_of(driver, out.cq_handle));
	return err;
}

int create_cq_ex(Fuzzer &f)
{
	ib_uverbs_ex_create_cq in = {};
	ib_uverbs_ex_create_cq_resp out = {};
	tern_create_cq_resp driver = {};
	in.cqe = f.size(kLarge, kMaxCqes);
	in.comp_vector = f.value(0u);
	in.comp_channel = channel(f);
	in.comp_mask = f.value(0u);
	in.flags = f.value(f.one_of<uint32_t>({0, IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION}));
	const int err = f.call(Command{.number = IB_USER_VERBS_EX_CMD_CREATE_CQ,
	                               .in = part(in),
	                               .out = part(out),
	                               .driver_out = part(driver),
	                               .extended = true});
	if (!err)
		f.created(Kind::kCq, object_of(driver, out.base.cq_handle));
	return err;
}

int create_cq_by_ioctl(Fuzzer &f)
{
	uint32_t cqe;
	tern_create_cq_resp driver = {};
	Method method(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	method.handle(UVERBS_ATTR_CREATE_CQ_HANDLE)
	        .in(UVERBS_ATTR_CREATE_CQ_CQE, f.size(kLarge, kMaxCqes))
	        .in(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, f.rng.next())
	        .in(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, f.value(0u))
	        .in(UVERBS_ATTR_CREATE_CQ_FLAGS, f.value(0u))
	        .out(UVERBS_ATTR_CREATE_CQ_RESP_CQE, cqe)
	        .out(UVERBS_ATTR_UHW_OUT, driver);
	if (f.rng.chance(1, 3))
		method.handle(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, f.handle(Kind::kChannel));
	if (f.rng.chance(1, 3))
		method.handle(UVERBS_ATTR_CREATE_CQ_EVENT_FD, f.handle(Kind::kAsync));
	const int err = f.call(method);
	if (!err)
		f.created(Kind::kCq, object_of(driver, method.result(0)));
	return err;
}

int resize_cq(Fuzzer &f)
{
	Object cq = f.object(Kind::kCq);
	ib_uverbs_resize_cq in = {};
	ib_uverbs_resize_cq_resp out = {};
	tern_resize_cq_resp driver = {};
	in.cq_handle = cq.handle;
	in.cqe = f.size(kLarge, kMaxCqes);
	const int err = f.call(Command{.number = IB_USER_VERBS_CMD_RESIZE_CQ,
	                               .in = part(in),
	                               .out = part(out),
	                               .driver_out = part(driver)});
	if (err)
		return err;
	cq.key = driver.buf_key;
	cq.length = driver.buf_len;
	cq.record_offset = driver.record_offset;
	f.context->add_key({cq.key, cq.length});
	f.context->update(Kind::kCq, cq);
	return 0;
}

int modify_cq(Fuzzer &f)
{
	ib_uverbs_ex_modify_cq in = {};
	in.cq_handle = f.handle(Kind::kCq);
	in.attr_mask = f.value(1u); /* IB_CQ_MODERATE */
	in.attr.cq_count = static_cast<uint16_t>(f.rng.below(8));
	in.attr.cq_period = f.value(static_cast<uint16_t>(f.rng.below(100)));
	in.reserved = f.value(0u);
	return f.call(Command{
	        .number = IB_USER_VERBS_EX_CMD_MODIFY_CQ, .in = part(in), .extended = true});
}

/* --- SRQs --- */

Object object_of(const tern_srq_buf &buf, uint32_t handle)
{
	return {.handle = handle,
	        .number = buf.srqn,
	        .key = buf.buf_key,
	        .length = buf.buf_len,
	        .record_offset = buf.record_offset,
	        .rq_log_size = buf.log_size,
	        .rq_log_stride = buf.log_stride};
}

int create_srq(Fuzzer &f)
{
	ib_uverbs_create_srq in = {};
	ib_uverbs_create_srq_resp out = {};
	tern_create_srq_resp driver = {};
	in.pd_handle = f.handle(Kind::kPd);
	in.max_wr = f.size(kLarge, kMaxReceives);
	in.max_sge = f.value(1u);
	in.srq_limit = f.value(0u);
	const int err = f.call(Command{.number = IB_USER_VERBS_CMD_CREATE_SRQ,
	                               .in = part(in),
	                               .out = part(out),
	                               .driver_out = part(driver)});
	if (!err)
		f.created(Kind::kSrq, object_of(driver.buf, out.srq_handle));
	return err;
}

int create_xsrq(Fuzzer &f, uint32_t type)
{
	ib_uverbs_create_xsrq in = {};
	ib_uverbs_create_srq_resp out = {};
	tern_create_srq_cmd driver_in = {.max_ops = f.value(8u), .reserved = f.value(0u)};
	tern_create_srq_resp driver = {};
	in.srq_type = f.value(type);
	in.pd_handle = f.handle(Kind::kPd);
	in.max_wr = f.size(kLarge, kMaxReceives);
	in.max_sge = f.value(1u);
	in.max_num_tags = type == IB_UVERBS_SRQT_TM ? f.value(16u) : 0;
	in.xrcd_handle = f.handle(Kind::kXrcd);
	in.cq_handle = f.handle(Kind::kCq);
	Command command{.number = IB_USER_VERBS_CMD_CREATE_XSRQ,
	                .in = part(in),
	                .out = part(out),
	                .driver_out = part(driver)};
	if (type == IB_UVERBS_SRQT_TM)
		command.driver_in = part(driver_in);
	const int err = f.call(command);
	if (!err)
		f.created(Kind::kSrq, object_of(driver.buf, out.srq_handle));
	return err;
}

int create_srq_xrc(Fuzzer &f)
{
	return create_xsrq(f, IB_UVERBS_SRQT_XRC);
}

int create_srq_tags(Fuzzer &f)
{
	return create_xsrq(f, IB_UVERBS_SRQT_TM);
}

int create_srq_by_ioctl(Fuzzer &f)
{
	const uint64_t type =
	        f.value(f.one_of<uint64_t>({IB_UVERBS_SRQT_BASIC, IB_UVERBS_SRQT_XRC}));
	uint32_t max_wr, max_sge, number;
	tern_create_srq_resp driver = {};
	Method method(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
	method.handle(UVERBS_ATTR_CREATE_SRQ_HANDLE)
	        .handle(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, f.handle(Kind::kPd))
	        .in(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, f.rng.next())
	        .in(UVERBS_ATTR_CREATE_SRQ_MAX_WR, f.size(kLarge, kMaxReceives))
	        .in(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, f.value(1u))
	        .in(UVERBS_ATTR_CREATE_SRQ_LIMIT, f.value(0u))
	        .in(UVERBS_ATTR_CREATE_SRQ_TYPE, type)
	        .out(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, max_wr)
	        .out(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, max_sge)
	        .out(UVERBS_ATTR_UHW_OUT, driver);
	if (type == IB_UVERBS_SRQT_XRC)
		method.handle(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, f.handle(Kind::kXrcd))
		        .handle(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, f.handle(Kind::kCq))
		        .out(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, number);
	const int err = f.call(method);
	if (!err)
		f.created(Kind::kSrq, object_of(driver.buf, method.result(0)));
	return err;
}

int modify_srq(Fuzzer &f)
{
	Object srq = f.object(Kind::kSrq);
	tern_srq_buf buf = {};
	ib_uverbs_modify_srq in = {};
	tern_modify_srq_cmd driver = {.buf_addr = reinterpret_cast<uintptr_t>(&buf)};
	const bool resize = f.rng.chance(1, 2);
	if (f.rng.chance(1, 10))
		driver.buf_addr = f.bad_address();
	in.srq_handle = srq.handle;
	in.attr_mask = f.value(resize ? 1u : 2u); /* IB_SRQ_MAX_WR, IB_SRQ_LIMIT */
	in.max_wr = f.size(kLarge, kMaxReceives);
	in.srq_limit = f.value(1u);
	Command command{.number = IB_USER_VERBS_CMD_MODIFY_SRQ, .in = part(in)};
	if (resize)
		command.driver_in = part(driver);
	const int err = f.call(command);
	if (!err && buf.buf_len) {
		f.context->add_key({buf.buf_key, buf.buf_len});
		f.context->update(Kind::kSrq, object_of(buf, srq.handle));
	}
	return err;
}

int query_srq(Fuzzer &f)
{
	ib_uverbs_query_srq in = {};
	ib_uverbs_query_srq_resp out;
	in.srq_handle = f.handle(Kind::kSrq);
	return f.call(
	        Command{.number = IB_USER_VERBS_CMD_QUERY_SRQ, .in = part(in), .out = part(out)});
}

/* --- QPs --- */

Object object_of(const tern_create_qp_resp &driver, uint32_t handle, uint8_t type, uint32_t qpn)
{
	return {.handle = handle,
	        .number = qpn,
	        .key = driver.buf_key,
	        .length = driver.buf_len,
	        .rq_offset = driver.rq_offset,
	        .record_offset = driver.record_offset,
	        .sq_log_size = driver.sq_log_size,
	        .rq_log_size = driver.rq_log_size,
	        .rq_log_stride = driver.rq_log_stride,
	        .type = type,
	        .state = kReset};
}

/** Fills the fields that ib_uverbs_create_qp and ib_uverbs_ex_create_qp share. uverbs refuses an
 * SRQ or a CQ for a type of QP that uses none. */
template <class In>
void fill_qp(Fuzzer &f, uint8_t type, In &in)
{
	const bool target = type == IB_UVERBS_QPT_XRC_TGT;
	in.pd_handle = f.handle(target ? Kind::kXrcd : Kind::kPd);
	in.send_cq_handle = f.handle(Kind::kCq);
	in.recv_cq_handle = f.handle(Kind::kCq);
	in.is_srq = f.value(uint8_t{type < IB_UVERBS_QPT_RAW_PACKET && f.rng.chance(1, 3)});
	in.srq_handle = f.handle(Kind::kSrq);
	in.max_send_wr = f.size(kLarge, kMaxSends);
	in.max_recv_wr = f.size(kLarge, kMaxReceives);
	in.max_send_sge = f.value(2u);
	in.max_recv_sge = f.value(1u);
	in.max_inline_data = f.value(64u);
	in.sq_sig_all = f.value(uint8_t{1});
	in.qp_type = f.value(type);
	in.reserved = f.value(uint8_t{0});
}

int create_qp_by_write(Fuzzer &f, uint8_t type)
{
	ib_uverbs_create_qp in = {};
	ib_uverbs_create_qp_resp out = {};
	tern_create_qp_resp driver = {};
	fill_qp(f, type, in);
	const int err = f.call(Command{.number = IB_USER_VERBS_CMD_CREATE_QP,
	                               .in = part(in),
	                               .out = part(out),
	                               .driver_out = part(driver)});
	if (!err)
		f.created(Kind::kQp, object_of(driver, out.qp_handle, type, out.qpn));
	return err;
}

int create_qp_ex(Fuzzer &f, uint8_t type)
{
	ib_uverbs_ex_create_qp in = {};
	ib_uverbs_ex_create_qp_resp out = {};
	tern_create_qp_resp driver = {};
	fill_qp(f, type, in);
	in.comp_mask = f.value(0u);
	in.create_flags = f.value(0u);
	in.source_qpn = f.value(0u);
	const int err = f.call(Command{.number = IB_USER_VERBS_EX_CMD_CREATE_QP,
	                               .in = part(in),
	                               .out = part(out),
	                               .driver_out = part(driver),
	                               .extended = true});
	if (!err)
		f.created(Kind::kQp, object_of(driver, out.base.qp_handle, type, out.base.qpn));
	return err;
}

template <uint8_t type>
int create_qp(Fuzzer &f)
{
	return f.rng.chance(1, 2) ? create_qp_by_write(f, type) : create_qp_ex(f, type);
}

int create_qp_odd(Fuzzer &f)
{
	return create_qp_by_write(f, static_cast<uint8_t>(f.rng.below(16)));
}

int create_qp_by_ioctl(Fuzzer &f)
{
	const auto type = f.one_of<uint8_t>(
	        {IB_UVERBS_QPT_RC, IB_UVERBS_QPT_UC, IB_UVERBS_QPT_UD, IB_UVERBS_QPT_RAW_PACKET});
	const ib_uverbs_qp_cap cap = {f.size(kLarge, kMaxSends), f.size(kLarge, kMaxReceives),
	                              f.value(2u), f.value(1u), f.value(64u)};
	ib_uverbs_qp_cap got;
	uint32_t qpn = 0;
	tern_create_qp_resp driver = {};
	Method method(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	method.handle(UVERBS_ATTR_CREATE_QP_HANDLE)
	        .handle(UVERBS_ATTR_CREATE_QP_PD_HANDLE, f.handle(Kind::kPd))
	        .handle(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, f.handle(Kind::kCq))
	        .handle(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, f.handle(Kind::kCq))
	        .in(UVERBS_ATTR_CREATE_QP_USER_HANDLE, f.rng.next())
	        .in(UVERBS_ATTR_CREATE_QP_CAP, cap)
	        .in(UVERBS_ATTR_CREATE_QP_TYPE, f.value(uint64_t{type}))
	        .in(UVERBS_ATTR_CREATE_QP_FLAGS, f.value(0u))
	        .out(UVERBS_ATTR_CREATE_QP_RESP_CAP, got)
	        .out(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, qpn)
	        .out(UVERBS_ATTR_UHW_OUT, driver);
	if (f.rng.chance(1, 3))
		method.handle(UVERBS_ATTR_CREATE_QP_EVENT_FD, f.handle(Kind::kAsync));
	const int err = f.call(method);
	if (!err)
		f.created(Kind::kQp, object_of(driver, method.result(0), type, qpn));
	return err;
}

/** A target of another process, perhaps. */
int open_qp(Fuzzer &f)
{
	ib_uverbs_open_qp in = {};
	ib_uverbs_create_qp_resp out = {};
	in.pd_handle = f.handle(Kind::kXrcd);
	in.qpn = f.object(Kind::kQp).number;
	in.qp_type = f.value(uint8_t{IB_UVERBS_QPT_XRC_TGT});
	const int err = f.call(
	        Command{.number = IB_USER_VERBS_CMD_OPEN_QP, .in = part(in), .out = part(out)});
	if (!err)
		f.created(
		        Kind::kQp,
		        {.handle = out.qp_handle, .number = in.qpn, .type = IB_UVERBS_QPT_XRC_TGT});
	return err;
}

int query_qp(Fuzzer &f)
{
	ib_uverbs_query_qp in = {};
	ib_uverbs_query_qp_resp out;
	in.qp_handle = f.handle(Kind::kQp);
	in.attr_mask = static_cast<uint32_t>(f.rng.next());
	return f.call(
	        Command{.number = IB_USER_VERBS_CMD_QUERY_QP, .in = part(in), .out = part(out)});
}

/** The attributes that a transition takes, by type. */
uint32_t mask_of(uint8_t type, uint8_t state)
{
	const bool rc = type == IB_UVERBS_QPT_RC || type == IB_UVERBS_QPT_XRC_INI ||
	                type == IB_UVERBS_QPT_XRC_TGT;
	const bool uc = type == IB_UVERBS_QPT_UC;
	const bool starts = type != IB_UVERBS_QPT_XRC_TGT, answers = type != IB_UVERBS_QPT_XRC_INI;
	uint32_t mask = TERN_QP_STATE;
	if (type == IB_UVERBS_QPT_RAW_PACKET)
		return mask | (state == kInit ? TERN_QP_PORT : 0);
	if (state == kInit)
		return mask | TERN_QP_PKEY_INDEX | TERN_QP_PORT |
		       (rc || uc ? TERN_QP_ACCESS_FLAGS : TERN_QP_QKEY);
	if (state == kRtr && (rc || uc)) {
		mask |= TERN_QP_AV | TERN_QP_PATH_MTU | TERN_QP_DEST_QPN | TERN_QP_RQ_PSN;
		if (rc && answers)
			mask |= TERN_QP_MAX_DEST_RD_ATOMIC | TERN_QP_MIN_RNR_TIMER;
	}
	if (state == kRts) {
		mask |= TERN_QP_SQ_PSN;
		if (rc)
			mask |= TERN_QP_TIMEOUT;
		if (rc && starts)
			mask |= TERN_QP_RETRY_CNT | TERN_QP_RNR_RETRY | TERN_QP_MAX_QP_RD_ATOMIC;
	}
	return mask;
}

/** The other end: the QP itself, or another one. */
uint32_t peer_of(Fuzzer &f, const Object &qp)
{
	return f.rng.chance(2, 3) ? qp.number : f.object(Kind::kQp).number;
}

void fill_attributes(Fuzzer &f, const Object &qp, uint8_t state, ib_uverbs_modify_qp &in)
{
	f.destination(in.dest.dgid);
	in.dest.sgid_index = f.value(static_cast<uint8_t>(f.process.options.gid_index));
	in.dest.hop_limit = f.value(uint8_t{64});
	in.dest.is_global = f.value(uint8_t{1});
	in.dest.port_num = f.value(kPort);
	in.dest.flow_label = f.value(0u);
	in.alt_dest = in.dest;
	in.qp_handle = qp.handle;
	in.attr_mask = f.value(mask_of(qp.type, state));
	in.qkey = f.value(1u);
	in.rq_psn = f.value(kPsn);
	in.sq_psn = f.value(kPsn);
	in.dest_qp_num = f.value(peer_of(f, qp));
	in.qp_access_flags = f.value(0xfu);
	in.pkey_index = f.value(uint16_t{0});
	in.qp_state = f.value(state);
	in.cur_qp_state = f.value(qp.state);
	in.path_mtu = f.value(f.one_of<uint8_t>({1, 3}));
	in.path_mig_state = f.value(uint8_t{0});
	in.en_sqd_async_notify = f.value(uint8_t{1});
	in.max_rd_atomic = f.value(uint8_t{4});
	in.max_dest_rd_atomic = f.value(uint8_t{4});
	in.min_rnr_timer = f.value(uint8_t{1});
	in.port_num = f.value(kPort);
	in.timeout = f.value(uint8_t{8});
	in.retry_cnt = f.value(uint8_t{1});
	in.rnr_retry = f.value(uint8_t{1});
}

int modify_to(Fuzzer &f, Object &qp, uint8_t state)
{
	ib_uverbs_ex_modify_qp in = {};
	ib_uverbs_ex_modify_qp_resp out;
	tern_modify_qp_cmd driver = {.max_burst_sz = f.value(0u),
	                             .typical_pkt_sz = f.value(uint16_t{0}),
	                             .reserved = f.value(uint16_t{0})};
	fill_attributes(f, qp, state, in.base);
	int err;
	if (f.rng.chance(1, 3)) {
		in.rate_limit = f.value(1000000u);
		const bool limit = state == kRts && f.rng.chance(1, 2);
		in.base.attr_mask |= limit ? kRateLimit : 0;
		err = f.call(Command{.number = IB_USER_VERBS_EX_CMD_MODIFY_QP,
		                     .in = part(in),
		                     .out = part(out),
		                     .driver_in = limit ? part(driver) : Part{},
		                     .extended = true});
	} else {
		err = f.call(Command{.number = IB_USER_VERBS_CMD_MODIFY_QP, .in = part(in.base)});
	}
	if (!err) {
		qp.state = state;
		f.context->update(Kind::kQp, qp);
	}
	return err;
}

int modify_qp(Fuzzer &f)
{
	static constexpr uint8_t kNext[] = {kInit, kRtr, kRts, kSqd, kRts, kReset, kReset};
	Object qp = f.object(Kind::kQp);
	const bool forward = f.rng.chance(3, 4) && qp.state < std::size(kNext);
	return modify_to(f, qp, forward ? kNext[qp.state] : static_cast<uint8_t>(f.rng.below(8)));
}

int connect(Fuzzer &f)
{
	Object qp = f.object(Kind::kQp);
	int err = 0;
	if (qp.state != kReset)
		err = modify_to(f, qp, kReset);
	for (const uint8_t state : {kInit, kRtr, kRts})
		if (!err)
			err = modify_to(f, qp, state);
	return err;
}

int create_qp_rss(Fuzzer &f)
{
	ib_uverbs_ex_create_qp in = {};
	ib_uverbs_ex_create_qp_resp out = {};
	tern_create_rss_qp_cmd driver_in = {};
	tern_create_qp_resp driver = {};
	in.pd_handle = f.handle(Kind::kPd);
	in.qp_type = f.value(uint8_t{IB_UVERBS_QPT_RAW_PACKET});
	in.comp_mask = f.value(static_cast<uint32_t>(IB_UVERBS_CREATE_QP_MASK_IND_TABLE));
	in.rwq_ind_tbl_handle = f.handle(Kind::kTable);
	driver_in.hash_fields = f.value(uint64_t{3});
	driver_in.hash_function = f.value(uint8_t{1});
	driver_in.key_len = f.value(uint8_t{sizeof(driver_in.key)});
	driver_in.reserved[f.rng.below(6)] = f.value(uint8_t{0});
	const int err = f.call(Command{.number = IB_USER_VERBS_EX_CMD_CREATE_QP,
	                               .in = part(in),
	                               .out = part(out),
	                               .driver_in = part(driver_in),
	                               .driver_out = part(driver),
	                               .extended = true});
	if (!err)
		f.created(Kind::kQp, object_of(driver, out.base.qp_handle, IB_UVERBS_QPT_RAW_PACKET,
		                               out.base.qpn));
	return err;
}

/* --- work --- */

/** A mapping for the time of one operation. */
class Mapping {
public:
	Mapping(Fuzzer &f, uint64_t key, size_t length)
	        : length_(length), at_(mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED,
	                                    f.context->fd(), static_cast<off_t>(key)))
	{
	}
	Mapping(const Mapping &) = delete;
	Mapping &operator=(const Mapping &) = delete;
	~Mapping()
	{
		if (at_ != MAP_FAILED)
			munmap(at_, length_);
	}

	explicit operator bool() const { return at_ != MAP_FAILED; }
	template <class T>
	T *at(size_t offset) const
	{
		return reinterpret_cast<T *>(static_cast<char *>(at_) + offset);
	}

private:
	size_t length_;
	void *at_;
};

void fill_data(Fuzzer &f, hw::tern_hw_data_seg &data)
{
	const Object region = f.object(Kind::kMr);
	const uint64_t offset = f.rng.below(region.length ? region.length : 1);
	data.addr = f.value(region.key + offset);
	data.length = f.value(static_cast<uint32_t>(f.rng.below(8192)));
	data.lkey = f.value(region.number);
}

void post_receive(Fuzzer &f, const Object &qp, const Mapping &ring)
{
	auto *record = ring.at<hw::tern_hw_qp_record>(qp.record_offset);
	const uint32_t index = record->rq_pi.get();
	if (!qp.rq_log_stride)
		return;
	const size_t slot = index & ((1u << qp.rq_log_size) - 1);
	hw::tern_hw_data_seg data;
	fill_data(f, data);
	std::memcpy(ring.at<char>(qp.rq_offset + (slot << qp.rq_log_stride)), &data, sizeof(data));
	std::atomic_thread_fence(std::memory_order_release);
	record->rq_pi = f.value(index + 1);
}

/** A request of one block, at the QP's other end. */
void fill_request(Fuzzer &f, const Object &qp, char *at)
{
	const uint8_t op = f.value(f.one_of<uint8_t>(
	        {hw::TERN_OP_SEND, hw::TERN_OP_WRITE, hw::TERN_OP_READ, hw::TERN_OP_WRITE_IMM,
	         hw::TERN_OP_FETCH_ADD, hw::TERN_OP_LOCAL_INV, hw::TERN_OP_BIND_MW}));
	const bool remote = op >= hw::TERN_OP_WRITE && op <= hw::TERN_OP_READ;
	hw::tern_hw_ctrl_seg control = {};
	control.opcode = op;
	control.flags = f.value(uint8_t{TERN_WQE_SIGNALED});
	control.segs = f.value(static_cast<uint8_t>(remote ? 3 : op == hw::TERN_OP_SEND ? 2 : 4));
	hw::tern_hw_raddr_seg target = {};
	const Object region = f.object(Kind::kMr);
	target.addr = f.value(region.key);
	target.rkey = f.value(region.number);
	hw::tern_hw_data_seg data;
	fill_data(f, data);
	if (op == hw::TERN_OP_BIND_MW) {
		const Object window = f.object(Kind::kMw);
		hw::tern_hw_bind_seg bind = {};
		bind.addr = f.value(region.key);
		bind.length = f.value(uint64_t{64});
		bind.rkey = f.value(window.number + 1);
		bind.lkey = f.value(region.number);
		bind.access = f.value(uint8_t{2});
		control.segs = 3;
		std::memcpy(at + 16, &bind, sizeof(bind));
	} else {
		std::memcpy(at + 16, &target, sizeof(target));
		std::memcpy(at + (remote                                ? 32
		                  : qp.type == IB_UVERBS_QPT_RAW_PACKET ? 16
		                                                        : 48),
		            &data, sizeof(data));
		if (op == hw::TERN_OP_SEND)
			std::memcpy(at + 16, &data, sizeof(data));
	}
	std::memcpy(at, &control, sizeof(control));
}

int post(Fuzzer &f)
{
	const Object qp = f.object(Kind::kQp);
	if (!qp.length)
		return kNothing;
	const Mapping ring(f, qp.key, qp.length);
	const Mapping doorbells(f, f.context->doorbell_key, hw::TERN_DB_PAGE_SIZE);
	if (!ring || !doorbells)
		return errno;
	auto *record = ring.at<hw::tern_hw_qp_record>(qp.record_offset);
	uint32_t index = record->sq_pi.get();
	for (uint64_t count = 1 + f.rng.below(4); count; count--) {
		post_receive(f, qp, ring);
		const size_t block = index++ & ((1u << qp.sq_log_size) - 1);
		fill_request(f, qp, ring.at<char>(block * hw::TERN_SQ_BLOCK));
	}
	std::atomic_thread_fence(std::memory_order_release);
	record->sq_pi = index;
	*doorbells.at<volatile uint64_t>(hw::TERN_DB_SQ) =
	        uint64_t{f.value(index)} << TERN_DB_INDEX_SHIFT | f.value(qp.number);
	return 0;
}

/** Takes all completions as read, and wants an event for the next one. */
int drain(Fuzzer &f)
{
	const Object cq = f.object(Kind::kCq);
	if (!cq.length)
		return kNothing;
	const Mapping ring(f, cq.key, cq.length);
	const Mapping doorbells(f, f.context->doorbell_key, hw::TERN_DB_PAGE_SIZE);
	if (!ring || !doorbells)
		return errno;
	auto *record = ring.at<hw::tern_hw_cq_record>(cq.record_offset);
	const uint32_t index = f.value(record->ci.get() + static_cast<uint32_t>(f.rng.below(4)));
	record->ci = index;
	*doorbells.at<volatile uint64_t>(hw::TERN_DB_CQ_ARM) =
	        uint64_t{index} << TERN_DB_INDEX_SHIFT | f.value(cq.number);
	return 0;
}

constexpr Operation kOperations[] = {
        {"create_cq", 8, create_cq, true},
        {"create_cq_ex", 8, create_cq_ex, true},
        {"create_cq_ioctl", 8, create_cq_by_ioctl, true},
        {"destroy_cq", 6, destroy<Kind::kCq>},
        {"resize_cq", 8, resize_cq},
        {"modify_cq", 5, modify_cq},
        {"create_srq", 8, create_srq, true},
        {"create_srq_xrc", 6, create_srq_xrc, true},
        {"create_srq_tags", 6, create_srq_tags, true},
        {"create_srq_ioctl", 8, create_srq_by_ioctl, true},
        {"destroy_srq", 6, destroy<Kind::kSrq>},
        {"modify_srq", 8, modify_srq},
        {"query_srq", 4, query_srq},
        {"create_qp_rc", 10, create_qp<IB_UVERBS_QPT_RC>, true},
        {"create_qp_uc", 5, create_qp<IB_UVERBS_QPT_UC>, true},
        {"create_qp_ud", 6, create_qp<IB_UVERBS_QPT_UD>, true},
        {"create_qp_raw", 10, create_qp<IB_UVERBS_QPT_RAW_PACKET>, true},
        {"create_qp_xrc_ini", 5, create_qp<IB_UVERBS_QPT_XRC_INI>, true},
        {"create_qp_xrc_tgt", 5, create_qp<IB_UVERBS_QPT_XRC_TGT>, true},
        {"create_qp_odd", 3, create_qp_odd, true},
        {"create_qp_ioctl", 8, create_qp_by_ioctl, true},
        {"create_qp_rss", 8, create_qp_rss, true},
        {"open_qp", 5, open_qp},
        {"destroy_qp", 12, destroy<Kind::kQp>},
        {"query_qp", 5, query_qp},
        {"modify_qp", 25, modify_qp},
        {"connect", 25, connect},
        {"post", 40, post},
        {"drain", 15, drain},
};

} // namespace

std::span<const Operation> queue_operations()
{
	return kOperations;
}

} // namespace tern::guest::uverbs
