/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>

namespace tern {

/**
 * Work of an object that needs no wire and can be long, such as a flush: it is done in slices, so
 * that others do not wait for it. Units of work are those of a packet's budget.
 */
class Chore {
public:
	Chore() = default;
	Chore(const Chore &) = delete;
	Chore &operator=(const Chore &) = delete;

	/** Does up to @budget units of the work and subtracts them. Returns true if there is
	 * more. */
	virtual bool work(unsigned &budget) = 0;

protected:
	~Chore() { link_.leave(); }

private:
	friend class Chores;

	struct Link {
		explicit Link(Chore *chore) : chore(chore) {}
		void leave()
		{
			prev->next = next;
			next->prev = prev;
			prev = next = this;
		}

		Link *prev = this;
		Link *next = this;
		Chore *chore;
	};

	Link link_{this};
};

/** The chores that have something to do, which take turns. Must outlive them. */
class Chores {
public:
	bool empty() const { return head_.next == &head_; }
	/** Adds @chore at the end, if it is not there. */
	void add(Chore &chore)
	{
		Chore::Link &link = chore.link_;
		if (link.next != &link)
			return;
		link.prev = head_.prev;
		link.next = &head_;
		head_.prev->next = &link;
		head_.prev = &link;
	}
	/** Gives turns until about @budget units are used up or nothing is left. */
	void run(unsigned budget)
	{
		while (budget && !empty()) {
			Chore &chore = *head_.next->chore;
			const unsigned turn = std::min(budget, kTurn);
			unsigned left = turn;
			chore.link_.leave();
			if (chore.work(left))
				add(chore);
			/* A turn without work also costs one unit, so that the loop ends. */
			budget -= std::max(turn - left, 1u);
		}
	}

private:
	/* Units of one turn. */
	static constexpr unsigned kTurn = 16;

	Chore::Link head_{nullptr};
};

} // namespace tern
