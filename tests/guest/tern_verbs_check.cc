// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks RC verbs between two hosts with nothing but libibverbs: errors end in the status that
 * the specification names at the right side, data arrives whole. One host runs
 *     tern_verbs_check --dev DEVICE server
 * the other one
 *     tern_verbs_check --dev DEVICE --peer ADDRESS all
 * It works with any RoCE device. Exit status 0: every case went as it must, on both sides.
 */
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iterator>

#include <getopt.h>

#include "cases.h"

namespace tern::guest {
namespace {

struct Options {
	std::string device;
	std::string peer;
	std::string port = "18600";
	int gid_index = -1;
	uint64_t seed = 0;
	unsigned seconds = 10;
	unsigned interval = 0;
	unsigned timeout = kPatientTimeout;
	unsigned qps = 4;
	unsigned require_mtu = 256;
	bool async_events = true;
	std::vector<std::string> skip;
	std::vector<std::string> commands;
};

/* What the active side tells the other before a case. */
struct Request {
	char name[32];
	uint64_t seed;
	unsigned seconds;
	unsigned interval;
	unsigned timeout;
	unsigned qps;
	ibv_mtu required_mtu;
	bool async_events;
};

constexpr char kStop[] = "stop";

std::vector<Case> all_cases()
{
	std::vector<Case> all;
	for (const auto cases :
	     {error_cases(),     data_cases(),      order_cases(),  atomic_cases(),
	      flush_cases(),     lifecycle_cases(), event_cases(),  datagram_cases(),
	      uc_cases(),        srq_cases(),       xrc_cases(),    raw_cases(),
	      window_cases(),    memory_cases(),    odp_cases(),    errno_cases(),
	      comp_cntr_cases(), cq_cases(),        pacing_cases(), stress_cases()})
		all.insert(all.end(), cases.begin(), cases.end());
	return all;
}

const Case *find_case(const std::vector<Case> &all, const std::string &name)
{
	const auto it =
	        std::find_if(all.begin(), all.end(), [&](const Case &c) { return c.name == name; });
	return it != all.end() ? &*it : nullptr;
}

void run_case(const Case &c, Device &device, Peer &peer, const Request &request, bool active)
{
	Session session = {
	        .device = device,
	        .peer = peer,
	        .active = active,
	        .async_events = request.async_events,
	        .seed = request.seed,
	        .seconds = request.seconds,
	        .interval = request.interval,
	        .timeout = request.timeout,
	        .qps = request.qps,
	        .required_mtu = request.required_mtu,
	};
	try {
		c.run(session);
		device.noted_events();
		check_device_works(session);
	} catch (const CheckFailed &e) {
		const std::string what = e.what() + device.noted_events();
		peer.give_up(what);
		throw CheckFailed(what);
	}
}

bool run_server(const Options &options)
{
	const auto all = all_cases();
	Device device(options.device, options.gid_index);
	const Socket listener = listen_on(options.port);
	bool ok = true;

	std::printf("%s waits on port %s\n", options.device.c_str(), options.port.c_str());
	for (;;) {
		std::fflush(stdout);
		try {
			Peer peer(accept_from(listener));
			auto request = peer.receive<Request>();
			request.name[sizeof(request.name) - 1] = '\0';
			if (!std::strcmp(request.name, kStop))
				return ok;
			const Case *c = find_case(all, request.name);
			if (!c) {
				peer.give_up(std::string("no case ") + request.name);
				continue;
			}
			std::printf("%s\n", c->name);
			run_case(*c, device, peer, request, false);
		} catch (const CheckFailed &e) {
			std::printf("  FAILED: %s\n", e.what());
			ok = false;
		}
	}
}

Request request_for(const Options &options, const std::string &name)
{
	Request request = {};
	name.copy(request.name, sizeof(request.name) - 1);
	request.seed = options.seed;
	request.seconds = options.seconds;
	request.interval = options.interval;
	request.timeout = options.timeout;
	request.qps = options.qps;
	request.async_events = options.async_events;
	for (int m = IBV_MTU_256; m <= IBV_MTU_4096; m++)
		if (128u << m <= options.require_mtu)
			request.required_mtu = static_cast<ibv_mtu>(m);
	return request;
}

bool run_client_case(const Case &c, Device &device, const Options &options)
{
	const auto start = Clock::now();
	std::printf("%-22s %s\n", c.name, c.what);
	std::fflush(stdout);
	try {
		Peer peer(connect_to(options.peer, options.port));
		const Request request = request_for(options, c.name);
		peer.send(request);
		run_case(c, device, peer, request, true);
	} catch (const CheckFailed &e) {
		std::printf("  FAILED: %s (seed %lu)\n", e.what(), options.seed);
		return false;
	}
	const std::chrono::duration<double> took = Clock::now() - start;
	std::printf("  ok, %.1f s\n", took.count());
	return true;
}

bool run_client(const Options &options)
{
	const auto all = all_cases();
	std::vector<Case> chosen;
	bool stop = false;
	for (const std::string &name : options.commands) {
		if (name == "all")
			chosen.insert(chosen.end(), all.begin(), all.end());
		else if (name == kStop)
			stop = true;
		else if (const Case *c = find_case(all, name))
			chosen.push_back(*c);
		else
			throw CheckFailed("no case " + name + " (see: list)");
	}
	std::erase_if(chosen, [&](const Case &c) {
		return std::find(options.skip.begin(), options.skip.end(), c.name) !=
		       options.skip.end();
	});

	unsigned failed = 0;
	if (!chosen.empty()) {
		Device device(options.device, options.gid_index);
		std::string names;
		for (const Case &c : chosen) {
			if (run_client_case(c, device, options))
				continue;
			failed++;
			names += std::string(" ") + c.name;
		}
		std::printf("%zu cases, %u failed%s%s\n", chosen.size(), failed, failed ? ":" : "",
		            names.c_str());
	}
	if (stop) {
		Peer peer(connect_to(options.peer, options.port));
		peer.send(request_for(options, kStop));
	}
	return !failed;
}

[[noreturn]] void usage(int status)
{
	std::fprintf(
	        status ? stderr : stdout,
	        "usage: tern_verbs_check --dev DEVICE [options] server\n"
	        "       tern_verbs_check --dev DEVICE --peer ADDRESS [options] all|CASE... [stop]\n"
	        "       tern_verbs_check list\n"
	        "  --port N             TCP port of the server (18600)\n"
	        "  --gid-index N        GID of the port (the first of RoCE v2 with an IPv4 "
	        "address)\n"
	        "  --seed N             of all that is random (the time)\n"
	        "  --seconds N          how long 'stress' goes on (10)\n"
	        "  --interval N         microseconds that it waits before each request (0)\n"
	        "  --timeout N          the ACK timeout of its QPs (18)\n"
	        "  --qps N              how many QPs it uses (4)\n"
	        "  --require-mtu N      path MTU that 'mtu' must reach (256)\n"
	        "  --no-async-events    ask the responder for no asynchronous events\n"
	        "  --skip CASE[,CASE]   leave these out of 'all'\n");
	std::exit(status);
}

unsigned number(const char *text)
{
	char *end;
	const unsigned long n = std::strtoul(text, &end, 0);
	if (end == text || *end)
		usage(2);
	return static_cast<unsigned>(n);
}

std::vector<std::string> split(const std::string &text)
{
	std::vector<std::string> parts;
	size_t at = 0;
	while (at <= text.size()) {
		const size_t comma = std::min(text.find(',', at), text.size());
		parts.push_back(text.substr(at, comma - at));
		at = comma + 1;
	}
	return parts;
}

Options parse(int argc, char **argv)
{
	Options options;
	options.seed = static_cast<uint64_t>(std::time(nullptr));
	const option longs[] = {
	        {"dev", required_argument, nullptr, 'd'},
	        {"peer", required_argument, nullptr, 'p'},
	        {"port", required_argument, nullptr, 'P'},
	        {"gid-index", required_argument, nullptr, 'g'},
	        {"seed", required_argument, nullptr, 's'},
	        {"seconds", required_argument, nullptr, 't'},
	        {"interval", required_argument, nullptr, 'i'},
	        {"timeout", required_argument, nullptr, 'T'},
	        {"qps", required_argument, nullptr, 'q'},
	        {"require-mtu", required_argument, nullptr, 'm'},
	        {"no-async-events", no_argument, nullptr, 'n'},
	        {"skip", required_argument, nullptr, 'k'},
	        {"help", no_argument, nullptr, 'h'},
	        {},
	};
	for (int c; (c = getopt_long(argc, argv, "h", longs, nullptr)) != -1;) {
		switch (c) {
		case 'd':
			options.device = optarg;
			break;
		case 'p':
			options.peer = optarg;
			break;
		case 'P':
			options.port = optarg;
			break;
		case 'g':
			options.gid_index = static_cast<int>(number(optarg));
			break;
		case 's':
			options.seed = std::strtoull(optarg, nullptr, 0);
			break;
		case 't':
			options.seconds = number(optarg);
			break;
		case 'i':
			options.interval = number(optarg);
			break;
		case 'T':
			options.timeout = std::min(number(optarg), 31u);
			break;
		case 'q':
			options.qps = std::clamp(number(optarg), 1u, 64u);
			break;
		case 'm':
			options.require_mtu = number(optarg);
			break;
		case 'n':
			options.async_events = false;
			break;
		case 'k':
			options.skip = split(optarg);
			break;
		default:
			usage(c == 'h' ? 0 : 2);
		}
	}
	options.commands.assign(argv + optind, argv + argc);
	return options;
}

int run(const Options &options)
{
	if (options.commands.empty())
		usage(2);
	if (options.commands[0] == "list") {
		for (const Case &c : all_cases())
			std::printf("%-22s %s\n", c.name, c.what);
		return 0;
	}
	const bool server = options.commands[0] == "server";
	const bool only_stop = options.commands == std::vector<std::string>{kStop};
	if ((options.device.empty() && !only_stop) || (!server && options.peer.empty()))
		usage(2);
	return (server ? run_server(options) : run_client(options)) ? 0 : 1;
}

} // namespace
} // namespace tern::guest

int main(int argc, char **argv)
{
	try {
		return tern::guest::run(tern::guest::parse(argc, argv));
	} catch (const std::exception &e) {
		std::fprintf(stderr, "tern_verbs_check: %s\n", e.what());
		return 1;
	}
}
