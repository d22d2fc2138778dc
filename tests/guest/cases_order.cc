// SPDX-License-Identifier: GPL-2.0-or-later
/* When completions and events come, and what they wait for. */
#include <cstring>

#include <poll.h>

#include "cases.h"

namespace tern::guest {
namespace {

void unsignalled(Session &s)
{
	constexpr uint64_t kRequests = 1000, kEvery = 16;
	Endpoint ep(s, {.send_wr = 32});
	const Buffer out(s.device, 8 * kRequests), in(s.device, 8 * kRequests);
	ep.connect();
	const RemoteBuffer remote = ep.exchange(in);
	if (s.active) {
		/* More requests than the queue holds: the silent ones must free their places. */
		out.fill(4);
		for (uint64_t i = 0; i < kRequests; i++) {
			const bool signaled = i % kEvery == kEvery - 1 || i == kRequests - 1;
			ep.send(i, IBV_WR_RDMA_WRITE, out.sge(8 * i, 8), remote, 8 * i,
			        signaled ? IBV_SEND_SIGNALED : 0);
			if (signaled)
				ep.expect_send(i);
		}
		ep.expect_silence();
	}
	s.peer.barrier(1);
	if (!s.active)
		check_filled(in.bytes(), 4, "unsignalled WRITEs");
}

void fence(Session &s)
{
	constexpr size_t kSize = 30000;
	Endpoint ep(s);
	const Buffer source(s.device, kSize), echo(s.device, kSize);
	ep.connect();
	const RemoteBuffer remote = ep.exchange(source);
	for (uint64_t i = 0; i < 20; i++) {
		if (!s.active) {
			source.fill(i);
			ep.recv(1, echo.sge(0, kSize));
		}
		s.peer.barrier(1);
		if (s.active) {
			/* The SEND takes what the READ has yet to bring. */
			ep.send(1, IBV_WR_RDMA_READ, echo.sge(0, kSize), remote, 0, 0);
			ep.send(2, IBV_WR_SEND, echo.sge(0, kSize), {}, 0,
			        IBV_SEND_SIGNALED | IBV_SEND_FENCE);
			ep.expect_send(2);
		} else {
			ep.expect_recv(1);
			check_filled(echo.bytes(), i, "what was read and sent back");
		}
		s.peer.barrier(2);
	}
}

/* Whether the CQ of the receive queue raises an event within @patience. */
bool event_comes(Endpoint &ep, int patience_ms)
{
	pollfd p = {.fd = ep.channel()->fd, .events = POLLIN, .revents = 0};
	if (poll(&p, 1, patience_ms) <= 0)
		return false;
	ibv_cq *cq = nullptr;
	void *context;
	check(!ibv_get_cq_event(ep.channel(), &cq, &context) && cq == ep.recv_cq(),
	      "an event of another CQ");
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* UCX arms a CQ and sleeps, without a poll between. A CQE that came after the last poll raises the
 * event then, once. */
void event_of_the_unpolled(Session &s)
{
	Endpoint ep(s, {.channel = true});
	const Buffer buffer(s.device, 64);
	ep.connect();
	const auto arm = [&] { check(!ibv_req_notify_cq(ep.recv_cq(), 0), "ibv_req_notify_cq"); };

	if (!s.active) {
		ep.recv(0, buffer.sge(0, 8));
		ep.recv(1, buffer.sge(0, 8));
		arm();
	}
	for (uint64_t i = 0; i < 2; i++) {
		s.peer.barrier(1);
		if (s.active) {
			ep.send(i, IBV_WR_SEND, buffer.sge(0, 8));
			ep.expect_send(i);
		}
		s.peer.barrier(2);
		if (!s.active && i == 0) {
			ibv_wc wc;
			check(event_comes(ep, 10000), "no event of the first");
			ep.expect_recv(0);
			check(!ibv_poll_cq(ep.recv_cq(), 1, &wc), "another completion");
		}
	}
	if (s.active)
		return;
	arm();
	check(event_comes(ep, 10000), "no event of a CQE that came after the last poll");
	arm();
	check(!event_comes(ep, 300), "a second event of the same CQE");
	ep.expect_recv(1);
}

void solicited(Session &s)
{
	Endpoint ep(s, {.channel = true});
	const Buffer buffer(s.device, 64);
	ep.connect();
	const auto send_one = [&](uint64_t wr_id, unsigned flags) {
		ep.send(wr_id, IBV_WR_SEND, buffer.sge(0, 8), {}, 0, IBV_SEND_SIGNALED | flags);
		ep.expect_send(wr_id);
	};

	/* Each step: the responder arms its CQ, one SEND comes, and an event or none. */
	const struct {
		int solicited_only;
		unsigned flags;
		bool event;
	} steps[] = {
	        {1, 0, false},
	        {1, IBV_SEND_SOLICITED, true},
	        {0, 0, true},
	        {0, IBV_SEND_SOLICITED, true},
	};
	for (unsigned i = 0; i < std::size(steps); i++) {
		const auto &step = steps[i];
		if (!s.active) {
			ep.recv(i, buffer.sge(0, 8));
			check(!ibv_req_notify_cq(ep.recv_cq(), step.solicited_only),
			      "ibv_req_notify_cq");
		}
		s.peer.barrier(1);
		if (s.active) {
			send_one(i, step.flags);
		} else {
			ep.expect_recv(i);
			const bool came = event_comes(ep, step.event ? 10000 : 300);
			check(came == step.event, "step %u: %s event", i, came ? "an" : "no");
		}
		s.peer.barrier(2);
	}

	/* An event comes once per arming. */
	if (!s.active)
		for (uint64_t i = 0; i < 2; i++)
			ep.recv(i, buffer.sge(0, 8));
	s.peer.barrier(3);
	if (s.active) {
		send_one(1, IBV_SEND_SOLICITED);
		send_one(2, IBV_SEND_SOLICITED);
	}
	s.peer.barrier(4);
	if (!s.active) {
		check(!event_comes(ep, 300), "an event of a CQ that is not armed");
		ep.expect_recv(0);
		ep.expect_recv(1);
	}
}

/* A failed request raises an event even where only solicited ones do. */
void error_event(Session &s)
{
	Endpoint ep(s, {.channel = true});
	const Buffer buffer(s.device, 64);
	ep.connect();
	if (!s.active) {
		ep.recv(1, buffer.sge(0, 8));
		check(!ibv_req_notify_cq(ep.recv_cq(), 1), "ibv_req_notify_cq");
		ep.set_state(IBV_QPS_ERR);
		check(event_comes(ep, 10000), "no event of a failed completion");
		ep.expect_recv(1, IBV_WC_WR_FLUSH_ERR);
	}
	s.peer.barrier(1);
}

constexpr Case kCases[] = {
        {"unsignalled", "requests without a completion free their places", unsignalled},
        {"fence", "a fenced SEND waits for the READ before it", fence},
        {"solicited", "events of armed CQs, all or solicited only", solicited},
        {"event-of-the-unpolled", "a CQE that came before its CQ was armed", event_of_the_unpolled},
        {"error-event", "a failed completion counts as solicited", error_event},
};

} // namespace

std::span<const Case> order_cases()
{
	return kCases;
}

} // namespace tern::guest
