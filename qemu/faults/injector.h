/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "qemu/faults/fault_set.h"

namespace tern::faults {

/** Delivers one frame to one destination. The injector may change the frame before. */
class Transfer {
public:
	virtual ~Transfer() = default;

	/** Returns the bytes of the frame, which may be changed: at least its headers. */
	virtual std::span<std::byte> headers() = 0;
	/** Returns all bytes of the frame, which may be changed, its payload and ICRC included. */
	virtual std::span<std::byte> whole() = 0;
	/** Delivers the frame, once for each call. Returns whether the destination has room for
	 * more. */
	virtual bool deliver() = 0;
	/** Returns a transfer of the same frame that needs nothing of this one. */
	virtual std::unique_ptr<Transfer> keep() = 0;
};

/**
 * The injector applies faults to frames on their way to some destinations. It holds back the frames
 * that are delayed or overtaken.
 */
class Injector {
public:
	/** The time since any fixed moment. */
	using Time = std::chrono::nanoseconds;

	/** Both references must outlive this. */
	Injector(FaultSet &faults, const AddressTable &addresses)
	        : faults_(faults), addresses_(addresses)
	{
	}

	/** Whether frames may bypass the injector: no fault is set, and no frame is held back. */
	bool idle() const { return !faults_.any() && held_.empty(); }
	/** What is decided about one frame for one destination. */
	struct Verdict {
		FaultSet::Decision decision;
		unsigned to;
		size_t size;
		bool roce;
	};
	/** Decides what happens to a frame for @to, and notes it in events(). @size: the memory
	 * that the frame takes while it is held back, in bytes. */
	Verdict decide(const Passage &passage, unsigned to, size_t size);
	/** Applies @verdict to the frame: delivers it, drops it, or holds it back. Returns whether
	 * the destination has room for more. */
	bool apply(const Verdict &verdict, Transfer &transfer, Time now);
	/** The faults of the last frame, unless they were cleared. */
	const std::vector<FaultEvent> &events() const { return events_; }
	void clear_events() { events_.clear(); }

	/** Returns whether frames are held back. If so, next_due() returns when the first of them
	 * has to go, and release_due() delivers those whose time has come. */
	bool holds() const { return !held_.empty(); }
	Time next_due() const { return held_.begin()->first; }
	void release_due(Time now);
	/** Destination @to is gone. */
	void forget(unsigned to);

private:
	/* A frame that is held back. It is delivered when its time has come, or after the last of
	 * the frames that overtake it. */
	struct Held {
		unsigned to;
		size_t size; /* in memory */
		std::unique_ptr<Transfer> transfer;
		unsigned copies;
		std::optional<uint64_t> last_arrival; /* none: held back by a delay */
	};
	/* by time; those of the same time in their order */
	using HeldFrames = std::multimap<Time, Held>;

	struct Destination {
		/* counts the frames that have reached the destination while faults were set */
		uint64_t arrivals = 0;
		/* those held back to be overtaken, by their last_arrival */
		std::multimap<uint64_t, HeldFrames::iterator> to_be_overtaken;
	};

	Destination &destination(unsigned to);
	void change(const Verdict &verdict, Transfer &transfer);
	void hold(const Verdict &verdict, Transfer &transfer, Time now);
	bool deliver(unsigned to, Transfer &transfer, unsigned copies);
	bool release_overtaken(unsigned to);
	bool release(HeldFrames::iterator held);

	FaultSet &faults_;
	const AddressTable &addresses_;
	std::vector<FaultEvent> events_;
	std::vector<Destination> destinations_;
	HeldFrames held_;
	size_t held_bytes_ = 0;
};

} // namespace tern::faults
