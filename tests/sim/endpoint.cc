// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/endpoint.h"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

namespace tern::sim {

using namespace hw;
using test::kAllAccess;
using test::Layout;
using test::SendRequest;

namespace {

constexpr uint64_t kWord = 8;
constexpr unsigned kOperands = 4;

} // namespace

Endpoint::Endpoint(Node &n, Rng rng, uint32_t pd, const test::QpOptions &queues,
                   const Limits &limits, Area &number, SharedInbox *shared, uint32_t xrcdn,
                   Fail fail)
        : node(n), qp(n.driver.create_qp(queues)), counter(number), rng_(rng), limits_(limits),
          fail_(std::move(fail)), source_(n, rng_, pd, limits.max_size + 4096, 0, true),
          window_(n, rng_, pd, limits.max_size + 4096, TERN_ACCESS_REMOTE_READ, true),
          target_(n, rng_, pd, limits.max_size + 4096,
                  TERN_ACCESS_LOCAL_WRITE | TERN_ACCESS_REMOTE_WRITE, false),
          operand_(n, rng_, pd, kOperands * kWord,
                   TERN_ACCESS_LOCAL_WRITE | TERN_ACCESS_REMOTE_WRITE | TERN_ACCESS_REMOTE_ATOMIC,
                   true),
          sink_(n, rng_, pd, limits.max_size + 4096, TERN_ACCESS_LOCAL_WRITE, false),
          fenced_(n, rng_, pd, 65536, TERN_ACCESS_LOCAL_WRITE, false),
          counts_(n, rng_, pd, limits.ops * kWord, TERN_ACCESS_LOCAL_WRITE, false),
          inbox_(n, rng_, pd, (limits.ops + 8) * uint64_t{limits.max_size} * 2 + 4096,
                 TERN_ACCESS_LOCAL_WRITE, false),
          flushed_(n, rng_, pd, 65536,
                   TERN_ACCESS_LOCAL_WRITE | TERN_ACCESS_REMOTE_WRITE | TERN_ACCESS_FLUSH_GLOBAL,
                   false),
          lent_(n, rng_, pd, 8192, TERN_ACCESS_LOCAL_WRITE | TERN_ACCESS_MW_BIND, false,
                queues.db_page != TERN_DB_PAGE_KERNEL), /* else lent by a list of its pages */
          shared_(shared), max_posted_(1u << queues.rq_log_size)
{
	if (xrcdn)
		target = n.driver.create_qp({.type = TERN_QPT_XRC_TGT, .xrcdn = xrcdn});
	set_up_loan(pd);
}

void Endpoint::connect(Endpoint &a, Endpoint &b)
{
	Rng &rng = a.rng_;
	a.peer = &b;
	b.peer = &a;
	test::Connection c[2];
	const auto gid = static_cast<uint8_t>(rng.below(a.node.gids.size()));
	c[0].mtu = c[1].mtu = static_cast<uint8_t>(rng.between(1, 5));
	for (int i = 0; i < 2; i++) {
		Endpoint &remote = i ? a : b;
		c[i].dest_qpn = remote.receiver().number;
		c[i].sgid_index = gid;
		c[i].dgid = remote.node.gids[gid].gid;
		c[i].dmac = remote.node.mac;
		/* Half of the connections run over the wrap of the PSN. */
		c[i].sq_psn = static_cast<uint32_t>(rng.chance(1, 2) ? 0xffffff - rng.below(100)
		                                                     : rng.below(1 << 24));
		c[i].max_dest_rd_atomic = static_cast<uint8_t>(rng.between(1, 16));
		c[i].min_rnr_timer = static_cast<uint8_t>(rng.between(1, 10));
		c[i].timeout = static_cast<uint8_t>(rng.between(8, 11));
	}
	for (int i = 0; i < 2; i++) {
		Endpoint &local = i ? b : a;
		c[i].rq_psn = c[!i].sq_psn;
		c[i].max_rd_atomic = static_cast<uint8_t>(rng.between(1, c[!i].max_dest_rd_atomic));
		local.mtu_ = 128u << c[i].mtu;
		local.max_rd_atomic_ = c[i].max_rd_atomic;
	}
	/* As the connection manager does: both can receive before one may send. */
	const auto each = [&](auto step) {
		for (int i = 0; i < 2; i++) {
			Endpoint &local = i ? b : a;
			(local.qp.get()->*step)(c[i]);
			if (!local.target)
				continue;
			test::Connection back = c[i];
			back.dest_qpn = local.peer->qp->number;
			(local.target.get()->*step)(back);
		}
	};
	each(&test::HostQp::to_init);
	each(&test::HostQp::to_rtr);
	each(&test::HostQp::to_rts);
	a.plan();
	b.plan();
	a.lend();
	b.lend();
}

/* ---- plan ---- */

void Endpoint::plan()
{
	while (plan_.size() < limits_.ops)
		plan_one();
	/* So that the end of all is known. */
	plan_.back().request.flags |= TERN_WQE_SIGNALED;
}

void Endpoint::plan_one()
{
	switch (rng_.below(13)) {
	case 0 ... 2:
		return plan_send(false, false);
	case 3 ... 5:
		return plan_send(true, false);
	case 6 ... 7:
		return plan_read();
	case 8 ... 9:
		return plan_atomic();
	case 10:
		return plan_count();
	case 11:
		return plan_flush();
	default:
		return plan_fenced();
	}
}

uint32_t Endpoint::random_length()
{
	switch (rng_.below(8)) {
	case 0:
		return 0;
	case 1 ... 2:
		return static_cast<uint32_t>(rng_.between(1, 64));
	case 3 ... 5: {
		const uint64_t around = mtu_ * rng_.between(1, 4) + rng_.between(0, 4) - 2;
		return static_cast<uint32_t>(std::min<uint64_t>(around, limits_.max_size));
	}
	case 6:
		return static_cast<uint32_t>(rng_.below(limits_.max_size / 8 + 1));
	default:
		return static_cast<uint32_t>(rng_.below(limits_.max_size + 1));
	}
}

std::vector<Sge> Endpoint::pieces(Area &area, uint32_t length, unsigned max)
{
	std::vector<Sge> sges;
	const auto count = rng_.between(1, rng_.chance(1, 4) ? max : std::min(max, 3u));
	for (uint64_t left = count; left > 0; left--) {
		auto n = static_cast<uint32_t>(left == 1 ? length : rng_.below(length + 1));
		if (left > 1 && rng_.chance(1, 8))
			n = 0;
		if (n == 0 && rng_.chance(1, 2))
			sges.push_back(
			        {rng_.next(), 0, static_cast<uint32_t>(rng_.next()) | 0x100});
		else
			sges.push_back(area.mr.sge(rng_.below(area.model.size() - n + 1), n));
		length -= n;
	}
	return sges;
}

std::vector<std::byte> Endpoint::gather(const Area &area, const std::vector<Sge> &sges) const
{
	std::vector<std::byte> data;
	for (const Sge &sge : sges)
		if (sge.length) {
			const auto from =
			        area.model.begin() + static_cast<ptrdiff_t>(sge.addr - area.mr.va);
			data.insert(data.end(), from, from + sge.length);
		}
	return data;
}

void Endpoint::scatter(Area &area, const std::vector<Sge> &sges, std::span<const std::byte> data)
{
	for (const Sge &sge : sges) {
		const auto part = data.first(std::min<size_t>(sge.length, data.size()));
		if (!part.empty())
			std::ranges::copy(part,
			                  area.model.begin() +
			                          static_cast<ptrdiff_t>(sge.addr - area.mr.va));
		data = data.subspan(part.size());
	}
}

void Endpoint::push(SendRequest request, uint32_t length)
{
	request.flags |= rng_.chance(1, 2) ? TERN_WQE_SIGNALED : 0;
	const bool local = request.opcode >= TERN_OP_LOCAL_INV && request.opcode <= TERN_OP_REG_MR;
	request.flags |= !local && rng_.chance(1, 4) ? TERN_WQE_SOLICITED : 0;
	if (target)
		request.srqn = peer->shared_->number();
	request.flags |= rng_.chance(1, 10) ? TERN_WQE_FENCE : 0;
	const auto blocks = static_cast<uint32_t>(encode(request).size() / TERN_SQ_BLOCK);
	/* With max_segs() that keeps the ring from filling up with what nobody hears of. */
	if (unsignaled_ + blocks > (1u << qp->options.sq_log_size) / 2)
		request.flags |= TERN_WQE_SIGNALED;
	unsignaled_ = request.flags & TERN_WQE_SIGNALED ? 0 : unsignaled_ + blocks;
	plan_.push_back({std::move(request), length, blocks});
}

/* SEND or WRITE, each with or without immediate data. */
void Endpoint::plan_send(bool write, bool fenced)
{
	const bool imm = rng_.chance(1, 3);
	SendRequest request;
	request.flags = 0;
	request.imm = static_cast<uint32_t>(rng_.next());
	request.opcode = write ? (imm ? TERN_OP_WRITE_IMM : TERN_OP_WRITE)
	                       : (imm ? TERN_OP_SEND_IMM : TERN_OP_SEND);

	uint32_t length = random_length();
	std::vector<std::byte> data;
	const auto max_sges = std::min<uint64_t>(TERN_MAX_SEND_SGE, max_segs() - 2);
	if (fenced) {
		/* What the READ before brings. */
		SendRequest read;
		length = std::min<uint32_t>(length, 1000);
		const uint64_t from = rng_.below(window_.model.size() - length + 1);
		read.opcode = TERN_OP_READ;
		read.flags = 0;
		read.remote_addr = peer->window_.mr.va + from;
		read.rkey = peer->window_.mr.key;
		read.sges = {fenced_.mr.sge(fenced_.used, length)};
		fenced_.used += length;
		data.assign(peer->window_.model.begin() + static_cast<ptrdiff_t>(from),
		            peer->window_.model.begin() + static_cast<ptrdiff_t>(from + length));
		scatter(fenced_, read.sges, data);
		request.sges = read.sges;
		request.flags = TERN_WQE_FENCE;
		push(std::move(read), length);
	} else {
		request.sges = pieces(source_, length, static_cast<unsigned>(max_sges));
		data = gather(source_, request.sges);
		const size_t room = (max_segs() - 2) * TERN_SEG_SIZE;
		if (length <= std::min<size_t>(room, TERN_MAX_INLINE) && rng_.chance(1, 3)) {
			request.flags = TERN_WQE_INLINE;
			request.inline_data = data;
			request.sges.clear();
		}
	}

	if (write) {
		const uint64_t to = rng_.below(peer->target_.model.size() - length + 1);
		request.remote_addr = peer->target_.mr.va + to;
		request.rkey = peer->target_.mr.key;
		std::ranges::copy(data, peer->target_.model.begin() + static_cast<ptrdiff_t>(to));
	}
	if (!write || imm)
		peer->expect({.cqe_opcode = static_cast<uint8_t>(write ? TERN_CQE_RECV_WRITE_IMM
		                                                       : TERN_CQE_RECV),
		              .has_imm = imm,
		              .imm = request.imm,
		              .length = length,
		              .data = write ? std::vector<std::byte>{} : data});
	push(std::move(request), length);
}

void Endpoint::plan_fenced()
{
	if (fenced_.used + 1000 > fenced_.model.size())
		return plan_read();
	plan_send(rng_.chance(1, 2), true);
}

void Endpoint::plan_read()
{
	SendRequest request;
	const uint32_t length = random_length();
	const Area &from = peer->window_;
	const uint64_t offset = rng_.below(from.model.size() - length + 1);
	const auto max_sges = std::min<uint64_t>(TERN_MAX_SEND_SGE, max_segs() - 2);
	request.opcode = TERN_OP_READ;
	request.flags = 0;
	request.remote_addr = from.mr.va + offset;
	request.rkey = from.mr.key;
	request.sges = pieces(sink_, length, static_cast<unsigned>(max_sges));
	scatter(sink_, request.sges, std::span(from.model).subspan(offset, length));
	push(std::move(request), length);
}

void Endpoint::plan_atomic()
{
	if (rng_.chance(1, 3))
		return plan_atomic_write();
	SendRequest request;
	const uint64_t offset = rng_.below(kOperands) * kWord;
	std::byte *const at = peer->operand_.model.data() + offset;
	uint64_t value;
	std::memcpy(&value, at, sizeof(value));
	request.remote_addr = peer->operand_.mr.va + offset;
	request.rkey = peer->operand_.mr.key;
	request.flags = 0;
	request.sges = {sink_.mr.sge(rng_.below(sink_.model.size() - kWord + 1), kWord)};
	scatter(sink_, request.sges, std::as_bytes(std::span(&value, 1)));
	request.swap_add = rng_.next();
	/* XRC has no masked ones. */
	if (!target && rng_.chance(1, 2))
		value = plan_masked(request, value);
	else
		value = plan_unmasked(request, value);
	std::memcpy(at, &value, sizeof(value));
	push(std::move(request), kWord);
}

uint64_t Endpoint::plan_unmasked(SendRequest &request, uint64_t value)
{
	if (rng_.chance(1, 2)) {
		request.opcode = TERN_OP_FETCH_ADD;
		return value + request.swap_add;
	}
	request.opcode = TERN_OP_CMP_SWAP;
	request.compare = rng_.chance(2, 3) ? value : rng_.next();
	return request.compare == value ? request.swap_add : value;
}

/* A masked fetch-add adds the two halves of the word separately. */
uint64_t Endpoint::plan_masked(SendRequest &request, uint64_t value)
{
	constexpr uint64_t kLow = UINT32_MAX;
	const uint64_t swap = request.swap_add;
	request.masks.emplace();
	if (rng_.chance(1, 2)) {
		request.opcode = TERN_OP_MASKED_FETCH_ADD;
		request.masks->swap_add = 1ull << 31;
		return ((value & ~kLow) + (swap & ~kLow)) | ((value + swap) & kLow);
	}
	const uint64_t compared = rng_.next();
	const uint64_t replaced = rng_.next();
	request.opcode = TERN_OP_MASKED_CMP_SWAP;
	request.compare = rng_.chance(2, 3) ? value ^ (rng_.next() & ~compared) : rng_.next();
	request.masks->swap_add = replaced;
	request.masks->compare = compared;
	const bool equal = (value & compared) == (request.compare & compared);
	return equal ? (value & ~replaced) | (swap & replaced) : value;
}

void Endpoint::plan_atomic_write()
{
	SendRequest request;
	const uint64_t offset = rng_.below(kOperands) * kWord;
	request.opcode = TERN_OP_ATOMIC_WRITE;
	request.flags = 0;
	request.remote_addr = peer->operand_.mr.va + offset;
	request.rkey = peer->operand_.mr.key;
	request.sges = {source_.mr.sge(rng_.below(source_.model.size() - kWord + 1), kWord)};
	const auto data = gather(source_, request.sges);
	std::ranges::copy(data, peer->operand_.model.begin() + static_cast<ptrdiff_t>(offset));
	if (rng_.chance(1, 2)) {
		request.flags = TERN_WQE_INLINE;
		request.inline_data = data;
		request.sges.clear();
	}
	push(std::move(request), kWord);
}

/* One more on the peer's counter, which others add to at the same time. */
void Endpoint::plan_count()
{
	SendRequest request;
	request.opcode = TERN_OP_FETCH_ADD;
	request.flags = 0;
	request.remote_addr = peer->counter.mr.va;
	request.rkey = peer->counter.mr.key;
	request.swap_add = 1;
	request.sges = {counts_.mr.sge(counts_.used, kWord)};
	counts_.used += kWord;
	push(std::move(request), kWord);
}

std::vector<uint64_t> Endpoint::counted() const
{
	std::vector<uint64_t> values;
	for (uint64_t at = 0; at < counts_.used; at += kWord)
		values.push_back(counts_.mr.read_u64(at));
	return values;
}

/* A receive WQE for a message of the peer, often larger than needed; each has memory of its own. */
void Endpoint::expect(Message message)
{
	if (shared_) {
		messages_.push_back(std::move(message));
		return;
	}
	Receive receive;
	const auto max_sges = 1u << (qp->options.rq_log_stride - 4);
	uint64_t left = message.cqe_opcode == TERN_CQE_RECV ? message.length : 0;
	if (rng_.chance(1, 2))
		left += rng_.below(limits_.max_size / 4);
	for (auto n = rng_.between(1, max_sges); n > 0; n--) {
		const auto part = static_cast<uint32_t>(n == 1 ? left : rng_.below(left + 1));
		receive.sges.push_back(inbox_.mr.sge(inbox_.used, part));
		inbox_.used += part;
		left -= part;
	}
	scatter(inbox_, receive.sges, message.data);
	receive.message = std::move(message);
	receives_planned_.push_back(std::move(receive));
}

/* ---- action ---- */

bool Endpoint::may_post(const Op &op) const
{
	return op.blocks <= qp->send_room();
}

bool Endpoint::act()
{
	if (gone_)
		return false;
	const size_t planned = receives_planned_.size() + plan_.size();
	for (auto n = rng_.below(4); n > 0 && !receives_planned_.empty(); n--) {
		if (receives_.size() == max_posted_)
			break;
		qp->post_recv(receives_planned_.front().sges);
		receives_.push_back(std::move(receives_planned_.front()));
		receives_planned_.pop_front();
	}
	bool posted = false;
	for (auto n = rng_.below(6); n > 0 && !plan_.empty() && may_post(plan_.front()); n--) {
		const Op &op = plan_.front();
		/* Sometimes several for one publication. */
		const bool ring = rng_.chance(1, 2);
		const uint32_t index = qp->post_send(op.request, ring);
		posted = !ring;
		sends_.push_back({index, op.blocks, op.request.opcode, op.length,
		                  (op.request.flags & TERN_WQE_SIGNALED) != 0, op.flushed});
		plan_.pop_front();
	}
	if (posted)
		qp->publish();
	node.wake();
	return receives_planned_.size() + plan_.size() != planned;
}

void Endpoint::failure(const std::string &what) const
{
	fail_(describe() + ": " + what);
}

std::string Endpoint::describe() const
{
	std::ostringstream out;
	out << "node " << std::to_integer<int>(std::byte{node.mac[5]}) << " qp " << qp->number
	    << " (" << plan_.size() << " to post, " << sends_.size() << " sends and "
	    << receives_.size() << " receives under way, " << receives_planned_.size()
	    << " receives to post" << (doomed_ ? ", doomed" : "") << (gone_ ? ", gone" : "")
	    << (failed_ ? ", failed" : "") << ")";
	return out.str();
}

void Endpoint::on_completion(const tern_hw_cqe &cqe)
{
	if (gone_) {
		if (shared_ && (cqe.opcode & TERN_CQE_RECV))
			shared_->take(cqe.wqe_index.get(), 0);
		return;
	}
	completed_++;
	if (cqe.opcode & TERN_CQE_RECV)
		shared_ ? on_shared_receive(cqe) : on_receive(cqe);
	else
		on_send(cqe);
}

void Endpoint::on_send(const tern_hw_cqe &cqe)
{
	/* A completion speaks for the unsignaled ones before it; but each flushed one speaks for
	 * itself. */
	while (!sends_.empty() && sends_.front().index != cqe.wqe_index.get()) {
		if (sends_.front().signaled || failed_)
			return failure("a send completion is missing");
		sends_.pop_front();
	}
	if (sends_.empty())
		return failure("completion of a send that was not posted");
	const Posted send = sends_.front();
	sends_.pop_front();
	qp->sq_ci = send.index + send.blocks;

	if (cqe.opcode != send.opcode)
		failure("send completion with another opcode");
	if (cqe.status == TERN_WC_SUCCESS) {
		if (failed_)
			failure("success after an error");
		if (!send.signaled)
			failure("completion of an unsignaled send");
		if (cqe.byte_len.get() != send.length)
			failure("send completion with a wrong length");
		if (send.opcode == TERN_OP_BIND_MW || send.opcode == TERN_OP_REG_MR)
			lent();
		else if (send.opcode == TERN_OP_LOCAL_INV)
			end_loan(true);
		else if (send.opcode == TERN_OP_FLUSH)
			flushed(send.flushed);
		return;
	}
	if (!doomed_)
		failure("send failed with status " + std::to_string(cqe.status));
	if (failed_ && cqe.status != TERN_WC_WR_FLUSH_ERR)
		failure("status after the error is " + std::to_string(cqe.status));
	failed_ = true;
}

void Endpoint::on_receive(const tern_hw_cqe &cqe)
{
	if (receives_.empty() || cqe.wqe_index.get() != next_receive_)
		return failure("receive completion out of order");
	const Receive receive = std::move(receives_.front());
	receives_.pop_front();
	next_receive_++;

	if (!receive_ok(cqe))
		return;
	/* The data is there when the completion is. */
	std::vector<std::byte> data;
	for (const Sge &sge : receive.sges) {
		const auto part = inbox_.mr.read(sge.addr - inbox_.mr.va, sge.length);
		data.insert(data.end(), part.begin(), part.end());
	}
	check_message(receive.message, cqe, data);
}

void Endpoint::on_shared_receive(const tern_hw_cqe &cqe)
{
	if (cqe.srqn.get() != shared_->number())
		return failure("receive completion of another SRQ");
	const bool ok = cqe.status == TERN_WC_SUCCESS;
	const auto data = shared_->take(cqe.wqe_index.get(), ok ? cqe.byte_len.get() : 0);
	if (!receive_ok(cqe))
		return;
	if (messages_.empty())
		return failure("a message that nobody sent");
	const Message message = std::move(messages_.front());
	messages_.pop_front();
	check_message(message, cqe, data);
}

/* Errors are for those that are doomed, and after the first there are only flushes. */
bool Endpoint::receive_ok(const tern_hw_cqe &cqe)
{
	if (cqe.status == TERN_WC_SUCCESS) {
		if (receive_failed_)
			failure("receive succeeded after an error");
		return true;
	}
	if (!doomed_)
		failure("receive failed with status " + std::to_string(cqe.status));
	if (receive_failed_ && cqe.status != TERN_WC_WR_FLUSH_ERR)
		failure("receive status after the error is " + std::to_string(cqe.status));
	receive_failed_ = true;
	return false;
}

void Endpoint::check_message(const Message &message, const tern_hw_cqe &cqe,
                             std::span<const std::byte> data)
{
	if (cqe.opcode != message.cqe_opcode)
		failure("receive completion with another opcode");
	if (cqe.byte_len.get() != message.length)
		failure("received " + std::to_string(cqe.byte_len.get()) + " bytes instead of " +
		        std::to_string(message.length));
	if (((cqe.flags & TERN_CQE_IMM) != 0) != message.has_imm ||
	    ((cqe.flags & TERN_CQE_INV) != 0) != message.has_key ||
	    ((message.has_imm || message.has_key) && cqe.imm.get() != message.imm))
		failure("immediate data or invalidated key differ");
	if (data.size() < message.data.size() ||
	    !std::ranges::equal(data.first(message.data.size()), message.data))
		failure("the message has other bytes");
	if (message.ends_loan)
		end_loan(message.has_key);
}

bool Endpoint::finished() const
{
	if (gone_)
		return true;
	/* In the end unsignaled ones are covered by the last, which is signaled. */
	return plan_.empty() && sends_.empty() && receives_.empty() && receives_planned_.empty() &&
	       (doomed_ || (messages_.empty() && !loan_.out && !loan_.left));
}

void Endpoint::to_error()
{
	for (test::HostQp *each : {qp.get(), target.get()})
		if (each && each->set_state(TERN_QPS_ERR) != TERN_AQ_OK)
			failure("MODIFY_QP to ERR failed");
}

void Endpoint::deregister_one()
{
	Area *const areas[] = {&source_, &window_, &target_, &operand_, &flushed_, &sink_, &inbox_};
	Area &area = *areas[rng_.below(std::size(areas))];
	if (node.driver.destroy(TERN_AQ_DESTROY_MR, area.mr.key) != TERN_AQ_OK)
		failure("DESTROY_MR failed");
	area.registered = false;
}

void Endpoint::verify() const
{
	const std::pair<const char *, const Area *> constant[] = {{"source", &source_},
	                                                          {"window", &window_}};
	const std::pair<const char *, const Area *> changing[] = {
	        {"target", &target_}, {"operand", &operand_}, {"flushed", &flushed_},
	        {"sink", &sink_},     {"fenced", &fenced_},   {"inbox", &inbox_},
	        {"lent", &lent_}};
	const auto check = [this](const auto &areas) {
		for (const auto &[name, area] : areas)
			if (const auto text = area->differs(name); !text.empty())
				failure(text);
	};
	check(constant);
	if (!doomed_)
		check(changing);
}

void Endpoint::destroy()
{
	if (gone_)
		return;
	test::Driver &driver = node.driver;
	for (const test::HostQp *each : {qp.get(), target.get()})
		if (each && driver.destroy(TERN_AQ_DESTROY_QP, each->number) != TERN_AQ_OK)
			failure("DESTROY_QP failed");
	if (!take_down_loan())
		failure("DEALLOC_MW failed");
	for (Area *area : {&source_, &window_, &target_, &operand_, &flushed_, &sink_, &fenced_,
	                   &counts_, &inbox_, &lent_})
		if (std::exchange(area->registered, false) &&
		    driver.destroy(TERN_AQ_DESTROY_MR, area->mr.key) != TERN_AQ_OK)
			failure("DESTROY_MR failed");
}

} // namespace tern::sim
