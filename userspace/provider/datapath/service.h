// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstdint>
#include <optional>

#include <infiniband/verbs.h>

#include "tern/tern_hw.h"

namespace tern::provider {

/** The transport services of QPs. */
enum class Service : uint8_t {
	kRc,
	kUc,
	kUd,
	kXrcSend,
	kXrcRecv, /* the target: has no queues */
	kRaw,
	kRss, /* distributes received frames to WQs: has no queues */
};

/** The service of QPs of @type if a card with @caps (TERN_CAP_*) supports it. */
std::optional<Service> service_of(ibv_qp_type type, uint32_t caps);

/** A set of enum tern_hw_wqe_op. */
class OpSet {
public:
	constexpr OpSet() = default;
	template <class... Op>
	constexpr explicit OpSet(Op... ops) : bits_((0u | ... | (1u << ops)))
	{
	}

	constexpr bool has(hw::tern_hw_wqe_op op) const { return bits_ >> op & 1; }
	constexpr OpSet without(OpSet others) const
	{
		OpSet rest;
		rest.bits_ = bits_ & ~others.bits_;
		return rest;
	}

private:
	uint32_t bits_ = 0;
};

/** The operations that a QP of @service supports on a card with @caps. */
OpSet send_ops_of(Service service, uint32_t caps);

} // namespace tern::provider
