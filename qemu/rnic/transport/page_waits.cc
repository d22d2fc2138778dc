// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/page_waits.h"

#include <utility>

namespace tern {

using namespace hw;

namespace {

tern_hw_fault to_hw(const PageFault &fault)
{
	tern_hw_fault out{};
	out.addr = fault.addr;
	out.length = fault.length;
	out.key = fault.key;
	out.write = fault.write;
	return out;
}

} // namespace

bool PageWaits::add(QpSide side, const PageFault &fault)
{
	if (waits(side))
		return false;
	waits_[static_cast<size_t>(side)] = Wait{fault};
	return true;
}

bool PageWaits::take_event()
{
	if (told_ || (!waits(QpSide::Requester) && !waits(QpSide::Responder)))
		return false;
	told_ = true;
	return true;
}

bool PageWaits::end(QpSide side, tern_hw_resume how)
{
	if (!waits(side) || !wait(side)->reported || how == TERN_RESUME_NONE)
		return false;
	forget(side);
	return true;
}

void PageWaits::query(tern_hw_faults &to) const
{
	to = {};
	if (waits(QpSide::Requester))
		to.requester = to_hw(wait(QpSide::Requester)->fault);
	if (waits(QpSide::Responder))
		to.responder = to_hw(wait(QpSide::Responder)->fault);
}

void PageWaits::set_reported()
{
	if (!told_ || std::exchange(reported_, true))
		return;
	for (auto &wait : waits_)
		if (wait)
			wait->reported = true;
}

} // namespace tern
