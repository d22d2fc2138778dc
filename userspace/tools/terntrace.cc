// SPDX-License-Identifier: GPL-2.0-or-later
/* A time line of a QP: what its program, the driver and the card do. docs/man/terntrace.8 */
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "attach.h"
#include "bpf/entries.h"
#include "devices.h"
#include "options.h"
#include "target.h"
#include "trace.skel.h"
#include "trace_report.h"

using namespace tern::tools;

namespace {

constexpr const char *kUsage =
        "usage: terntrace [--pid PID] [--qp NUMBER] [--duration SECONDS] [--json FILE]\n"
        "                 [--library PATH]\n";

#define FIELD(entry, name)                                                                         \
	{                                                                                          \
#name, offsetof(entry, name), sizeof(entry::name)                                  \
	}
constexpr EntryField kSubmit[] = {
        FIELD(tern_entry_cmd_submit, dev), FIELD(tern_entry_cmd_submit, op),
        FIELD(tern_entry_cmd_submit, engine), FIELD(tern_entry_cmd_submit, id)};
constexpr EntryField kComplete[] = {
        FIELD(tern_entry_cmd_complete, dev),    FIELD(tern_entry_cmd_complete, op),
        FIELD(tern_entry_cmd_complete, engine), FIELD(tern_entry_cmd_complete, id),
        FIELD(tern_entry_cmd_complete, err),    FIELD(tern_entry_cmd_complete, usecs)};
constexpr EntryField kObject[] = {FIELD(tern_entry_object, dev), FIELD(tern_entry_object, op),
                                  FIELD(tern_entry_object, num)};
constexpr EntryField kModify[] = {
        FIELD(tern_entry_modify_qp, dev), FIELD(tern_entry_modify_qp, state),
        FIELD(tern_entry_modify_qp, qpn), FIELD(tern_entry_modify_qp, err)};
constexpr EntryField kEvent[] = {FIELD(tern_entry_event, dev), FIELD(tern_entry_event, type),
                                 FIELD(tern_entry_event, num)};
constexpr EntryField kFault[] = {
        FIELD(tern_entry_page_fault, dev),   FIELD(tern_entry_page_fault, qpn),
        FIELD(tern_entry_page_fault, addr),  FIELD(tern_entry_page_fault, length),
        FIELD(tern_entry_page_fault, write), FIELD(tern_entry_page_fault, resume)};
#undef FIELD

struct Arguments {
	uint32_t pid = 0;
	uint32_t qpn = 0;
	uint32_t duration_ms = 0; /* zero: until a signal */
	std::string json;
	bool help = false;
	std::string library;
};

volatile std::sig_atomic_t stopped = 0;

Arguments parse(int argc, char **argv)
{
	const option options[] = {
	        {"pid", required_argument, nullptr, 'p'},
	        {"qp", required_argument, nullptr, 'q'},
	        {"duration", required_argument, nullptr, 'd'},
	        {"json", required_argument, nullptr, 'j'},
	        {"library", required_argument, nullptr, 'L'},
	        {"help", no_argument, nullptr, 'h'},
	        {},
	};
	Arguments arguments;

	for (int c; (c = next_option(argc, argv, options)) != -1;) {
		if (c == 'p')
			arguments.pid = parse_number("--pid", optarg, 1, INT32_MAX);
		else if (c == 'q')
			arguments.qpn = parse_number("--qp", optarg, 1, 0xffffff);
		else if (c == 'd')
			arguments.duration_ms = parse_seconds("--duration", optarg);
		else if (c == 'j')
			arguments.json = optarg;
		else if (c == 'L')
			arguments.library = optarg;
		else
			arguments.help = true;
	}
	return arguments;
}

/* The attached programs and what they tell. */
class Trace {
public:
	Trace(const Arguments &arguments, const std::string &library)
	        : filter_(arguments.pid, arguments.qpn), prints_(arguments.json.empty())
	{
		skeleton_->rodata->only_qpn = arguments.qpn;
		check_loaded(trace_bpf::load(skeleton_.get()));
		ring_.reset(ring_buffer__new(bpf_map__fd(skeleton_->maps.ring), on_event, this,
		                             nullptr));
		if (!ring_)
			throw Error("cannot map the ring of events");
		attach_driver();
		attach_provider(arguments.pid, library);
	}

	/** Waits for events, @ms at most, and prints or keeps those that are wanted. */
	void take(int ms)
	{
		ring_buffer__poll(ring_.get(), ms);
		/* Two CPUs may add events to the ring in another order than that of their times. */
		std::ranges::stable_sort(arrived_, {}, &tern_trace_event::time);
		for (tern_trace_event &event : arrived_) {
			name_device(event, names_);
			accept(event);
		}
		arrived_.clear();
	}

	uint64_t lost() const { return skeleton_->bss->lost; }
	const std::vector<tern_trace_event> &events() const { return events_; }

private:
	struct Free {
		void operator()(ring_buffer *ring) const { ring_buffer__free(ring); }
	};

	void attach_provider(uint32_t pid, const std::string &library)
	{
		const auto &programs = skeleton_->progs;

		attachments_.usdt(programs.on_post, pid, library, "post");
		attachments_.usdt(programs.on_doorbell, pid, library, "doorbell");
		attachments_.usdt(programs.on_post_recv, pid, library, "post_recv");
		attachments_.usdt(programs.on_complete, pid, library, "complete");
	}

	void attach_driver()
	{
		const auto &programs = skeleton_->progs;

		attachments_.tracepoint(programs.on_cmd_submit, "tern_cmd_submit", kSubmit);
		attachments_.tracepoint(programs.on_cmd_complete, "tern_cmd_complete", kComplete);
		attachments_.tracepoint(programs.on_create, "tern_create", kObject);
		attachments_.tracepoint(programs.on_destroy, "tern_destroy", kObject);
		attachments_.tracepoint(programs.on_modify_qp, "tern_modify_qp", kModify);
		attachments_.tracepoint(programs.on_event, "tern_event", kEvent);
		attachments_.tracepoint(programs.on_page_fault, "tern_page_fault", kFault);
	}

	static int on_event(void *self, void *data, size_t)
	{
		static_cast<Trace *>(self)->arrived_.push_back(
		        *static_cast<const tern_trace_event *>(data));
		return 0;
	}

	void accept(const tern_trace_event &event)
	{
		if (!filter_.wants(event))
			return;
		if (!start_)
			start_ = event.time;
		if (prints_)
			std::printf("%s\n", to_line(event, start_).c_str());
		else
			events_.push_back(event);
	}

	/* A device that comes later keeps its PCI address in events of the driver. */
	const std::map<std::string, std::string> names_ = device_names();
	TraceFilter filter_;
	const bool prints_; /* else it keeps them */
	uint64_t start_ = 0;
	std::vector<tern_trace_event> arrived_; /* since the last take() */
	std::vector<tern_trace_event> events_;
	Opened<trace_bpf> skeleton_;
	std::unique_ptr<ring_buffer, Free> ring_;
	Attachments attachments_;
};

void collect(Trace &trace, const Process &process, const Arguments &arguments)
{
	using Clock = std::chrono::steady_clock;
	constexpr int kTurnMs = 100; /* how late an end is noticed */
	const auto end = Clock::now() + std::chrono::milliseconds(arguments.duration_ms);

	while (!stopped && (!arguments.duration_ms || Clock::now() < end) && !process.has_ended()) {
		trace.take(kTurnMs);
		if (std::fflush(stdout))
			throw Error("cannot write the output");
	}
	trace.take(0);
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
	const std::string library = find_provider(arguments.library, arguments.pid);
	if (arguments.qpn && !has_qp(arguments.qpn))
		throw Error("no device here has a QP " + std::to_string(arguments.qpn));
	std::ofstream file;
	if (!arguments.json.empty()) {
		file.open(arguments.json);
		if (!file)
			throw Error("cannot write " + arguments.json);
	}
	Trace trace(arguments, library);

	struct sigaction stop = {};
	stop.sa_handler = [](int) { stopped = 1; };
	sigaction(SIGINT, &stop, nullptr);
	sigaction(SIGTERM, &stop, nullptr);
	signal(SIGPIPE, SIG_IGN);
	std::fputs("terntrace: attached\n", stderr);
	collect(trace, process, arguments);

	if (file.is_open() && !(file << to_chrome(trace.events(), trace.lost()) << '\n'
	                             << std::flush))
		throw Error("cannot write " + arguments.json);
	if (trace.lost())
		std::fprintf(stderr, "terntrace: %llu events were lost\n",
		             static_cast<unsigned long long>(trace.lost()));
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	return report_errors("terntrace", run, argc, argv);
}
