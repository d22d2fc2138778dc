/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "qemu/rnic/memory/region.h"
#include "qemu/rnic/transport/qp_side.h"
#include "tern/tern_hw.h"

namespace tern {

/** The page faults that a QP waits for, at most one of each side. One PAGE_FAULT event tells the
 * host of the faults of both sides, and one RESUME_QP resumes both sides. */
class PageWaits {
public:
	bool waits(QpSide side) const { return fault(side).has_value(); }
	/** Has @side wait for the pages of @fault. Returns false if it waits already: it keeps its
	 * first fault, and meets the next one after it resumes. */
	bool add(QpSide side, const PageFault &fault);
	/** Returns true if PAGE_FAULT has to be raised now; it is raised once until resumed(). */
	bool take_event();

	/** The host has sent RESUME_QP: it is to be told of faults that come after it. */
	void resumed() { told_ = false; }
	/** Ends the wait of @side. Returns false if it does not wait, or goes on waiting. */
	bool end(QpSide side, hw::tern_hw_resume how);
	void forget(QpSide side) { faults_[static_cast<size_t>(side)].reset(); }
	void forget() { faults_.fill(std::nullopt); }

	/** QUERY_FAULT. */
	void query(hw::tern_hw_faults &to) const;

private:
	const std::optional<PageFault> &fault(QpSide side) const
	{
		return faults_[static_cast<size_t>(side)];
	}

	std::array<std::optional<PageFault>, 2> faults_; /* indexed by QpSide */
	bool told_ = false;
};

} // namespace tern
