/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "qemu/shm/monotonic.h"
#include "qemu/wire/capture.h"
#include "qemu/wire/control.h"
#include "qemu/wire/event_loop.h"
#include "qemu/wire/fault_log.h"
#include "qemu/wire/port.h"
#include "qemu/wire/recorder.h"
#include "qemu/wire/shared_hosts.h"
#include "qemu/wire/switch.h"
#include "qemu/wire/topology.h"
#include "qemu/wire/unix_socket.h"

namespace tern::wire {

class ControlClient;

/** The switch with its sockets. */
class Server final : private FrameSink, private PortReport {
public:
	Server();
	~Server() override;

	/** Has frames pass the switches and links of @plan, from now on: before any host. Each card
	 * then connects at a path of its own, the path of the others with a dot and its name. */
	void use(fabric::Plan plan);

	/** Return an error message, or empty. */
	std::string listen(const std::string &path);
	std::string listen_for_shared(const std::string &path);
	std::string listen_for_control(const std::string &path);
	/** Attaches the TAP interface @name; see open_tap(). */
	std::string attach_tap(const std::string &name);
	/** Attaches the TAP interfaces of the topology, if there is one. */
	std::string attach_taps();

	/** Waits for events once and handles them. */
	void step(std::optional<int> timeout_ms = std::nullopt);

	/** The reply to a command, after it has taken effect. */
	std::string execute(std::string_view line);

	EventLoop &loop() { return loop_; }

private:
	/* Accepts connections and passes each to a member function. */
	struct Acceptor final : Watched {
		using Add = void (Server::*)(Fd, FrameSink &);

		Acceptor(Server &server, FrameSink &sink, Add add, int type)
		        : server(server), sink(sink), add(add), listener(type)
		{
		}
		void ready(uint32_t events) override;

		Server &server;
		FrameSink &sink; /* of those that connect */
		const Add add;
		UnixListener listener;
	};

	class MonotonicClock final : public Clock {
		uint64_t now() override { return monotonic_ns(); }
	};

	std::string listen_for_hosts(const std::string &path, Acceptor::Add add, int type);
	std::string open(const std::string &path, FrameSink &sink, Acceptor::Add add, int type);
	void add_stream(Fd fd, FrameSink &sink);
	void add_shared(Fd fd, FrameSink &sink);
	std::string attach_tap(const std::string &name, FrameSink &sink);
	Port &attach(std::unique_ptr<Port> port);
	void detach(Port &port);
	void pause_accepting(Acceptor &acceptor, int error);
	void resume_accepting();
	void add_client(Fd fd, FrameSink &sink);

	/* FrameSink */
	Waitable *frame_from(Port &port, Frame frame) override;
	/* PortReport */
	std::string describe_ports() const override;
	uint64_t frames_dropped() const override;
	shm::DirectCounts direct() const override;

	void process_ports();
	void remove_dead_ports();
	std::optional<std::chrono::nanoseconds> event_timeout() const;
	/** Returns the time until a port or a frame that is held back has something to do. */
	std::optional<std::chrono::nanoseconds> port_timeout() const;
	std::optional<std::chrono::nanoseconds> accept_timeout() const;
	void publish();

	EventLoop loop_;
	Switch switch_;
	Capture capture_;
	FaultLog fault_log_;
	Recorder recorder_;
	Control control_;
	MonotonicClock clock_;
	std::unique_ptr<Topology> topology_; /* null: hosts share one Ethernet without rates */
	std::vector<std::unique_ptr<Acceptor>> acceptors_;
	std::optional<SteadyTime> accept_again_; /* while some acceptors are not watched */
	std::optional<SteadyTime> accept_error_told_;
	SharedHosts sharing_;
	Ports ports_;
	std::vector<std::unique_ptr<ControlClient>> clients_;
	uint64_t dropped_by_gone_ports_ = 0;
	shm::DirectCounts direct_of_gone_ports_;
};

} // namespace tern::wire
