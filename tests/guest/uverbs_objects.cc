// SPDX-License-Identifier: GPL-2.0-or-later
/* This file has the operations on contexts, domains, address handles, flows, counters and event
 * files. */
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "uverbs_fuzzer.h"

namespace tern::guest::uverbs {
namespace {

constexpr uint8_t kPort = 1;
/* enum ib_flow_spec_type of the kernel, which no header of its interface names. */
constexpr uint32_t kSpecEth = 0x20, kSpecIpv4 = 0x30, kSpecIpv6 = 0x31, kSpecTcp = 0x40,
                   kSpecUdp = 0x41, kSpecCount = 0x1003;

/* --- contexts --- */

int get_context(Fuzzer &f)
{
	ib_uverbs_get_context in = {};
	ib_uverbs_get_context_resp out = {};
	tern_alloc_ucontext_resp driver = {};
	const int err = f.call(Command{.number = IB_USER_VERBS_CMD_GET_CONTEXT,
	                               .in = part(in),
	                               .out = part(out),
	                               .driver_out = part(driver)});
	if (err)
		return err;
	f.context->doorbell_key = driver.db_key;
	f.context->add_key({driver.db_key, driver.db_len});
	f.created(Kind::kAsync, {.handle = out.async_fd});
	return 0;
}

/** Without a file of events, which alloc_async() makes. */
int get_context_by_ioctl(Fuzzer &f)
{
	uint32_t vectors;
	uint64_t support;
	tern_alloc_ucontext_resp driver = {};
	Method method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	method.out(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, vectors)
	        .out(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, support)
	        .out(UVERBS_ATTR_UHW_OUT, driver);
	const int err = f.call(method);
	if (err)
		return err;
	f.context->doorbell_key = driver.db_key;
	f.context->add_key({driver.db_key, driver.db_len});
	return 0;
}

/** A new file in place of the old one, which other threads may be using. Mappings keep that one
 * open. */
int open_file(Fuzzer &f)
{
	const int fd = open(f.process.path.c_str(), O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno;
	const int old = f.context->exchange(fd);
	if (old >= 0)
		close(old);
	if (f.rng.chance(1, 16))
		return 0; /* whoever calls get_context() is early enough */
	return f.rng.chance(1, 2) ? get_context(f) : get_context_by_ioctl(f);
}

int alloc_async(Fuzzer &f)
{
	Method method(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
	method.handle(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);
	const int err = f.call(method);
	if (!err)
		f.created(Kind::kAsync, {.handle = method.result(0)});
	return err;
}

int query_device(Fuzzer &f)
{
	ib_uverbs_query_device in = {};
	ib_uverbs_query_device_resp out;
	return f.call(Command{
	        .number = IB_USER_VERBS_CMD_QUERY_DEVICE, .in = part(in), .out = part(out)});
}

int query_device_ex(Fuzzer &f)
{
	ib_uverbs_ex_query_device in = {.comp_mask = f.value(0u), .reserved = f.value(0u)};
	ib_uverbs_ex_query_device_resp out;
	return f.call(Command{.number = IB_USER_VERBS_EX_CMD_QUERY_DEVICE,
	                      .in = part(in),
	                      .out = part(out),
	                      .extended = true});
}

int query_port(Fuzzer &f)
{
	const uint8_t port = f.value(kPort);
	if (f.rng.chance(1, 2)) {
		ib_uverbs_query_port_resp_ex out;
		Method method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
		method.in(UVERBS_ATTR_QUERY_PORT_PORT_NUM, port)
		        .out(UVERBS_ATTR_QUERY_PORT_RESP, out);
		return f.call(method);
	}
	ib_uverbs_query_port in = {};
	ib_uverbs_query_port_resp out;
	in.port_num = port;
	return f.call(
	        Command{.number = IB_USER_VERBS_CMD_QUERY_PORT, .in = part(in), .out = part(out)});
}

int query_context(Fuzzer &f)
{
	uint32_t vectors;
	uint64_t support;
	tern_alloc_ucontext_resp driver;
	Method method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT);
	method.out(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, vectors)
	        .out(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, support)
	        .out(TERN_ATTR_QUERY_CONTEXT_RESP, driver);
	return f.call(method);
}

int query_gids(Fuzzer &f)
{
	ib_uverbs_gid_entry entries[8];
	if (f.rng.chance(1, 2)) {
		const uint64_t size = f.value(sizeof(entries[0]));
		uint64_t count;
		Method method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);
		method.in(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, size)
		        .in(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, f.value(0u))
		        .out(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, entries)
		        .out(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, count);
		return f.call(method);
	}
	const auto index = static_cast<uint32_t>(f.process.options.gid_index);
	Method method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY);
	method.in(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, f.value(uint32_t{kPort}))
	        .in(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, f.value(index))
	        .in(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, f.value(0u))
	        .out(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, entries[0]);
	return f.call(method);
}

int info_handles(Fuzzer &f)
{
	uint32_t total, list[64];
	const uint64_t object = f.value(f.rng.below(UVERBS_OBJECT_ASYNC_EVENT + 1));
	Method method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
	method.in(UVERBS_ATTR_INFO_OBJECT_ID, object)
	        .out(UVERBS_ATTR_INFO_TOTAL_HANDLES, total)
	        .out(UVERBS_ATTR_INFO_HANDLES_LIST, list);
	return f.call(method);
}

/* --- domains --- */

int alloc_pd(Fuzzer &f)
{
	ib_uverbs_alloc_pd in = {};
	ib_uverbs_alloc_pd_resp out = {};
	tern_alloc_pd_resp driver = {};
	const int err = f.call(Command{.number = IB_USER_VERBS_CMD_ALLOC_PD,
	                               .in = part(in),
	                               .out = part(out),
	                               .driver_out = part(driver)});
	if (!err)
		f.created(Kind::kPd, {.handle = out.pd_handle, .number = driver.pdn});
	return err;
}

int query_pd(Fuzzer &f)
{
	tern_alloc_pd_resp out;
	Method method(UVERBS_OBJECT_PD, TERN_METHOD_PD_QUERY);
	method.handle(TERN_ATTR_PD_QUERY_HANDLE, f.handle(Kind::kPd))
	        .out(TERN_ATTR_PD_QUERY_RESP, out);
	return f.call(method);
}

/** Of the file that all processes share, or of none. */
int open_xrcd(Fuzzer &f)
{
	ib_uverbs_open_xrcd in = {};
	ib_uverbs_open_xrcd_resp out = {};
	const int file = f.rng.chance(1, 2) ? f.process.xrc_file : -1;
	in.fd = f.value(static_cast<uint32_t>(file));
	in.oflags = f.value(f.one_of<uint32_t>({O_CREAT, O_CREAT, O_CREAT, 0, O_CREAT | O_EXCL}));
	const int err = f.call(
	        Command{.number = IB_USER_VERBS_CMD_OPEN_XRCD, .in = part(in), .out = part(out)});
	if (!err)
		f.created(Kind::kXrcd, {.handle = out.xrcd_handle});
	return err;
}

/* --- addresses --- */

int create_ah(Fuzzer &f)
{
	ib_uverbs_create_ah in = {};
	ib_uverbs_create_ah_resp out = {};
	tern_create_ah_resp driver = {};
	in.pd_handle = f.handle(Kind::kPd);
	f.destination(in.attr.grh.dgid);
	in.attr.grh.flow_label = f.value(0u);
	in.attr.grh.sgid_index = f.value(static_cast<uint8_t>(f.process.options.gid_index));
	in.attr.grh.hop_limit = f.value(uint8_t{64});
	in.attr.grh.traffic_class = f.value(uint8_t{0});
	in.attr.sl = f.value(uint8_t{0});
	in.attr.is_global = f.value(uint8_t{1});
	in.attr.port_num = f.value(kPort);
	const int err = f.call(Command{.number = IB_USER_VERBS_CMD_CREATE_AH,
	                               .in = part(in),
	                               .out = part(out),
	                               .driver_out = part(driver)});
	if (!err)
		f.created(Kind::kAh, {.handle = out.ah_handle});
	return err;
}

int multicast(Fuzzer &f)
{
	/* An IPv4 group as a GID. */
	static constexpr uint8_t kGroup[16] = {0xff, 0x0e, 0,    0,    0,   0, 0, 0,
	                                       0,    0,    0xff, 0xff, 239, 1, 2, 3};
	ib_uverbs_attach_mcast in = {};
	std::memcpy(in.gid, kGroup, sizeof(in.gid));
	in.gid[15] = f.value(in.gid[15]);
	const Object qp = f.object(Kind::kQp, IB_UVERBS_QPT_UD);
	/* ib_uverbs does not initialise the mutex of a QP that was made by another process.
	 * lockdep reports that and switches itself off. */
	if (qp.type == IB_UVERBS_QPT_XRC_TGT)
		return kNothing;
	in.qp_handle = qp.handle;
	in.mlid = f.value(uint16_t{0});
	const bool attach = f.rng.chance(2, 3);
	return f.call(Command{.number = attach ? IB_USER_VERBS_CMD_ATTACH_MCAST + 0u
	                                       : IB_USER_VERBS_CMD_DETACH_MCAST + 0u,
	                      .in = part(in)});
}

/* --- flows and their counters --- */

int create_counters(Fuzzer &f)
{
	Method method(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE);
	method.handle(UVERBS_ATTR_CREATE_COUNTERS_HANDLE);
	const int err = f.call(method);
	if (!err)
		f.created(Kind::kCounters, {.handle = method.result(0)});
	return err;
}

int read_counters(Fuzzer &f)
{
	uint64_t values[4];
	Method method(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ);
	method.handle(UVERBS_ATTR_READ_COUNTERS_HANDLE, f.handle(Kind::kCounters))
	        .in(UVERBS_ATTR_READ_COUNTERS_FLAGS, f.value(0u))
	        .out(UVERBS_ATTR_READ_COUNTERS_BUFF,
	             {values, sizeof(values[0]) * (1 + f.rng.below(4))});
	return f.call(method);
}

/** A header of the frames of a flow; what is compared is random. */
struct Specs {
	uint8_t bytes[256] = {};
	uint16_t size = 0;
	uint8_t count = 0;

	void add(Fuzzer &f, uint32_t type, uint16_t length, bool compare)
	{
		ib_uverbs_flow_spec_hdr header = {};
		header.type = f.value(type);
		header.size = f.value(length);
		std::memcpy(bytes + size, &header, sizeof(header));
		if (compare) {
			const size_t half = (length - sizeof(header)) / 2;
			const size_t at = size + sizeof(header) + f.rng.below(half);
			bytes[at] = bytes[at + half] = static_cast<uint8_t>(f.rng.next());
		}
		size = static_cast<uint16_t>(size + length);
		count++;
	}
	void add_count(Fuzzer &f)
	{
		const size_t at = size;
		add(f, kSpecCount, sizeof(ib_uverbs_flow_spec_action_count), false);
		const uint32_t handle = f.handle(Kind::kCounters);
		std::memcpy(bytes + at + sizeof(ib_uverbs_flow_spec_hdr), &handle, sizeof(handle));
	}
};

void add_headers(Fuzzer &f, Specs &specs)
{
	const bool compare = f.rng.chance(1, 2), ipv6 = f.rng.chance(1, 2);
	if (f.rng.chance(1, 2))
		specs.add(f, kSpecEth, sizeof(ib_uverbs_flow_spec_eth), compare);
	if (f.rng.chance(1, 2))
		specs.add(f, ipv6 ? kSpecIpv6 : kSpecIpv4,
		          ipv6 ? sizeof(ib_uverbs_flow_spec_ipv6)
		               : sizeof(ib_uverbs_flow_spec_ipv4),
		          compare);
	if (f.rng.chance(1, 3))
		specs.add(f, f.rng.chance(1, 2) ? kSpecTcp : kSpecUdp,
		          sizeof(ib_uverbs_flow_spec_tcp_udp), compare);
}

int create_flow(Fuzzer &f)
{
	uint8_t in[sizeof(ib_uverbs_create_flow) + sizeof(Specs::bytes)];
	ib_uverbs_create_flow command = {};
	Specs specs;
	const auto type = static_cast<uint32_t>(f.rng.below(4));
	if (!type)
		add_headers(f, specs);
	if (f.rng.chance(1, 2))
		specs.add_count(f);
	command.qp_handle = f.object(Kind::kQp, IB_UVERBS_QPT_RAW_PACKET).handle;
	command.flow_attr.type = f.value(type);
	command.flow_attr.size = f.value(specs.size);
	command.flow_attr.priority = f.value(uint16_t{0});
	command.flow_attr.num_of_specs = f.value(specs.count);
	command.flow_attr.port = f.value(kPort);
	command.flow_attr.flags = f.value(0u);
	std::memcpy(in, &command, sizeof(command));
	std::memcpy(in + sizeof(command), specs.bytes, specs.size);
	ib_uverbs_create_flow_resp out = {};
	const int err = f.call(Command{.number = IB_USER_VERBS_EX_CMD_CREATE_FLOW,
	                               .in = {in, sizeof(command) + specs.size},
	                               .out = part(out),
	                               .extended = true});
	if (!err)
		f.created(Kind::kFlow, {.handle = out.flow_handle});
	return err;
}

/* --- files of events --- */

int create_channel(Fuzzer &f)
{
	ib_uverbs_create_comp_channel in = {};
	ib_uverbs_create_comp_channel_resp out = {};
	const int err = f.call(Command{
	        .number = IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, .in = part(in), .out = part(out)});
	if (!err)
		f.created(Kind::kChannel, {.handle = out.fd});
	return err;
}

int read_events(Fuzzer &f)
{
	const auto file = f.object(f.rng.chance(1, 2) ? Kind::kChannel : Kind::kAsync);
	pollfd poll_fd = {.fd = static_cast<int>(file.handle), .events = POLLIN, .revents = 0};
	if (poll(&poll_fd, 1, 0) <= 0)
		return EAGAIN;
	/* Another thread may have taken the event, and this one must not wait for the next. */
	fcntl(poll_fd.fd, F_SETFL, O_NONBLOCK);
	uint64_t events[4];
	const bool bad = f.rng.chance(1, 8);
	const ssize_t got =
	        read(poll_fd.fd, bad ? reinterpret_cast<void *>(f.bad_address()) : events,
	             f.value(sizeof(events)) % (sizeof(events) + 1));
	return got < 0 ? errno : 0;
}

/* --- anything --- */

int any_method(Fuzzer &f)
{
	uint64_t data[8];
	Method method(static_cast<uint16_t>(f.rng.below(UVERBS_OBJECT_ASYNC_EVENT + 2)),
	              static_cast<uint16_t>(f.rng.below(6) | (f.rng.chance(1, 4) ? 0x1000 : 0)));
	for (uint64_t count = f.rng.below(8); count; count--) {
		const auto id =
		        static_cast<uint16_t>(f.rng.below(12) | (f.rng.chance(1, 4) ? 0x1000 : 0));
		if (f.rng.chance(1, 2))
			method.handle(id, f.handle(static_cast<Kind>(f.rng.below(kKinds))));
		else
			method.out(id, {data, 4 * f.rng.below(17)});
	}
	return f.call(method);
}

int any_command(Fuzzer &f)
{
	uint32_t in[32], out[32];
	for (uint32_t &word : in)
		word = f.rng.chance(1, 2) ? 0 : static_cast<uint32_t>(f.rng.below(16));
	const auto number = static_cast<uint32_t>(f.rng.below(64));
	if (number == IB_USER_VERBS_EX_CMD_MODIFY_WQ)
		return kNothing; /* see modify_wq() */
	return f.call(Command{.number = number,
	                      .in = {in, 8 * (1 + f.rng.below(16))},
	                      .out = {out, 8 * f.rng.below(17)},
	                      .extended = f.rng.chance(1, 2)});
}

constexpr Operation kOperations[] = {
        {"open", 2, open_file, true},
        {"get_context", 6, get_context},
        {"get_context_ioctl", 6, get_context_by_ioctl},
        {"alloc_async", 4, alloc_async, true},
        {"close_async", 4, destroy<Kind::kAsync>},
        {"query_device", 4, query_device},
        {"query_device_ex", 4, query_device_ex},
        {"query_port", 4, query_port},
        {"query_context", 4, query_context},
        {"query_gids", 4, query_gids},
        {"info_handles", 4, info_handles},
        {"alloc_pd", 10, alloc_pd, true},
        {"dealloc_pd", 5, destroy<Kind::kPd>},
        {"query_pd", 4, query_pd},
        {"open_xrcd", 8, open_xrcd, true},
        {"close_xrcd", 4, destroy<Kind::kXrcd>},
        {"create_ah", 10, create_ah, true},
        {"destroy_ah", 6, destroy<Kind::kAh>},
        {"multicast", 8, multicast},
        {"create_counters", 8, create_counters, true},
        {"read_counters", 5, read_counters},
        {"destroy_counters", 4, destroy<Kind::kCounters>},
        {"create_flow", 15, create_flow, true},
        {"destroy_flow", 8, destroy<Kind::kFlow>},
        {"create_channel", 8, create_channel, true},
        {"close_channel", 4, destroy<Kind::kChannel>},
        {"read_events", 20, read_events},
        {"any_method", 15, any_method},
        {"any_command", 15, any_command},
};

} // namespace

std::span<const Operation> object_operations()
{
	return kOperations;
}

const Destruction &destruction_of(Kind kind)
{
	static constexpr Destruction kDestructions[kKinds] = {
	        {IB_USER_VERBS_CMD_DEALLOC_PD, false, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY},
	        {IB_USER_VERBS_CMD_CLOSE_XRCD, false, UVERBS_OBJECT_XRCD,
	         UVERBS_METHOD_XRCD_DESTROY},
	        {IB_USER_VERBS_CMD_DEREG_MR, false, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY},
	        {IB_USER_VERBS_CMD_DEALLOC_MW, false, UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY},
	        {IB_USER_VERBS_CMD_DESTROY_CQ, false, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY},
	        {IB_USER_VERBS_CMD_DESTROY_QP, false, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY},
	        {IB_USER_VERBS_CMD_DESTROY_SRQ, false, UVERBS_OBJECT_SRQ,
	         UVERBS_METHOD_SRQ_DESTROY},
	        {IB_USER_VERBS_CMD_DESTROY_AH, false, UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY},
	        {IB_USER_VERBS_EX_CMD_DESTROY_FLOW, true, UVERBS_OBJECT_FLOW,
	         UVERBS_METHOD_FLOW_DESTROY},
	        {IB_USER_VERBS_EX_CMD_DESTROY_WQ, true, UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY},
	        {IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL, true, UVERBS_OBJECT_RWQ_IND_TBL,
	         UVERBS_METHOD_RWQ_IND_TBL_DESTROY},
	        {0, false, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY},
	        {0, false, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE},
	        {0, false, 0, 0},
	        {0, false, 0, 0},
	};
	return kDestructions[static_cast<size_t>(kind)];
}

} // namespace tern::guest::uverbs
