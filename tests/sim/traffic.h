/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random traffic between several hosts, from one seed. */
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/endpoint.h"
#include "tests/sim/node.h"
#include "tests/sim/pager.h"
#include "tests/sim/rng.h"

namespace tern::sim {

/** The programs of one host: they post, and they look for completions, by polling or by events. */
class App {
public:
	App(Node &node, Rng rng, Endpoint::Fail fail);
	~App();

	/** A new program with its own CQs, for @connections. */
	void begin(unsigned connections, const Limits &limits);
	/** @xrc: its connection is one of XRC. */
	Endpoint &add_endpoint(const Limits &limits, bool xrc);
	/** From now on it acts by itself. */
	void start();
	/** Takes all down that begin() made. */
	void end();
	/** The card was reset: all of it is void. */
	void lose();

	Node &node;
	std::vector<std::unique_ptr<Endpoint>> endpoints;
	std::unique_ptr<Area> counter;

private:
	struct Queue {
		std::unique_ptr<test::HostCq> cq;
		bool by_events = false;
	};

	std::unique_ptr<SharedInbox> make_inbox(const Limits &limits, bool xrc);
	void make_eqs();
	void on_interrupt(unsigned vector);
	void tick();
	/** Takes up to @max completions. False: there was none. */
	bool drain(Queue &queue, unsigned max);
	Queue &random_queue();

	Rng rng_;
	Endpoint::Fail fail_;
	Pager pager_;
	std::vector<test::HostEq> eqs_;
	std::vector<Queue> queues_;
	uint32_t pd_ = 0;
	std::unique_ptr<SharedInbox> shared_;
	uint32_t xrcd_ = 0;
	std::unique_ptr<SharedInbox> xrc_shared_;
	std::map<uint32_t, Endpoint *> by_qpn_;
	uint64_t generation_ = 0; /* ticks of an earlier begin() end */
	bool running_ = false;
	unsigned idle_ticks_ = 0; /* in a row */
	std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/** What goes wrong in the middle, besides frames. */
enum class Disruption { None, ResetCard, DestroyQp, DeregisterMr, QpToError };

/** One run from one seed. */
class Traffic {
public:
	explicit Traffic(uint64_t seed);

	/** Empty when all went as it must. */
	std::string run(Disruption disruption);

	Fabric &fabric() { return *fabric_; }

private:
	void phase(Disruption disruption);
	void connect();
	void disrupt(Disruption disruption);
	void end_doomed();
	void verify();
	bool finished() const;
	unsigned completed() const;
	std::vector<Endpoint *> all() const;
	void fail(const std::string &what);

	Rng rng_;
	std::unique_ptr<Fabric> fabric_;
	std::vector<std::unique_ptr<App>> apps_;
	std::string failure_;
};

LinkConfig random_link(Rng &rng);

} // namespace tern::sim
