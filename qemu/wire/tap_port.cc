// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/tap_port.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace tern::wire {

/* The number of frames that are read before other ports have their turn. */
constexpr unsigned kBatch = 64;
constexpr char kDevice[] = "/dev/net/tun";

std::string open_tap(const std::string &name, Fd &fd)
{
	if (name.size() >= IFNAMSIZ)
		return name + ": too long for the name of an interface";
	/* TUNSETIFF would create a missing interface, which would vanish with this process. */
	if (!if_nametoindex(name.c_str()))
		return name + ": there is no such interface; `ip tuntap add dev " + name +
		       " mode tap` makes it";
	fd = Fd(open(kDevice, O_RDWR | O_NONBLOCK | O_CLOEXEC));
	if (!fd)
		return std::string(kDevice) + ": " + std::strerror(errno);
	ifreq request{};
	name.copy(request.ifr_name, IFNAMSIZ - 1);
	request.ifr_flags = IFF_TAP | IFF_NO_PI;
	if (ioctl(fd.get(), TUNSETIFF, &request) == 0)
		return "";
	return name + ": " + (errno == EINVAL ? "this is no TAP interface" : std::strerror(errno));
}

TapPort::TapPort(EventLoop &loop, FrameSink &sink, Fd fd, std::string name)
        : Port(sink, kMaxFrame), loop_(loop), fd_(std::move(fd)), name_(std::move(name))
{
	dead_ = !loop_.watch(fd_.get(), EPOLLIN, *this);
}

TapPort::~TapPort()
{
	loop_.forget(fd_.get());
}

bool TapPort::deliver(Frame frame)
{
	if (dead_)
		return true;
	/* The kernel refuses frames while the interface is down. */
	if (write(fd_.get(), frame.data(), frame.size()) < 0)
		stats_.dropped++;
	else
		stats_.sent++;
	return true;
}

void TapPort::update_interest()
{
	const bool wanted = !waiting_for_;
	if (wanted == std::exchange(read_, wanted) || dead_)
		return;
	loop_.change(fd_.get(), wanted ? EPOLLIN : 0u, *this);
}

void TapPort::forward_frames()
{
	for (unsigned i = 0; i < kBatch && !waiting_for_ && !dead_; i++) {
		const ssize_t size = read(fd_.get(), frame_.data(), frame_.size());
		if (size >= 0)
			hand_on(Frame(frame_).first(static_cast<size_t>(size)));
		else if (errno == EAGAIN || errno == EINTR)
			return;
		else
			die();
	}
}

void TapPort::die()
{
	std::fprintf(stderr, "tern-switch: %s: %s\n", name_.c_str(), std::strerror(errno));
	hang_up();
}

} // namespace tern::wire
