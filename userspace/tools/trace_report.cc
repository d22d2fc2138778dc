// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace_report.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string_view>
#include <tuple>

#include "qemu/rnic/json.h"
#include "qemu/rnic/names.h"
#include "tern/tern_hw.h"
#include "text.h"

namespace tern::tools {

using namespace hw;

namespace {

std::string op_name(uint32_t op)
{
	static const std::map<uint32_t, const char *> kNames{
	        {TERN_OP_SEND, "SEND"},
	        {TERN_OP_SEND_IMM, "SEND_IMM"},
	        {TERN_OP_WRITE, "WRITE"},
	        {TERN_OP_WRITE_IMM, "WRITE_IMM"},
	        {TERN_OP_READ, "READ"},
	        {TERN_OP_CMP_SWAP, "CMP_SWAP"},
	        {TERN_OP_FETCH_ADD, "FETCH_ADD"},
	        {TERN_OP_SEND_INV, "SEND_INV"},
	        {TERN_OP_LOCAL_INV, "LOCAL_INV"},
	        {TERN_OP_BIND_MW, "BIND_MW"},
	        {TERN_OP_ATOMIC_WRITE, "ATOMIC_WRITE"},
	        {TERN_OP_FLUSH, "FLUSH"},
	        {TERN_CQE_RECV, "RECV"},
	        {TERN_CQE_RECV_WRITE_IMM, "RECV_WRITE_IMM"},
	        {TERN_CQE_TAG_ADD, "TAG_ADD"},
	        {TERN_CQE_TAG_DEL, "TAG_DEL"},
	        {TERN_CQE_TAG_SYNC, "TAG_SYNC"},
	        {TERN_CQE_TAG_RECV, "TAG_RECV"},
	        {TERN_CQE_TAG_UNEXPECTED, "TAG_UNEXPECTED"},
	        {TERN_CQE_NO_TAG, "NO_TAG"},
	};
	const auto found = kNames.find(op);

	return found == kNames.end() ? print("opcode %#x", op) : found->second;
}

bool is_recv(uint32_t opcode)
{
	return opcode >= TERN_CQE_RECV;
}

std::string field(const char *text)
{
	return {text, strnlen(text, TERN_NAME_SIZE)};
}

std::string device_of(const tern_trace_event &event)
{
	return field(event.device);
}

std::string program_of(const tern_trace_event &event)
{
	return {event.program, strnlen(event.program, sizeof(event.program))};
}

bool is_of_provider(const tern_trace_event &event)
{
	return event.kind <= TERN_TRACE_COMPLETE;
}

/* Then its number is that of the WQ. */
bool is_of_wq(const tern_trace_event &event)
{
	return event.kind == TERN_TRACE_COMPLETE && is_recv(event.op) && event.flags & TERN_CQE_WQ;
}

bool has_qp(const tern_trace_event &event)
{
	return (is_of_provider(event) && !is_of_wq(event)) || event.kind == TERN_TRACE_MODIFY ||
	       event.kind == TERN_TRACE_FAULT;
}

/* Whether it is the driver's and its number is that of a QP. */
bool is_about_qp(const tern_trace_event &event)
{
	static constexpr std::string_view kOthers[] = {"COMM_EST", "SQ_DRAINED", "LAST_WQE",
	                                               "PAGE_FAULT"};
	const std::string name = field(event.text);

	return event.kind == TERN_TRACE_FAULT ||
	       (event.kind == TERN_TRACE_EVENT &&
	        (name.starts_with("QP_") || std::ranges::count(kOthers, name)));
}

bool is_about_cq(const tern_trace_event &event)
{
	return event.kind == TERN_TRACE_EVENT &&
	       (field(event.text) == "COMP" || field(event.text) == "CQ_ERR");
}

bool is_object(const tern_trace_event &event)
{
	return event.kind == TERN_TRACE_CREATE || event.kind == TERN_TRACE_DESTROY;
}

std::string error_text(int error)
{
	return error ? print(", error %d", error) : "";
}

/* The QP or WQ that @event names, or nothing. */
std::string queue_of(const tern_trace_event &event)
{
	if (is_of_wq(event))
		return print("WQ %#x", event.number);
	return has_qp(event) ? print("QP %#x", event.number) : "";
}

/* What happened, without queue and program. */
std::string describe(const tern_trace_event &event)
{
	switch (event.kind) {
	case TERN_TRACE_POST:
		return print("post %s, %llu bytes, WQE %u%s", op_name(event.op).c_str(),
		             static_cast<unsigned long long>(event.bytes), event.index,
		             event.flags & TERN_WQE_SIGNALED ? "" : ", unsignalled");
	case TERN_TRACE_DOORBELL:
		return print("published up to WQE %u, %s", event.index,
		             event.op ? "doorbell" : "no doorbell: the card is active");
	case TERN_TRACE_POST_RECV:
		return print("post receives up to %u", event.index);
	case TERN_TRACE_COMPLETE:
		return print(
		        "completion %s, WQE %u, %llu bytes, CQ %#x: %s", op_name(event.op).c_str(),
		        event.index, static_cast<unsigned long long>(event.bytes), event.cqn,
		        std::string(cqe_status_name(static_cast<uint8_t>(event.status))).c_str());
	case TERN_TRACE_SUBMIT:
		return print("command %s, id %u", field(event.text).c_str(), event.number);
	case TERN_TRACE_COMMAND:
		return print("answer to %s, id %u, after %llu us", field(event.text).c_str(),
		             event.number, static_cast<unsigned long long>(event.value)) +
		       error_text(event.error);
	case TERN_TRACE_CREATE:
	case TERN_TRACE_DESTROY:
		return print("done: %s %#x", field(event.text).c_str(), event.number);
	case TERN_TRACE_MODIFY:
		return "modified, state " + field(event.text) + error_text(event.error);
	case TERN_TRACE_EVENT:
		return print("event %s %#x", field(event.text).c_str(), event.number);
	default:
		return print("page fault at %#llx, %llu bytes, for %s: %s",
		             static_cast<unsigned long long>(event.value),
		             static_cast<unsigned long long>(event.bytes),
		             event.flags ? "writing" : "reading",
		             event.status == TERN_RESUME_RETRY ? "pages found" : "refused");
	}
}

/* ---- Chrome's format ------------------------------------------------------------------- */

class ChromeTrace {
public:
	explicit ChromeTrace(uint64_t start) : start_(start) {}

	/* Within the list of events. */
	void add(const tern_trace_event &event);

	/** Within an object. */
	Json &json() { return json_; }

private:
	struct Request {
		uint32_t index;
		std::string name;
	};

	uint64_t thread_of(const tern_trace_event &event);
	void put(const char *phase, const tern_trace_event &event, const std::string &name,
	         const std::string &id);
	void put_name(const char *what, const tern_trace_event &event, const std::string &name);
	void introduce(const tern_trace_event &event);
	void complete(const tern_trace_event &event);

	const uint64_t start_;
	Json json_;
	std::map<std::string, uint64_t> devices_; /* numbered as they come */
	/* by PID, device and QPN */
	std::map<std::tuple<uint32_t, std::string, uint32_t>, std::deque<Request>> requests_;
	std::set<std::pair<uint32_t, uint64_t>> introduced_;
};

/* The thread of an event is its QPN, or zero if the event names no QP, above that the device. */
uint64_t ChromeTrace::thread_of(const tern_trace_event &event)
{
	constexpr unsigned kQpnBits = 24;
	const uint64_t device =
	        devices_.try_emplace(device_of(event), devices_.size()).first->second;

	return device << kQpnBits | (has_qp(event) ? event.number : 0);
}

/* Of a request, for its slice. */
std::string id_of(const tern_trace_event &event, uint32_t index)
{
	return print("%s:%#x:%u", device_of(event).c_str(), event.number, index);
}

void ChromeTrace::put(const char *phase, const tern_trace_event &event, const std::string &name,
                      const std::string &id)
{
	json_.object("", [&] {
		json_.text("ph", phase);
		json_.text("name", printable(name));
		json_.text("cat", id.empty() ? "event" : "request");
		if (!id.empty())
			json_.text("id", printable(id));
		else
			json_.text("s", "t");
		json_.thousandths("ts", event.time - start_);
		json_.number("pid", event.tgid);
		json_.number("tid", thread_of(event));
		json_.object("args", [&] { json_.text("what", printable(describe(event))); });
	});
}

void ChromeTrace::put_name(const char *what, const tern_trace_event &event, const std::string &name)
{
	json_.object("", [&] {
		json_.text("ph", "M");
		json_.text("name", what);
		json_.number("pid", event.tgid);
		json_.number("tid", thread_of(event));
		json_.object("args", [&] { json_.text("name", printable(name)); });
	});
}

/* Names process and thread before their first event. */
void ChromeTrace::introduce(const tern_trace_event &event)
{
	if (!introduced_.insert({event.tgid, thread_of(event)}).second)
		return;
	put_name("process_name", event, program_of(event));
	put_name("thread_name", event,
	         device_of(event) + " " +
	                 (has_qp(event) ? queue_of(event) : "commands and events"));
}

/* Ends the slices of the request and of those before it. */
void ChromeTrace::complete(const tern_trace_event &event)
{
	auto &requests = requests_[{event.tgid, device_of(event), event.number}];
	const auto found = std::ranges::find(requests, event.index, &Request::index);

	if (found == requests.end())
		return;
	const auto end = found + 1;
	for (auto request = requests.begin(); request != end; ++request)
		put("e", event, request->name, id_of(event, request->index));
	requests.erase(requests.begin(), end);
}

void ChromeTrace::add(const tern_trace_event &event)
{
	const std::string command =
	        print("%s:%u:%u", device_of(event).c_str(), event.engine, event.number);

	introduce(event);
	switch (event.kind) {
	case TERN_TRACE_POST:
		requests_[{event.tgid, device_of(event), event.number}].push_back(
		        {event.index, op_name(event.op)});
		return put("b", event, op_name(event.op), id_of(event, event.index));
	case TERN_TRACE_SUBMIT:
		return put("b", event, field(event.text), command);
	case TERN_TRACE_COMMAND:
		return put("e", event, field(event.text), command);
	case TERN_TRACE_COMPLETE:
		if (!is_recv(event.op))
			complete(event);
		[[fallthrough]];
	default:
		return put("i", event,
		           (is_of_wq(event) ? queue_of(event) + ": " : "") + describe(event), "");
	}
}

} // namespace

void name_device(tern_trace_event &event, const std::map<std::string, std::string> &names)
{
	const auto found = names.find(device_of(event));

	if (is_of_provider(event) || found == names.end())
		return;
	event.device[found->second.copy(event.device, sizeof(event.device) - 1)] = 0;
}

/* ---- which events ----------------------------------------------------------------------- */

bool TraceFilter::is_of_process(const Key &process) const
{
	return pid_ ? process.second == pid_ : !qpn_ || processes_.contains(process);
}

bool TraceFilter::is_of_qp(const Key &qp) const
{
	return qpn_ ? qp.second == qpn_ : !pid_ || qps_.contains(qp);
}

bool TraceFilter::wants(const tern_trace_event &event)
{
	const Key process(device_of(event), event.tgid), object(device_of(event), event.number);

	if (is_of_provider(event)) {
		if (qpn_ && is_of_wq(event))
			return false;
		processes_.insert(process);
		if (has_qp(event))
			qps_.insert(object);
		if (event.kind == TERN_TRACE_COMPLETE)
			cqs_.emplace(device_of(event), event.cqn);
		return true;
	}
	if (is_about_cq(event))
		return wants_all() || cqs_.contains(object);
	if (is_about_qp(event))
		return is_of_qp(object);
	/* The link concerns everybody. No event tells to which process an SRQ or a WQ belongs. */
	if (event.kind == TERN_TRACE_EVENT)
		return wants_all() || field(event.text) == "LINK";
	if (qpn_ && event.kind == TERN_TRACE_MODIFY)
		return event.number == qpn_;
	if (qpn_ && is_object(event))
		return event.number == qpn_ && field(event.text).ends_with("_QP");
	return is_of_process(process);
}

/* ---- as text and as JSON ----------------------------------------------------------------- */

std::string to_line(const tern_trace_event &event, uint64_t start)
{
	const std::string queue = queue_of(event);
	const auto since = static_cast<int64_t>(event.time - start);

	return printable(print("%14.3f us %15s %-7u %-12s %-9s %s",
	                       static_cast<double>(since) / 1000, program_of(event).c_str(),
	                       event.tgid, device_of(event).c_str(),
	                       queue.empty() ? "-" : queue.c_str(), describe(event).c_str()));
}

std::string to_chrome(std::vector<tern_trace_event> events, uint64_t lost)
{
	std::ranges::stable_sort(events, {}, &tern_trace_event::time);
	ChromeTrace trace(events.empty() ? 0 : events.front().time);
	Json &json = trace.json();

	json.object("", [&] {
		json.list("traceEvents", [&] {
			for (const tern_trace_event &event : events)
				trace.add(event);
		});
		json.text("displayTimeUnit", "ns");
		json.object("otherData", [&] { json.number("lost_events", lost); });
	});
	return json.written();
}

} // namespace tern::tools
