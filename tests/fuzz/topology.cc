// SPDX-License-Identifier: GPL-2.0-or-later
/* Has cards send any frames into switches and links of a topology, whose links fail and have faults
 * meanwhile, under a clock that only passes in between. Once all links are up and the faults are
 * gone, nothing may wait in a queue or at a card. */
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qemu/rnic/formats/pause.h"
#include "qemu/wire/control.h"
#include "qemu/wire/topology.h"
#include "tests/sim/rng.h"

namespace tern::wire {
namespace {

using sim::Rng;

constexpr unsigned kMaxActs = 100;
constexpr size_t kCards = 5;
constexpr size_t kMaxBurst = 40;
constexpr uint64_t kMillisecond = 1'000'000;
/* All queues are empty after this time. The longest pause lasts 4 s at 8 Mb/s. */
constexpr uint64_t kSettled = 60'000 * kMillisecond;

/* Two switches with two links, a card with two lanes, and queues that a burst fills. */
const char *const kTopology = R"(
switch = [{ name = 'tor1' }, { name = 'tor2' }]
host = [{ name = 'a' }, { name = 'b', cards = 2 }, { name = 'c' }, { name = 'd' }]
[queues]
limit = '20 KB'
weights = [1, 2, 0, 0, 1, 0, 0, 0]
[ecn]
kmin = '2 KB'
kmax = '10 KB'
[pfc]
priorities = [3, 4]
xoff = '6 KB'
xon = '3 KB'
[[link]]
ends = ['a', 'tor1']
rate = '80 Mb/s'
[[link]]
ends = ['b*', 'tor1']
rate = '8 Mb/s'
jitter = '100 us'
[[link]]
ends = ['c', 'tor2']
rate = '80 Mb/s'
loss = 0.1
[[link]]
ends = ['d', 'tor2']
[[link]]
ends = ['tor1', 'tor2']
rate = '20 Mb/s'
[[link]]
ends = ['tor1', 'tor2']
rate = '20 Mb/s'
)";

class SetClock final : public Clock {
public:
	uint64_t now() override { return time; }

	uint64_t time = 1;
};

/* A card's connection. It sends what is in its outbox as far as it need not wait. */
class Connection final : public Port {
public:
	Connection(Edge &edge, Switch &ethernet, uint64_t card, uint32_t lane)
	        : Port(edge, 1 << 20), edge_(edge), ethernet_(ethernet)
	{
		id = ethernet.attach(*this);
		ethernet.place(id, card, lane);
		edge_.joined(*this);
	}
	~Connection() override
	{
		edge_.left(*this);
		ethernet_.detach(id);
	}

	void send(std::vector<std::byte> bytes)
	{
		outbox_.push_back(std::move(bytes));
		if (!waiting_for_)
			forward_frames();
	}
	bool deliver(Frame frame) override
	{
		for (const std::byte b : frame)
			sum_ = sum_ + std::to_integer<unsigned>(b);
		return true;
	}
	void flush() override {}
	void update_interest() override {}
	size_t queued() const override { return 0; }
	uint64_t consumed() const override { return 0; }

private:
	void forward_frames() override
	{
		while (!waiting_for_ && !outbox_.empty()) {
			const std::vector<std::byte> bytes = std::move(outbox_.front());
			outbox_.pop_front();
			hand_on(bytes);
		}
	}

	Edge &edge_;
	Switch &ethernet_;
	std::deque<std::vector<std::byte>> outbox_;
	volatile unsigned sum_ = 0;
};

class World final : private PortReport {
public:
	World(Rng &rng, const fabric::Plan &plan)
	        : rng_(rng), topology_(plan, clock_, ethernet_, recorder_)
	{
		for (size_t i = 0; i < kCards; i++)
			plug(i, 0, 0);
	}

	void act()
	{
		switch (rng_.below(8)) {
		case 0:
			pass(rng_.below(1 << 16) * 1000);
			break;
		case 1:
			command();
			break;
		case 2:
			plug(rng_.below(kCards), rng_.below(2),
			     static_cast<uint32_t>(rng_.below(2)));
			break;
		case 3:
			pause();
			break;
		default:
			burst();
			break;
		}
	}
	/** All is mended, and time passes. */
	void settle()
	{
		control_.execute("clear");
		if (topology_.execute("link tor1 tor2 up") != "ok")
			std::abort();
		pass(kSettled);
		const std::string report = topology_.report();
		for (size_t at = 0; (at = report.find("\"length\":", at)) != report.npos;)
			if (report.substr(at += 9, 2) != "0,")
				std::abort();
		for (const auto &lanes : connections_)
			for (const auto &connection : lanes)
				if (connection && connection->waiting_for())
					std::abort();
	}

private:
	using Lanes = std::array<std::unique_ptr<Connection>, 2>;

	std::string describe_ports() const override { return "5"; }
	uint64_t frames_dropped() const override { return 0; }
	shm::DirectCounts direct() const override { return {}; }

	void pass(uint64_t ns)
	{
		clock_.time += ns;
		topology_.advance();
		remove_dead();
	}
	void remove_dead()
	{
		for (Lanes &lanes : connections_)
			for (auto &connection : lanes)
				if (connection && connection->dead())
					connection.reset();
	}
	/** A new connection of a card, in place of that of the lane. */
	void plug(size_t card, uint64_t name, uint32_t lane)
	{
		auto &connection = connections_[card][lane];
		connection.reset();
		connection = std::make_unique<Connection>(topology_.edge(card), ethernet_,
		                                          name ? card + 1 : 0, lane);
		remove_dead();
	}
	Connection *any() { return connections_[rng_.below(kCards)][rng_.below(4) == 0].get(); }
	/** Frames that differ in their first bytes: addresses of cards, of groups and others. */
	void burst()
	{
		Connection *const from = any();
		std::array<std::byte, 32> head{};
		for (size_t i = 0; i < 12; i++)
			head[i] = static_cast<std::byte>(i % 6 == 5 ? rng_.below(kCards + 2) : 0);
		head[0] = static_cast<std::byte>(rng_.chance(1, 8) ? rng_.below(256) : 0);
		/* A tag with a priority, IP, or anything. */
		constexpr std::array<uint16_t, 4> kTypes = {0x8100, 0x0800, 0x86dd, 0x8808};
		const uint16_t type = kTypes[rng_.below(kTypes.size())];
		head[12] = static_cast<std::byte>(type >> 8);
		head[13] = static_cast<std::byte>(type);
		for (size_t i = 14; i < 24; i++)
			head[i] = static_cast<std::byte>(rng_.below(256));
		const size_t size = rng_.chance(1, 8) ? rng_.below(10000) : rng_.between(14, 1514);
		for (auto count = rng_.between(1, kMaxBurst); from && count > 0; count--) {
			std::vector<std::byte> bytes(head.begin(), head.end());
			bytes.resize(size);
			from->send(std::move(bytes));
		}
	}
	void pause()
	{
		Connection *const from = any();
		const auto priority = static_cast<uint8_t>(rng_.below(kPriorities));
		const auto frame = pause_frame(priority, static_cast<uint16_t>(rng_.next()));
		if (from)
			from->send({frame.begin(), frame.end()});
	}
	void command()
	{
		static constexpr const char *kLines[] = {
		        "link tor1 tor2 down",
		        "link tor1 tor2 up",
		        "link tor2 tor1 down",
		        "link a tor1 down",
		        "fabric",
		        "rules drop link=tor?:tor? every=2",
		        "rules duplicate link=a:tor1",
		        "rules delay by=20ms link=*",
		        "rules reorder by=3 link=tor1:*",
		        "rules corrupt to=00:00:00:00:00:01",
		        "loss 30",
		        "dup 30",
		        "reorder 30",
		        "clear",
		        "stats",
		        "faults",
		};
		const std::string line = kLines[rng_.below(std::size(kLines))];
		const std::string reply = topology_.execute(line).value_or("");
		const std::string told = reply.empty() ? control_.execute(line) : reply;
		if (!told.starts_with("ok") && !told.starts_with("error "))
			std::abort();
	}

	Rng &rng_;
	SetClock clock_;
	Switch ethernet_;
	Capture capture_;
	FaultLog log_;
	Recorder recorder_{ethernet_, capture_, log_};
	Control control_{ethernet_, capture_, log_, *this};
	Topology topology_;
	std::array<Lanes, kCards> connections_;
};

} // namespace
} // namespace tern::wire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	using namespace tern::wire;
	static const tern::fabric::Plan plan = parse_topology(kTopology, "topology");
	Rng rng(std::as_bytes(std::span(data, size)));
	World world(rng, plan);
	for (unsigned i = 0; i < kMaxActs && !rng.exhausted(); i++)
		world.act();
	world.settle();
	return 0;
}
