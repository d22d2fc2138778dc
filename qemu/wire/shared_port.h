/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qemu/shm/bell.h"
#include "qemu/shm/message.h"
#include "qemu/shm/ring.h"
#include "qemu/wire/event_loop.h"
#include "qemu/wire/port.h"

namespace tern::wire {

class SharedHosts;

/** A host that shares memory with the switch. What it sends to other such hosts does not come
 * here, once they know one another. */
class SharedPort final : public Port {
public:
	SharedPort(EventLoop &loop, FrameSink &sink, Switch &ethernet, SharedHosts &hosts,
	           Fd socket);
	~SharedPort() override;

	bool deliver(Frame frame) override;
	void flush() override;
	void update_interest() override {}
	size_t queued() const override { return queued_; }
	uint64_t direct() const override { return greeted_ ? in_.direct() : 0; }

	/** Something to say to the host. */
	void tell(const shm::Message &message, std::span<const int> fds);
	const shm::Bell &bell() const { return host_bell_; }

	struct Block {
		Fd fd;
		uint64_t size;
	};
	/** Its RAM. */
	const std::vector<Block> &blocks() const { return blocks_; }

private:
	struct Ear final : Watched {
		Ear(SharedPort &port, void (SharedPort::*hear)()) : port(port), hear(hear) {}
		void ready(uint32_t) override { (port.*hear)(); }

		SharedPort &port;
		void (SharedPort::*hear)();
	};

	void hear_host();
	void hear_bell() { forward_frames(); }
	std::string greet(const shm::Message &hello, std::vector<Fd> &fds);
	std::string open_rings();
	std::string heed(const shm::Message &wish);
	void refuse(const std::string &reason);
	void forward_frames() override;

	EventLoop &loop_;
	Switch &ethernet_;
	SharedHosts &hosts_;
	const Fd socket_;
	const shm::Bell own_bell_;
	const shm::Bell host_bell_;
	Ear host_ear_;
	Ear bell_ear_;
	bool greeted_ = false;

	std::vector<Block> blocks_;
	shm::Producer out_;
	shm::Consumer in_;
	size_t queued_ = 0;
	uint64_t progress_ = 0;
	std::array<std::byte, shm::kMaxEntry> frame_;
};

} // namespace tern::wire
