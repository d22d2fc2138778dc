// SPDX-License-Identifier: GPL-2.0-or-later
/* What processes do with Tern's cards, live: by process and QP. docs/man/terntop.8 */
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <poll.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "attach.h"
#include "bpf/entries.h"
#include "devices.h"
#include "map_keys.h"
#include "options.h"
#include "page_server.h"
#include "sampler.h"
#include "target.h"
#include "top.skel.h"
#include "top_report.h"

using namespace tern::tools;

namespace {

constexpr const char *kUsage =
        "usage: terntop [--interval SECONDS] [--count N] [--pid PID] [--json]\n"
        "               [--listen [ADDRESS:]PORT] [--library PATH]\n";

constexpr EntryField kFaultFields[] = {
        {"dev", offsetof(tern_entry_page_fault, dev), 4},
        {"qpn", offsetof(tern_entry_page_fault, qpn), 4},
};

constexpr EntryField kObjectFields[] = {
        {"dev", offsetof(tern_entry_object, dev), 4},
        {"op", offsetof(tern_entry_object, op), 4},
        {"num", offsetof(tern_entry_object, num), 4},
};
constexpr EntryField kModifyFields[] = {
        {"dev", offsetof(tern_entry_modify_qp, dev), 4},
        {"state", offsetof(tern_entry_modify_qp, state), 4},
        {"qpn", offsetof(tern_entry_modify_qp, qpn), 4},
        {"err", offsetof(tern_entry_modify_qp, err), 4},
};

struct Arguments {
	uint32_t interval_ms = 0; /* zero until an option or the default has set it */
	uint32_t count = 0;       /* zero: until a signal */
	uint32_t pid = 0;         /* zero: all processes */
	bool json = false;
	bool help = false;
	ListenAddress listen; /* port zero: print */
	std::string library;
};

constexpr uint32_t kDefaultIntervalMs = 1000;
constexpr int kTurnMs = 500; /* how late a signal may be noticed */

volatile std::sig_atomic_t stopped = 0;

Arguments parse(int argc, char **argv)
{
	const option options[] = {
	        {"interval", required_argument, nullptr, 'i'},
	        {"count", required_argument, nullptr, 'n'},
	        {"pid", required_argument, nullptr, 'p'},
	        {"json", no_argument, nullptr, 'j'},
	        {"listen", required_argument, nullptr, 'l'},
	        {"library", required_argument, nullptr, 'L'},
	        {"help", no_argument, nullptr, 'h'},
	        {},
	};
	Arguments arguments;

	for (int c; (c = next_option(argc, argv, options)) != -1;) {
		if (c == 'i')
			arguments.interval_ms = parse_seconds("--interval", optarg);
		else if (c == 'n')
			arguments.count = parse_number("--count", optarg, 1, UINT32_MAX);
		else if (c == 'p')
			arguments.pid = parse_number("--pid", optarg, 1, INT32_MAX);
		else if (c == 'j')
			arguments.json = true;
		else if (c == 'l')
			arguments.listen = parse_listen("--listen", optarg);
		else if (c == 'L')
			arguments.library = optarg;
		else
			arguments.help = true;
	}
	if (arguments.listen.port && (arguments.interval_ms || arguments.count || arguments.json))
		throw UsageError("--listen goes without --interval, --count and --json");
	if (!arguments.interval_ms)
		arguments.interval_ms = kDefaultIntervalMs;
	return arguments;
}

uint64_t now_ms()
{
	const auto now = std::chrono::steady_clock::now().time_since_epoch();
	return static_cast<uint64_t>(
	        std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

/* Calls @visit(key, value) for each entry of @map. Entries may come and go meanwhile. */
template <class Key, class Value, class Visit>
void for_each(const bpf_map *map, Visit visit)
{
	const auto next = [map](const Key *previous, Key &key) {
		return !bpf_map__get_next_key(map, previous, &key, sizeof(key));
	};

	for (const Key &each : map_keys<Key>(bpf_map__max_entries(map), next)) {
		Value value;
		if (!bpf_map__lookup_elem(map, &each, sizeof(each), &value, sizeof(value), 0))
			visit(each, value);
	}
}

/* The attached programs and their maps. */
class Watch {
public:
	Watch(const std::string &library, uint32_t pid)
	{
		check_loaded(top_bpf::load(skeleton_.get()));
		tell_devices(read_devices());
		const auto &programs = skeleton_->progs;
		attachments_.tracepoint(programs.on_create, "tern_create", kObjectFields);
		attachments_.tracepoint(programs.on_destroy, "tern_destroy", kObjectFields);
		attachments_.tracepoint(programs.on_modify_qp, "tern_modify_qp", kModifyFields);
		attachments_.usdt(programs.on_post, pid, library, "post");
		attachments_.usdt(programs.on_complete, pid, library, "complete");
		attachments_.tracepoint(programs.on_page_fault, "tern_page_fault", kFaultFields);
	}

	Counts read() const
	{
		Counts counts{.time_ms = now_ms(), .qps = {}, .devices = read_devices()};

		tell_devices(counts.devices); /* a device may have come */
		for_each<tern_qp_key, tern_qp_stats>(
		        skeleton_->maps.qps,
		        [&](const tern_qp_key &key, const tern_qp_stats &stats) {
			        counts.qps.push_back({key, stats});
		        });
		return counts;
	}

	/** Forgets the QPs of @counts whose processes have ended. */
	void forget_ended(const Counts &counts) const
	{
		for (const Counts::Qp &qp : counts.qps)
			if (!is_alive(qp.key.tgid))
				bpf_map__delete_elem(skeleton_->maps.qps, &qp.key, sizeof(qp.key),
				                     0);
	}

private:
	using Name = char[TERN_NAME_SIZE];

	/* The names that the provider and the driver have for the same device. */
	void tell_devices(const std::vector<Device> &devices) const
	{
		for (const Device &device : devices) {
			Name pci = {}, name = {};
			device.pci.copy(pci, sizeof(pci) - 1);
			device.name.copy(name, sizeof(name) - 1);
			bpf_map__update_elem(skeleton_->maps.devices, pci, sizeof(pci), name,
			                     sizeof(name), BPF_ANY);
		}
	}

	Opened<top_bpf> skeleton_;
	Attachments attachments_;
};

Sample take(const Watch &watch, Sampler &sampler)
{
	const Counts counts = watch.read();

	watch.forget_ended(counts);
	return sampler.next(counts);
}

/* Returns whether the output was written. */
bool print(const Sample &sample, bool json)
{
	if (!json && isatty(STDOUT_FILENO))
		std::fputs("\033[H\033[2J", stdout);
	std::fputs(json ? to_json(sample).c_str() : to_text(sample).c_str(), stdout);
	std::fputc('\n', stdout);
	return std::fflush(stdout) == 0;
}

/* Returns at @due, or earlier at a signal or the end of @process. A signal that comes just before
 * poll() waits a turn. */
void wait_until(uint64_t due, const Process &process)
{
	for (uint64_t now; !stopped && !process.has_ended() && (now = now_ms()) < due;)
		poll(nullptr, 0, static_cast<int>(std::min<uint64_t>(due - now, kTurnMs)));
}

void print_intervals(const Watch &watch, const Process &process, const Arguments &arguments)
{
	Sampler sampler(watch.read());
	uint64_t due = now_ms();

	for (uint32_t i = 0; !arguments.count || i < arguments.count; i++) {
		due = next_due(due, now_ms(), arguments.interval_ms);
		wait_until(due, process);
		if (!print(take(watch, sampler), arguments.json))
			throw Error("cannot write the output");
		if (stopped || process.has_ended())
			return;
	}
}

void serve_pages(const Watch &watch, const Process &process, const Arguments &arguments)
{
	const PageServer server(arguments.listen.address, arguments.listen.port);
	Sampler sampler(watch.read());

	while (!stopped && !process.has_ended()) {
		pollfd wait{.fd = server.fd(), .events = POLLIN, .revents = 0};
		if (poll(&wait, 1, kTurnMs) == 1)
			server.answer(to_prometheus(take(watch, sampler)));
	}
}

int run(int argc, char **argv)
{
	const Arguments arguments = parse(argc, argv);

	if (arguments.help) {
		std::fputs(kUsage, stdout);
		return 0;
	}
	check_system();
	check_devices();
	const Process process(arguments.pid);
	const Watch watch(find_provider(arguments.library, arguments.pid), arguments.pid);

	struct sigaction stop = {};
	stop.sa_handler = [](int) { stopped = 1; };
	sigaction(SIGINT, &stop, nullptr);
	sigaction(SIGTERM, &stop, nullptr);
	signal(SIGPIPE, SIG_IGN);
	if (arguments.listen.port)
		serve_pages(watch, process, arguments);
	else
		print_intervals(watch, process, arguments);
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	return report_errors("terntop", run, argc, argv);
}
