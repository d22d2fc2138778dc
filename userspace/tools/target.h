// SPDX-License-Identifier: GPL-2.0-or-later
/* What the tools look at: this kernel, a process, the provider's library. */
#pragma once

#include <cstdint>
#include <string>

namespace tern::tools {

/** Throws Error unless this process is root and the kernel has BTF. */
void check_system();

/**
 * The library that has the probes: @given if not empty, or the one that process @pid has loaded,
 * or, without @pid (zero), the one that libibverbs loads. Throws Error if there is none.
 */
std::string find_provider(const std::string &given, uint32_t pid);

/** A process. Not mistaken for a later one that has its number. */
class Process {
public:
	/** Process @pid; zero stands for any process, which never ends. Throws Error. */
	explicit Process(uint32_t pid);
	~Process();
	Process(const Process &) = delete;
	Process &operator=(const Process &) = delete;

	/** Also if its parent has not waited for it yet. */
	bool has_ended() const;

private:
	const uint32_t pid_;
	const int fd_; /* -1: there is none */
};

/** Whether there is a process @pid that has not ended. */
bool is_alive(uint32_t pid);

} // namespace tern::tools
