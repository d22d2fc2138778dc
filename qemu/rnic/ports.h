/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The four interfaces through which the card reaches the world. QEMU, the
 * simulator, fuzzers and unit tests each bring their own. The card calls them from the
 * one thread that calls the card, and never expects them to call back.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

/** Bus address of the host's memory, as the card's DMA sees it. */
using Iova = uint64_t;

/** DMA. A false result means that (part of) the range is not reachable memory. */
class HostMemory {
public:
	virtual ~HostMemory() = default;

	virtual bool read(Iova from, std::span<std::byte> to) = 0;
	virtual bool write(Iova to, std::span<const std::byte> from) = 0;

	/** Stores @value little-endian at the 8-byte aligned @to with one store that no earlier
	 * write passes. */
	virtual bool store_release(Iova to, uint64_t value) = 0;
	/** Loads a little-endian value from the 4-byte aligned @from with one load that no later
	 * read passes. */
	virtual bool load_acquire(Iova from, uint32_t &value) = 0;

	/* Around an atomic operation, device memory included, which those of the card's other
	 * engines are not to meet. */
	virtual void lock_atomics() {}
	virtual void unlock_atomics() {}
};

/** Part of the host's memory. */
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

	/**
	 * Sends one Ethernet frame without FCS. False when the wire cannot take it now: the
	 * card keeps it and tries again after Rnic::wire_ready().
	 */
	virtual bool transmit(std::span<const std::byte> frame) = 0;

	enum class Lend {
		Done,
		Full,    /* as transmit() when it returns false */
		Refused, /* not this one: it is to be sent whole, by transmit() */
	};

	/**
	 * Sends a RoCE packet without ICRC and without copying its payload: @head is all that goes
	 * before that, and the receiving card takes the payload from this host's @payload, in that
	 * order. There is no pad. Without @payload @head is all of the packet, with its pad.
	 * @segment: unless it is 0, they are a burst (formats/burst.h) of packets with that much
	 * payload each.
	 */
	virtual Lend lend(std::span<const std::byte> head, std::span<const HostRange> payload,
	                  uint32_t segment)
	{
		static_cast<void>(head);
		static_cast<void>(payload);
		static_cast<void>(segment);
		return Lend::Refused;
	}

	/** Nobody reads what was lent any more when this returns. Packets whose payload was not
	 * taken by then are lost. The pieces of what the card receives just now may have given way
	 * to copies. */
	virtual void recall() {}
};

class Clock {
public:
	virtual ~Clock() = default;

	/** Nanoseconds since some fixed point; never goes back. */
	virtual uint64_t now() = 0;
};

struct Ports {
	HostMemory &memory;
	Interrupts &interrupts;
	Wire &wire;
	Clock &clock;
};

} // namespace tern
