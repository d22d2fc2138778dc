/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One thread of the fuzzer: its choices, and how it calls the kernel. */
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/tern-abi.h>

#include <initializer_list>
#include <span>

#include "uverbs_process.h"

namespace tern::guest::uverbs {

/** A struct of a call. */
struct Part {
	void *data = nullptr;
	size_t size = 0;
};

template <class T>
Part part(T &value)
{
	return {&value, sizeof(value)};
}

/** A command of uverbs' write interface. The fuzzer issues it by write() or by ioctl(). */
struct Command {
	uint32_t number;
	Part in, out = {}, driver_in = {}, driver_out = {};
	bool extended = false;
};

/** A method of the ioctl interface, whose attributes follow one by one. */
class Method {
public:
	Method(uint16_t object, uint16_t method) : object_(object), method_(method) {}

	/** A handle or descriptor; a new one is written back to it. */
	Method &handle(uint16_t id, uint64_t value = 0) { return add(id, 0, value); }
	Method &in(uint16_t id, const void *data, size_t size);
	template <class T>
	Method &in(uint16_t id, const T &value)
	{
		return in(id, &value, sizeof(value));
	}
	Method &out(uint16_t id, Part to);
	template <class T>
	Method &out(uint16_t id, T &value)
	{
		return out(id, part(value));
	}

	/** What the kernel wrote to attribute @i. */
	uint32_t result(size_t i) const { return static_cast<uint32_t>(attrs_[i].data); }

private:
	friend class Fuzzer;
	static constexpr size_t kMax = 20;

	Method &add(uint16_t id, size_t size, uint64_t data);

	uint16_t object_, method_;
	size_t count_ = 0;
	uint32_t outs_ = 0; /* which attributes are pointers that the kernel writes to */
	std::array<ib_uverbs_attr, kMax> attrs_{};
};

/** Has the kernel fail one of the next allocations of this thread: its "fail-nth". */
class FailingAllocation {
public:
	/** Prepares to fail allocations of the calling thread. Throws CheckFailed if the kernel has
	 * no fault injection. */
	void open();
	void arm(unsigned nth) const;
	/** Returns whether one has failed since arm(). No other one fails. */
	bool disarm() const;

private:
	Socket file_;
};

class Fuzzer {
public:
	Fuzzer(Process &process, uint64_t seed);

	/** Makes some objects of each kind in all contexts. */
	void prepare();
	/** Runs one operation, chosen at random, and counts how it ended. */
	void step();

	/* --- the kernel; all return zero or an errno --- */
	int call(const Command &command);
	int call(Method &method);

	/* --- choices --- */
	template <class T>
	T value(T valid)
	{
		return spoil() ? static_cast<T>(odd_number(valid)) : valid;
	}
	/** A number of entries: valid, or surely refused; one between might take all memory. */
	uint32_t size(uint32_t most, uint32_t limit);
	/** Any of these bits; sometimes others, too. */
	uint32_t flags(uint32_t known) { return value(static_cast<uint32_t>(rng.next()) & known); }
	template <class T>
	T one_of(std::initializer_list<T> choices)
	{
		return choices.begin()[rng.below(choices.size())];
	}
	/** A handle: alive, or sometimes stale, of another context or kind, or none at all. */
	uint32_t handle(Kind kind) { return object(kind).handle; }
	Object object(Kind kind);
	/** The same, rather of this type. */
	Object object(Kind kind, uint8_t type);
	/** An address that the kernel cannot use, or not all of it. */
	uint64_t bad_address();
	/** Addresses to register: of memory, or of rings of the device. */
	uint64_t memory(uint64_t &length);
	/** A global address: this card's own, sometimes another. */
	void destination(uint8_t (&gid)[16]);

	/* --- results --- */
	void created(Kind kind, const Object &object);
	int destroy(Kind kind);

	Process &process;
	Rng rng;
	Context *context;

private:
	/** Whether to make the next value a bad one. */
	bool spoil() { return hostile_ && rng.chance(1, 8); }
	uint64_t odd_number(uint64_t valid);

	int by_write(const Command &command);
	int by_ioctl(const Command &command);
	void run(size_t op);
	void run_starved(size_t op);
	size_t spoil_size(size_t size, size_t unit);
	char *place(char *pages, size_t size);
	void spoil(ib_uverbs_ioctl_hdr *header, uint32_t outs);

	int destroy_object(Kind kind, uint32_t handle);

	bool hostile_ = false;
	FailingAllocation failing_;
	char *input_, *output_; /* two pages each, and then one that cannot be reached */
};

/** What the fuzzer does, and how often compared with others. */
struct Operation {
	const char *name;
	unsigned weight;
	int (*run)(Fuzzer &);
	bool creates = false;
};

/** Of an operation that had nothing to work on, which is not counted. */
inline constexpr int kNothing = -1;

/** Destroys an object of @kind, as Fuzzer::destroy() does. */
template <Kind kind>
int destroy(Fuzzer &f)
{
	return f.destroy(kind);
}

/* The card's limit of receive requests, and the fuzzer's own limit of entries of any queue, which
 * is lower as the guest has little memory. */
inline constexpr uint32_t kMaxReceives = 1 << 16, kLarge = 1 << 11;

std::span<const Operation> object_operations();
std::span<const Operation> queue_operations();
std::span<const Operation> wq_operations();
std::span<const Operation> memory_operations();
const std::array<Operation, Stats::kOps> &operations(size_t &count);

/** Destroys an object of a kind, by the write or the ioctl interface. */
struct Destruction {
	uint32_t command;
	bool extended;
	uint16_t object, method;
};
const Destruction &destruction_of(Kind kind);

} // namespace tern::guest::uverbs
