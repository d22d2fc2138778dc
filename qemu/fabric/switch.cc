// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/switch.h"

#include <algorithm>
#include <utility>

#include "qemu/rnic/formats/link_addresses.h"

namespace tern::fabric {

namespace {
constexpr size_t kMacSize = 6;
constexpr size_t kEthernetHeader = 14;
} // namespace

uint64_t mac_at(std::span<const std::byte> frame, size_t offset)
{
	uint64_t mac = 0;
	for (const std::byte byte : frame.subspan(offset, kMacSize))
		mac = mac << 8 | std::to_integer<uint64_t>(byte);
	return mac;
}

Port &Switch::add_port(const LinkConfig &link)
{
	PortOwner &owner = *this;
	const auto port_number = static_cast<uint16_t>(ports_.size());
	ports_.push_back(
	        std::make_unique<SwitchPort>(loop_, pool_, owner, port_number, config_, link));
	Port &port = ports_.back()->port;
	if (config_.pfc.watchdog)
		port.guard_against_storms(config_.pfc.lossless, config_.pfc.watchdog);
	return port;
}

void Switch::set_routes(std::vector<std::vector<uint16_t>> next_hops)
{
	next_hops_ = std::move(next_hops);
	learned_.clear();
	for (const auto &each : ports_)
		each->learned.clear();
}

Switch::Stats Switch::stats() const
{
	Stats stats = stats_;
	for (const auto &each : ports_)
		stats.pfc_dropped += each->ingress.dropped();
	return stats;
}

void Switch::arrived(Port &port, FramePtr frame)
{
	if (frame->stored < kEthernetHeader) {
		stats_.filtered++;
		return;
	}
	const uint64_t destination = mac_at(frame->bytes(), 0);
	if (stays_on_link(destination)) {
		stats_.filtered++;
		return;
	}
	frame->ingress = port.number;
	frame->priority = priority_of(frame->bytes());
	const auto location = locations_.find(destination);
	if (location != locations_.end() && location->second.switch_number == number)
		ports_[location->second.port]->port.prefetch();
	learn(*frame);
	if (location != locations_.end())
		return route(std::move(frame), location->second);
	const auto heard = learned_.find(destination);
	if (heard == learned_.end())
		return flood(std::move(frame));
	if (heard->second == frame->ingress)
		stats_.filtered++;
	else
		queue(std::move(frame), heard->second);
}

/* Learns the source address of @frame, but only from links of the spanning tree, because frames to
 * learned addresses must not loop. */
void Switch::learn(const Frame &frame)
{
	const uint64_t source = mac_at(frame.bytes(), kMacSize);
	if (source & kGroupBit || locations_.contains(source) || !ports_[frame.ingress]->in_tree)
		return;
	const auto [known, is_new] = learned_.try_emplace(source, frame.ingress);
	if (!is_new && known->second == frame.ingress)
		return;
	if (!is_new)
		ports_[known->second]->learned.remove(source);
	known->second = frame.ingress;
	if (const auto oldest = ports_[frame.ingress]->learned.add(source))
		learned_.erase(*oldest);
}

/* Drops a frame that came from a next hop to its destination: the destination has moved since, or a
 * link has failed. If two switches sent such frames back to each other, their lossless queues could
 * wait for each other for ever. */
void Switch::route(FramePtr frame, const Location &to)
{
	if (to.switch_number == number) {
		if (to.port == frame->ingress)
			stats_.filtered++;
		else
			queue(std::move(frame), to.port);
		return;
	}
	const auto &ports = next_hops_[to.switch_number];
	if (ports.empty()) {
		stats_.unreachable++;
		return;
	}
	if (std::ranges::find(ports, frame->ingress) != ports.end()) {
		stats_.filtered++;
		return;
	}
	if (ports.size() == 1)
		return queue(std::move(frame), ports[0]);
	/* Switches have different seeds, so that the next switch distributes flows over several
	 * ports which this switch sends to the same port. */
	const uint16_t out = ports[flow_hash(frame->bytes(), number) % ports.size()];
	queue(std::move(frame), out);
}

void Switch::flood(FramePtr frame)
{
	if (!ports_[frame->ingress]->in_tree) {
		stats_.filtered++;
		return;
	}
	stats_.flooded++;
	const auto takes = [&](const auto &each) {
		return each->in_tree && each->port.number != frame->ingress;
	};
	if (!admit(*frame, static_cast<uint32_t>(std::ranges::count_if(ports_, takes))))
		return;
	for (const auto &each : ports_) {
		if (takes(each))
			send(pool_.copy(*frame), each->port.number);
	}
}

/* Returns false if a frame that goes out by @copies ports is to be dropped. Its sender has sent it
 * once, so it needs room once: all copies are admitted, or none. */
bool Switch::admit(Frame &frame, uint32_t copies)
{
	frame.copies = 0;
	if (!config_.pfc.is_lossless(frame.priority))
		return true;
	if (!copies || !ports_[frame.ingress]->ingress.take(frame.priority, frame.size))
		return false;
	if (copies > 1)
		frame.copies = copies_.add(copies);
	return true;
}

void Switch::queue(FramePtr frame, uint16_t out)
{
	if (admit(*frame, 1))
		send(std::move(frame), out);
}

/* Sends a frame that was admitted. */
void Switch::send(FramePtr frame, uint16_t out)
{
	EgressQueues &queues = ports_[out]->port.queues;
	if (!config_.pfc.is_lossless(frame->priority) &&
	    queues.bytes(frame->priority) + frame->size > config_.queue_limit) {
		queues.stats(frame->priority).dropped++;
		return;
	}
	ports_[out]->port.send(std::move(frame));
}

/* Marks the frame by the length of the queue that it leaves behind. Marking at departure, as
 * switches do it, reports the present congestion, not that of the time when the frame arrived. */
void Switch::sending(Port &port, Frame &frame)
{
	if (config_.red.marks(port.queues.bytes(frame.priority), random_) &&
	    mark_ce(frame.bytes()) == Ecn::Marked)
		port.queues.stats(frame.priority).marked++;
}

void Switch::departed(Port & /* port */, const Frame &frame)
{
	if (!config_.pfc.is_lossless(frame.priority))
		return;
	if (!frame.copies || copies_.remove(frame.copies))
		ports_[frame.ingress]->ingress.release(frame.priority, frame.size);
}

} // namespace tern::fabric
