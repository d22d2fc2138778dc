/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "qemu/rnic/formats/pause.h"
#include "qemu/rnic/ports.h"

namespace tern {

/** What the scheduler gives turns to: a QP. */
class Sender {
public:
	/** Sends until there is nothing more to send or it is parked (returns false), or @budget
	 * packets are used up (returns true). */
	virtual bool transmit(unsigned &budget) = 0;
	bool scheduled() const { return place_ == Place::Active; }
	/** Whether it waits for room at the destination of its next frame. */
	bool parked() const { return place_ == Place::Parked; }
	/** Whether it is parked because the priority of its next frame is paused. */
	bool paused() const;

protected:
	~Sender() = default;

private:
	friend class Scheduler;

	enum class Place : uint8_t { None, Active, Parked };

	Sender *prev_ = nullptr;
	Sender *next_ = nullptr;
	Place place_ = Place::None;
	Wire::Destination destination_ = 0; /* where it is or was parked */
	bool was_parked_ = false;           /* and nothing has happened to it since */
};

/**
 * The QPs that may have something to send, which take turns. One whose next frame finds no room is
 * parked at the frame's destination, and the others go on.
 */
class Scheduler {
public:
	/** Packets a QP may send in one turn. */
	static constexpr unsigned kTurn = 16;
	/** The destination of frames to this card. */
	static constexpr Wire::Destination kSelf = Wire::kDestinations;
	/** The place of frames of the first paused priority; those of the others follow. */
	static constexpr Wire::Destination kPaused = kSelf + 1;

	bool empty() const { return !active_.first; }
	/** Adds @sender, which may have something to send, at the end. If it is parked it tries
	 * again, because it may have something else to do now. */
	void activate(Sender &sender)
	{
		sender.was_parked_ = false;
		if (sender.scheduled())
			return;
		remove(sender);
		append(active_, sender, Sender::Place::Active);
	}
	/** The next frame of @sender finds no room at @where: no turn until unpark(@where). */
	void park(Sender &sender, Wire::Destination where)
	{
		remove(sender);
		sender.destination_ = where;
		sender.was_parked_ = true;
		append(parked_[where], sender, Sender::Place::Parked);
	}
	/** There is room at @where. */
	void unpark(Wire::Destination where)
	{
		while (Sender *sender = parked_[where].first) {
			remove(*sender);
			append(active_, *sender, Sender::Place::Active);
		}
	}
	void remove(Sender &sender)
	{
		if (sender.place_ == Sender::Place::None)
			return;
		List &list = sender.parked() ? parked_[sender.destination_] : active_;
		(sender.prev_ ? sender.prev_->next_ : list.first) = sender.next_;
		(sender.next_ ? sender.next_->prev_ : list.last) = sender.prev_;
		sender.place_ = Sender::Place::None;
	}
	/** One turn for the first sender; it moves to the end if it has more. Not if empty(). */
	void run_turn(unsigned &budget)
	{
		Sender &sender = *active_.first;
		const unsigned turn = std::min(budget, kTurn);
		unsigned left = turn;
		remove(sender);
		if (sender.was_parked_ && parked_[sender.destination_].first)
			/* Another has filled the room first: no need to build a frame. */
			park(sender, sender.destination_);
		else if (sender.transmit(left) && !sender.parked())
			activate(sender);
		/* A turn that sent nothing also counts, so that the caller ends. */
		budget -= std::max(turn - left, 1u);
	}

private:
	struct List {
		Sender *first = nullptr;
		Sender *last = nullptr;
	};

	static void append(List &list, Sender &sender, Sender::Place place)
	{
		sender.place_ = place;
		sender.prev_ = list.last;
		sender.next_ = nullptr;
		(list.last ? list.last->next_ : list.first) = &sender;
		list.last = &sender;
	}

	List active_;
	std::array<List, kPaused + kPriorities> parked_; /* by destination */
};

inline bool Sender::paused() const
{
	return parked() && destination_ >= Scheduler::kPaused;
}

} // namespace tern
