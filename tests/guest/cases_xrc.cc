// SPDX-License-Identifier: GPL-2.0-or-later
/* XRC: one connection, messages for any SRQ of the domain (annex A14). */
#include <array>
#include <cerrno>
#include <cstring>

#include "cases.h"
#include "lone_qp.h"

namespace tern::guest {
namespace {

constexpr size_t kMessage = 256;

/** An XRC SRQ with a CQ for what arrives there. */
class XrcQueue {
public:
	XrcQueue(const Device &device, ibv_xrcd *xrcd) : cq_(make_cq(device, 16))
	{
		ibv_srq_init_attr_ex init = {};
		init.attr = {.max_wr = 16, .max_sge = 1, .srq_limit = 0};
		init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
		                 IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		init.srq_type = IBV_SRQT_XRC;
		init.pd = device.pd();
		init.xrcd = xrcd;
		init.cq = cq_.get();
		srq_.reset(ibv_create_srq_ex(device.context(), &init));
		check(srq_.get(), "ibv_create_srq_ex: %s", std::strerror(errno));
	}

	uint32_t number() const
	{
		uint32_t number = 0;
		check(!ibv_get_srq_num(srq_.get(), &number), "ibv_get_srq_num");
		return number;
	}
	void post(uint64_t wr_id, ibv_sge sge) const
	{
		ibv_recv_wr wr = {}, *bad = nullptr;
		wr.wr_id = wr_id;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		check(!ibv_post_srq_recv(srq_.get(), &wr, &bad), "ibv_post_srq_recv");
	}
	ibv_wc completion() const
	{
		ibv_wc wc = {};
		check(eventually([&] { return ibv_poll_cq(cq_.get(), 1, &wc) > 0; }),
		      "no completion");
		return wc;
	}

private:
	CqPtr cq_;
	SrqPtr srq_;
};

void post_xrc(const LoneQp &qp, uint64_t wr_id, ibv_wr_opcode opcode, ibv_sge sge, uint32_t srqn,
              const RemoteBuffer &remote)
{
	ibv_send_wr wr = {}, *bad = nullptr;
	wr.wr_id = wr_id;
	wr.opcode = opcode;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.wr.rdma = {.remote_addr = remote.addr, .rkey = remote.rkey};
	wr.qp_type.xrc.remote_srqn = srqn;
	check(!ibv_post_send(qp.get(), &wr, &bad), "ibv_post_send");
}

void post_xrc_send(const LoneQp &qp, uint64_t wr_id, const ibv_sge &sge, uint32_t srqn)
{
	post_xrc(qp, wr_id, IBV_WR_SEND, sge, srqn, {});
}

ibv_qp_type our_type(const Session &s)
{
	return s.active ? IBV_QPT_XRC_SEND : IBV_QPT_XRC_RECV;
}

/* Messages go to the SRQ that each names. */
void two_queues(Session &s)
{
	constexpr uint64_t kMessages = 100, kQueues = 2;
	LoneQp qp(s.device, our_type(s));
	const Buffer buffer(s.device, kMessage);

	qp.aim_at(s.peer);
	qp.lead_to(IBV_QPS_RTS);
	if (s.active) {
		const auto numbers = s.peer.receive<std::array<uint32_t, kQueues>>();
		for (uint64_t n = 0; n < kMessages; n++) {
			buffer.fill(n);
			s.peer.barrier(1);
			post_xrc_send(qp, n, buffer.sge(0, kMessage), numbers[n % kQueues]);
			const ibv_wc wc = qp.completion();
			check(wc.wr_id == n && wc.status == IBV_WC_SUCCESS, "SEND: %s",
			      ibv_wc_status_str(wc.status));
		}
		return;
	}

	const std::array<XrcQueue, kQueues> queues = {XrcQueue(s.device, qp.xrcd()),
	                                              XrcQueue(s.device, qp.xrcd())};
	s.peer.send(std::array<uint32_t, kQueues>{queues[0].number(), queues[1].number()});
	for (uint64_t n = 0; n < kMessages; n++) {
		const XrcQueue &queue = queues[n % kQueues];
		queue.post(n, buffer.sge(0, kMessage));
		s.peer.barrier(1);
		const ibv_wc wc = queue.completion();
		check(wc.wr_id == n && wc.status == IBV_WC_SUCCESS, "RECV: %s",
		      ibv_wc_status_str(wc.status));
		check_filled(buffer.bytes(), n, "an XRC message");
	}
}

void expect_sent(const LoneQp &qp, uint64_t wr_id)
{
	const ibv_wc wc = qp.completion();
	check(wc.wr_id == wr_id && wc.status == IBV_WC_SUCCESS, "request %lu: %s", wr_id,
	      ibv_wc_status_str(wc.status));
}

/* WRITE and READ go with an SRQ too, and take nothing from it but its protection domain. */
void rdma(Session &s)
{
	constexpr size_t kMost = 1 << 16;
	LoneQp qp(s.device, our_type(s));
	const Buffer buffer(s.device, kMost), back(s.device, kMost);
	const RemoteBuffer remote =
	        s.peer.exchange(RemoteBuffer{buffer.addr(), buffer.size(), buffer.rkey()});

	qp.aim_at(s.peer);
	qp.lead_to(IBV_QPS_RTS);
	if (!s.active) {
		const XrcQueue queue(s.device, qp.xrcd());
		queue.post(1, buffer.sge(0, 16));
		s.peer.send(queue.number());
		for (size_t size = 1; size <= kMost; size *= 4) {
			s.peer.barrier(1);
			check_filled(buffer.bytes().first(size), size, "WRITE");
			s.peer.barrier(2);
		}
		s.peer.barrier(3);
		const ibv_wc wc = queue.completion();
		check(wc.wr_id == 1 && wc.status == IBV_WC_SUCCESS &&
		              wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 100,
		      "WRITE with immediate data");
		s.peer.barrier(4);
		return;
	}

	const auto srqn = s.peer.receive<uint32_t>();
	for (size_t size = 1; size <= kMost; size *= 4) {
		fill(buffer.bytes().first(size), size);
		post_xrc(qp, 1, IBV_WR_RDMA_WRITE, buffer.sge(0, size), srqn, remote);
		post_xrc(qp, 2, IBV_WR_RDMA_READ, back.sge(0, size), srqn, remote);
		expect_sent(qp, 1);
		expect_sent(qp, 2);
		check_filled(back.bytes().first(size), size, "READ");
		s.peer.barrier(1);
		s.peer.barrier(2);
	}
	post_xrc(qp, 3, IBV_WR_RDMA_WRITE_WITH_IMM, buffer.sge(0, 100), srqn, remote);
	expect_sent(qp, 3);
	s.peer.barrier(3);
	s.peer.barrier(4);
}

/* A message for an SRQ that is none of the domain is an invalid request. */
void foreign_queue(Session &s)
{
	LoneQp qp(s.device, our_type(s));
	const Buffer buffer(s.device, kMessage);

	qp.aim_at(s.peer);
	qp.lead_to(IBV_QPS_RTS);
	if (s.active) {
		post_xrc_send(qp, 1, buffer.sge(0, kMessage), s.peer.receive<uint32_t>());
		const ibv_wc wc = qp.completion();
		check(wc.status == IBV_WC_REM_INV_REQ_ERR, "a foreign SRQ: %s",
		      ibv_wc_status_str(wc.status));
		s.peer.barrier(1);
		return;
	}

	const XrcdPtr other = make_xrcd(s.device);
	const XrcQueue queue(s.device, other.get());
	s.peer.send(queue.number());
	s.peer.barrier(1);
	check(s.device.wait_event(IBV_EVENT_QP_REQ_ERR, qp.get(), 10s), "no asynchronous event");
	check(qp.state() == IBV_QPS_ERR, "the target is in %s", name_of(qp.state()));
}

/* Who opens a target shares it: its state, its events, and its life. */
void shared_target(Session &s)
{
	LoneQp target(s.device, IBV_QPT_XRC_RECV);
	ibv_qp_open_attr open = {};
	open.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	open.qp_num = target.get()->qp_num;
	open.xrcd = target.xrcd();
	open.qp_type = IBV_QPT_XRC_RECV;
	const QpPtr second(ibv_open_qp(s.device.context(), &open));
	check(second.get(), "ibv_open_qp: %s", std::strerror(errno));
	check(second->qp_num == open.qp_num, "another QP was opened");

	target.lead_to(IBV_QPS_RTS);
	ibv_qp_attr attr = {};
	ibv_qp_init_attr init = {};
	check(!ibv_query_qp(second.get(), &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	check(attr.qp_state == IBV_QPS_RTS, "the second handle sees %s", name_of(attr.qp_state));

	open.qp_num ^= 0x800000;
	const QpPtr none(ibv_open_qp(s.device.context(), &open));
	check(!none && errno == EINVAL, "ibv_open_qp of a QP that is none");
}

constexpr Case kCases[] = {
        {"xrc", "one connection, two SRQs", two_queues},
        {"xrc-rdma", "WRITE and READ of every size", rdma},
        {"xrc-foreign-srq", "an SRQ of another domain: invalid request, event", foreign_queue},
        {"xrc-open", "a target that is opened twice", shared_target},
};

} // namespace

std::span<const Case> xrc_cases()
{
	return kCases;
}

} // namespace tern::guest
