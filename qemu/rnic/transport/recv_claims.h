/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "qemu/rnic/formats/payload.h"
#include "qemu/rnic/memory/region.h"
#include "qemu/rnic/queues/recv_queue.h"
#include "qemu/rnic/transport/qp_config.h"
#include "tern/tern_hw.h"

namespace tern {

struct DataPath;
class PageWaits;
class TagList;

/** The result of claiming a receive WQE, or of placing data in its buffers. */
enum class RecvResult : uint8_t {
	Done,
	Empty,       /* no WQE is posted */
	QueueFailed, /* the queue cannot be used; the QP must fail */
	NeedPages,
	InvalidWqe,
	TooLong,   /* for the buffers, or for a message */
	BadBuffer, /* the key does not allow the access, or the memory cannot be written */
};

/** The status with which @result ends the claimed WQE; TERN_WC_SUCCESS if it does not. */
hw::tern_hw_cqe_status status_of(RecvResult result);

/** Additional CQE fields of an SRQ with tag matching. */
struct TagReport {
	uint8_t opcode = hw::TERN_CQE_RECV; /* enum tern_hw_cqe_op */
	uint8_t flags = 0;                  /* TERN_CQE_TAG_* */
	uint64_t tag = 0;
	uint32_t app_ctx = 0;
	hw::tern_hw_cqe_status status = hw::TERN_WC_SUCCESS; /* if the message succeeds */
};

/**
 * Where the messages of a QP go: each claims a WQE of the own receive queue or of an SRQ, or an
 * entry of the SRQ's tag list, places its packets in the buffers, and ends the claim. At most one
 * is claimed at a time.
 */
class RecvClaims {
public:
	RecvClaims(DataPath &data, const QpConfig &config, const PageWaits &page_waits,
	           RecvQueue rq)
	        : data_(data), config_(config), page_waits_(page_waits), rq_(std::move(rq))
	{
	}

	/** Claims the next WQE, unless one is claimed already, from SRQ @srqn; 0: from the own
	 * receive queue. */
	RecvResult claim(uint32_t srqn);
	/** As above, from the SRQ or receive queue that the QP was created with. */
	RecvResult claim() { return claim(config_.srqn); }
	bool claimed() const { return claim_.has_value(); }
	/** Copies @data to the buffers of the claimed WQE, from byte @offset on. */
	RecvResult place(uint64_t offset, const Payload &data);
	/** As above, after a place() of the same packet. */
	RecvResult place_more(uint64_t offset, const Payload &data);
	/** Ends the claim: fills in the fields of @cqe that say what was claimed. Returns the
	 * number of the CQ. */
	uint32_t end(hw::tern_hw_cqe &cqe);
	/** WQEs available to messages, including the claimed one; none if the queue is shared. */
	std::optional<uint32_t> credits();
	/** The protection domain of the buffers. */
	Memory::Domain domain(uint32_t srqn) const;

	/** Whether the responder's side waits for pages of the claimed WQE's buffers. */
	bool needs_pages() const { return claim_ && claim_->needs_pages; }
	/** The page that the responder's side has waited for is present. */
	void resumed();

	/** The tag list of the SRQ; null if it has none or has failed. */
	TagList *tags() const;
	/** Claims entry @entry of the tag list for a message that has matched it. @header: bytes at
	 * the beginning of the message that are not for the buffer. */
	void claim_entry(uint32_t entry, const TagReport &report, size_t header);
	bool entry_claimed() const
	{
		return claim_ && claim_->report.opcode == hw::TERN_CQE_TAG_RECV;
	}
	/** Sets the additional CQE fields of the claimed WQE. */
	void report(const TagReport &report) { claim_->report = report; }
	size_t header() const { return claim_->header; }
	/** As end(), for an entry that is not claimed. With TERN_CQE_TAG_DATA the entry is
	 * released. */
	uint32_t end_entry(uint32_t entry, const TagReport &report, hw::tern_hw_cqe &cqe) const;

	/** SRQ @srqn is being destroyed: drops a claimed WQE of it. */
	void forget_srq(uint32_t srqn);
	/** Drops the claim and the posted WQEs. */
	void reset();
	/** The own receive queue. */
	const RecvQueue &queue() const { return rq_; }

private:
	/** A receive WQE, or an entry of the tag list, that a message has claimed. */
	struct Claim {
		uint32_t srqn; /* 0: own receive queue */
		uint32_t index;
		bool needs_pages = false;
		TagReport report{};
		size_t header = 0;
	};

	/** Reads the claimed WQE into scratch_recv. */
	RecvResult load();
	uint32_t end(const Claim &claim, hw::tern_hw_cqe &cqe) const;

	DataPath &data_;
	const QpConfig &config_;
	const PageWaits &page_waits_;
	RecvQueue rq_;
	std::optional<Claim> claim_;
};

} // namespace tern
