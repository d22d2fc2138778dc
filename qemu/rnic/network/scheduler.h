/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "qemu/rnic/environment.h"
#include "qemu/rnic/formats/pause.h"

namespace tern {

/** What the scheduler gives turns to: a QP. */
class Sender {
public:
	/** Sends packets. Returns false when nothing is left to send or the sender is parked, and
	 * true when @budget is used up. A unit of @budget is the time that the card takes for one
	 * packet of a long message. */
	virtual bool transmit(unsigned &budget) = 0;
	bool scheduled() const { return place_ == Place::New || place_ == Place::Round; }
	/** Whether it waits for room at the destination of its next frame. */
	bool parked() const { return place_ == Place::Parked; }
	/** Whether it is parked because the priority of its next frame is paused. */
	bool paused() const;

	/** The units of time that a QP may use in one turn. */
	static constexpr unsigned kTurn = 16;
	/** The units that the card takes to read and check a message's WQE. Each packet of the
	 * message takes one more. */
	static constexpr unsigned kMessage = 2;

	/** Subtracts @units from @budget. Sets @budget to 0 if it has fewer. */
	static void spend(unsigned &budget, unsigned units) { budget -= std::min(budget, units); }

protected:
	~Sender() = default;

private:
	friend class Scheduler;

	enum class Place : uint8_t {
		None,
		New,   /* has something to send, and credit */
		Round, /* has something to send, and no credit until its turn in the round. The
		        * first one has credit if its turn was interrupted. */
		Idle,  /* as Round, but has nothing to send */
		Parked,
	};

	Sender *prev_ = nullptr;
	Sender *next_ = nullptr;
	Place place_ = Place::None;
	Wire::Destination destination_ = 0; /* where it is parked, or was parked last */
	bool was_parked_ = false; /* was parked, and has had no turn and no activate() since */
	uint8_t credit_ = kTurn;  /* what it may use before the others' turns */
};

/**
 * The QPs that may have something to send, which take turns. One whose next frame finds no room is
 * parked at the frame's destination, and the others go on.
 *
 * A QP that sends little does not wait for those that always have more to send: as in FQ-CoDel (RFC
 * 8290, section 4.2), one that has been idle comes before them, until it has used as much as each
 * of them uses in a round. Then it takes its turn in the round, too.
 */
class Scheduler {
public:
	/** The destination of frames to this card. */
	static constexpr Wire::Destination kSelf = Wire::kDestinations;
	/** The place of frames of the first paused priority; those of the others follow. */
	static constexpr Wire::Destination kPaused = kSelf + 1;

	bool empty() const { return !new_.first && !round_.first; }
	/** Returns whether the next turn belongs to a sender that was idle. */
	bool has_new() const { return new_.first; }
	/** Adds @sender, which may have something to send, at the end. If it is parked it tries
	 * again, because it may have something else to do now. */
	void activate(Sender &sender)
	{
		sender.was_parked_ = false;
		if (!sender.scheduled())
			append(sender);
	}
	/** The next frame of @sender finds no room at @where: no turn until unpark(@where). */
	void park(Sender &sender, Wire::Destination where)
	{
		remove(sender);
		sender.destination_ = where;
		sender.was_parked_ = true;
		append(parked_[where], sender, Sender::Place::Parked);
	}
	/** Unparks @sender, so that it can send frames to other destinations. Returns where it was
	 * parked. */
	Wire::Destination release(Sender &sender)
	{
		remove(sender);
		sender.was_parked_ = false;
		return sender.destination_;
	}
	/** There is room at @where. */
	void unpark(Wire::Destination where)
	{
		while (Sender *sender = parked_[where].first)
			append(*sender);
	}
	void remove(Sender &sender)
	{
		if (sender.place_ == Sender::Place::None)
			return;
		unlink(sender);
		/* An idle sender leaves the round, with full credit, when its turn comes. */
		while (round_.first && round_.first->place_ == Sender::Place::Idle) {
			round_.first->credit_ = Sender::kTurn;
			unlink(*round_.first);
		}
	}
	/** Gives the first sender one turn, and moves it to the end if it has more to send. If
	 * @budget is used up before the turn ends, the next call continues that turn. empty() must
	 * be false, and @budget must not be 0. */
	void run_turn(unsigned &budget)
	{
		const bool in_round = !new_.first;
		Sender &sender = in_round ? *round_.first : *new_.first;
		if (!sender.credit_)
			sender.credit_ = Sender::kTurn;
		const unsigned turn = std::min<unsigned>(budget, sender.credit_);
		unsigned left = turn;
		bool more = false;
		remove(sender);
		if (std::exchange(sender.was_parked_, false) && parked_[sender.destination_].first)
			/* Another has filled the room first: no need to build a frame. */
			park(sender, sender.destination_);
		else
			more = sender.transmit(left);
		/* A turn that sent nothing also counts: the caller is to end, and a QP whose
		 * doorbell rings all the time is not to come before those of the round. */
		const unsigned used = std::max(turn - left, 1u);
		sender.credit_ = static_cast<uint8_t>(
		        in_round && sender.parked() ? 0 : sender.credit_ - used);
		if (more && sender.credit_)
			put_back(sender, in_round);
		else if (more || sender.scheduled())
			append(sender);
		else if (!sender.parked())
			rest(sender);
		budget -= used;
	}

private:
	struct List {
		Sender *first = nullptr;
		Sender *last = nullptr;
	};

	/* Adds @sender, which may have something to send: to the new ones if it has credit, else to
	 * the round. */
	void append(Sender &sender)
	{
		if (sender.place_ == Sender::Place::Idle && !sender.credit_) {
			sender.place_ = Sender::Place::Round;
			return;
		}
		remove(sender);
		if (sender.credit_)
			append(new_, sender, Sender::Place::New);
		else
			append(round_, sender, Sender::Place::Round);
	}
	/* Puts @sender, whose turn was interrupted, first in its list, so that the next turn
	 * continues it. */
	void put_back(Sender &sender, bool in_round)
	{
		remove(sender);
		List &list = in_round ? round_ : new_;
		sender.place_ = in_round ? Sender::Place::Round : Sender::Place::New;
		sender.prev_ = nullptr;
		sender.next_ = list.first;
		(list.first ? list.first->prev_ : list.last) = &sender;
		list.first = &sender;
	}
	/* @sender has nothing to send. It has its full credit again after a round of the others. */
	void rest(Sender &sender)
	{
		if (round_.first)
			append(round_, sender, Sender::Place::Idle);
		else
			sender.credit_ = Sender::kTurn;
	}
	void unlink(Sender &sender)
	{
		List &list = list_of(sender);
		(sender.prev_ ? sender.prev_->next_ : list.first) = sender.next_;
		(sender.next_ ? sender.next_->prev_ : list.last) = sender.prev_;
		sender.place_ = Sender::Place::None;
	}
	List &list_of(const Sender &sender)
	{
		if (sender.parked())
			return parked_[sender.destination_];
		return sender.place_ == Sender::Place::New ? new_ : round_;
	}
	static void append(List &list, Sender &sender, Sender::Place place)
	{
		sender.place_ = place;
		sender.prev_ = list.last;
		sender.next_ = nullptr;
		(list.last ? list.last->next_ : list.first) = &sender;
		list.last = &sender;
	}

	List new_;
	List round_;                                     /* the first is not idle */
	std::array<List, kPaused + kPriorities> parked_; /* by destination */
};

inline bool Sender::paused() const
{
	return parked() && destination_ >= Scheduler::kPaused;
}

} // namespace tern
