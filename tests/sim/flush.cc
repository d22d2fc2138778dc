// SPDX-License-Identifier: GPL-2.0-or-later
/* FLUSH between two ends: what was written before must be there when it completes. */
#include <algorithm>

#include "tests/sim/endpoint.h"

namespace tern::sim {

using namespace hw;
using test::SendRequest;

/* A WRITE to where nothing was written before, so that it can be looked at any time later. */
void Endpoint::plan_flush()
{
	Area &to = peer->flushed_;
	const auto length = std::min<uint32_t>(random_length(), 4096);
	if (to.used + length > to.model.size())
		return plan_read();
	SendRequest write;
	write.opcode = TERN_OP_WRITE;
	write.flags = 0;
	write.remote_addr = to.mr.va + to.used;
	write.rkey = to.mr.key;
	write.sges = pieces(source_, length, 2);
	const auto data = gather(source_, write.sges);
	std::ranges::copy(data, to.model.begin() + static_cast<ptrdiff_t>(to.used));
	to.used += length;

	SendRequest flush;
	const bool whole = rng_.chance(1, 3);
	const uint64_t from = rng_.below(to.used + 1);
	flush.opcode = TERN_OP_FLUSH;
	flush.flags = TERN_WQE_SIGNALED;
	flush.remote_addr = whole ? rng_.next() : to.mr.va + from;
	flush.rkey = to.mr.key;
	flush.flush.emplace();
	flush.flush->length = static_cast<uint32_t>(whole ? rng_.below(1u << 31) : to.used - from);
	flush.flush->type = TERN_FLUSH_GLOBAL;
	flush.flush->level = whole ? TERN_FLUSH_MR : TERN_FLUSH_RANGE;
	push(std::move(write), length);
	push(std::move(flush), 0);
	plan_.back().flushed = to.used;
}

void Endpoint::flushed(uint64_t bytes) const
{
	const Area &area = peer->flushed_;
	if (!std::ranges::equal(area.mr.read(0, bytes), std::span(area.model).first(bytes)))
		failure("what was flushed is not there");
}

} // namespace tern::sim
