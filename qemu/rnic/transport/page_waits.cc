// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/page_waits.h"

namespace tern {

using namespace hw;

namespace {

tern_hw_fault to_hw(const std::optional<PageFault> &fault)
{
	tern_hw_fault out{};
	if (fault) {
		out.addr = fault->addr;
		out.length = fault->length;
		out.key = fault->key;
		out.write = fault->write;
	}
	return out;
}

} // namespace

bool PageWaits::add(QpSide side, const PageFault &fault)
{
	if (waits(side))
		return false;
	faults_[static_cast<size_t>(side)] = fault;
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
	if (!waits(side) || how == TERN_RESUME_NONE)
		return false;
	forget(side);
	return true;
}

void PageWaits::query(tern_hw_faults &to) const
{
	to.requester = to_hw(fault(QpSide::Requester));
	to.responder = to_hw(fault(QpSide::Responder));
}

} // namespace tern
