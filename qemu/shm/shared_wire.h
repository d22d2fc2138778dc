/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qemu/rnic/ports.h"
#include "qemu/shm/address_page.h"
#include "qemu/shm/event_poll.h"
#include "qemu/shm/message.h"
#include "qemu/shm/ring.h"

namespace tern::shm {

/** Bytes of a RAM block that a host has shown to the others. */
struct RamRange {
	uint32_t block;
	uint32_t size;
	uint64_t offset;
};

constexpr size_t kMaxRanges = 32;
constexpr size_t kMaxHead = 512; /* before a payload */
/* Bytes of payload of one entry: those of a burst. */
constexpr size_t kMaxPayload = 64 << 10;

/**
 * A host's end of the wire: a ring from the switch and one to it, and two for each
 * host to which there is a direct way. Belongs to one thread, and never waits for others but in
 * connect() and, for a bounded time, in recall(). All times in ns, of one steady clock.
 */
class SharedWire {
public:
	/** Who takes what arrives. */
	class Sink {
	public:
		virtual void frame(std::span<const std::byte> frame) = 0;
		/** A frame without ICRC, whose @payload stays with the sender; readable during
		 * the call; or a burst of such. A recall() makes @payload refer to a copy. */
		virtual void lent(std::span<const std::byte> head,
		                  std::span<const std::span<const std::byte>> payload,
		                  uint32_t segment) = 0;

	protected:
		~Sink() = default;
	};

	/** @path: where the switch listens for hosts that share memory. @poll: where this host
	 * sleeps, which hears of what it is to receive or attend to. @card, @lane: as in Message.
	 */
	SharedWire(std::string path, const EventPoll &poll, uint64_t card = 0, uint32_t lane = 0);
	~SharedWire();

	/**
	 * The others may read this block of RAM when something of it is lent; its number is how
	 * many there were before. False: not possible with this one. Before connect().
	 */
	bool share(int fd, uint64_t size);

	/** Waits until the wire is up or cannot be. An error message, or empty. */
	std::string connect();
	/** Deals with what the switch says. Call it now and then, and when there is a message. */
	void listen(uint64_t now);
	/** Comes back to a switch that was gone, gives up hosts that take nothing. Call it now and
	 * then, and before sleeping. */
	void attend(uint64_t now);
	/** When attend() must be called though nothing has happened. */
	std::optional<uint64_t> next_deadline() const;
	bool up() const { return state_ == State::Up; }
	/** To how many there is a direct way, and this one. */
	size_t hosts() const { return up() ? links_.size() : 1; }

	/** False: no room; wait for room_made(). */
	bool send(std::span<const std::byte> frame);
	/** As Wire::lend(); @head is at least an Ethernet header. */
	Wire::Lend lend(std::span<const std::byte> head, std::span<const RamRange> payload,
	                uint32_t segment);
	/** Whether a frame with @head, at least an Ethernet header, has a way on which it can be
	 * lent. */
	bool lends(std::span<const std::byte> head) { return up() && way_of(head); }
	/**
	 * Wakes who has been sent something: after some of it, so that one who shares the
	 * processor with this one does not take it for each frame, and before waiting. Returns the
	 * processor, as it says, of a host that had to be woken and that does not look for this
	 * one in turn: of two hosts the second looks for the first.
	 */
	std::optional<uint32_t> announce();
	/** Nobody reads any more what was lent. */
	void recall();
	/** Something found no room, and would find some now. */
	bool room_made();
	/** What found no room is tried again, or not any more. */
	void try_again()
	{
		waiting_ = false;
		blocked_ = nullptr;
	}

	bool has_frames() const;
	/** Hands at most @budget frames of each host to @sink. True: there may be more. */
	bool receive(unsigned budget, Sink &sink);
	void discard_received();

	/** Before sleeping on that processor; look at has_frames() once more after a full fence. */
	void sleeps(uint32_t cpu);
	void awake();

private:
	enum class State { Down, Greeting, Up };

	/* The way to one other: the switch or a host. */
	struct Link {
		uint32_t id = 0;
		Bell bell;
		Producer out;
		Consumer in;
		std::vector<Mapping> ram;
		/* takes nothing: what does not find room is lost */
		bool given_up = false;
		/* The other lied or has gone; removed by sweep(). */
		bool cut = false;
		/* ... or did not give back in time what was lent */
		bool overdue = false;
		uint64_t progress = 0;
		uint64_t idle_since = 0;
	};

	/* When the switch is asked for a new link to a host that was late, unless it is 0. */
	struct Renewal {
		uint64_t due = 0;
		uint64_t wait = 0; /* until then */
	};

	/* What is put into a ring. */
	struct Outgoing {
		EntryState state;
		std::span<const std::byte> first;
		std::span<const std::byte> second = {};
		uint32_t frames = 1;
	};

	std::string greet();
	std::string handle(const Message &message, std::vector<Fd> &fds);
	std::string welcome(const Message &message, std::vector<Fd> &fds);
	void add_peer(const Message &message, std::vector<Fd> &fds);
	static std::string open(Link &link, Fd bell, const Fd &in, const Fd &out);
	void disconnect(uint64_t now);

	Link *way_of(std::span<const std::byte> head);
	bool put(Link &link, const Outgoing &what);
	bool append(Link &link, const Outgoing &what);
	bool deal_with(Link &link, const Consumer::Entry &entry, Sink &sink);
	void give_back();
	bool await_return(Link &link);
	static void cut(Link &link);
	void sweep(uint64_t now);
	void plan_renewal(uint32_t id, uint64_t now);
	void renew(uint64_t now);
	void lose_patience(uint64_t now);

	const std::string path_;
	const EventPoll &poll_;
	const uint64_t card_;
	const uint32_t lane_;
	std::vector<Fd> block_fds_;
	std::vector<uint64_t> block_sizes_;

	State state_ = State::Down;
	/* of connecting again, or of the switch's answer */
	uint64_t deadline_ = 0;
	Fd socket_;
	Bell bell_;
	Mapping page_memory_;
	uint32_t id_ = 0;

	std::vector<std::unique_ptr<Link>> links_;
	std::array<Link *, kMaxHosts> peers_{};
	Link *switch_ = nullptr;
	std::array<Renewal, kMaxHosts> renewals_{};
	std::optional<uint64_t> next_renewal_; /* or earlier than that */
	bool waiting_ = false;
	/* for this one; null: for nobody any more */
	Link *blocked_ = nullptr;
	std::string why_;
	uint64_t direct_ = 0; /* frames sent past this switch */
	/* of what is being received */
	std::array<std::byte, kMaxEntry> entry_;
	Link *claimed_ = nullptr; /* whose it is, until it is given back */
	std::array<std::span<const std::byte>, kMaxRanges> payload_;
	size_t pieces_ = 0;
	std::array<std::byte, kMaxPayload> copy_;
};

} // namespace tern::shm
