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

/** A host that shares memory with the switch. Its frames to other such hosts bypass the switch once
 * they are paired. */
class SharedPort final : public Port {
public:
	/** Bytes in the ring from a host: what the host may have sent that is not yet forwarded. */
	static constexpr size_t kInbound = 2 << 20;

	SharedPort(EventLoop &loop, FrameSink &sink, Switch &ethernet, SharedHosts &hosts,
	           Fd socket, size_t inbound = kInbound);
	~SharedPort() override;

	bool deliver(Frame frame) override;
	void flush() override;
	void update_interest() override {}
	size_t queued() const override { return queued_; }
	bool has_more() const override { return more_ && !dead_; }
	uint64_t consumed() const override { return out_.consumed(); }
	shm::DirectCounts direct() const override
	{
		return admitted_ ? in_.direct() : shm::DirectCounts();
	}

	/** Sends a message to the host. */
	void send_to_host(const shm::Message &message, std::span<const int> fds);
	/** As send_to_host(), but the host can do without the message. Returns whether it was sent.
	 */
	bool offer_to_host(const shm::Message &message, std::span<const int> fds);

	struct Block {
		Fd fd;
		uint64_t size;
	};
	/** The host's RAM blocks. */
	const std::vector<Block> &blocks() const { return blocks_; }

private:
	struct Listener final : Watched {
		Listener(SharedPort &port, void (SharedPort::*handler)())
		        : port(port), handler(handler)
		{
		}
		void ready(uint32_t) override { (port.*handler)(); }

		SharedPort &port;
		void (SharedPort::*handler)();
	};

	void receive_from_host();
	void bell_rung() { forward_frames(); }
	std::string handle_hello(const shm::Message &hello, std::vector<Fd> &fds);
	std::string open_rings();
	std::string handle_renewal(const shm::Message &message);
	void refuse(const std::string &reason);
	void forward_frames() override;

	EventLoop &loop_;
	Switch &ethernet_;
	SharedHosts &hosts_;
	const Fd socket_;
	const size_t inbound_;
	shm::BellPair from_host_ = shm::BellPair::make();
	shm::BellPair to_host_ = shm::BellPair::make();
	Listener host_listener_;
	Listener bell_listener_;
	bool admitted_ = false;

	std::vector<Block> blocks_;
	shm::Producer out_;
	shm::Consumer in_;
	size_t queued_ = 0;
	bool more_ = false; /* in in_, when forward_frames() returned */
	std::array<std::byte, shm::kMaxEntry> frame_;
};

} // namespace tern::wire
