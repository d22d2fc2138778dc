// SPDX-License-Identifier: GPL-2.0-or-later
/* Data that must arrive: in pieces, inline, with immediate data, at every MTU and size. */
#include <algorithm>
#include <random>

#include <arpa/inet.h>

#include "cases.h"
#include "terndv.h"

namespace tern::guest {
namespace {

/* Cuts @total bytes of @buffer into @pieces of odd sizes, with a gap before each. */
std::vector<ibv_sge> scatter(const Buffer &buffer, size_t total, size_t pieces)
{
	std::vector<ibv_sge> sges;
	const size_t each = total / pieces;
	size_t at = 0;
	for (size_t i = 0; i < pieces; i++) {
		const size_t wiggle = i % 3;
		const size_t length = i + 1 < pieces ? std::min(each + wiggle - 1, total) : total;
		at += 5 + i;
		sges.push_back(buffer.sge(at, length));
		at += length;
		total -= length;
	}
	check(at <= buffer.size(), "the buffer is too small for its pieces");
	return sges;
}

/* What @sges name, one after the other. */
std::vector<uint8_t> gather(std::span<const ibv_sge> sges)
{
	std::vector<uint8_t> all;
	for (const ibv_sge &sge : sges) {
		const auto *p = reinterpret_cast<const uint8_t *>(sge.addr);
		all.insert(all.end(), p, p + sge.length);
	}
	return all;
}

void spread(std::span<const ibv_sge> sges, uint64_t seed)
{
	size_t i = 0;
	for (const ibv_sge &sge : sges)
		for (uint32_t k = 0; k < sge.length; k++)
			reinterpret_cast<uint8_t *>(sge.addr)[k] = pattern(seed, i++);
}

/* A Tern card supports so many SGEs and bytes of inline data, and a user can use all of them. */
constexpr size_t kTernSges = 30;
constexpr uint32_t kTernInline = 960;

bool is_tern(const Device &device)
{
	return terndv_is_supported(device.context()->device);
}

void sg(Session &s)
{
	constexpr size_t kTotal = 20000;
	const auto most = static_cast<size_t>(s.device.attr().max_sge);
	check(most >= (is_tern(s.device) ? kTernSges : 16), "the device takes %zu SGEs only", most);
	Endpoint ep(s, {.sge = static_cast<uint32_t>(most)});
	const Buffer from(s.device, 32768), to(s.device, 32768), flat(s.device, kTotal);
	ep.connect();
	const RemoteBuffer remote_flat = ep.exchange(flat);

	for (const size_t pieces : {size_t{2}, size_t{15}, size_t{16}, most}) {
		const auto out = scatter(from, kTotal, pieces),
		           in = scatter(to, kTotal, most + 2 - pieces);
		if (s.active) {
			spread(out, pieces);
			s.peer.barrier(1);
			ep.send(1, IBV_WR_SEND, out);
			ep.expect_send(1);
			ep.send(2, IBV_WR_RDMA_WRITE, out, remote_flat);
			ep.expect_send(2);
			ep.send(3, IBV_WR_RDMA_READ, in, remote_flat);
			ep.expect_send(3);
			check_filled(gather(in), pieces, "READ into pieces");
		} else {
			ep.recv(1, in);
			s.peer.barrier(1);
			const ibv_wc wc = ep.expect_recv(1);
			check(wc.byte_len == kTotal, "length of the SEND from pieces");
			check_filled(gather(in), pieces, "SEND from pieces into pieces");
		}
		s.peer.barrier(2);
		if (!s.active)
			check_filled(flat.bytes(), pieces, "WRITE from pieces");
		s.peer.barrier(3);
	}
}

void inline_data(Session &s)
{
	const uint32_t wanted =
	        s.peer.exchange(is_tern(s.device)) && is_tern(s.device) ? kTernInline : 64;
	Endpoint ep(s, {.sge = 2, .inline_data = wanted});
	check(ep.max_inline() >= wanted, "%u bytes inline", ep.max_inline());
	const uint32_t ours = std::min(ep.max_inline(), 1024u);
	const uint32_t most = std::min(ours, s.peer.exchange(ours));
	const Buffer in(s.device, 2048);
	std::vector<uint8_t> out(most); /* needs no registration */
	ep.connect();
	const RemoteBuffer remote = ep.exchange(in);
	constexpr unsigned kFlags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;

	for (uint32_t n = 0, next; n <= most; n = next) {
		next = n == most ? n + 1 : std::min(n + (n < 70 ? 1 : 33), most);
		if (!s.active)
			ep.recv(n, in.sge(0, 1024));
		s.peer.barrier(1);
		if (s.active) {
			fill(out, n);
			const auto addr = reinterpret_cast<uint64_t>(out.data());
			const ibv_sge halves[2] = {{addr, n / 3, 0}, {addr + n / 3, n - n / 3, 0}};
			ep.send(1, IBV_WR_RDMA_WRITE, halves, remote, 1024, kFlags);
			ep.send(2, IBV_WR_SEND, halves, {}, 0, kFlags);
			std::fill(out.begin(), out.end(), uint8_t{0xdd}); /* ours again at once */
			ep.expect_send(1);
			ep.expect_send(2);
		} else {
			check(ep.expect_recv(n).byte_len == n, "length of an inline SEND");
			check_filled(in.bytes().first(n), n, "inline SEND");
			check_filled(in.bytes().subspan(1024, n), n, "inline WRITE");
		}
	}
	s.peer.barrier(2);
	if (s.active) {
		std::vector<uint8_t> more(ep.max_inline() + 1);
		ibv_sge sge = {reinterpret_cast<uint64_t>(more.data()), ep.max_inline() + 1, 0};
		ibv_send_wr wr = {};
		wr.opcode = IBV_WR_SEND;
		wr.send_flags = kFlags;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		check(ep.post(wr) != 0, "more inline data was taken than granted");
	}
}

void imm(Session &s)
{
	constexpr size_t kSize = 5000;
	Endpoint ep(s);
	const Buffer buffer(s.device, 2 * kSize);
	ep.connect();
	const RemoteBuffer remote = ep.exchange(buffer);
	for (uint32_t i = 0; i < 20; i++) {
		const uint32_t value = 0x01020304u * (i + 1);
		if (!s.active) {
			ep.recv(1, buffer.sge(0, kSize));
			ep.recv(2, std::span<const ibv_sge>());
			ep.recv(3, buffer.sge(0, kSize));
		}
		s.peer.barrier(1);
		if (s.active) {
			buffer.fill(i);
			ep.send(1, IBV_WR_SEND_WITH_IMM, buffer.sge(0, i * 100), {}, 0,
			        IBV_SEND_SIGNALED, value);
			ep.send(2, IBV_WR_RDMA_WRITE_WITH_IMM, buffer.sge(0, kSize), remote, kSize,
			        IBV_SEND_SIGNALED, ~value);
			ep.send(3, IBV_WR_SEND, buffer.sge(0, 1));
			check(ep.expect_send(1).opcode == IBV_WC_SEND, "opcode of SEND with imm");
			check(ep.expect_send(2).opcode == IBV_WC_RDMA_WRITE,
			      "opcode of WRITE with imm");
			ep.expect_send(3);
		} else {
			ibv_wc wc = ep.expect_recv(1);
			check(wc.opcode == IBV_WC_RECV && wc.wc_flags & IBV_WC_WITH_IMM &&
			              ntohl(wc.imm_data) == value && wc.byte_len == i * 100,
			      "completion of SEND with imm");
			wc = ep.expect_recv(2);
			check(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
			              wc.wc_flags & IBV_WC_WITH_IMM &&
			              ntohl(wc.imm_data) == ~value && wc.byte_len == kSize,
			      "completion of WRITE with imm");
			check_filled(buffer.bytes().subspan(kSize), i, "WRITE with imm");
			wc = ep.expect_recv(3);
			check(!(wc.wc_flags & IBV_WC_WITH_IMM), "imm where none was sent");
		}
		s.peer.barrier(2);
	}
}

/* @rounds messages of each kind, of sizes around packet borders and at random. */
void transfer_sizes(Session &s, ibv_mtu mtu, unsigned rounds)
{
	constexpr size_t kMost = 100000;
	const size_t mtu_bytes = size_t{128} << mtu;
	Endpoint ep(s);
	const Buffer mine(s.device, kMost), shared(s.device, 2 * kMost);
	std::mt19937_64 random(s.seed + mtu); /* the same on both sides */
	ep.connect({.mtu = mtu});
	const RemoteBuffer remote = ep.exchange(shared);

	for (unsigned i = 0; i < rounds; i++) {
		const size_t borders[] = {
		        0, 1, mtu_bytes - 1, mtu_bytes, mtu_bytes + 1, 3 * mtu_bytes};
		const size_t size = i < std::size(borders) ? borders[i] : random() % kMost;
		const size_t offset = random() % (kMost - size + 1);
		const uint64_t seed = random();
		if (!s.active) {
			ep.recv(1, shared.sge(0, kMost));
			fill(mine.bytes(), seed + 2);
		}
		s.peer.barrier(1);
		if (s.active) {
			fill(mine.bytes().subspan(offset, size), seed);
			ep.send(1, IBV_WR_RDMA_WRITE, mine.sge(offset, size), remote,
			        kMost + offset);
			ep.send(2, IBV_WR_SEND, mine.sge(offset, size));
			ep.expect_send(1);
			ep.expect_send(2);
			fill(mine.bytes(), 0);
			ep.send(3, IBV_WR_RDMA_READ, mine.sge(offset, size), remote,
			        kMost + offset);
			check(size_t{ep.expect_send(3).byte_len} == size || size == 0,
			      "length of READ");
			check_filled(mine.bytes().subspan(offset, size), seed, "READ");
			check_filled(mine.bytes().first(offset), 0, "before the READ");
		} else {
			check(ep.expect_recv(1).byte_len == size, "length of SEND");
			check_filled(shared.bytes().first(size), seed, "SEND");
			check_filled(shared.bytes().subspan(kMost + offset, size), seed, "WRITE");
		}
	}
	s.peer.barrier(2);
}

void mtu(Session &s)
{
	const ibv_mtu theirs = s.peer.exchange(s.device.port().active_mtu);
	const ibv_mtu most = std::min(theirs, s.device.port().active_mtu);
	for (int m = IBV_MTU_256; m <= most; m++) {
		transfer_sizes(s, static_cast<ibv_mtu>(m), 20);
		if (s.active)
			std::printf("    path MTU %d\n", 128 << m);
	}
	check(most >= s.required_mtu, "the ports allow a path MTU of %d only", 128 << most);
}

constexpr Case kCases[] = {
        {"sg", "scatter and gather of 2 to 30 pieces", sg},
        {"inline", "inline data of every size granted", inline_data},
        {"imm", "immediate data of SEND and WRITE", imm},
        {"mtu", "every path MTU, sizes around packets and at random", mtu},
};

} // namespace

std::span<const Case> data_cases()
{
	return kCases;
}

} // namespace tern::guest
