// SPDX-License-Identifier: GPL-2.0-or-later
#include "uverbs_fuzzer.h"

#include <fcntl.h>
#include <rdma/rdma_user_ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "check.h"

namespace tern::guest::uverbs {
namespace {

constexpr size_t kPage = Memory::kPage;

char *pages_before_a_hole()
{
	void *p = mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	               0);
	check(p != MAP_FAILED, "mmap: %s", std::strerror(errno));
	char *pages = static_cast<char *>(p);
	mprotect(pages + 2 * kPage, kPage, PROT_NONE);
	return pages;
}

int error_of(long result)
{
	return result < 0 ? errno : 0;
}

/** Copies the struct of a call that may have been cut short. */
char *put(char *at, Part from, size_t size)
{
	std::memset(at, 0, size);
	if (from.size)
		std::memcpy(at, from.data, std::min(from.size, size));
	return at + size;
}

const char *get(const char *at, Part to, size_t size)
{
	if (to.size)
		std::memcpy(to.data, at, std::min(to.size, size));
	return at + size;
}

} // namespace

/* --- attributes --- */

Method &Method::add(uint16_t id, size_t size, uint64_t data)
{
	ib_uverbs_attr &attr = attrs_.at(count_++);
	attr = {};
	attr.attr_id = id;
	attr.len = static_cast<uint16_t>(size);
	attr.flags = UVERBS_ATTR_F_MANDATORY;
	attr.data = data;
	return *this;
}

/** The attribute holds data of up to eight bytes itself, and otherwise its address. */
Method &Method::in(uint16_t id, const void *data, size_t size)
{
	uint64_t value = reinterpret_cast<uintptr_t>(data);
	if (size <= sizeof(value)) {
		value = 0;
		std::memcpy(&value, data, size);
	}
	return add(id, size, value);
}

Method &Method::out(uint16_t id, Part to)
{
	outs_ |= 1u << count_;
	return add(id, to.size, reinterpret_cast<uintptr_t>(to.data));
}

/* --- allocations that fail --- */

void FailingAllocation::open()
{
	file_ = Socket(::open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC));
	check(file_.fd() >= 0, "fail-nth: %s", std::strerror(errno));
}

void FailingAllocation::arm(unsigned nth) const
{
	const std::string text = std::to_string(nth);
	check(pwrite(file_.fd(), text.data(), text.size(), 0) > 0, "fail-nth: %s",
	      std::strerror(errno));
}

bool FailingAllocation::disarm() const
{
	char left = 0;
	check(pread(file_.fd(), &left, 1, 0) == 1, "fail-nth: %s", std::strerror(errno));
	arm(0);
	return left == '0';
}

/* --- choices --- */

Fuzzer::Fuzzer(Process &p, uint64_t seed)
        : process(p), rng(seed), context(&p.contexts[0]), input_(pages_before_a_hole()),
          output_(pages_before_a_hole())
{
	if (process.options.failing)
		failing_.open();
}

uint64_t Fuzzer::odd_number(uint64_t valid)
{
	switch (rng.below(6)) {
	case 0:
		return valid + 1;
	case 1:
		return valid - 1;
	case 2:
		return uint64_t{1} << rng.below(64);
	case 3:
		return (uint64_t{1} << rng.below(64)) - 1;
	case 4:
		return valid ^ uint64_t { 1 } << rng.below(64);
	default:
		return rng.next();
	}
}

uint32_t Fuzzer::size(uint32_t most, uint32_t limit)
{
	if (spoil())
		return one_of<uint32_t>({0, limit + 1, 0x80000000u, 0xffffffffu,
		                         std::max(static_cast<uint32_t>(rng.next()), limit + 1)});
	return 1 + static_cast<uint32_t>(rng.below(rng.chance(1, 16) ? most : 64));
}

Object Fuzzer::object(Kind kind)
{
	std::optional<Object> found;
	Context &other = process.contexts[context == &process.contexts[0]];
	if (!spoil())
		found = context->any(kind, rng);
	else if (rng.chance(1, 4))
		found = context->stale(kind, rng);
	else if (rng.chance(1, 3))
		found = other.any(kind, rng);
	else if (rng.chance(1, 2))
		found = context->any(static_cast<Kind>(rng.below(kKinds)), rng);
	if (found)
		return *found;
	Object none;
	none.handle = static_cast<uint32_t>(rng.chance(1, 2) ? rng.below(64) : odd_number(0));
	return none;
}

Object Fuzzer::object(Kind kind, uint8_t type)
{
	Object found = object(kind);
	for (int i = 0; i < 8 && found.type != type; i++)
		found = object(kind);
	return found;
}

uint64_t Fuzzer::bad_address()
{
	const uint64_t hole = reinterpret_cast<uintptr_t>(process.memory.hole());
	const uint64_t read_only = reinterpret_cast<uintptr_t>(process.memory.read_only());
	const uint64_t ring =
	        reinterpret_cast<uintptr_t>(process.arena.at(rng.below(Arena::kSlots)));
	/* The last bytes before a hole, of which the kernel can use some. */
	const uint64_t end = reinterpret_cast<uintptr_t>(output_) + 2 * kPage - rng.below(32);
	return one_of<uint64_t>({0, 1, 0x1000, hole, read_only, read_only + kPage - 4, ring, end,
	                         0xffff888000000000u, 0xffffffffff600000u, 0x8000000000000000u,
	                         0x7ffffffff000u, ~uint64_t{0}});
}

uint64_t Fuzzer::memory(uint64_t &length)
{
	if (rng.chance(1, 12)) { /* rings of the device, and its doorbells */
		const size_t slot = rng.below(Arena::kSlots);
		length = std::max<uint64_t>(process.arena.length[slot], 1);
		return reinterpret_cast<uintptr_t>(process.arena.at(slot));
	}
	const uint64_t most = rng.chance(1, 4) ? Memory::kPart : 4 * kPage;
	uint64_t offset = rng.below(Memory::kSize - most);
	length = 1 + rng.below(most);
	if (rng.chance(1, 2)) {
		offset &= ~(kPage - 1);
		length = (length + kPage - 1) & ~(kPage - 1);
	}
	return reinterpret_cast<uintptr_t>(process.memory.base()) + offset;
}

void Fuzzer::destination(uint8_t (&gid)[16])
{
	std::copy(process.gid.begin(), process.gid.end(), gid);
	if (spoil())
		gid[rng.below(sizeof(gid))] = static_cast<uint8_t>(rng.next());
}

/* --- the write interface --- */

int Fuzzer::call(const Command &command)
{
	return rng.chance(1, 3) ? by_ioctl(command) : by_write(command);
}

/** Perhaps longer or shorter, in steps of @unit. */
size_t Fuzzer::spoil_size(size_t size, size_t unit)
{
	if (!spoil())
		return size;
	return rng.chance(1, 2) ? unit * rng.below(size / unit + 1)
	                        : size + unit * (1 + rng.below(16));
}

/** At the start of pages, or so that a byte more is not there. */
char *Fuzzer::place(char *pages, size_t size)
{
	return rng.chance(1, 4) ? pages + 2 * kPage - size : pages;
}

int Fuzzer::by_write(const Command &c)
{
	const size_t unit = c.extended ? 8 : 4;
	const auto up = [&](size_t size) { return (size + unit - 1) & ~(unit - 1); };
	const size_t in = spoil_size(up(c.in.size), unit);
	const size_t driver_in = spoil_size(up(c.driver_in.size), unit);
	const size_t out = spoil_size(up(c.out.size), unit);
	const size_t driver_out = spoil_size(up(c.driver_out.size), unit);
	const size_t headers =
	        sizeof(ib_uverbs_cmd_hdr) + (c.extended ? sizeof(ib_uverbs_ex_cmd_hdr) : 0);
	const size_t size = headers + in + driver_in;
	char *answer = place(output_, out + driver_out);
	char *message = place(input_, size);

	const uint64_t to = spoil() ? bad_address() : reinterpret_cast<uintptr_t>(answer);
	if (!c.extended && out && c.in.size >= sizeof(to))
		std::memcpy(c.in.data, &to, sizeof(to));
	ib_uverbs_cmd_hdr header = {};
	header.command = value(c.number);
	header.in_words = static_cast<uint16_t>((c.extended ? in : size) / unit);
	header.out_words = static_cast<uint16_t>((c.extended ? out : out + driver_out) / unit);
	char *at = message;
	if (c.extended) {
		header.command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
		ib_uverbs_ex_cmd_hdr more = {};
		more.response = out + driver_out ? to : 0;
		more.provider_in_words = static_cast<uint16_t>(driver_in / unit);
		more.provider_out_words = value(static_cast<uint16_t>(driver_out / unit));
		at = put(at, part(header), sizeof(header));
		at = put(at, part(more), sizeof(more));
	} else {
		header.in_words = value(header.in_words);
		header.out_words = value(header.out_words);
		at = put(at, part(header), sizeof(header));
	}
	put(put(at, c.in, in), c.driver_in, driver_in);
	std::memset(answer, 0, out + driver_out);

	const int err = error_of(write(context->fd(), message, value(size)));
	if (!err)
		get(get(answer, c.out, out), c.driver_out, driver_out);
	return err;
}

int Fuzzer::by_ioctl(const Command &c)
{
	const size_t unit = c.extended ? 8 : 4;
	const uint64_t number =
	        value(c.number) | (c.extended ? IB_USER_VERBS_CMD_FLAG_EXTENDED : 0);
	Method method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	method.in(UVERBS_ATTR_WRITE_CMD, number)
	        .in(UVERBS_ATTR_CORE_IN, c.in.data, spoil_size(c.in.size, unit));
	if (c.out.size)
		method.out(UVERBS_ATTR_CORE_OUT, {c.out.data, c.out.size});
	if (c.driver_in.size)
		method.in(UVERBS_ATTR_UHW_IN, c.driver_in.data, c.driver_in.size);
	if (c.driver_out.size)
		method.out(UVERBS_ATTR_UHW_OUT, {c.driver_out.data, c.driver_out.size});
	return call(method);
}

/* --- the ioctl interface --- */

/** One attribute, or the header, becomes wrong. @outs are those that the kernel writes to. */
void Fuzzer::spoil(ib_uverbs_ioctl_hdr *header, uint32_t outs)
{
	const size_t i = rng.below(header->num_attrs);
	ib_uverbs_attr &attr = header->attrs[i];
	const bool pointer = attr.len > sizeof(attr.data) || outs >> i & 1;
	switch (rng.below(10)) {
	case 0:
		attr.attr_id = static_cast<uint16_t>(odd_number(attr.attr_id));
		break;
	case 1:
		/* Not longer, as most buffers are followed by what the thread needs. */
		attr.len = static_cast<uint16_t>(rng.below(attr.len + 1u));
		break;
	case 2:
		attr.flags = static_cast<uint16_t>(odd_number(attr.flags));
		break;
	case 3:
		attr.attr_data.reserved = static_cast<uint16_t>(rng.next());
		break;
	case 4:
	case 5:
		attr.data = pointer ? bad_address() : odd_number(attr.data);
		break;
	case 6:
		header->num_attrs = static_cast<uint16_t>(odd_number(header->num_attrs));
		break;
	case 7:
		header->length = static_cast<uint16_t>(odd_number(header->length));
		break;
	case 8:
		header->method_id = static_cast<uint16_t>(odd_number(header->method_id));
		break;
	case 9:
		attr = header->attrs[rng.below(header->num_attrs)];
		break;
	}
}

int Fuzzer::call(Method &method)
{
	const size_t attrs = method.count_ * sizeof(ib_uverbs_attr);
	const size_t size = sizeof(ib_uverbs_ioctl_hdr) + attrs;
	char *message = place(input_, size);
	auto *header = reinterpret_cast<ib_uverbs_ioctl_hdr *>(message);
	*header = {};
	header->length = static_cast<uint16_t>(size);
	header->object_id = method.object_;
	header->method_id = method.method_;
	header->num_attrs = static_cast<uint16_t>(method.count_);
	std::memcpy(header->attrs, method.attrs_.data(), attrs);
	if (method.count_ && hostile_ && rng.chance(1, 3))
		spoil(header, method.outs_);

	const int err = error_of(ioctl(context->fd(), RDMA_VERBS_IOCTL, message));
	std::memcpy(method.attrs_.data(), header->attrs, attrs);
	return err;
}

/* --- objects --- */

void Fuzzer::created(Kind kind, const Object &object)
{
	if (object.length)
		context->add_key({object.key, object.length});
	if (const auto out = context->add(kind, object, rng))
		destroy_object(kind, out->handle);
}

int Fuzzer::destroy(Kind kind)
{
	/* Of descriptors only those that are the fuzzer's. */
	if (kind < Kind::kChannel && spoil())
		return destroy_object(kind, handle(kind));
	const auto taken = context->take(kind, rng);
	if (!taken)
		return kNothing;
	const int err = destroy_object(kind, taken->handle);
	if (err == EBUSY)
		context->add(kind, *taken, rng);
	return err;
}

int Fuzzer::destroy_object(Kind kind, uint32_t handle)
{
	const Destruction &how = destruction_of(kind);
	if (kind == Kind::kChannel || kind == Kind::kAsync)
		return error_of(close(static_cast<int>(handle)));
	if (how.command && rng.chance(1, 2)) {
		/* The longest of these structs; the handle's place depends on the command. */
		uint32_t in[4] = {handle, 0, handle, 0}, answer[4] = {};
		if (how.extended)
			return call(Command{.number = how.command,
			                    .in = {&in[1], 8},
			                    .out = {answer, kind == Kind::kWq ? 16u : 0u},
			                    .extended = true});
		const bool answers = kind == Kind::kCq || kind == Kind::kQp || kind == Kind::kSrq;
		return call(Command{.number = how.command,
		                    .in = {in, answers ? 16u : 4u},
		                    .out = {answer, answers ? kind == Kind::kCq ? 8u : 4u : 0u}});
	}
	Method method(how.object, how.method);
	method.handle(0, handle);
	uint64_t answer = 0;
	if (kind == Kind::kCq)
		method.out(UVERBS_ATTR_DESTROY_CQ_RESP, {&answer, 8});
	else if (kind == Kind::kQp || kind == Kind::kSrq || kind == Kind::kWq)
		method.out(UVERBS_ATTR_DESTROY_QP_RESP, {&answer, 4});
	return call(method);
}

/* --- operations --- */

const std::array<Operation, Stats::kOps> &operations(size_t &count)
{
	static size_t filled = 0;
	static const std::array<Operation, Stats::kOps> all = [] {
		std::array<Operation, Stats::kOps> list{};
		for (const auto part : {object_operations(), queue_operations(), wq_operations(),
		                        memory_operations()})
			for (const Operation &operation : part)
				list.at(filled++) = operation;
		return list;
	}();
	count = filled;
	return all;
}

void Fuzzer::run(size_t op)
{
	size_t count;
	const int err = operations(count)[op].run(*this);
	if (err != kNothing)
		process.stats.count(op, err);
}

/* Returns whether allocations may fail during @operation. Linux has a fault in the other
 * operations: it warns of a fork that fails, and if ib_core has no memory for a target QP of XRC,
 * it keeps its reference to the domain, which is then never destroyed. */
static bool may_be_starved(std::string_view operation)
{
	return operation != "fork" && operation != "create_qp_xrc_tgt" &&
	       operation != "create_qp_odd";
}

/** The first allocations of a call are those of uverbs, and the driver's follow. */
void Fuzzer::run_starved(size_t op)
{
	size_t count;
	failing_.arm(1 + static_cast<unsigned>(rng.below(rng.chance(1, 2) ? 12 : 100)));
	const int err = operations(count)[op].run(*this);
	const bool failed = failing_.disarm();
	if (err == kNothing)
		return;
	process.stats.count(op, err);
	process.stats.starved += failed;
	process.stats.survived += failed && !err;
}

void Fuzzer::prepare()
{
	size_t count;
	const auto &all = operations(count);
	hostile_ = false;
	for (Context &each : process.contexts) {
		context = &each;
		for (size_t op = 0; op < 2 * count; op++)
			if (all[op % count].creates)
				run(op % count);
	}
}

void Fuzzer::step()
{
	static const unsigned total = [] {
		size_t n;
		unsigned sum = 0;
		for (const Operation &operation : operations(n))
			sum += operation.weight;
		return sum;
	}();
	size_t count, op = 0;
	const auto &all = operations(count);
	for (uint64_t left = rng.below(total); left >= all[op].weight; op++)
		left -= all[op].weight;

	context = &process.contexts[rng.chance(1, 4)];
	hostile_ = rng.chance(1, 3);
	if (process.options.failing && may_be_starved(all[op].name) && rng.chance(1, 2))
		run_starved(op);
	else
		run(op);
}

} // namespace tern::guest::uverbs
