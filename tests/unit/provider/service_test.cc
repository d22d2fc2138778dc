// SPDX-License-Identifier: GPL-2.0-or-later
#include "datapath/service.h"

#include <gtest/gtest.h>

namespace tern::provider::test {

using namespace tern::hw;

constexpr uint32_t kAll = ~0u;

TEST(Service, ATypeNeedsItsCapability)
{
	const struct {
		ibv_qp_type type;
		Service service;
		uint32_t cap;
	} cases[] = {
	        {IBV_QPT_RC, Service::kRc, TERN_CAP_RC},
	        {IBV_QPT_UC, Service::kUc, TERN_CAP_UC},
	        {IBV_QPT_UD, Service::kUd, TERN_CAP_UD},
	        {IBV_QPT_XRC_SEND, Service::kXrcSend, TERN_CAP_XRC},
	        {IBV_QPT_XRC_RECV, Service::kXrcRecv, TERN_CAP_XRC},
	        {IBV_QPT_RAW_PACKET, Service::kRaw, TERN_CAP_RAW},
	};
	for (const auto &c : cases) {
		EXPECT_EQ(service_of(c.type, c.cap), c.service);
		EXPECT_EQ(service_of(c.type, kAll & ~c.cap), std::nullopt);
	}
	EXPECT_EQ(service_of(IBV_QPT_DRIVER, kAll), std::nullopt);
}

TEST(Service, WhatEachCanPost)
{
	const auto has = [](Service service, tern_hw_wqe_op op, uint32_t caps = kAll) {
		return send_ops_of(service, caps).has(op);
	};
	for (const auto reliable : {Service::kRc, Service::kXrcSend})
		for (unsigned op = TERN_OP_SEND; op <= TERN_OP_BIND_MW; op++)
			EXPECT_TRUE(has(reliable, static_cast<tern_hw_wqe_op>(op)));
	for (unsigned op = TERN_OP_SEND; op <= TERN_OP_REG_MR; op++) {
		const auto o = static_cast<tern_hw_wqe_op>(op);
		const bool bind = op == TERN_OP_BIND_MW;
		EXPECT_EQ(has(Service::kUc, o), op <= TERN_OP_WRITE_IMM || bind);
		EXPECT_EQ(has(Service::kUd, o), op <= TERN_OP_SEND_IMM);
		EXPECT_EQ(has(Service::kRaw, o), op == TERN_OP_SEND);
		EXPECT_FALSE(has(Service::kXrcRecv, o));
	}
	EXPECT_FALSE(has(Service::kRc, TERN_OP_REG_MR)) << "the kernel's";
}

TEST(Service, OperationsNeedTheirCapability)
{
	const OpSet no_atomics = send_ops_of(Service::kRc, kAll & ~TERN_CAP_ATOMIC);
	EXPECT_FALSE(no_atomics.has(TERN_OP_CMP_SWAP));
	EXPECT_FALSE(no_atomics.has(TERN_OP_FETCH_ADD));
	EXPECT_TRUE(no_atomics.has(TERN_OP_ATOMIC_WRITE));
	EXPECT_FALSE(
	        send_ops_of(Service::kRc, kAll & ~TERN_CAP_ATOMIC_WRITE).has(TERN_OP_ATOMIC_WRITE));
	EXPECT_TRUE(send_ops_of(Service::kXrcSend, kAll).has(TERN_OP_ATOMIC_WRITE));
	EXPECT_FALSE(send_ops_of(Service::kUc, kAll).has(TERN_OP_ATOMIC_WRITE));
	EXPECT_FALSE(send_ops_of(Service::kRc, kAll & ~TERN_CAP_FLUSH).has(TERN_OP_FLUSH));
	EXPECT_TRUE(send_ops_of(Service::kXrcSend, kAll).has(TERN_OP_FLUSH));
	EXPECT_FALSE(send_ops_of(Service::kUc, kAll).has(TERN_OP_FLUSH));
	EXPECT_TRUE(no_atomics.has(TERN_OP_SEND_INV));
	const OpSet no_windows = send_ops_of(Service::kRc, kAll & ~TERN_CAP_MW);
	for (const auto op : {TERN_OP_SEND_INV, TERN_OP_LOCAL_INV, TERN_OP_BIND_MW})
		EXPECT_FALSE(no_windows.has(op));
	EXPECT_TRUE(no_windows.has(TERN_OP_CMP_SWAP));
}

} // namespace tern::provider::test
