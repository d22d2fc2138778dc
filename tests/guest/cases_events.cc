// SPDX-License-Identifier: GPL-2.0-or-later
/* What QPs do by themselves, and the asynchronous events that tell of it. */
#include <cerrno>
#include <cstring>

#include "cases.h"
#include "lone_qp.h"

namespace tern::guest {
namespace {

constexpr size_t kSize = 4096;

void expect_event(const Session &s, ibv_event_type type, const void *element)
{
	if (s.async_events)
		check(s.device.wait_event(type, element, 10s), "no asynchronous event '%s'",
		      ibv_event_type_str(type));
}

/* Only the passive side hears of the first request, while it is in RTR. */
void comm_est(Session &s)
{
	LoneQp qp(s.device, IBV_QPT_RC);
	const Buffer buffer(s.device, kSize);

	qp.aim_at(s.peer);
	qp.lead_to(IBV_QPS_RTR);
	check(!qp.post_recv(1, buffer.sge(0, 64)), "ibv_post_recv");
	s.peer.barrier(1);
	if (s.active) {
		const Transition rts = transition(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS);
		check(!qp.go(IBV_QPS_RTS, rts.required), "to RTS");
		check(!qp.post_send(2, buffer.sge(0, 64)), "ibv_post_send");
	}
	const ibv_wc wc = qp.completion(); /* of the SEND here, of the RECV there */
	check(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	if (!s.active)
		expect_event(s, IBV_EVENT_COMM_EST, qp.get());
	s.peer.barrier(2);
}

/* SQD ends what has begun, tells when that is done, and lets nothing new begin. */
void sqd(Session &s)
{
	constexpr uint64_t kRequests = 16;
	Endpoint ep(s);
	const Buffer buffer(s.device, kSize);
	ep.connect();
	const RemoteBuffer remote = ep.exchange(buffer);
	if (s.active) {
		for (uint64_t i = 0; i < kRequests; i++)
			ep.send(i, IBV_WR_RDMA_WRITE, buffer.sge(0, kSize), remote);
		ibv_qp_attr attr = {};
		attr.qp_state = IBV_QPS_SQD;
		attr.en_sqd_async_notify = 1;
		check(!ibv_modify_qp(ep.qp(), &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
		      "to SQD");
		expect_event(s, IBV_EVENT_SQ_DRAINED, ep.qp());
		check(eventually([&] {
			      ibv_qp_init_attr init = {};
			      return !ibv_query_qp(ep.qp(), &attr, IBV_QP_STATE, &init) &&
			             attr.qp_state == IBV_QPS_SQD && !attr.sq_draining;
		      }),
		      "the send queue never drains");
		/* What had begun has ended; the rest waits, and so does what is posted now. */
		ibv_wc wc = {};
		uint64_t done = 0;
		while (ep.poll_send(wc))
			check(wc.status == IBV_WC_SUCCESS && wc.wr_id == done++,
			      "completion of %lu in SQD: %s", wc.wr_id,
			      ibv_wc_status_str(wc.status));
		ep.send(kRequests, IBV_WR_RDMA_WRITE, buffer.sge(0, 64), remote);
		ep.expect_silence();
		ep.set_state(IBV_QPS_RTS);
		while (done <= kRequests)
			ep.expect_send(done++);
	}
	s.peer.barrier(1);
}

/* A send error stops the send queue of an unreliable QP alone (10.3.1.6), until it is told on. */
void send_queue_error(Session &s, ibv_qp_type type)
{
	const LoneQp qp(s.device, type);
	const AhPtr ah = type == IBV_QPT_UD ? make_ah_to_self(s.device) : nullptr;
	const Buffer buffer(s.device, kSize);
	uint32_t stale;
	{
		const Buffer gone(s.device, kSize);
		stale = gone.lkey();
	}

	qp.lead_to(IBV_QPS_RTS);
	check(!qp.post_send(1, ibv_sge{buffer.addr(), 64, stale}, ah.get()), "ibv_post_send");
	ibv_wc wc = qp.completion();
	check(wc.wr_id == 1 && wc.status == IBV_WC_LOC_PROT_ERR, "a bad lkey: %s",
	      ibv_wc_status_str(wc.status));
	check(eventually([&] { return qp.state() == IBV_QPS_SQE; }), "the QP is in %s, not in SQE",
	      name_of(qp.state()));
	check(!qp.post_send(2, buffer.sge(0, 64), ah.get()), "ibv_post_send in SQE");
	wc = qp.completion();
	check(wc.wr_id == 2 && wc.status == IBV_WC_WR_FLUSH_ERR, "a SEND in SQE: %s",
	      ibv_wc_status_str(wc.status));

	check(qp.go(IBV_QPS_SQD, 0) == EINVAL, "from SQE to SQD");
	check(!qp.go(IBV_QPS_RTS, IBV_QP_CUR_STATE), "from SQE to RTS");
	check(qp.state() == IBV_QPS_RTS, "not in RTS");
	check(!qp.post_recv(3, buffer.sge(0, kSize)), "ibv_post_recv");
	check(!qp.post_send(4, buffer.sge(0, 64), ah.get()), "ibv_post_send");
	for (int i = 0; i < 2; i++) {
		wc = qp.completion();
		check(wc.status == IBV_WC_SUCCESS, "after SQE: %s", ibv_wc_status_str(wc.status));
	}
}

void sqe_uc(Session &s)
{
	send_queue_error(s, IBV_QPT_UC);
}

void sqe_ud(Session &s)
{
	send_queue_error(s, IBV_QPT_UD);
}

/* More completions than the CQ holds: CQ and QP say so, and neither the host nor others suffer. */
void cq_overrun(Session &s)
{
	constexpr int kRequests = 8, kRoom = 2;
	const LoneQp qp(s.device, IBV_QPT_RC, kRoom);
	const Buffer buffer(s.device, kSize);

	qp.lead_to(IBV_QPS_RTS);
	for (uint64_t i = 0; i < kRequests; i++) {
		ibv_sge sge = buffer.sge(0, 8);
		ibv_send_wr wr = {}, *bad = nullptr;
		wr.wr_id = i;
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.wr.rdma = {.remote_addr = buffer.addr() + 8, .rkey = buffer.rkey()};
		check(!ibv_post_send(qp.get(), &wr, &bad), "ibv_post_send of %lu", i);
	}
	if (s.async_events)
		check(s.device.wait_events(
		              {{IBV_EVENT_CQ_ERR, qp.cq()}, {IBV_EVENT_QP_FATAL, qp.get()}}, 10s),
		      "no asynchronous events of CQ and QP");
	check(eventually([&] { return qp.state() == IBV_QPS_ERR; }), "the QP is not in ERR");
}

constexpr Case kCases[] = {
        {"comm-est", "the first request in RTR: event", comm_est},
        {"sqd", "SQD with work under way: event, then no new work", sqd},
        {"sqe-uc", "UC: a send error leads to SQE and no further", sqe_uc},
        {"sqe-ud", "UD: a send error leads to SQE and no further", sqe_ud},
        {"cq-overrun", "a CQ that runs over: events of CQ and QP", cq_overrun},
};

} // namespace

std::span<const Case> event_cases()
{
	return kCases;
}

} // namespace tern::guest
