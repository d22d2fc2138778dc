// SPDX-License-Identifier: GPL-2.0-or-later
/* UC: data as with RC, but nobody says whether it arrived (9.8.2). */
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>

#include "cases.h"
#include "lone_qp.h"

namespace tern::guest {
namespace {

constexpr size_t kRoom = 1 << 17;

void post(const LoneQp &qp, uint64_t wr_id, ibv_wr_opcode opcode, ibv_sge sge,
          const RemoteBuffer &remote, uint64_t offset, uint32_t imm = 0)
{
	ibv_send_wr wr = {}, *bad = nullptr;
	wr.wr_id = wr_id;
	wr.opcode = opcode;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.imm_data = htonl(imm);
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.wr.rdma = {.remote_addr = remote.addr + offset, .rkey = remote.rkey};
	const int err = ibv_post_send(qp.get(), &wr, &bad);
	check(!err, "ibv_post_send of %lu: %s", wr_id, std::strerror(err));
}

ibv_wc expect(const LoneQp &qp, uint64_t wr_id)
{
	const ibv_wc wc = qp.completion();
	check(wc.wr_id == wr_id && wc.status == IBV_WC_SUCCESS, "completion of %lu, '%s'", wc.wr_id,
	      ibv_wc_status_str(wc.status));
	return wc;
}

/* A SEND, a WRITE and a WRITE that tells of itself and, with it, of the one before. */
void data(Session &s)
{
	LoneQp qp(s.device, IBV_QPT_UC);
	const Buffer out(s.device, kRoom), in(s.device, 3 * kRoom);
	qp.aim_at(s.peer);
	qp.lead_to(IBV_QPS_RTS);
	const RemoteBuffer remote = s.peer.exchange(RemoteBuffer{in.addr(), in.size(), in.rkey()});
	const size_t mtu = 1024;

	for (const size_t size : {size_t{0}, size_t{1}, size_t{7}, mtu - 1, mtu, mtu + 1, 2 * mtu,
	                          3 * mtu + 5, size_t{65536}, kRoom}) {
		if (!s.active) {
			check(!qp.post_recv(1, in.sge(0, kRoom)), "ibv_post_recv");
			check(!qp.post_recv(2, in.sge(0, 0)), "ibv_post_recv");
		}
		s.peer.barrier(1);
		if (s.active) {
			fill(out.bytes().first(size), size);
			post(qp, 3, IBV_WR_SEND, out.sge(0, size), {}, 0);
			post(qp, 4, IBV_WR_RDMA_WRITE, out.sge(0, size), remote, kRoom);
			post(qp, 5, IBV_WR_RDMA_WRITE_WITH_IMM, out.sge(0, size), remote, 2 * kRoom,
			     static_cast<uint32_t>(size));
			for (uint64_t id = 3; id <= 5; id++)
				expect(qp, id);
		} else {
			ibv_wc wc = expect(qp, 1);
			check(wc.opcode == IBV_WC_RECV && wc.byte_len == size, "the SEND: %u bytes",
			      wc.byte_len);
			wc = expect(qp, 2);
			check(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == size &&
			              wc.wc_flags & IBV_WC_WITH_IMM && ntohl(wc.imm_data) == size,
			      "the WRITE with immediate: %u bytes", wc.byte_len);
			check_filled(in.bytes().first(size), size, "SEND");
			check_filled(in.bytes().subspan(kRoom, size), size, "WRITE");
			check_filled(in.bytes().subspan(2 * kRoom, size), size, "WRITE_IMM");
		}
		s.peer.barrier(2);
	}
}

/* A message that finds no receive request is gone, and the sender does not know. */
void no_receive(Session &s)
{
	LoneQp qp(s.device, IBV_QPT_UC);
	const Buffer buffer(s.device, 8192);
	qp.aim_at(s.peer);
	qp.lead_to(IBV_QPS_RTS);
	s.peer.barrier(1);
	if (s.active) {
		post(qp, 1, IBV_WR_SEND, buffer.sge(0, 5000), {}, 0);
		expect(qp, 1);
	}
	/* The message has come when data behind it on the same engines has. Barriers go by TCP,
	 * which may be on another engine. */
	check_device_works(s);
	if (!s.active) {
		check(qp.silent(), "a message for which nothing was posted");
		check(!qp.post_recv(2, buffer.sge(0, 8192)), "ibv_post_recv");
	}
	s.peer.barrier(3);
	if (s.active) {
		fill(buffer.bytes().first(3000), 3);
		post(qp, 3, IBV_WR_SEND, buffer.sge(0, 3000), {}, 0);
		expect(qp, 3);
	} else {
		check(expect(qp, 2).byte_len == 3000, "an old message arrived");
		check_filled(buffer.bytes().first(3000), 3, "SEND");
	}
	s.peer.barrier(4);
}

/* A WRITE that it has no right to is dropped, and so is what belongs to its message. */
void bad_rkey(Session &s)
{
	LoneQp qp(s.device, IBV_QPT_UC);
	const Buffer buffer(s.device, 8192);
	qp.aim_at(s.peer);
	qp.lead_to(IBV_QPS_RTS);
	RemoteBuffer remote =
	        s.peer.exchange(RemoteBuffer{buffer.addr(), buffer.size(), buffer.rkey()});
	if (s.active) {
		remote.rkey ^= 0xff;
		buffer.fill(1);
		post(qp, 1, IBV_WR_RDMA_WRITE, buffer.sge(0, 5000), remote, 0);
		expect(qp, 1);
	}
	s.peer.barrier(1);
	if (!s.active) {
		check(qp.silent(), "a completion of a WRITE");
		for (const uint8_t byte : buffer.bytes())
			check(!byte, "a WRITE without a right to it has written");
	}
	s.peer.barrier(2);
}

void expect_refused(const LoneQp &qp, const Buffer &buffer, ibv_wr_opcode opcode)
{
	ibv_sge sge = buffer.sge(0, 8);
	ibv_send_wr wr = {}, *bad = nullptr;
	wr.opcode = opcode;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.wr.rdma = {.remote_addr = buffer.addr(), .rkey = buffer.rkey()};
	check(ibv_post_send(qp.get(), &wr, &bad) == EINVAL && bad == &wr,
	      "a request that UC does not have was taken");
}

void refused(Session &s)
{
	const LoneQp qp(s.device, IBV_QPT_UC);
	const Buffer buffer(s.device, 64);
	qp.lead_to(IBV_QPS_RTS);
	for (const auto opcode :
	     {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD})
		expect_refused(qp, buffer, opcode);
	check(qp.silent(), "a completion of what was refused");
}

constexpr Case kCases[] = {
        {"uc", "SEND and WRITE of every size", data},
        {"uc-no-receive", "a SEND for which nothing is posted: dropped", no_receive},
        {"uc-bad-rkey", "a WRITE with a wrong rkey: dropped", bad_rkey},
        {"uc-refused", "READ and atomics are not UC's", refused},
};

} // namespace

std::span<const Case> uc_cases()
{
	return kCases;
}

} // namespace tern::guest
