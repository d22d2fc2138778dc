// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace tern::tools {

/** Answers each HTTP GET on a TCP port with the same page, one client after the other. */
class PageServer {
public:
	/** Listens on IPv4 address @address. Throws Error. */
	PageServer(const std::string &address, uint16_t port);
	~PageServer();
	PageServer(const PageServer &) = delete;
	PageServer &operator=(const PageServer &) = delete;

	/** Readable when a client waits. */
	int fd() const { return fd_; }

	/** Answers one client that waits; gives up on one that is silent for a second. */
	void answer(const std::string &page) const;

private:
	int fd_;
};

} // namespace tern::tools
