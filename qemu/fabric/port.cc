// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/port.h"

#include <algorithm>
#include <utility>

namespace tern::fabric {

namespace {
constexpr uint64_t kSecond = 1'000'000'000;
/* The maximum number of pending events that wake a port. A pause adds an event only if it ends
 * before all pauses that have one. If a peer sends more such pauses, the event of an earlier pause
 * wakes the port later than necessary. */
constexpr unsigned kMaxWakes = 16;

/* The peer does not count pause frames in rx_frames, whether a port or a guest has sent them. */
bool is_pause(const Frame &frame)
{
	return parse_pause(frame.bytes()).has_value();
}
} // namespace

struct Port::Departure {
	Port *port;

	void operator()() const { port->finish(); }
	void prefetch() const
	{
		if (port->sending_)
			port->sending_->prefetch();
		port->queues.prefetch();
	}
};

struct Port::Arrival {
	Port *port;
	uint64_t when;

	void operator()() const { port->arrive(when); }
	void prefetch() const
	{
		__builtin_prefetch(port->peer_);
		__builtin_prefetch(&port->peer_->counts_);
		if (!port->in_flight_.empty())
			port->in_flight_.front().prefetch();
	}
};

void Port::prefetch() const
{
	for (size_t i = 0; i < EventLoop::kPrefetched; i += Frame::kCacheLine)
		__builtin_prefetch(reinterpret_cast<const char *>(this) + i);
}

void Port::connect(Port &a, Port &b, uint32_t seed)
{
	a.peer_ = &b;
	b.peer_ = &a;
	a.random_.seed(2 * seed);
	b.random_.seed(2 * seed + 1);
}

void Port::send(FramePtr frame)
{
	if (!up_)
		return lose(*frame);
	const uint8_t priority = frame->priority;
	if (in_storm_ >> priority & 1)
		return drop_in_storm(*frame);
	queues.push(std::move(frame), loop_.now());
	if (loop_.now() < unpaused_at_)
		watch(priority);
	start_next();
}

void Port::pause_peer(uint8_t priority, uint16_t quanta)
{
	if (!up_)
		return;
	if (quanta)
		pauses_sent_[priority]++;
	pauses_.push_back(pool_.make(pause_frame(priority, quanta), priority));
	start_next();
}

uint8_t Port::paused() const
{
	const uint64_t now = loop_.now();
	if (now >= unpaused_at_)
		return 0;
	uint8_t bits = 0;
	for (unsigned priority = 0; priority < kPriorities; priority++)
		bits |= static_cast<uint8_t>((paused_until_[priority] > now) << priority);
	return bits;
}

void Port::start_next()
{
	if (sending_ || !up_)
		return;
	sending_pause_ = !pauses_.empty();
	if (sending_pause_) {
		sending_ = pauses_.pop_front();
	} else {
		sending_ = queues.pop(paused(), loop_.now());
	}
	if (!sending_)
		return;
	if (!sending_pause_)
		owner_.sending(*this, *sending_);
	const uint64_t cost = (sending_->size + kFrameOverhead) * 8 * kSecond + remainder_;
	remainder_ = cost % link.rate;
	counts_.busy_ns += cost / link.rate;
	loop_.after(cost / link.rate, Departure{this});
}

/* The last bit has left. */
void Port::finish()
{
	FramePtr frame = std::move(sending_);
	if (std::exchange(cut_, false)) {
		if (!sending_pause_)
			lose(*frame);
		return start_next();
	}
	if (!sending_pause_)
		owner_.departed(*this, *frame);
	if (!is_pause(*frame)) {
		counts_.tx_frames++;
		counts_.tx_bytes += frame->size;
	}
	launch(std::move(frame));
	start_next();
}

/* Draws nothing for a share of 0, so that a link without it costs nothing. */
bool Port::happens(double share)
{
	return share > 0 && std::uniform_real_distribution()(random_) < share;
}

/* Frames do not overtake each other, however their delays vary. */
void Port::launch(FramePtr frame)
{
	if (happens(link.loss)) {
		counts_.lost += !is_pause(*frame);
		return;
	}
	uint64_t arrival = loop_.now() + link.delay;
	if (link.jitter)
		arrival += std::uniform_int_distribution<uint64_t>(0, link.jitter)(random_);
	last_arrival_ = std::max(last_arrival_, arrival);
	if (in_flight_.empty())
		await_arrival(last_arrival_);
	else
		in_flight_.back().next_arrival = last_arrival_;
	in_flight_.push_back(std::move(frame));
}

/* Schedules the arrival of the first frame in flight in the loop of the peer, which may be another
 * loop. There is one event for all frames in flight, so that the loop's heap stays small. */
void Port::await_arrival(uint64_t when)
{
	next_arrival_ = when;
	peer_->loop_.at(when, Arrival{this, when});
}

void Port::arrive(uint64_t when)
{
	if (next_arrival_ != when)
		return; /* what it was for was lost */
	next_arrival_ = kNever;
	FramePtr frame = in_flight_.pop_front();
	if (!in_flight_.empty()) {
		in_flight_.front().prefetch();
		await_arrival(frame->next_arrival);
	}
	if (peer_->interceptor_)
		peer_->interceptor_->arrived(std::move(frame));
	else
		peer_->accept(std::move(frame));
}

void Port::accept(FramePtr frame)
{
	if (const auto pause = parse_pause(frame->bytes())) {
		obey(*pause);
		return owner_.pause_arrived(*this, *frame);
	}
	counts_.rx_frames++;
	counts_.rx_bytes += frame->size;
	owner_.arrived(*this, std::move(frame));
}

void Port::lose_intercepted(const Frame &frame)
{
	counts_.lost += !is_pause(frame);
}

/* Starts or ends pauses. Schedules an event only for the pause that ends first; wake() schedules
 * the next one. A peer may send many frames that each pause all priorities: one event for each
 * pause could fill the loop. */
void Port::obey(const PauseTimes &pause)
{
	for (unsigned priority = 0; priority < kPriorities; priority++) {
		if (!pause[priority])
			continue;
		const uint64_t bits = *pause[priority] * kPauseQuantum;
		pauses_received_[priority] += bits != 0;
		if (!bits || paused_until_[priority] <= loop_.now())
			storms_.waiting_since[priority].reset();
		paused_until_[priority] = loop_.now() + bits * kSecond / link.rate;
		unpaused_at_ = std::max(unpaused_at_, paused_until_[priority]);
		if (!bits)
			loop_.at(loop_.now(), [this] { start_next(); });
		watch(priority);
	}
	wake_at(next_end_of_pause());
}

void Port::guard_against_storms(uint8_t priorities, uint64_t limit)
{
	storms_.guarded = priorities;
	storms_.limit = limit;
}

/* Notes since when frames of @priority have waited, if they do so because of a pause. */
void Port::watch(unsigned priority)
{
	if (!(storms_.guarded >> priority & 1) || in_storm_ >> priority & 1 ||
	    storms_.waiting_since[priority] || paused_until_[priority] <= loop_.now() ||
	    !queues.bytes(static_cast<uint8_t>(priority)))
		return;
	storms_.waiting_since[priority] = loop_.now();
	if (!(storms_.watched >> priority & 1))
		watch_at(priority, loop_.now() + storms_.limit);
}

void Port::watch_at(unsigned priority, uint64_t when)
{
	storms_.watched |= static_cast<uint8_t>(1u << priority);
	loop_.at(when, [this, priority] { look_for_storm(priority); });
}

/* Begins or ends a storm, or looks again when that may be necessary. */
void Port::look_for_storm(unsigned priority)
{
	storms_.watched &= static_cast<uint8_t>(~(1u << priority));
	auto &since = storms_.waiting_since[priority];
	if (!(in_storm_ >> priority & 1)) {
		if (paused_until_[priority] <= loop_.now())
			since.reset();
		if (!since)
			return;
		if (loop_.now() < *since + storms_.limit)
			return watch_at(priority, *since + storms_.limit);
		begin_storm(priority);
	}
	const uint64_t quiet_at = paused_until_[priority] + storms_.limit;
	if (loop_.now() < quiet_at)
		return watch_at(priority, quiet_at);
	in_storm_ &= static_cast<uint8_t>(~(1u << priority));
}

void Port::begin_storm(unsigned priority)
{
	storms_.counts.pause_storms++;
	storms_.waiting_since[priority].reset();
	in_storm_ |= static_cast<uint8_t>(1u << priority);
	const auto others = static_cast<uint8_t>(~(1u << priority));
	while (FramePtr frame = queues.pop(others, loop_.now()))
		drop_in_storm(*frame);
}

void Port::drop_in_storm(const Frame &frame)
{
	storms_.counts.storm_dropped++;
	owner_.departed(*this, frame);
}

/* Does nothing if an event comes earlier. */
void Port::wake_at(uint64_t when)
{
	if (when >= next_wake_ || wakes_ == kMaxWakes)
		return;
	next_wake_ = when;
	wakes_++;
	loop_.at(when, [this] { wake(); });
}

void Port::wake()
{
	wakes_--;
	if (next_wake_ <= loop_.now())
		next_wake_ = kNever;
	start_next();
	wake_at(next_end_of_pause());
}

/* Returns kNever if no priority is paused. */
uint64_t Port::next_end_of_pause() const
{
	uint64_t next = kNever;
	for (const uint64_t end : paused_until_) {
		if (end > loop_.now())
			next = std::min(next, end);
	}
	return next;
}

void Port::set_up(bool up)
{
	if (up_ == up)
		return;
	up_ = up;
	cuts_ += !up;
	cut_ = sending_ != nullptr;
	paused_until_ = {};
	in_storm_ = 0;
	storms_.waiting_since = {};
	next_arrival_ = kNever;
	while (FramePtr frame = queues.pop(0, loop_.now()))
		lose(*frame);
	while (!in_flight_.empty())
		counts_.lost += !is_pause(*in_flight_.pop_front());
	pauses_.clear();
	if (up)
		owner_.link_returned(*this);
}

void Port::lose(const Frame &frame)
{
	counts_.lost += !is_pause(frame);
	owner_.departed(*this, frame);
}

} // namespace tern::fabric
