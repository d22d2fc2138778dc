// SPDX-License-Identifier: GPL-2.0-or-later
#include "endpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>

namespace tern::guest {

namespace {

constexpr uint8_t kPort = 1;
constexpr auto kPatience = 60s; /* emulated hosts are slow */

template <class Ptr, class Raw>
Ptr need(Raw *raw, const char *what)
{
	check(raw, "%s: %s", what, std::strerror(errno));
	return Ptr(raw);
}

ibv_context *open_device(const std::string &name)
{
	int n = 0;
	ibv_device **list = ibv_get_device_list(&n);
	check(list, "ibv_get_device_list: %s", std::strerror(errno));
	ibv_device **end = list + n;
	ibv_device **found = std::find_if(
	        list, end, [&](ibv_device *d) { return ibv_get_device_name(d) == name; });
	ibv_context *context = found != end ? ibv_open_device(*found) : nullptr;
	const bool known = found != end;
	ibv_free_device_list(list);
	check(known, "no RDMA device %s", name.c_str());
	check(context, "cannot open %s: %s", name.c_str(), std::strerror(errno));
	return context;
}

bool is_ipv4(const ibv_gid &gid)
{
	static constexpr uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	return !std::memcmp(gid.raw, prefix, sizeof(prefix));
}

int choose_gid(ibv_context *context)
{
	std::vector<ibv_gid_entry> table(256);
	const ssize_t n = ibv_query_gid_table(context, table.data(), table.size(), 0);
	for (ssize_t i = 0; i < n; i++)
		if (table[i].port_num == kPort && table[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    is_ipv4(table[i].gid))
			return static_cast<int>(table[i].gid_index);
	throw CheckFailed("the port has no RoCE v2 GID with an IPv4 address (give --gid-index)");
}

} // namespace

/* ---- Device ------------------------------------------------------------------------- */

Device::Device(const std::string &name, int gid_index)
        : context_(open_device(name)),
          pd_(need<PdPtr>(ibv_alloc_pd(context_.get()), "ibv_alloc_pd")), gid_index_(gid_index)
{
	check(!ibv_query_device(context(), &attr_), "ibv_query_device");
	check(!ibv_query_port(context(), kPort, &port_), "ibv_query_port");
	check(port_.state == IBV_PORT_ACTIVE, "the port is not active");
	if (gid_index_ < 0)
		gid_index_ = choose_gid(context());
	check(!ibv_query_gid(context(), kPort, gid_index_, &gid_), "ibv_query_gid");
	fcntl(context()->async_fd, F_SETFL, fcntl(context()->async_fd, F_GETFL) | O_NONBLOCK);
}

bool Device::wait_events(std::vector<Event> events, Clock::duration patience) const
{
	const auto end = Clock::now() + patience;
	for (;;) {
		ibv_async_event event;
		while (!ibv_get_async_event(context(), &event)) {
			std::erase_if(events, [&](const Event &e) {
				return e.type == event.event_type && e.element == event.element.qp;
			});
			ibv_ack_async_event(&event);
		}
		if (events.empty())
			return true;
		const auto left =
		        std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
		if (left.count() <= 0)
			return false;
		pollfd p = {.fd = context()->async_fd, .events = POLLIN, .revents = 0};
		::poll(&p, 1, static_cast<int>(left.count()));
	}
}

void Device::note_events()
{
	ibv_async_event event;
	while (!ibv_get_async_event(context(), &event)) {
		noted_ += format("; event '%s'", ibv_event_type_str(event.event_type));
		ibv_ack_async_event(&event);
	}
}

std::string Device::noted_events()
{
	note_events();
	return std::exchange(noted_, {});
}

/* ---- Buffer -------------------------------------------------------------------------- */

void Buffer::Free::operator()(uint8_t *p) const
{
	std::free(p);
}

Buffer::Buffer(const Device &device, size_t size, int access)
        : memory_(static_cast<uint8_t *>(std::aligned_alloc(4096, (size + 4095) & ~size_t{4095}))),
          size_(size)
{
	check(memory_.get(), "no memory");
	std::memset(data(), 0, size);
	mr_ = need<MrPtr>(ibv_reg_mr(device.pd(), data(), size, access), "ibv_reg_mr");
}

void Buffer::fill(uint64_t seed) const
{
	guest::fill(bytes(), seed);
}

namespace {

/* A finalizer of murmur's kind: each bit of the result depends on all of both. */
uint64_t pattern_word(uint64_t seed, size_t index)
{
	uint64_t v = seed * 0x9e3779b97f4a7c15 + index;
	v = (v ^ v >> 33) * 0xff51afd7ed558ccd;
	v = (v ^ v >> 33) * 0xc4ceb9fe1a85ec53;
	return v;
}

} // namespace

uint8_t pattern(uint64_t seed, size_t offset)
{
	return static_cast<uint8_t>(pattern_word(seed, offset / 8) >> (offset % 8 * 8));
}

void fill(std::span<uint8_t> bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes.size(); i += 8) {
		const uint64_t word = pattern_word(seed, i / 8);
		std::memcpy(&bytes[i], &word, std::min<size_t>(8, bytes.size() - i));
	}
}

void check_filled(std::span<const uint8_t> bytes, uint64_t seed, const char *what)
{
	for (size_t i = 0; i < bytes.size(); i += 8) {
		const uint64_t word = pattern_word(seed, i / 8);
		if (!std::memcmp(&bytes[i], &word, std::min<size_t>(8, bytes.size() - i)))
			continue;
		while (bytes[i] == pattern(seed, i))
			i++;
		throw CheckFailed(format("%s: byte %zu of %zu is %02x, not %02x", what, i,
		                         bytes.size(), bytes[i], pattern(seed, i)));
	}
}

/* ---- Endpoint ------------------------------------------------------------------------- */

Endpoint::Endpoint(Session &session, const EndpointConfig &config) : session_(session)
{
	ibv_context *context = session.device.context();

	if (config.channel)
		channel_ = need<ChannelPtr>(ibv_create_comp_channel(context),
		                            "ibv_create_comp_channel");
	send_cq_ = need<CqPtr>(
	        ibv_create_cq(context, static_cast<int>(config.send_wr), nullptr, nullptr, 0),
	        "ibv_create_cq");
	recv_cq_ = need<CqPtr>(ibv_create_cq(context, static_cast<int>(config.recv_wr), nullptr,
	                                     channel_.get(), 0),
	                       "ibv_create_cq");

	ibv_qp_init_attr_ex init = {};
	init.send_cq = send_cq_.get();
	init.recv_cq = recv_cq_.get();
	init.srq = config.srq;
	init.qp_type = IBV_QPT_RC;
	init.cap = {.max_send_wr = config.send_wr,
	            .max_recv_wr = config.srq ? 0 : config.recv_wr,
	            .max_send_sge = config.sge,
	            .max_recv_sge = config.srq ? 0 : config.sge,
	            .max_inline_data = config.inline_data};
	init.pd = session.device.pd();
	init.comp_mask = IBV_QP_INIT_ATTR_PD;
	if (config.send_ops) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = config.send_ops;
	}
	qp_ = need<QpPtr>(ibv_create_qp_ex(context, &init), "ibv_create_qp_ex");
	cap_ = init.cap;
	check(cap_.max_inline_data >= config.inline_data,
	      "less inline data granted than asked for");
}

Endpoint::~Endpoint()
{
	/* A QP takes its events with it, and after a failure they may be what explains it. */
	if (std::uncaught_exceptions()) {
		std::this_thread::sleep_for(200ms);
		session_.device.note_events();
	}
}

void Endpoint::modify(ibv_qp_attr &attr, int mask, const char *to)
{
	const int err = ibv_modify_qp(qp_.get(), &attr, mask);
	check(!err, "ibv_modify_qp to %s: %s", to, std::strerror(err));
}

void Endpoint::connect(const LinkConfig &config)
{
	struct Address {
		ibv_gid gid;
		uint32_t qpn;
		uint32_t psn;
		ibv_mtu mtu;
	};
	const uint32_t psn =
	        static_cast<uint32_t>(session_.seed * 0x9e3779b1 + qp_->qp_num) & 0xffffff;
	const Address ours = {session_.device.gid(), qp_->qp_num, psn,
	                      session_.device.port().active_mtu};
	const Address theirs = session_.peer.exchange(ours);
	mtu_ = config.mtu ? config.mtu : std::min(ours.mtu, theirs.mtu);

	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = kPort;
	attr.qp_access_flags = static_cast<unsigned>(config.access);
	modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");

	attr = {};
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = mtu_;
	attr.dest_qp_num = (theirs.qpn + config.wrong_qpn) & 0xffffff;
	attr.rq_psn = theirs.psn;
	attr.max_dest_rd_atomic = config.rd_atomic;
	attr.min_rnr_timer = config.min_rnr_timer;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.dgid = theirs.gid;
	attr.ah_attr.grh.sgid_index = session_.device.gid_index();
	attr.ah_attr.grh.hop_limit = 64;
	attr.ah_attr.port_num = kPort;
	modify(attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	       "RTR");

	attr = {};
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = psn;
	attr.timeout = config.timeout;
	attr.retry_cnt = config.retry;
	attr.rnr_retry = config.rnr_retry;
	attr.max_rd_atomic = config.rd_atomic;
	modify(attr,
	       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	               IBV_QP_MAX_QP_RD_ATOMIC,
	       "RTS");
	session_.peer.barrier(1000);
}

RemoteBuffer Endpoint::exchange(const Buffer &buffer)
{
	return session_.peer.exchange(RemoteBuffer{buffer.addr(), buffer.size(), buffer.rkey()});
}

int Endpoint::post(ibv_send_wr &wr)
{
	ibv_send_wr *bad = nullptr;
	return ibv_post_send(qp_.get(), &wr, &bad);
}

void Endpoint::send(uint64_t wr_id, ibv_wr_opcode opcode, std::span<const ibv_sge> sges,
                    const RemoteBuffer &remote, uint64_t offset, unsigned flags, uint32_t imm)
{
	ibv_send_wr wr = {};
	wr.wr_id = wr_id;
	wr.opcode = opcode;
	wr.send_flags = flags;
	wr.sg_list = const_cast<ibv_sge *>(sges.data());
	wr.num_sge = static_cast<int>(sges.size());
	wr.imm_data = htonl(imm);
	wr.wr.rdma = {.remote_addr = remote.addr + offset, .rkey = remote.rkey};
	const int err = post(wr);
	check(!err, "ibv_post_send of %lu: %s", wr_id, std::strerror(err));
}

void Endpoint::fetch_add(uint64_t wr_id, const ibv_sge &sge, const RemoteBuffer &remote,
                         uint64_t offset, uint64_t add)
{
	ibv_send_wr wr = {};
	wr.wr_id = wr_id;
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.sg_list = const_cast<ibv_sge *>(&sge);
	wr.num_sge = 1;
	wr.wr.atomic = {.remote_addr = remote.addr + offset,
	                .compare_add = add,
	                .swap = 0,
	                .rkey = remote.rkey};
	const int err = post(wr);
	check(!err, "fetch and add: %s", std::strerror(err));
}

void Endpoint::cmp_swap(uint64_t wr_id, const ibv_sge &sge, const RemoteBuffer &remote,
                        uint64_t offset, uint64_t compare, uint64_t swap)
{
	ibv_send_wr wr = {};
	wr.wr_id = wr_id;
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.sg_list = const_cast<ibv_sge *>(&sge);
	wr.num_sge = 1;
	wr.wr.atomic = {.remote_addr = remote.addr + offset,
	                .compare_add = compare,
	                .swap = swap,
	                .rkey = remote.rkey};
	const int err = post(wr);
	check(!err, "compare and swap: %s", std::strerror(err));
}

void Endpoint::recv(uint64_t wr_id, std::span<const ibv_sge> sges)
{
	ibv_recv_wr wr = {}, *bad = nullptr;
	wr.wr_id = wr_id;
	wr.sg_list = const_cast<ibv_sge *>(sges.data());
	wr.num_sge = static_cast<int>(sges.size());
	const int err = ibv_post_recv(qp_.get(), &wr, &bad);
	check(!err, "ibv_post_recv of %lu: %s", wr_id, std::strerror(err));
}

bool Endpoint::poll(ibv_cq *cq, ibv_wc &wc)
{
	const int n = ibv_poll_cq(cq, 1, &wc);
	check(n >= 0, "ibv_poll_cq failed");
	return n > 0;
}

ibv_wc Endpoint::wait(ibv_cq *cq, const char *which)
{
	ibv_wc wc;
	check(eventually([&] { return poll(cq, wc); }, kPatience), "no %s completion in a minute",
	      which);
	return wc;
}

namespace {

ibv_wc expect(const ibv_wc &wc, uint64_t wr_id, ibv_wc_status status, const char *which)
{
	check(wc.status == status, "%s completion of %lu: '%s' instead of '%s'", which, wc.wr_id,
	      ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
	check(wc.wr_id == wr_id, "%s completion of %lu instead of %lu", which, wc.wr_id, wr_id);
	return wc;
}

} // namespace

ibv_wc Endpoint::expect_send(uint64_t wr_id, ibv_wc_status status)
{
	return expect(send_completion(), wr_id, status, "send");
}

ibv_wc Endpoint::expect_recv(uint64_t wr_id, ibv_wc_status status)
{
	return expect(recv_completion(), wr_id, status, "receive");
}

void Endpoint::expect_silence()
{
	ibv_wc wc = {};
	const bool any = eventually([&] { return poll_send(wc) || poll_recv(wc); }, 100ms);
	check(!any, "a completion of %lu, '%s', that nobody expects", wc.wr_id,
	      ibv_wc_status_str(wc.status));
}

void Endpoint::set_state(ibv_qp_state state)
{
	ibv_qp_attr attr = {};
	attr.qp_state = state;
	modify(attr, IBV_QP_STATE, "another state");
}

ibv_qp_state Endpoint::state() const
{
	ibv_qp_attr attr = {};
	ibv_qp_init_attr init = {};
	check(!ibv_query_qp(qp_.get(), &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	return attr.qp_state;
}

} // namespace tern::guest
