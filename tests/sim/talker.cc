// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/talker.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace tern::sim {

using namespace hw;

Talker::Talker(Node &n, Rng rng, uint32_t pd, const test::QpOptions &options,
               const Conditions &conditions, uint32_t buffer_size, Fail fail)
        : node(n), qp(n.driver.create_qp(options)), rng_(rng), conditions_(conditions),
          buffer_size_(buffer_size), fail_(std::move(fail)), seed_(rng_.next()),
          source_(n.driver.create_mr(pd, 0x10000, uint64_t{buffer_size} * conditions.messages, 0,
                                     {2, 12})),
          inbox_(n.driver.create_mr(pd, 0x123450, uint64_t{buffer_size} << options.rq_log_size,
                                    TERN_ACCESS_LOCAL_WRITE, {2, 12})),
          entries_(1u << options.rq_log_size)
{
}

std::vector<std::byte> Talker::content(unsigned n, uint32_t length) const
{
	std::vector<std::byte> data(length);
	Rng(seed_ + n).fill(data);
	const Le<uint32_t> number = n;
	if (length >= sizeof(number))
		std::memcpy(data.data(), &number, sizeof(number));
	return data;
}

std::vector<Sge> Talker::source(unsigned n, std::span<const std::byte> data)
{
	const uint64_t start = uint64_t{n} * buffer_size_;
	const auto length = static_cast<uint32_t>(data.size());
	source_.write(start, data);
	std::vector<Sge> sges;
	for (uint32_t done = 0; done < length || sges.empty();) {
		const auto piece = sges.size() == 2
		                           ? length - done
		                           : static_cast<uint32_t>(rng_.below(length - done + 1));
		sges.push_back(source_.sge(start + done, piece));
		done += piece;
	}
	return sges;
}

void Talker::post_recv()
{
	const uint64_t slot = qp->rq_pi % entries_;
	qp->post_recv(inbox_.sge(slot * buffer_size_, buffer_size_));
}

void Talker::act()
{
	for (auto n = rng_.below(4); n > 0 && next_ < conditions_.messages && !send_error_; n--) {
		/* The longest WQE has two blocks. */
		if (qp->send_room() < 2)
			break;
		post(next_++);
	}
	qp->publish();
	node.wake();
}

void Talker::post(unsigned n)
{
	auto r = request(n);
	/* Half of the ring at most is silent, so that it gets free again. */
	const bool silent = rng_.chance(1, 3) && n + 1 < conditions_.messages &&
	                    qp->send_room() * 2 > 1u << qp->options.sq_log_size;
	r.flags = static_cast<uint8_t>((silent ? 0 : TERN_WQE_SIGNALED) |
	                               (r.flags & ~TERN_WQE_SIGNALED));
	const auto blocks = static_cast<uint32_t>(test::encode(r).size() / TERN_SQ_BLOCK);
	posted_.push_back({n, qp->post_send(r, rng_.chance(1, 2)), blocks});
}

void Talker::on_completion(const tern_hw_cqe &cqe)
{
	if (!(cqe.opcode & TERN_CQE_RECV)) {
		on_send(cqe);
		return;
	}
	if (cqe.status != TERN_WC_SUCCESS)
		return failure("receive status " + std::to_string(cqe.status));
	const uint64_t slot = cqe.wqe_index.get() % entries_;
	const bool written = cqe.opcode == TERN_CQE_RECV_WRITE_IMM;
	const uint32_t size = written ? 0 : cqe.byte_len.get();
	if (size > buffer_size_)
		return failure("longer than its buffer");
	arrived(cqe, inbox_.read(slot * buffer_size_, size));
	post_recv();
}

/* A completion speaks for the silent ones before it. */
void Talker::on_send(const tern_hw_cqe &cqe)
{
	const auto status = static_cast<tern_hw_cqe_status>(cqe.status);
	while (!posted_.empty() && posted_.front().index != cqe.wqe_index.get())
		end_front(TERN_WC_SUCCESS);
	if (posted_.empty())
		return failure("completion of nothing");
	end_front(status);
	if (status != TERN_WC_SUCCESS)
		send_error_ = true;
	if (send_error_ && posted_.empty()) {
		expect(qp->query().state == TERN_QPS_SQE, "no SQE after a send error");
		expect(qp->set_state(TERN_QPS_RTS) == TERN_AQ_OK, "SQE to RTS");
		send_error_ = false;
	}
}

void Talker::end_front(tern_hw_cqe_status status)
{
	const Posted front = posted_.front();
	posted_.pop_front();
	qp->sq_ci += front.blocks;
	const bool flushed = status == TERN_WC_WR_FLUSH_ERR;
	expect(flushed == send_error_, "flushed, or not, against the state");
	expect(flushed || (status != TERN_WC_SUCCESS) == is_bad(front.n),
	       "a send ended otherwise than it must");
	if (status == TERN_WC_SUCCESS)
		sent_.insert(front.n);
}

void Talker::failure(const std::string &what) const
{
	std::ostringstream out;
	out << "node " << unsigned{node.mac[5]} << " qp " << qp->number << ": " << what;
	fail_(out.str());
}

} // namespace tern::sim
