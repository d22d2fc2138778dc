// SPDX-License-Identifier: GPL-2.0-or-later
/* BPF programs on the provider's probes and the driver's tracepoints. */
#pragma once

#include <bpf/libbpf.h>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "options.h"

namespace tern::tools {

/** A field of a tracepoint's entry as a BPF program reads it. */
struct EntryField {
	const char *name;
	size_t offset; /* in bytes */
	size_t size;
};

/**
 * The name of the first of @fields that is missing in @format, a format file of tracefs, or has
 * another offset or size there; empty if all fields match.
 */
std::string find_mismatch(std::istream &format, std::span<const EntryField> fields);

/**
 * Programs that are attached until this object is destroyed. Each belongs to a file descriptor, so
 * the kernel also detaches them when the process ends, even by a signal. Methods throw Error.
 */
class Attachments {
public:
	/** Silences libbpf, whose messages are not for users. */
	Attachments();

	/** Attaches to @probe in process @pid; if zero, in all processes, also in later ones. */
	void usdt(bpf_program *program, uint32_t pid, const std::string &library,
	          const char *probe);

	/** Attaches to tracepoint @name of the driver, whose entries must have @fields. */
	void tracepoint(bpf_program *program, const char *name, std::span<const EntryField> fields);

private:
	struct Destroy {
		void operator()(bpf_link *link) const { bpf_link__destroy(link); }
	};
	void keep(bpf_link *link, const std::string &what);

	std::vector<std::unique_ptr<bpf_link, Destroy>> links_;
};

/** A skeleton of bpftool's, opened but not loaded; the constructor throws Error. */
template <class Skeleton>
class Opened {
public:
	Opened() : skeleton_(Skeleton::open())
	{
		if (!skeleton_)
			throw Error("cannot read the BPF program");
	}
	~Opened() { Skeleton::destroy(skeleton_); }
	Opened(const Opened &) = delete;
	Opened &operator=(const Opened &) = delete;
	Skeleton *operator->() const { return skeleton_; }
	Skeleton *get() const { return skeleton_; }

private:
	Skeleton *skeleton_;
};

/** Throws Error if @error, a negative errno of loading, is not zero. */
void check_loaded(int error);

} // namespace tern::tools
