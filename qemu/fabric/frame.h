/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "qemu/rnic/formats/packet.h"

namespace tern::fabric {

class FramePool;

/** An Ethernet frame without FCS on its way through the fabric. */
struct Frame {
	/** The frame without its payload, if that stays with the sender (payload is not 0). */
	std::span<std::byte> bytes() { return std::span(data, stored); }
	std::span<const std::byte> bytes() const { return std::span(data, stored); }
	/** Loads this structure and the headers that each switch reads, up to the IP header's
	 * type of service, into the cache. Call this shortly before a frame leaves a queue. */
	void prefetch() const { __builtin_prefetch(this); }
	/** Loads the other headers. */
	void prefetch_headers() const
	{
		__builtin_prefetch(reinterpret_cast<const std::byte *>(this) + kCacheLine);
	}

	static constexpr size_t kCacheLine = 64;

	FramePool *pool;
	Frame *next;           /* the next frame of the same FrameList */
	uint64_t next_arrival; /* when @next arrives, in ns, if both are on a link */
	uint16_t size_class;   /* of the pool */
	uint16_t stored;
	uint16_t payload; /* bytes that are not in data */
	uint16_t size;    /* on the wire, of all */
	uint16_t ingress; /* the port by which it came into the switch that holds it */
	uint8_t priority;
	bool has_icrc;   /* or lacks it, as a packet that is lent (Wire::lend()) */
	uint32_t copies; /* in CopyCounts of the switch that holds it; 0: it is the only one */
	std::byte data[];
};

struct ReturnFrame {
	void operator()(Frame *frame) const;
};
using FramePtr = std::unique_ptr<Frame, ReturnFrame>;

/** A FIFO of frames, linked by Frame::next. An array for each queue would cost one more cache miss
 * for each frame. */
class FrameList {
public:
	FrameList() = default;
	FrameList(const FrameList &) = delete;
	FrameList &operator=(const FrameList &) = delete;
	~FrameList() { clear(); }

	bool empty() const { return !first_; }
	Frame &front() const { return *first_; }
	Frame &back() { return *last_; }
	void push_back(FramePtr frame)
	{
		frame->next = nullptr;
		(first_ ? last_->next : first_) = frame.get();
		last_ = frame.release();
	}
	FramePtr pop_front() { return FramePtr(std::exchange(first_, first_->next)); }
	void clear()
	{
		while (!empty())
			pop_front();
	}

private:
	Frame *first_ = nullptr;
	Frame *last_ = nullptr; /* if there is a first one */
};

/** Frames for reuse, the last returned first, as the cache still has it. Outlives its frames. */
class FramePool {
public:
	/** A copy of a whole frame, at most kMaxEthFrame bytes. */
	FramePtr make(std::span<const std::byte> bytes, uint8_t priority)
	{
		FramePtr frame = make(bytes, priority, 0);
		frame->size = static_cast<uint16_t>(bytes.size());
		frame->has_icrc = true;
		return frame;
	}
	/** A packet as Wire::lend() takes it, of which @payload bytes are not copied. */
	FramePtr lend(std::span<const std::byte> head, size_t payload, uint8_t priority)
	{
		FramePtr frame = make(head, priority, payload);
		frame->size = static_cast<uint16_t>(whole_size(head.size(), payload));
		frame->has_icrc = false;
		return frame;
	}
	/** Another one like @frame. */
	FramePtr copy(const Frame &frame)
	{
		FramePtr other = make(frame.bytes(), frame.priority, frame.payload);
		other->size = frame.size;
		other->ingress = frame.ingress;
		other->copies = frame.copies;
		other->has_icrc = frame.has_icrc;
		return other;
	}
	/** Returns the memory that a frame with @size stored bytes takes, at most kMaxEthFrame. */
	static constexpr size_t slot_size(size_t size) { return stride(class_of(size)); }
	/** Returns the number of frames that have not been returned to the pool. */
	size_t used() const
	{
		size_t used = made_;
		for (const auto &unused : unused_)
			used -= unused.size();
		return used;
	}

private:
	friend struct ReturnFrame;

	/* The most bytes that a frame of each class has room for. What is in flight does not fit
	 * into a cache, so it is kept dense: headers take two cache lines. A larger frame takes at
	 * most seven times its size. */
	static constexpr std::array<size_t, 4> kCapacities{2 * Frame::kCacheLine - sizeof(Frame),
	                                                   512, 2048, kMaxEthFrame};
	static constexpr size_t kChunk = 64 << 10;

	static constexpr uint16_t class_of(size_t size)
	{
		uint16_t size_class = 0;
		while (size > kCapacities[size_class])
			size_class++;
		return size_class;
	}
	static constexpr size_t stride(uint16_t size_class)
	{
		const size_t size = sizeof(Frame) + kCapacities[size_class];
		return (size + Frame::kCacheLine - 1) & ~(Frame::kCacheLine - 1);
	}

	FramePtr make(std::span<const std::byte> bytes, uint8_t priority, size_t payload)
	{
		const uint16_t size_class = class_of(bytes.size());
		auto &unused = unused_[size_class];
		if (unused.empty())
			grow(size_class);
		FramePtr frame(unused.back());
		unused.pop_back();
		frame->stored = static_cast<uint16_t>(bytes.size());
		frame->payload = static_cast<uint16_t>(payload);
		frame->priority = priority;
		frame->copies = 0;
		std::memcpy(frame->data, bytes.data(), bytes.size());
		return frame;
	}
	void grow(uint16_t size_class);
	void take_back(Frame *frame) { unused_[frame->size_class].push_back(frame); }

	std::vector<std::unique_ptr<std::byte[]>> chunks_;
	std::array<std::vector<Frame *>, kCapacities.size()> unused_;
	size_t made_ = 0;
};

inline void ReturnFrame::operator()(Frame *frame) const
{
	frame->pool->take_back(frame);
}

} // namespace tern::fabric
