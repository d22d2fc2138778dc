/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace tern::wire {

struct CloseFile {
	void operator()(std::FILE *file) const { std::fclose(file); }
};

using OutputFile = std::unique_ptr<std::FILE, CloseFile>;

/**
 * Opens the file at @path for writing, and creates it if there is none. @how is O_TRUNC or
 * O_APPEND. Only a regular file is opened: a write to a FIFO or a terminal may wait for its reader,
 * and tern-switch forwards all frames in the thread that writes. Returns an error message, or
 * empty.
 */
std::string open_output(const std::string &path, int how, OutputFile &file);

} // namespace tern::wire
