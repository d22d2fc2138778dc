// SPDX-License-Identifier: GPL-2.0-or-later
/* How much memory of its process a card takes for each object: what the card allocates while it
 * works, divided by the number of objects. Rings and page lists are in the guest's memory, and are
 * not included. */
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>

#include "qemu/rnic/rnic.h"
#include "tests/bench/counted_new.h"
#include "tests/support/flat_memory.h"
#include "tests/support/host.h"

namespace tern::bench {
namespace {

using namespace hw;

constexpr Gid kGid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}};
constexpr size_t kMemory = size_t{1} << 38; /* of which only what is touched takes room */
constexpr unsigned kTurn = 256;
constexpr uint32_t kObjects = 4096; /* a power of two, as tables double */
constexpr uint32_t kDestQpn = 0x1234;
constexpr uint8_t kLogDepth = 10;
constexpr uint64_t kRegion = 64 << 10;
constexpr test::Layout kPages{2, 12}; /* as the driver lays out large buffers */

/** A host whose peer never answers. */
class Host final : private Wire, private Interrupts, private Clock {
public:
	Host()
	        : memory_(kMemory),
	          card_({.mac = {2, 0, 0, 0, 0, 1}}, {memory_, *this, *this, *this}),
	          driver(card_, memory_, [this] { run(); })
	{
		card_.set_link(true);
		driver.enable();
		eq.emplace(driver.create_eq(0));
		driver.set_gid(0, TERN_GID_ROCE_V2, kGid);
		pd = driver.alloc_pd();
		cqn = driver.create_cq(*eq)->number;
		area.emplace(driver.create_mr(pd, 0, kRegion, test::kAllAccess, kPages));
	}

	/** Lets the card work, and counts what it allocates and frees. */
	void run()
	{
		const int64_t before = allocated_bytes();
		while (card_.run(kTurn)) {
		}
		grown_ += allocated_bytes() - before;
	}

	/** How many bytes the card has allocated and not freed. */
	int64_t grown() const { return grown_; }

	std::unique_ptr<test::HostQp> make_qp(tern_hw_qp_type type)
	{
		test::QpOptions options;
		options.pd = pd;
		options.type = static_cast<uint8_t>(type);
		options.send_cqn = options.recv_cqn = cqn;
		options.sq_log_size = kLogDepth;
		options.layout = kPages;
		return driver.create_qp(options);
	}

private:
	bool transmit(std::span<const std::byte>) override { return true; }
	void raise(unsigned) override {}
	uint64_t now() override { return 0; }

	test::FlatMemory memory_;
	Rnic card_;
	int64_t grown_ = 0;

public:
	test::Driver driver;
	std::optional<test::HostEq> eq;
	uint32_t pd = 0;
	uint32_t cqn = 0;
	std::optional<test::HostMr> area;
};

/** Makes a connection with @requests outstanding, WRITEs of 8 bytes. */
void connect(Host &host, uint32_t requests)
{
	const auto qp = host.make_qp(TERN_QPT_RC);
	test::Connection path;
	path.dest_qpn = kDestQpn;
	path.dgid = kGid;
	qp->connect(path);
	for (uint32_t i = 0; i < requests; i++)
		qp->post_send({.opcode = TERN_OP_WRITE, .sges = {host.area->sge(0, 8)}}, false);
	qp->publish();
	host.run();
}

struct Case {
	const char *name;
	void (*make)(Host &);
};

/* The card keeps the objects; those of the host may go. */
constexpr Case kCases[] = {
        {"RC QP", [](Host &h) { h.make_qp(TERN_QPT_RC); }},
        {"UC QP", [](Host &h) { h.make_qp(TERN_QPT_UC); }},
        {"UD QP", [](Host &h) { h.make_qp(TERN_QPT_UD); }},
        {"RC connection, idle", [](Host &h) { connect(h, 0); }},
        {"RC connection, 1 request", [](Host &h) { connect(h, 1); }},
        {"RC connection, 64 requests", [](Host &h) { connect(h, 64); }},
        {"RC connection, 1,024 requests", [](Host &h) { connect(h, 1 << kLogDepth); }},
        {"CQ", [](Host &h) { h.driver.create_cq(*h.eq); }},
        {"SRQ", [](Host &h) { h.driver.create_srq({.pd = h.pd}); }},
        {"region", [](Host &h) { h.driver.create_mr(h.pd, 0, kRegion, test::kAllAccess, kPages); }},
        {"memory window", [](Host &h) { h.driver.alloc_mw(h.pd, TERN_MW_TYPE_2, 0); }},
        {"PD", [](Host &h) { h.driver.alloc_pd(); }},
};

} // namespace
} // namespace tern::bench

int main()
{
	using namespace tern::bench;
	std::printf(
	        "Memory of a card, from %u objects of a kind. Without rings and page lists, which "
	        "are the guest's.\n\n%-32s %12s\n",
	        kObjects, "object", "bytes each");
	for (const Case &c : kCases) {
		Host host;
		const int64_t before = host.grown();
		for (uint32_t i = 0; i < kObjects; i++)
			c.make(host);
		std::printf("%-32s %12.0f\n", c.name,
		            static_cast<double>(host.grown() - before) / kObjects);
	}
	return 0;
}
