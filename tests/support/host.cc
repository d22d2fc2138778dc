// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/support/host.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>

#include "qemu/rnic/queues/wqe.h"

namespace tern::test {

using namespace hw;

namespace {

template <typename T>
void append(std::vector<std::byte> &out, const T &value)
{
	const auto bytes = std::as_bytes(std::span(&value, 1));
	out.insert(out.end(), bytes.begin(), bytes.end());
}

tern_hw_data_seg data_seg(const Sge &sge)
{
	tern_hw_data_seg seg{};
	seg.addr = sge.addr;
	seg.length = sge.length;
	seg.lkey = sge.lkey;
	return seg;
}

void append_remote(std::vector<std::byte> &out, const SendRequest &request)
{
	if ((request.opcode < TERN_OP_WRITE || request.opcode > TERN_OP_READ) &&
	    !is_atomic(request.opcode) && request.opcode != TERN_OP_ATOMIC_WRITE &&
	    request.opcode != TERN_OP_FLUSH)
		return;
	tern_hw_raddr_seg raddr{};
	raddr.addr = request.remote_addr;
	raddr.rkey = request.rkey;
	append(out, raddr);
	if (request.flush)
		append(out, *request.flush);
	if (!is_atomic(request.opcode))
		return;
	tern_hw_atomic_seg atomic{};
	atomic.swap_add = request.swap_add;
	atomic.compare = request.compare;
	append(out, atomic);
	if (request.masks)
		append(out, *request.masks);
}

void align(std::vector<std::byte> &out, size_t to)
{
	out.resize((out.size() + to - 1) / to * to);
}

void must(bool ok, const char *what, unsigned status = 0)
{
	if (!ok)
		throw std::runtime_error(std::string(what) + ", status " + std::to_string(status));
}

} // namespace

std::vector<std::byte> encode(const SendRequest &request)
{
	std::vector<std::byte> out;
	tern_hw_ctrl_seg ctrl{};
	ctrl.opcode = request.opcode;
	ctrl.flags = request.flags;
	ctrl.imm = request.imm;
	ctrl.srqn = request.srqn;
	const bool is_inline = request.flags & TERN_WQE_INLINE;
	ctrl.inline_len = is_inline ? static_cast<uint32_t>(request.inline_data.size()) : 0;
	append(out, ctrl);
	if (request.to)
		append(out, *request.to);
	if (request.bind)
		append(out, *request.bind);
	if (request.reg)
		append(out, *request.reg);
	append_remote(out, request);
	if (is_inline)
		out.insert(out.end(), request.inline_data.begin(), request.inline_data.end());
	else
		for (const Sge &sge : request.sges)
			append(out, data_seg(sge));
	align(out, TERN_SEG_SIZE);
	out[offsetof(tern_hw_ctrl_seg, segs)] = static_cast<std::byte>(out.size() / TERN_SEG_SIZE);
	align(out, TERN_SQ_BLOCK);
	return out;
}

/* ---- CQ ---- */

HostCq::HostCq(Driver &driver, unsigned log_size, Layout layout)
        : record(driver.memory.alloc(sizeof(tern_hw_cq_record))),
          ring(driver.memory, log_size, layout), driver_(driver)
{
}

std::optional<tern_hw_cqe> HostCq::poll()
{
	const auto cqe = ring.poll();
	if (cqe)
		driver_.memory.put(record + offsetof(tern_hw_cq_record, ci), Le<uint32_t>(ring.ci));
	return cqe;
}

std::vector<tern_hw_cqe> HostCq::drain()
{
	std::vector<tern_hw_cqe> all;
	while (const auto cqe = poll())
		all.push_back(*cqe);
	return all;
}

void HostCq::arm(bool solicited_only)
{
	driver_.doorbell(db_page, TERN_DB_CQ_ARM,
	                 number | (solicited_only ? TERN_DB_CQ_SOLICITED : 0), ring.ci);
}

/* ---- MR ---- */

std::vector<std::byte> HostMr::read(uint64_t offset, size_t n) const
{
	if (device.empty())
		return buffer.read(first + offset, n);
	const auto part = device.subspan(offset, n);
	return {part.begin(), part.end()};
}

void HostMr::write(uint64_t offset, std::span<const std::byte> data)
{
	if (device.empty())
		buffer.write(first + offset, data);
	else
		std::ranges::copy(data, device.subspan(offset).begin());
}

uint64_t HostMr::read_u64(uint64_t offset) const
{
	Le<uint64_t> value;
	const auto bytes = read(offset, sizeof(value));
	std::memcpy(&value, bytes.data(), sizeof(value));
	return value.get();
}

void HostMr::write_u64(uint64_t offset, uint64_t value)
{
	const Le<uint64_t> raw = value;
	write(offset, std::as_bytes(std::span(&raw, 1)));
}

/* ---- SRQ ---- */

uint64_t HostSrq::size_of(const SrqOptions &o)
{
	return (uint64_t{1} << (o.log_size + o.log_stride)) + (uint64_t{4} << o.log_size) + 128 +
	       (o.tags ? sizeof(tern_hw_tag_op) << o.log_tag_ops : 0);
}

HostSrq::HostSrq(Driver &driver, const SrqOptions &o)
        : options(o), record(driver.memory.alloc(sizeof(tern_hw_srq_record))),
          ring_offset(std::max(64u, 1u << (o.log_size + o.log_stride))),
          tag_ops_offset(o.tags ? ring_offset + std::max(64u, 4u << o.log_size) : 0),
          buffer(driver.memory, size_of(o), o.layout.levels, o.layout.page_shift), driver_(driver)
{
	for (uint32_t slot = 0; slot < 1u << o.log_size; slot++)
		free_.push_back(slot);
}

void HostSrq::write_entry(uint32_t index, uint32_t slot)
{
	const Le<uint32_t> entry = slot;
	const uint32_t at = index & ((1u << options.log_size) - 1);
	buffer.write(ring_offset + at * sizeof(entry), std::as_bytes(std::span(&entry, 1)));
}

uint32_t HostSrq::post(std::span<const Sge> sges)
{
	const size_t stride = size_t{1} << options.log_stride;
	must(!free_.empty() && sges.size_bytes() <= stride, "no room in the SRQ");
	const uint32_t slot = free_.front();
	free_.pop_front();
	std::vector<std::byte> wqe;
	for (const Sge &sge : sges)
		append(wqe, data_seg(sge));
	wqe.resize(stride);
	buffer.write(slot * stride, wqe);
	posted_.push_back(slot);
	write_entry(pi, slot);
	pi++;
	driver_.memory.put(record + offsetof(tern_hw_srq_record, pi), Le<uint32_t>(pi));
	return slot;
}

uint32_t HostSrq::post_tag_op(const tern_hw_tag_op &op, bool ring)
{
	const uint32_t at = tag_pi & ((1u << options.log_tag_ops) - 1);
	buffer.write(tag_ops_offset + at * sizeof(op), std::as_bytes(std::span(&op, 1)));
	tag_pi++;
	if (ring)
		driver_.doorbell(options.db_page, TERN_DB_TAG_OPS, number, tag_pi);
	return tag_pi - 1;
}

tern_hw_aq_status HostSrq::set_limit(uint32_t limit)
{
	auto c = make_command(TERN_AQ_SET_SRQ_LIMIT);
	c.set_srq_limit.srqn = number;
	c.set_srq_limit.limit = limit;
	return driver_.status_of(c);
}

uint32_t HostSrq::query_limit()
{
	auto c = make_command(TERN_AQ_QUERY_SRQ);
	c.object.id = number;
	const auto result = driver_.command(c);
	must(result.status == TERN_AQ_OK, "QUERY_SRQ", result.status);
	return result.srq.limit.get();
}

tern_hw_aq_status HostSrq::resize(uint8_t log_size)
{
	SrqOptions larger_options = options;
	larger_options.log_size = log_size;
	HostSrq larger(driver_, larger_options);
	const uint32_t old_slots = 1u << options.log_size;
	/* Of a smaller one, which the card is to refuse, what fits. */
	const uint32_t copied = std::min(old_slots, 1u << log_size);
	larger.buffer.write(0, buffer.read(0, uint64_t{copied} << options.log_stride));
	/* More entries than may be posted do no harm. */
	for (uint32_t back = 1; back <= std::min<size_t>(copied, posted_.size()); back++)
		larger.write_entry(pi - back, posted_[posted_.size() - back]);
	driver_.memory.put(larger.record + offsetof(tern_hw_srq_record, pi), Le<uint32_t>(pi));

	auto c = make_command(TERN_AQ_RESIZE_SRQ);
	c.resize_srq.pages = larger.buffer.pages();
	c.resize_srq.record = larger.record;
	c.resize_srq.srqn = number;
	c.resize_srq.ring_offset = larger.ring_offset;
	c.resize_srq.log_size = log_size;
	const auto status = driver_.status_of(c);
	if (status != TERN_AQ_OK)
		return status;
	options.log_size = log_size;
	record = larger.record;
	ring_offset = larger.ring_offset;
	buffer = std::move(larger.buffer);
	for (uint32_t slot = old_slots; slot < 1u << log_size; slot++)
		free_.push_back(slot);
	return TERN_AQ_OK;
}

/* ---- QP ---- */

namespace {

bool has_recv_queue(const QpOptions &o)
{
	return !o.srqn && o.rq_log_stride && o.type != TERN_QPT_XRC_INI;
}

uint64_t rq_size(const QpOptions &o)
{
	return has_recv_queue(o) ? uint64_t{1} << (o.rq_log_size + o.rq_log_stride) : 0;
}

} // namespace

HostQp::HostQp(Driver &driver, const QpOptions &o)
        : options(o), record(driver.memory.alloc(sizeof(tern_hw_qp_record))),
          rq_offset(static_cast<uint32_t>(TERN_SQ_BLOCK) << o.sq_log_size),
          buffer(driver.memory, rq_offset + rq_size(o), o.layout.levels, o.layout.page_shift),
          driver_(driver)
{
}

uint32_t HostQp::post_send(const SendRequest &request, bool ring)
{
	return post_blocks(encode(request), ring);
}

uint32_t HostQp::post_blocks(std::span<const std::byte> blocks, bool ring)
{
	const uint32_t index = sq_pi;
	for (; !blocks.empty(); blocks = blocks.subspan(TERN_SQ_BLOCK)) {
		const uint32_t slot = sq_pi & ((1u << options.sq_log_size) - 1);
		buffer.write(uint64_t{slot} * TERN_SQ_BLOCK, blocks.first(TERN_SQ_BLOCK));
		sq_pi++;
	}
	if (ring)
		publish();
	return index;
}

/* The entry is in memory; then its index; then, only if the card sleeps, the doorbell. */
void HostQp::publish()
{
	driver_.memory.put(record + offsetof(tern_hw_qp_record, sq_pi), Le<uint32_t>(sq_pi));
	/* The card writes the event index and then reads the producer index. */
	std::atomic_thread_fence(std::memory_order_seq_cst);
	const uint32_t event =
	        driver_.memory.get<Le<uint32_t>>(record + offsetof(tern_hw_qp_record, sq_event))
	                .get();
	const bool wanted = sq_pi - event - 1 < sq_pi - published;
	published = sq_pi;
	if (wanted)
		ring_doorbell();
}

void HostQp::ring_doorbell()
{
	doorbells++;
	driver_.doorbell(options.db_page, TERN_DB_SQ, number, sq_pi);
}

void HostQp::post_recv(std::span<const Sge> sges)
{
	const size_t stride = size_t{1} << options.rq_log_stride;
	std::vector<std::byte> wqe;
	for (const Sge &sge : sges)
		append(wqe, data_seg(sge));
	must(wqe.size() <= stride, "receive WQE too long");
	wqe.resize(stride); /* zero: TERN_LKEY_END */
	const uint32_t slot = rq_pi & ((1u << options.rq_log_size) - 1);
	buffer.write(rq_offset + slot * stride, wqe);
	rq_pi++;
	driver_.memory.put(record + offsetof(tern_hw_qp_record, rq_pi), Le<uint32_t>(rq_pi));
}

void HostQp::forget()
{
	sq_pi = sq_ci = rq_pi = published = 0;
	driver_.memory.put(record + offsetof(tern_hw_qp_record, rq_pi), Le<uint32_t>(0u));
	driver_.memory.put(record + offsetof(tern_hw_qp_record, sq_pi), Le<uint32_t>(0u));
}

tern_hw_aq_status HostQp::modify(uint32_t mask, const tern_hw_qp_attr &attr)
{
	auto c = make_command(TERN_AQ_MODIFY_QP);
	c.modify_qp.qpn = number;
	c.modify_qp.attr_mask = mask;
	c.modify_qp.attr = attr;
	return driver_.status_of(c);
}

tern_hw_aq_status HostQp::set_state(tern_hw_qp_state state, uint32_t mask)
{
	tern_hw_qp_attr attr{};
	attr.state = static_cast<uint8_t>(state);
	return modify(mask | TERN_QP_STATE, attr);
}

void HostQp::to_init(const Connection &c)
{
	tern_hw_qp_attr attr{};
	attr.state = TERN_QPS_INIT;
	attr.port = 1;
	attr.access = c.access;
	const auto status = modify(
	        TERN_QP_STATE | TERN_QP_PKEY_INDEX | TERN_QP_PORT | TERN_QP_ACCESS_FLAGS, attr);
	must(status == TERN_AQ_OK, "MODIFY_QP to INIT", status);
}

void HostQp::to_rtr(const Connection &c)
{
	tern_hw_qp_attr attr{};
	attr.state = TERN_QPS_RTR;
	attr.path_mtu = c.mtu;
	attr.dest_qpn = c.dest_qpn;
	attr.rq_psn = c.rq_psn;
	attr.max_dest_rd_atomic = c.max_dest_rd_atomic;
	attr.min_rnr_timer = c.min_rnr_timer;
	attr.sgid_index = c.sgid_index;
	std::ranges::copy(c.dgid.bytes, attr.dgid);
	std::ranges::copy(c.dmac, attr.dmac);
	attr.traffic_class = c.traffic_class;
	attr.sl = c.sl;
	attr.hop_limit = 64;
	attr.udp_sport = c.udp_sport;
	uint32_t mask =
	        TERN_QP_STATE | TERN_QP_AV | TERN_QP_PATH_MTU | TERN_QP_DEST_QPN | TERN_QP_RQ_PSN;
	if (options.type == TERN_QPT_RC || options.type == TERN_QPT_XRC_TGT)
		mask |= TERN_QP_MAX_DEST_RD_ATOMIC | TERN_QP_MIN_RNR_TIMER;
	const auto status = modify(mask, attr);
	must(status == TERN_AQ_OK, "MODIFY_QP to RTR", status);
}

void HostQp::to_rts(const Connection &c)
{
	tern_hw_qp_attr attr{};
	attr.state = TERN_QPS_RTS;
	attr.timeout = c.timeout;
	attr.retry_cnt = c.retry_cnt;
	attr.rnr_retry = c.rnr_retry;
	attr.sq_psn = c.sq_psn;
	attr.max_rd_atomic = c.max_rd_atomic;
	uint32_t mask = TERN_QP_STATE | TERN_QP_SQ_PSN;
	if (options.type == TERN_QPT_RC || options.type == TERN_QPT_XRC_INI)
		mask |= TERN_QP_TIMEOUT | TERN_QP_RETRY_CNT | TERN_QP_RNR_RETRY |
		        TERN_QP_MAX_QP_RD_ATOMIC;
	if (options.type == TERN_QPT_XRC_TGT)
		mask |= TERN_QP_TIMEOUT;
	const auto status = modify(mask, attr);
	must(status == TERN_AQ_OK, "MODIFY_QP to RTS", status);
}

void HostQp::start(uint32_t qkey, uint32_t sq_psn)
{
	tern_hw_qp_attr attr{};
	attr.state = TERN_QPS_INIT;
	attr.port = 1;
	attr.qkey = qkey;
	auto status =
	        modify(TERN_QP_STATE | TERN_QP_PKEY_INDEX | TERN_QP_PORT | TERN_QP_QKEY, attr);
	must(status == TERN_AQ_OK, "MODIFY_QP to INIT", status);
	status = set_state(TERN_QPS_RTR);
	must(status == TERN_AQ_OK, "MODIFY_QP to RTR", status);
	attr.state = TERN_QPS_RTS;
	attr.sq_psn = sq_psn;
	status = modify(TERN_QP_STATE | TERN_QP_SQ_PSN, attr);
	must(status == TERN_AQ_OK, "MODIFY_QP to RTS", status);
}

void HostQp::connect(const Connection &c)
{
	to_init(c);
	to_rtr(c);
	to_rts(c);
}

tern_hw_qp_attr HostQp::query()
{
	auto c = make_command(TERN_AQ_QUERY_QP);
	c.object.id = number;
	const auto result = driver_.command(c);
	must(result.status == TERN_AQ_OK, "QUERY_QP", result.status);
	return result.qp;
}

/* ---- driver ---- */

tern_hw_aq_cmd make_command(tern_hw_aq_op opcode)
{
	tern_hw_aq_cmd command;
	std::memset(static_cast<void *>(&command), 0, sizeof(command));
	command.opcode = static_cast<uint16_t>(opcode);
	return command;
}

Driver::Driver(Bars bars, FakeMemory &m, std::function<void()> p)
        : memory(m), pump(std::move(p)), bars_(std::move(bars)),
          stats_(m.alloc(TERN_STAT_COUNT * sizeof(uint64_t)))
{
}

Driver::Driver(Rnic &card, FakeMemory &m, std::function<void()> p)
        : Driver({[&card](uint32_t offset, uint32_t value) { card.write_register(offset, value); },
                  [&card](uint32_t page, uint32_t offset, uint64_t value) {
	                  card.doorbell(page, offset, value);
                  }},
                 m, std::move(p))
{
}

void Driver::enable(unsigned log_size, bool irq)
{
	aq_log_size = log_size;
	aq_pi = 0;
	aq = memory.alloc(uint64_t{TERN_AQ_ENTRY} << log_size, 4096);
	acq = memory.alloc(uint64_t{TERN_AQ_ENTRY} << log_size, 4096);
	bars_.write_register(TERN_REG_AQ_LOG_SIZE, log_size);
	bars_.write_register(TERN_REG_AQ_BASE_LO, static_cast<uint32_t>(aq));
	bars_.write_register(TERN_REG_AQ_BASE_HI, static_cast<uint32_t>(aq >> 32));
	bars_.write_register(TERN_REG_ACQ_BASE_LO, static_cast<uint32_t>(acq));
	bars_.write_register(TERN_REG_ACQ_BASE_HI, static_cast<uint32_t>(acq >> 32));
	bars_.write_register(TERN_REG_CTRL, TERN_CTRL_ENABLE | (irq ? TERN_CTRL_AQ_IRQ : 0));
}

namespace {

uint16_t command_id(uint32_t index)
{
	return static_cast<uint16_t>(index ^ 0x5aa5);
}

} // namespace

uint32_t Driver::submit(tern_hw_aq_cmd c)
{
	c.id = command_id(aq_pi);
	memory.put(aq + uint64_t{aq_pi & ((1u << aq_log_size) - 1)} * TERN_AQ_ENTRY, c);
	aq_pi++;
	bars_.write_register(TERN_REG_AQ_PI, aq_pi);
	return aq_pi - 1;
}

std::optional<tern_hw_aq_cqe> Driver::result(uint32_t index) const
{
	const uint64_t slot = index & ((1u << aq_log_size) - 1);
	const uint8_t phase = (index >> aq_log_size) & 1 ? 0 : 1;
	const auto cqe = read_entry<tern_hw_aq_cqe>(memory, acq + slot * TERN_AQ_ENTRY, phase);
	return cqe && cqe->id == command_id(index) ? cqe : std::nullopt;
}

/* Of a command: more than the longest one in the tests takes. */
static constexpr int kMaxPumps = 10'000;

/* Opcode and id, at the beginning of a command, are never refused as BAD_FIELD. */
static bool is_field(uint16_t offset)
{
	return offset >= offsetof(tern_hw_aq_cmd, rsvd) && offset < sizeof(tern_hw_aq_cmd);
}

tern_hw_aq_cqe Driver::command(tern_hw_aq_cmd c)
{
	const uint32_t index = submit(c);
	auto cqe = result(index);
	/* A long command takes several runs of the card. */
	for (int i = 0; i < kMaxPumps && !cqe; i++) {
		pump();
		cqe = result(index);
	}
	must(cqe.has_value(), "admin command did not complete", c.opcode.get());
	must(cqe->status != TERN_AQ_BAD_FIELD || is_field(cqe->refused.field.get()),
	     "BAD_FIELD without a field of the command", c.opcode.get());
	return *cqe;
}

uint32_t Driver::created(const tern_hw_aq_cmd &c)
{
	const auto result = command(c);
	must(result.status == TERN_AQ_OK, "create", result.status);
	return result.created.id.get();
}

tern_hw_aq_status Driver::destroy(tern_hw_aq_op opcode, uint32_t id)
{
	auto c = make_command(opcode);
	c.object.id = id;
	return status_of(c);
}

HostEq Driver::create_eq(uint32_t vector, unsigned log_size, Layout layout)
{
	HostEq eq{0, {memory, log_size, layout}};
	auto c = make_command(TERN_AQ_CREATE_EQ);
	c.create_eq.pages = eq.ring.buffer().pages();
	c.create_eq.vector = vector;
	c.create_eq.log_size = static_cast<uint8_t>(log_size);
	eq.number = created(c);
	return eq;
}

uint32_t Driver::alloc_pd()
{
	return created(make_command(TERN_AQ_ALLOC_PD));
}

std::unique_ptr<HostCq> Driver::create_cq(const HostEq &eq, unsigned log_size, uint32_t db_page,
                                          Layout layout)
{
	auto cq = std::make_unique<HostCq>(*this, log_size, layout);
	auto c = make_command(TERN_AQ_CREATE_CQ);
	c.create_cq.pages = cq->ring.buffer().pages();
	c.create_cq.record = cq->record;
	c.create_cq.eqn = eq.number;
	c.create_cq.db_page = db_page;
	c.create_cq.log_size = static_cast<uint8_t>(log_size);
	cq->number = created(c);
	cq->db_page = db_page;
	return cq;
}

HostMr Driver::create_mr(uint32_t pd, uint64_t va, uint64_t size, uint8_t access, Layout layout)
{
	const uint64_t first = layout.levels ? va & ((uint64_t{1} << layout.page_shift) - 1) : 0;
	HostMr mr{0, va, size, first,
	          Buffer(memory, first + size, layout.levels, layout.page_shift, layout.on_demand)};
	auto c = make_command(TERN_AQ_CREATE_MR);
	c.create_mr.flags = layout.on_demand ? TERN_MR_ON_DEMAND : 0;
	c.create_mr.start = va;
	c.create_mr.length = size;
	c.create_mr.pages = mr.buffer.pages();
	c.create_mr.pdn = pd;
	c.create_mr.access = access;
	c.create_mr.variant = static_cast<uint8_t>(va >> 12 ^ 0x7e);
	mr.key = created(c);
	return mr;
}

HostMr Driver::create_device_mr(uint32_t pd, uint64_t va, uint64_t size, uint8_t access)
{
	HostMr mr{0, va, size, 0, Buffer(memory, 0), device_memory.subspan(device_used, size)};
	auto c = make_command(TERN_AQ_CREATE_MR);
	c.create_mr.start = va;
	c.create_mr.length = size;
	c.create_mr.pages.iova = device_used;
	c.create_mr.pdn = pd;
	c.create_mr.access = access;
	c.create_mr.variant = 0x44;
	c.create_mr.flags = TERN_MR_DEVICE;
	mr.key = created(c);
	device_used += (size + 7) & ~uint64_t{7}; /* for the sake of atomics */
	return mr;
}

uint32_t Driver::alloc_xrcd()
{
	return created(make_command(TERN_AQ_ALLOC_XRCD));
}

uint32_t Driver::alloc_mw(uint32_t pd, tern_hw_mw_type type, uint8_t variant)
{
	auto c = make_command(TERN_AQ_ALLOC_MW);
	c.alloc_mw.pdn = pd;
	c.alloc_mw.type = static_cast<uint8_t>(type);
	c.alloc_mw.variant = variant;
	return created(c);
}

uint32_t Driver::create_fast_mr(uint32_t pd)
{
	auto c = make_command(TERN_AQ_CREATE_FAST_MR);
	c.object.id = pd;
	return created(c);
}

std::unique_ptr<HostSrq> Driver::create_srq(const SrqOptions &options)
{
	auto srq = std::make_unique<HostSrq>(*this, options);
	auto c = make_command(TERN_AQ_CREATE_SRQ);
	c.create_srq.pages = srq->buffer.pages();
	c.create_srq.record = srq->record;
	c.create_srq.ring_offset = srq->ring_offset;
	c.create_srq.pdn = options.pd;
	c.create_srq.xrcdn = options.xrcdn;
	c.create_srq.cqn = options.cqn;
	c.create_srq.log_size = options.log_size;
	c.create_srq.log_stride = options.log_stride;
	if (options.tags) {
		c.create_srq.flags = TERN_SRQ_TAGS;
		c.create_srq.log_tags = options.log_tags;
		c.create_srq.log_tag_ops = options.log_tag_ops;
		c.create_srq.tag_ops_offset = srq->tag_ops_offset;
		c.create_srq.db_page = options.db_page;
	}
	srq->number = created(c);
	return srq;
}

std::unique_ptr<HostQp> Driver::create_qp(const QpOptions &options)
{
	auto qp = std::make_unique<HostQp>(*this, options);
	auto c = make_command(TERN_AQ_CREATE_QP);
	c.create_qp.type = options.type;
	c.create_qp.xrcdn = options.xrcdn;
	if (options.type == TERN_QPT_XRC_TGT) {
		qp->number = created(c);
		return qp;
	}
	c.create_qp.pages = qp->buffer.pages();
	c.create_qp.record = qp->record;
	c.create_qp.rq_offset = qp->rq_offset;
	c.create_qp.pdn = options.pd;
	c.create_qp.send_cqn = options.send_cqn;
	c.create_qp.recv_cqn = options.recv_cqn;
	c.create_qp.db_page = options.db_page;
	c.create_qp.sq_log_size = options.sq_log_size;
	if (has_recv_queue(options)) {
		c.create_qp.rq_log_size = options.rq_log_size;
		c.create_qp.rq_log_stride = options.rq_log_stride;
	}
	c.create_qp.flags = static_cast<uint8_t>(
	        (options.signal_all ? TERN_QP_SIGNAL_ALL : 0) | (options.srqn ? TERN_QP_SRQ : 0) |
	        (options.no_mc_loopback ? TERN_QP_NO_MC_LOOPBACK : 0));
	c.create_qp.srqn = options.srqn;
	qp->number = created(c);
	return qp;
}

void Driver::set_gid(uint32_t index, tern_hw_gid_type type, const Gid &gid, uint16_t vlan,
                     const Mac &mac)
{
	auto c = make_command(TERN_AQ_SET_GID);
	c.set_gid.index = index;
	c.set_gid.type = static_cast<uint8_t>(type);
	c.set_gid.vlan = vlan;
	std::ranges::copy(gid.bytes, c.set_gid.gid);
	std::ranges::copy(mac, c.set_gid.mac);
	const auto status = status_of(c);
	must(status == TERN_AQ_OK, "SET_GID", status);
}

uint64_t Driver::stat(tern_hw_stat which, uint32_t set)
{
	auto c = make_command(TERN_AQ_QUERY_STATS);
	c.query_stats.iova = stats_;
	c.query_stats.count = TERN_STAT_COUNT;
	c.query_stats.set = set;
	const auto status = status_of(c);
	must(status == TERN_AQ_OK, "QUERY_STATS", status);
	return memory.get<Le<uint64_t>>(stats_ + which * sizeof(uint64_t)).get();
}

void Driver::arm(HostEq &eq)
{
	doorbell(TERN_DB_PAGE_KERNEL, TERN_DB_EQ_ARM, eq.number, eq.ring.ci);
}

void Driver::doorbell(uint32_t page, uint32_t offset, uint32_t number, uint32_t index)
{
	bars_.ring_doorbell(page, offset, number | uint64_t{index} << TERN_DB_INDEX_SHIFT);
}

} // namespace tern::test
