// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/output_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace tern::wire {

namespace {

constexpr mode_t kMode = 0666; /* before the umask */

bool is_regular(std::FILE &file)
{
	struct stat status;
	return fstat(fileno(&file), &status) == 0 && S_ISREG(status.st_mode);
}

} // namespace

std::string open_output(const std::string &path, int how, OutputFile &file)
{
	/* Without O_NONBLOCK, open() waits for the reader of a FIFO; with it, it fails with ENXIO.
	 */
	const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | how, kMode);
	OutputFile opened(fd < 0 ? nullptr : fdopen(fd, how & O_APPEND ? "a" : "w"));
	if (!opened && fd >= 0)
		close(fd);
	if (!opened && errno != ENXIO)
		return path + ": " + std::strerror(errno);
	if (!opened || !is_regular(*opened))
		return path + ": not a regular file";
	file = std::move(opened);
	return {};
}

} // namespace tern::wire
