/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>

#include "tern/tern_hw.h"

namespace tern {

/**
 * The card calls an observer at rare events, and at those that explain why a QP hangs. The embedder
 * overrides the functions for the events that it needs. The card calls them from the thread that
 * called the card, and they must not call back into it.
 */
class Observer {
public:
	virtual ~Observer() = default;

	virtual void command_started(uint16_t /*opcode*/, uint16_t /*id*/) {}
	/** @field: with BAD_FIELD, the offset in the command of the field that was refused. */
	virtual void command_done(uint16_t /*opcode*/, uint16_t /*id*/, hw::tern_hw_aq_status,
	                          uint16_t /*field*/)
	{
	}
	virtual void state_changed(uint32_t /*qpn*/, hw::tern_hw_qp_state /*from*/,
	                           hw::tern_hw_qp_state /*to*/)
	{
	}
	/** @syndrome: of the AETH of a NAK or RNR NAK. */
	virtual void nak_queued(uint32_t /*qpn*/, uint32_t /*psn*/, uint8_t /*syndrome*/) {}
	virtual void nak_received(uint32_t /*qpn*/, uint32_t /*psn*/, uint8_t /*syndrome*/) {}
	/** The requester goes back to @psn; @left retries remain. */
	virtual void retried(uint32_t /*qpn*/, uint32_t /*psn*/, uint8_t /*left*/) {}
	/** No acknowledgement of @psn has come in time. */
	virtual void timed_out(uint32_t /*qpn*/, uint32_t /*psn*/) {}
	/** Counted as @reason. @qpn: 0 if the frame is for none. */
	virtual void dropped(hw::tern_hw_stat /*reason*/, uint32_t /*qpn*/) {}
	/** Falsifier has changed an entry of the ring that @ring and @number name, at @offset. */
	virtual void falsified(const char * /*ring*/, uint32_t /*number*/, size_t /*offset*/) {}
	/** The host is to provide these pages. */
	virtual void page_fault(uint32_t /*qpn*/, uint32_t /*key*/, uint64_t /*addr*/,
	                        uint32_t /*length*/)
	{
	}
};

/** For cards that nobody observes. */
inline Observer no_observer;

} // namespace tern
