/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qemu/rnic/environment.h"
#include "qemu/shm/address_page.h"
#include "qemu/shm/event_poll.h"
#include "qemu/shm/lent_entry.h"
#include "qemu/shm/message.h"
#include "qemu/shm/ring.h"
#include "qemu/shm/spill.h"

namespace tern::shm {

/**
 * A host's end of the wire: a pair of rings with the switch, and one with each host that can be
 * reached directly. Used by one thread. Only connect() blocks, and recall() for a limited time. All
 * times in ns of one monotonic clock.
 */
class SharedWire {
public:
	/** Receiver of frames. */
	class Sink {
	public:
		virtual void frame(std::span<const std::byte> frame) = 0;
		/** A frame without ICRC, or a burst, whose @payload stays in the sender's memory
		 * and is readable during the call. A recall() makes @payload refer to a copy. */
		virtual void lent(std::span<const std::byte> head,
		                  std::span<const std::span<const std::byte>> payload,
		                  uint32_t segment) = 0;
		/** Lent packets that were revoked have been dropped. */
		virtual void revoked(uint32_t packets) = 0;

	protected:
		~Sink() = default;
	};

	/** @path: socket of the switch for shared memory. @poll: where this host's thread sleeps;
	 * it is woken for frames and messages. @card, @lane: as in Message. */
	SharedWire(std::string path, const EventPoll &poll, uint64_t card = 0, uint32_t lane = 0);
	~SharedWire();

	/**
	 * Lets other hosts read this block of RAM when something in it is lent, and seals it, so
	 * that nobody can map it for writing any more. Blocks are numbered from 0 by successful
	 * calls. Returns false if the block cannot be shared. Call before connect().
	 */
	bool share(int fd, uint64_t size);

	/** Blocks until the wire is up or has failed. Returns an error message, or empty. */
	std::string connect();
	/** Handles messages of the switch. Call periodically and when there is a message. */
	void receive_messages(uint64_t now);
	/** Reconnects to the switch, drops cut links and gives up stalled hosts. Call periodically
	 * and before sleeping. */
	void maintain(uint64_t now);
	/** When maintain() must be called even if nothing happens. */
	std::optional<uint64_t> next_deadline() const;
	bool up() const { return state_ == State::Up; }
	/** The number of hosts on the wire that this one can reach directly, and itself. */
	size_t hosts() const { return up() ? links_.size() : 1; }

	/** Returns false if there is no room at full(); then wait for take_room(). */
	bool send(std::span<const std::byte> frame);
	/** As Wire::lend(); @head is at least an Ethernet header. */
	Wire::Lend lend(std::span<const std::byte> head, std::span<const RamRange> payload,
	                uint32_t segment, const Loan &loan);
	/** Whether there is a direct link to the destination of a frame with @head, at least an
	 * Ethernet header. Without one lend() refuses the frame. */
	bool can_lend(std::span<const std::byte> head) { return up() && direct_link(head); }
	/**
	 * Wakes hosts that frames were sent to. Call after several frames, so that a host on the
	 * same processor does not preempt this one for each of them, and before sleeping. Returns
	 * the processor reported by a woken host with a lower id. The host with the higher id moves
	 * to it: of two hosts only one looks for the other.
	 */
	std::optional<uint32_t> announce();
	/** As Wire::recall(). May wait for other hosts; calls @before_wait first. */
	uint64_t recall(const Recall &what, const std::function<void()> &before_wait = {});
	/** The destination that had no room for the last frame refused: a host's id, or
	 * kThroughSwitch. */
	Wire::Destination full() const { return full_; }
	/** Whether take_room() would return a destination. */
	bool has_room() const;
	/** A destination that refused something since it was last returned, and has room now or
	 * drops what has none. */
	std::optional<Wire::Destination> take_room();

	bool has_frames() const;
	/** Passes at most @budget frames and bursts to @sink, of all hosts in turn. Returns true if
	 * there may be more. */
	bool receive(unsigned budget, Sink &sink);
	void discard_received();

	/** Call before sleeping on processor @cpu; check has_frames() again after a full fence. */
	void sleeps(uint32_t cpu);
	void awake();

private:
	enum class State { Down, Greeting, Up };

	static constexpr Wire::Destination kThroughSwitch = kMaxHosts;
	static_assert(kThroughSwitch < Wire::kDestinations);

	/* The rings shared with the switch or with one host. */
	struct Link {
		uint32_t id = kThroughSwitch; /* or of the host */
		Bell bell;
		Fd listener; /* for the other side's bell */
		Producer out;
		Consumer in;
		std::vector<Mapping> ram;
		/* stalled: frames that find no room are dropped */
		bool given_up = false;
		/* The other side has violated the protocol or left; removed by sweep(). */
		bool cut = false;
		/* The link was cut because the other side did not release lent payload in time. */
		bool overdue = false;
		/* While something waits for room: since when, and how much was consumed then. 0:
		 * check_stalled() is to note both. */
		uint64_t waits_since = 0;
		uint64_t consumed = 0;
	};

	/* After a wait for lent payload has timed out, nothing is lent until a delay has passed.
	 * There is one delay for all hosts, because a late host could reconnect with another id. */
	struct BackOff {
		bool due = false; /* a wait has timed out, and back_off() is to be called */
		bool active = false;
		uint64_t delay = 0; /* the last one */
		uint64_t last = 0;  /* when it began */
		uint64_t until = 0; /* when it ends, and Renew is sent or repeated */
	};

	/* An entry to be put into a ring. */
	struct Outgoing {
		EntryState state;
		std::span<const std::byte> first;
		std::span<const std::byte> second = {};
		uint32_t frames = 1;
		Loan loan{}; /* of a lent one */
	};

	std::string send_hello();
	std::string handle_message(const Message &message, std::vector<Fd> &fds);
	std::string handle_welcome(const Message &message, std::vector<Fd> &fds);
	void add_peer(const Message &message, std::vector<Fd> &fds);
	bool open_peer(Link &link, const Message &message, std::span<Fd> fds);
	static std::string open(Link &link, std::span<Fd, kPeerFds> fds);
	std::string watch(const Link &link) const;
	void forget(const Link &link);
	void disconnect(uint64_t now);

	Link *direct_link(std::span<const std::byte> head);
	bool put(Link &link, const Outgoing &what);
	bool append(Link &link, const Outgoing &what);
	void drop(const Outgoing &what);
	bool has_room(Wire::Destination where) const;
	Link *link_to(Wire::Destination where) const
	{
		return where == kThroughSwitch ? switch_ : peers_[where];
	}
	static uint64_t patience(const Link &link);
	unsigned receive(Link &link, unsigned budget, Sink &sink);
	bool dispatch(Link &link, const Consumer::Entry &entry, Sink &sink);
	bool dispatch_lent(Link &link, const Consumer::Entry &entry, Sink &sink);
	std::optional<std::span<std::span<const std::byte>>>
	find_moved(const Link &link, const LentEntry &lent, uint64_t offset);
	static uint32_t packets_of(const Consumer::Entry &entry);
	void release_claimed();
	/** Whether resume_lending() has something to do once back_off_.until has passed. */
	bool backs_off() const { return back_off_.active || late_.any(); }
	bool take_back(Link &link, const Recall &what);
	enum class Of { AllLinks, CutLinks };
	bool take_back(Of which, const Recall &what);
	void wait_for_return(Of which, const Recall &what);
	void cut_late(Of which, const Recall &what);
	std::optional<uint64_t> move(const Link &link, std::span<const std::byte> entry,
	                             uint64_t position);
	static void cut(Link &link);
	void sweep(uint64_t now);
	void back_off(uint64_t now);
	void resume_lending(uint64_t now);
	void check_stalled(uint64_t now);

	const std::string path_;
	const EventPoll &poll_;
	const uint64_t card_;
	const uint32_t lane_;
	std::vector<Fd> block_fds_;
	std::vector<uint64_t> block_sizes_;
	std::vector<Mapping> blocks_;
	Spill spill_;

	State state_ = State::Down;
	/* of reconnecting, or of the switch's answer */
	uint64_t deadline_ = 0;
	Fd socket_;
	Mapping page_memory_;
	uint32_t id_ = 0;

	std::vector<std::unique_ptr<Link>> links_;
	std::array<Link *, kMaxHosts> peers_{};
	Link *switch_ = nullptr;
	BackOff back_off_;
	std::bitset<kMaxHosts> late_; /* hosts whose links were overdue; until they have new ones */
	/* destinations that refused a frame; their links may have been replaced or removed since */
	std::bitset<Wire::kDestinations> waiting_;
	Wire::Destination full_ = 0;
	std::string error_;
	DirectCounts direct_; /* since connected */
	uint64_t revoked_ = 0;
	size_t first_to_receive_ = 0; /* the link, an index modulo their number */
	/* the entry being received */
	std::array<std::byte, kMaxEntry> entry_;
	Link *claimed_ = nullptr; /* its link, until the entry is released */
	LentEntry::Pieces pieces_;
	std::span<std::span<const std::byte>> payload_; /* of pieces_ */
	std::array<std::byte, kMaxPayload> copy_;
};

} // namespace tern::shm
