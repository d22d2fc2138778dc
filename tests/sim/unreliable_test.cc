// SPDX-License-Identifier: GPL-2.0-or-later
/* UC, UD and multicast between several hosts, over wires that lose, repeat, delay and damage. */
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/options.h"
#include "tests/sim/traffic.h"
#include "tests/sim/uc_talker.h"
#include "tests/sim/ud_talker.h"

namespace tern::sim {
namespace {

using namespace hw;

constexpr uint64_t kSecond = 1'000'000'000;

/** What the talkers of one node share. */
struct Host {
	explicit Host(Node &n)
	        : node(n), pd(n.driver.alloc_pd()), eq(n.driver.create_eq(0)),
	          cq(n.driver.create_cq(eq, 13))
	{
	}

	Node &node;
	uint32_t pd;
	test::HostEq eq;
	std::unique_ptr<test::HostCq> cq;
	std::map<uint32_t, Talker *> by_qpn;
};

/** One run from one seed. */
class Talks {
public:
	explicit Talks(uint64_t seed) : rng_(seed)
	{
		const LinkConfig link = random_link(rng_);
		const Faults &f = link.faults;
		conditions_.perfect = !f.loss && !f.duplicate && !f.corrupt && !f.reorder;
		conditions_.duplicates = f.duplicate;
		conditions_.corrupt = f.corrupt;
		fabric_ = std::make_unique<Fabric>(rng_.next(),
		                                   static_cast<unsigned>(rng_.between(1, 4)), link);
		for (const auto &node : fabric_->nodes)
			hosts_.push_back(std::make_unique<Host>(*node));
	}

	std::string connections();
	std::string datagrams();

private:
	Host &any_host() { return *hosts_[rng_.below(hosts_.size())]; }
	test::QpOptions options(const Host &host, tern_hw_qp_type type);
	template <typename T, typename... Args>
	T &add(Host &host, tern_hw_qp_type type, Args &...args);
	void set_mtu(uint16_t mtu);
	void tick(Host &host);
	std::string talk();
	void fail(const std::string &what)
	{
		if (failure_.empty())
			failure_ = "at " + std::to_string(fabric_->loop.now()) + " ns: " + what;
	}

	Rng rng_;
	Conditions conditions_;
	std::unique_ptr<Fabric> fabric_;
	std::vector<std::unique_ptr<Host>> hosts_;
	std::vector<std::unique_ptr<Talker>> talkers_;
	std::string failure_;
	bool on_ = true;
};

/* With room for all that may come, or for a few at a time. */
test::QpOptions Talks::options(const Host &host, tern_hw_qp_type type)
{
	test::QpOptions o;
	o.pd = host.pd;
	o.send_cqn = o.recv_cqn = host.cq->number;
	o.type = static_cast<uint8_t>(type);
	o.sq_log_size = static_cast<uint8_t>(rng_.between(3, 7));
	const uint8_t all = type == TERN_QPT_UC ? 6 : 9;
	o.rq_log_size = conditions_.perfect ? all : static_cast<uint8_t>(rng_.between(0, all));
	o.rq_log_stride = 4;
	o.layout = {static_cast<unsigned>(rng_.below(3)), 12};
	o.no_mc_loopback = type == TERN_QPT_UD && rng_.chance(1, 3);
	return o;
}

template <typename T, typename... Args>
T &Talks::add(Host &host, tern_hw_qp_type type, Args &...args)
{
	auto talker = std::make_unique<T>(host.node, rng_.fork(), host.pd, options(host, type),
	                                  conditions_, args...,
	                                  [this](const std::string &what) { fail(what); });
	T &added = *talker;
	host.by_qpn[added.qp->number] = &added;
	talkers_.push_back(std::move(talker));
	return added;
}

void Talks::tick(Host &host)
{
	while (const auto cqe = host.cq->poll())
		host.by_qpn.at(cqe->qpn.get())->on_completion(*cqe);
	for (const auto &[qpn, talker] : host.by_qpn)
		if (rng_.chance(2, 3))
			talker->act();
	if (on_)
		fabric_->loop.after(rng_.between(500, 20000), [this, &host] { tick(host); });
}

std::string Talks::talk()
{
	EventLoop &loop = fabric_->loop;
	for (const auto &host : hosts_)
		tick(*host);
	const bool done = loop.run_until(loop.now() + kSecond, [this] {
		return !failure_.empty() ||
		       std::ranges::all_of(talkers_, [](const auto &t) { return t->finished(); });
	});
	if (!done)
		fail("not all was sent");
	/* The last frames arrive, the last completions are polled. */
	loop.run_for(kSecond / 100);
	on_ = false;
	loop.run_for(kSecond / 1000);
	if (failure_.empty())
		for (const auto &talker : talkers_)
			talker->verify();
	return failure_;
}

std::string Talks::connections()
{
	for (auto pairs = rng_.between(1, 6); pairs > 0; pairs--) {
		/* Both ends may be on one host. */
		UcTalker &a = add<UcTalker>(any_host(), TERN_QPT_UC);
		UcTalker &b = add<UcTalker>(any_host(), TERN_QPT_UC);
		UcTalker::connect(a, b);
	}
	return talk();
}

void Talks::set_mtu(uint16_t mtu)
{
	for (const auto &host : hosts_) {
		auto c = test::make_command(TERN_AQ_SET_ETH);
		c.set_eth.mask = TERN_ETH_MTU;
		c.set_eth.mtu = mtu;
		if (host->node.driver.status_of(c) != TERN_AQ_OK)
			fail("SET_ETH");
	}
}

std::string Talks::datagrams()
{
	constexpr Gid kIpv4{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3}};
	constexpr Gid kIpv6{{0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3}};
	/* By the indices of node_gids(). */
	Party party{.qkey = static_cast<uint32_t>(rng_.next()) & 0x7fffffff,
	            .max_datagram = rng_.chance(1, 2) ? 1024u : 4096u,
	            .talkers = {},
	            .groups = {{kIpv4, {0, 3}, {}}, {kIpv6, {1, 2}, {}}}};
	set_mtu(static_cast<uint16_t>(party.max_datagram == 1024 ? 1500 : 4192));
	std::vector<UdTalker *> added;
	for (auto n = rng_.between(1, 8); n > 0; n--)
		added.push_back(&add<UdTalker>(any_host(), TERN_QPT_UD, party));
	for (UdTalker *talker : added)
		for (Group &group : party.groups)
			if (rng_.chance(1, 2))
				talker->join(group);
	for (UdTalker *talker : added)
		talker->start();
	return talk();
}

/* UC: whole and in order, or not at all; over a good wire, all. */
TEST(Unreliable, Connections)
{
	for (uint64_t i = 0; i < options().seeds; i++) {
		const uint64_t seed = options().seed + i;
		ASSERT_EQ(Talks(seed).connections(), "") << replay(seed);
	}
}

/* UD and multicast: whole, for whom it was meant, from whom it says, or not at all. */
TEST(Unreliable, Datagrams)
{
	for (uint64_t i = 0; i < options().seeds; i++) {
		const uint64_t seed = options().seed + i;
		ASSERT_EQ(Talks(seed).datagrams(), "") << replay(seed);
	}
}

} // namespace
} // namespace tern::sim
