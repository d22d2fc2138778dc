// SPDX-License-Identifier: GPL-2.0-or-later
/* What the requester sends for the card itself: READs and FINs of messages that matched a tag. */
#include "qemu/rnic/card.h"
#include "qemu/rnic/transport/rc_qp.h"
#include "qemu/rnic/transport/requester.h"

namespace tern {

using namespace hw;

void Requester::fetch(const Rendezvous &rendezvous)
{
	rendezvous_.push(rendezvous);
	qp_.card_.port.activate(qp_);
}

/* A FIN waits for its READ, so that the sender keeps the buffer while it might be read again. */
bool Requester::start_rendezvous()
{
	const bool fin = rendezvous_.fin_due();
	if (!fin && !rendezvous_.read_due())
		return false;
	Request r;
	r.rendezvous = true;
	r.opcode = fin ? TERN_OP_SEND : TERN_OP_READ;
	r.index = rendezvous_.next(fin);
	SendWqe &wqe = qp_.card_.scratch_send;
	load(r);
	if (exceeds_limits(wqe))
		return false;
	rendezvous_.start(fin);
	r.status = check_request(r, wqe);
	posted_first_ = true;
	requests_.push_back(r);
	enter(requests_.back(), wqe);
	return true;
}

void Requester::report_rendezvous(const Request &r, tern_hw_cqe_status status, uint32_t placed)
{
	if (r.opcode == TERN_OP_READ) {
		const uint32_t entry = rendezvous_[r.index].entry;
		rendezvous_.end_read();
		qp_.complete_tag(
		        entry,
		        {.opcode = TERN_CQE_TAG_RECV, .flags = TERN_CQE_TAG_DATA, .status = status},
		        placed, false);
	} else if (status == TERN_WC_SUCCESS) {
		rendezvous_.end_fin();
	} else if (status != TERN_WC_WR_FLUSH_ERR) {
		/* No work request of the host could tell of it. */
		qp_.card_.raise_event(TERN_EVENT_QP_FATAL, qp_.number);
	}
}

void Requester::flush_rendezvous()
{
	rendezvous_.clear([this](uint32_t entry) {
		qp_.card_.stats.add(TERN_STAT_RESP_CQE_FLUSHED);
		qp_.complete_tag(entry,
		                 {.opcode = TERN_CQE_TAG_RECV,
		                  .flags = TERN_CQE_TAG_DATA,
		                  .status = TERN_WC_WR_FLUSH_ERR},
		                 0, false);
	});
}

} // namespace tern
