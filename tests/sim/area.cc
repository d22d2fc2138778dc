// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/area.h"

#include <algorithm>
#include <sstream>

namespace tern::sim {

using test::Layout;

namespace {

constexpr uint64_t kWord = 8;

/* Whatever reaches @size bytes that begin in the first page. */
Layout random_layout(Rng &rng, uint64_t size)
{
	constexpr unsigned kShifts[] = {12, 12, 13, 16, 21};
	for (;;) {
		const auto levels = static_cast<unsigned>(rng.below(4));
		const unsigned shift = kShifts[rng.below(std::size(kShifts))];
		if (levels == 0 || size + (1ull << shift) <= 1ull << (levels * 9 + shift))
			return {levels, shift};
	}
}

/* Small pages, so that there are many to come and go. */
Layout random_paging(Rng &rng, uint64_t size)
{
	for (;;) {
		const auto levels = static_cast<unsigned>(rng.between(1, 4));
		const unsigned shift = rng.chance(1, 4) ? 16 : 12;
		if (size + (1ull << shift) <= 1ull << (levels * 9 + shift))
			return {levels, shift, true};
	}
}

test::HostMr random_mr(test::Driver &driver, Rng &rng, uint32_t pd, uint64_t size, uint8_t access,
                       bool on_demand)
{
	/* Anywhere in 47 bits, at multiples of 8 for the sake of atomics. */
	const uint64_t va = rng.below(1ull << 46) / kWord * kWord;
	if (on_demand)
		return driver.create_mr(pd, va, size, access, random_paging(rng, size));
	/* Of a region that windows are bound to, others use the page list. */
	if (size <= driver.device_room() && !(access & TERN_ACCESS_MW_BIND) && rng.chance(1, 4))
		return driver.create_device_mr(pd, va, size, access);
	return driver.create_mr(pd, va, size, access, random_layout(rng, size));
}

} // namespace

Area::Area(Node &node, Rng &rng, uint32_t pd, uint64_t size, uint8_t access, bool random,
           bool may_page)
        : Area(node, rng, pd, size, access, random, Paging{may_page && rng.chance(1, 3)})
{
}

Area::Area(Node &node, Rng &rng, uint32_t pd, uint64_t size, uint8_t access, bool random,
           Paging paging)
        : mr(random_mr(node.driver, rng, pd, size, access, paging.on_demand)), model(size),
          node_(node)
{
	if (paging.on_demand)
		node.on_demand.push_back(this);
	if (random) {
		rng.fill(model);
		mr.write(0, model);
	}
}

Area::~Area()
{
	std::erase(node_.on_demand, this);
}

std::string Area::differs(const char *name) const
{
	const auto actual = mr.read(0, model.size());
	if (actual == model)
		return {};
	const auto at = std::ranges::mismatch(actual, model).in1 - actual.begin();
	std::ostringstream out;
	out << name << " differs from byte " << at << " of " << model.size()
	    << " on: " << std::to_integer<int>(actual[static_cast<size_t>(at)]) << " instead of "
	    << std::to_integer<int>(model[static_cast<size_t>(at)]);
	return out.str();
}

} // namespace tern::sim
