// SPDX-License-Identifier: GPL-2.0-or-later
//
// Runs commands in a guest for the lab, whose end is scripts/ternlab/channel.py. A login over ssh
// costs a guest under TCG a tenth of a second or more for each command; this costs what the
// command's own process does.
//
// Both ends send frames over a virtio serial port: a header of three little-endian words (the
// task's number, the kind, the length) and so many bytes.

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

enum class Kind : uint32_t {
	// From the host. Start: 'm' if standard error joins standard output, else 's', and the
	// command.
	// An empty Input ends the input. Signal: its number as one byte, for the task's process
	// group.
	kStart = 1,
	kInput = 2,
	kSignal = 3,
	// From the guest. Exit: the shell's exit code as one byte, 128 + N for signal N.
	kOutput = 4,
	kError = 5,
	kExit = 6,
};

struct Header {
	uint32_t task;
	Kind kind;
	uint32_t length;
};
static_assert(sizeof(Header) == 12);

constexpr size_t kChunk = 32 << 10;
constexpr int kReconnectMs = 20;

struct Task {
	pid_t pid;
	int in;
	int out;
	int err; // -1 if it joins standard output
	std::string input;
	bool input_ends = false;
};

void close_if_open(int &fd)
{
	if (fd >= 0)
		close(fd);
	fd = -1;
}

// A pipe whose end of ours does not block.
struct Pipe {
	std::array<int, 2> ends = {-1, -1};
	bool open(int ours)
	{
		return pipe2(ends.data(), O_CLOEXEC) == 0 &&
		       fcntl(ends[ours], F_SETFL, O_NONBLOCK) == 0;
	}
};

class Executor {
public:
	explicit Executor(int port) : port_(port)
	{
		sigset_t child;
		sigemptyset(&child);
		sigaddset(&child, SIGCHLD);
		sigprocmask(SIG_BLOCK, &child, nullptr);
		children_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	}

	[[noreturn]] void run()
	{
		for (;;)
			turn();
	}

private:
	void turn()
	{
		std::vector<pollfd> fds = {{port_, POLLIN, 0}, {children_, POLLIN, 0}};
		for (const auto &[number, task] : tasks_) {
			if (task.out >= 0)
				fds.push_back({task.out, POLLIN, 0});
			if (task.err >= 0)
				fds.push_back({task.err, POLLIN, 0});
			if (task.in >= 0 && !task.input.empty())
				fds.push_back({task.in, POLLOUT, 0});
		}
		poll(fds.data(), fds.size(), -1);
		if (fds[0].revents != 0)
			read_port();
		for (auto &[number, task] : tasks_) {
			forward(number, Kind::kOutput, task.out);
			forward(number, Kind::kError, task.err);
			feed(task);
		}
		if (fds[1].revents != 0)
			reap();
	}

	// --- from the host

	void read_port()
	{
		std::array<char, kChunk> bytes;
		const ssize_t got = read(port_, bytes.data(), bytes.size());
		if (got <= 0) {
			// Nobody is at the other end, which poll() reports without end.
			if (got == 0 || errno != EAGAIN)
				poll(nullptr, 0, kReconnectMs);
			return;
		}
		received_.append(bytes.data(), static_cast<size_t>(got));
		for (;;) {
			Header header;
			if (received_.size() < sizeof(header))
				return;
			memcpy(&header, received_.data(), sizeof(header));
			if (received_.size() < sizeof(header) + header.length)
				return;
			handle(header, received_.substr(sizeof(header), header.length));
			received_.erase(0, sizeof(header) + header.length);
		}
	}

	void handle(const Header &header, std::string payload)
	{
		if (header.kind == Kind::kStart) {
			start(header.task, payload);
			return;
		}
		const auto found = tasks_.find(header.task);
		if (found == tasks_.end())
			return; // It has ended meanwhile.
		Task &task = found->second;
		if (header.kind == Kind::kSignal && !payload.empty()) {
			kill(-task.pid, payload[0]);
		} else if (header.kind == Kind::kInput) {
			task.input += payload;
			task.input_ends = payload.empty();
			feed(task);
		}
	}

	void start(uint32_t number, const std::string &payload)
	{
		Pipe in;
		Pipe out;
		Pipe err;
		const bool merged = payload.empty() || payload[0] == 'm';
		const std::string command = payload.substr(payload.empty() ? 0 : 1);
		if (!in.open(1) || !out.open(0) || (!merged && !err.open(0))) {
			fail(number, "no pipe");
			return;
		}
		Task task{-1, in.ends[1], out.ends[0], err.ends[0], "", false};
		const int error = spawn(task.pid, command, in.ends[0], out.ends[1],
		                        merged ? out.ends[1] : err.ends[1]);
		close(in.ends[0]);
		close(out.ends[1]);
		close_if_open(err.ends[1]);
		if (error != 0) {
			close_all(task);
			fail(number, strerror(error));
			return;
		}
		tasks_.emplace(number, task);
	}

	// In a session and process group of its own, which a signal reaches as a whole.
	static int spawn(pid_t &pid, const std::string &command, int in, int out, int err)
	{
		posix_spawn_file_actions_t actions;
		posix_spawn_file_actions_init(&actions);
		posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
		posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
		posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
		posix_spawnattr_t attributes;
		posix_spawnattr_init(&attributes);
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
		                                              POSIX_SPAWN_SETSIGDEF);
		sigset_t signals;
		sigemptyset(&signals);
		posix_spawnattr_setsigmask(&attributes, &signals);
		sigfillset(&signals);
		posix_spawnattr_setsigdefault(&attributes, &signals);
		std::array<const char *, 4> words = {"bash", "-c", command.c_str(), nullptr};
		const int error = posix_spawn(&pid, "/bin/bash", &actions, &attributes,
		                              const_cast<char **>(words.data()), environ);
		posix_spawnattr_destroy(&attributes);
		posix_spawn_file_actions_destroy(&actions);
		return error;
	}

	static void feed(Task &task)
	{
		if (task.in < 0)
			return;
		if (!task.input.empty()) {
			const ssize_t put = write(task.in, task.input.data(), task.input.size());
			if (put < 0 && errno == EAGAIN)
				return;
			// A task that closed its input wants no more of it.
			task.input.erase(0, put < 0 ? task.input.size() : static_cast<size_t>(put));
		}
		if (task.input.empty() && task.input_ends)
			close_if_open(task.in);
	}

	// --- to the host

	void send(uint32_t number, Kind kind, const char *bytes, size_t length)
	{
		const Header header{number, kind, static_cast<uint32_t>(length)};
		std::string frame(reinterpret_cast<const char *>(&header), sizeof(header));
		frame.append(bytes, length);
		for (size_t sent = 0; sent < frame.size();) {
			const ssize_t put = write(port_, frame.data() + sent, frame.size() - sent);
			if (put > 0) {
				sent += static_cast<size_t>(put);
			} else {
				pollfd room{port_, POLLOUT, 0};
				poll(&room, 1, kReconnectMs);
			}
		}
	}

	void fail(uint32_t number, const std::string &why)
	{
		send(number, Kind::kError, why.data(), why.size());
		send_exit(number, 127);
	}

	void send_exit(uint32_t number, int code)
	{
		const char byte = static_cast<char>(code);
		send(number, Kind::kExit, &byte, 1);
	}

	// All that can be read at once. False at the end.
	bool forward(uint32_t number, Kind kind, int &fd)
	{
		std::array<char, kChunk> bytes;
		while (fd >= 0) {
			const ssize_t got = read(fd, bytes.data(), bytes.size());
			if (got > 0) {
				send(number, kind, bytes.data(), static_cast<size_t>(got));
			} else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
				return true;
			} else {
				close_if_open(fd);
			}
		}
		return false;
	}

	// A task ends with its shell: what that left in the background may keep the pipes open.
	void reap()
	{
		signalfd_siginfo ignored;
		while (read(children_, &ignored, sizeof(ignored)) > 0) {
		}
		int status = 0;
		for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
			end(pid, status);
	}

	void end(pid_t pid, int status)
	{
		for (auto entry = tasks_.begin(); entry != tasks_.end(); ++entry) {
			auto &[number, task] = *entry;
			if (task.pid != pid)
				continue;
			forward(number, Kind::kOutput, task.out);
			forward(number, Kind::kError, task.err);
			send_exit(number,
			          WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
			close_all(task);
			tasks_.erase(entry);
			return;
		}
	}

	static void close_all(Task &task)
	{
		close_if_open(task.in);
		close_if_open(task.out);
		close_if_open(task.err);
	}

	const int port_;
	int children_;
	std::string received_;
	std::map<uint32_t, Task> tasks_;
};

} // namespace

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: executor PORT\n");
		return 2;
	}
	const int port = open(argv[1], O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (port < 0) {
		perror(argv[1]);
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	Executor(port).run();
}
