// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/port.h"

#include <algorithm>
#include <cstring>

#include "qemu/rnic/card.h"
#include "qemu/rnic/formats/burst.h"
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

/* The low 15 bits must match and one key must be that of a full member (IBA 10.9.3); ours is. */
bool pkey_matches(const Packet &packet)
{
	return (packet.bth.pkey & 0x7fff) == (kDefaultPkey & 0x7fff);
}

} // namespace

Port::Port(Card &card)
        : steering(kMaxFlows, card.config.base()), ethernet(card), card_(card),
          buffer_(std::make_unique<Buffer>())
{
}

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

void Port::run(unsigned budget)
{
	while (budget && has_work()) {
		deliver_loopback(budget);
		if (ready() && first_)
			transmit_turn(budget);
	}
}

/* One turn for the first QP in the schedule; it moves to the end if it has more. */
void Port::transmit_turn(unsigned &budget)
{
	Qp &qp = *first_;
	const unsigned burst = std::min(budget, kBurst);
	unsigned left = burst;
	remove(qp);
	if (qp.transmit(left))
		activate(qp);
	/* A turn that sent nothing also counts, so that run() ends. */
	budget -= std::max(burst - left, 1u);
}

size_t Port::send(size_t size)
{
	return start(pad(size), false);
}

size_t Port::send_raw(const EthQp &sender, size_t size)
{
	size = pad(size);
	const auto frame = std::span(*buffer_).first(size);
	const bool claimed = steering.takes_from(sender, frame);
	const bool multicast = is_multicast(dmac_of(frame));
	if (claimed && multicast)
		loop_copy(size);
	return start(size, claimed && !multicast);
}

/* Receivers ignore the padding. */
size_t Port::pad(size_t size)
{
	if (size >= kMinEthFrame)
		return size;
	std::memset(buffer_->data() + size, 0, kMinEthFrame - size);
	return kMinEthFrame;
}

size_t Port::start(size_t size, bool back)
{
	loop_back_ = back;
	card_.stats.add(TERN_STAT_TX_FRAMES);
	card_.stats.add(TERN_STAT_TX_BYTES, size);
	if (!try_send(size))
		pending_ = size;
	return size;
}

size_t Port::send_roce(FrameBuilder &frame)
{
	const size_t bare = frame.bare().size();
	if (offer(bare, {}, {0, 1, whole_size(bare, 0)}) == Wire::Lend::Done)
		return whole_size(bare, 0);
	const size_t size = pad(frame.finish().size());
	card_.stats.add(TERN_STAT_ROCE_TX_PACKETS);
	card_.stats.add(TERN_STAT_ROCE_TX_BYTES, size);
	return send(size);
}

Wire::Lend Port::lend(const FrameBuilder &frame, const HostRanges &payload)
{
	const size_t head = frame.head().size();
	return offer(head, payload, {0, 1, whole_size(head, payload.bytes())});
}

Wire::Lend Port::lend_burst(const FrameBuilder &frame, const HostRanges &payload, uint32_t segment)
{
	const size_t head = frame.head().size();
	const size_t size = payload.bytes();
	return offer(head, payload,
	             {segment, segments_of(size, segment),
	              burst_size(frame.opcode(), head, size, segment)});
}

Wire::Lend Port::offer(size_t head, const HostRanges &payload, const Shape &shape)
{
	const auto bytes = std::span(*buffer_).first(head);
	if (is_own(bytes))
		return Wire::Lend::Refused;
	const auto lent = card_.ports.wire.lend(bytes, payload.list(), shape.segment);
	full_ = lent == Wire::Lend::Full;
	if (lent != Wire::Lend::Done)
		return lent;
	lent_ |= !payload.list().empty();
	card_.stats.add(TERN_STAT_TX_FRAMES, shape.packets);
	card_.stats.add(TERN_STAT_TX_BYTES, shape.size);
	card_.stats.add(TERN_STAT_ROCE_TX_PACKETS, shape.packets);
	card_.stats.add(TERN_STAT_ROCE_TX_BYTES, shape.size);
	return lent;
}

void Port::recall()
{
	if (lent_)
		card_.ports.wire.recall();
	lent_ = false;
}

/* Other engines of this card are reached over the wire. */
bool Port::is_own(std::span<const std::byte> frame) const
{
	if (dmac_of(frame) != mac)
		return false;
	const Rnic::Config &config = card_.config;
	if (config.engines == 1)
		return true;
	const uint32_t engine = roce_engine(frame).value_or(0);
	return (engine < config.engines ? engine : 0) == config.engine;
}

bool Port::try_send(size_t size)
{
	const auto frame = std::span(*buffer_).first(size);
	if (!loop_back_ && !is_own(frame))
		return card_.ports.wire.transmit(frame);

	/* To this card itself: received by run(), never within a QP's turn. */
	if (loopback_.size() == kMaxLoopback)
		return false;
	LoopbackFrame loopback(spare_buffer(), size);
	std::swap(loopback.frame, buffer_);
	loopback_.push_back(std::move(loopback));
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
	if (loopback_.size() == kMaxLoopback)
		return;
	LoopbackFrame loopback(spare_buffer(), size);
	std::copy_n(buffer_->begin(), size, loopback.frame->begin());
	loopback_.push_back(std::move(loopback));
}

void Port::wire_ready()
{
	full_ = false;
	resend();
}

void Port::resend()
{
	if (pending_ && try_send(pending_))
		pending_ = 0;
}

void Port::deliver_loopback(unsigned &budget)
{
	while (budget && !loopback_.empty()) {
		LoopbackFrame loopback = std::move(loopback_.front());
		loopback_.pop_front();
		budget--;
		receive(std::span(*loopback.frame).first(loopback.size));
		spare_.push_back(std::move(loopback.frame));
		resend();
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
	else
		ethernet.receive(frame);
}

void Port::receive_roce(std::span<const std::byte> frame)
{
	card_.stats.add(TERN_STAT_ROCE_RX_PACKETS);
	card_.stats.add(TERN_STAT_ROCE_RX_BYTES, frame.size());

	const auto parsed = parse(frame);
	if (const auto *packet = std::get_if<Packet>(&parsed))
		admit(*packet);
	else
		count_error(std::get<ParseError>(parsed));
}

void Port::receive(std::span<const std::byte> head, const Payload &payload, uint32_t segment)
{
	const auto parsed = parse_lent(head, payload, segment);
	const auto *packet = std::get_if<Packet>(&parsed);
	if (packet && (!takes_roce(packet->path.dmac) || steering.has_sniffers())) {
		receive_whole(*packet, head, payload);
		return;
	}
	const bool burst = packet && segment;
	const uint32_t packets = burst ? packets_in(*packet) : 1;
	const size_t size =
	        burst ? burst_size(packet->bth.opcode, head.size(), payload.size(), segment)
	              : whole_size(head.size(), payload.size());
	card_.stats.add(TERN_STAT_RX_FRAMES, packets);
	card_.stats.add(TERN_STAT_RX_BYTES, size);
	card_.stats.add(TERN_STAT_ROCE_RX_PACKETS, packets);
	card_.stats.add(TERN_STAT_ROCE_RX_BYTES, size);
	if (burst)
		admit_burst(*packet);
	else if (packet)
		admit(*packet);
	else
		count_error(std::get<ParseError>(parsed));
}

/* Flows and sniffers take whole frames. */
void Port::receive_whole(const Packet &packet, std::span<const std::byte> head,
                         const Payload &payload)
{
	auto buffer = spare_buffer();
	if (!packet.segment)
		receive(make_whole(packet, head, payload, *buffer));
	else
		for (uint32_t i = 0; i < packets_in(packet); i++)
			receive(make_whole(packet, i, head, *buffer));
	spare_.push_back(std::move(buffer));
}

void Port::count_error(ParseError error)
{
	card_.stats.add(error == ParseError::Malformed ? TERN_STAT_RX_MALFORMED
	                : error == ParseError::BadIcrc ? TERN_STAT_RX_BAD_ICRC
	                                               : TERN_STAT_RX_BAD_OPCODE);
}

void Port::admit(const Packet &packet)
{
	if (!pkey_matches(packet)) {
		card_.stats.add(TERN_STAT_RX_BAD_PKEY);
		return;
	}
	deliver(packet);
}

/* Delivers a burst as a unit if possible, and otherwise packet by packet, so that errors apply to
 * the right packet. */
void Port::admit_burst(const Packet &burst)
{
	Qp *qp = card_.qps.find(burst.bth.dest_qpn);
	uint32_t done = 0;
	if (qp && pkey_matches(burst) && !burst.path.dgid.is_multicast())
		done = qp->deliver_burst(burst);
	for (uint32_t i = done; i < packets_in(burst); i++)
		admit(packet_of(burst, i));
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
