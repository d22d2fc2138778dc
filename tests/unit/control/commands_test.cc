// SPDX-License-Identifier: GPL-2.0-or-later
/* Each admin command: what it does, and what it refuses. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

class Commands : public OneCard {
protected:
	void SetUp() override { set_up_card(); }

	using Spoil = std::function<void(tern_hw_aq_cmd &)>;
	tern_hw_aq_status with(tern_hw_aq_cmd c, const Spoil &spoil)
	{
		spoil(c);
		return driver_.status_of(c);
	}
	tern_hw_aq_cmd create_eq()
	{
		auto c = make_command(TERN_AQ_CREATE_EQ);
		c.create_eq.pages.iova = host_.memory.alloc(4096, 4096);
		c.create_eq.vector = 1;
		c.create_eq.log_size = 4;
		return c;
	}
	tern_hw_aq_cmd create_cq()
	{
		auto c = make_command(TERN_AQ_CREATE_CQ);
		c.create_cq.pages.iova = host_.memory.alloc(4096, 4096);
		c.create_cq.record = host_.memory.alloc(64);
		c.create_cq.eqn = eq_->number;
		c.create_cq.log_size = 4;
		return c;
	}
	tern_hw_aq_cmd create_mr()
	{
		auto c = make_command(TERN_AQ_CREATE_MR);
		c.create_mr.pages.iova = host_.memory.alloc(4096, 4096);
		c.create_mr.start = 0x1000;
		c.create_mr.length = 4096;
		c.create_mr.pdn = pd_;
		c.create_mr.access = kAllAccess;
		c.create_mr.variant = 0x42;
		return c;
	}
	tern_hw_aq_cmd create_qp()
	{
		auto c = make_command(TERN_AQ_CREATE_QP);
		c.create_qp.pages.iova = host_.memory.alloc(8192, 4096);
		c.create_qp.record = host_.memory.alloc(64);
		c.create_qp.rq_offset = 1024;
		c.create_qp.pdn = pd_;
		c.create_qp.send_cqn = cq_->number;
		c.create_qp.recv_cqn = cq_->number;
		c.create_qp.type = TERN_QPT_RC;
		c.create_qp.sq_log_size = 4;
		c.create_qp.rq_log_size = 4;
		c.create_qp.rq_log_stride = 5;
		return c;
	}
	tern_hw_aq_cmd set_eth()
	{
		auto c = make_command(TERN_AQ_SET_ETH);
		c.set_eth.mask = uint32_t{TERN_ETH_MAC | TERN_ETH_MTU | TERN_ETH_RX_MODE};
		c.set_eth.mtu = uint16_t{1500};
		return c;
	}
	tern_hw_aq_cmd modify_qp()
	{
		auto c = make_command(TERN_AQ_MODIFY_QP);
		c.modify_qp.qpn = id_of(create_qp());
		c.modify_qp.attr_mask = uint32_t{TERN_QP_STATE | TERN_QP_PKEY_INDEX | TERN_QP_PORT |
		                                 TERN_QP_ACCESS_FLAGS};
		c.modify_qp.attr.state = TERN_QPS_INIT;
		c.modify_qp.attr.port = 1;
		return c;
	}
	uint32_t id_of(const tern_hw_aq_cmd &c)
	{
		const auto result = driver_.command(c);
		EXPECT_EQ(result.status, TERN_AQ_OK);
		return result.created.id.get();
	}
};

TEST_F(Commands, UnknownOpcode)
{
	auto c = make_command(TERN_AQ_QUERY_DEVICE);
	c.opcode = uint16_t{0x77};
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_OPCODE);
	EXPECT_EQ(stat(TERN_STAT_AQ_ERRORS), 1u);
}

TEST_F(Commands, QueryDevice)
{
	const auto result = driver_.command(make_command(TERN_AQ_QUERY_DEVICE));
	EXPECT_EQ(result.status, TERN_AQ_OK);
	EXPECT_EQ(result.device.max_send_sge.get(), TERN_MAX_SEND_SGE);
	EXPECT_EQ(result.device.max_mtu.get(), 9000u);
	/* What the result does not use is zero, not what was on somebody's stack. */
	for (size_t i = sizeof(tern_hw_device_attr); i < sizeof(result.body); i++)
		EXPECT_EQ(result.body[i], 0);
}

TEST_F(Commands, ReservedFieldsOfAllCommands)
{
	const auto reserved = [](auto &c) { c.rsvd = 1u; };
	EXPECT_EQ(with(make_command(TERN_AQ_ALLOC_PD), reserved), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(create_eq(), [](auto &c) { c.create_eq.rsvd[2] = 1; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(create_eq(), [](auto &c) { c.create_eq.pages.rsvd[0] = 1; }),
	          TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(create_cq(), [](auto &c) { c.create_cq.rsvd[6] = 1; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(create_mr(), [](auto &c) { c.create_mr.rsvd = 1; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(create_qp(), [](auto &c) { c.create_qp.rsvd[0] = 1; }), TERN_AQ_BAD_FIELD);
	for (const auto opcode : {TERN_AQ_DESTROY_EQ, TERN_AQ_DEALLOC_PD, TERN_AQ_DESTROY_MR,
	                          TERN_AQ_DESTROY_CQ, TERN_AQ_QUERY_QP, TERN_AQ_DESTROY_QP})
		EXPECT_EQ(with(make_command(opcode), [](auto &c) { c.object.rsvd = 1u; }),
		          TERN_AQ_BAD_FIELD);
}

/* The field that is refused begins at the byte that was changed, or shortly before it. */
TEST_F(Commands, RefusedField)
{
	constexpr size_t kLongestField = sizeof(tern_hw_pages);
	const auto alloc_mw = [this] {
		auto c = make_command(TERN_AQ_ALLOC_MW);
		c.alloc_mw.pdn = pd_;
		c.alloc_mw.type = TERN_MW_TYPE_1;
		return c;
	};
	const tern_hw_aq_cmd commands[] = {create_eq(),
	                                   create_cq(),
	                                   create_mr(),
	                                   create_qp(),
	                                   set_eth(),
	                                   modify_qp(),
	                                   alloc_mw(),
	                                   make_command(TERN_AQ_SET_GID),
	                                   make_command(TERN_AQ_QUERY_STATS),
	                                   make_command(TERN_AQ_SET_CONGESTION)};
	for (const auto &good : commands) {
		unsigned refused = 0;
		for (size_t at = offsetof(tern_hw_aq_cmd, rsvd); at < sizeof(good); at++) {
			auto bad = good;
			std::as_writable_bytes(std::span(&bad, 1))[at] = std::byte{0xff};
			const auto result = driver_.command(bad);
			if (result.status != TERN_AQ_BAD_FIELD)
				continue;
			refused++;
			const size_t field = result.refused.field.get();
			EXPECT_TRUE(field <= at && at < field + kLongestField)
			        << "opcode " << good.opcode.get() << ": byte " << at << " changed, "
			        << field << " refused";
		}
		EXPECT_GE(refused, sizeof(good.rsvd)) << "opcode " << good.opcode.get();
	}
}

/* A value may be wrong because of another field: the one that is told is the one to look at. */
TEST_F(Commands, RefusedFieldOfACombination)
{
	auto c = create_qp();
	c.create_qp.rq_offset = 512; /* within the send queue */
	EXPECT_EQ(driver_.command(c).refused.field.get(),
	          offsetof(tern_hw_aq_cmd, create_qp.rq_offset));
	c = create_mr();
	c.create_mr.start = ~uint64_t{0};
	EXPECT_EQ(driver_.command(c).refused.field.get(),
	          offsetof(tern_hw_aq_cmd, create_mr.length));
	c = modify_qp();
	c.modify_qp.attr.access = 0x80;
	EXPECT_EQ(driver_.command(c).refused.field.get(),
	          offsetof(tern_hw_aq_cmd, modify_qp.attr.access));
}

TEST_F(Commands, ObjectsThatDoNotExist)
{
	for (const auto opcode : {TERN_AQ_DESTROY_EQ, TERN_AQ_DEALLOC_PD, TERN_AQ_DESTROY_MR,
	                          TERN_AQ_DESTROY_CQ, TERN_AQ_QUERY_QP, TERN_AQ_DESTROY_QP})
		for (const uint32_t id : {0u, 999u, UINT32_MAX})
			EXPECT_EQ(driver_.destroy(opcode, id), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(driver_.status_of(make_command(TERN_AQ_MODIFY_QP)), TERN_AQ_BAD_OBJECT);
}

TEST_F(Commands, CreateEq)
{
	EXPECT_EQ(with(create_eq(), [](auto &c) { c.create_eq.log_size = 0; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(create_eq(), [](auto &c) { c.create_eq.log_size = 17; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(create_eq(), [](auto &c) { c.create_eq.vector = 8u; }), TERN_AQ_BAD_FIELD);
	/* One for each vector. */
	EXPECT_EQ(with(create_eq(), [](auto &c) { c.create_eq.vector = 0u; }), TERN_AQ_BUSY);
	const uint32_t eq = id_of(create_eq());
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_EQ, eq), TERN_AQ_OK);
	EXPECT_EQ(driver_.status_of(create_eq()), TERN_AQ_OK);
	/* A CQ still reports to it. */
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_EQ, eq_->number), TERN_AQ_BUSY);
}

TEST_F(Commands, CreateCq)
{
	EXPECT_EQ(with(create_cq(), [](auto &c) { c.create_cq.log_size = 23; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(create_cq(), [](auto &c) { c.create_cq.record = uint64_t{32}; }),
	          TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(create_cq(), [](auto &c) { c.create_cq.db_page = 2048u; }),
	          TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(create_cq(), [](auto &c) { c.create_cq.eqn = 99u; }), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(with(create_cq(), [](auto &c) { c.create_cq.pages.levels = 5; }),
	          TERN_AQ_BAD_FIELD);
	const uint32_t cq = id_of(create_cq());
	auto qp = create_qp();
	qp.create_qp.recv_cqn = cq;
	const uint32_t qpn = id_of(qp);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_CQ, cq), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qpn), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_CQ, cq), TERN_AQ_OK);
}

TEST_F(Commands, CreateMr)
{
	EXPECT_EQ(with(create_mr(), [](auto &c) { c.create_mr.access = 0x80; }), TERN_AQ_BAD_FIELD);
	/* Peers may write where the owner may not: no (IBA 10.6.3.1). */
	EXPECT_EQ(with(create_mr(), [](auto &c) { c.create_mr.access = TERN_ACCESS_REMOTE_WRITE; }),
	          TERN_AQ_BAD_FIELD);
	EXPECT_EQ(
	        with(create_mr(), [](auto &c) { c.create_mr.access = TERN_ACCESS_REMOTE_ATOMIC; }),
	        TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(create_mr(), [](auto &c) { c.create_mr.length = 1ull << 47; }),
	          TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(create_mr(), [](auto &c) { c.create_mr.start = UINT64_MAX - 100; }),
	          TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(create_mr(), [](auto &c) { c.create_mr.pdn = 99u; }), TERN_AQ_BAD_OBJECT);
	/* One level of 4 KiB pages reaches 2 MiB. */
	const auto levels = [](uint64_t length) {
		return [=](auto &c) {
			c.create_mr.pages.levels = 1;
			c.create_mr.pages.page_shift = 12;
			c.create_mr.length = length;
		};
	};
	EXPECT_EQ(with(create_mr(), levels(2 << 20)), TERN_AQ_OK);
	EXPECT_EQ(with(create_mr(), levels((2 << 20) + 1)), TERN_AQ_BAD_FIELD);
	const uint32_t key = id_of(create_mr());
	EXPECT_EQ(key & 0xff, 0x42u);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, key ^ 1), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, key), TERN_AQ_OK);
}

TEST_F(Commands, CreateQp)
{
	const auto bad = [&](auto member, auto value) {
		return with(create_qp(), [=](auto &c) { c.create_qp.*member = value; });
	};
	EXPECT_EQ(bad(&tern_hw_create_qp::sq_log_size, 19), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_qp::sq_log_size, 255), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_qp::rq_log_size, 17), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_qp::rq_log_stride, 3), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_qp::rq_log_stride, 10), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_qp::rq_offset, 960u), TERN_AQ_BAD_FIELD); /* in the SQ */
	EXPECT_EQ(bad(&tern_hw_create_qp::rq_offset, 1040u), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_qp::record, uint64_t{8}), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_qp::flags, 2), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_qp::type, 5), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_qp::db_page, 5000u), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(bad(&tern_hw_create_qp::pdn, 99u), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(bad(&tern_hw_create_qp::send_cqn, 99u), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(bad(&tern_hw_create_qp::recv_cqn, 0u), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(driver_.status_of(create_qp()), TERN_AQ_OK);
}

/* The Ethernet function is the driver's, and there is one. */
TEST_F(Commands, CreateEthernetQp)
{
	auto c = create_qp();
	c.create_qp.type = TERN_QPT_ETH;
	c.create_qp.db_page = 1u;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	c.create_qp.db_page = 0u;
	const uint32_t qpn = id_of(c);
	for (unsigned i = 1; i < TERN_MAX_ETH_QPS; i++)
		EXPECT_NE(id_of(c), qpn);
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qpn), TERN_AQ_OK);
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
}

TEST_F(Commands, DeallocPd)
{
	const uint32_t pd = driver_.alloc_pd();
	auto mr = create_mr();
	mr.create_mr.pdn = pd;
	auto qp = create_qp();
	qp.create_qp.pdn = pd;
	const uint32_t key = id_of(mr);
	const uint32_t qpn = id_of(qp);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, pd), TERN_AQ_BUSY);
	driver_.destroy(TERN_AQ_DESTROY_MR, key);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, pd), TERN_AQ_BUSY);
	driver_.destroy(TERN_AQ_DESTROY_QP, qpn);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, pd), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, pd), TERN_AQ_BAD_OBJECT);
}

/* The memory that a refused CREATE_QP names as its record may belong to another queue. */
TEST_F(Commands, RefusedCreateQpWritesNothing)
{
	auto c = create_qp();
	c.create_qp.type = TERN_QPT_GSI;
	ASSERT_EQ(driver_.status_of(c), TERN_AQ_OK);
	const Iova event = c.create_qp.record.get() + offsetof(tern_hw_qp_record, sq_event);
	host_.memory.put(event, Le<uint32_t>(7));
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BUSY);
	EXPECT_EQ(host_.memory.get<Le<uint32_t>>(event).get(), 7u);
	/* One that is executed does. */
	c.create_qp.type = TERN_QPT_RC;
	ASSERT_EQ(driver_.status_of(c), TERN_AQ_OK);
	EXPECT_EQ(host_.memory.get<Le<uint32_t>>(event).get(), 0u);
}

TEST_F(Commands, SetGid)
{
	auto c = make_command(TERN_AQ_SET_GID);
	c.set_gid.type = TERN_GID_ROCE_V2;
	c.set_gid.vlan = uint16_t{0xffff};
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	EXPECT_EQ(with(c, [](auto &x) { x.set_gid.index = 128u; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(c, [](auto &x) { x.set_gid.type = 3; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(c, [](auto &x) { x.set_gid.vlan = uint16_t{4096}; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(c, [](auto &x) { x.set_gid.rsvd0 = 1; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(c, [](auto &x) { x.set_gid.mac[0] = 2; }), TERN_AQ_OK);
	EXPECT_EQ(with(c, [](auto &x) { x.set_gid.mac[0] = 1; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(c, [](auto &x) { x.set_gid.rsvd1[1] = 1; }), TERN_AQ_BAD_FIELD);
}

TEST_F(Commands, SetEth)
{
	auto c = make_command(TERN_AQ_SET_ETH);
	c.set_eth.mask = TERN_ETH_MAC | TERN_ETH_MTU | TERN_ETH_RX_MODE;
	c.set_eth.mtu = uint16_t{9000};
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	EXPECT_EQ(with(c, [](auto &x) { x.set_eth.mask = 8u; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(c, [](auto &x) { x.set_eth.mtu = uint16_t{67}; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(c, [](auto &x) { x.set_eth.mtu = uint16_t{9001}; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(c, [](auto &x) { x.set_eth.mac[0] = 1; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with(c, [](auto &x) { x.set_eth.rx_mode = 4u; }), TERN_AQ_BAD_FIELD);
}

TEST_F(Commands, QueryStats)
{
	auto c = make_command(TERN_AQ_QUERY_STATS);
	c.query_stats.iova = host_.memory.alloc(4096);
	c.query_stats.count = TERN_STAT_COUNT;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	EXPECT_EQ(with(c, [](auto &x) { x.query_stats.count = TERN_STAT_COUNT + 1; }),
	          TERN_AQ_BAD_FIELD);
	EXPECT_EQ(stat(TERN_STAT_DMA_FAULTS), 0u);
	EXPECT_EQ(with(c, [](auto &x) { x.query_stats.iova = 1ull << 60; }), TERN_AQ_DMA_FAULT);
	EXPECT_EQ(stat(TERN_STAT_DMA_FAULTS), 1u);
}

} // namespace
} // namespace tern::test
