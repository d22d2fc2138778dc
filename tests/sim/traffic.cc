// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/traffic.h"

#include <algorithm>

namespace tern::sim {

using namespace hw;

namespace {
constexpr uint64_t kSecond = 1'000'000'000;
constexpr unsigned kVectors = 3; /* that are used */
/* With so many idle ticks in a row the longest pause is 16 times that of a busy program. */
constexpr unsigned kMaxIdleTicks = 16;
} // namespace

LinkConfig random_link(Rng &rng)
{
	LinkConfig link;
	link.latency = rng.between(200, 5000);
	link.ns_per_kib = rng.chance(1, 4) ? 0 : rng.between(10, 500);
	link.queue = rng.chance(1, 3) ? rng.between(1, 4) : rng.between(16, 512);
	/* A third of the runs have no faults, a third few, a third many. */
	const auto rate = [&] { return static_cast<unsigned>(rng.below(1 + 30 * rng.below(3))); };
	if (rng.chance(2, 3))
		link.faults = {rate(), rate(), rate(), rate()};
	if (rng.chance(1, 2)) {
		link.borrow = static_cast<unsigned>(rng.chance(1, 2) ? 1000 : rng.below(1000));
		link.bursts = static_cast<unsigned>(rng.chance(1, 2) ? 1000 : rng.below(1000));
		link.moves = static_cast<unsigned>(rng.chance(1, 2) ? 1000 : rng.below(1000));
	}
	if (rng.chance(1, 5))
		link.borrow_until = rng.below(2'000'000);
	return link;
}

/* ---- App ---- */

App::App(Node &n, Rng rng, Endpoint::Fail fail)
        : node(n), rng_(rng), fail_(std::move(fail)), pager_(n, rng_.fork(), fail_)
{
	make_eqs();
}

App::~App()
{
	*alive_ = false;
	node.on_interrupt = nullptr;
}

void App::make_eqs()
{
	eqs_.clear();
	/* Some so small that they overflow: completion events wait then. But page faults, of which
	 * a QP has one at a time, must not get lost. */
	for (unsigned vector = 0; vector < kVectors; vector++) {
		const auto log_size = vector ? static_cast<unsigned>(rng_.between(1, 6)) : 8;
		eqs_.push_back(node.driver.create_eq(vector, log_size));
		node.driver.arm(eqs_.back());
	}
	node.on_interrupt = [this](unsigned vector) { on_interrupt(vector); };
}

void App::begin(unsigned connections, const Limits &limits)
{
	generation_++;
	pd_ = node.driver.alloc_pd();
	counter = std::make_unique<Area>(
	        node, rng_, pd_, 8, TERN_ACCESS_LOCAL_WRITE | TERN_ACCESS_REMOTE_ATOMIC, false);
	/* Each CQ has room for all that may complete at once. */
	unsigned log_size = 9;
	while ((1u << log_size) < connections * 2 * (128 + 64) + 2 * 64)
		log_size++;
	for (unsigned i = 0; i < 3; i++) {
		Queue queue;
		queue.cq = node.driver.create_cq(eqs_[rng_.below(eqs_.size())], log_size, i,
		                                 {static_cast<unsigned>(rng_.below(3)), 12});
		queue.by_events = rng_.chance(1, 2);
		if (queue.by_events)
			queue.cq->arm();
		queues_.push_back(std::move(queue));
	}
	shared_ = make_inbox(limits, false);
	xrcd_ = node.driver.alloc_xrcd();
	xrc_shared_ = make_inbox(limits, true);
}

std::unique_ptr<SharedInbox> App::make_inbox(const Limits &limits, bool xrc)
{
	test::SrqOptions options;
	options.pd = pd_;
	if (xrc) {
		options.xrcdn = xrcd_;
		options.cqn = random_queue().cq->number;
	}
	options.log_size = static_cast<uint8_t>(rng_.below(5));
	options.log_stride = static_cast<uint8_t>(rng_.between(4, 9));
	options.layout = {static_cast<unsigned>(rng_.below(3)), 12};
	return std::make_unique<SharedInbox>(node, rng_, pd_, options, limits.max_size + 4096);
}

App::Queue &App::random_queue()
{
	return queues_[rng_.below(queues_.size())];
}

Endpoint &App::add_endpoint(const Limits &limits, bool xrc)
{
	test::QpOptions options;
	options.pd = pd_;
	options.send_cqn = random_queue().cq->number;
	options.recv_cqn = random_queue().cq->number;
	options.db_page = static_cast<uint32_t>(rng_.below(3));
	options.sq_log_size = static_cast<uint8_t>(rng_.between(2, 7));
	options.rq_log_size = static_cast<uint8_t>(rng_.below(7));
	options.rq_log_stride = static_cast<uint8_t>(rng_.between(4, 9));
	options.layout = {static_cast<unsigned>(rng_.below(3)), 12};
	SharedInbox *inbox = nullptr;
	if (xrc) {
		inbox = xrc_shared_.get();
		options.type = TERN_QPT_XRC_INI;
		options.recv_cqn = 0;
	} else if (rng_.chance(1, 3)) {
		inbox = shared_.get();
		options.srqn = inbox->number();
	}
	endpoints.push_back(std::make_unique<Endpoint>(node, rng_.fork(), pd_, options, limits,
	                                               *counter, inbox, xrc ? xrcd_ : 0, fail_));
	Endpoint &added = *endpoints.back();
	by_qpn_[added.qp->number] = &added;
	if (added.target)
		by_qpn_[added.target->number] = &added;
	return *endpoints.back();
}

void App::start()
{
	running_ = true;
	node.loop.after(rng_.below(5000), [this, alive = alive_, generation = generation_] {
		if (*alive && generation == generation_)
			tick();
	});
}

void App::tick()
{
	if (!running_)
		return;
	bool idle = true;
	for (Queue &queue : queues_)
		if (!queue.by_events)
			idle &= !drain(queue, static_cast<unsigned>(rng_.below(20)));
	pager_.act();
	shared_->act(rng_);
	xrc_shared_->act(rng_);
	for (const auto &endpoint : endpoints)
		if (rng_.chance(2, 3))
			idle &= !endpoint->act();
	/* Long waits, as for a peer that was destroyed, would be spent on ticks without effect. */
	idle_ticks_ = idle ? std::min(idle_ticks_ + 1, kMaxIdleTicks) : 0;
	const uint64_t longest = uint64_t{20'000} << idle_ticks_ / 4;
	node.loop.after(rng_.between(500, longest),
	                [this, alive = alive_, generation = generation_] {
		                if (*alive && generation == generation_)
			                tick();
	                });
}

bool App::drain(Queue &queue, unsigned max)
{
	bool any = false;
	for (; max > 0; max--) {
		const auto cqe = queue.cq->poll();
		if (!cqe)
			break;
		any = true;
		const auto endpoint = by_qpn_.find(cqe->qpn.get());
		if (endpoint == by_qpn_.end())
			fail_("completion of an unknown QP");
		else
			endpoint->second->on_completion(*cqe);
	}
	return any;
}

void App::on_interrupt(unsigned vector)
{
	if (vector >= eqs_.size())
		return;
	test::HostEq &eq = eqs_[vector];
	while (const auto event = eq.ring.poll()) {
		if (event->type == TERN_EVENT_PAGE_FAULT)
			pager_.on_fault(event->id.get());
		if (event->type != TERN_EVENT_COMP)
			continue;
		for (Queue &queue : queues_)
			if (queue.cq->number == event->id.get()) {
				drain(queue, UINT32_MAX);
				queue.cq->arm();
			}
	}
	node.driver.arm(eq);
	node.wake();
}

void App::end()
{
	if (!running_)
		return endpoints.clear();
	running_ = false;
	test::Driver &driver = node.driver;
	for (const auto &endpoint : endpoints)
		endpoint->destroy();
	if (!shared_->destroy() || !xrc_shared_->destroy() ||
	    driver.destroy(TERN_AQ_DEALLOC_XRCD, xrcd_) != TERN_AQ_OK)
		fail_("an SRQ or the XRC domain cannot be taken down");
	for (const Queue &queue : queues_)
		if (driver.destroy(TERN_AQ_DESTROY_CQ, queue.cq->number) != TERN_AQ_OK)
			fail_("DESTROY_CQ failed");
	if (driver.destroy(TERN_AQ_DESTROY_MR, counter->mr.key) != TERN_AQ_OK ||
	    driver.destroy(TERN_AQ_DEALLOC_PD, pd_) != TERN_AQ_OK)
		fail_("the protection domain cannot be taken down");
	queues_.clear();
	by_qpn_.clear();
	endpoints.clear();
}

/* The endpoints stay until end(), for their peers' sake. */
void App::lose()
{
	running_ = false;
	generation_++;
	for (const auto &endpoint : endpoints)
		endpoint->vanish();
	queues_.clear();
	by_qpn_.clear();
	node.reset_card();
	make_eqs();
}

/* ---- Traffic ---- */

Traffic::Traffic(uint64_t seed) : rng_(seed)
{
	const LinkConfig link = random_link(rng_);
	fabric_ = std::make_unique<Fabric>(rng_.next(), static_cast<unsigned>(rng_.between(2, 4)),
	                                   link);
	for (const auto &node : fabric_->nodes)
		apps_.push_back(std::make_unique<App>(
		        *node, rng_.fork(), [this](const std::string &what) { fail(what); }));
}

void Traffic::fail(const std::string &what)
{
	if (failure_.empty())
		failure_ = "at " + std::to_string(fabric_->loop.now()) + " ns: " + what;
}

std::string Traffic::run(Disruption disruption)
{
	phase(disruption);
	/* What was disrupted works again. */
	if (disruption != Disruption::None && failure_.empty())
		phase(Disruption::None);
	return failure_;
}

std::vector<Endpoint *> Traffic::all() const
{
	std::vector<Endpoint *> result;
	for (const auto &app : apps_)
		for (const auto &endpoint : app->endpoints)
			result.push_back(endpoint.get());
	return result;
}

/* Called after each event: no list of the endpoints is made. */
bool Traffic::finished() const
{
	return std::ranges::all_of(apps_, [](const auto &app) {
		return std::ranges::all_of(app->endpoints,
		                           [](const auto &e) { return e->finished(); });
	});
}

unsigned Traffic::completed() const
{
	unsigned sum = 0;
	for (const Endpoint *e : all())
		sum += e->completed();
	return sum;
}

void Traffic::connect()
{
	Limits limits;
	limits.ops = static_cast<unsigned>(rng_.between(5, 40));
	limits.max_size = static_cast<uint32_t>(rng_.chance(1, 8) ? rng_.between(100'000, 300'000)
	                                                          : rng_.between(100, 20'000));
	const auto connections = static_cast<unsigned>(
	        limits.max_size > 50'000 ? rng_.between(1, 2) : rng_.between(1, 6));
	for (const auto &app : apps_)
		app->begin(connections, limits);
	for (unsigned i = 0; i < connections; i++) {
		App &a = *apps_[rng_.below(apps_.size())];
		/* Both ends may be on the same card. */
		App &b = *apps_[rng_.below(apps_.size())];
		const bool xrc = rng_.chance(1, 5);
		Endpoint &x = a.add_endpoint(limits, xrc);
		Endpoint &y = b.add_endpoint(limits, xrc);
		Endpoint::connect(x, y);
	}
	for (const auto &app : apps_)
		app->start();
}

void Traffic::phase(Disruption disruption)
{
	connect();
	EventLoop &loop = fabric_->loop;
	const uint64_t limit = loop.now() + 20 * kSecond;
	if (disruption != Disruption::None) {
		const auto when = static_cast<unsigned>(rng_.below(60));
		loop.run_until(limit, [&] { return completed() >= when || finished(); });
		disrupt(disruption);
		end_doomed();
	}
	const bool done = loop.run_until(limit, [this] { return finished() || !failure_.empty(); });
	if (!done)
		for (const Endpoint *e : all())
			if (!e->finished())
				fail("no end: " + e->describe());
	if (!failure_.empty())
		return;
	verify();
	/* Late retransmissions may still be on their way; they must do no harm. */
	loop.run_for(kSecond / 1000);
	verify();
	for (const auto &app : apps_)
		app->end();
}

void Traffic::disrupt(Disruption disruption)
{
	App &app = *apps_[rng_.below(apps_.size())];
	if (disruption == Disruption::ResetCard) {
		for (const auto &endpoint : app.endpoints) {
			endpoint->doom();
			endpoint->peer->doom();
		}
		app.lose();
		return;
	}
	const auto endpoints = all();
	Endpoint &victim = *endpoints[rng_.below(endpoints.size())];
	victim.doom();
	victim.peer->doom();
	switch (disruption) {
	case Disruption::DestroyQp:
		/* As programs must, lest a shared receive WQE is lost. */
		victim.to_error();
		victim.destroy();
		victim.vanish();
		break;
	case Disruption::DeregisterMr:
		victim.deregister_one();
		break;
	default:
		victim.to_error();
		break;
	}
}

/* Who only receives does not learn that its peer is gone: sooner or later the host tears it down.
 */
void Traffic::end_doomed()
{
	fabric_->loop.after(kSecond / 2, [this] {
		for (Endpoint *e : all())
			if (e->doomed() && !e->gone())
				e->to_error();
	});
}

void Traffic::verify()
{
	for (const Endpoint *e : all())
		e->verify();
	for (const auto &node : fabric_->nodes)
		if (node->overdue)
			fail("memory that was lent went before it was recalled");
	for (const auto &app : apps_) {
		std::vector<uint64_t> values;
		bool certain = true;
		for (const Endpoint *e : all())
			if (&e->peer->counter == app->counter.get()) {
				certain &= !e->doomed();
				const auto counted = e->counted();
				values.insert(values.end(), counted.begin(), counted.end());
			}
		if (!certain)
			continue;
		/* Each addition happened once, so each has seen another number. */
		std::ranges::sort(values);
		for (size_t i = 0; i < values.size(); i++)
			if (values[i] != i)
				return fail("an addition was made twice or not at all");
		if (app->counter->mr.read_u64(0) != values.size())
			return fail("the counter has another value");
	}
}

} // namespace tern::sim
