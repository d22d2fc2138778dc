// SPDX-License-Identifier: GPL-2.0-or-later
/* Verbs objects that free themselves, and one end of an RC connection made of them. */
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <infiniband/verbs.h>
#include <sched.h>

#include "check.h"
#include "peer.h"

namespace tern::guest {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

template <auto Release>
struct Releaser {
	template <class T>
	void operator()(T *p) const
	{
		Release(p);
	}
};
using ContextPtr = std::unique_ptr<ibv_context, Releaser<ibv_close_device>>;
using PdPtr = std::unique_ptr<ibv_pd, Releaser<ibv_dealloc_pd>>;
using MrPtr = std::unique_ptr<ibv_mr, Releaser<ibv_dereg_mr>>;
using ChannelPtr = std::unique_ptr<ibv_comp_channel, Releaser<ibv_destroy_comp_channel>>;
using CqPtr = std::unique_ptr<ibv_cq, Releaser<ibv_destroy_cq>>;
using QpPtr = std::unique_ptr<ibv_qp, Releaser<ibv_destroy_qp>>;

/** An asynchronous event, and the QP, CQ or SRQ that it is about. */
struct Event {
	ibv_event_type type;
	const void *element;
};

/** An opened device with its port, a GID of it and a protection domain. */
class Device {
public:
	/** A negative @gid_index chooses the first RoCE v2 GID with an IPv4 address. */
	Device(const std::string &name, int gid_index);

	ibv_context *context() const { return context_.get(); }
	ibv_pd *pd() const { return pd_.get(); }
	const ibv_device_attr &attr() const { return attr_; }
	const ibv_port_attr &port() const { return port_; }
	uint8_t gid_index() const { return static_cast<uint8_t>(gid_index_); }
	ibv_gid gid() const { return gid_; }

	/** Waits for all of @events, in any order; others are taken and forgotten. */
	bool wait_events(std::vector<Event> events, Clock::duration patience) const;
	bool wait_event(ibv_event_type type, const void *element, Clock::duration patience) const
	{
		return wait_events({{type, element}}, patience);
	}
	/** Takes what waits, for noted_events(). */
	void note_events();
	/** The events noted since the last call. */
	std::string noted_events();

private:
	ContextPtr context_;
	PdPtr pd_;
	ibv_device_attr attr_{};
	ibv_port_attr port_{};
	int gid_index_;
	ibv_gid gid_{};
	std::string noted_;
};

/** What both sides of a case have. */
struct Session {
	Device &device;
	Peer &peer;
	bool active;       /* we ask, the other side answers */
	bool async_events; /* the responder must raise the events of the specification */
	uint64_t seed;
	unsigned seconds;  /* of the stress case */
	unsigned interval; /* us that it waits before each request */
	unsigned timeout;  /* the ACK timeout of its QPs */
	unsigned qps;
	ibv_mtu required_mtu; /* the mtu case must reach this */
};

constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/** Registered memory. */
class Buffer {
public:
	Buffer(const Device &device, size_t size, int access = kAllAccess);

	uint8_t *data() const { return memory_.get(); }
	size_t size() const { return size_; }
	std::span<uint8_t> bytes() const { return {data(), size_}; }
	uint64_t addr() const { return reinterpret_cast<uint64_t>(data()); }
	uint32_t lkey() const { return mr_->lkey; }
	uint32_t rkey() const { return mr_->rkey; }
	ibv_mr *mr() const { return mr_.get(); }
	ibv_sge sge(size_t offset, size_t length) const
	{
		return {addr() + offset, static_cast<uint32_t>(length), lkey()};
	}
	/** Fills it with a pattern of @seed. */
	void fill(uint64_t seed) const;

private:
	struct Free {
		void operator()(uint8_t *p) const;
	};
	std::unique_ptr<uint8_t, Free> memory_;
	size_t size_;
	MrPtr mr_;
};

/** The byte at @offset of the pattern of @seed. */
uint8_t pattern(uint64_t seed, size_t offset);
/** Fills or checks @bytes with the pattern of @seed. */
void fill(std::span<uint8_t> bytes, uint64_t seed);
void check_filled(std::span<const uint8_t> bytes, uint64_t seed, const char *what);

/** A buffer that the other side may name in its requests. */
struct RemoteBuffer {
	uint64_t addr;
	uint64_t size;
	uint32_t rkey;
};

struct EndpointConfig {
	uint32_t send_wr = 64;
	uint32_t recv_wr = 64;
	uint32_t sge = 1;
	uint32_t inline_data = 0;
	bool channel = false; /* receive completions can be waited for */
	ibv_srq *srq = nullptr;
	uint64_t send_ops = 0; /* enum ibv_qp_create_send_ops_flags: of ibv_wr_* */
};

/* The ACK timeout of a connection whose peer answers. Threads of a busy machine wait for seconds.
 * Tern adds 250 ms to the 1.07 s, and so it gives up after 10.6 s with 7 retries. */
constexpr uint8_t kPatientTimeout = 18;

struct LinkConfig {
	ibv_mtu mtu{}; /* zero: what both ports have */
	uint8_t timeout = kPatientTimeout;
	uint8_t retry = 7;
	uint8_t rnr_retry = 7;
	uint8_t min_rnr_timer = 12; /* 0.64 ms */
	uint8_t rd_atomic = 4;
	int access = kAllAccess; /* that the other side has */
	uint32_t wrong_qpn = 0;  /* added to the number of the other side's QP */
};

/** A QP with a CQ for each of its queues. */
class Endpoint {
public:
	Endpoint(Session &session, const EndpointConfig &config = {});
	~Endpoint();

	/** Connects to the Endpoint that the other side connects now. */
	void connect(const LinkConfig &config = {});
	/** Tells the other side of our @buffer and learns of its. */
	RemoteBuffer exchange(const Buffer &buffer);

	/** Each throws if the request is refused. */
	void send(uint64_t wr_id, ibv_wr_opcode opcode, std::span<const ibv_sge> sges,
	          const RemoteBuffer &remote = {}, uint64_t offset = 0,
	          unsigned flags = IBV_SEND_SIGNALED, uint32_t imm = 0);
	void send(uint64_t wr_id, ibv_wr_opcode opcode, const ibv_sge &sge,
	          const RemoteBuffer &remote = {}, uint64_t offset = 0,
	          unsigned flags = IBV_SEND_SIGNALED, uint32_t imm = 0)
	{
		send(wr_id, opcode, std::span(&sge, 1), remote, offset, flags, imm);
	}
	void fetch_add(uint64_t wr_id, const ibv_sge &sge, const RemoteBuffer &remote,
	               uint64_t offset, uint64_t add);
	void cmp_swap(uint64_t wr_id, const ibv_sge &sge, const RemoteBuffer &remote,
	              uint64_t offset, uint64_t compare, uint64_t swap);
	void recv(uint64_t wr_id, std::span<const ibv_sge> sges);
	void recv(uint64_t wr_id, const ibv_sge &sge) { recv(wr_id, std::span(&sge, 1)); }
	int post(ibv_send_wr &wr);

	/** The next completion, which must come in time. */
	ibv_wc send_completion() { return wait(send_cq_.get(), "send"); }
	ibv_wc recv_completion() { return wait(recv_cq_.get(), "receive"); }
	bool poll_send(ibv_wc &wc) { return poll(send_cq_.get(), wc); }
	bool poll_recv(ibv_wc &wc) { return poll(recv_cq_.get(), wc); }

	/** The next completion must be of @wr_id and have @status. */
	ibv_wc expect_send(uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS);
	ibv_wc expect_recv(uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS);
	/** No completion may come for a while. */
	void expect_silence();

	void set_state(ibv_qp_state state);
	ibv_qp_state state() const;
	void destroy_qp() { qp_.reset(); }

	ibv_qp *qp() const { return qp_.get(); }
	ibv_cq *recv_cq() const { return recv_cq_.get(); }
	ibv_comp_channel *channel() const { return channel_.get(); }
	uint32_t max_inline() const { return cap_.max_inline_data; }
	ibv_mtu mtu() const { return mtu_; }

private:
	static ibv_wc wait(ibv_cq *cq, const char *which);
	static bool poll(ibv_cq *cq, ibv_wc &wc);
	void modify(ibv_qp_attr &attr, int mask, const char *to);

	Session &session_;
	ChannelPtr channel_;
	CqPtr send_cq_, recv_cq_;
	QpPtr qp_;
	ibv_qp_cap cap_{};
	ibv_mtu mtu_{};
};

/** Gives the processor away in a polling loop that has found nothing: it yields for the first
 * millisecond, and sleeps after that, as the guests share few processors of the host. */
class Idling {
public:
	/** Notes that the loop has found something. */
	void reset() { last_ = Clock::now(); }
	void pause()
	{
		if (Clock::now() - last_ < 1ms)
			sched_yield();
		else
			std::this_thread::sleep_for(200us);
	}

private:
	Clock::time_point last_ = Clock::now(); /* when the loop has found something */
};

/** Waits until @done() holds. Returns false after @patience. */
template <class Done>
bool eventually(Done done, Clock::duration patience = 10s)
{
	const auto begin = Clock::now();
	for (Idling idling; !done(); idling.pause())
		if (Clock::now() - begin > patience)
			return false;
	return true;
}

} // namespace tern::guest
