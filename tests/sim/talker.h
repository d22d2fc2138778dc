/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/node.h"
#include "tests/sim/rng.h"
#include "tests/support/host.h"

namespace tern::sim {

/** What may happen to messages in one run. */
struct Conditions {
	bool perfect = false;    /* the wire is good and all have receive WQEs: nothing is lost */
	bool duplicates = false; /* frames may arrive twice */
	bool corrupt = false;    /* what no checksum protects may be wrong */
	unsigned messages = 40;  /* of each talker */
};

/**
 * A QP of an unreliable service, which sends numbered messages and takes those of others. What a
 * message holds follows from its number, so any that arrives can be judged.
 */
class Talker {
public:
	using Fail = std::function<void(const std::string &)>;

	Talker(Node &node, Rng rng, uint32_t pd, const test::QpOptions &options,
	       const Conditions &conditions, uint32_t buffer_size, Fail fail);
	virtual ~Talker() = default;

	/** Posts a little of what is left. */
	void act();
	void on_completion(const hw::tern_hw_cqe &cqe);
	/** All is sent. */
	bool finished() const { return next_ == conditions_.messages && posted_.empty(); }
	/** Once the last frame has arrived: nothing is missing that cannot be. */
	virtual void verify() = 0;

	Node &node;
	std::unique_ptr<test::HostQp> qp;

protected:
	/** Message @n as a work request; a bad one ends with an error. */
	virtual test::SendRequest request(unsigned n) = 0;
	virtual bool is_bad(unsigned n) const = 0;
	/** A message arrived in @data, of which only @cqe tells the length. */
	virtual void arrived(const hw::tern_hw_cqe &cqe, const std::vector<std::byte> &data) = 0;

	/** @length bytes that only message @n has, the first of which tell its number. */
	std::vector<std::byte> content(unsigned n, uint32_t length) const;
	/** Puts @data into the memory of message @n, and cuts that into pieces. */
	std::vector<Sge> source(unsigned n, std::span<const std::byte> data);
	/** Whether @n went to the wire. */
	bool was_sent(unsigned n) const { return sent_.contains(n); }
	void failure(const std::string &what) const;
	void expect(bool ok, const char *what) const
	{
		if (!ok)
			failure(what);
	}
	void post_recv();

	Rng rng_;
	Conditions conditions_;
	uint32_t buffer_size_;

private:
	struct Posted {
		unsigned n;
		uint32_t index;
		uint32_t blocks;
	};

	void post(unsigned n);
	void on_send(const hw::tern_hw_cqe &cqe);
	void end_front(hw::tern_hw_cqe_status status);

	Fail fail_;
	uint64_t seed_;
	test::HostMr source_; /* a buffer for each message */
	test::HostMr inbox_;  /* a buffer for each receive WQE */
	uint32_t entries_;    /* of the receive queue */
	unsigned next_ = 0;   /* message to post */
	std::deque<Posted> posted_;
	std::set<unsigned> sent_;
	bool send_error_ = false; /* in SQE until all that is posted has been flushed */
};

} // namespace tern::sim
