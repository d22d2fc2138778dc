// SPDX-License-Identifier: GPL-2.0-or-later
#include "target.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "options.h"

namespace tern::tools {

namespace {

namespace fs = std::filesystem;

constexpr const char *kBtf = "/sys/kernel/btf/vmlinux";
/* It names the provider to libibverbs, which appends the version of its private interface. */
constexpr const char *kDriver = "/etc/libibverbs.d/tern.driver";
constexpr const char *kVersion = TERN_PROVIDER_SUFFIX;

std::string process(uint32_t pid)
{
	return "/proc/" + std::to_string(pid);
}

/* The header of glibc 2.36 lacks the linkage of C. */
int open_process(uint32_t pid)
{
	return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

Error no_provider(const std::string &path, const std::string &reason)
{
	return Error("no provider: " + path + ": " + reason);
}

std::string existing(const std::string &path)
{
	if (access(path.c_str(), F_OK) != 0)
		throw no_provider(path, std::strerror(errno));
	return path;
}

/*
 * Through the root of the process, which may be in a container. The path stays as it is: in
 * canonical form it would lead to a file in the mount namespace of this program.
 */
std::string provider_of(uint32_t pid)
{
	if (!is_alive(pid))
		throw Error("there is no process " + std::to_string(pid));
	std::ifstream maps(process(pid) + "/maps");
	for (std::string line; std::getline(maps, line);) {
		const size_t path = line.find('/');
		if (path == std::string::npos)
			continue;
		const std::string name = fs::path(line.substr(path)).filename();
		if (name.starts_with("libtern.so.") || name == std::string("libtern") + kVersion)
			return existing(process(pid) + "/root" + line.substr(path));
	}
	throw Error("process " + std::to_string(pid) + " has not loaded Tern's provider");
}

std::string installed_provider()
{
	std::ifstream driver(kDriver);
	std::string word, name;

	if (!(driver >> word >> name) || word != "driver")
		throw Error(std::string("Tern's provider is not installed: no ") + kDriver);
	if (!name.starts_with('/'))
		name.insert(0, TERN_PROVIDERS "/lib");
	return name + kVersion;
}

} // namespace

void check_system()
{
	if (geteuid() != 0)
		throw Error("only root may attach to probes of other processes");
	if (access(kBtf, R_OK) != 0)
		throw Error(std::string("this kernel has no BTF (CONFIG_DEBUG_INFO_BTF): no ") +
		            kBtf);
}

std::string find_provider(const std::string &given, uint32_t pid)
{
	if (given.empty() && pid)
		return provider_of(pid);
	const std::string path = given.empty() ? installed_provider() : given;
	std::error_code error;
	const fs::path real = fs::canonical(path, error);

	if (error)
		throw no_provider(path, error.message());
	if (pid && !is_alive(pid))
		throw Error("there is no process " + std::to_string(pid));
	return real;
}

Process::Process(uint32_t pid) : pid_(pid), fd_(pid ? open_process(pid) : -1)
{
	/* No process has this number. It may be that of a thread, which older kernels tell by
	 * EINVAL and newer ones by ENOENT. */
	const bool none = errno == ESRCH || errno == EINVAL || errno == ENOENT;

	if (pid && fd_ < 0 && !none)
		throw Error("cannot watch process " + std::to_string(pid) + ": " +
		            std::strerror(errno));
}

Process::~Process()
{
	if (fd_ >= 0)
		close(fd_);
}

bool Process::has_ended() const
{
	pollfd ended{.fd = fd_, .events = POLLIN, .revents = 0};

	return pid_ && (fd_ < 0 || poll(&ended, 1, 0) == 1);
}

bool is_alive(uint32_t pid)
{
	return pid && !Process(pid).has_ended();
}

} // namespace tern::tools
