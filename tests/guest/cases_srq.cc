// SPDX-License-Identifier: GPL-2.0-or-later
/* Shared receive queues: who gets which WQE, the limit, and growing while messages arrive. */
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "cases.h"
#include "lone_qp.h"

namespace tern::guest {
namespace {

constexpr size_t kMessage = 512;

/* Message @number of QP @qp. */
uint64_t seed_of(uint64_t qp, uint64_t number)
{
	return qp << 32 | number;
}

/** An SRQ with a buffer for each of its WQEs, whose wr_id is that of the buffer. */
class SharedQueue {
public:
	SharedQueue(const Device &device, uint32_t max_wr)
	        : memory_(device, max_wr * kMessage), srq_(make_srq(device, max_wr))
	{
	}

	ibv_srq *get() const { return srq_.get(); }
	std::span<uint8_t> buffer(uint64_t wr_id) const
	{
		return memory_.bytes().subspan(wr_id * kMessage, kMessage);
	}
	void post(uint64_t wr_id) const
	{
		ibv_sge sge = memory_.sge(wr_id * kMessage, kMessage);
		ibv_recv_wr wr = {}, *bad = nullptr;
		wr.wr_id = wr_id;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		const int err = ibv_post_srq_recv(get(), &wr, &bad);
		check(!err, "ibv_post_srq_recv: %s", std::strerror(err));
	}
	void post(uint64_t first, uint64_t count) const
	{
		for (uint64_t i = first; i < first + count; i++)
			post(i);
	}
	ibv_srq_attr query() const
	{
		ibv_srq_attr attr = {};
		const int err = ibv_query_srq(get(), &attr);
		check(!err, "ibv_query_srq: %s", std::strerror(err));
		return attr;
	}
	int modify(uint32_t max_wr, uint32_t limit, int mask) const
	{
		ibv_srq_attr attr = {.max_wr = max_wr, .max_sge = 0, .srq_limit = limit};
		return ibv_modify_srq(get(), &attr, mask);
	}

private:
	Buffer memory_;
	SrqPtr srq_;
};

void send_numbered(const Endpoint &, const Buffer &out, uint64_t qp, uint64_t number)
{
	fill(out.bytes().first(kMessage), seed_of(qp, number));
}

/* Three QPs fill one SRQ of eight, many times over. */
void shared(Session &s)
{
	constexpr uint64_t kQps = 3, kRounds = 100, kWrs = 8;
	const SharedQueue queue(s.device, kWrs);
	const EndpointConfig config = {.srq = s.active ? nullptr : queue.get()};
	std::array<Endpoint, kQps> eps = {Endpoint(s, config), Endpoint(s, config),
	                                  Endpoint(s, config)};
	const Buffer out(s.device, kMessage);

	for (Endpoint &ep : eps)
		ep.connect();
	if (!s.active)
		queue.post(0, kWrs);
	s.peer.barrier(1);
	for (uint64_t n = 0; n < kRounds; n++) {
		for (uint64_t qp = 0; qp < kQps; qp++) {
			if (s.active) {
				send_numbered(eps[qp], out, qp, n);
				eps[qp].send(n, IBV_WR_SEND, out.sge(0, kMessage));
				eps[qp].expect_send(n);
				continue;
			}
			const ibv_wc wc = eps[qp].recv_completion();
			check(wc.status == IBV_WC_SUCCESS && wc.wr_id < kWrs, "receive: %s",
			      ibv_wc_status_str(wc.status));
			check(wc.qp_num == eps[qp].qp()->qp_num, "the completion names another QP");
			check_filled(queue.buffer(wc.wr_id), seed_of(qp, n), "a shared WQE");
			queue.post(wc.wr_id);
		}
	}
	s.peer.barrier(2);
}

/* An empty SRQ makes the sender wait like an empty receive queue does. */
void late(Session &s)
{
	const SharedQueue queue(s.device, 4);
	Endpoint ep(s, {.srq = s.active ? nullptr : queue.get()});
	const Buffer out(s.device, kMessage);

	ep.connect({.rnr_retry = 7});
	if (s.active) {
		out.fill(9);
		ep.send(1, IBV_WR_SEND, out.sge(0, kMessage));
		ep.expect_silence();
	}
	s.peer.barrier(1);
	if (s.active) {
		ep.expect_send(1);
	} else {
		queue.post(2);
		ep.expect_recv(2);
		check_filled(queue.buffer(2), 9, "the late WQE");
	}
	s.peer.barrier(2);
}

/* The event comes once, when the queue goes below the limit, and disarms it (10.2.9.3). */
void limit(Session &s)
{
	constexpr uint32_t kWrs = 8, kLimit = 5;
	const SharedQueue queue(s.device, kWrs);
	Endpoint ep(s, {.srq = s.active ? nullptr : queue.get()});
	const Buffer out(s.device, kMessage);
	const auto send = [&](unsigned messages) {
		for (unsigned i = 0; s.active && i < messages; i++) {
			ep.send(i, IBV_WR_SEND, out.sge(0, kMessage));
			ep.expect_send(i);
		}
	};
	const auto event = [&](Clock::duration patience) {
		return s.device.wait_event(IBV_EVENT_SRQ_LIMIT_REACHED, queue.get(), patience);
	};

	ep.connect();
	if (!s.active) {
		queue.post(0, kWrs);
		check(!queue.modify(0, kLimit, IBV_SRQ_LIMIT), "ibv_modify_srq");
		check(queue.query().srq_limit == kLimit, "the limit is not what was set");
		check(queue.modify(0, 10000, IBV_SRQ_LIMIT) == EINVAL, "a limit past the size");
	}
	s.peer.barrier(1);
	send(kWrs - kLimit);
	s.peer.barrier(2);
	if (!s.active)
		check(!event(300ms), "event though as many WQEs are left as the limit says");
	s.peer.barrier(3);
	send(1);
	if (!s.active) {
		check(event(10s), "no event");
		check(queue.query().srq_limit == 0, "the limit is still armed");
	}
	s.peer.barrier(4);
	send(1);
	s.peer.barrier(5);
	if (!s.active) {
		check(!event(300ms), "a second event");
		/* What is below the limit already raises it at once. */
		check(!queue.modify(0, kLimit, IBV_SRQ_LIMIT), "ibv_modify_srq");
		check(event(10s), "no event though the queue is below the limit");
	}
}

/* The queue grows under messages that keep coming: none is lost, none comes twice. */
void resize(Session &s)
{
	constexpr uint64_t kMessages = 600, kWrs = 256, kFirst = 16;
	const Buffer memory(s.device, kWrs * kMessage), out(s.device, kMessage);
	const SharedQueue queue(s.device, kFirst);
	Endpoint ep(s, {.recv_wr = kWrs, .srq = s.active ? nullptr : queue.get()});

	ep.connect({.rnr_retry = 7});
	if (s.active) {
		for (uint64_t n = 0; n < kMessages; n++) {
			send_numbered(ep, out, 0, n);
			ep.send(n, IBV_WR_SEND, out.sge(0, kMessage));
			ep.expect_send(n);
		}
		s.peer.barrier(1);
		return;
	}

	const auto post = [&](uint64_t wr_id) {
		ibv_sge sge = memory.sge(wr_id * kMessage, kMessage);
		ibv_recv_wr wr = {}, *bad = nullptr;
		wr.wr_id = wr_id;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		const int err = ibv_post_srq_recv(queue.get(), &wr, &bad);
		check(!err, "ibv_post_srq_recv of %lu: %s", wr_id, std::strerror(err));
	};
	uint64_t posted = kFirst;
	for (uint64_t i = 0; i < posted; i++)
		post(i);
	for (uint64_t n = 0; n < kMessages; n++) {
		if (n % 100 == 50 && posted < kWrs) {
			const auto larger = static_cast<uint32_t>(posted * 4);
			const int err = queue.modify(larger, 0, IBV_SRQ_MAX_WR);
			check(!err, "ibv_modify_srq to %u WQEs: %s", larger, std::strerror(err));
			check(queue.query().max_wr >= larger, "the queue has not grown");
			while (posted < larger)
				post(posted++);
		}
		const ibv_wc wc = ep.recv_completion();
		check(wc.status == IBV_WC_SUCCESS && wc.wr_id < posted, "receive: %s",
		      ibv_wc_status_str(wc.status));
		check_filled(memory.bytes().subspan(wc.wr_id * kMessage, kMessage), seed_of(0, n),
		             "a message while the queue grows");
		post(wc.wr_id);
	}
	s.peer.barrier(1);
	/* What is large enough already stays as it is. */
	check(!queue.modify(kFirst, 0, IBV_SRQ_MAX_WR), "ibv_modify_srq to less");
	check(queue.query().max_wr >= kWrs, "the queue has shrunk");
	check(queue.modify(1 << 30, 0, IBV_SRQ_MAX_WR) == EINVAL, "ibv_modify_srq to too much");
}

/* A QP that breaks takes nothing with it from its SRQ, and says when it is done with it. */
void last_wqe(Session &s)
{
	const SharedQueue queue(s.device, 4);
	const EndpointConfig config = {.srq = s.active ? nullptr : queue.get()};
	Endpoint broken(s, config), other(s, config);
	const Buffer out(s.device, kMessage);

	broken.connect();
	other.connect();
	if (!s.active) {
		queue.post(0, 2);
		broken.set_state(IBV_QPS_ERR);
		check(s.device.wait_event(IBV_EVENT_QP_LAST_WQE_REACHED, broken.qp(), 10s),
		      "no asynchronous event");
		broken.expect_silence();
	}
	s.peer.barrier(1);
	for (uint64_t i = 0; i < 2; i++) {
		if (s.active) {
			other.send(i, IBV_WR_SEND, out.sge(0, kMessage));
			other.expect_send(i);
		} else {
			other.expect_recv(i);
		}
	}
	s.peer.barrier(2);
}

constexpr Case kCases[] = {
        {"srq-shared", "three QPs receive from one SRQ", shared},
        {"srq-late", "an empty SRQ: the SEND waits", late},
        {"srq-limit", "the limit event, once", limit},
        {"srq-resize", "an SRQ that grows under messages", resize},
        {"last-wqe", "ERR leaves the WQEs of the SRQ alone: event", last_wqe},
};

} // namespace

std::span<const Case> srq_cases()
{
	return kCases;
}

} // namespace tern::guest
