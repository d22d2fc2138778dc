// SPDX-License-Identifier: GPL-2.0-or-later
/* UD: what arrives with a datagram, what is dropped, and groups (9.8.3, 10.5.2). */
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include <arpa/inet.h>

#include "cases.h"
#include "lone_qp.h"

namespace tern::guest {
namespace {

constexpr uint8_t kPort = 1;
constexpr uint32_t kQkey = 0x1234567;
constexpr size_t kGrh = 40;
constexpr uint32_t kMulticastQpn = 0xffffff;

/* What all our handles say, and the headers of the datagrams must show. */
constexpr uint8_t kTrafficClass = 0x68;
/* What is asked for, and what ib_core takes from the route instead, if there is one. */
constexpr uint8_t kAskedHopLimit = 17, kHopLimit = 64;
constexpr uint32_t kFlowLabel = 0xabcde;

AhPtr make_ah(const Device &device, const ibv_gid &to)
{
	ibv_ah_attr attr = {};
	attr.is_global = 1;
	attr.grh = {.dgid = to,
	            .flow_label = kFlowLabel,
	            .sgid_index = device.gid_index(),
	            .hop_limit = kAskedHopLimit,
	            .traffic_class = kTrafficClass};
	attr.port_num = kPort;
	AhPtr ah(ibv_create_ah(device.pd(), &attr));
	check(ah.get(), "ibv_create_ah: %s", std::strerror(errno));
	return ah;
}

/** A UD QP in RTS with a CQ of its own. */
class DatagramQp {
public:
	explicit DatagramQp(const Device &device, uint32_t qkey = kQkey, uint32_t create_flags = 0);

	ibv_qp *get() const { return qp_.get(); }
	uint32_t number() const { return qp_->qp_num; }

	/** Where a datagram goes. */
	struct To {
		const AhPtr &ah;
		uint32_t qpn;
		uint32_t qkey = kQkey;
	};
	void send(uint64_t wr_id, const ibv_sge &sge, const To &to,
	          unsigned flags = IBV_SEND_SIGNALED, std::optional<uint32_t> imm = {}) const;
	void recv(uint64_t wr_id, ibv_sge sge) const;
	ibv_wc expect_send(uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS) const
	{
		return expect(send_cq_.get(), wr_id, status);
	}
	ibv_wc expect_recv(uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS) const
	{
		return expect(recv_cq_.get(), wr_id, status);
	}
	/** Nothing may arrive for a while. */
	void expect_silence(const char *why) const;
	void set_state(ibv_qp_state state) const;

private:
	static ibv_wc expect(ibv_cq *cq, uint64_t wr_id, ibv_wc_status status);

	CqPtr send_cq_, recv_cq_;
	QpPtr qp_;
};

DatagramQp::DatagramQp(const Device &device, uint32_t qkey, uint32_t create_flags)
        : send_cq_(make_cq(device, 16)), recv_cq_(make_cq(device, 16))
{
	ibv_qp_init_attr_ex init = {};
	init.qp_type = IBV_QPT_UD;
	init.send_cq = send_cq_.get();
	init.recv_cq = recv_cq_.get();
	init.cap = {.max_send_wr = 16,
	            .max_recv_wr = 16,
	            .max_send_sge = 1,
	            .max_recv_sge = 1,
	            .max_inline_data = 64};
	init.comp_mask = IBV_QP_INIT_ATTR_PD;
	init.pd = device.pd();
	if (create_flags) {
		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		init.create_flags = create_flags;
	}
	qp_.reset(ibv_create_qp_ex(device.context(), &init));
	check(qp_.get(), "a UD QP: %s", std::strerror(errno));

	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = kPort;
	attr.qkey = qkey;
	check(!ibv_modify_qp(get(), &attr,
	                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	      "to INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(!ibv_modify_qp(get(), &attr, IBV_QP_STATE), "to RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(!ibv_modify_qp(get(), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "to RTS");
}

void DatagramQp::send(uint64_t wr_id, const ibv_sge &sge, const To &to, unsigned flags,
                      std::optional<uint32_t> imm) const
{
	ibv_send_wr wr = {}, *bad = nullptr;
	wr.wr_id = wr_id;
	wr.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
	wr.imm_data = htonl(imm.value_or(0));
	wr.send_flags = flags;
	wr.sg_list = const_cast<ibv_sge *>(&sge);
	wr.num_sge = 1;
	wr.wr.ud = {.ah = to.ah.get(), .remote_qpn = to.qpn, .remote_qkey = to.qkey};
	const int err = ibv_post_send(get(), &wr, &bad);
	check(!err, "ibv_post_send of datagram %lu: %s", wr_id, std::strerror(err));
}

void DatagramQp::recv(uint64_t wr_id, ibv_sge sge) const
{
	ibv_recv_wr wr = {}, *bad = nullptr;
	wr.wr_id = wr_id;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	const int err = ibv_post_recv(get(), &wr, &bad);
	check(!err, "ibv_post_recv: %s", std::strerror(err));
}

ibv_wc DatagramQp::expect(ibv_cq *cq, uint64_t wr_id, ibv_wc_status status)
{
	ibv_wc wc = {};
	check(eventually([&] { return ibv_poll_cq(cq, 1, &wc) > 0; }),
	      "no completion of datagram %lu", wr_id);
	check(wc.wr_id == wr_id, "completion of %lu instead of %lu", wc.wr_id, wr_id);
	check(wc.status == status, "completion of %lu: '%s' instead of '%s'", wr_id,
	      ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
	return wc;
}

void DatagramQp::expect_silence(const char *why) const
{
	ibv_wc wc = {};
	check(!eventually([&] { return ibv_poll_cq(recv_cq_.get(), 1, &wc) > 0; }, 200ms),
	      "%s: a completion of %lu, '%s'", why, wc.wr_id, ibv_wc_status_str(wc.status));
}

void DatagramQp::set_state(ibv_qp_state state) const
{
	ibv_qp_attr attr = {};
	attr.qp_state = state;
	check(!ibv_modify_qp(get(), &attr, IBV_QP_STATE), "ibv_modify_qp to %s", name_of(state));
}

/* ---- the first 40 bytes of what arrives ---------------------------------------------- */

bool is_ipv4(const ibv_gid &gid)
{
	static constexpr uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	return !std::memcmp(gid.raw, prefix, sizeof(prefix));
}

ibv_gid_type gid_type(const Device &device)
{
	ibv_gid_entry entry = {};
	check(!ibv_query_gid_ex(device.context(), kPort, device.gid_index(), &entry, 0),
	      "ibv_query_gid_ex");
	return static_cast<ibv_gid_type>(entry.gid_type);
}

uint8_t hop_limit_to(const ibv_gid &to)
{
	const bool multicast = is_ipv4(to) ? to.raw[12] >> 4 == 0xe : to.raw[0] == 0xff;
	return multicast ? kAskedHopLimit : kHopLimit;
}

/* Annex A17.4.5.1: an IPv4 header lies in the last 20 of the 40 bytes. */
void check_ipv4_header(std::span<const uint8_t, kGrh> grh, const ibv_gid &from, const ibv_gid &to)
{
	const auto ip = grh.subspan(20);
	check(ip[0] == 0x45, "the IPv4 header begins with %02x", ip[0]);
	check(ip[1] == kTrafficClass, "type of service %02x", ip[1]);
	check(ip[8] == hop_limit_to(to), "time to live %u", ip[8]);
	check(ip[9] == IPPROTO_UDP, "protocol %u", ip[9]);
	check(!std::memcmp(&ip[12], from.raw + 12, 4), "the source address is not the sender's");
	check(!std::memcmp(&ip[16], to.raw + 12, 4), "the destination address is not ours");
	check(std::all_of(grh.begin(), grh.begin() + 20, [](uint8_t b) { return !b; }),
	      "the bytes before the IPv4 header are not zero");
}

void check_grh(std::span<const uint8_t, kGrh> grh, const ibv_gid &from, const ibv_gid &to,
               uint8_t next_header)
{
	uint32_t word;
	std::memcpy(&word, grh.data(), sizeof(word));
	check(ntohl(word) == (6u << 28 | uint32_t{kTrafficClass} << 20 | kFlowLabel),
	      "version, traffic class and flow label are %08x", ntohl(word));
	check(grh[6] == next_header, "next header %u", grh[6]);
	check(grh[7] == hop_limit_to(to), "hop limit %u", grh[7]);
	check(!std::memcmp(&grh[8], from.raw, 16), "the source GID is not the sender's");
	check(!std::memcmp(&grh[24], to.raw, 16), "the destination GID is not ours");
}

void check_header(const Device &device, const Buffer &in, const ibv_gid &from, const ibv_gid &to)
{
	const std::span<const uint8_t, kGrh> grh(in.data(), kGrh);
	constexpr uint8_t kIbaNextHeader = 0x1b;

	if (gid_type(device) == IBV_GID_TYPE_ROCE_V1)
		check_grh(grh, from, to, kIbaNextHeader);
	else if (is_ipv4(to))
		check_ipv4_header(grh, from, to);
	else
		check_grh(grh, from, to, IPPROTO_UDP);
}

/* ---- datagrams ------------------------------------------------------------------------ */

/** Both sides' QP and GID, and a handle to the other. */
struct Pair {
	explicit Pair(Session &s)
	        : qp(s.device), peer_qpn(s.peer.exchange(qp.number())),
	          peer_gid(s.peer.exchange(s.device.gid())), ah(make_ah(s.device, peer_gid)),
	          mtu(size_t{128} << std::min(s.device.port().active_mtu,
	                                      s.peer.exchange(s.device.port().active_mtu)))
	{
	}

	DatagramQp::To peer(uint32_t qkey = kQkey) const { return {ah, peer_qpn, qkey}; }

	DatagramQp qp;
	uint32_t peer_qpn;
	ibv_gid peer_gid;
	AhPtr ah;
	size_t mtu; /* bytes of the longest datagram */
};

void check_datagram(const Session &s, const Pair &p, const Buffer &in, const ibv_wc &wc,
                    size_t size)
{
	check(wc.opcode == IBV_WC_RECV, "opcode %d", wc.opcode);
	check(wc.byte_len == kGrh + size, "%u bytes instead of %zu", wc.byte_len, kGrh + size);
	check(wc.src_qp == p.peer_qpn, "from QP %#x instead of %#x", wc.src_qp, p.peer_qpn);
	check(wc.wc_flags & IBV_WC_GRH, "no IBV_WC_GRH");
	check(wc.qp_num == p.qp.number(), "for QP %#x", wc.qp_num);
	check_header(s.device, in, p.peer_gid, s.device.gid());
	check_filled(in.bytes().subspan(kGrh, size), size, "the datagram");
}

/* Back to where it came from, as a server does that knows nothing but the completion. */
void answer(const Session &s, const Pair &p, const Buffer &in, ibv_wc &wc, size_t size)
{
	const AhPtr ah(ibv_create_ah_from_wc(s.device.pd(), &wc,
	                                     reinterpret_cast<ibv_grh *>(in.data()), kPort));
	check(ah.get(), "ibv_create_ah_from_wc: %s", std::strerror(errno));
	p.qp.send(2, in.sge(kGrh, size), {ah, wc.src_qp});
	p.qp.expect_send(2);
}

void data(Session &s)
{
	const Pair p(s);
	const Buffer out(s.device, 8192), in(s.device, 8192);
	std::vector<size_t> sizes = {0, 1, 3, 4, 5, 63, 64, 65, 200};

	for (size_t n = 256; n <= p.mtu; n *= 2)
		sizes.insert(sizes.end(), {n - 1, n});
	for (const size_t size : sizes) {
		std::fill_n(in.data(), in.size(), uint8_t{0xdd});
		p.qp.recv(1, in.sge(0, kGrh + size));
		s.peer.barrier(1);
		if (s.active) {
			fill(out.bytes().first(size), size);
			const bool with_imm = size % 2;
			const unsigned flags = size <= 64 ? IBV_SEND_SIGNALED | IBV_SEND_INLINE
			                                  : IBV_SEND_SIGNALED;
			p.qp.send(3, out.sge(0, size), p.peer(), flags,
			          with_imm ? std::optional(static_cast<uint32_t>(size))
			                   : std::nullopt);
			p.qp.expect_send(3);
			const ibv_wc wc = p.qp.expect_recv(1);
			check(wc.byte_len == kGrh + size && wc.src_qp == p.peer_qpn,
			      "an answer of %u bytes from QP %#x", wc.byte_len, wc.src_qp);
			check_filled(in.bytes().subspan(kGrh, size), size, "the answer");
		} else {
			ibv_wc wc = p.qp.expect_recv(1);
			check_datagram(s, p, in, wc, size);
			check(!(wc.wc_flags & IBV_WC_WITH_IMM) == !(size % 2) &&
			              (!(size % 2) || ntohl(wc.imm_data) == size),
			      "immediate data");
			check(in.data()[kGrh + size] == 0xdd, "a byte past the end was written");
			answer(s, p, in, wc, size);
		}
		s.peer.barrier(2);
	}
}

/* What is dropped leaves no trace: the next good datagram takes the same receive request. */
void qkey(Session &s)
{
	const Pair p(s);
	const Buffer buffer(s.device, 4096);
	constexpr uint32_t kOurOwn = 0x80000000; /* the Q_Key of the sending QP (10.2.5) */

	if (!s.active)
		p.qp.recv(1, buffer.sge(0, 4096));
	s.peer.barrier(1);
	if (s.active) {
		p.qp.send(1, buffer.sge(0, 10), p.peer(kQkey + 1));
		p.qp.expect_send(1);
	}
	s.peer.barrier(2);
	if (!s.active)
		p.qp.expect_silence("a wrong Q_Key");
	for (const uint32_t good : {kQkey, kOurOwn}) {
		s.peer.barrier(3);
		if (s.active) {
			p.qp.send(2, buffer.sge(0, 20), p.peer(good));
			p.qp.expect_send(2);
		} else {
			check(p.qp.expect_recv(1).byte_len == kGrh + 20,
			      "another datagram arrived");
			p.qp.recv(1, buffer.sge(0, 4096));
		}
	}
	s.peer.barrier(4);
}

void no_receive(Session &s)
{
	const Pair p(s);
	const Buffer buffer(s.device, 4096);

	if (s.active)
		for (uint64_t i = 0; i < 3; i++) {
			p.qp.send(i, buffer.sge(0, 10 + i), p.peer());
			p.qp.expect_send(i);
		}
	/* They have come when data behind them on the same engines has. Barriers go by TCP, which
	 * may be on another engine. */
	check_device_works(s);
	if (!s.active) {
		/* They went by: what comes later is not they. */
		p.qp.expect_silence("nothing was posted");
		p.qp.recv(1, buffer.sge(0, 4096));
	}
	s.peer.barrier(2);
	if (s.active) {
		p.qp.send(9, buffer.sge(0, 99), p.peer());
		p.qp.expect_send(9);
	} else {
		check(p.qp.expect_recv(1).byte_len == kGrh + 99, "an old datagram arrived");
	}
	s.peer.barrier(3);
}

void too_long(Session &s)
{
	const Pair p(s);
	const Buffer buffer(s.device, 16384);

	if (!s.active)
		p.qp.recv(1, buffer.sge(0, kGrh + 100));
	s.peer.barrier(1);
	if (s.active) {
		/* More than a packet holds: the sender's error, from which it can go on. */
		p.qp.send(1, buffer.sge(0, p.mtu + 1), p.peer());
		p.qp.expect_send(1, IBV_WC_LOC_LEN_ERR);
		p.qp.set_state(IBV_QPS_RTS);
		/* More than the receiver has room for: the receiver's. */
		p.qp.send(2, buffer.sge(0, 101), p.peer());
		p.qp.expect_send(2);
	} else {
		p.qp.expect_recv(1, IBV_WC_LOC_LEN_ERR);
	}
	s.peer.barrier(2);
}

/* ---- groups ------------------------------------------------------------------------------ */

/* Of the family of our GID, and another for every run. */
ibv_gid group_gid(const Session &s)
{
	ibv_gid gid = s.device.gid();
	const auto a = static_cast<uint8_t>(s.seed), b = static_cast<uint8_t>(s.seed >> 8);

	if (is_ipv4(gid)) {
		const std::array<uint8_t, 4> ip = {239, 77, b, a};
		std::copy(ip.begin(), ip.end(), gid.raw + 12);
	} else {
		gid = {.raw = {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 77, b, a}};
	}
	return gid;
}

/** A UD QP in a group, with one receive request. */
class Member {
public:
	Member(const Session &s, const ibv_gid &group, uint32_t qkey = kQkey)
	        : qp_(s.device, qkey), in_(s.device, 4096), group_(group)
	{
		const int err = ibv_attach_mcast(qp_.get(), &group_, 0);
		check(!err, "ibv_attach_mcast: %s", std::strerror(err));
		attached_ = true;
		listen();
	}
	~Member() { leave(); }
	Member(const Member &) = delete;
	Member &operator=(const Member &) = delete;

	void leave()
	{
		if (attached_)
			ibv_detach_mcast(qp_.get(), &group_, 0);
		attached_ = false;
	}
	void expect_datagram(const Session &s, const ibv_gid &from, size_t size)
	{
		const ibv_wc wc = qp_.expect_recv(1);
		check(wc.byte_len == kGrh + size, "%u bytes for the group", wc.byte_len);
		check_header(s.device, in_, from, group_);
		check_filled(in_.bytes().subspan(kGrh, size), size, "for the group");
		listen();
	}
	void expect_silence(const char *why) const { qp_.expect_silence(why); }

private:
	void listen() const { qp_.recv(1, in_.sge(0, in_.size())); }

	DatagramQp qp_;
	Buffer in_;
	ibv_gid group_;
	bool attached_ = false;
};

/* Each QP of the group has a copy, on the other host as on the sender's. */
void multicast(Session &s)
{
	const ibv_gid group = group_gid(s), peer_gid = s.peer.exchange(s.device.gid());
	const ibv_gid sender_gid = s.active ? s.device.gid() : peer_gid;
	Member a(s, group), b(s, group);
	const Member stranger(s, group, kQkey + 1);
	const DatagramQp sender(s.device);
	const AhPtr ah = make_ah(s.device, group);
	const Buffer out(s.device, 4096);
	const auto send = [&](const DatagramQp &from, size_t size) {
		s.peer.barrier(1);
		if (s.active) {
			fill(out.bytes().first(size), size);
			from.send(2, out.sge(0, size), {ah, kMulticastQpn});
			from.expect_send(2);
		}
	};

	for (size_t size = 1; size <= 1000; size *= 10) {
		send(sender, size);
		a.expect_datagram(s, sender_gid, size);
		b.expect_datagram(s, sender_gid, size);
	}
	stranger.expect_silence("a group member with another Q_Key");
	b.leave();
	send(sender, 123);
	a.expect_datagram(s, sender_gid, 123);
	b.expect_silence("a QP that has left the group");
}

/* A QP can keep its own host out of what it sends to a group. */
void no_loopback(Session &s)
{
	const ibv_gid group = group_gid(s), peer_gid = s.peer.exchange(s.device.gid());
	const bool one_host = !std::memcmp(&peer_gid, s.device.gid().raw, sizeof(peer_gid));
	Member member(s, group);
	const DatagramQp sender(s.device, kQkey, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
	const AhPtr ah = make_ah(s.device, group);
	const Buffer out(s.device, 4096);

	s.peer.barrier(1);
	if (s.active) {
		fill(out.bytes().first(55), 55);
		sender.send(2, out.sge(0, 55), {ah, kMulticastQpn});
		sender.expect_send(2);
	}
	if (s.active || one_host)
		member.expect_silence("the sender wants no loopback");
	else
		member.expect_datagram(s, peer_gid, 55);
	s.peer.barrier(2);
}

constexpr Case kCases[] = {
        {"ud", "datagrams of every size, with headers and answers", data},
        {"ud-qkey", "a wrong Q_Key: dropped", qkey},
        {"ud-no-receive", "datagrams for which nothing is posted: dropped", no_receive},
        {"ud-too-long", "more than a packet, more than the buffer", too_long},
        {"ud-multicast", "a group of QPs on both hosts", multicast},
        {"ud-no-loopback", "multicast that its own host does not get", no_loopback},
};

} // namespace

std::span<const Case> datagram_cases()
{
	return kCases;
}

} // namespace tern::guest
