// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/pager.h"

#include <algorithm>

#include "tests/sim/area.h"

namespace tern::sim {

using namespace hw;

Pager::Pager(Node &node, Rng rng, Fail fail) : node_(node), rng_(rng), fail_(std::move(fail)) {}

void Pager::on_fault(uint32_t qpn)
{
	const uint64_t delay = rng_.chance(1, 20) ? rng_.below(5'000'000) : rng_.below(100'000);
	node_.loop.after(delay, [this, alive = alive_, qpn] {
		if (*alive)
			resolve(qpn);
	});
}

/* The QP, and the card with it, may be gone by now. */
void Pager::resolve(uint32_t qpn)
{
	auto query = test::make_command(TERN_AQ_QUERY_FAULT);
	query.object.id = qpn;
	const auto result = node_.driver.command(query);
	if (result.status != TERN_AQ_OK)
		return;
	auto resume = test::make_command(TERN_AQ_RESUME_QP);
	resume.resume_qp.qpn = qpn;
	resume.resume_qp.requester = static_cast<uint8_t>(bring(result.faults.requester));
	resume.resume_qp.responder = static_cast<uint8_t>(bring(result.faults.responder));
	if (node_.driver.status_of(resume) != TERN_AQ_OK)
		fail_("RESUME_QP failed");
	node_.wake();
}

/* Of a region that has gone the card finds that out by itself. */
tern_hw_resume Pager::bring(const tern_hw_fault &fault)
{
	const uint64_t length = fault.length.get();
	if (!length)
		return TERN_RESUME_NONE;
	const auto found = std::ranges::find_if(
	        node_.on_demand, [&](const Area *a) { return a->mr.key == fault.key.get(); });
	if (found == node_.on_demand.end())
		return TERN_RESUME_RETRY;

	test::HostMr &mr = (*found)->mr;
	const uint64_t offset = fault.addr.get() - mr.va;
	if (fault.addr.get() < mr.va || offset + length > mr.size) {
		fail_("a page fault outside of its region");
		return TERN_RESUME_FAIL;
	}
	uint64_t leaf = mr.buffer.leaf_of(mr.first + offset);
	const uint64_t last = mr.buffer.leaf_of(mr.first + offset + length - 1);
	const uint64_t end = rng_.chance(1, 2) ? last : leaf;
	for (; leaf <= end; leaf++)
		mr.buffer.bring(leaf, fault.write || rng_.chance(1, 2));
	return TERN_RESUME_RETRY;
}

void Pager::act()
{
	if (node_.on_demand.empty() || !rng_.chance(1, 3))
		return;
	Area &area = *node_.on_demand[rng_.below(node_.on_demand.size())];
	const uint64_t leaf = rng_.below(area.mr.buffer.leaves());
	area.mr.buffer.take_away(leaf);
	auto sync = test::make_command(TERN_AQ_SYNC_MR);
	sync.object.id = area.mr.key;
	const auto expected = area.registered ? TERN_AQ_OK : TERN_AQ_BAD_OBJECT;
	if (node_.driver.status_of(sync) != expected)
		fail_("SYNC_MR did not end as it must");
	if (rng_.chance(1, 2))
		area.mr.buffer.move(leaf);
}

} // namespace tern::sim
