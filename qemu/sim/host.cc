// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/sim/host.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "qemu/rnic/formats/headers.h"
#include "qemu/sim/flow.h"

namespace tern::sim {

using namespace hw;
using fabric::Frame;
using fabric::FramePtr;
using fabric::Port;

namespace {

/* What a card takes from an event to its own next step. What has arrived by then is received
 * together, which spares the processor's cache when there are many cards. */
constexpr uint64_t kCardDelay = 500; /* ns */
constexpr unsigned kBudget = 96;     /* of one run, in units of Sender::transmit() */
/* The number of bytes of each priority that may be queued at the port. The limit is small, because
 * the card's rate control and scheduler no longer affect queued frames. */
constexpr uint64_t kPortQueue = 16384;

constexpr uint32_t kDoorbellPages = 2;
/* Upper bounds of what their rings take. */
constexpr size_t kMemoryOfCard = 256 << 10;
constexpr size_t kMemoryOfQp = 16 << 10;
constexpr size_t kMemoryOfEntry = 512;

constexpr size_t kBthOffset =
        sizeof(headers::Ethernet) + sizeof(headers::Ipv4) + sizeof(headers::Udp);
constexpr uint8_t kOpcodeCnp = 0x81; /* IBA A17.9.3 */

Gid gid_of(const Mac &mac)
{
	return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, mac[3], mac[4], mac[5]}};
}

} // namespace

Host::Host(EventLoop &loop, fabric::Fabric &fabric, unsigned n, size_t queue_entries, size_t qps,
           uint64_t link_rate, const CongestionParameters &congestion)
        : number(n), mac(mac_of_card(n)), gid(gid_of(mac)), loop_(loop), fabric_(fabric),
          memory_(kMemoryOfCard + queue_entries * kMemoryOfEntry + qps * kMemoryOfQp),
          card_({.mac = mac,
                 .vectors = 1,
                 .doorbell_pages = kDoorbellPages,
                 .link_speed_mbps = static_cast<uint32_t>(link_rate / 1'000'000)},
                {memory_, *this, *this, loop}),
          driver_(card_, memory_, [this] {
	          while (card_.run(kBudget)) {
	          }
          })
{
	fabric.add_host(mac, *this, loop);
	card_.set_link(true);
	card_.set_congestion(congestion); /* valid, as the scenario's reader has checked */
	driver_.enable();
	driver_.set_gid(0, TERN_GID_ROCE_V2, gid);
	pd_ = driver_.alloc_pd();
	const auto log_size =
	        static_cast<unsigned>(std::bit_width(std::max<size_t>(queue_entries, 16)));
	cq_ = driver_.create_cq(driver_.create_eq(0, 4), log_size);
	region_ = create_region();
}

uint32_t Host::create_region()
{
	auto command = test::make_command(TERN_AQ_CREATE_MR);
	command.create_mr.length = uint64_t{1} << 32;
	command.create_mr.pages.iova = Memory::kPayload;
	command.create_mr.pdn = pd_;
	command.create_mr.access = test::kAllAccess;
	return driver_.command(command).created.id.get();
}

std::unique_ptr<test::HostQp> Host::create_qp(test::QpOptions options)
{
	options.pd = pd_;
	options.send_cqn = options.recv_cqn = cq_->number;
	return driver_.create_qp(options);
}

void Host::add_flow(uint32_t qpn, Flow &flow)
{
	roles_.resize(std::max<size_t>(roles_.size(), qpn + 1));
	roles_[qpn].flow = &flow;
}

void Host::prefetch() const
{
	__builtin_prefetch(memory_.data(cq_->ring.next()));
	__builtin_prefetch(memory_.data(cq_->record));
	__builtin_prefetch(roles_.data());
}

void Host::wake()
{
	run_at(loop_.now() + kCardDelay);
}

void Host::run_at(uint64_t when)
{
	next_run_ = std::min(next_run_, when);
	schedule();
}

/* Makes sure that there is an event no later than the next run. It adds none if one comes early
 * enough. The card's deadline moves with each packet: an event for each deadline would fill the
 * loop with thousands that have nothing to do. */
void Host::schedule()
{
	if (next_run_ == kNever || (!events_.empty() && events_.back() <= next_run_))
		return;
	events_.push_back(next_run_);
	loop_.at(next_run_, [this] {
		events_.pop_back();
		if (next_run_ > loop_.now())
			return schedule();
		next_run_ = kNever;
		run();
	});
}

void Host::run()
{
	while (!inbox_.empty())
		receive(*inbox_.pop_front());
	for (Destination i = 0; ready_; i++) {
		const auto bit = static_cast<uint8_t>(1u << i);
		if (ready_ & bit)
			card_.wire_ready(i);
		ready_ &= static_cast<uint8_t>(~bit);
	}
	const bool more = card_.run(kBudget);
	poll();
	if (more)
		wake();
	else if (const auto deadline = card_.next_deadline())
		run_at(std::max(*deadline, loop_.now() + 1));
}

void Host::poll()
{
	while (const auto cqe = cq_->poll())
		roles_[cqe->qpn.get() & headers::kMask24].flow->completed(*cqe);
}

bool Host::has_room(uint8_t priority, size_t size)
{
	if (port().queues.bytes(priority) + size <= kPortQueue)
		return true;
	full_ = priority;
	waiting_ |= static_cast<uint8_t>(1u << priority);
	return false;
}

bool Host::transmit(std::span<const std::byte> frame)
{
	const uint8_t priority = fabric::priority_of(frame);
	if (!has_room(priority, frame.size()))
		return false;
	port().send(fabric_.pool().make(frame, priority));
	return true;
}

/* Packets travel without payload and ICRC, which nothing here looks at, but one by one. */
Wire::Lend Host::lend(std::span<const std::byte> head, std::span<const HostRange> payload,
                      uint32_t segment, const Loan & /* loan */)
{
	if (segment)
		return Lend::Refused;
	size_t size = 0;
	for (const HostRange &range : payload)
		size += range.size;
	const uint8_t priority = fabric::priority_of(head);
	if (!has_room(priority, whole_size(head.size(), size)))
		return Lend::Full;
	port().send(fabric_.pool().lend(head, size, priority));
	return Lend::Done;
}

/* Tells the card at its next step that there is room. It must not be called here, because the frame
 * may depart within a call from the card. */
void Host::departed(Port &at, const Frame &frame)
{
	const auto bit = static_cast<uint8_t>(1u << frame.priority);
	if (!(waiting_ & bit) || at.queues.bytes(frame.priority) > kPortQueue / 2)
		return;
	waiting_ &= static_cast<uint8_t>(~bit);
	ready_ |= bit;
	wake();
}

void Host::arrived(Port & /* port */, FramePtr frame)
{
	frame->prefetch_headers();
	inbox_.push_back(std::move(frame));
	wake();
}

void Host::receive(const Frame &frame)
{
	received++;
	count(frame);
	if (frame.has_icrc)
		return card_.receive(frame.bytes());
	const auto payload = Memory::payload(frame.payload);
	card_.receive(frame.bytes(), std::span(&payload, frame.payload ? 1 : 0));
}

/* All cards here send RoCEv2 over IPv4 without tags. */
void Host::count(const Frame &frame)
{
	const auto bytes = frame.bytes();
	if (bytes.size() < kBthOffset + sizeof(headers::Bth) || !is_roce(bytes))
		return;
	const auto *bth = reinterpret_cast<const headers::Bth *>(bytes.data() + kBthOffset);
	const uint32_t qpn = bth->qpn.get() & headers::kMask24;
	if (qpn >= roles_.size())
		return;
	Arrivals &arrivals = roles_[qpn].arrivals;
	const bool cnp = bth->opcode == kOpcodeCnp;
	cnps += cnp;
	if (cnp)
		arrivals.cnps++;
	else
		arrivals.bytes += frame.size;
}

} // namespace tern::sim
