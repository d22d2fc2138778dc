/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "qemu/wire/capture_file.h"

namespace tern::wire {

/** Writes frames to a file as they were before faults. */
class Capture {
public:
	struct Options {
		/* addresses of the hosts whose frames are captured; empty: all */
		std::vector<uint64_t> hosts;
		/* The ends of links of a topology at which frames are captured; empty: those at
		 * cards. */
		std::vector<unsigned> links;
		/* The file is a pcap whose packets are laid out as those that Lumina mirrors. */
		bool mirror = false;
	};

	/** Starts a new file: pcapng if its name ends so, else pcap. Returns an error message, or
	 * empty. */
	std::string start(const std::string &path, Options options);
	/** Completes the file. Returns an error message, or empty. */
	std::string stop();

	bool running() const { return file_ != nullptr; }
	const Options &options() const { return options_; }
	uint64_t frames() const { return frames_; }
	void frame(const Captured &captured) { frames_ += file_->write(captured); }

private:
	std::unique_ptr<CaptureFile> file_;
	Options options_;
	uint64_t frames_ = 0;
};

} // namespace tern::wire
