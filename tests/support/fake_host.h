/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A host for a card under test: memory, interrupts, wire and clock that a test holds in its
 * hand. Nothing here takes time, sleeps or chooses at random.
 */
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "qemu/rnic/environment.h"
#include "qemu/rnic/names.h"
#include "tern/endian.hpp"

namespace tern::test {

/** A set of addresses, as ranges with both ends in it, so that the last byte below 2^64 has a
 * place. */
class RangeSet {
public:
	void add(uint64_t first, uint64_t last)
	{
		remove(first, last);
		ranges_[first] = last;
	}

	void remove(uint64_t first, uint64_t last)
	{
		auto it = at_or_after(first);
		while (it != ranges_.end() && it->first <= last) {
			const auto [from, to] = *it;
			it = ranges_.erase(it);
			if (from < first)
				ranges_[from] = first - 1;
			if (to > last)
				ranges_[last + 1] = to;
		}
	}

	bool overlaps(uint64_t first, uint64_t last) const
	{
		const auto it = at_or_after(first);
		return it != ranges_.end() && it->first <= last;
	}

	bool covers(uint64_t first, uint64_t last) const
	{
		for (auto it = at_or_after(first); it != ranges_.end() && it->first <= first;
		     ++it) {
			if (it->second >= last)
				return true;
			first = it->second + 1;
		}
		return false;
	}

	void clear() { ranges_.clear(); }
	bool empty() const { return ranges_.empty(); }

private:
	using Ranges = std::map<uint64_t, uint64_t>;

	/** The first range that ends at @address or later. */
	Ranges::const_iterator at_or_after(uint64_t address) const
	{
		auto it = ranges_.upper_bound(address);
		if (it != ranges_.begin() && std::prev(it)->second >= address)
			--it;
		return it;
	}

	Ranges ranges_;
};

/**
 * Host memory: what was mapped or allocated is reachable and reads as zero until it is written. Any
 * size may be mapped, for only what is written takes room. An access that is not
 * reachable as a whole fails and does nothing.
 */
class FakeMemory : public HostMemory {
public:
	bool read(Iova from, std::span<std::byte> to) override
	{
		reads_++;
		if (!reachable(from, to.size(), read_faults_))
			return false;
		peek(from, to);
		return true;
	}

	bool write(Iova to, std::span<const std::byte> from) override
	{
		writes_++;
		if (!reachable(to, from.size(), write_faults_))
			return false;
		poke(to, from);
		return true;
	}

	bool store_release(Iova to, uint64_t value) override
	{
		const Le<uint64_t> raw = value;
		return to % sizeof(raw) == 0 && write(to, bytes_of(raw));
	}

	bool load_acquire(Iova from, uint32_t &value) override
	{
		Le<uint32_t> raw;
		if (from % sizeof(raw) || !read(from, std::as_writable_bytes(std::span(&raw, 1))))
			return false;
		value = raw.get();
		return true;
	}

	/** Makes @size bytes at @begin reachable. */
	void map(Iova begin, uint64_t size)
	{
		if (size)
			mapped_.add(begin, begin + (size - 1));
	}
	/** Makes them unreachable; what was written is forgotten only when they are allocated anew.
	 */
	void unmap(Iova begin, uint64_t size)
	{
		if (size)
			mapped_.remove(begin, begin + (size - 1));
	}

	/** Unmaps them for good: their whole pages are freed, as alloc() never returns them again.
	 */
	void release(Iova begin, uint64_t size)
	{
		unmap(begin, size);
		const uint64_t end = (begin + size) / kPageSize;
		for (uint64_t number = (begin + kPageSize - 1) / kPageSize; number < end; number++)
			pages_.erase(number);
	}

	/** Maps @size bytes that nobody has, aligned to @align (a power of two). */
	Iova alloc(uint64_t size, uint64_t align = 64)
	{
		const Iova begin = (next_ + align - 1) & ~(align - 1);
		next_ = begin + std::max<uint64_t>(size, 1);
		map(begin, size);
		return begin;
	}

	enum class Fault { Reads, Writes, Both };
	/** From now on DMA that touches one of these bytes fails. */
	void fault(Iova begin, uint64_t size, Fault which = Fault::Both)
	{
		const Iova last = begin + (size - 1);
		if (which != Fault::Writes)
			read_faults_.add(begin, last);
		if (which != Fault::Reads)
			write_faults_.add(begin, last);
	}
	/** Ends all faults. */
	void heal()
	{
		read_faults_.clear();
		write_faults_.clear();
	}

	/** Accesses by the card, failed ones included. */
	uint64_t reads() const { return reads_; }
	uint64_t writes() const { return writes_; }

	/** The bytes themselves, as one who maps the memory sees them; empty when the card could
	 * not read them all. */
	std::vector<std::span<const std::byte>> pieces(Iova from, size_t size)
	{
		std::vector<std::span<const std::byte>> all;
		if (reachable(from, size, read_faults_))
			for_each_page(from, size,
			              [&](uint64_t number, size_t offset, size_t, size_t n) {
				              all.emplace_back(page(number).data() + offset, n);
			              });
		return all;
	}

	/* The host's own accesses: they see no fault and are not counted. */

	virtual void peek(Iova from, std::span<std::byte> to) const
	{
		for_each_page(from, to.size(),
		              [&](uint64_t number, size_t offset, size_t done, size_t n) {
			              const auto page = pages_.find(number);
			              if (page == pages_.end())
				              std::memset(to.data() + done, 0, n);
			              else
				              std::memcpy(to.data() + done,
				                          page->second->data() + offset, n);
		              });
	}

	virtual void poke(Iova to, std::span<const std::byte> from)
	{
		for_each_page(to, from.size(),
		              [&](uint64_t number, size_t offset, size_t done, size_t n) {
			              std::memcpy(page(number).data() + offset, from.data() + done,
			                          n);
		              });
	}

	template <typename T>
	T get(Iova from) const
	{
		static_assert(std::is_trivially_copyable_v<T>);
		T value;
		peek(from, std::as_writable_bytes(std::span(&value, 1)));
		return value;
	}

	template <typename T>
	void put(Iova to, const T &value)
	{
		poke(to, bytes_of(value));
	}

	std::vector<std::byte> bytes(Iova from, size_t size) const
	{
		std::vector<std::byte> result(size);
		peek(from, result);
		return result;
	}

private:
	static constexpr size_t kPageSize = 4096;
	using Page = std::array<std::byte, kPageSize>;

	template <typename T>
	static std::span<const std::byte> bytes_of(const T &value)
	{
		static_assert(std::is_trivially_copyable_v<T>);
		return std::as_bytes(std::span(&value, 1));
	}

	Page &page(uint64_t number)
	{
		auto &page = pages_[number];
		if (!page)
			page = std::make_unique<Page>();
		return *page;
	}

	bool reachable(Iova begin, size_t size, const RangeSet &faults) const
	{
		if (size == 0)
			return true;
		const Iova last = begin + (size - 1);
		return last >= begin && mapped_.covers(begin, last) &&
		       (faults.empty() || !faults.overlaps(begin, last));
	}

	/** Calls @f(page number, offset in page, bytes done before, bytes here). */
	template <typename F>
	static void for_each_page(Iova begin, size_t size, F f)
	{
		for (size_t done = 0; done < size;) {
			const Iova here = begin + done;
			const size_t offset = here % kPageSize;
			const size_t n = std::min(size - done, kPageSize - offset);
			f(here / kPageSize, offset, done, n);
			done += n;
		}
	}

	RangeSet mapped_;
	RangeSet read_faults_;
	RangeSet write_faults_;
	std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
	Iova next_ = 0x10000;
	uint64_t reads_ = 0;
	uint64_t writes_ = 0;
};

/** Keeps count of the interrupts raised. */
class RecordedInterrupts : public Interrupts {
public:
	void raise(unsigned vector) override { raised_.push_back(vector); }

	/** The vectors, in the order in which they were raised since the last clear(). */
	const std::vector<unsigned> &raised() const { return raised_; }
	size_t count(unsigned vector) const
	{
		return static_cast<size_t>(std::count(raised_.begin(), raised_.end(), vector));
	}
	void clear() { raised_.clear(); }

private:
	std::vector<unsigned> raised_;
};

/** Keeps the frames sent, and refuses more when told so. Takes loans only when told so. */
class RecordedWire : public Wire {
public:
	using Frame = std::vector<std::byte>;

	bool transmit(std::span<const std::byte> frame) override
	{
		if (!take_room(frame))
			return false;
		frames_.emplace_back(frame.begin(), frame.end());
		return true;
	}
	Destination full() const override { return full_; }
	/** A MAC whose frames go to a destination of their own, and whether that has room. */
	struct Road {
		Destination destination;
		bool room;
	};
	std::map<std::array<std::byte, 6>, Road> roads;

	struct Lent {
		Frame head;
		std::vector<HostRange> payload;
		uint32_t segment;
		Loan loan;
	};
	Lend lend(std::span<const std::byte> head, std::span<const HostRange> payload,
	          uint32_t segment, const Loan &loan) override
	{
		if (!(segment ? takes_bursts : payload.empty() ? takes_bare : borrows))
			return Lend::Refused;
		if (!take_room(head))
			return Lend::Full;
		loans_.push_back({{head.begin(), head.end()},
		                  {payload.begin(), payload.end()},
		                  segment,
		                  loan});
		return Lend::Done;
	}
	/** Revokes all that @what concerns; is a recall only if that is something. */
	uint64_t recall(const Recall &what) override
	{
		const auto revoked = std::erase_if(
		        loans_, [&](const Lent &lent) { return what.concerns(lent.loan); });
		if (!revoked)
			return 0;
		recalls++;
		if (on_recall)
			on_recall();
		return revoked;
	}
	/** Whether it takes what it is offered. */
	bool borrows = false;
	/** ... and packets that lack nothing but the ICRC. */
	bool takes_bare = false;
	/** ... and bursts. */
	bool takes_bursts = false;
	unsigned recalls = 0;
	std::function<void()> on_recall;
	/** What was lent and neither taken nor recalled, oldest first. */
	std::deque<Lent> &loans() { return loans_; }

	/** Takes @frames more, then refuses. */
	void accept_only(size_t frames) { room_ = frames; }
	void accept_all() { room_ = kUnlimited; }

	/** Frames sent and not yet taken, oldest first. */
	const std::deque<Frame> &frames() const { return frames_; }
	/** Takes the oldest frame; empty when there is none. */
	Frame take()
	{
		if (frames_.empty())
			return {};
		Frame frame = std::move(frames_.front());
		frames_.pop_front();
		return frame;
	}
	void clear() { frames_.clear(); }
	size_t refused() const { return refused_; }

private:
	static constexpr size_t kUnlimited = SIZE_MAX;

	bool take_room(std::span<const std::byte> frame)
	{
		std::array<std::byte, 6> mac;
		std::copy_n(frame.begin(), mac.size(), mac.begin());
		const auto road = roads.find(mac);
		full_ = road == roads.end() ? 0 : road->second.destination;
		if (room_ == 0 || (road != roads.end() && !road->second.room)) {
			refused_++;
			return false;
		}
		if (room_ != kUnlimited)
			room_--;
		return true;
	}

	std::deque<Frame> frames_;
	std::deque<Lent> loans_;
	size_t room_ = kUnlimited;
	size_t refused_ = 0;
	Destination full_ = 0;
};

/** Time that passes only when the test says so. */
class ManualClock : public Clock {
public:
	uint64_t now() override { return now_; }

	void advance(uint64_t ns) { now_ += ns; }
	/** Goes on to @ns; stays when that is past. */
	void advance_to(uint64_t ns) { now_ = std::max(now_, ns); }

private:
	uint64_t now_ = 0;
};

/** Notes a line of what it is told. */
class RecordingObserver : public Observer {
public:
	std::vector<std::string> lines;

private:
	template <typename... Numbers>
	void note(std::string what, Numbers... numbers)
	{
		((what += " " + std::to_string(numbers)), ...);
		lines.push_back(std::move(what));
	}

	void command_started(uint16_t opcode, uint16_t) override
	{
		lines.push_back("command " + std::string(command_name(opcode)));
	}
	void command_done(uint16_t opcode, uint16_t, hw::tern_hw_aq_status status,
	                  uint16_t) override
	{
		lines.push_back("done " + std::string(command_name(opcode)) + " " +
		                std::string(command_status_name(status)));
	}
	void state_changed(uint32_t qpn, hw::tern_hw_qp_state, hw::tern_hw_qp_state to) override
	{
		note("state", qpn, to);
	}
	void nak_queued(uint32_t qpn, uint32_t psn, uint8_t syndrome) override
	{
		note("nak_queued", qpn, psn, syndrome);
	}
	void nak_received(uint32_t qpn, uint32_t psn, uint8_t syndrome) override
	{
		note("nak_received", qpn, psn, syndrome);
	}
	void retried(uint32_t qpn, uint32_t psn, uint8_t left) override
	{
		note("retried", qpn, psn, left);
	}
	void timed_out(uint32_t qpn, uint32_t psn) override { note("timed_out", qpn, psn); }
	void dropped(hw::tern_hw_stat reason, uint32_t qpn) override
	{
		note("dropped " + std::string(stat_name(reason)), qpn);
	}
	void page_fault(uint32_t qpn, uint32_t key, uint64_t addr, uint32_t length) override
	{
		note("page_fault", qpn, key, addr, length);
	}
};

/** All of them, for one card. */
struct FakeHost {
	FakeMemory memory;
	RecordedInterrupts interrupts;
	RecordedWire wire;
	ManualClock clock;
	RecordingObserver observer;

	Ports ports() { return {memory, interrupts, wire, clock, observer}; }
};

} // namespace tern::test
