// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random requests over several QPs. The other side's memory is cut into slots; the requester
 * keeps a copy of what each must hold, has one request per slot under way, and compares. It counts
 * the requests of each QP that consume a RECV, and each of them carries its count, so that the
 * responder finds one that is lost, repeated or out of order.
 */
#include <algorithm>
#include <arpa/inet.h>
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

/** What a SEND begins with. */
struct Header {
	uint64_t seed; /* of what follows */
	uint64_t size; /* of what follows */
	uint64_t count;
};

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
	        : eps_(eps), remote_(remote), random_(s.seed), counts_(eps.size()),
	          slots_(eps.size() * kSlotsPerQp), local_(s.device, slots_.size() * kSlot),
	          model_(slots_.size() * kSlot)
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
	/** How many requests of each QP have consumed a RECV. */
	const std::vector<uint64_t> &counts() const { return counts_; }

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
			if (slot.kind == Kind::kWrite)
				ep.send(i, IBV_WR_RDMA_WRITE, sge, remote_, at);
			else
				ep.send(i, IBV_WR_RDMA_WRITE_WITH_IMM, sge, remote_, at,
				        IBV_SEND_SIGNALED, static_cast<uint32_t>(next_count(i)));
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

	uint64_t next_count(size_t i) { return counts_[i % eps_.size()]++; }

	void start_send(Endpoint &ep, size_t i, uint8_t *local)
	{
		const Header header{random_(), slots_[i].size / 2, next_count(i)};
		std::memcpy(local, &header, sizeof(header));
		fill({local + sizeof(header), header.size}, header.seed);
		ep.send(i, IBV_WR_SEND, local_.sge(i * kSlot, sizeof(header) + header.size));
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
	std::vector<uint64_t> counts_; /* of each QP */
	std::vector<Slot> slots_;
	Buffer local_;
	std::vector<uint8_t> model_;
	uint64_t requests_ = 0;
	size_t turn_ = 0; /* of QPs to be polled */
};

/** Gives RECVs, and checks the completions of them and what SENDs bring. */
class Responder {
public:
	Responder(std::vector<std::unique_ptr<Endpoint>> &eps, const Buffer &recvs)
	        : eps_(eps), recvs_(recvs), counts_(eps.size())
	{
		for (size_t q = 0; q < eps.size(); q++)
			for (unsigned n = 0; n < kRecvs; n++)
				post(q, n);
	}

	/** Polls each QP once. Returns whether a completion was there. */
	bool poll()
	{
		bool found = false;
		for (size_t q = 0; q < eps_.size(); q++) {
			ibv_wc wc;
			if (!eps_[q]->poll_recv(wc))
				continue;
			found = true;
			finish(q, wc);
			post(q, wc.wr_id);
		}
		return found;
	}

	/** How many RECVs of each QP are completed. */
	const std::vector<uint64_t> &counts() const { return counts_; }

private:
	void post(size_t q, uint64_t n) { eps_[q]->recv(n, recvs_.sge(at(q, n), kSlot)); }

	void finish(size_t q, const ibv_wc &wc)
	{
		const uint64_t count = counts_[q]++;
		check(wc.status == IBV_WC_SUCCESS, "a receive ended with '%s'",
		      ibv_wc_status_str(wc.status));
		/* Each QP has a receive queue of its own, whose RECVs are consumed in order. */
		check(wc.wr_id == count % kRecvs,
		      "QP %zu: completion %lu is that of RECV %lu, not %lu", q, count, wc.wr_id,
		      count % kRecvs);
		if (wc.opcode == IBV_WC_RECV)
			finish_send(q, wc, count);
		else
			finish_write(q, wc, count);
	}

	void finish_send(size_t q, const ibv_wc &wc, uint64_t count) const
	{
		const uint8_t *p = recvs_.data() + at(q, wc.wr_id);
		Header header;
		std::memcpy(&header, p, sizeof(header));
		check(header.size + sizeof(header) == wc.byte_len, "length of a SEND");
		check(header.count == count, "QP %zu: SEND %lu has come instead of %lu", q,
		      header.count, count);
		check_filled({p + sizeof(header), header.size}, header.seed, "SEND");
	}

	static void finish_write(size_t q, const ibv_wc &wc, uint64_t count)
	{
		check(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.wc_flags & IBV_WC_WITH_IMM,
		      "QP %zu: a receive completed with opcode %d and flags %#x", q,
		      static_cast<int>(wc.opcode), static_cast<unsigned>(wc.wc_flags));
		const uint32_t imm = ntohl(wc.imm_data);
		check(imm == static_cast<uint32_t>(count),
		      "QP %zu: immediate data %u has come instead of %lu", q, imm, count);
	}

	static size_t at(size_t q, uint64_t n) { return (q * kRecvs + n) * kSlot; }

	std::vector<std::unique_ptr<Endpoint>> &eps_;
	const Buffer &recvs_;
	std::vector<uint64_t> counts_; /* of each QP */
};

/* Receives until the requester is done, and then all that it has sent and no more. */
void respond(Session &s, std::vector<std::unique_ptr<Endpoint>> &eps, const Buffer &recvs)
{
	Responder responder(eps, recvs);
	s.peer.barrier(1);
	for (Idling idling; !s.peer.readable(); idling.pause())
		if (responder.poll())
			idling.reset();
	std::vector<uint64_t> sent(eps.size());
	for (uint64_t &count : sent)
		count = s.peer.receive<uint64_t>();
	eventually([&] { return !responder.poll() && responder.counts() == sent; });
	for (size_t q = 0; q < eps.size(); q++) {
		const uint64_t received = responder.counts()[q];
		check(received == sent[q], "QP %zu: %lu messages sent, %lu received", q, sent[q],
		      received);
		eps[q]->expect_silence();
		s.peer.send(received);
	}
}

/* Tells the responder how many messages it must have received, and hears how many it has. */
void compare_counts(Session &s, const std::vector<uint64_t> &counts)
{
	for (const uint64_t count : counts)
		s.peer.send(count);
	for (const uint64_t count : counts) {
		const auto received = s.peer.receive<uint64_t>();
		check(received == count, "%lu messages sent, %lu received", count, received);
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
		compare_counts(s, requester.counts());
		std::printf("    %lu requests over %u QPs, seed %lu\n", requester.requests(), s.qps,
		            s.seed);
	} else {
		respond(s, eps, recvs);
	}
	s.peer.barrier(2);
}

constexpr Case kCases[] = {
        {"stress", "random requests of every kind, all data and counts compared", stress},
};

} // namespace

std::span<const Case> stress_cases()
{
	return kCases;
}

} // namespace tern::guest
