/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <optional>
#include <string>
#include <sys/socket.h>
#include <sys/types.h>

#include "qemu/shm/fd.h"

namespace tern::wire {

/**
 * Listens at a path and removes its socket at the end. Replaces a socket on which nobody listens.
 * The path appears when connections are taken, so a program may wait for it and then connect.
 */
class UnixListener {
public:
	/** @type: SOCK_STREAM or SOCK_SEQPACKET. */
	explicit UnixListener(int type) : type_(type) {}
	~UnixListener();
	UnixListener(const UnixListener &) = delete;
	UnixListener &operator=(const UnixListener &) = delete;

	/** Returns an error message, or empty. */
	std::string open(const std::string &path);
	/** The next connection (non-blocking), if there is one. */
	Fd accept();
	int fd() const { return fd_.get(); }

private:
	/** Identifies a file, whatever its path is. */
	struct FileId {
		bool operator==(const FileId &) const = default;

		dev_t device;
		ino_t inode;
	};
	static std::optional<FileId> file_at(const std::string &path);

	const int type_;
	Fd fd_;
	std::string path_;
	std::optional<FileId> file_;
};

} // namespace tern::wire
