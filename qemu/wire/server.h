/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qemu/wire/capture.h"
#include "qemu/wire/control.h"
#include "qemu/wire/event_loop.h"
#include "qemu/wire/fault_log.h"
#include "qemu/wire/port.h"
#include "qemu/wire/shared_hosts.h"
#include "qemu/wire/switch.h"
#include "qemu/wire/unix_socket.h"

namespace tern::wire {

class ControlClient;

/** The switch with its sockets. */
class Server final : private FrameSink, private PortReport {
public:
	Server();
	~Server() override;

	/** Return an error message, or empty. */
	std::string listen(const std::string &path);
	std::string listen_for_shared(const std::string &path);
	std::string listen_for_control(const std::string &path);

	/** Waits for events once and handles them. */
	void step(std::optional<int> timeout_ms = std::nullopt);

	/** The reply to a command, after it has taken effect. */
	std::string execute(std::string_view line);

	EventLoop &loop() { return loop_; }

private:
	/* Accepts connections and passes each to a member function. */
	struct Acceptor final : Watched {
		Acceptor(Server &server, void (Server::*add)(Fd), int type = SOCK_STREAM)
		        : server(server), add(add), listener(type)
		{
		}
		void ready(uint32_t events) override;

		Server &server;
		void (Server::*add)(Fd);
		UnixListener listener;
	};

	std::string open(Acceptor &acceptor, const std::string &path);
	void add_stream(Fd fd);
	void add_shared(Fd fd);
	void attach(std::unique_ptr<Port> port);
	void add_client(Fd fd);

	/* FrameSink */
	Port *frame_from(Port &port, Frame frame) override;
	void record(Switch::PortId from, Frame frame);
	/* PortReport */
	std::string describe_ports() const override;
	uint64_t frames_dropped() const override;
	shm::DirectCounts direct() const override;

	void process_ports();
	bool resume_waiting();
	void remove_dead_ports();
	std::optional<int> event_timeout() const;
	void publish();

	EventLoop loop_;
	Switch switch_;
	Capture capture_;
	FaultLog fault_log_;
	Control control_;
	Acceptor stream_hosts_;
	Acceptor shared_hosts_;
	Acceptor controls_;
	SharedHosts sharing_;
	std::vector<std::unique_ptr<Port>> ports_;
	std::vector<std::unique_ptr<ControlClient>> clients_;
	uint64_t dropped_by_gone_ports_ = 0;
	shm::DirectCounts direct_of_gone_ports_;
};

} // namespace tern::wire
