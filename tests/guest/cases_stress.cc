// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random requests over several QPs. The other side's memory is cut into slots; the requester
 * keeps a copy of what each must hold, has one request per slot under way, and compares.
 */
#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <thread>

#include "cases.h"

namespace tern::guest {
namespace {

constexpr size_t kSlot = 32768;
constexpr unsigned kSlotsPerQp = 8;
constexpr unsigned kRecvs = 32;
constexpr size_t kHeader = 16; /* of a SEND: the seed of what follows, and its size */

enum class Kind { kNone, kWrite, kWriteImm, kRead, kSend, kAdd, kSwap };

struct Slot {
	Kind kind = Kind::kNone;
	size_t offset = 0, size = 0; /* in the slot */
	uint64_t expected = 0;       /* what an atomic brings back */
};

class Requester {
public:
	Requester(Session &s, std::vector<std::unique_ptr<Endpoint>> &eps,
	          const RemoteBuffer &remote)
	        : eps_(eps), remote_(remote), random_(s.seed), slots_(eps.size() * kSlotsPerQp),
	          local_(s.device, slots_.size() * kSlot), model_(slots_.size() * kSlot)
	{
	}

	/** Sends requests for @time. @interval: the pause before each request that follows a
	 * completion. */
	void run(Clock::duration time, Clock::duration interval)
	{
		const auto end = Clock::now() + time;
		for (size_t i = 0; i < slots_.size(); i++)
			start(i);
		Idling idling;
		for (size_t under_way = slots_.size(); under_way;) {
			const auto slot = poll();
			check(Clock::now() < end + 60s, "requests that never complete");
			if (!slot) {
				idling.pause();
				continue;
			}
			idling.reset();
			if (interval.count())
				std::this_thread::sleep_for(interval);
			if (Clock::now() < end)
				start(*slot);
			else
				under_way--;
		}
		read_all();
	}

	uint64_t requests() const { return requests_; }

private:
	/* Polls for a completion and checks the data of its request. Returns the slot of the
	 * request, or nothing if no request has completed. */
	std::optional<size_t> poll()
	{
		for (size_t n = 0; n < eps_.size(); n++) {
			ibv_wc wc;
			if (!eps_[turn_++ % eps_.size()]->poll_send(wc))
				continue;
			if (wc.status != IBV_WC_SUCCESS)
				throw CheckFailed(describe(wc));
			finish(wc.wr_id);
			return wc.wr_id;
		}
		return std::nullopt;
	}

	void start(size_t i)
	{
		Slot &slot = slots_[i];
		Endpoint &ep = *eps_[i % eps_.size()];
		const size_t base = i * kSlot;
		uint8_t *model = model_.data() + base, *local = local_.data() + base;

		slot.kind = static_cast<Kind>(1 + random_() % 6);
		slot.size = random_() % 4 ? random_() % 512 : random_() % kSlot;
		slot.offset = random_() % (kSlot - slot.size);
		const ibv_sge sge = local_.sge(base + slot.offset, slot.size);
		const uint64_t at = base + slot.offset;
		requests_++;
		switch (slot.kind) {
		case Kind::kWrite:
		case Kind::kWriteImm:
			fill({local + slot.offset, slot.size}, random_());
			std::copy_n(local + slot.offset, slot.size, model + slot.offset);
			ep.send(i,
			        slot.kind == Kind::kWrite ? IBV_WR_RDMA_WRITE
			                                  : IBV_WR_RDMA_WRITE_WITH_IMM,
			        sge, remote_, at);
			break;
		case Kind::kRead:
			ep.send(i, IBV_WR_RDMA_READ, sge, remote_, at);
			break;
		case Kind::kSend:
			start_send(ep, i, local);
			break;
		case Kind::kAdd:
		case Kind::kSwap:
			start_atomic(ep, i, model);
			break;
		case Kind::kNone:
			break;
		}
	}

	void start_send(Endpoint &ep, size_t i, uint8_t *local)
	{
		const uint64_t header[2] = {random_(), slots_[i].size / 2};
		std::memcpy(local, header, sizeof(header));
		fill({local + kHeader, header[1]}, header[0]);
		ep.send(i, IBV_WR_SEND, local_.sge(i * kSlot, kHeader + header[1]));
	}

	void start_atomic(Endpoint &ep, size_t i, uint8_t *model)
	{
		Slot &slot = slots_[i];
		slot.offset = std::min(slot.offset, kSlot - 8) & ~size_t{7};
		const uint64_t operand = random_();
		std::memcpy(&slot.expected, model + slot.offset, 8);
		const ibv_sge sge = local_.sge(i * kSlot, 8);
		uint64_t now;
		if (slot.kind == Kind::kAdd) {
			now = slot.expected + operand;
			ep.fetch_add(i, sge, remote_, i * kSlot + slot.offset, operand);
		} else {
			/* Half of the swaps compare with what is not there. */
			const uint64_t compare = slot.expected + random_() % 2;
			now = compare == slot.expected ? operand : slot.expected;
			ep.cmp_swap(i, sge, remote_, i * kSlot + slot.offset, compare, operand);
		}
		std::memcpy(model + slot.offset, &now, 8);
	}

	std::string describe(const ibv_wc &wc) const
	{
		static constexpr const char *kNames[] = {
		        "none", "WRITE",         "WRITE with imm",  "READ",
		        "SEND", "fetch and add", "compare and swap"};
		const Slot &slot = slots_[wc.wr_id];
		return format("near request %lu, QP %u, slot %lu: %s of %zu at %zu: '%s'",
		              requests_, wc.qp_num, wc.wr_id,
		              kNames[static_cast<unsigned>(slot.kind)], slot.size, slot.offset,
		              ibv_wc_status_str(wc.status));
	}

	void finish(size_t i)
	{
		const Slot &slot = slots_[i];
		const uint8_t *local = local_.data() + i * kSlot,
		              *model = model_.data() + i * kSlot;
		if (slot.kind == Kind::kRead)
			check(!std::memcmp(local + slot.offset, model + slot.offset, slot.size),
			      "request %lu: READ brought other data", requests_);
		if (slot.kind == Kind::kAdd || slot.kind == Kind::kSwap)
			check(!std::memcmp(local, &slot.expected, 8),
			      "request %lu: an atomic brought another value", requests_);
	}

	void read_all()
	{
		for (size_t i = 0; i < slots_.size(); i++) {
			eps_[0]->send(i, IBV_WR_RDMA_READ, local_.sge(i * kSlot, kSlot), remote_,
			              i * kSlot);
			eps_[0]->expect_send(i);
		}
		check(!std::memcmp(local_.data(), model_.data(), model_.size()),
		      "the remote memory is not what was written");
	}

	std::vector<std::unique_ptr<Endpoint>> &eps_;
	const RemoteBuffer remote_;
	std::mt19937_64 random_;
	std::vector<Slot> slots_;
	Buffer local_;
	std::vector<uint8_t> model_;
	uint64_t requests_ = 0;
	size_t turn_ = 0; /* of QPs to be polled */
};

/* Gives RECVs and checks what SENDs bring until the requester is done. */
void respond(Session &s, std::vector<std::unique_ptr<Endpoint>> &eps, const Buffer &recvs)
{
	const auto post = [&](size_t q, uint64_t n) {
		eps[q]->recv(n, recvs.sge((q * kRecvs + n) * kSlot, kSlot));
	};
	for (size_t q = 0; q < eps.size(); q++)
		for (unsigned n = 0; n < kRecvs; n++)
			post(q, n);
	s.peer.barrier(1);
	for (Idling idling; !s.peer.readable(); idling.pause()) {
		for (size_t q = 0; q < eps.size(); q++) {
			ibv_wc wc;
			if (!eps[q]->poll_recv(wc))
				continue;
			idling.reset();
			check(wc.status == IBV_WC_SUCCESS, "a receive ended with '%s'",
			      ibv_wc_status_str(wc.status));
			if (wc.opcode == IBV_WC_RECV) {
				const uint8_t *p = recvs.data() + (q * kRecvs + wc.wr_id) * kSlot;
				uint64_t header[2];
				std::memcpy(header, p, sizeof(header));
				check(header[1] + kHeader == wc.byte_len, "length of a SEND");
				check_filled({p + kHeader, header[1]}, header[0], "SEND");
			}
			post(q, wc.wr_id);
		}
	}
}

void stress(Session &s)
{
	std::vector<std::unique_ptr<Endpoint>> eps;
	for (unsigned i = 0; i < s.qps; i++) {
		eps.push_back(std::make_unique<Endpoint>(s));
		eps.back()->connect({.timeout = static_cast<uint8_t>(s.timeout)});
	}
	const Buffer shared(s.device, s.active ? 8 : s.qps * kSlotsPerQp * kSlot);
	const Buffer recvs(s.device, s.active ? 8 : s.qps * kRecvs * kSlot);
	const RemoteBuffer remote = eps[0]->exchange(shared);
	if (s.active) {
		Requester requester(s, eps, remote);
		s.peer.barrier(1);
		requester.run(std::chrono::seconds(s.seconds),
		              std::chrono::microseconds(s.interval));
		std::printf("    %lu requests over %u QPs, seed %lu\n", requester.requests(), s.qps,
		            s.seed);
	} else {
		respond(s, eps, recvs);
	}
	s.peer.barrier(2);
}

constexpr Case kCases[] = {
        {"stress", "random requests of every kind, all data compared", stress},
};

} // namespace

std::span<const Case> stress_cases()
{
	return kCases;
}

} // namespace tern::guest
