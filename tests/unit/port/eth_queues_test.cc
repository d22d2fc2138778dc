// SPDX-License-Identifier: GPL-2.0-or-later
/* Several QPs of type ETH, and frames spread over them. */
#include <map>

#include "qemu/rnic/port/toeplitz.h"
#include "tests/support/one_card.h"
#include "tests/unit/port/tcp_frames.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kTcp =
        TERN_HASH_SRC_IPV4 | TERN_HASH_DST_IPV4 | TERN_HASH_SRC_PORT_TCP | TERN_HASH_DST_PORT_TCP;

class EthQueuesTest : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		for (auto &qp : qps_)
			qp = make_eth();
	}
	QpOptions options() const
	{
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.type = TERN_QPT_ETH;
		return options;
	}
	std::unique_ptr<HostQp> make_eth()
	{
		auto qp = driver_.create_qp(options());
		for (const auto state : {TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS})
			EXPECT_EQ(qp->set_state(state), TERN_AQ_OK);
		for (int i = 0; i < 30; i++)
			qp->post_recv(mr_->sge(0x10000, 4096));
		return qp;
	}
	static HashKey key()
	{
		HashKey key;
		for (size_t i = 0; i < key.size(); i++)
			key[i] = static_cast<uint8_t>(0x6d + i * 37);
		return key;
	}
	tern_hw_aq_cmd set_rss(const std::vector<uint32_t> &qpns, uint8_t log_size,
	                       uint32_t fields = kTcp)
	{
		auto c = make_command(TERN_AQ_SET_ETH_RSS);
		const Iova at = host_.memory.alloc(qpns.size() * 4);
		for (size_t i = 0; i < qpns.size(); i++)
			host_.memory.put(at + i * 4, Le<uint32_t>(qpns[i]));
		c.set_eth_rss.iova = at;
		c.set_eth_rss.log_size = log_size;
		c.set_eth_rss.hash_fields = fields;
		std::ranges::copy(key(), c.set_eth_rss.key);
		return c;
	}
	std::vector<uint32_t> numbers() const
	{
		return {qps_[0]->number, qps_[1]->number, qps_[2]->number, qps_[3]->number};
	}
	tern_hw_cqe receive(uint16_t sport)
	{
		card_.receive(TestFrame{.sport = sport, .payload = 4}.build());
		run();
		const auto cqe = cq_->poll();
		EXPECT_TRUE(cqe);
		return cqe.value_or(tern_hw_cqe{});
	}

	std::unique_ptr<HostQp> qps_[4];
};

TEST_F(EthQueuesTest, OldestTakesAll)
{
	for (uint16_t sport = 0; sport < 8; sport++) {
		const auto cqe = receive(sport);
		EXPECT_EQ(cqe.qpn.get(), qps_[0]->number);
		EXPECT_EQ(cqe.hash.get(), 0u);
	}
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qps_[0]->number), TERN_AQ_OK);
	EXPECT_EQ(receive(1).qpn.get(), qps_[1]->number);
}

/* By the hash that the CQE shows, which is Toeplitz over addresses and ports. */
TEST_F(EthQueuesTest, Spreads)
{
	ASSERT_EQ(driver_.status_of(set_rss(numbers(), 2)), TERN_AQ_OK);
	std::map<uint32_t, unsigned> count;
	for (uint16_t sport = 1; sport <= 60; sport++) {
		const Frame frame = TestFrame{.sport = sport, .payload = 4}.build();
		const uint32_t hash = toeplitz(key(), std::span(frame).subspan(26, 12));
		const auto cqe = receive(sport);
		EXPECT_EQ(cqe.hash.get(), hash);
		EXPECT_EQ(cqe.qpn.get(), numbers()[hash % 4]);
		count[cqe.qpn.get()]++;
	}
	EXPECT_EQ(count.size(), 4u);

	/* another table, while frames come */
	ASSERT_EQ(driver_.status_of(set_rss({qps_[3]->number}, 0)), TERN_AQ_OK);
	for (uint16_t sport = 1; sport < 8; sport++)
		EXPECT_EQ(receive(sport).qpn.get(), qps_[3]->number);
	/* no fields: entry 0 */
	ASSERT_EQ(driver_.status_of(set_rss({qps_[2]->number, qps_[1]->number}, 1, 0)), TERN_AQ_OK);
	for (uint16_t sport = 1; sport < 8; sport++)
		EXPECT_EQ(receive(sport).qpn.get(), qps_[2]->number);
}

/* The table goes with a QP that it names, not with another. */
TEST_F(EthQueuesTest, ForgetsTable)
{
	ASSERT_EQ(driver_.status_of(set_rss({qps_[1]->number, qps_[2]->number}, 1)), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qps_[3]->number), TERN_AQ_OK);
	EXPECT_NE(receive(5).qpn.get(), qps_[0]->number);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qps_[2]->number), TERN_AQ_OK);
	EXPECT_EQ(receive(5).qpn.get(), qps_[0]->number);
}

TEST_F(EthQueuesTest, RefusesTables)
{
	const auto numbers = this->numbers();
	auto c = set_rss(numbers, 2, 0x100);
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	c = set_rss(numbers, 8);
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	c = set_rss(numbers, 2);
	c.set_eth_rss.rsvd[1] = 1;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	c = set_rss(numbers, 2);
	c.set_eth_rss.iova = 0xdead0000;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_DMA_FAULT);
	auto rc = options();
	rc.type = TERN_QPT_RC;
	const auto other = driver_.create_qp(rc);
	EXPECT_EQ(driver_.status_of(set_rss({numbers[0], other->number}, 1)), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(driver_.status_of(set_rss({numbers[0], 0xfffff}, 1)), TERN_AQ_BAD_OBJECT);
	/* what is refused changes nothing */
	EXPECT_EQ(receive(5).qpn.get(), numbers[0]);
}

/* Each has its own queues: one without receive WQEs loses only its own frames. */
TEST_F(EthQueuesTest, OwnQueues)
{
	auto empty = driver_.create_qp(options());
	for (const auto state : {TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS})
		EXPECT_EQ(empty->set_state(state), TERN_AQ_OK);
	ASSERT_EQ(driver_.status_of(set_rss({empty->number}, 0)), TERN_AQ_OK);
	card_.receive(TestFrame{}.build());
	run();
	EXPECT_FALSE(cq_->poll());
	EXPECT_EQ(stat(TERN_STAT_ETH_RX_NO_BUFFER), 1u);

	for (auto &qp : qps_)
		qp->post_send({.sges = {mr_->sge(0, 100)}});
	run();
	EXPECT_EQ(cq_->drain().size(), 4u);
	EXPECT_EQ(stat(TERN_STAT_ETH_TX_FRAMES), 4u);
}

TEST_F(EthQueuesTest, AsManyAsThereCanBe)
{
	std::vector<std::unique_ptr<HostQp>> more;
	for (unsigned i = 4; i < TERN_MAX_ETH_QPS; i++)
		more.push_back(driver_.create_qp(options()));
	EXPECT_THROW(driver_.create_qp(options()), std::exception);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, more.back()->number), TERN_AQ_OK);
	more.push_back(driver_.create_qp(options()));
}

} // namespace
} // namespace tern::test
