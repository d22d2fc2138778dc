/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>

namespace tern {

/** What the scheduler gives turns to: a QP. */
class Sender {
public:
	/** Sends until there is nothing more to send (returns false), or the wire is full or
	 * @budget packets are used up (returns true). */
	virtual bool transmit(unsigned &budget) = 0;
	bool scheduled() const { return scheduled_; }

protected:
	~Sender() = default;

private:
	friend class Scheduler;

	Sender *prev_ = nullptr;
	Sender *next_ = nullptr;
	bool scheduled_ = false;
};

/** The QPs that may have something to send, which take turns. */
class Scheduler {
public:
	/** Packets a QP may send in one turn. */
	static constexpr unsigned kTurn = 16;

	bool empty() const { return !first_; }
	/** Adds @sender, which may have something to send, at the end. */
	void activate(Sender &sender)
	{
		if (sender.scheduled_)
			return;
		sender.scheduled_ = true;
		sender.prev_ = last_;
		sender.next_ = nullptr;
		(last_ ? last_->next_ : first_) = &sender;
		last_ = &sender;
	}
	void remove(Sender &sender)
	{
		if (!sender.scheduled_)
			return;
		(sender.prev_ ? sender.prev_->next_ : first_) = sender.next_;
		(sender.next_ ? sender.next_->prev_ : last_) = sender.prev_;
		sender.scheduled_ = false;
	}
	/** One turn for the first sender; it moves to the end if it has more. Not if empty(). */
	void run_turn(unsigned &budget)
	{
		Sender &sender = *first_;
		const unsigned turn = std::min(budget, kTurn);
		unsigned left = turn;
		remove(sender);
		if (sender.transmit(left))
			activate(sender);
		/* A turn that sent nothing also counts, so that the caller ends. */
		budget -= std::max(turn - left, 1u);
	}

private:
	Sender *first_ = nullptr;
	Sender *last_ = nullptr;
};

} // namespace tern
