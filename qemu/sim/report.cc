// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/sim/report.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "qemu/rnic/json.h"

namespace tern::sim {

namespace {

constexpr double kGiga = 1e9;
/* More rows of a table and more curves in a picture are of no use to a reader. */
constexpr size_t kMaxRows = 40;
constexpr size_t kMaxCurves = 20;

[[gnu::format(printf, 1, 2)]] std::string format(const char *how, ...)
{
	char text[256];
	va_list values;
	va_start(values, how);
	std::vsnprintf(text, sizeof(text), how, values);
	va_end(values);
	return text;
}

std::string name_of(const World &world, const Flow &flow)
{
	return world.scenario.cards[flow.spec.from] + " to " + world.scenario.cards[flow.spec.to];
}

std::string name_of(const fabric::QueueRef &queue)
{
	return queue.name + format(" priority %u", queue.priority);
}

/* The latency, in us, that @share of the messages do not exceed. */
double latency(const Flow &flow, double share)
{
	if (flow.latencies.empty())
		return 0;
	auto sorted = flow.latencies;
	const auto at =
	        static_cast<ptrdiff_t>(std::ceil(share * static_cast<double>(sorted.size())) - 1);
	std::nth_element(sorted.begin(), sorted.begin() + at, sorted.end());
	return static_cast<double>(sorted[static_cast<size_t>(at)]) / 1000;
}

double total_rate(const World &world)
{
	double sum = 0;
	for (size_t i = 0; i < world.flows.size(); i++)
		sum += world.rate(i);
	return sum;
}

uint64_t sum_of(const std::array<uint64_t, kPriorities> &all)
{
	return std::accumulate(all.begin(), all.end(), uint64_t{0});
}

/* The indices of the @count largest of @values, in the order of the indices. */
std::vector<size_t> largest(const std::vector<double> &values, size_t count)
{
	std::vector<size_t> order(values.size());
	std::iota(order.begin(), order.end(), size_t{0});
	std::ranges::stable_sort(order, [&](size_t a, size_t b) { return values[a] > values[b]; });
	order.resize(std::min(order.size(), count));
	std::ranges::sort(order);
	return order;
}

std::vector<double> rates(const World &world)
{
	std::vector<double> all;
	for (size_t i = 0; i < world.flows.size(); i++)
		all.push_back(world.rate(i));
	return all;
}

std::vector<double> mean_lengths(const World &world)
{
	std::vector<double> all;
	for (size_t i = 0; i < world.queues.size(); i++)
		all.push_back(world.mean_length(i));
	return all;
}

} // namespace

double fairness(const World &world)
{
	double sum = 0, squares = 0;
	for (const double rate : rates(world)) {
		sum += rate;
		squares += rate * rate;
	}
	const auto n = static_cast<double>(world.flows.size());
	return squares > 0 ? sum * sum / (n * squares) : 1;
}

/* ---- table ---- */

namespace {

void print_flows(const World &world, FILE *out)
{
	std::fprintf(out, "%-28s %10s %9s %10s %10s %8s\n", "flow", "messages", "Gb/s", "median us",
	             "99 % us", "CNPs");
	for (const size_t i : largest(rates(world), kMaxRows)) {
		const Flow &flow = *world.flows[i];
		std::fprintf(out, "%-28s %10" PRIu64 " %9.3f %10.1f %10.1f %8" PRIu64 "%s\n",
		             name_of(world, flow).c_str(), flow.messages, world.rate(i) / kGiga,
		             latency(flow, 0.5), latency(flow, 0.99), flow.measured_cnps(),
		             flow.error ? format("  failed, status %u", flow.error).c_str() : "");
	}
	if (world.flows.size() > kMaxRows)
		std::fprintf(out, "... and %zu slower ones\n", world.flows.size() - kMaxRows);
	std::fprintf(out, "%zu flows, %.3f Gb/s in all, fairness %.4f\n\n", world.flows.size(),
	             total_rate(world) / kGiga, fairness(world));
}

void print_queues(const World &world, FILE *out)
{
	std::fprintf(out, "%-28s %10s %10s %10s %9s %9s\n", "queue", "frames", "mean B", "max B",
	             "marked", "dropped");
	for (const size_t i : largest(mean_lengths(world), kMaxRows)) {
		const auto &stats = world.queues[i].stats();
		std::fprintf(out,
		             "%-28s %10" PRIu64 " %10.0f %10" PRIu64 " %9" PRIu64 " %9" PRIu64 "\n",
		             name_of(world.queues[i]).c_str(), stats.frames, world.mean_length(i),
		             stats.max_bytes, stats.marked, stats.dropped);
	}
	std::fputc('\n', out);
}

/* Those on which something was paused or lost. */
void print_links(const World &world, FILE *out)
{
	std::fprintf(out, "%-28s %10s %10s %10s %9s\n", "link", "load %", "pauses >", "pauses <",
	             "lost");
	size_t rows = 0;
	for (size_t i = 0; i < world.fabric.links() && rows < kMaxRows; i++) {
		const auto [a, b] = world.fabric.ends(static_cast<unsigned>(i));
		const uint64_t there = sum_of(a->stats().pauses_sent);
		const uint64_t back = sum_of(b->stats().pauses_sent);
		const uint64_t lost = a->stats().lost + b->stats().lost;
		if (!there && !back && !lost)
			continue;
		rows++;
		const Scenario::Link &link = world.scenario.links[i];
		const std::string name =
		        world.scenario.name_of(link.a) + " - " + world.scenario.name_of(link.b);
		std::fprintf(out, "%-28s %10.1f %10" PRIu64 " %10" PRIu64 " %9" PRIu64 "\n",
		             name.c_str(),
		             100 * std::max(world.utilisation(i, 0), world.utilisation(i, 1)),
		             there, back, lost);
	}
	std::fputs(rows ? "\n" : "all: nothing paused or lost\n\n", out);
}

void print_rules(const World &world, FILE *out)
{
	for (const auto &[number, rule] : world.faults.rules())
		std::fprintf(out, "rule %u: %s: matched %" PRIu64 ", hit %" PRIu64 "\n", number,
		             world.scenario.rules[number - 1].shown.c_str(), rule.matched(),
		             rule.hits());
	if (!world.scenario.rules.empty())
		std::fputc('\n', out);
}

} // namespace

void print_table(World &world, FILE *out)
{
	print_flows(world, out);
	print_queues(world, out);
	print_links(world, out);
	print_rules(world, out);
	fabric::Switch::Stats sum;
	for (unsigned i = 0; i < world.fabric.switches(); i++) {
		const auto stats = world.fabric.at(i).stats();
		sum.unreachable += stats.unreachable;
		sum.pfc_dropped += stats.pfc_dropped;
	}
	std::fprintf(out,
	             "%" PRIu64 " packets; %" PRIu64 " dropped beyond the headroom, %" PRIu64
	             " without a path\n",
	             world.packets(), sum.pfc_dropped, sum.unreachable);
}

/* ---- JSON ---- */

namespace {

template <typename List, typename F>
std::string array(const List &list, F f)
{
	std::string out = "[";
	for (size_t i = 0; i < list.size(); i++)
		out += (i ? ", " : "") + f(list[i]);
	return out + "]";
}

template <typename Numbers>
std::string numbers(const Numbers &list)
{
	return array(list, [](uint64_t n) { return std::to_string(n); });
}

/* Objects, one a line. */
class Lines {
public:
	explicit Lines(std::string &out) : out_(out) {}
	void add(const std::string &object)
	{
		out_ += (first_ ? "\n    " : ",\n    ") + object;
		first_ = false;
	}

private:
	std::string &out_;
	bool first_ = true;
};

void add_flows(const World &world, std::string &out)
{
	Lines lines(out);
	for (size_t i = 0; i < world.flows.size(); i++) {
		const Flow &flow = *world.flows[i];
		lines.add("{\"from\": " + json_string(world.scenario.cards[flow.spec.from]) +
		          ", \"to\": " + json_string(world.scenario.cards[flow.spec.to]) +
		          format(", \"messages\": %" PRIu64
		                 ", \"rate\": %.0f, \"median_us\": %.3f, "
		                 "\"p99_us\": %.3f, \"cnps\": %" PRIu64 ", \"status\": %u, ",
		                 flow.messages, world.rate(i), latency(flow, 0.5),
		                 latency(flow, 0.99), flow.measured_cnps(), flow.error) +
		          "\"rates\": " + numbers(world.curves.rates[i]) + "}");
	}
}

void add_queues(const World &world, std::string &out)
{
	Lines lines(out);
	for (size_t i = 0; i < world.queues.size(); i++) {
		const auto &stats = world.queues[i].stats();
		lines.add("{\"name\": " + json_string(world.queues[i].name) +
		          format(", \"priority\": %u, \"frames\": %" PRIu64 ", \"bytes\": %" PRIu64
		                 ", \"mean_bytes\": %.1f, \"max_bytes\": %" PRIu64
		                 ", \"marked\": %" PRIu64 ", \"dropped\": %" PRIu64 ", ",
		                 world.queues[i].priority, stats.frames, stats.bytes,
		                 world.mean_length(i), stats.max_bytes, stats.marked,
		                 stats.dropped) +
		          "\"lengths\": " + numbers(world.curves.lengths[i]) + "}");
	}
}

std::string end_of(const World &world, size_t link, size_t end)
{
	const Scenario::Link &spec = world.scenario.links[link];
	const auto ends = world.fabric.ends(static_cast<unsigned>(link));
	const auto &stats = (end ? ends.b : ends.a)->stats();
	return "{\"name\": " + json_string(world.scenario.name_of(end ? spec.b : spec.a)) +
	       format(", \"tx_frames\": %" PRIu64 ", \"rx_frames\": %" PRIu64 ", \"lost\": %" PRIu64
	              ", \"load\": %.4f, ",
	              stats.tx_frames, stats.rx_frames, stats.lost, world.utilisation(link, end)) +
	       "\"pauses_sent\": " + numbers(stats.pauses_sent) +
	       ", \"pauses_received\": " + numbers(stats.pauses_received) +
	       format(", \"pause_storms\": %" PRIu64 ", \"storm_dropped\": %" PRIu64 "}",
	              stats.pause_storms, stats.storm_dropped);
}

void add_links(const World &world, std::string &out)
{
	Lines lines(out);
	for (size_t i = 0; i < world.fabric.links(); i++)
		lines.add("[" + end_of(world, i, 0) + ", " + end_of(world, i, 1) + "]");
}

void add_switches(World &world, std::string &out)
{
	Lines lines(out);
	for (unsigned i = 0; i < world.fabric.switches(); i++) {
		const auto stats = world.fabric.at(i).stats();
		lines.add("{\"name\": " + json_string(world.scenario.switches[i]) +
		          format(", \"flooded\": %" PRIu64 ", \"filtered\": %" PRIu64
		                 ", \"unreachable\": %" PRIu64 ", \"pfc_dropped\": %" PRIu64 "}",
		                 stats.flooded, stats.filtered, stats.unreachable,
		                 stats.pfc_dropped));
	}
}

void add_rules(const World &world, std::string &out)
{
	Lines lines(out);
	for (const auto &[number, rule] : world.faults.rules())
		lines.add("{\"rule\": " + std::to_string(number) +
		          ", \"text\": " + json_string(world.scenario.rules[number - 1].shown) +
		          format(", \"matched\": %" PRIu64 ", \"hits\": %" PRIu64 "}",
		                 rule.matched(), rule.hits()));
}

void add_faults(const World &world, std::string &out)
{
	Lines lines(out);
	for (const FaultNote &note : world.fault_notes) {
		std::string packet;
		if (note.packet)
			packet = ", \"opcode\": " +
			         json_string(faults::opcode_name(note.packet->opcode,
			                                         note.packet->ack_kind)) +
			         format(", \"qp\": %u, \"psn\": %u", note.packet->qpn,
			                note.packet->psn.value());
		lines.add(format("{\"time_ns\": %" PRIu64 ", \"link\": ", note.when) +
		          json_string(world.faults.links()[note.link_end].name) +
		          ", \"action\": " + json_string(faults::fault_name(note.fault)) +
		          format(", \"rule\": %u", note.rule) + packet + "}");
	}
}

} // namespace

std::string to_json(World &world)
{
	const Scenario &s = world.scenario;
	std::string out =
	        format("{\n  \"seed\": %" PRIu64 ",\n  \"duration_ns\": %" PRIu64
	               ",\n  \"warmup_ns\": %" PRIu64 ",\n  \"sample_ns\": %" PRIu64
	               ",\n  \"packets\": %" PRIu64 ",\n  \"fairness\": %.6f",
	               s.seed, s.duration, s.warmup, s.sample, world.packets(), fairness(world));
	out += ",\n  \"flows\": [";
	add_flows(world, out);
	out += "\n  ],\n  \"queues\": [";
	add_queues(world, out);
	out += "\n  ],\n  \"links\": [";
	add_links(world, out);
	out += "\n  ],\n  \"switches\": [";
	add_switches(world, out);
	out += "\n  ],\n  \"rules\": [";
	add_rules(world, out);
	out += "\n  ],\n  \"faults\": [";
	add_faults(world, out);
	out += "\n  ],\n  \"cnps\": " + numbers(world.curves.cnps) + "\n}\n";
	return out;
}

/* ---- plots ---- */

namespace {

struct Curve {
	std::string title;
	const std::vector<uint64_t> *values;
	double scale; /* of the values */
};

/* Writes NAME.dat and the commands that draw NAME.svg. Returns whether they could be written. */
bool draw(const World &world, const std::string &folder, const std::string &name,
          const std::string &axis, const std::vector<Curve> &curves)
{
	const std::string base = folder + "/" + name;
	std::ofstream data(base + ".dat");
	data << "ms";
	for (const Curve &curve : curves)
		data << "\t\"" << curve.title << "\"";
	for (size_t i = 0; i < world.curves.cnps.size(); i++) {
		data << "\n"
		     << format("%.6f", static_cast<double>((i + 1) * world.scenario.sample) / 1e6);
		for (const Curve &curve : curves)
			data << format("\t%.6g",
			               static_cast<double>((*curve.values)[i]) * curve.scale);
	}
	data << "\n";
	data.close();
	if (!data)
		return false;
	std::ostringstream script;
	script << "set terminal svg size 900,500 background 'white'\n"
	       << "set output '" << name << ".svg'\n"
	       << "set xlabel 'ms'\nset ylabel '" << axis << "'\nset yrange [0:*]\nset grid\n"
	       << "set key outside noenhanced\nplot for [n=2:" << curves.size() + 1 << "] '" << name
	       << ".dat' using 1:n with lines title columnheader(n)\n";
	std::ofstream commands(base + ".gnuplot");
	commands << script.str();
	commands.close();
	return static_cast<bool>(commands);
}

} // namespace

std::string plot(World &world, const std::string &folder)
{
	std::error_code error;
	std::filesystem::create_directories(folder, error);
	if (error)
		return folder + ": " + error.message();
	std::vector<Curve> flows, queues;
	for (const size_t i : largest(rates(world), kMaxCurves))
		flows.push_back(
		        {name_of(world, *world.flows[i]), &world.curves.rates[i], 1 / kGiga});
	for (const size_t i : largest(mean_lengths(world), kMaxCurves))
		queues.push_back({name_of(world.queues[i]), &world.curves.lengths[i], 1e-3});
	const std::vector<Curve> cnps{{"all flows", &world.curves.cnps, 1}};
	const bool written = draw(world, folder, "rates", "Gb/s", flows) &&
	                     draw(world, folder, "queues", "KB", queues) &&
	                     draw(world, folder, "cnps", "CNPs", cnps);
	if (!written)
		return folder + ": cannot write";
	std::filesystem::current_path(folder, error);
	/* Constant words: no name of the scenario gets into the command. */
	if (error || std::system("gnuplot rates.gnuplot queues.gnuplot cnps.gnuplot") != 0)
		return "gnuplot failed";
	return {};
}

} // namespace tern::sim
