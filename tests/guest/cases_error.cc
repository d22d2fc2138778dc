// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests that must fail, with the status that the specification names on each side. */
#include <cstring>

#include "cases.h"

namespace tern::guest {
namespace {

constexpr size_t kSize = 4096;

/* A key that was good once. */
struct StaleKeys {
	explicit StaleKeys(const Device &device)
	{
		const Buffer gone(device, kSize);
		lkey = gone.lkey();
		rkey = gone.rkey();
	}
	uint32_t lkey;
	uint32_t rkey;
};

/* The QP that met an error is in the error state, at once or soon. */
void check_broken(Endpoint &ep)
{
	check(eventually([&] { return ep.state() == IBV_QPS_ERR; }),
	      "the QP is not in the error state");
}

void check_event(Session &s, const Endpoint &ep, ibv_event_type type)
{
	if (s.async_events)
		check(s.device.wait_event(type, ep.qp(), 10s), "no asynchronous event '%s'",
		      ibv_event_type_str(type));
}

void bad_lkey(Session &s)
{
	Endpoint ep(s);
	const Buffer buffer(s.device, kSize);
	ep.connect();
	const RemoteBuffer remote = ep.exchange(buffer);
	if (s.active) {
		const StaleKeys stale(s.device);
		ep.send(1, IBV_WR_RDMA_WRITE, ibv_sge{buffer.addr(), 64, stale.lkey}, remote);
		ep.expect_send(1, IBV_WC_LOC_PROT_ERR);
		check_broken(ep);
	}
	s.peer.barrier(1);
	if (!s.active)
		ep.expect_silence();
}

void lkey_past_end(Session &s)
{
	Endpoint ep(s);
	const Buffer buffer(s.device, kSize);
	ep.connect();
	const RemoteBuffer remote = ep.exchange(buffer);
	if (s.active) {
		ep.send(1, IBV_WR_RDMA_WRITE, buffer.sge(kSize - 8, 16), remote);
		ep.expect_send(1, IBV_WC_LOC_PROT_ERR);
		check_broken(ep);
	}
	s.peer.barrier(1);
}

void recv_bad_lkey(Session &s)
{
	Endpoint ep(s);
	const Buffer buffer(s.device, kSize);
	ep.connect();
	if (!s.active) {
		const StaleKeys stale(s.device);
		ep.recv(1, ibv_sge{buffer.addr(), 64, stale.lkey});
	}
	s.peer.barrier(1);
	if (s.active) {
		ep.send(1, IBV_WR_SEND, buffer.sge(0, 64));
		ep.expect_send(1, IBV_WC_REM_OP_ERR);
	} else {
		ep.expect_recv(1, IBV_WC_LOC_PROT_ERR);
	}
	check_broken(ep);
	s.peer.barrier(2);
}

/* A request of @opcode to @remote fails as a remote access error, and changes nothing there. */
void remote_access_error(Session &s, int access, ibv_wr_opcode opcode, uint64_t offset,
                         bool bad_key)
{
	Endpoint ep(s);
	const Buffer target(s.device, kSize, access);
	const Buffer local(s.device, kSize);
	target.fill(1);
	local.fill(2);
	ep.connect();
	RemoteBuffer remote = ep.exchange(target);
	if (bad_key) {
		const StaleKeys stale(s.device);
		remote.rkey = s.peer.exchange(stale.rkey);
	}
	if (s.active) {
		if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
			ep.fetch_add(1, local.sge(0, 8), remote, offset, 1);
		else
			ep.send(1, opcode, local.sge(0, 16), remote, offset);
		ep.expect_send(1, IBV_WC_REM_ACCESS_ERR);
		check_broken(ep);
		check_filled(local.bytes(), 2, "the requester's buffer");
	} else {
		check_event(s, ep, IBV_EVENT_QP_ACCESS_ERR);
		check_broken(ep);
	}
	s.peer.barrier(1);
	if (!s.active)
		check_filled(target.bytes(), 1, "the responder's buffer");
}

void bad_rkey(Session &s)
{
	remote_access_error(s, kAllAccess, IBV_WR_RDMA_WRITE, 0, true);
}

void read_bad_rkey(Session &s)
{
	remote_access_error(s, kAllAccess, IBV_WR_RDMA_READ, 0, true);
}

void write_past_end(Session &s)
{
	remote_access_error(s, kAllAccess, IBV_WR_RDMA_WRITE, kSize - 8, false);
}

void write_before_start(Session &s)
{
	remote_access_error(s, kAllAccess, IBV_WR_RDMA_WRITE, ~uint64_t{0} - 7, false);
}

void read_past_end(Session &s)
{
	remote_access_error(s, kAllAccess, IBV_WR_RDMA_READ, kSize - 8, false);
}

void write_no_permission(Session &s)
{
	remote_access_error(s, kAllAccess & ~IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, 0, false);
}

void read_no_permission(Session &s)
{
	remote_access_error(s, kAllAccess & ~IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, 0, false);
}

void atomic_no_permission(Session &s)
{
	remote_access_error(s, kAllAccess & ~IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD,
	                    0, false);
}

void atomic_unaligned(Session &s)
{
	Endpoint ep(s);
	const Buffer target(s.device, kSize);
	const Buffer local(s.device, 8);
	target.fill(1);
	ep.connect();
	const RemoteBuffer remote = ep.exchange(target);
	if (s.active) {
		ep.fetch_add(1, local.sge(0, 8), remote, 4, 1);
		ep.expect_send(1, IBV_WC_REM_INV_REQ_ERR);
	} else {
		check_event(s, ep, IBV_EVENT_QP_REQ_ERR);
	}
	check_broken(ep);
	s.peer.barrier(1);
	check_filled(target.bytes(), 1, "the responder's buffer");
}

void send_too_long(Session &s)
{
	Endpoint ep(s);
	const Buffer buffer(s.device, 2 * kSize);
	ep.connect();
	if (!s.active)
		ep.recv(1, buffer.sge(0, 64));
	s.peer.barrier(1);
	if (s.active) {
		ep.send(1, IBV_WR_SEND, buffer.sge(0, 128));
		ep.expect_send(1, IBV_WC_REM_INV_REQ_ERR);
	} else {
		ep.expect_recv(1, IBV_WC_LOC_LEN_ERR);
	}
	check_broken(ep);
	s.peer.barrier(2);
}

void rnr(Session &s)
{
	Endpoint ep(s);
	const Buffer buffer(s.device, kSize);
	ep.connect({.rnr_retry = 2});
	if (s.active) {
		ep.send(1, IBV_WR_SEND, buffer.sge(0, 64));
		ep.expect_send(1, IBV_WC_RNR_RETRY_EXC_ERR);
		check_broken(ep);
	}
	s.peer.barrier(1);
	if (!s.active)
		check(ep.state() == IBV_QPS_RTS, "a responder without a RECV broke its QP");
}

void rnr_wait(Session &s)
{
	Endpoint ep(s);
	const Buffer buffer(s.device, kSize);
	ep.connect({.rnr_retry = 7});
	if (s.active) {
		buffer.fill(3);
		ep.send(1, IBV_WR_SEND, buffer.sge(0, 64));
		ep.expect_silence();
	}
	s.peer.barrier(1);
	if (s.active) {
		ep.expect_send(1);
	} else {
		ep.recv(1, buffer.sge(0, 64));
		ep.expect_recv(1);
		check_filled(buffer.bytes().first(64), 3, "the late RECV");
	}
	s.peer.barrier(2);
}

void peer_destroyed(Session &s)
{
	Endpoint ep(s);
	const Buffer buffer(s.device, kSize);
	ep.connect({.timeout = 12, .retry = 2});
	const RemoteBuffer remote = ep.exchange(buffer);
	if (!s.active)
		ep.destroy_qp();
	s.peer.barrier(1);
	if (s.active) {
		ep.send(1, IBV_WR_RDMA_WRITE, buffer.sge(0, 64), remote);
		ep.expect_send(1, IBV_WC_RETRY_EXC_ERR);
		check_broken(ep);
	}
	s.peer.barrier(2);
}

void unreachable(Session &s)
{
	Endpoint ep(s);
	const Buffer buffer(s.device, kSize);
	ep.connect({.timeout = 12, .retry = 2, .wrong_qpn = 0x7f0000});
	const RemoteBuffer remote = ep.exchange(buffer);
	if (s.active) {
		ep.send(1, IBV_WR_RDMA_WRITE, buffer.sge(0, 64), remote);
		ep.send(2, IBV_WR_RDMA_WRITE, buffer.sge(0, 64), remote);
		ep.expect_send(1, IBV_WC_RETRY_EXC_ERR);
		ep.expect_send(2, IBV_WC_WR_FLUSH_ERR);
		check_broken(ep);
	}
	s.peer.barrier(1);
}

void flush(Session &s)
{
	constexpr uint64_t kRequests = 10;
	Endpoint ep(s);
	const Buffer buffer(s.device, kSize);
	ep.connect({.rnr_retry = 7});
	if (s.active) {
		/* Without a RECV over there the first waits for ever and the others behind it. */
		for (uint64_t i = 0; i < kRequests; i++) {
			const bool signaled = i % 2;
			ep.send(i, IBV_WR_SEND, buffer.sge(0, 64), {}, 0,
			        signaled ? IBV_SEND_SIGNALED : 0);
			ep.recv(100 + i, buffer.sge(0, 64));
		}
		ep.set_state(IBV_QPS_ERR);
		for (uint64_t i = 0; i < kRequests; i++) {
			ep.expect_send(i, IBV_WC_WR_FLUSH_ERR);
			ep.expect_recv(100 + i, IBV_WC_WR_FLUSH_ERR);
		}
		/* What is posted to a broken QP is flushed too. */
		ep.send(50, IBV_WR_SEND, buffer.sge(0, 64));
		ep.expect_send(50, IBV_WC_WR_FLUSH_ERR);
		ep.recv(150, buffer.sge(0, 64));
		ep.expect_recv(150, IBV_WC_WR_FLUSH_ERR);
	}
	s.peer.barrier(1);
}

/* A QP that broke works again after RESET. */
void reset(Session &s)
{
	Endpoint ep(s);
	const Buffer buffer(s.device, kSize);
	for (uint64_t round = 0; round < 3; round++) {
		ep.connect();
		for (uint64_t i = 0; i < 5; i++)
			ep.recv(i, buffer.sge(0, 64));
		s.peer.barrier(1);
		for (uint64_t i = 0; i < 3; i++)
			ep.send(10 + i, IBV_WR_SEND, buffer.sge(0, 64));
		for (uint64_t i = 0; i < 3; i++) {
			ep.expect_send(10 + i);
			ep.expect_recv(i);
		}
		s.peer.barrier(2);
		ep.set_state(IBV_QPS_ERR);
		ep.expect_recv(3, IBV_WC_WR_FLUSH_ERR);
		ep.expect_recv(4, IBV_WC_WR_FLUSH_ERR);
		ep.set_state(IBV_QPS_RESET);
		ep.expect_silence();
		s.peer.barrier(3);
	}
}

constexpr Case kCases[] = {
        {"bad-lkey", "a deregistered lkey: local protection error", bad_lkey},
        {"lkey-past-end", "a local buffer past its region: local protection error", lkey_past_end},
        {"recv-bad-lkey", "a RECV with a deregistered lkey: remote operation error", recv_bad_lkey},
        {"bad-rkey", "WRITE with a deregistered rkey: remote access error", bad_rkey},
        {"read-bad-rkey", "READ with a deregistered rkey: remote access error", read_bad_rkey},
        {"write-past-end", "WRITE past the end of the region", write_past_end},
        {"write-before-start", "WRITE from before the start of the region", write_before_start},
        {"read-past-end", "READ past the end of the region", read_past_end},
        {"write-no-permission", "WRITE to a region without the right", write_no_permission},
        {"read-no-permission", "READ of a region without the right", read_no_permission},
        {"atomic-no-permission", "atomic on a region without the right", atomic_no_permission},
        {"atomic-unaligned", "atomic at an odd address: invalid request", atomic_unaligned},
        {"send-too-long", "SEND longer than the RECV: invalid request, length error",
         send_too_long},
        {"rnr", "no RECV: RNR retries exceeded", rnr},
        {"rnr-wait", "a late RECV: the SEND waits for it", rnr_wait},
        {"peer-destroyed", "the remote QP is gone: retries exceeded", peer_destroyed},
        {"unreachable", "no such remote QP: retries exceeded, the rest flushed", unreachable},
        {"flush", "ERR flushes all that was posted, in order", flush},
        {"reset", "RESET and the connection again", reset},
};

} // namespace

std::span<const Case> error_cases()
{
	return kCases;
}

void check_device_works(Session &s)
{
	constexpr size_t kHalf = 8192;
	const uint64_t ours = s.active ? 1 : 2, theirs = s.active ? 2 : 1;
	Endpoint ep(s);
	const Buffer out(s.device, 2 * kHalf), in(s.device, 3 * kHalf);

	fill(out.bytes().first(kHalf), ours);
	fill(out.bytes().subspan(kHalf), ours + 10);
	ep.connect();
	const RemoteBuffer remote_in = ep.exchange(in);
	const RemoteBuffer remote_out = ep.exchange(out);
	ep.recv(1, in.sge(0, kHalf));
	s.peer.barrier(2000);
	ep.send(2, IBV_WR_RDMA_WRITE, out.sge(kHalf, kHalf), remote_in, kHalf);
	ep.send(3, IBV_WR_SEND, out.sge(0, kHalf));
	ep.send(4, IBV_WR_RDMA_READ, in.sge(2 * kHalf, kHalf), remote_out);
	ep.expect_recv(1);
	ep.expect_send(2);
	ep.expect_send(3);
	ep.expect_send(4);
	check_filled(in.bytes().first(kHalf), theirs, "SEND on a fresh QP");
	check_filled(in.bytes().subspan(kHalf, kHalf), theirs + 10, "WRITE on a fresh QP");
	check_filled(in.bytes().subspan(2 * kHalf), theirs, "READ on a fresh QP");
	s.peer.barrier(2001);
}

} // namespace tern::guest
