// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/shared_hosts.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "qemu/wire/shared_port.h"

namespace tern::wire {

using namespace std::chrono_literals;
using shm::Message;

/* Room for 28 frames of maximum size; lent ones take a hundredth of that. */
constexpr size_t kRingSize = 256 << 10;
/* Minimum age of a pair of rings before it is replaced. */
constexpr auto kRenewInterval = 500ms;

SharedHosts::SharedHosts()
        : paired_(shm::kMaxHosts * shm::kMaxHosts),
          page_fd_(shm::make_segment("tern-wire", sizeof(shm::AddressPage)))
{
	if (!page_fd_ ||
	    !page_memory_.map(page_fd_, sizeof(shm::AddressPage), shm::Mapping::Access::ReadWrite)
	             .empty() ||
	    !shm::seal_for_readers(page_fd_.get())) {
		page_error_ = errno;
		return;
	}
	page_ = reinterpret_cast<shm::AddressPage *>(page_memory_.bytes().data());
}

Fd SharedHosts::address_page() const
{
	if (page_)
		return shm::reopen_for_reading(page_fd_.get());
	errno = page_error_;
	return Fd();
}

void SharedHosts::add(SharedPort &port)
{
	may_admit_ = false;
	for (SharedPort *other : ports_)
		pair(port, *other);
	ports_.push_back(&port);
	changes_ = 0;
}

void SharedHosts::remove(SharedPort &port)
{
	if (std::erase(ports_, &port) == 0)
		return;
	for (SharedPort *other : ports_)
		other->send_to_host({.kind = Message::Kind::Gone, .id = port.id}, {});
}

/* Both hosts may ask, or the other host may just have left. */
void SharedHosts::renew(SharedPort &port, Switch::PortId id)
{
	const auto other =
	        std::ranges::find_if(ports_, [id](auto *other) { return other->id == id; });
	if (other == ports_.end() || *other == &port)
		return;
	if (std::chrono::steady_clock::now() - paired(port, **other) >= kRenewInterval)
		pair(port, **other);
}

SteadyTime &SharedHosts::paired(const SharedPort &one, const SharedPort &other)
{
	return paired_[std::min(one.id, other.id) * shm::kMaxHosts + std::max(one.id, other.id)];
}

static Message describe_peer(const SharedPort &port)
{
	Message message{.kind = Message::Kind::Peer, .id = port.id};
	for (const SharedPort::Block &block : port.blocks())
		message.block_sizes[message.blocks++] = block.size;
	return message;
}

/* Without memory or descriptors for rings, their frames go through the switch. */
void SharedHosts::pair(SharedPort &one, SharedPort &other)
{
	const Fd to_one = shm::RingEnd::make(kRingSize), to_other = shm::RingEnd::make(kRingSize);
	const auto bell_of_one = shm::BellPair::make(), bell_of_other = shm::BellPair::make();
	if (!to_one || !to_other || !bell_of_one.bell || !bell_of_other.bell)
		return;
	paired(one, other) = std::chrono::steady_clock::now();
	const auto connect = [](SharedPort &to, const SharedPort &of, const shm::BellPair &bell,
	                        const shm::BellPair &other, const Fd &in, const Fd &out) {
		std::vector<int> fds{other.listener.get(), bell.bell.fd(), in.get(), out.get()};
		for (const SharedPort::Block &block : of.blocks())
			fds.push_back(block.fd.get());
		return to.offer_to_host(describe_peer(of), fds);
	};
	if (!connect(one, other, bell_of_one, bell_of_other, to_one, to_other))
		return;
	/* The other host does not know of the link and would not read what is sent to it. */
	if (!connect(other, one, bell_of_other, bell_of_one, to_other, to_one))
		one.send_to_host({.kind = Message::Kind::Gone, .id = other.id}, {});
}

void SharedHosts::publish(const Switch &ethernet, bool through_switch)
{
	if (!page_)
		return;
	page_->through_switch.store(through_switch, std::memory_order_relaxed);
	if (changes_ == ethernet.address_changes())
		return;
	changes_ = ethernet.address_changes();
	write_addresses(ethernet);
	write_lanes(ethernet);
}

void SharedHosts::write_addresses(const Switch &ethernet)
{
	std::vector<uint64_t> slots(shm::kAddressSlots);
	for (const auto &[address, id] : ethernet.addresses()) {
		if (std::ranges::none_of(ports_, [id = id](auto *port) { return port->id == id; }))
			continue;
		size_t slot = shm::AddressPage::first_slot(address);
		while (slots[slot])
			slot = (slot + 1) % shm::kAddressSlots;
		slots[slot] = address << 16 | (id + 1);
	}
	for (size_t i = 0; i < shm::kAddressSlots; i++) {
		if (page_->slots[i].load(std::memory_order_relaxed) != slots[i])
			page_->slots[i].store(slots[i], std::memory_order_relaxed);
	}
}

void SharedHosts::write_lanes(const Switch &ethernet)
{
	uint64_t with_lanes = 0;
	uint16_t lanes[shm::kMaxHosts][shm::kMaxLanes]{};
	for (const SharedPort *port : ports_) {
		const Switch::Place &place = ethernet.place_of(port->id);
		if (place.lanes == 1)
			continue;
		with_lanes |= uint64_t{1} << place.primary;
		lanes[place.primary][place.lane] = static_cast<uint16_t>(port->id + 1);
	}
	for (size_t host = 0; host < shm::kMaxHosts; host++) {
		for (size_t lane = 0; lane < shm::kMaxLanes; lane++)
			page_->lanes[host][lane].store(lanes[host][lane],
			                               std::memory_order_relaxed);
	}
	page_->with_lanes.store(with_lanes, std::memory_order_relaxed);
}

} // namespace tern::wire
