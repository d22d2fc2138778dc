// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory windows: a part of a region for the peer, for a while. */
#include <array>
#include <cerrno>
#include <cstring>

#include "cases.h"

namespace tern::guest {
namespace {

constexpr size_t kSize = 4096, kStart = 1024, kLength = 512;

using MwPtr = std::unique_ptr<ibv_mw, Releaser<ibv_dealloc_mw>>;

MwPtr make_window(const Device &device, ibv_mw_type type)
{
	MwPtr mw(ibv_alloc_mw(device.pd(), type));
	check(mw.get(), "ibv_alloc_mw: %s", std::strerror(errno));
	return mw;
}

ibv_mw_bind_info part_of(const Buffer &buffer, uint64_t length)
{
	return {.mr = buffer.mr(),
	        .addr = length ? buffer.addr() + kStart : 0,
	        .length = length,
	        .mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
}

void bind_type1(Endpoint &ep, ibv_mw *mw, const Buffer &buffer, uint64_t length)
{
	ibv_mw_bind bind = {
	        .wr_id = 1, .send_flags = IBV_SEND_SIGNALED, .bind_info = part_of(buffer, length)};
	const int err = ibv_bind_mw(ep.qp(), mw, &bind);
	check(!err, "ibv_bind_mw: %s", std::strerror(err));
	ep.expect_send(1);
}

void bind_type2(Endpoint &ep, ibv_mw *mw, uint32_t rkey, const Buffer &buffer)
{
	ibv_send_wr wr = {};
	wr.wr_id = 1;
	wr.opcode = IBV_WR_BIND_MW;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.bind_mw = {.mw = mw, .rkey = rkey, .bind_info = part_of(buffer, kLength)};
	check(!ep.post(wr), "BIND_MW");
	check(ep.expect_send(1).opcode == IBV_WC_BIND_MW, "opcode of BIND_MW");
}

void type1(Session &s)
{
	Endpoint ep(s);
	const Buffer buffer(s.device, kSize, kAllAccess | IBV_ACCESS_MW_BIND);
	const MwPtr mw = make_window(s.device, IBV_MW_TYPE_1);
	RemoteBuffer window = {buffer.addr() + kStart, kLength, 0};

	ep.connect();
	if (!s.active)
		bind_type1(ep, mw.get(), buffer, kLength);
	window.rkey = mw->rkey;
	window = s.peer.exchange(window);
	expect_write(s, window, 0, IBV_WC_SUCCESS);
	expect_write(s, window, kLength - 16, IBV_WC_SUCCESS);
	expect_write(s, window, kLength - 8, IBV_WC_REM_ACCESS_ERR);
	expect_write(s, window, ~uint64_t{0} - 7, IBV_WC_REM_ACCESS_ERR);
	if (!s.active) {
		check_filled(buffer.bytes().subspan(kStart, 16), 0, "the window");
		check(ibv_dereg_mr(buffer.mr()) == EBUSY, "a region goes before its window");
		bind_type1(ep, mw.get(), buffer, 0);
	}
	s.peer.barrier(2);
	expect_write(s, window, 0, IBV_WC_REM_ACCESS_ERR);
}

/* A window of type 2 belongs to its QP, until the peer invalidates it. */
void type2(Session &s)
{
	Endpoint ep(s);
	const Buffer buffer(s.device, kSize, kAllAccess | IBV_ACCESS_MW_BIND);
	const Buffer local(s.device, 16);
	const MwPtr mw = make_window(s.device, IBV_MW_TYPE_2);
	RemoteBuffer window = {buffer.addr() + kStart, kLength, ibv_inc_rkey(mw->rkey)};

	ep.connect();
	if (!s.active) {
		bind_type2(ep, mw.get(), window.rkey, buffer);
		ep.recv(2, buffer.sge(0, 16));
	}
	window = s.peer.exchange(window);
	expect_write(s, window, 0, IBV_WC_REM_ACCESS_ERR); /* through another QP */
	if (s.active) {
		local.fill(7);
		ep.send(3, IBV_WR_RDMA_WRITE, local.sge(0, 16), window);
		ep.expect_send(3);
		ibv_send_wr wr = {};
		ibv_sge sge = local.sge(0, 16);
		wr.wr_id = 4;
		wr.opcode = IBV_WR_SEND_WITH_INV;
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.invalidate_rkey = window.rkey;
		check(!ep.post(wr), "SEND with invalidate");
		ep.expect_send(4);
		ep.send(5, IBV_WR_RDMA_WRITE, local.sge(0, 16), window);
		ep.expect_send(5, IBV_WC_REM_ACCESS_ERR);
	} else {
		const ibv_wc wc = ep.expect_recv(2);
		check(wc.wc_flags & IBV_WC_WITH_INV &&
		              wc.invalidated_rkey == ibv_inc_rkey(mw->rkey),
		      "the completion does not name the invalidated key");
		check_filled(buffer.bytes().subspan(kStart, 16), 7, "the window");
	}
	s.peer.barrier(3);
}

/* Its owner can end a window too, and bind it anew under another key. */
void local_invalidate(Session &s)
{
	Endpoint ep(s);
	const Buffer buffer(s.device, kSize, kAllAccess | IBV_ACCESS_MW_BIND);
	const MwPtr mw = make_window(s.device, IBV_MW_TYPE_2);
	const uint32_t first = ibv_inc_rkey(mw->rkey), second = ibv_inc_rkey(first);
	const Buffer local(s.device, 16);

	ep.connect();
	if (!s.active) {
		bind_type2(ep, mw.get(), first, buffer);
		ibv_send_wr wr = {};
		wr.wr_id = 2;
		wr.opcode = IBV_WR_LOCAL_INV;
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.invalidate_rkey = first;
		check(!ep.post(wr), "LOCAL_INV");
		check(ep.expect_send(2).opcode == IBV_WC_LOCAL_INV, "opcode of LOCAL_INV");
		bind_type2(ep, mw.get(), second, buffer);
	}
	const auto keys = s.peer.exchange(std::array<uint32_t, 2>{first, second});
	RemoteBuffer window = {0, kLength, keys[1]};
	window.addr = s.peer.exchange(buffer.addr() + kStart);
	if (s.active) {
		local.fill(3);
		ep.send(3, IBV_WR_RDMA_WRITE, local.sge(0, 16), window);
		ep.expect_send(3);
		window.rkey = keys[0];
		ep.send(4, IBV_WR_RDMA_WRITE, local.sge(0, 16), window, 16);
		ep.expect_send(4, IBV_WC_REM_ACCESS_ERR);
	}
	s.peer.barrier(1);
	if (!s.active) {
		check_filled(buffer.bytes().subspan(kStart, 16), 3, "the second window");
		check(!buffer.data()[kStart + 16], "the first window was written");
	}
	s.peer.barrier(2);
}

constexpr Case kCases[] = {
        {"window-1", "a window of type 1, bound and unbound", type1},
        {"window-2", "a window of type 2, which the peer invalidates", type2},
        {"window-local-inv", "a window of type 2, which its owner invalidates", local_invalidate},
};

} // namespace

std::span<const Case> window_cases()
{
	return kCases;
}

} // namespace tern::guest
