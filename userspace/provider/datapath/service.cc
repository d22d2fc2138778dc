// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datapath/service.h"

namespace tern::provider {

using namespace tern::hw;

namespace {

constexpr OpSet kSendOnly{TERN_OP_SEND};
constexpr OpSet kUdOps{TERN_OP_SEND, TERN_OP_SEND_IMM};
constexpr OpSet kUcOps{TERN_OP_SEND, TERN_OP_SEND_IMM, TERN_OP_WRITE, TERN_OP_WRITE_IMM,
                       TERN_OP_BIND_MW};
constexpr OpSet kReliableOps{TERN_OP_SEND,      TERN_OP_SEND_IMM,     TERN_OP_WRITE,
                             TERN_OP_WRITE_IMM, TERN_OP_READ,         TERN_OP_CMP_SWAP,
                             TERN_OP_FETCH_ADD, TERN_OP_SEND_INV,     TERN_OP_LOCAL_INV,
                             TERN_OP_BIND_MW,   TERN_OP_ATOMIC_WRITE, TERN_OP_FLUSH};
constexpr OpSet kAtomicOps{TERN_OP_CMP_SWAP, TERN_OP_FETCH_ADD};
constexpr OpSet kWindowOps{TERN_OP_SEND_INV, TERN_OP_LOCAL_INV, TERN_OP_BIND_MW};

struct TypeOfService {
	ibv_qp_type type;
	Service service;
	uint32_t cap;
};

constexpr TypeOfService kTypes[] = {
        {IBV_QPT_RC, Service::kRc, TERN_CAP_RC},
        {IBV_QPT_UC, Service::kUc, TERN_CAP_UC},
        {IBV_QPT_UD, Service::kUd, TERN_CAP_UD},
        {IBV_QPT_XRC_SEND, Service::kXrcSend, TERN_CAP_XRC},
        {IBV_QPT_XRC_RECV, Service::kXrcRecv, TERN_CAP_XRC},
        {IBV_QPT_RAW_PACKET, Service::kRaw, TERN_CAP_RAW},
};

constexpr OpSet ops_of(Service service)
{
	switch (service) {
	case Service::kRc:
	case Service::kXrcSend:
		return kReliableOps;
	case Service::kUc:
		return kUcOps;
	case Service::kUd:
		return kUdOps;
	case Service::kRaw:
		return kSendOnly;
	default:
		return {};
	}
}

} // namespace

std::optional<Service> service_of(ibv_qp_type type, uint32_t caps)
{
	for (const TypeOfService &t : kTypes)
		if (t.type == type && caps & t.cap)
			return t.service;
	return std::nullopt;
}

OpSet send_ops_of(Service service, uint32_t caps)
{
	OpSet ops = ops_of(service);

	if (!(caps & TERN_CAP_ATOMIC))
		ops = ops.without(kAtomicOps);
	if (!(caps & TERN_CAP_MW))
		ops = ops.without(kWindowOps);
	if (!(caps & TERN_CAP_ATOMIC_WRITE))
		ops = ops.without(OpSet{TERN_OP_ATOMIC_WRITE});
	if (!(caps & TERN_CAP_FLUSH))
		ops = ops.without(OpSet{TERN_OP_FLUSH});
	return ops;
}

} // namespace tern::provider
