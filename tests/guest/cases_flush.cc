// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FLUSH (IBA annex A19). Only a Tern card's user can post one, by terndv.h, and only kernels since
 * 6.2 let regions be flushed; any card may be the one that is asked.
 */
#include <cerrno>
#include <cstring>
#include <optional>

#include "cases.h"
#include "terndv.h"

namespace tern::guest {
namespace {

constexpr size_t kSize = 1 << 16;

/* Whether this kernel knows of the right to flush, and the device can give it. */
bool can_grant(const Session &s)
{
	ibv_device_attr_ex attr = {};
	check(!ibv_query_device_ex(s.device.context(), nullptr, &attr), "ibv_query_device_ex");
	return attr.device_cap_flags_ex & TERNDV_DEVICE_FLUSH_GLOBAL;
}

/* Each side tells the other: whether the active one can ask, whether the passive one can grant. */
struct Ability {
	bool ask;
	bool grant;
};

Ability ability(Session &s)
{
	const bool ours = s.active ? terndv_is_supported(s.device.context()->device) : can_grant(s);
	const bool theirs = s.peer.exchange(ours);
	const Ability both = s.active ? Ability{ours, theirs} : Ability{theirs, ours};
	if (!both.ask)
		lacking("a verb that posts a FLUSH");
	else if (!both.grant)
		lacking("regions that can be flushed");
	return both;
}

/* By the name that rdma-core has for it since release 45, or else by Tern's own. */
template <class Qp>
void post_flush(Qp *qp, uint32_t rkey, uint64_t addr, size_t length, uint8_t type, uint8_t level)
{
	if constexpr (requires { ibv_wr_flush(qp, rkey, addr, length, type, level); }) {
		/* Both are used. */
		if (level == TERNDV_FLUSH_RANGE)
			return ibv_wr_flush(qp, rkey, addr, length, type, level);
	}
	terndv_wr_flush(qp, rkey, addr, length, type, level);
}

/** One end of a connection: the active one can post FLUSHes. */
class FlushEndpoint {
public:
	FlushEndpoint(Session &s, int access) : ep_(s, config(s))
	{
		ep_.connect({.access = access});
		if (s.active)
			ex_ = ibv_qp_to_qp_ex(ep_.qp());
	}

	/* A list of requests: start(), requests, finish(). */
	void start() const { ibv_wr_start(ex_); }
	void write(const ibv_sge &sge, const RemoteBuffer &remote, uint64_t offset) const
	{
		ex_->wr_id = 0;
		ex_->wr_flags = 0;
		ibv_wr_rdma_write(ex_, remote.rkey, remote.addr + offset);
		ibv_wr_set_sge(ex_, sge.lkey, sge.addr, sge.length);
	}
	void read(uint64_t wr_id, const ibv_sge &sge, const RemoteBuffer &remote,
	          unsigned flags) const
	{
		ex_->wr_id = wr_id;
		ex_->wr_flags = flags;
		ibv_wr_rdma_read(ex_, remote.rkey, remote.addr);
		ibv_wr_set_sge(ex_, sge.lkey, sge.addr, sge.length);
	}
	void flush(uint64_t wr_id, uint32_t rkey, uint64_t addr, size_t length,
	           uint8_t level = TERNDV_FLUSH_RANGE, unsigned flags = IBV_SEND_SIGNALED,
	           uint8_t type = TERNDV_FLUSH_GLOBAL) const
	{
		ex_->wr_id = wr_id;
		ex_->wr_flags = flags;
		post_flush(ex_, rkey, addr, length, type, level);
	}
	void finish() const
	{
		const int err = ibv_wr_complete(ex_);
		check(!err, "ibv_wr_complete: %s", std::strerror(err));
	}
	void expect_flush(uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS)
	{
		const ibv_wc wc = ep_.expect_send(wr_id, status);
		check(status != IBV_WC_SUCCESS || int{wc.opcode} == TERNDV_WC_FLUSH,
		      "opcode of a FLUSH: %d", int{wc.opcode});
	}
	Endpoint &endpoint() { return ep_; }

private:
	static EndpointConfig config(const Session &s)
	{
		EndpointConfig config;
		if (s.active)
			config.send_ops = TERNDV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_RDMA_WRITE |
			                  IBV_QP_EX_WITH_RDMA_READ;
		return config;
	}

	Endpoint ep_;
	ibv_qp_ex *ex_ = nullptr;
};

/* The rights that a QP and a region have to have; each side of its own kernel's. */
int rights(const Session &s)
{
	return kAllAccess | (can_grant(s) ? TERNDV_ACCESS_FLUSH_GLOBAL : 0);
}

/* A kernel that does not know the right must not take a region for what it then is not. */
void check_unknown_right(const Session &s)
{
	uint8_t byte = 0;
	const MrPtr mr(
	        ibv_reg_mr(s.device.pd(), &byte, 1, kAllAccess | TERNDV_ACCESS_FLUSH_GLOBAL));
	check(!mr && (errno == EINVAL || errno == EOPNOTSUPP),
	      "a region with a right that the kernel does not know");
}

enum Round : unsigned { kRange, kWhole, kFenced, kMany, kNothing, kRounds };

/* Writes, and flushes what it wrote in one of the ways that there are. */
void write_and_flush(FlushEndpoint &ep, const Buffer &local, const RemoteBuffer &remote,
                     unsigned round)
{
	constexpr uint32_t kLength = 30000, kOffset = 777;
	local.fill(round + 1);
	ep.start();
	if (round == kFenced)
		ep.read(1, local.sge(kLength, 5000), remote, IBV_SEND_SIGNALED);
	ep.write(local.sge(0, kLength), remote, kOffset);
	switch (round) {
	case kRange:
		ep.flush(2, remote.rkey, remote.addr + kOffset, kLength);
		break;
	case kWhole:
		ep.flush(2, remote.rkey, 0, 0, TERNDV_FLUSH_MR);
		break;
	case kFenced:
		ep.flush(2, remote.rkey, remote.addr, kSize, TERNDV_FLUSH_RANGE,
		         IBV_SEND_SIGNALED | IBV_SEND_FENCE);
		break;
	case kMany: /* than may be under way at once */
		for (unsigned i = 0; i < 20; i++)
			ep.flush(0, remote.rkey, remote.addr + i, 1, TERNDV_FLUSH_RANGE, 0);
		ep.flush(2, remote.rkey, remote.addr + kSize - 1, 1);
		break;
	case kNothing:
		ep.flush(2, remote.rkey, remote.addr + kSize, 0);
		break;
	}
	ep.finish();
	if (round == kFenced)
		ep.endpoint().expect_send(1);
	ep.expect_flush(2);
}

void flush(Session &s)
{
	if (!s.active && !can_grant(s))
		check_unknown_right(s);
	const Ability can = ability(s);
	if (!can.ask || !can.grant)
		return;

	FlushEndpoint ep(s, rights(s));
	const Buffer buffer(s.device, kSize, rights(s));
	const RemoteBuffer remote = ep.endpoint().exchange(buffer);
	if (can_grant(s)) {
		ibv_qp_attr attr = {};
		ibv_qp_init_attr init = {};
		check(!ibv_query_qp(ep.endpoint().qp(), &attr, IBV_QP_ACCESS_FLAGS, &init) &&
		              attr.qp_access_flags & TERNDV_ACCESS_FLUSH_GLOBAL,
		      "the QP does not tell of its right");
	}
	for (unsigned round = 0; round < kRounds; round++) {
		if (s.active)
			write_and_flush(ep, buffer, remote, round);
		s.peer.barrier(round);
		/* At once: the other side has seen the completion. */
		if (!s.active)
			check_filled(buffer.bytes().subspan(777, 30000), round + 1,
			             "what was flushed");
		s.peer.barrier(100 + round);
	}
}

/* A FLUSH over a connection of its own must end with @status. */
void expect_outcome(Session &s, int qp_access, const RemoteBuffer &at, uint64_t offset,
                    size_t length, ibv_wc_status status, uint8_t level = TERNDV_FLUSH_RANGE,
                    uint8_t type = TERNDV_FLUSH_GLOBAL)
{
	FlushEndpoint ep(s, qp_access);
	if (s.active) {
		ep.start();
		ep.flush(7, at.rkey, at.addr + offset, length, level, IBV_SEND_SIGNALED, type);
		ep.finish();
		ep.expect_flush(7, status);
		check(status == IBV_WC_SUCCESS ||
		              eventually([&] { return ep.endpoint().state() == IBV_QPS_ERR; }),
		      "the QP is not in the error state");
	}
	s.peer.barrier(200);
}

/* Keys and ranges that are none, and a region without the right. */
void refused(Session &s)
{
	if (!ability(s).ask)
		return;
	const Buffer buffer(s.device, kSize, rights(s)), plain(s.device, kSize);
	uint32_t stale;
	{
		const Buffer gone(s.device, kSize, rights(s));
		stale = gone.rkey();
	}
	const RemoteBuffer good =
	        s.peer.exchange(RemoteBuffer{buffer.addr(), kSize, buffer.rkey()});
	const RemoteBuffer no_right =
	        s.peer.exchange(RemoteBuffer{plain.addr(), kSize, plain.rkey()});
	const RemoteBuffer no_key = s.peer.exchange(RemoteBuffer{buffer.addr(), kSize, stale});

	expect_outcome(s, rights(s), no_key, 0, 8, IBV_WC_REM_ACCESS_ERR);
	expect_outcome(s, rights(s), no_key, 0, 0, IBV_WC_REM_ACCESS_ERR, TERNDV_FLUSH_MR);
	expect_outcome(s, rights(s), no_right, 0, 8, IBV_WC_REM_ACCESS_ERR);
	expect_outcome(s, rights(s), no_right, 0, 0, IBV_WC_REM_ACCESS_ERR, TERNDV_FLUSH_MR);
	expect_outcome(s, rights(s), good, kSize - 4, 8, IBV_WC_REM_ACCESS_ERR);
}

/* What QP, type and a change of the region have to do with it; others see some of it otherwise. */
void granted(Session &s)
{
	const Ability can = ability(s);
	if (!can.ask || !can.grant)
		return;
	const Buffer buffer(s.device, kSize, rights(s)), changing(s.device, kSize);
	const RemoteBuffer good =
	        s.peer.exchange(RemoteBuffer{buffer.addr(), kSize, buffer.rkey()});
	const RemoteBuffer changed =
	        s.peer.exchange(RemoteBuffer{changing.addr(), kSize, changing.rkey()});
	const auto change = [&](int access) {
		if (!s.active) {
			const int err = ibv_rereg_mr(changing.mr(), IBV_REREG_MR_CHANGE_ACCESS,
			                             nullptr, nullptr, 0, access);
			check(!err, "ibv_rereg_mr: %d", err);
		}
		s.peer.barrier(300);
	};

	expect_outcome(s, kAllAccess, good, 0, 8, IBV_WC_REM_INV_REQ_ERR);
	expect_outcome(s, rights(s), good, 0, 8, IBV_WC_REM_ACCESS_ERR, TERNDV_FLUSH_RANGE,
	               TERNDV_FLUSH_PERSISTENT);
	expect_outcome(s, rights(s), good, 0, 8, IBV_WC_SUCCESS);
	change(rights(s));
	expect_outcome(s, rights(s), changed, 0, 8, IBV_WC_SUCCESS);
	change(kAllAccess);
	expect_outcome(s, rights(s), changed, 0, 8, IBV_WC_REM_ACCESS_ERR);
}

constexpr Case kCases[] = {
        {"flush-written", "a FLUSH completes when what was written is there", flush},
        {"flush-refused", "FLUSHes of regions that grant none", refused},
        {"flush-granted", "rights to flush of QP and region", granted},
};

} // namespace

std::span<const Case> flush_cases()
{
	return kCases;
}

} // namespace tern::guest
