// SPDX-License-Identifier: GPL-2.0-or-later
#include "top_report.h"

#include "qemu/rnic/json.h"
#include "text.h"

namespace tern::tools {

namespace {

constexpr std::array<const char *, TERN_GROUPS> kGroups{"send",  "write", "read", "atomic",
                                                        "flush", "local", "recv"};

double per_second(const Counter &counter, const Sample &sample)
{
	return sample.interval_ms ? static_cast<double>(counter.recent) * 1000 /
	                                    static_cast<double>(sample.interval_ms)
	                          : 0;
}

/* ---- text ---------------------------------------------------------------------------- */

std::string depth_text(const std::optional<CqDepth> &cq)
{
	return cq ? std::to_string(cq->depth) : "-";
}

std::string latency_text(const QpSample &qp, uint32_t percent)
{
	return total(qp.recent_latency)
	               ? print("%.1f",
	                       static_cast<double>(percentile(qp.recent_latency, percent)) / 1000)
	               : "-";
}

/* What belongs to the QP, not to one of its operations. */
std::string qp_columns(const QpSample &qp)
{
	return print(" %9s %9s %6llu %5s %5s %6llu %6llu", latency_text(qp, 50).c_str(),
	             latency_text(qp, 99).c_str(), static_cast<unsigned long long>(qp.outstanding),
	             depth_text(qp.send_cq).c_str(), depth_text(qp.recv_cq).c_str(),
	             static_cast<unsigned long long>(qp.errors.recent),
	             static_cast<unsigned long long>(qp.page_faults.recent));
}

std::string qp_lines(const QpSample &qp, const Sample &sample)
{
	const std::string name = printable(print("%7u %-15s %-10s %#8x", qp.pid, qp.program.c_str(),
	                                         qp.device.c_str(), qp.qpn));
	std::string lines;

	for (uint32_t i = 0; i < TERN_GROUPS; i++) {
		if (!qp.messages[i].recent)
			continue;
		const bool first = lines.empty();
		lines += print("%-43s %-6s %11.0f %10.3f", first ? name.c_str() : "", kGroups[i],
		               per_second(qp.messages[i], sample),
		               per_second(qp.bytes[i], sample) / 1e6);
		lines += (first ? qp_columns(qp) : "") + "\n";
	}
	if (lines.empty())
		lines = print("%-43s %-6s %11s %10s", name.c_str(), "-", "-", "-") +
		        qp_columns(qp) + "\n";
	return lines;
}

/* ---- JSON ---------------------------------------------------------------------------- */

void put_counter(Json &json, const std::string &name, const Counter &counter, const Sample &sample)
{
	json.number(name, counter.total);
	json.number(name + "_per_s", static_cast<uint64_t>(per_second(counter, sample) + 0.5));
}

void put_operations(Json &json, const QpSample &qp, const Sample &sample)
{
	for (uint32_t i = 0; i < TERN_GROUPS; i++) {
		if (!qp.messages[i].total)
			continue;
		json.object(kGroups[i], [&] {
			put_counter(json, "messages", qp.messages[i], sample);
			put_counter(json, "bytes", qp.bytes[i], sample);
		});
	}
}

/* The histogram has a pair for each bucket that is not empty: where it starts, and its number. */
void put_latency(Json &json, const QpSample &qp)
{
	json.number("count", total(qp.latency));
	json.number("p50_ns", percentile(qp.latency, 50));
	json.number("p99_ns", percentile(qp.latency, 99));
	json.number("recent_count", total(qp.recent_latency));
	json.number("recent_p50_ns", percentile(qp.recent_latency, 50));
	json.number("recent_p99_ns", percentile(qp.recent_latency, 99));
	json.list("histogram", [&] {
		for (uint32_t i = 0; i < qp.latency.size(); i++) {
			if (!qp.latency[i])
				continue;
			json.list("", [&] {
				json.number("", bucket_start(i));
				json.number("", qp.latency[i]);
			});
		}
	});
}

void put_cq(Json &json, const char *name, const std::optional<CqDepth> &cq)
{
	if (!cq)
		return;
	json.object(name, [&] {
		json.number("depth", cq->depth);
		json.number("size", cq->size);
	});
}

void put_qp(Json &json, const QpSample &qp, const Sample &sample)
{
	json.number("pid", qp.pid);
	json.text("program", printable(qp.program));
	json.text("device", printable(qp.device));
	json.number("qp", qp.qpn);
	json.object("operations", [&] { put_operations(json, qp, sample); });
	json.object("latency", [&] { put_latency(json, qp); });
	json.number("outstanding", qp.outstanding);
	put_cq(json, "send_cq", qp.send_cq);
	put_cq(json, "recv_cq", qp.recv_cq);
	json.number("errors", qp.errors.total);
	json.number("page_faults", qp.page_faults.total);
}

/* ---- the page that Prometheus reads ---------------------------------------------------- */

class Page {
public:
	/** Begins a metric, whose samples follow. */
	void metric(const char *name, const char *type, const char *help)
	{
		name_ = name;
		text_ += print("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
	}
	void value(const std::string &labels, const std::string &value, const char *suffix = "")
	{
		text_ += name_ + suffix + "{" + labels + "} " + value + "\n";
	}
	void value(const std::string &labels, uint64_t number, const char *suffix = "")
	{
		value(labels, std::to_string(number), suffix);
	}
	std::string &text() { return text_; }

private:
	std::string name_;
	std::string text_;
};

std::string labels_of(const QpSample &qp)
{
	return print("pid=\"%u\",program=\"%s\",device=\"%s\",qp=\"%#x\"", qp.pid,
	             quotable(qp.program).c_str(), quotable(qp.device).c_str(), qp.qpn);
}

std::string operation_labels(const QpSample &qp, uint32_t group)
{
	return labels_of(qp) + ",operation=\"" + kGroups[group] + "\"";
}

void put_operations(Page &page, const Sample &sample,
                    std::array<Counter, TERN_GROUPS> QpSample::*counters)
{
	for (const QpSample &qp : sample.qps)
		for (uint32_t i = 0; i < TERN_GROUPS; i++)
			if (qp.messages[i].total)
				page.value(operation_labels(qp, i), (qp.*counters)[i].total);
}

/* Buckets are cumulative; those that add nothing may be left out. */
void put_latency(Page &page, const QpSample &qp)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i + 1 < qp.latency.size(); i++) {
		if (!qp.latency[i])
			continue;
		sum += qp.latency[i];
		page.value(labels_of(qp) + print(",le=\"%.9f\"",
		                                 static_cast<double>(bucket_start(i + 1)) / 1e9),
		           sum, "_bucket");
	}
	page.value(labels_of(qp) + ",le=\"+Inf\"", total(qp.latency), "_bucket");
	page.value(labels_of(qp), print("%.9f", static_cast<double>(qp.latency_ns) / 1e9), "_sum");
	page.value(labels_of(qp), total(qp.latency), "_count");
}

void put_cqs(Page &page, const QpSample &qp)
{
	if (qp.send_cq)
		page.value(labels_of(qp) + ",cq=\"send\"", qp.send_cq->depth);
	if (qp.recv_cq)
		page.value(labels_of(qp) + ",cq=\"recv\"", qp.recv_cq->depth);
}

void put_devices(Page &page, const Sample &sample)
{
	page.metric("tern_device_events_total", "counter", "Counters of the card (hw_counters).");
	for (const DeviceSample &device : sample.devices)
		for (size_t i = 0; i < kCounters.size(); i++)
			page.value(print("device=\"%s\",counter=\"%s\"",
			                 quotable(device.name).c_str(), kCounters[i]),
			           device.counters[i].total);
}

} // namespace

std::string to_text(const Sample &sample)
{
	std::string text;

	for (const DeviceSample &device : sample.devices) {
		text += printable(device.name) + ":";
		for (size_t i = 0; i < kCounters.size(); i++)
			text += print("%s %s %.0f/s", i ? "," : "", kCounters[i],
			              per_second(device.counters[i], sample));
		text += "\n";
	}
	text += print("%7s %-15s %-10s %8s %-6s %11s %10s %9s %9s %6s %5s %5s %6s %6s\n", "PID",
	              "PROGRAM", "DEVICE", "QP", "WHAT", "MESSAGES/S", "MB/S", "P50 us", "P99 us",
	              "POSTED", "SCQ", "RCQ", "ERRORS", "FAULTS");
	for (const QpSample &qp : sample.qps)
		if (qp.is_active())
			text += qp_lines(qp, sample);
	return text;
}

std::string to_json(const Sample &sample)
{
	Json json;

	json.object("", [&] {
		json.number("interval_ms", sample.interval_ms);
		json.list("devices", [&] {
			for (const DeviceSample &device : sample.devices)
				json.object("", [&] {
					json.text("device", printable(device.name));
					for (size_t i = 0; i < kCounters.size(); i++)
						put_counter(json, kCounters[i], device.counters[i],
						            sample);
				});
		});
		json.list("qps", [&] {
			for (const QpSample &qp : sample.qps)
				json.object("", [&] { put_qp(json, qp, sample); });
		});
	});
	return json.written();
}

std::string to_prometheus(const Sample &sample)
{
	Page page;

	page.metric("tern_qp_messages_total", "counter",
	            "Work requests posted, messages received.");
	put_operations(page, sample, &QpSample::messages);
	page.metric("tern_qp_bytes_total", "counter", "Bytes of these.");
	put_operations(page, sample, &QpSample::bytes);
	page.metric("tern_qp_errors_total", "counter", "Completions with an error.");
	for (const QpSample &qp : sample.qps)
		page.value(labels_of(qp), qp.errors.total);
	page.metric("tern_qp_page_faults_total", "counter", "Page faults of on-demand regions.");
	for (const QpSample &qp : sample.qps)
		page.value(labels_of(qp), qp.page_faults.total);
	page.metric("tern_qp_outstanding", "gauge", "Send work requests without completion.");
	for (const QpSample &qp : sample.qps)
		page.value(labels_of(qp), qp.outstanding);
	page.metric("tern_qp_cq_depth", "gauge", "Completions that the program has not consumed.");
	for (const QpSample &qp : sample.qps)
		put_cqs(page, qp);
	page.metric("tern_qp_latency_seconds", "histogram", "From post to completion seen.");
	for (const QpSample &qp : sample.qps)
		put_latency(page, qp);
	put_devices(page, sample);
	return page.text();
}

} // namespace tern::tools
