// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests of annex A19: ATOMIC WRITE and FLUSH. */
#include "qemu/rnic/transport/rc_qp.h"
#include "qemu/rnic/transport/responder.h"

namespace tern {

using namespace hw;

/* An 8-byte WRITE that is atomic and is answered like a READ (annex A19). */
Responder::Outcome Responder::execute_atomic_write(const Packet &packet)
{
	const Reth &reth = packet.ext.reth;
	if (!supports(TERN_ACCESS_REMOTE_WRITE) || packet.payload.size() != kAtomicSize ||
	    reth.length != kAtomicSize || reth.va % kAtomicSize ||
	    outstanding_data() >= qp_.attr_.max_dest_rd_atomic)
		return Outcome::InvalidRequest;
	Le<uint64_t> value;
	packet.payload.copy_to(std::as_writable_bytes(std::span(&value, 1)));
	uint64_t original;
	const Access access = data_.memory.atomic_remote(
	        reth.rkey, reth.va, target(packet), original, [&](uint64_t) { return value.get(); },
	        TERN_ACCESS_REMOTE_WRITE);
	if (access == Access::NeedPages)
		return Outcome::NeedPages;
	if (access != Access::Ok)
		return Outcome::AccessError;

	data_.stats.add(TERN_STAT_RESP_WRITES);
	finish_message();
	responses_.push_back(make_empty_read(packet.bth.psn, false));
	++expected_;
	return Outcome::Done;
}

/*
 * Earlier writes are already in memory and globally visible, so only the checks remain. No region
 * can grant persistence.
 */
Responder::Outcome Responder::execute_flush(const Packet &packet)
{
	const auto &[type, level] = packet.ext.feth;
	const Reth &reth = packet.ext.reth;
	const bool whole = level == TERN_FLUSH_MR;
	if (!supports(TERN_ACCESS_FLUSH_GLOBAL) || !type || (type & ~kFlushTypes) ||
	    level > TERN_FLUSH_MR || (!whole && reth.length > kMaxFlushRange) ||
	    outstanding_data() >= qp_.attr_.max_dest_rd_atomic)
		return Outcome::InvalidRequest;
	if ((type & TERN_FLUSH_PERSISTENT) ||
	    data_.memory.check_flush(reth.rkey, reth.va, reth.length, whole, target(packet)) !=
	            Access::Ok)
		return Outcome::AccessError;

	data_.stats.add(TERN_STAT_RESP_FLUSHES);
	finish_message();
	responses_.push_back(make_empty_read(packet.bth.psn, false));
	++expected_;
	return Outcome::Done;
}

/* The response to a READ of zero bytes. */
Responder::Response Responder::make_empty_read(Psn psn, bool duplicate) const
{
	return {.kind = Response::Kind::Read, .duplicate = duplicate, .psn = psn, .msn = msn_};
}

} // namespace tern
