// SPDX-License-Identifier: GPL-2.0-or-later
/* The state of queues as text. Indices are those last read from the host's records. */
#include "qemu/rnic/json.h"
#include "qemu/rnic/queues/completion_queue.h"
#include "qemu/rnic/queues/event_queue.h"
#include "qemu/rnic/queues/shared_recv_queue.h"

namespace tern {

void EventQueue::describe(Json &to) const
{
	to.number("vector", vector_);
	to.number("entries", 1u << log_size_);
	to.number("pi", pi_);
	to.number("ci", ci_);
	to.flag("armed", armed_);
	to.number("without_room", waiting_.size());
}

void CompletionQueue::describe(Json &to) const
{
	to.number("eqn", eqn_);
	to.number("entries", place_.entries());
	to.number("pi", pi_);
	to.number("ci", ci_);
	to.text("armed", armed_ == Armed::Any         ? "any"
	                 : armed_ == Armed::Solicited ? "solicited"
	                                              : "no");
	to.number("moderated", waiting_);
	to.flag("failed", failed_);
}

void SharedRecvQueue::describe(Json &to) const
{
	to.number("entries", entries());
	to.number("posted", pi_ - head_);
	to.number("limit", limit);
	to.number("users", users);
	to.flag("failed", failed_);
}

} // namespace tern
