// SPDX-License-Identifier: GPL-2.0-or-later
/* WQs, their tables, and QPs that spread frames over them. */
#include <set>

#include "qemu/rnic/formats/headers.h"
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;
using Frame = std::vector<std::byte>;

constexpr unsigned kLogSize = 2;
constexpr unsigned kStride = 16; /* one data segment */

/** A WQ of the host. */
struct HostWq {
	uint32_t number = 0;
	Iova ring = 0;
	Iova record = 0;
	uint32_t pi = 0;
};

class RssTest : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		for (auto &wq : wqs_)
			wq = make_wq();
	}
	tern_hw_aq_cmd create_wq()
	{
		auto c = make_command(TERN_AQ_CREATE_WQ);
		c.create_wq.pages.iova = host_.memory.alloc(kStride << kLogSize, 4096);
		c.create_wq.record = host_.memory.alloc(64);
		c.create_wq.pdn = pd_;
		c.create_wq.cqn = cq_->number;
		c.create_wq.log_size = kLogSize;
		c.create_wq.log_stride = 4;
		return c;
	}
	HostWq make_wq()
	{
		const auto c = create_wq();
		return {id_of(c), c.create_wq.pages.iova.get(), c.create_wq.record.get()};
	}
	void post(HostWq &wq, const Sge &sge)
	{
		tern_hw_data_seg seg{};
		seg.addr = sge.addr;
		seg.length = sge.length;
		seg.lkey = sge.lkey;
		host_.memory.put(wq.ring + wq.pi++ % (1u << kLogSize) * kStride, seg);
		host_.memory.put(wq.record, Le<uint32_t>(wq.pi));
	}
	tern_hw_aq_status enter(uint32_t wqn, uint8_t state)
	{
		auto c = make_command(TERN_AQ_MODIFY_WQ);
		c.modify_wq.wqn = wqn;
		c.modify_wq.state = state;
		return driver_.status_of(c);
	}
	tern_hw_aq_cmd create_table(const std::vector<uint32_t> &wqns, uint8_t log_size)
	{
		auto c = make_command(TERN_AQ_CREATE_WQ_TABLE);
		const Iova at = host_.memory.alloc(wqns.size() * 4);
		for (size_t i = 0; i < wqns.size(); i++)
			host_.memory.put(at + i * 4, Le<uint32_t>(wqns[i]));
		c.create_wq_table.iova = at;
		c.create_wq_table.log_size = log_size;
		return c;
	}
	tern_hw_aq_cmd create_qp(uint32_t table, uint32_t fields)
	{
		auto c = make_command(TERN_AQ_CREATE_RSS_QP);
		c.create_rss_qp.pdn = pd_;
		c.create_rss_qp.table = table;
		c.create_rss_qp.hash_fields = fields;
		for (unsigned i = 0; i < TERN_HASH_KEY_SIZE; i++)
			c.create_rss_qp.key[i] = static_cast<uint8_t>(0x6d + i * 37);
		return c;
	}
	tern_hw_aq_cmd create_flow(uint32_t qpn)
	{
		auto c = make_command(TERN_AQ_CREATE_FLOW);
		c.create_flow.qpn = qpn;
		return c;
	}
	uint32_t id_of(const tern_hw_aq_cmd &c)
	{
		const auto result = driver_.command(c);
		EXPECT_EQ(result.status, TERN_AQ_OK);
		return result.created.id.get();
	}
	/** All WQs are ready and have WQEs, and a flow gives all frames to the QP over them. */
	void set_up_rss(uint32_t fields = TERN_HASH_SRC_IPV4)
	{
		for (auto &wq : wqs_) {
			EXPECT_EQ(enter(wq.number, TERN_WQS_RDY), TERN_AQ_OK);
			for (unsigned i = 0; i < 1u << kLogSize; i++)
				post(wq, mr_->sge(0x10000, 2048));
		}
		table_ = id_of(create_table(
		        {wqs_[0].number, wqs_[1].number, wqs_[2].number, wqs_[3].number}, 2));
		rss_ = id_of(create_qp(table_, fields));
		flow_ = id_of(create_flow(rss_));
	}
	static Frame frame(uint8_t source)
	{
		Frame frame(60);
		const headers::Ethernet eth{kCardMac, kPeerMac, headers::kEtherIpv4};
		headers::Ipv4 ip{};
		ip.version_ihl = headers::kIpv4NoOptions;
		ip.protocol = 17;
		ip.source = {10, 0, 0, source};
		std::memcpy(frame.data(), &eth, sizeof(eth));
		std::memcpy(frame.data() + sizeof(eth), &ip, sizeof(ip));
		return frame;
	}
	/** A fragment of a UDP datagram; in that of offset 0 the source port follows the header. */
	static Frame fragment(uint16_t field, uint16_t source_port)
	{
		Frame fragment = frame(2);
		const Be<uint16_t> fragment_be(field), port_be(source_port);
		const size_t ip = sizeof(headers::Ethernet);
		std::memcpy(fragment.data() + ip + offsetof(headers::Ipv4, fragment), &fragment_be,
		            sizeof(fragment_be));
		std::memcpy(fragment.data() + ip + sizeof(headers::Ipv4), &port_be,
		            sizeof(port_be));
		return fragment;
	}
	std::optional<tern_hw_cqe> receive(const Frame &frame)
	{
		card_.receive(frame);
		run();
		return cq_->poll();
	}

	HostWq wqs_[4];
	uint32_t table_ = 0;
	uint32_t rss_ = 0;
	uint32_t flow_ = 0;
};

/* A frame goes where others of its flow went, and others go elsewhere. */
TEST_F(RssTest, Spreads)
{
	set_up_rss();
	std::array<unsigned, 4> count{};
	for (unsigned source = 0; source < 64; source++) {
		const Frame in = frame(static_cast<uint8_t>(source));
		uint32_t first = 0;
		for (int again = 0; again < 2; again++) {
			const auto cqe = receive(in);
			ASSERT_TRUE(cqe);
			EXPECT_EQ(cqe->status, TERN_WC_SUCCESS);
			EXPECT_EQ(cqe->opcode, TERN_CQE_RECV);
			EXPECT_EQ(cqe->flags, TERN_CQE_WQ);
			EXPECT_EQ(cqe->byte_len.get(), in.size());
			EXPECT_EQ(mr_->read(0x10000, in.size()), in);
			EXPECT_EQ(again ? first : cqe->qpn.get(), cqe->qpn.get());
			first = cqe->qpn.get();
			for (size_t i = 0; i < 4; i++)
				if (wqs_[i].number == first) {
					EXPECT_EQ(cqe->wqe_index.get(), count[i]++);
					post(wqs_[i], mr_->sge(0x10000, 2048));
				}
		}
	}
	for (const unsigned n : count)
		EXPECT_GT(n, 8u);
	EXPECT_EQ(stat(TERN_STAT_RAW_RX_FRAMES), 128u);
}

/* Only the first fragment of a datagram has ports, so the ports of none count. */
TEST_F(RssTest, FragmentsStayTogether)
{
	set_up_rss(TERN_HASH_SRC_IPV4 | TERN_HASH_SRC_PORT_UDP);
	std::set<uint32_t> whole, fragments;
	const auto wq_of = [&](const Frame &frame) {
		const auto cqe = receive(frame);
		const uint32_t number = cqe ? cqe->qpn.get() : 0;
		for (auto &wq : wqs_)
			if (wq.number == number)
				post(wq, mr_->sge(0x10000, 2048));
		return number;
	};
	for (uint16_t port = 1; port < 64; port++) {
		whole.insert(wq_of(fragment(0, port)));
		fragments.insert(wq_of(fragment(headers::kIpv4MoreFragments, port)));
		fragments.insert(wq_of(fragment(headers::kIpv4MoreFragments | 5, port)));
		fragments.insert(wq_of(fragment(9, port)));
	}
	EXPECT_EQ(whole.size(), 4u);
	EXPECT_EQ(fragments.size(), 1u);
}

TEST_F(RssTest, NothingToHashGoesToTheFirst)
{
	set_up_rss(0);
	for (uint8_t source = 0; source < 4; source++)
		EXPECT_EQ(receive(frame(source))->qpn.get(), wqs_[0].number);
	EXPECT_FALSE(receive(frame(9)));
	EXPECT_EQ(stat(TERN_STAT_RAW_RX_NO_BUFFER), 1u);
}

TEST_F(RssTest, WqStates)
{
	const uint32_t wqn = wqs_[0].number;
	EXPECT_EQ(enter(wqn, 3), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(enter(999, TERN_WQS_RDY), TERN_AQ_BAD_OBJECT);
	set_up_rss(0);
	EXPECT_EQ(enter(wqn, TERN_WQS_RDY), TERN_AQ_OK) << "again";
	EXPECT_EQ(enter(wqn, TERN_WQS_ERR), TERN_AQ_OK);
	for (uint32_t i = 0; i < 4; i++) {
		const auto cqe = cq_->poll();
		ASSERT_TRUE(cqe);
		EXPECT_EQ(cqe->status, TERN_WC_WR_FLUSH_ERR);
		EXPECT_EQ(cqe->flags, TERN_CQE_WQ);
		EXPECT_EQ(cqe->qpn.get(), wqn);
		EXPECT_EQ(cqe->wqe_index.get(), i);
	}
	EXPECT_FALSE(receive(frame(1)));
	EXPECT_EQ(stat(TERN_STAT_RAW_RX_NO_BUFFER), 1u);
	/* Nothing rings for what is posted now. */
	post(wqs_[0], mr_->sge(0x10000, 2048));
	pass(100'000'000);
	EXPECT_EQ(cq_->drain().size(), 1u);

	EXPECT_EQ(enter(wqn, TERN_WQS_RDY), TERN_AQ_BAD_STATE);
	EXPECT_EQ(enter(wqn, TERN_WQS_RESET), TERN_AQ_OK);
	wqs_[0].pi = 0;
	post(wqs_[0], mr_->sge(0x10000, 2048));
	EXPECT_FALSE(receive(frame(1))) << "not ready";
	EXPECT_EQ(enter(wqn, TERN_WQS_RDY), TERN_AQ_OK);
	EXPECT_EQ(receive(frame(1))->wqe_index.get(), 0u);
}

/* The WQ's memory goes while it receives. */
TEST_F(RssTest, RingNotReachable)
{
	set_up_rss(0);
	events();
	host_.memory.fault(wqs_[0].ring, 64);
	receive(frame(1));
	EXPECT_TRUE(event(TERN_EVENT_WQ_FATAL, wqs_[0].number));
	EXPECT_EQ(enter(wqs_[0].number, TERN_WQS_RDY), TERN_AQ_BAD_STATE);
}

/* A producer index that the ring cannot have. */
TEST_F(RssTest, ImpossibleIndex)
{
	set_up_rss(0);
	events();
	host_.memory.put(wqs_[0].record + offsetof(tern_hw_qp_record, rq_pi), Le<uint32_t>(1000u));
	receive(frame(1));
	EXPECT_TRUE(event(TERN_EVENT_WQ_FATAL, wqs_[0].number));
	EXPECT_EQ(enter(wqs_[0].number, TERN_WQS_RDY), TERN_AQ_BAD_STATE);
}

TEST_F(RssTest, BusyFromTheTopDown)
{
	set_up_rss();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, rss_), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_FLOW, flow_), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_WQ_TABLE, table_), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, rss_), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_WQ, wqs_[3].number), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_WQ_TABLE, table_), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, pd_), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_CQ, cq_->number), TERN_AQ_BUSY);
	EXPECT_EQ(enter(wqs_[0].number, TERN_WQS_ERR), TERN_AQ_OK);
	for (const auto &wq : wqs_)
		EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_WQ, wq.number), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_CQ, cq_->number), TERN_AQ_OK);
	pass(100'000'000);
	for (const auto op : {TERN_AQ_DESTROY_WQ, TERN_AQ_DESTROY_WQ_TABLE})
		EXPECT_EQ(driver_.destroy(op, 999), TERN_AQ_BAD_OBJECT);
}

TEST_F(RssTest, QpHasNoStates)
{
	set_up_rss();
	auto c = make_command(TERN_AQ_MODIFY_QP);
	c.modify_qp.qpn = rss_;
	c.modify_qp.attr_mask = TERN_QP_STATE;
	c.modify_qp.attr.state = TERN_QPS_ERR;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_STATE);
	/* No WQ is a QP. */
	c.modify_qp.qpn = 0xfff000;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_OBJECT);
	driver_.doorbell(0, TERN_DB_SQ, rss_, 1);
	EXPECT_EQ(stat(TERN_STAT_DB_DROPPED), 1u);
}

TEST_F(RssTest, BadCommands)
{
	const auto wq = [this](auto change) {
		auto c = create_wq();
		change(c.create_wq);
		return driver_.status_of(c);
	};
	EXPECT_EQ(wq([](auto &c) { c.rsvd[0] = 1; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(wq([](auto &c) { c.log_size = 17; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(wq([](auto &c) { c.log_stride = 3; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(wq([](auto &c) { c.log_stride = 10; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(wq([](auto &c) { c.record = c.record.get() + 4; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(wq([](auto &c) { c.pages.levels = 9; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(wq([](auto &c) { c.pdn = 99u; }), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(wq([](auto &c) { c.cqn = 99u; }), TERN_AQ_BAD_OBJECT);

	const std::vector<uint32_t> good(128, wqs_[0].number);
	EXPECT_EQ(driver_.status_of(create_table(good, 8)), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(driver_.status_of(create_table({wqs_[0].number, 99}, 1)), TERN_AQ_BAD_OBJECT);
	auto c = create_table(good, 7);
	c.create_wq_table.rsvd[6] = 1;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	c.create_wq_table.rsvd[6] = 0;
	const uint32_t table = id_of(c);
	host_.memory.fault(c.create_wq_table.iova.get(), 64);
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_DMA_FAULT);

	EXPECT_EQ(driver_.status_of(create_qp(table, 0x100)), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(driver_.status_of(create_qp(99, 1)), TERN_AQ_BAD_OBJECT);
	auto qp = create_qp(table, 1);
	qp.create_rss_qp.pdn = 99u;
	EXPECT_EQ(driver_.status_of(qp), TERN_AQ_BAD_OBJECT);
	/* What failed holds nothing. */
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_WQ_TABLE, table), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_WQ, wqs_[0].number), TERN_AQ_OK);
}

} // namespace
} // namespace tern::test
