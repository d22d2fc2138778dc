// SPDX-License-Identifier: GPL-2.0-or-later
//
// LD_PRELOAD=smc_run.so gives a stock program SMC in place of TCP. Debian 12 has no smc-tools,
// whose smc_run does this.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr int kFamily = 43; // AF_SMC
constexpr int kOverIpv4 = 0;
constexpr int kOverIpv6 = 1;
constexpr int kTypeMask = 0xf; // without SOCK_NONBLOCK and SOCK_CLOEXEC

bool is_tcp(int domain, int type)
{
	return (domain == AF_INET || domain == AF_INET6) && (type & kTypeMask) == SOCK_STREAM;
}

} // namespace

extern "C" int socket(int domain, int type, int protocol) noexcept
{
	if (is_tcp(domain, type)) {
		protocol = domain == AF_INET6 ? kOverIpv6 : kOverIpv4;
		domain = kFamily;
	}
	return static_cast<int>(syscall(SYS_socket, domain, type, protocol));
}
