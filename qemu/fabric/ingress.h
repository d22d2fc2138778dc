/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "qemu/fabric/event_loop.h"
#include "qemu/fabric/port.h"

namespace tern::fabric {

/** Priority-based flow control of a switch. Sizes are those of one port's frames of one priority
 * that the switch holds, in bytes. */
struct PfcConfig {
	bool is_lossless(uint8_t priority) const { return lossless >> priority & 1; }

	uint8_t lossless = 0;          /* bit N: priority N is not dropped but paused */
	uint64_t xoff = 96 * 1024;     /* the sender is paused above this */
	uint64_t xon = 64 * 1024;      /* a paused sender may continue at this or below */
	uint64_t headroom = 96 * 1024; /* accepted above xoff; more is dropped */
	uint64_t watchdog = 0; /* ns, Port::guard_against_storms(); 0: the switch has none */
};

/** Returns how many bytes may arrive over @link after the receiver has decided to pause the sender:
 * the pause frame and the sender's last frame each wait for a frame and take the link's delay. */
uint64_t headroom_for(const LinkConfig &link);

/** Counts the frames of lossless priorities that a switch holds from one port, and pauses the
 * sender to bound them. */
class Ingress {
public:
	Ingress(EventLoop &loop, Port &port, const PfcConfig &config)
	        : loop_(loop), port_(port), config_(config)
	{
	}

	/** Takes a frame of a lossless priority in; false if its sender has exceeded the headroom,
	 * and the frame is to be dropped. */
	bool take(uint8_t priority, uint64_t size);
	void release(uint8_t priority, uint64_t size);
	/** Pauses the sender again, which has forgotten its pauses with the link. */
	void link_returned();
	uint64_t held(uint8_t priority) const { return held_[priority]; }
	uint64_t dropped() const { return dropped_; }

private:
	void pause(uint8_t priority);

	EventLoop &loop_;
	Port &port_;
	const PfcConfig &config_;
	std::array<uint64_t, kPriorities> held_{};
	std::array<uint64_t, kPriorities> repeat_at_{}; /* the pause, ns; 0: not paused */
	uint64_t dropped_ = 0;
};

/** Counts the copies that a switch holds of each flooded frame. The sender has sent one frame, so
 * the switch releases its room when the last copy has left. */
class CopyCounts {
public:
	/** Returns a number for a frame of @copies copies, never 0. */
	uint32_t add(uint32_t copies);
	/** Call this when a copy of frame @number has left. Returns whether it was the last copy;
	 * the number is then free for another frame. */
	bool remove(uint32_t number);

private:
	std::vector<uint32_t> left_{0}; /* by number */
	std::vector<uint32_t> unused_;  /* numbers */
};

} // namespace tern::fabric
