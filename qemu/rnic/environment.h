/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interfaces between the card and its environment. QEMU, the simulator, fuzzers and unit
 * tests each implement them. The card calls them from the thread that called the card, and they
 * must not call back into it.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qemu/rnic/loan.h"
#include "qemu/rnic/observer.h"

namespace tern {

/** Bus address in the host's memory, as the card's DMA uses it. */
using Iova = uint64_t;

/** DMA. Returns false if any part of the range is not accessible memory. */
class HostMemory {
public:
	virtual ~HostMemory() = default;

	virtual bool read(Iova from, std::span<std::byte> to) = 0;
	virtual bool write(Iova to, std::span<const std::byte> from) = 0;

	/** Stores @value little-endian at the 8-byte aligned @to with one store, ordered after all
	 * earlier writes. */
	virtual bool store_release(Iova to, uint64_t value) = 0;
	/** Loads a little-endian value from the 4-byte aligned @from with one load, ordered before
	 * all later reads. */
	virtual bool load_acquire(Iova from, uint32_t &value) = 0;

	/* Bracket one atomic operation on host or device memory, to exclude those of the card's
	 * other engines. */
	virtual void lock_atomics() {}
	virtual void unlock_atomics() {}
};

/** A range of the host's memory. */
struct HostRange {
	Iova iova;
	uint32_t size;
};

class Interrupts {
public:
	virtual ~Interrupts() = default;

	/** Raises MSI-X @vector once. */
	virtual void raise(unsigned vector) = 0;
};

class Wire {
public:
	virtual ~Wire() = default;

	/** A place that frames go to; each has room, or no room, of its own. */
	using Destination = uint8_t;
	/** Destinations are below this. */
	static constexpr Destination kDestinations = 65;

	/**
	 * Sends one Ethernet frame without FCS. False when its destination has no room: the card
	 * sends it again after Rnic::wire_ready(full()).
	 */
	virtual bool transmit(std::span<const std::byte> frame) = 0;
	/** The destination that had no room for the last frame refused. */
	virtual Destination full() const { return 0; }

	enum class Lend {
		Done,
		Full,    /* no room, as when transmit() returns false */
		Refused, /* cannot be lent: send it by transmit() */
	};

	/**
	 * Lends a RoCE packet: sends it without ICRC and without copying its payload. @head has all
	 * bytes before the payload; the receiver reads @payload from this host's memory. There is
	 * no pad. With an empty @payload, @head is the whole packet with its pad. @segment: if not
	 * 0, the packet is a burst (formats/burst.h) of packets with that much payload each.
	 * @loan: what recall() is to find it by.
	 */
	virtual Lend lend(std::span<const std::byte> head, std::span<const HostRange> payload,
	                  uint32_t segment, const Loan &loan)
	{
		static_cast<void>(head);
		static_cast<void>(payload);
		static_cast<void>(segment);
		static_cast<void>(loan);
		return Lend::Refused;
	}

	/**
	 * Takes back the lent payload that @what concerns: when this returns, no peer reads it. If
	 * @what is a key, the wire should copy the payload of packets that the peer has not
	 * received; otherwise it revokes these packets, which are lost. The pieces of a payload
	 * that the card is receiving may now refer to copies. Returns the number of packets
	 * revoked, with each packet of a burst counted.
	 */
	virtual uint64_t recall(const Recall &what)
	{
		static_cast<void>(what);
		return 0;
	}
};

class Clock {
public:
	virtual ~Clock() = default;

	/** Nanoseconds since a fixed point; monotonic. */
	virtual uint64_t now() = 0;
};

struct Ports {
	HostMemory &memory;
	Interrupts &interrupts;
	Wire &wire;
	Clock &clock;
	Observer &observer = no_observer;
};

} // namespace tern
