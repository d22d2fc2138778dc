// SPDX-License-Identifier: GPL-2.0-or-later
/* The provider's data path against a card that writes any CQE and any record, while the program
 * posts, polls and arms. */
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "datapath/completion_queue.h"
#include "datapath/recv_queue.h"
#include "datapath/send_queue.h"
#include "datapath/shared_recv_queue.h"
#include "datapath/tag_queue.h"
#include "tests/sim/rng.h"

namespace tern::provider {
namespace {

using namespace hw;
using sim::Rng;

constexpr uint32_t kSmallQpn = 5, kSharedQpn = 6, kSendOnlyQpn = 7;
constexpr uint32_t kSrqn = 9, kPlainSrqn = 10, kWqn = 11;
constexpr unsigned kMaxActs = 200;

void must(bool ok)
{
	if (!ok)
		std::abort();
}

struct alignas(4096) Memory {
	std::byte sq[3][64 * TERN_SQ_BLOCK];
	std::byte rq[2][16 * 64];
	std::byte slots[8 * 64];
	std::byte ring[8 * 4];
	std::byte tag_ops[4 * sizeof(tern_hw_tag_op)];
	std::byte doorbells[TERN_DB_PAGE_SIZE];
	tern_hw_qp_record records[4];
	tern_hw_srq_record srq_record;
	tern_hw_cq_record cq_record;
	tern_hw_cqe cqes[8];
};

/* A CQ with QPs that have a receive queue, an SRQ, or neither, an SRQ with tags that is in both
 * tables of SRQs, and a WQ. */
class Process {
public:
	explicit Process(Rng &rng) : rng_(rng)
	{
		must(qps_.reserve(kSmallQpn) && srqs_.reserve(kSrqn) &&
		     plain_srqs_.reserve(kPlainSrqn) && wqs_.reserve(kWqn));
		must(cq_.init({.buffer = {.ring = std::as_writable_bytes(std::span(memory_->cqes)),
		                          .record = CqRecord(&memory_->cq_record)},
		               .doorbells = DoorbellPage(memory_->doorbells),
		               .cqn = 1,
		               .qps = &qps_,
		               .srqs = &srqs_,
		               .plain_srqs = &plain_srqs_,
		               .wqs = &wqs_}) == 0);
		for (unsigned i = 0; i < sqs_.size(); i++)
			must(sqs_[i].init({.ring = memory_->sq[i],
			                   .record = QpRecord(&memory_->records[i]),
			                   .doorbells = DoorbellPage(memory_->doorbells),
			                   .qpn = kSmallQpn + i,
			                   .max_wr = 32,
			                   .max_sge = 4,
			                   .max_inline = 64,
			                   .ops = send_ops_of(Service::kRc, ~0u),
			                   .shadow_doorbell = i == 1}) == 0);
		for (unsigned i = 0; i < rqs_.size(); i++)
			must(rqs_[i].init({.ring = memory_->rq[i],
			                   .record = QpRecord(&memory_->records[2 + i]),
			                   .entries = 16,
			                   .log_stride = 6,
			                   .max_sge = 4}) == 0);
		must(srq_.init({.slots = memory_->slots,
		                .ring = memory_->ring,
		                .record = SrqRecord(&memory_->srq_record),
		                .entries = 8,
		                .log_stride = 6},
		               4) == 0);
		must(tags_.init({.ring = memory_->tag_ops,
		                 .entries = 4,
		                 .srqn = kSrqn,
		                 .doorbells = DoorbellPage(memory_->doorbells)}) == 0);
		insert();
	}

	void act()
	{
		switch (rng_.below(8)) {
		case 0 ... 2:
			write_cqe();
			break;
		case 3:
			poll();
			break;
		case 4:
			post();
			break;
		case 5:
			post_tag();
			break;
		case 6:
			cq_.arm(rng_.chance(1, 2));
			break;
		default:
			remove();
			break;
		}
	}

private:
	void insert()
	{
		qps_.insert(kSmallQpn, {&sqs_[0], &cq_}, {&rqs_[0], &cq_}, {});
		qps_.insert(kSharedQpn, {&sqs_[1], &cq_}, {}, {&srq_, &cq_});
		qps_.insert(kSendOnlyQpn, {&sqs_[2], &cq_}, {}, {});
		srqs_.insert(kSrqn, {&srq_, &cq_}, {&tags_, &cq_});
		plain_srqs_.insert(kPlainSrqn, {&srq_, nullptr});
		wqs_.insert(kWqn, {&rqs_[1], &cq_});
	}
	uint32_t number() { return rng_.chance(1, 8) ? uint32_t(rng_.next()) : rng_.below(16); }

	/** The next CQE, or any byte of any of them. */
	void write_cqe()
	{
		if (rng_.chance(1, 8)) {
			const auto bytes = std::as_writable_bytes(std::span(memory_->cqes));
			bytes[rng_.below(bytes.size())] = static_cast<std::byte>(rng_.below(256));
			return;
		}
		tern_hw_cqe &cqe = memory_->cqes[written_ % std::size(memory_->cqes)];
		cqe.wqe_index = number();
		cqe.byte_len = number();
		cqe.qpn = number();
		cqe.srqn = number();
		cqe.opcode = static_cast<uint8_t>(rng_.below(256));
		cqe.status = static_cast<uint8_t>(rng_.below(rng_.chance(1, 2) ? 1 : 256));
		cqe.flags = static_cast<uint8_t>(rng_.below(256));
		cqe.phase = written_++ / std::size(memory_->cqes) % 2 ? 0 : TERN_PHASE;
	}
	void poll()
	{
		Completion completion;
		for (auto n = rng_.below(20); n > 0 && cq_.next(completion); n--)
			continue;
		cq_.release();
	}
	void post()
	{
		const ibv_sge sges[4] = {};
		const std::span some(sges, rng_.below(6) % 5);
		if (rng_.chance(1, 2)) {
			SendQueue &sq = sqs_[rng_.below(sqs_.size())];
			SendRequest request;
			request.flags = static_cast<uint8_t>(rng_.below(8));
			if (sq.build(request, some) == 0)
				sq.publish();
		} else if (rng_.chance(1, 2)) {
			RecvQueue &rq = rqs_[rng_.below(rqs_.size())];
			if (rq.build(1, some) == 0)
				rq.publish();
		} else if (srq_.build(1, some) == 0) {
			srq_.publish();
		}
	}
	void post_tag()
	{
		ibv_sge sge = {};
		ibv_ops_wr wr = {};
		wr.opcode = rng_.chance(2, 3) ? IBV_WR_TAG_ADD : IBV_WR_TAG_DEL;
		wr.flags = rng_.chance(1, 2) ? IBV_OPS_SIGNALED : 0;
		wr.tm.handle = number();
		if (wr.opcode == IBV_WR_TAG_ADD) {
			wr.tm.add.sg_list = &sge;
			wr.tm.add.num_sge = 1;
		}
		if (tags_.build(wr) == 0)
			tags_.publish();
	}
	/** A destroyed queue, of which CQEs may still come, and its number used again. */
	void remove()
	{
		if (rng_.chance(1, 3))
			return insert();
		const auto i = static_cast<uint32_t>(rng_.below(sqs_.size()));
		qps_.remove(kSmallQpn + i, &sqs_[i]);
		cq_.drop_qp(kSmallQpn + i);
		if (rng_.chance(1, 4))
			cq_.drop_srq(kSrqn);
		if (rng_.chance(1, 4))
			cq_.drop_wq(kWqn);
	}

	Rng &rng_;
	std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
	QpTable qps_;
	SrqTable srqs_;
	PlainSrqTable plain_srqs_;
	WqTable wqs_;
	std::array<SendQueue, 3> sqs_;
	std::array<RecvQueue, 2> rqs_;
	SharedRecvQueue srq_;
	TagQueue tags_;
	CompletionQueue cq_;
	uint32_t written_ = 0;
};

} // namespace
} // namespace tern::provider

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	using namespace tern::provider;
	Rng rng(std::as_bytes(std::span(data, size)));
	Process process(rng);
	for (unsigned i = 0; i < kMaxActs && !rng.exhausted(); i++)
		process.act();
	return 0;
}
