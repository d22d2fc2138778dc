// SPDX-License-Identifier: GPL-2.0-or-later
/* Completion counters, which libibverbs has since rdma-core 65. */
#include <array>
#include <cerrno>
#include <cstring>

#include "cases.h"

namespace tern::guest {
namespace {

#if TERN_IBVERBS_PRIVATE >= 65

constexpr size_t kSize = 4096;
constexpr uint64_t kMessages = 10;
constexpr uint32_t kAllOps =
        IBV_QP_ATTACH_COMP_CNTR_OP_SEND | IBV_QP_ATTACH_COMP_CNTR_OP_RECV |
        IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ | IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ |
        IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE | IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE;

/** A completion counter. QPs that it is attached to must be destroyed before it. */
class Counter {
public:
	explicit Counter(const Session &s, ibv_comp_cntr_type type = IBV_COMP_CNTR_TYPE_WRS)
	{
		ibv_comp_cntr_init_attr attr = {.comp_mask = 0, .type = type, .flags = 0};
		counter_.reset(ibv_create_comp_cntr(s.device.context(), &attr));
		check(counter_.get(), "ibv_create_comp_cntr: %s", std::strerror(errno));
	}

	ibv_comp_cntr *get() const { return counter_.get(); }
	int attach(ibv_qp *qp, uint32_t ops) const
	{
		ibv_qp_attach_comp_cntr_attr attr = {.comp_mask = 0, .op_mask = ops};
		return ibv_qp_attach_comp_cntr(qp, counter_.get(), &attr);
	}
	uint64_t completed() const { return value(ibv_read_comp_cntr); }
	uint64_t failed() const { return value(ibv_read_err_comp_cntr); }
	/** Waits for these values, which must not be passed. */
	void expect(uint64_t completed_now, uint64_t failed_now, const char *of) const
	{
		eventually([&] { return completed() >= completed_now && failed() >= failed_now; });
		check(completed() == completed_now && failed() == failed_now,
		      "%s: %lu completed and %lu failed, not %lu and %lu", of, completed(),
		      failed(), completed_now, failed_now);
	}

private:
	uint64_t value(int (*read)(ibv_comp_cntr *, uint64_t *)) const
	{
		uint64_t value = 0;
		check(!read(counter_.get(), &value), "a counter cannot be read");
		return value;
	}

	std::unique_ptr<ibv_comp_cntr, Releaser<ibv_destroy_comp_cntr>> counter_;
};

/** Whether the device has them; says so if it has not. */
bool has_counters(const Session &s)
{
	ibv_comp_cntr_caps caps{};
	const int err = ibv_query_comp_cntr_caps(s.device.context(), &caps);
	if (err == EOPNOTSUPP) {
		lacking("completion counters");
		return false;
	}
	check(!err, "ibv_query_comp_cntr_caps: %s", std::strerror(err));
	check(caps.max_counters && caps.max_value == UINT64_MAX, "%u counters up to %lu",
	      caps.max_counters, caps.max_value);
	check(caps.supported_qp_attach_ops == kAllOps, "operations 0x%x can be counted",
	      caps.supported_qp_attach_ops);
	return true;
}

/* Both sides count what they do and what the other one does, mostly without completions. */
void completion_counters(Session &s)
{
	if (!has_counters(s))
		return;
	const Counter sends(s), receives(s), bytes(s, IBV_COMP_CNTR_TYPE_BYTES);
	Endpoint ep(s);
	check(!sends.attach(ep.qp(), IBV_QP_ATTACH_COMP_CNTR_OP_SEND) &&
	              !receives.attach(ep.qp(), IBV_QP_ATTACH_COMP_CNTR_OP_RECV) &&
	              !bytes.attach(ep.qp(), IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ |
	                                             IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE) &&
	              !bytes.attach(ep.qp(), IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ |
	                                             IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE),
	      "ibv_qp_attach_comp_cntr: %s", std::strerror(errno));
	const Buffer buffer(s.device, kSize);
	ep.connect();
	if (!s.active)
		for (uint64_t i = 0; i < kMessages + 1; i++)
			ep.recv(i, buffer.sge(0, kSize));
	const RemoteBuffer remote = ep.exchange(buffer);
	if (s.active) {
		for (uint64_t i = 0; i < kMessages; i++) {
			ep.send(i, IBV_WR_SEND, buffer.sge(0, 16), {}, 0, 0);
			ep.send(i, IBV_WR_RDMA_WRITE, buffer.sge(0, 100), remote, 0, 0);
			ep.send(i, IBV_WR_RDMA_READ, buffer.sge(0, 1000), remote, 0, 0);
		}
		ep.fetch_add(77, buffer.sge(0, 8), remote, 0, 1);
		ep.expect_send(77);
		sends.expect(kMessages, 0, "sends");
	} else {
		receives.expect(kMessages, 0, "receives");
		sends.expect(0, 0, "sends of who sends nothing");
	}
	bytes.expect(kMessages * 1100, 0, "bytes of READs and WRITEs");
	s.peer.barrier(1);

	/* What is flushed has failed. */
	ep.set_state(IBV_QPS_ERR);
	if (!s.active)
		receives.expect(kMessages, 1, "receives after the end");
	if (s.active)
		ep.send(1, IBV_WR_SEND, buffer.sge(0, 16), {}, 0, 0);
	sends.expect(s.active ? kMessages : 0, s.active ? 1 : 0, "sends after the end");
}

/* Values that the program sets, and what is refused. */
void completion_counter_errors(Session &s)
{
	if (!has_counters(s))
		return;
	const Counter counter(s), other(s);
	check(!ibv_set_comp_cntr(counter.get(), 40) && !ibv_inc_comp_cntr(counter.get(), 2) &&
	              !ibv_inc_err_comp_cntr(counter.get(), 3),
	      "a counter cannot be changed");
	counter.expect(42, 3, "values that were set");
	check(!ibv_set_err_comp_cntr(counter.get(), UINT64_MAX) &&
	              !ibv_inc_err_comp_cntr(counter.get(), 1),
	      "a counter cannot be changed");
	check(counter.failed() == 0, "a counter at its end goes on with %lu", counter.failed());

	ibv_comp_cntr_init_attr attr = {
	        .comp_mask = 0, .type = static_cast<ibv_comp_cntr_type>(2), .flags = 0};
	check(!ibv_create_comp_cntr(s.device.context(), &attr) && errno == EINVAL,
	      "a counter of an unknown type");
	attr = {.comp_mask = 0, .type = IBV_COMP_CNTR_TYPE_WRS, .flags = 1};
	check(!ibv_create_comp_cntr(s.device.context(), &attr) && errno == EINVAL,
	      "a counter with unknown flags");

	Endpoint ep(s);
	check(counter.attach(ep.qp(), 0) == EINVAL, "no operation");
	check(counter.attach(ep.qp(), 1u << 6) == EOPNOTSUPP, "an unknown operation");
	check(!counter.attach(ep.qp(), IBV_QP_ATTACH_COMP_CNTR_OP_SEND), "a first counter");
	check(other.attach(ep.qp(), IBV_QP_ATTACH_COMP_CNTR_OP_SEND |
	                                    IBV_QP_ATTACH_COMP_CNTR_OP_RECV) == EBUSY,
	      "a second counter of an operation");
	check(ibv_destroy_comp_cntr(counter.get()) == EBUSY, "a counter that is attached");
	ep.connect();
	check(other.attach(ep.qp(), IBV_QP_ATTACH_COMP_CNTR_OP_RECV) == EINVAL,
	      "a counter of a connected QP");
	ep.destroy_qp();
}

#else

void completion_counters(Session &)
{
	lacking("completion counters");
}

constexpr auto completion_counter_errors = completion_counters;

#endif

constexpr Case kCases[] = {
        {"completion-counters", "requests, receives and bytes are counted, once each",
         completion_counters},
        {"completion-counter-errors", "values that are set, and what attaching refuses",
         completion_counter_errors},
};

} // namespace

std::span<const Case> comp_cntr_cases()
{
	return kCases;
}

} // namespace tern::guest
