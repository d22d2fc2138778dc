// SPDX-License-Identifier: GPL-2.0-or-later
/* Extended CQs: what can be read of a completion, and rings that are replaced (11.2.8). */
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <time.h>

#include "cases.h"
#include "lone_qp.h"

namespace tern::guest {
namespace {

constexpr uint64_t kFlags = uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                            IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
constexpr uint32_t kLength = 24;

uint64_t nanoseconds(const timespec &t)
{
	return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

uint64_t time_of_day()
{
	timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return nanoseconds(t);
}

uint64_t card_time(ibv_context *context)
{
	ibv_values_ex values = {};
	values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	check(!ibv_query_rt_values_ex(context, &values), "the clock cannot be read");
	return nanoseconds(values.raw_clock);
}

/* Sends @n messages to itself, which complete as numbers @first and up. */
void exchange(const LoneQp &qp, const Buffer &buffer, uint64_t first, uint64_t n)
{
	for (uint64_t i = first; i < first + n; i++) {
		check(!qp.post_recv(i, buffer.sge(0, kLength)), "ibv_post_recv");
		check(!qp.post_send(i, buffer.sge(kLength, kLength)), "ibv_post_send");
	}
}

/* Nothing when the card has no clock. */
ibv_cq_ex *create_cq_ex(const Device &device, uint32_t cqe)
{
	ibv_cq_init_attr_ex attr = {};
	attr.cqe = cqe;
	attr.wc_flags = kFlags;
	ibv_cq_ex *cq = ibv_create_cq_ex(device.context(), &attr);
	check(cq || errno == EOPNOTSUPP, "ibv_create_cq_ex: %s", std::strerror(errno));
	return cq;
}

/* The times of completions lie between those of looks at both clocks before and after. */
void extended_cq(Session &s)
{
	constexpr uint64_t kRounds = 20, kMessages = 4;
	constexpr uint64_t kSkew = 20'000'000; /* ns; how wrong the distance of the clocks may be */
	const Device &device = s.device;
	const Buffer buffer(device, 2 * kLength);
	ibv_cq_ex *cq = create_cq_ex(device, 32);
	if (!cq)
		return lacking("times of completions");
	const LoneQp qp(device, IBV_QPT_RC, CqPtr(ibv_cq_ex_to_cq(cq)));
	qp.lead_to(IBV_QPS_RTS);

	ibv_poll_cq_attr poll = {};
	uint64_t sends = 0, recvs = 0, earlier = 0;
	for (uint64_t round = 0; round < kRounds; round++) {
		const uint64_t card = card_time(device.context()), day = time_of_day();
		exchange(qp, buffer, round * kMessages, kMessages);
		while (sends < (round + 1) * kMessages || recvs < (round + 1) * kMessages) {
			check(eventually([&] { return !ibv_start_poll(cq, &poll); }),
			      "no completion");
			do {
				const bool recv = ibv_wc_read_opcode(cq) == IBV_WC_RECV;
				const uint64_t time = ibv_wc_read_completion_ts(cq);
				const uint64_t wall = ibv_wc_read_completion_wallclock_ns(cq);
				check(cq->status == IBV_WC_SUCCESS, "status %d", cq->status);
				check(cq->wr_id == (recv ? recvs++ : sends++), "out of order");
				check(ibv_wc_read_qp_num(cq) == qp.get()->qp_num, "number");
				check(!recv || ibv_wc_read_byte_len(cq) == kLength, "length");
				check(time >= card && time >= earlier &&
				              time <= card_time(device.context()),
				      "completed at %lu, not after %lu", time, card);
				check(wall + kSkew >= day && wall <= time_of_day() + kSkew,
				      "completed at %lu of the day, not at %lu", wall, day);
				earlier = time;
			} while (!ibv_next_poll(cq));
			ibv_end_poll(cq);
		}
	}
}

/* What is not polled moves along when the ring is replaced, back and forth. */
void resized_cq(Session &s)
{
	constexpr uint64_t kMessages = 4;
	const Device &device = s.device;
	const Buffer buffer(device, 2 * kLength);
	const LoneQp qp(device, IBV_QPT_RC, 8);
	qp.lead_to(IBV_QPS_RTS);

	uint64_t sends = 0, recvs = 0;
	const auto expect = [&](uint64_t n) {
		for (uint64_t i = 0; i < n; i++) {
			const ibv_wc wc = qp.completion();
			check(wc.status == IBV_WC_SUCCESS, "status %d", wc.status);
			check(wc.wr_id == (wc.opcode == IBV_WC_RECV ? recvs++ : sends++),
			      "out of order");
		}
	};
	for (const int cqe : {100, 8, 1000, 8, 16, 8}) {
		exchange(qp, buffer, sends, kMessages);
		expect(1); /* the others may come before, while and after the ring is replaced */
		const int err = ibv_resize_cq(qp.cq(), cqe);
		if (err == EOPNOTSUPP || err == ENOSYS)
			return lacking("ibv_resize_cq");
		check(!err, "ibv_resize_cq to %d: %s", cqe, std::strerror(err));
		check(qp.cq()->cqe >= cqe, "%d entries", qp.cq()->cqe);
		expect(2 * kMessages - 1);
	}
}

/** A QP that sends to itself, with a CQ whose events are counted. */
class Counted {
public:
	explicit Counted(const Device &device)
	        : buffer_(device, 2 * kLength), channel_(ibv_create_comp_channel(device.context())),
	          qp_(device, IBV_QPT_RC,
	              CqPtr(ibv_create_cq(device.context(), 2 * kMessages, nullptr, channel_.get(),
	                                  0)))
	{
		qp_.lead_to(IBV_QPS_RTS);
		fcntl(channel_->fd, F_SETFL, O_NONBLOCK);
	}
	~Counted() { ibv_ack_cq_events(qp_.cq(), events_); }

	/* How many events so many messages cause, one after the other, on a CQ that is armed before
	 * each. At least one comes in the end. */
	unsigned events()
	{
		const unsigned before = events_;
		for (unsigned n = 0; n < kMessages; n++) {
			exchange_armed(n);
			look();
		}
		check(eventually([&] { return look() > before; }), "no event");
		return events_ - before;
	}
	/* Exchanges a message, and waits for an event of it. */
	void expect_event()
	{
		const unsigned before = events_;
		exchange_armed(0);
		check(eventually([&] { return look() > before; }), "no event");
	}
	void moderate(uint16_t count, uint16_t period) const
	{
		ibv_modify_cq_attr attr = {IBV_CQ_ATTR_MODERATE, {count, period}};
		const int err = ibv_modify_cq(qp_.cq(), &attr);
		check(!err, "ibv_modify_cq: %s", std::strerror(err));
	}

	static constexpr unsigned kMessages = 60;

private:
	void exchange_armed(unsigned n)
	{
		check(!ibv_req_notify_cq(qp_.cq(), 0), "ibv_req_notify_cq");
		exchange(qp_, buffer_, n, 1);
		for (int half = 0; half < 2; half++)
			check(qp_.completion().status == IBV_WC_SUCCESS, "a message");
	}
	unsigned look()
	{
		ibv_cq *cq;
		void *context;
		while (!ibv_get_cq_event(channel_.get(), &cq, &context))
			events_++;
		return events_;
	}

	Buffer buffer_;
	ChannelPtr channel_;
	LoneQp qp_;
	unsigned events_ = 0;
};

/* A moderated CQ raises one event for a number of completions, or for those of a period. */
void moderated_cq(Session &s)
{
	constexpr uint16_t kCount = 24, kPeriod = 50'000; /* us */
	Counted cq(s.device);

	for (unsigned n = 0; n < Counted::kMessages; n++)
		cq.expect_event();
	cq.moderate(kCount, kPeriod);
	/* On a busy machine each message may take as long as a period. */
	for (int chances = 5;; chances--) {
		const auto begin = Clock::now();
		const unsigned events = cq.events();
		const auto periods = (Clock::now() - begin) / std::chrono::microseconds(kPeriod);
		const auto most =
		        2 * Counted::kMessages / kCount + static_cast<unsigned>(periods) + 1;
		check(events <= most, "%u events, not %u at most", events, most);
		if (most < Counted::kMessages / 2)
			break;
		check(chances > 0, "messages take too long");
	}
	cq.moderate(0, 0);
	for (unsigned n = 0; n < Counted::kMessages; n++)
		cq.expect_event();
}

constexpr Case kCases[] = {
        {"cq-ex", "fields and times of completions", extended_cq},
        {"resize-cq", "rings of CQs that are replaced", resized_cq},
        {"moderated-cq", "fewer events than completions", moderated_cq},
};

} // namespace

std::span<const Case> cq_cases()
{
	return kCases;
}

} // namespace tern::guest
