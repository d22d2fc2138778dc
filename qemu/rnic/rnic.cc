// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/rnic.h"

#include <algorithm>

#include "qemu/rnic/card.h"
#include "qemu/rnic/control/describe.h"
#include "qemu/rnic/control/registers.h"

namespace tern {

using namespace hw;

namespace {
/* While packets are to be sent, what else there is to do gets this part of their budget: timers,
 * flushes and tag operations, and admin commands one each. */
constexpr unsigned kShare = 8;
} // namespace

Rnic::Rnic(const Config &config, const Ports &ports)
        : card_(std::make_unique<Card>(config, ports, false))
{
}

Rnic::~Rnic() = default;

void Rnic::reset()
{
	recall();
	const auto fatal = card_->fatal != TERN_FATAL_NONE ? card_->fatal : card_->last_fatal;
	card_ = std::make_unique<Card>(card_->config, card_->ports, card_->link_up);
	card_->last_fatal = fatal;
}

bool Rnic::works() const
{
	return card_->enabled && card_->fatal == TERN_FATAL_NONE;
}

uint32_t Rnic::read_register(uint32_t offset) const
{
	return tern::read_register(*card_, offset);
}

bool Rnic::write_register(uint32_t offset, uint32_t value)
{
	if (tern::write_register(*card_, offset, value) != RegisterWrite::Reset)
		return false;
	reset();
	return true;
}

void Rnic::doorbell(uint32_t page, uint32_t offset, uint64_t value)
{
	if (works())
		tern::doorbell(*card_, page, offset, value);
}

void Rnic::receive(std::span<const std::byte> frame)
{
	if (works())
		card_->port.receive(frame);
}

void Rnic::receive(std::span<const std::byte> head,
                   std::span<const std::span<const std::byte>> payload, uint32_t segment)
{
	if (works())
		card_->port.receive(head, Payload(payload), segment);
}

void Rnic::recall()
{
	card_->out.recall(Recall::everything());
}

void Rnic::lost(uint32_t packets)
{
	card_->stats.add(TERN_STAT_RX_REVOKED, packets);
	card_->ports.observer.dropped(TERN_STAT_RX_REVOKED, 0);
}

void Rnic::wire_ready(Wire::Destination destination)
{
	card_->scheduler.unpark(destination);
}

void Rnic::set_link(bool up)
{
	if (card_->link_up == up)
		return;
	card_->link_up = up;
	if (works())
		card_->raise_event(TERN_EVENT_LINK, 0);
}

bool Rnic::set_congestion(const CongestionParameters &parameters)
{
	return card_->set_congestion(parameters);
}

bool Rnic::fail_qp(uint32_t qpn)
{
	Qp *qp = card_->qps.find(qpn);
	return works() && qp && qp->inject_error();
}

bool Rnic::slow_qp(uint32_t qpn, uint32_t rate)
{
	Qp *qp = card_->qps.find(qpn);
	if (qp)
		qp->inject_rate(rate);
	return qp != nullptr;
}

void Rnic::hold_commands(bool hold, uint32_t answers)
{
	card_->admin.hold(hold, answers);
}

void Rnic::refuse_command(uint32_t nth)
{
	card_->admin.refuse(nth);
}

void Rnic::falsify(uint32_t every, uint32_t seed)
{
	card_->falsifier.start(every, seed);
}

bool Rnic::run(unsigned budget)
{
	if (!works())
		return false;
	const unsigned share =
	        card_->port.has_work() ? std::max(budget / kShare, 1u) : std::max(budget, 1u);
	const bool timers = card_->run_timers(card_->ports.clock.now(), share);
	/* Commands after packets: a host that posts work and then resizes its CQ finds the
	 * completions of that work there. */
	card_->port.run(budget);
	card_->chores.run(share);
	const bool commands = card_->admin.run(share);
	return timers || commands || !card_->chores.empty() || card_->port.has_work();
}

std::optional<uint64_t> Rnic::next_deadline() const
{
	if (!works())
		return std::nullopt;
	return card_->timers.next();
}

std::string Rnic::describe(std::optional<uint32_t> qpn, size_t most) const
{
	return tern::describe(*card_, qpn, most);
}

} // namespace tern
