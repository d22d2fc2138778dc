/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "qemu/rnic/memory/region.h"
#include "qemu/rnic/transport/qp_side.h"
#include "tern/tern_hw.h"

namespace tern {

/** The page faults that end when the host has resumed the QP, at most one of each side. One event
 * tells the host of both, and it resumes both. */
class PageWaits {
public:
	bool waits(QpSide side) const { return fault(side).has_value(); }
	/** A side that waits already keeps its first fault: it meets the next one after it
	 * resumes. Returns whether it waited for none. */
	bool add(QpSide side, const PageFault &fault);
	/** Returns true if the host has to be told, and takes it for told until resumed(). */
	bool take_event();

	/** RESUME_QP has come for both sides. */
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
