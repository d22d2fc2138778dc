// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/shm/shared_wire.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "qemu/rnic/formats/burst.h"
#include "qemu/rnic/formats/packet.h"
#include "qemu/shm/monotonic.h"
#include "tern/tern_hw.h"

namespace tern::shm {

constexpr uint64_t kMillisecond = 1'000'000;
/* A host that something waits for, and that frees less than a quarter of the ring in this time, is
 * stalled; the same as in the switch. */
constexpr uint64_t kStallTimeout = 1000 * kMillisecond;
/* The switch itself may wait for a host that long. */
constexpr uint64_t kSwitchStallTimeout = 2 * kStallTimeout;
/* How long peers may keep lent payload claimed after recall(), all together. */
constexpr uint64_t kReturnTime = 500 * kMillisecond;
constexpr uint64_t kReturnSpin = 20'000;
constexpr uint64_t kRetryTime = 200 * kMillisecond;
/* After a claimed entry was returned too late, nothing is lent for kBackOff the first time, and for
 * up to kMaxBackOff later. */
constexpr uint64_t kBackOff = 1000 * kMillisecond;
constexpr uint64_t kMaxBackOff = 64 * kBackOff;
constexpr uint64_t kGreetingTime = 10'000 * kMillisecond;

static_assert(kMaxLanes == hw::TERN_MAX_ENGINES);

SharedWire::SharedWire(std::string path, const EventPoll &poll, uint64_t card, uint32_t lane)
        : path_(std::move(path)), poll_(poll), card_(card), lane_(lane)
{
}

SharedWire::~SharedWire()
{
	recall(Recall::everything());
}

bool SharedWire::share(int fd, uint64_t size)
{
	/* The last block is the spill. */
	uint64_t left = kMaxRam - Spill::kSize;
	for (const uint64_t other : block_sizes_)
		left -= other;
	if (block_fds_.size() == kMaxBlocks - 1 || size > left || !seal_for_readers(fd))
		return false;
	Fd readable = reopen_for_reading(fd);
	Mapping block;
	if (!block.map(readable, size, Mapping::Access::Read).empty())
		return false;
	block_fds_.push_back(std::move(readable));
	block_sizes_.push_back(size);
	blocks_.push_back(std::move(block));
	return true;
}

/* ---- the switch ------------------------------------------------------------- */

/* Sends Hello to the switch; the answer arrives later. */
std::string SharedWire::send_hello()
{
	if (!spill_.error().empty())
		return "no memory to share: " + spill_.error();
	sockaddr_un address{};
	address.sun_family = AF_UNIX;
	if (path_.empty() || path_.size() >= sizeof(address.sun_path))
		return "a socket's path has 1 to 107 bytes";
	path_.copy(address.sun_path, path_.size());
	Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (!socket ||
	    ::connect(socket.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address))) {
		if (errno == EPROTOTYPE)
			return "somebody else listens there than a switch for shared memory";
		return std::strerror(errno);
	}

	Message hello{.kind = Message::Kind::Hello};
	hello.card = card_;
	hello.lane = lane_;
	hello.blocks = static_cast<uint32_t>(block_fds_.size() + 1);
	std::ranges::copy(block_sizes_, hello.block_sizes);
	hello.block_sizes[block_fds_.size()] = Spill::kSize;
	std::vector<int> fds;
	for (const Fd &fd : block_fds_)
		fds.push_back(fd.get());
	fds.push_back(spill_.fd().get());
	if (!send_message(socket, hello, fds))
		return std::strerror(errno);
	if (!poll_.watch(socket.get(), EventPoll::News::Message))
		return std::string("the socket cannot be watched: ") + std::strerror(errno);
	socket_ = std::move(socket);
	state_ = State::Greeting;
	return {};
}

std::string SharedWire::connect()
{
	if (std::string error = send_hello(); !error.empty())
		return path_ + ": " + error;
	const uint64_t limit = monotonic_ns() + kGreetingTime;
	deadline_ = limit;
	while (state_ == State::Greeting) {
		pollfd answer{.fd = socket_.get(), .events = POLLIN, .revents = 0};
		poll(&answer, 1, static_cast<int>(kGreetingTime / kMillisecond));
		receive_messages(monotonic_ns());
		maintain(monotonic_ns());
	}
	return up() ? std::string() : path_ + ": " + error_;
}

void SharedWire::maintain(uint64_t now)
{
	switch (state_) {
	case State::Down:
		if (now < deadline_)
			return;
		if (send_hello().empty())
			deadline_ = now + kGreetingTime;
		else
			deadline_ = now + kRetryTime;
		break;
	case State::Greeting:
		if (now >= deadline_) {
			error_ = "the switch does not answer";
			disconnect(now);
		}
		break;
	case State::Up:
		sweep(now);
		resume_lending(now);
		check_stalled(now);
		break;
	}
}

std::optional<uint64_t> SharedWire::next_deadline() const
{
	if (state_ != State::Up)
		return deadline_;
	std::optional<uint64_t> next;
	if (backs_off())
		next = back_off_.until;
	if (waiting_.none())
		return next;
	for (const auto &link : links_) {
		if (waiting_[link->id] && !link->given_up && link->waits_since)
			next = std::min(next.value_or(~uint64_t{0}),
			                link->waits_since + patience(*link));
	}
	return next;
}

void SharedWire::receive_messages(uint64_t now)
{
	Message message;
	std::vector<Fd> fds;
	while (state_ != State::Down) {
		switch (receive_message(socket_, message, fds)) {
		case Received::Nothing:
			return;
		case Received::End:
			error_ = "the switch hung up";
			disconnect(now);
			return;
		case Received::Message:
			error_ = handle_message(message, fds);
			if (!error_.empty())
				disconnect(now);
		}
	}
}

/* Returns why to disconnect from the switch, or empty. */
std::string SharedWire::handle_message(const Message &message, std::vector<Fd> &fds)
{
	if (message.version != kVersion)
		return "the switch speaks version " + std::to_string(message.version) +
		       " of the protocol, this host " + std::to_string(kVersion);
	switch (message.kind) {
	case Message::Kind::Refused:
		return "the switch refuses: " + std::string(message.reason);
	case Message::Kind::Welcome:
		if (state_ == State::Greeting)
			return handle_welcome(message, fds);
		break;
	case Message::Kind::Peer:
		if (up() && message.id < kMaxHosts && message.id != id_ &&
		    fds.size() == kPeerFds + message.blocks) {
			add_peer(message, fds);
			return {};
		}
		break;
	case Message::Kind::Gone:
		if (up() && message.id < kMaxHosts) {
			if (Link *link = peers_[message.id])
				cut(*link);
			peers_[message.id] = nullptr;
			late_.reset(message.id);
			return {};
		}
		break;
	case Message::Kind::Hello:
	case Message::Kind::Renew:
		break;
	}
	return "the switch talks nonsense";
}

std::string SharedWire::handle_welcome(const Message &message, std::vector<Fd> &fds)
{
	if (message.id >= kMaxHosts || fds.size() != kWelcomeFds)
		return "the switch talks nonsense";
	std::string error = page_memory_.map(fds[0], sizeof(AddressPage), Mapping::Access::Read);
	if (!error.empty())
		return "the switch's addresses are " + error;
	auto link = std::make_unique<Link>();
	error = open(*link, std::span(fds).last<kPeerFds>());
	if (error.empty())
		error = watch(*link);
	if (!error.empty())
		return error;
	id_ = message.id;
	switch_ = link.get();
	links_.push_back(std::move(link));
	state_ = State::Up;
	return {};
}

/* Opens the link to another host. If that fails, frames between the two go through the switch. */
void SharedWire::add_peer(const Message &message, std::vector<Fd> &fds)
{
	if (Link *old = peers_[message.id])
		cut(*old);
	peers_[message.id] = nullptr;
	late_.reset(message.id);
	auto link = std::make_unique<Link>();
	link->id = message.id;
	if (!open_peer(*link, message, fds)) {
		/* The other host may have opened its end, and nobody would read what it sends. */
		for (const Fd &ring : std::span(fds).first<kPeerFds>().last<2>())
			RingEnd::close_unopened(ring, link->bell);
		return;
	}
	peers_[message.id] = link.get();
	links_.push_back(std::move(link));
}

/* Returns false if there is too little memory or address space, or the bell cannot be watched. */
bool SharedWire::open_peer(Link &link, const Message &message, std::span<Fd> fds)
{
	if (!open(link, fds.first<kPeerFds>()).empty() || !ram_fits(message))
		return false;
	for (uint32_t i = 0; i < message.blocks; i++) {
		const auto error = link.ram.emplace_back().map(
		        fds[kPeerFds + i], message.block_sizes[i], Mapping::Access::Read);
		if (!error.empty())
			return false;
	}
	return watch(link).empty();
}

std::string SharedWire::open(Link &link, std::span<Fd, kPeerFds> fds)
{
	link.listener = std::move(fds[0]);
	link.bell = Bell(std::move(fds[1]));
	std::string error = link.in.open(fds[2], link.bell);
	if (error.empty())
		error = link.out.open(fds[3], link.bell);
	return error;
}

/* Has poll_ wait for the link's bell. Returns an error message, or empty. The caller calls it after
 * all else that may fail, since only forget() stops the waiting. */
std::string SharedWire::watch(const Link &link) const
{
	if (poll_.watch(link.listener.get(), EventPoll::News::Bell))
		return {};
	return std::string("a bell cannot be watched: ") + std::strerror(errno);
}

/* The link is about to be destroyed. */
void SharedWire::forget(const Link &link)
{
	poll_.forget(link.listener.get());
	spill_.forget(link.out);
}

void SharedWire::disconnect(uint64_t now)
{
	recall(Recall::everything());
	state_ = State::Down;
	deadline_ = now + kRetryTime;
	socket_ = Fd();
	switch_ = nullptr;
	peers_ = {};
	late_.reset();
	direct_ = {};
	for (const auto &link : links_)
		forget(*link);
	links_.clear();
	page_memory_ = Mapping();
}

/* ---- links -------------------------------------------------------------------- */

void SharedWire::cut(Link &link)
{
	if (link.cut)
		return;
	link.cut = true;
	link.in.close();
	link.out.close();
}

/* Not called within receive(), which may have caused the cut. */
void SharedWire::sweep(uint64_t now)
{
	for (auto &link : links_) {
		if (link->in.broken() || link->out.broken() || link->in.closed() ||
		    link->out.closed())
			cut(*link);
		/* A link that was replaced, or whose host has left, does not count. */
		if (link->overdue && peers_[link->id] == link.get())
			late_.set(link->id);
	}
	if (switch_ && switch_->cut) {
		disconnect(now);
		return;
	}
	if (!take_back(Of::CutLinks, Recall::everything()))
		wait_for_return(Of::CutLinks, Recall::everything());
	std::erase_if(links_, [&](const auto &link) {
		if (!link->cut)
			return false;
		if (peers_[link->id] == link.get())
			peers_[link->id] = nullptr;
		forget(*link);
		direct_.links_cut++;
		return true;
	});
	if (back_off_.due)
		back_off(now);
}

/* Doubles the delay, up to kMaxBackOff, and halves it for each kMaxBackOff since the last back-off.
 * So in the long run waits that time out take at most about kReturnTime of each kMaxBackOff. */
void SharedWire::back_off(uint64_t now)
{
	const uint64_t quiet = (now - back_off_.last) / kMaxBackOff;
	const uint64_t delay = quiet < 7 ? back_off_.delay >> quiet : 0;
	back_off_.delay = std::clamp(delay * 2, kBackOff, kMaxBackOff);
	back_off_.last = now;
	back_off_.until = now + back_off_.delay;
	back_off_.due = false;
}

/* Lends again when the back-off has ended, and asks the switch for new links to the hosts that were
 * late. Repeats the request after each back-off until there is a new link. */
void SharedWire::resume_lending(uint64_t now)
{
	if (!backs_off() || now < back_off_.until)
		return;
	back_off_.active = false;
	back_off_.until = now + back_off_.delay;
	for (uint32_t id = 0; late_.any() && id < kMaxHosts; id++) {
		if (late_[id])
			send_message(socket_, {.kind = Message::Kind::Renew, .id = id});
	}
}

uint64_t SharedWire::patience(const Link &link)
{
	return link.id == kThroughSwitch ? kSwitchStallTimeout : kStallTimeout;
}

void SharedWire::check_stalled(uint64_t now)
{
	if (waiting_.none())
		return;
	for (auto &link : links_) {
		if (!waiting_[link->id] || link->given_up || link->cut)
			continue;
		link->out.used();
		const uint64_t consumed = link->out.consumed();
		if (!link->waits_since || consumed - link->consumed >= link->out.capacity() / 4) {
			link->consumed = consumed;
			link->waits_since = now;
		}
		link->given_up = now - link->waits_since >= patience(*link);
	}
}

bool SharedWire::has_room(Wire::Destination where) const
{
	Link *const link = link_to(where);
	return !link || link->cut || link->given_up || link->out.has_room() || link->out.broken();
}

bool SharedWire::has_room() const
{
	for (Wire::Destination where = 0; waiting_.any() && where < waiting_.size(); where++) {
		if (waiting_[where] && has_room(where))
			return true;
	}
	return false;
}

std::optional<Wire::Destination> SharedWire::take_room()
{
	for (Wire::Destination where = 0; waiting_.any() && where < waiting_.size(); where++) {
		if (waiting_[where] && has_room(where)) {
			waiting_.reset(where);
			return where;
		}
	}
	return std::nullopt;
}

/* ---- sending ------------------------------------------------------------------- */

/* The direct link for a frame; null if it must go through the switch. A frame to this host itself
 * has none. */
SharedWire::Link *SharedWire::direct_link(std::span<const std::byte> head)
{
	if (head.size() < 14)
		return nullptr;
	const auto &page = *reinterpret_cast<const AddressPage *>(page_memory_.bytes().data());
	if (page.through_switch.load(std::memory_order_relaxed))
		return nullptr;
	/* Sources unknown to the switch go through it, so that it learns them. */
	const auto source = page.find(address_at(head, 6));
	if (!source || *source >= kMaxHosts || page.lane_of(*source, lane_) != id_)
		return nullptr;
	auto host = page.find(address_at(head, 0));
	if (!host || *host >= kMaxHosts)
		return nullptr;
	if (page.has_lanes(*host)) {
		if (const auto engine = roce_engine(head))
			host = page.lane_of(*host, *engine);
	}
	Link *const link = *host < kMaxHosts ? peers_[*host] : nullptr;
	return link && !link->cut ? link : nullptr;
}

/*
 * Returns false if there is no room. A frame that cannot be sent at all is dropped.
 *
 * While a sender waits for room, nobody sends there before take_room() has told of it. Senders that
 * use up what the host has just taken would keep the ring from ever having as much room as that
 * sender waits for. The ring also keeps the room for which the host has rung the bell, once.
 */
bool SharedWire::put(Link &link, const Outgoing &what)
{
	if (link.given_up && !link.out.has_room()) {
		drop(what);
		return true;
	}
	link.given_up = false;
	const auto where = static_cast<Wire::Destination>(link.id);
	if (!waiting_[where]) {
		if (append(link, what) || link.out.broken())
			return true;
		if (link.out.await_room())
			return append(link, what) || link.out.broken();
		link.waits_since = 0;
		waiting_.set(where);
	}
	full_ = where;
	return false;
}

/* Counts dropped frames. Those to the switch are counted as well, because the switch never receives
 * them and so cannot count them. */
void SharedWire::drop(const Outgoing &what)
{
	direct_.sent += what.frames;
	direct_.lost += what.frames;
	switch_->out.publish_direct(direct_);
}

bool SharedWire::append(Link &link, const Outgoing &what)
{
	const bool done = what.state == kLent
	                          ? link.out.lend(what.loan, what.frames, what.first, what.second)
	                          : link.out.put(what.state, what.first, what.second);
	if (done && &link != switch_) {
		direct_.sent += what.frames;
		switch_->out.publish_direct(direct_);
	}
	return done;
}

bool SharedWire::send(std::span<const std::byte> frame)
{
	if (!up() || frame.size() > kMaxEntry)
		return true; /* too long for any wire: dropped */
	Link *const direct = direct_link(frame);
	return put(direct ? *direct : *switch_, {kWhole, frame});
}

Wire::Lend SharedWire::lend(std::span<const std::byte> head, std::span<const RamRange> payload,
                            uint32_t segment, const Loan &loan)
{
	if (!up() || payload.size() > kMaxRanges ||
	    head.size() > (payload.empty() ? kMaxEntry : kMaxHead) ||
	    (back_off_.active && !payload.empty()))
		return Wire::Lend::Refused;
	Link *const direct = direct_link(head);
	if (!direct)
		return Wire::Lend::Refused;
	if (payload.empty())
		return put(*direct, {kBare, head}) ? Wire::Lend::Done : Wire::Lend::Full;
	size_t size = 0;
	for (const RamRange &range : payload)
		size += range.size;
	std::array<std::byte, sizeof(LentHeader) + kMaxRanges * sizeof(RamRange)> first;
	const LentHeader header{static_cast<uint32_t>(payload.size()),
	                        static_cast<uint32_t>(head.size()), segment, 0};
	std::memcpy(first.data(), &header, sizeof(header));
	std::memcpy(first.data() + sizeof(header), payload.data(), payload.size_bytes());
	const auto used = std::span(first).first(sizeof(header) + payload.size_bytes());
	const uint32_t frames = segment ? segments_of(size, segment) : 1;
	return put(*direct, {kLent, used, head, frames, loan}) ? Wire::Lend::Done
	                                                       : Wire::Lend::Full;
}

std::optional<uint32_t> SharedWire::announce()
{
	std::optional<uint32_t> found;
	for (auto &link : links_) {
		if (link->cut)
			continue;
		const auto cpu = link->out.announce();
		if (cpu && link.get() != switch_ && link->id < id_)
			found = cpu;
	}
	return found;
}

uint64_t SharedWire::recall(const Recall &what, const std::function<void()> &before_wait)
{
	const uint64_t before = revoked_;
	if (!take_back(Of::AllLinks, what)) {
		if (before_wait)
			before_wait();
		wait_for_return(Of::AllLinks, what);
	}
	return revoked_ - before;
}

/* Returns false while a host has claimed an entry that @what concerns. */
bool SharedWire::take_back(Of which, const Recall &what)
{
	bool all = true;
	for (auto &link : links_) {
		if (which == Of::CutLinks && !link->cut)
			continue;
		all &= take_back(*link, what);
		if (link->out.broken())
			cut(*link);
	}
	return all;
}

/* Returns false while the other side has claimed an entry that @what concerns. */
bool SharedWire::take_back(Link &link, const Recall &what)
{
	const bool movable = what.is_key() && !link.cut;
	const auto move = [&](std::span<const std::byte> entry, uint64_t position) {
		return movable ? this->move(link, entry, position) : std::nullopt;
	};
	return link.out.take_back(what, move, revoked_);
}

/* Copies the payload of a lent entry to the spill. The other side could have changed the entry. */
std::optional<uint64_t> SharedWire::move(const Link &link, std::span<const std::byte> bytes,
                                         uint64_t position)
{
	const auto entry = LentEntry::parse(bytes);
	LentEntry::Pieces pieces;
	const auto payload = entry ? entry->find(blocks_, pieces) : std::nullopt;
	const auto slot = payload ? spill_.reserve(link.out, position) : std::nullopt;
	if (!slot)
		return std::nullopt;
	std::byte *to = slot->bytes.data();
	for (const auto &piece : *payload)
		to = std::ranges::copy(piece, to).out;
	return slot->offset;
}

/* Waits for the hosts that have claimed such an entry, a limited time for all of them. Then cuts
 * the links to those that have not released it. */
void SharedWire::wait_for_return(Of which, const Recall &what)
{
	release_claimed();
	/* Other hosts are told of their frames now, not up to half a second later. */
	announce();
	const uint64_t begin = monotonic_ns();
	while (!take_back(which, what)) {
		const uint64_t waited = monotonic_ns() - begin;
		if (waited > kReturnTime)
			return cut_late(which, what);
		if (waited > kReturnSpin) {
			const timespec moment{.tv_sec = 0, .tv_nsec = 20'000};
			nanosleep(&moment, nullptr);
		}
	}
}

/* The late host may go on at any time and receive what else is in the ring. As no recall can reach
 * that once the link has gone, all of it is revoked here. If the host has just released what it was
 * late with and claimed another entry, that entry is waited for as any other. */
void SharedWire::cut_late(Of which, const Recall &what)
{
	back_off_.due = back_off_.active = true;
	for (auto &link : links_) {
		if ((which == Of::CutLinks && !link->cut) || take_back(*link, what))
			continue;
		link->overdue = true;
		cut(*link);
		take_back(*link, Recall::everything());
		link->out.write_off(what);
	}
}

/* ---- receiving ------------------------------------------------------------------- */

bool SharedWire::has_frames() const
{
	return std::ranges::any_of(
	        links_, [](const auto &link) { return !link->cut && !link->in.empty(); });
}

bool SharedWire::receive(unsigned budget, Sink &sink)
{
	const size_t count = links_.size();
	for (size_t i = 0; i < count && budget; i++) {
		const size_t at = (first_to_receive_ + i) % count;
		budget -= receive(*links_[at], budget, sink);
		if (!budget)
			first_to_receive_ = at + 1;
	}
	if (switch_)
		switch_->out.publish_direct(direct_);
	return !budget;
}

/* Receives at most @budget entries from @link and returns their number. */
unsigned SharedWire::receive(Link &link, unsigned budget, Sink &sink)
{
	unsigned taken = 0;
	while (taken < budget && !link.cut) {
		const auto entry = link.in.take(entry_);
		if (!entry)
			break;
		claimed_ = &link;
		payload_ = {};
		if (!dispatch(link, *entry, sink))
			cut(link);
		if (claimed_)
			link.in.done();
		claimed_ = nullptr;
		taken++;
	}
	return taken;
}

/* Returns false if the entry violates the protocol. */
bool SharedWire::dispatch(Link &link, const Consumer::Entry &entry, Sink &sink)
{
	if (entry.state != kWhole && entry.state != kBare)
		return dispatch_lent(link, entry, sink);
	direct_.received += &link != switch_;
	if (entry.state == kWhole)
		sink.frame(entry.bytes);
	else
		sink.lent(entry.bytes, {}, 0);
	return true;
}

bool SharedWire::dispatch_lent(Link &link, const Consumer::Entry &entry, Sink &sink)
{
	const auto lent = LentEntry::parse(entry.bytes);
	if (!lent)
		return false;
	/* The other host may use the memory for something else once it has closed the link. */
	if (entry.state == kRevoked || link.in.closed()) {
		direct_.lost += lent->packets();
		sink.revoked(lent->packets());
		return true;
	}
	const auto payload = entry.state == kMoved ? find_moved(link, *lent, entry.offset)
	                                           : lent->find(link.ram, pieces_);
	if (!payload)
		return false;
	payload_ = *payload;
	direct_.received += lent->packets();
	sink.lent(lent->head(), payload_, lent->segment());
	return true;
}

/* The other host's spill is the last block. */
std::optional<std::span<std::span<const std::byte>>>
SharedWire::find_moved(const Link &link, const LentEntry &lent, uint64_t offset)
{
	if (link.ram.empty())
		return std::nullopt;
	const auto spill = link.ram.back().bytes();
	if (offset > spill.size() || lent.size() > spill.size() - offset)
		return std::nullopt;
	pieces_[0] = spill.subspan(offset, lent.size());
	return std::span(pieces_).first(1);
}

/* The number of packets; an entry that is invalid has none. */
uint32_t SharedWire::packets_of(const Consumer::Entry &entry)
{
	if (entry.state == kWhole || entry.state == kBare)
		return 1;
	const auto lent = LentEntry::parse(entry.bytes);
	return lent ? lent->packets() : 0;
}

/* Copies the payload being received and releases its entry. Called before waiting for other hosts,
 * because one of them may be waiting for that entry. */
void SharedWire::release_claimed()
{
	if (!claimed_)
		return;
	std::byte *to = copy_.data();
	for (auto &piece : payload_) {
		std::memcpy(to, piece.data(), piece.size());
		piece = {to, piece.size()};
		to += piece.size();
	}
	claimed_->in.done();
	claimed_ = nullptr;
}

void SharedWire::discard_received()
{
	for (auto &link : links_) {
		/* Leave entries that are added meanwhile: a busy producer would keep this loop
		 * running. */
		const uint64_t end = link->in.end();
		while (!link->cut && link->in.position() < end) {
			const auto entry = link->in.take(entry_);
			if (!entry)
				break;
			if (link.get() != switch_)
				direct_.lost += packets_of(*entry);
			link->in.done();
		}
	}
}

/* ---- sleeping --------------------------------------------------------------------- */

void SharedWire::sleeps(uint32_t cpu)
{
	for (auto &link : links_)
		link->in.sleeps(cpu);
}

void SharedWire::awake()
{
	for (auto &link : links_)
		link->in.awake();
}

} // namespace tern::shm
