/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/engine/engine.h"
#include "qemu/rnic/environment.h"
#include "qemu/rnic/observer.h"

namespace tern {

/** Makes lines of what an engine and its card do, for those of QEMU's trace events that are
 * enabled. */
class Tracer final : public Observer {
public:
	Tracer(const tern_engine_ops &ops, void *opaque, uint32_t engine)
	        : ops_(ops), opaque_(opaque), engine_(engine)
	{
	}

	void register_read(uint32_t offset, uint32_t value);
	void register_write(uint32_t offset, uint32_t value);
	void doorbell(uint32_t page, uint32_t offset, uint64_t value);
	void lent(const Loan &loan, std::span<const HostRange> payload, uint32_t segment,
	          Wire::Lend result);
	void recalled(const Recall &what, uint64_t revoked);

	void command_started(uint16_t opcode, uint16_t id) override;
	void command_done(uint16_t opcode, uint16_t id, hw::tern_hw_aq_status status,
	                  uint16_t field) override;
	void state_changed(uint32_t qpn, hw::tern_hw_qp_state from,
	                   hw::tern_hw_qp_state to) override;
	void nak_queued(uint32_t qpn, uint32_t psn, uint8_t syndrome) override;
	void nak_received(uint32_t qpn, uint32_t psn, uint8_t syndrome) override;
	void retried(uint32_t qpn, uint32_t psn, uint8_t left) override;
	void timed_out(uint32_t qpn, uint32_t psn) override;
	void dropped(hw::tern_hw_stat reason, uint32_t qpn) override;
	void falsified(const char *ring, uint32_t number, size_t offset) override;
	void page_fault(uint32_t qpn, uint32_t key, uint64_t addr, uint32_t length) override;

private:
	enum Event : uint8_t;

	[[gnu::format(printf, 3, 4)]] void print(Event event, const char *format, ...);

	const tern_engine_ops &ops_;
	void *const opaque_;
	const uint32_t engine_;
};

} // namespace tern
