/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One end of a connection under random traffic: what it is going to post is planned ahead,
 * together with what all memory must hold in the end.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/area.h"
#include "tests/sim/node.h"
#include "tests/sim/rng.h"
#include "tests/sim/shared_inbox.h"
#include "tests/support/host.h"

namespace tern::sim {

struct Limits {
	unsigned ops = 30;
	uint32_t max_size = 8192;
};

class Endpoint {
public:
	using Fail = std::function<void(const std::string &)>;

	Endpoint(Node &node, Rng rng, uint32_t pd, const test::QpOptions &queues,
	         const Limits &limits, Area &counter, SharedInbox *shared, uint32_t xrcdn,
	         Fail fail);

	/** Connects both ways, and plans the traffic of both. */
	static void connect(Endpoint &a, Endpoint &b);

	/** Posts a little of what is planned. False: nothing could be posted. */
	bool act();
	void on_completion(const hw::tern_hw_cqe &cqe);
	/** All that was (or is to be) posted has completed. */
	bool finished() const;
	/** All memory is as it must be. */
	void verify() const;
	/** Takes all objects down. */
	void destroy();

	/** From now on this connection may fail. */
	void doom() { doomed_ = true; }
	/** The QP, or the card below it, is no more: nothing is expected. */
	void vanish() { gone_ = true; }
	void to_error();
	/** Deregisters some region; the connection is to be doomed. */
	void deregister_one();
	bool doomed() const { return doomed_; }
	bool gone() const { return gone_; }
	bool failed() const { return failed_; }
	unsigned completed() const { return completed_; }
	std::string describe() const;

	Node &node;
	std::unique_ptr<test::HostQp> qp;
	std::unique_ptr<test::HostQp> target; /* XRC: the receiving end, which qp is not */
	Endpoint *peer = nullptr;
	Area &counter; /* of the node: one number that all peers add to */
	std::vector<uint64_t> counted() const;

private:
	/** A message on its way to the peer's receive queue. */
	struct Message {
		uint8_t cqe_opcode = 0;
		bool has_imm = false;
		uint32_t imm = 0;
		uint32_t length = 0;
		std::vector<std::byte> data;
		bool has_key = false; /* imm is the key that it invalidates */
		bool ends_loan = false;
	};
	struct Op {
		test::SendRequest request;
		uint32_t length = 0;
		uint32_t blocks = 0;
		uint64_t flushed = 0; /* FLUSH: bytes of the peer's area */
	};
	struct Posted {
		uint32_t index = 0;
		uint32_t blocks = 0;
		uint8_t opcode = 0;
		uint32_t length = 0;
		bool signaled = false;
		uint64_t flushed = 0;
	};
	struct Receive {
		std::vector<Sge> sges;
		Message message; /* what will come into it */
	};

	/** Memory that the peer may write for a while: a window or a fast region, time and again.
	 */
	struct Loan {
		bool fast = false;
		uint32_t key = 0;
		unsigned left = 0; /* times */
		bool out = false;
		uint64_t offset = 0; /* of lent_ */
		uint32_t length = 0;
		uint64_t va = 0; /* of offset, for the peer */
	};

	/** Any of our QPs. */
	test::HostQp &receiver() { return target ? *target : *qp; }
	void set_up_loan(uint32_t pd);
	void lend();
	void lend_window();
	void lend_region();
	/** The key is good now: the peer uses it, and says when it is done. */
	void lent();
	void borrow(const Loan &loan);
	void end_loan(bool invalidated);
	bool take_down_loan();

	void plan();
	void plan_one();
	void plan_send(bool write, bool fenced);
	void plan_read();
	void plan_fenced();
	void plan_atomic();
	/** Complete @request, which is to change a word with @value; return its new value. */
	uint64_t plan_unmasked(test::SendRequest &request, uint64_t value);
	uint64_t plan_masked(test::SendRequest &request, uint64_t value);
	void plan_atomic_write();
	void plan_flush();
	/** A FLUSH has completed: what was written before it is there, @bytes of it. */
	void flushed(uint64_t bytes) const;
	void plan_count();
	void expect(Message message);
	void push(test::SendRequest request, uint32_t length);
	uint32_t random_length();
	/** @length bytes somewhere in @area, cut into up to @max pieces that may overlap. */
	std::vector<Sge> pieces(Area &area, uint32_t length, unsigned max);
	std::vector<std::byte> gather(const Area &area, const std::vector<Sge> &sges) const;
	static void scatter(Area &area, const std::vector<Sge> &sges,
	                    std::span<const std::byte> data);
	void on_send(const hw::tern_hw_cqe &cqe);
	void on_receive(const hw::tern_hw_cqe &cqe);
	void on_shared_receive(const hw::tern_hw_cqe &cqe);
	void check_message(const Message &message, const hw::tern_hw_cqe &cqe,
	                   std::span<const std::byte> data);
	bool receive_ok(const hw::tern_hw_cqe &cqe);
	void failure(const std::string &what) const;
	bool may_post(const Op &op) const;
	/** Segments that a WQE may have so that it fits into half of the ring. */
	uint64_t max_segs() const { return uint64_t{2} << qp->options.sq_log_size; }

	Rng rng_;
	Limits limits_;
	Fail fail_;
	uint32_t mtu_ = 1024;
	unsigned max_rd_atomic_ = 1;

	Area source_;  /* sent from; never changes */
	Area window_;  /* the peer reads it; never changes */
	Area target_;  /* the peer writes it */
	Area operand_; /* the peer's atomics work on it */
	Area sink_;    /* READs and atomics put their results here */
	Area fenced_;  /* read into, then sent from behind a fence */
	Area counts_;  /* results of adding to the peer's counter */
	Area inbox_;   /* receive buffers */
	Area flushed_; /* the peer writes it once, from its beginning on, and flushes that */
	Area lent_;    /* parts of it are lent to the peer */
	Loan loan_;

	std::deque<Op> plan_;
	SharedInbox *shared_;          /* null: a receive queue of its own */
	std::deque<Message> messages_; /* that will come into the shared one */
	std::deque<Receive> receives_planned_;
	std::deque<Posted> sends_;
	std::deque<Receive> receives_;
	uint32_t next_receive_ = 0; /* index of receives_.front() */
	uint32_t unsignaled_ = 0;   /* blocks posted since the last signaled one */
	uint32_t max_posted_ = 0;   /* WQEs of the receive queue */
	unsigned completed_ = 0;
	bool doomed_ = false;
	bool gone_ = false;
	bool failed_ = false; /* a send ended with an error */
	bool receive_failed_ = false;
};

} // namespace tern::sim
