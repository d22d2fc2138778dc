/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "qemu/rnic/memory/region.h"
#include "qemu/rnic/transport/qp_side.h"
#include "tern/tern_hw.h"

namespace tern {

/**
 * Holds the page faults that a QP waits for, at most one of each side. One PAGE_FAULT event
 * announces the faults of both sides to the host, and one RESUME_QP answers them.
 *
 * The host may take its time between QUERY_FAULT and RESUME_QP, and the QP may be reset and wait
 * for other pages meanwhile. So RESUME_QP answers only the faults that QUERY_FAULT has reported.
 */
class PageWaits {
public:
	bool waits(QpSide side) const { return wait(side).has_value(); }
	/** Has @side wait for the pages of @fault. Returns false if it waits already: it keeps its
	 * first fault, and meets the next one after it resumes. */
	bool add(QpSide side, const PageFault &fault);
	/** Returns true if PAGE_FAULT has to be raised now; it is raised once until resumed(), also
	 * if the faults are forgotten meanwhile: the host owes an answer to the first event. */
	bool take_event();

	/** The host has sent RESUME_QP: it is to be told of faults that come after it. */
	void resumed() { told_ = reported_ = false; }
	/** Ends the wait of @side as RESUME_QP says. Returns false if @side does not wait, or if it
	 * goes on waiting because QUERY_FAULT has not reported its fault. */
	bool end(QpSide side, hw::tern_hw_resume how);
	void forget(QpSide side) { waits_[static_cast<size_t>(side)].reset(); }
	void forget() { waits_.fill(std::nullopt); }

	/** What each side waits for. */
	void query(hw::tern_hw_faults &to) const;
	/** QUERY_FAULT has reported the present faults to the host. Only the first QUERY_FAULT
	 * after an event counts: a later one may come from a tool that lists QPs, while the driver
	 * still brings the pages that the first one has reported. */
	void set_reported();

private:
	struct Wait {
		PageFault fault;
		bool reported = false;
	};

	const std::optional<Wait> &wait(QpSide side) const
	{
		return waits_[static_cast<size_t>(side)];
	}

	std::array<std::optional<Wait>, 2> waits_; /* indexed by QpSide */
	bool told_ = false;                        /* PAGE_FAULT was raised, and not answered yet */
	bool reported_ = false;                    /* QUERY_FAULT came after that event */
};

} // namespace tern
