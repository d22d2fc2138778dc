// SPDX-License-Identifier: GPL-2.0-or-later
/* Rate limits: a QP that has one is as fast as that, and then again as before. */
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cases.h"
#include "lone_qp.h"

namespace tern::guest {
namespace {

constexpr size_t kMessage = 16 << 10, kDatagram = 1000;
constexpr unsigned kUnderWay = 4;
constexpr auto kPatience = 30s;
constexpr uint16_t kEthertype = 0x88b5; /* for local experiments */

/** A QP with work that the other side need not know of. */
class Sender {
public:
	Sender(Session &s, ibv_qp_type type)
	        : qp_(s.device, type), buffer_(s.device, kMessage), type_(type),
	          size_(type == IBV_QPT_RC || type == IBV_QPT_UC ? kMessage : kDatagram)
	{
		qp_.aim_at(s.peer);
		qp_.lead_to(IBV_QPS_RTS);
		remote_ = s.peer.exchange(
		        RemoteBuffer{buffer_.addr(), buffer_.size(), buffer_.rkey()});
		if (type == IBV_QPT_UD)
			ah_ = make_ah_to_self(s.device);
		/* To a MAC that nobody has. */
		if (type == IBV_QPT_RAW_PACKET) {
			buffer_.data()[0] = 2;
			buffer_.data()[12] = kEthertype >> 8;
			buffer_.data()[13] = kEthertype & 0xff;
		}
	}

	ibv_qp *get() const { return qp_.get(); }
	/** What it sends of data in one second, when it sends for @time. */
	double rate_over(Clock::duration time) const
	{
		const auto start = Clock::now(), end = start + time;
		uint64_t bytes = 0;
		for (unsigned n = 0; n < kUnderWay; n++)
			post();
		for (;;) {
			complete();
			bytes += size_;
			if (Clock::now() > end)
				break;
			post();
		}
		for (unsigned n = 1; n < kUnderWay; n++) {
			complete();
			bytes += size_;
		}
		return static_cast<double>(bytes) /
		       std::chrono::duration<double>(Clock::now() - start).count();
	}
	/** @rate: kb/s. What ibv_modify_qp_rate_limit() answers. */
	int limit(uint32_t rate, uint32_t burst = 0, uint16_t packet = 0) const
	{
		ibv_qp_rate_limit_attr attr = {};
		attr.rate_limit = rate;
		attr.max_burst_sz = burst;
		attr.typical_pkt_sz = packet;
		return ibv_modify_qp_rate_limit(get(), &attr);
	}

private:
	void post() const
	{
		int err;
		if (size_ == kDatagram) {
			err = qp_.post_send(1, buffer_.sge(0, size_), ah_.get());
		} else {
			ibv_sge sge = buffer_.sge(0, size_);
			ibv_send_wr wr = {}, *bad = nullptr;
			wr.opcode = IBV_WR_RDMA_WRITE;
			wr.send_flags = IBV_SEND_SIGNALED;
			wr.sg_list = &sge;
			wr.num_sge = 1;
			wr.wr.rdma = {.remote_addr = remote_.addr, .rkey = remote_.rkey};
			err = ibv_post_send(get(), &wr, &bad);
		}
		check(!err, "ibv_post_send: %s", std::strerror(err));
	}
	void complete() const
	{
		const ibv_wc wc = qp_.completion();
		check(wc.status == IBV_WC_SUCCESS, "%s: %s", name_of(type_),
		      ibv_wc_status_str(wc.status));
	}

	LoneQp qp_;
	Buffer buffer_;
	ibv_qp_type type_;
	size_t size_;
	RemoteBuffer remote_{};
	AhPtr ah_;
};

/* Against what the same QP does without a limit just before and after. */
void paced(Session &s)
{
	ibv_device_attr_ex device = {};
	check(!ibv_query_device_ex(s.device.context(), nullptr, &device), "ibv_query_device_ex");
	const ibv_packet_pacing_caps &caps = device.packet_pacing_caps;

	for (const auto type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET}) {
		check(ibv_is_qpt_supported(caps.supported_qpts, type), "no pacing of %s",
		      name_of(type));
		const Sender sender(s, type);
		if (s.active) {
			const double before = sender.rate_over(300ms);
			/* An eighth at most, and so slow that a burst of 64 KiB makes good what is
			 * lost when a busy machine lets a host stand still for a quarter second. */
			const double wanted = std::min(before / 8, 250e3);
			const auto kbps = static_cast<uint32_t>(wanted * 8 / 1000);
			int err = sender.limit(kbps, 64 << 10);
			check(!err, "a limit of %u kb/s: %s", kbps, std::strerror(err));
			/* The limit holds each time; a busy machine may need more than one to get
			 * near it, and to be faster without. 64 KiB in 2 s are the first burst. */
			double paced = 0, after = 0;
			const bool near = eventually(
			        [&] {
				        paced = sender.rate_over(2s);
				        check(paced < wanted * 1.02 + 33e3,
				              "%.0f instead of %.0f bytes/s", paced, wanted);
				        return paced > wanted * 0.8;
			        },
			        kPatience);
			check(near, "%.0f instead of %.0f bytes/s", paced, wanted);
			err = sender.limit(0);
			check(!err, "no limit: %s", std::strerror(err));
			const bool faster = eventually(
			        [&] {
				        after = sender.rate_over(300ms);
				        return after > wanted * 2;
			        },
			        kPatience);
			check(faster, "%.0f bytes/s without a limit", after);
			std::printf("  %s: %.1f MB/s, limited to %.2f MB/s %.2f, then %.1f\n",
			            name_of(type), before / 1e6, wanted / 1e6, paced / 1e6,
			            after / 1e6);
		}
		s.peer.barrier(static_cast<uint32_t>(type));
	}
}

/* Values and states that have none. */
void refused(Session &s)
{
	ibv_device_attr_ex device = {};
	check(!ibv_query_device_ex(s.device.context(), nullptr, &device), "ibv_query_device_ex");
	const uint32_t most = device.packet_pacing_caps.qp_rate_limit_max;
	ibv_qp_rate_limit_attr burst = {};
	burst.max_burst_sz = 4096;
	for (const auto type : {IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_RAW_PACKET}) {
		const LoneQp qp(s.device, type);
		ibv_qp_attr attr = {};
		attr.rate_limit = 1000;
		qp.lead_to(IBV_QPS_INIT);
		check(qp.modify(attr, IBV_QP_RATE_LIMIT) == EINVAL, "%s in INIT", name_of(type));
		qp.lead_to(IBV_QPS_RTS);
		attr.rate_limit = most;
		int err = qp.modify(attr, IBV_QP_RATE_LIMIT);
		check(!err, "%s, %u kb/s: %s", name_of(type), most, std::strerror(err));
		attr.rate_limit = most + 1;
		check(qp.modify(attr, IBV_QP_RATE_LIMIT) == EINVAL, "%s, more than there can be",
		      name_of(type));
		/* libmlx5, mlx5_modify_qp_rate_limit() */
		check(ibv_modify_qp_rate_limit(qp.get(), &burst) == EINVAL,
		      "%s, a burst of no rate", name_of(type));
		attr = qp.attributes();
		attr.qp_state = IBV_QPS_RTS;
		attr.rate_limit = 1000;
		err = qp.modify(attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT);
		check(!err, "%s, together with RTS: %s", name_of(type), std::strerror(err));
	}
}

constexpr Case kCases[] = {
        {"paced", "each service with a rate limit and without", paced},
        {"paced-refused", "rate limits that cannot be", refused},
};

} // namespace

std::span<const Case> pacing_cases()
{
	return kCases;
}

} // namespace tern::guest
