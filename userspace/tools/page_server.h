// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tern::tools {

/** Answers each HTTP GET on a TCP port with the same page, one client after the other. */
class PageServer {
public:
	/** Listens on IPv4 address @address. A client may take @limit. Throws Error. */
	PageServer(const std::string &address, uint16_t port,
	           std::chrono::milliseconds limit = std::chrono::seconds(2));
	~PageServer();
	PageServer(const PageServer &) = delete;
	PageServer &operator=(const PageServer &) = delete;

	/** Readable when a client waits. */
	int fd() const { return fd_; }

	/** Answers one client that waits; gives up on one that is too slow. */
	void answer(const std::string &page) const;

private:
	int fd_;
	std::chrono::milliseconds limit_;
};

} // namespace tern::tools
