// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/port.h"

#include <algorithm>
#include <cstring>

#include "qemu/rnic/card.h"
#include "qemu/rnic/port/eth_qp.h"

namespace tern {

using namespace hw;

namespace {

Mac dmac_of(std::span<const std::byte> frame)
{
	Mac mac;
	std::memcpy(mac.data(), frame.data(), mac.size());
	return mac;
}

bool is_multicast(const Mac &mac)
{
	return mac[0] & 1;
}

constexpr Mac kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr size_t kEthHeader = 14;
constexpr size_t kMinFrame =
        60; /* without FCS (IEEE 802.3); RoCE and Ethernet receivers ignore the pad */

} // namespace

Port::Port(Card &card) : card_(card), buffer_(std::make_unique<Buffer>()) {}

void Port::activate(Qp &qp)
{
	if (qp.active)
		return;
	qp.active = true;
	qp.active_prev = last_;
	qp.active_next = nullptr;
	(last_ ? last_->active_next : first_) = &qp;
	last_ = &qp;
}

void Port::remove(Qp &qp)
{
	if (!qp.active)
		return;
	(qp.active_prev ? qp.active_prev->active_next : first_) = qp.active_next;
	(qp.active_next ? qp.active_next->active_prev : last_) = qp.active_prev;
	qp.active = false;
}

bool Port::run(unsigned budget)
{
	while (budget && (!looped_.empty() || (ready() && first_))) {
		deliver_looped(budget);
		if (ready() && first_)
			transmit_turn(budget);
	}
	return !looped_.empty() || (ready() && first_);
}

/* One turn for the QP at the head of the list; it goes to the end when it has more. */
void Port::transmit_turn(unsigned &budget)
{
	Qp &qp = *first_;
	const unsigned burst = std::min(budget, kBurst);
	unsigned left = burst;
	remove(qp);
	if (qp.transmit(left))
		activate(qp);
	/* A turn that sent nothing counts too, so that run() ends. */
	budget -= std::max(burst - left, 1u);
}

void Port::send(size_t size)
{
	start(pad(size), false);
}

void Port::send_raw(const EthQp &sender, size_t size)
{
	size = pad(size);
	const auto frame = std::span(*buffer_).first(size);
	const bool claimed = steering.takes_from(sender, frame);
	const bool multicast = is_multicast(dmac_of(frame));
	if (claimed && multicast)
		loop_copy(size);
	start(size, claimed && !multicast);
}

size_t Port::pad(size_t size)
{
	if (size >= kMinFrame)
		return size;
	std::memset(buffer_->data() + size, 0, kMinFrame - size);
	return kMinFrame;
}

void Port::start(size_t size, bool back)
{
	back_ = back;
	card_.stats.add(TERN_STAT_TX_FRAMES);
	card_.stats.add(TERN_STAT_TX_BYTES, size);
	if (!try_send(size))
		pending_ = size;
}

void Port::send_roce(size_t size)
{
	card_.stats.add(TERN_STAT_ROCE_TX_PACKETS);
	card_.stats.add(TERN_STAT_ROCE_TX_BYTES, size);
	send(size);
}

bool Port::try_send(size_t size)
{
	const auto frame = std::span(*buffer_).first(size);
	if (!back_ && dmac_of(frame) != mac)
		return card_.ports.wire.transmit(frame);

	/* To ourselves: delivered from run(), never from within a QP's turn. */
	if (looped_.size() == kMaxLooped)
		return false;
	Looped looped(spare_buffer(), size);
	std::swap(looped.frame, buffer_);
	looped_.push_back(std::move(looped));
	return true;
}

std::unique_ptr<Port::Buffer> Port::spare_buffer()
{
	if (spare_.empty())
		return std::make_unique<Buffer>();
	auto spare = std::move(spare_.front());
	spare_.pop_front();
	return spare;
}

void Port::loop_multicast(size_t size)
{
	if (groups.listens(dmac_of(*buffer_)))
		loop_copy(size);
}

void Port::loop_copy(size_t size)
{
	if (looped_.size() == kMaxLooped)
		return;
	Looped looped(spare_buffer(), size);
	std::copy_n(buffer_->begin(), size, looped.frame->begin());
	looped_.push_back(std::move(looped));
}

void Port::wire_ready()
{
	if (pending_ && try_send(pending_))
		pending_ = 0;
}

void Port::deliver_looped(unsigned &budget)
{
	while (budget && !looped_.empty()) {
		Looped looped = std::move(looped_.front());
		looped_.pop_front();
		budget--;
		receive(std::span(*looped.frame).first(looped.size));
		spare_.push_back(std::move(looped.frame));
		wire_ready();
	}
}

bool Port::accepts(const Mac &dmac) const
{
	if (dmac == mac || dmac == kBroadcast)
		return true;
	return (rx_mode & TERN_ETH_PROMISC) ||
	       (is_multicast(dmac) && (rx_mode & TERN_ETH_ALLMULTI));
}

void Port::receive(std::span<const std::byte> frame)
{
	if (frame.size() < kEthHeader || frame.size() > kMaxEthFrame) {
		card_.stats.add(TERN_STAT_RX_MALFORMED);
		return;
	}
	card_.stats.add(TERN_STAT_RX_FRAMES);
	card_.stats.add(TERN_STAT_RX_BYTES, frame.size());

	steering.sniff(frame);
	const Mac dmac = dmac_of(frame);
	const bool roce = is_roce(frame);
	if (roce && takes_roce(dmac))
		receive_roce(frame);
	else if (FrameSink *sink = steering.receiver(frame))
		sink->receive(frame);
	else if (roce || !accepts(dmac))
		card_.stats.add(TERN_STAT_RX_FILTERED);
	else if (ethernet)
		ethernet->receive(frame);
	else
		card_.stats.add(TERN_STAT_ETH_RX_NO_BUFFER);
}

void Port::receive_roce(std::span<const std::byte> frame)
{
	card_.stats.add(TERN_STAT_ROCE_RX_PACKETS);
	card_.stats.add(TERN_STAT_ROCE_RX_BYTES, frame.size());

	const auto parsed = parse(frame);
	if (const auto *error = std::get_if<ParseError>(&parsed)) {
		card_.stats.add(*error == ParseError::Malformed ? TERN_STAT_RX_MALFORMED
		                : *error == ParseError::BadIcrc ? TERN_STAT_RX_BAD_ICRC
		                                                : TERN_STAT_RX_BAD_OPCODE);
		return;
	}
	const Packet &packet = std::get<Packet>(parsed);

	/* Both keys must have the same low 15 bits, and one of them be a full member's
	 * (IBA 10.9.3); ours is. */
	if ((packet.bth.pkey & 0x7fff) != (kDefaultPkey & 0x7fff)) {
		card_.stats.add(TERN_STAT_RX_BAD_PKEY);
		return;
	}
	deliver(packet);
}

void Port::deliver(const Packet &packet)
{
	if (packet.bth.dest_qpn != kMulticastQpn) {
		Qp *qp = card_.qps.find(packet.bth.dest_qpn);
		if (!qp || packet.path.dgid.is_multicast() || !qp->deliver(packet))
			card_.stats.add(TERN_STAT_RX_NO_QP);
		return;
	}
	const auto members = groups.members(packet.path.dgid);
	if (members.empty())
		card_.stats.add(TERN_STAT_RX_NO_QP);
	for (const uint32_t qpn : members)
		card_.qps.find(qpn)->deliver(packet);
}

} // namespace tern
