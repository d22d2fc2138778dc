/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/command_status.h"
#include "qemu/rnic/environment.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;
class Json;

/** The admin queue: the rings of commands from the driver and of their completions. */
class AdminQueue {
public:
	explicit AdminQueue(Card &card) : card_(card) {}

	/** Starts with the ring registers' values; false if they are invalid. */
	bool enable(Iova commands, Iova completions, uint32_t log_size);
	/** Admin doorbell: commands up to @pi are posted. */
	void ring(uint32_t pi);
	/** Executes commands for about @budget units, and begins a long one with what is left;
	 * returns true if there is more to do. */
	bool run(unsigned budget);

	/** With @hold, @answers more commands are answered; the next one is read and stays
	 * unanswered, and none follows, until hold() is called again. */
	void hold(bool hold, uint32_t answers)
	{
		hold_ = hold;
		answers_before_hold_ = answers;
	}

	/** Answers the @nth command from now on that may lack resources with NO_RESOURCE, and does
	 * not execute it. 0: none. */
	void refuse(uint32_t nth) { refuse_in_ = nth; }

	void describe(Json &to) const;

	bool raise_interrupts = false;

private:
	bool has_work() const { return running_ || ci_ != pi_; }
	bool holds() const { return hold_ && !answers_before_hold_; }
	/* These return false if a ring is not reachable. */
	bool step(unsigned &budget);
	bool fetch();
	/** Returns whether the command at ci_ is the one that refuse() has chosen. */
	bool refuses();
	/** 0 for null. */
	uint16_t offset_in_command(const void *field) const;
	bool complete(const CommandStatus &status, hw::tern_hw_aq_cqe &completion);
	Iova offset() const { return uint64_t{ci_ & ((1u << log_size_) - 1)} * hw::TERN_AQ_ENTRY; }

	Card &card_;
	Iova commands_ = 0;
	Iova completions_ = 0;
	uint32_t log_size_ = 0;
	uint32_t pi_ = 0;
	uint32_t ci_ = 0;
	/* The command at ci_, read once: the host cannot change it between its slices. */
	hw::tern_hw_aq_cmd command_;
	bool running_ = false;
	bool hold_ = false;
	uint32_t answers_before_hold_ = 0;
	uint32_t refuse_in_ = 0; /* commands up to the one that is refused; 0: none is */
	uint64_t spent_ = 0;     /* units, by the running command */
};

} // namespace tern
