// SPDX-License-Identifier: GPL-2.0-or-later
/* The plugin's SRQs, with tags and of XRC too, through libibverbs. */
#include <utility>
#include <vector>

#include "plugin_services_fixture.h"

namespace tern::provider::test {
namespace {

/* ---- shared receive queues ---------------------------------------------------------------- */

TEST_F(PluginServices, TwoQpsShareAnSrq)
{
	ibv_srq *srq = create_srq(4);
	ASSERT_NE(srq, nullptr);
	EXPECT_EQ(srq->srq_context, this);
	ibv_qp *a = create(IBV_QPT_RC, srq), *b = create(IBV_QPT_UC, srq);
	ASSERT_NE(a, nullptr);
	ASSERT_NE(b, nullptr);
	const unsigned commands = fake_.writes;
	for (uint64_t i = 0; i < 4; i++)
		ASSERT_EQ(post_srq(srq, 20 + i), 0);
	EXPECT_EQ(post_srq(srq, 24), ENOMEM);
	EXPECT_EQ(*fake_.at<uint32_t>(fake_.last_srq.buf_key + fake_.last_srq.record_offset), 4u);

	complete_srq(recv_cq_memory_, 0, b->qp_num, 1);
	complete_srq(recv_cq_memory_, 1, a->qp_num, 0);
	ibv_wc wc[3];
	ASSERT_EQ(ibv_poll_cq(recv_cq_, 3, wc), 2);
	EXPECT_EQ(wc[0].wr_id, 21u);
	EXPECT_EQ(wc[0].qp_num, b->qp_num);
	EXPECT_EQ(wc[1].wr_id, 20u);
	EXPECT_EQ(fake_.writes, commands);

	EXPECT_EQ(post_recv(a, 1), EINVAL) << "it has no receive queue of its own";
	uint32_t number;
	EXPECT_EQ(ibv_get_srq_num(srq, &number), EOPNOTSUPP);
	EXPECT_EQ(ibv_destroy_qp(a), 0);
	EXPECT_EQ(ibv_destroy_qp(b), 0);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(PluginServices, AQpThatGoesOrRestartsGivesItsSlotsBack)
{
	ibv_srq *srq = create_srq(4);
	ibv_qp *qp = create(IBV_QPT_RC, srq);
	ASSERT_NE(qp, nullptr);
	for (uint64_t i = 0; i < 4; i++)
		ASSERT_EQ(post_srq(srq, i), 0);

	complete_srq(recv_cq_memory_, 0, qp->qp_num, 0);
	set_state(qp, IBV_QPS_RESET);
	EXPECT_EQ(post_srq(srq, 4), 0);
	EXPECT_EQ(post_srq(srq, 5), ENOMEM);

	complete_srq(recv_cq_memory_, 1, qp->qp_num, 2);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(post_srq(srq, 5), 0);
	EXPECT_EQ(post_srq(srq, 6), ENOMEM);
	ibv_wc wc;
	EXPECT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 0);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

/*
 * The driver has destroyed a QP and has given its number to a new QP. ibv_destroy_qp() of the first
 * QP still waits until the program has acknowledged the events of that QP.
 */
class PluginReusedQpn : public PluginServices {
protected:
	static constexpr uint32_t kSlots = 4;

	/* The first QP has an SRQ without free slots, one of which an unpolled CQE names. */
	PluginReusedQpn()
	{
		srq_ = create_srq(kSlots);
		old_ = create(IBV_QPT_RC, srq_);
		EXPECT_EQ(room(srq_), kSlots);
		complete_srq(recv_cq_memory_, 0, old_->qp_num, 1);
		fake_.next_qpn = old_->qp_num;
	}
	~PluginReusedQpn() override
	{
		if (old_)
			destroy_old();
		EXPECT_EQ(ibv_destroy_srq(srq_), 0);
	}

	void destroy_old() { EXPECT_EQ(ibv_destroy_qp(std::exchange(old_, nullptr)), 0); }

	/* A QP with one CQ, which is not that of the first QP's receives. */
	ibv_qp *create_on_send_cq()
	{
		ibv_qp_init_attr attr = init_attr();
		attr.recv_cq = send_cq_;
		return ready(ibv_create_qp(pd_, &attr));
	}

	/* Posts to @srq until it refuses. Returns the number of requests that it took. */
	uint32_t room(ibv_srq *srq)
	{
		uint32_t n = 0;
		while (!post_srq(srq, 100 + n))
			n++;
		return n;
	}

	ibv_srq *srq_ = nullptr;
	ibv_qp *old_ = nullptr;
};

TEST_F(PluginReusedQpn, SlotsGoBackToTheSrqThatTheyAreOf)
{
	ibv_srq *other = create_srq(kSlots);
	ibv_qp *qp = create(IBV_QPT_RC, other);
	ASSERT_NE(qp, nullptr);
	ASSERT_EQ(qp->qp_num, old_->qp_num);
	EXPECT_EQ(room(other), kSlots) << "and none of the first SRQ's";
	EXPECT_EQ(room(srq_), 1u);

	complete_srq(recv_cq_memory_, 1, qp->qp_num, 2);
	destroy_old();
	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 1) << "that of the new QP stays";
	EXPECT_EQ(wc.wr_id, 102u);
	EXPECT_EQ(room(srq_), 0u);
	EXPECT_EQ(room(other), 1u);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_srq(other), 0);
}

TEST_F(PluginReusedQpn, SlotsGoBackIfTheNewQpHasNoSrq)
{
	ibv_qp *qp = create(IBV_QPT_RC);
	EXPECT_EQ(room(srq_), 1u);
	destroy_old();
	EXPECT_EQ(room(srq_), 0u);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(PluginReusedQpn, SlotsGoBackFromACqThatTheNewQpDoesNotHave)
{
	ibv_qp *qp = create_on_send_cq();
	complete(send_cq_memory_, 0, qp->qp_num, TERN_CQE_RECV, 0);
	ASSERT_EQ(post_recv(qp, 7), 0);
	destroy_old();
	EXPECT_EQ(room(srq_), 1u);
	ibv_wc wc;
	EXPECT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 0);
	ASSERT_EQ(ibv_poll_cq(send_cq_, 1, &wc), 1) << "that of the new QP stays";
	EXPECT_EQ(wc.wr_id, 7u);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(PluginReusedQpn, SlotsGoBackIfTheOldCqIsPolledMeanwhile)
{
	ibv_qp *qp = create_on_send_cq();
	ibv_wc wc;
	EXPECT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 0);
	EXPECT_EQ(room(srq_), 1u);
	destroy_old();
	EXPECT_EQ(room(srq_), 0u) << "once only";
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(PluginServices, AnSrqGrows)
{
	ibv_srq *srq = create_srq(4);
	ibv_qp *qp = create(IBV_QPT_RC, srq);
	ASSERT_NE(qp, nullptr);
	for (uint64_t i = 0; i < 4; i++)
		ASSERT_EQ(post_srq(srq, i), 0);
	const int mappings = FakeUverbs::mappings();

	ibv_srq_attr attr = {};
	attr.max_wr = 3;
	ASSERT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0) << "it is that large";
	EXPECT_EQ(post_srq(srq, 4), ENOMEM);
	attr.max_wr = 30;
	attr.srq_limit = 3;
	ASSERT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	EXPECT_EQ(FakeUverbs::mappings(), mappings) << "the old buffer is let go";
	for (uint64_t i = 4; i < 32; i++)
		ASSERT_EQ(post_srq(srq, i), 0);
	EXPECT_EQ(post_srq(srq, 32), ENOMEM);
	ASSERT_EQ(ibv_query_srq(srq, &attr), 0);
	EXPECT_EQ(attr.max_wr, 32u);
	EXPECT_EQ(attr.srq_limit, 3u);

	for (uint32_t i = 0; i < 12; i++)
		complete_srq(recv_cq_memory_, i, qp->qp_num, 2 * i);
	ibv_wc wc[16];
	ASSERT_EQ(ibv_poll_cq(recv_cq_, 16, wc), 12);
	for (uint32_t i = 0; i < 12; i++)
		EXPECT_EQ(wc[i].wr_id, 2 * i);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

/* ibv_modify_srq(3): if one of the attributes is invalid, none of them is modified. */
TEST_F(PluginServices, AnInvalidAttributeKeepsAnSrqFromGrowing)
{
	constexpr int kBoth = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;
	ibv_srq *srq = create_srq(4);
	ASSERT_NE(srq, nullptr);
	const auto modify = [srq](uint32_t max_wr, uint32_t limit, int mask) {
		ibv_srq_attr attr = {.max_wr = max_wr, .max_sge = 1, .srq_limit = limit};
		return ibv_modify_srq(srq, &attr, mask);
	};
	const auto size = [srq] {
		ibv_srq_attr attr = {};
		EXPECT_EQ(ibv_query_srq(srq, &attr), 0);
		return attr.max_wr;
	};

	EXPECT_EQ(modify(12, 17, kBoth), EINVAL) << "a limit above the size to be";
	EXPECT_EQ(size(), 4u);
	EXPECT_EQ(modify(12, 3, kBoth | 4), EINVAL) << "an unknown attribute";
	EXPECT_EQ(size(), 4u);
	EXPECT_EQ(modify(12, 16, kBoth), 0) << "the size to be is rounded up";
	EXPECT_EQ(size(), 16u);
	EXPECT_EQ(modify(2, 16, kBoth), 0) << "it does not shrink";
	EXPECT_EQ(modify(2, 17, kBoth), EINVAL);
	EXPECT_EQ(modify(~0u, 17, IBV_SRQ_LIMIT), EINVAL) << "max_wr is not asked for";
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(PluginServices, SrqsCanFail)
{
	fake_.fail(IB_USER_VERBS_CMD_CREATE_SRQ, ENOSPC);
	EXPECT_EQ(create_srq(4), nullptr);
	EXPECT_EQ(errno, ENOSPC);
	const auto refused = [&](auto spoil) {
		fake_.on_srq = spoil;
		EXPECT_EQ(create_srq(4), nullptr);
		fake_.on_srq = nullptr;
		EXPECT_EQ(fake_.srqs, 0);
	};
	refused([](auto &r) { r.buf_key++; });
	refused([](auto &r) { r.record_offset = r.buf_len; });
	refused([](auto &r) { r.ring_offset = r.buf_len; });
	refused([](auto &r) { r.log_size = 30; });
	refused([](auto &r) { r.log_stride = 3; });

	ibv_srq *srq = create_srq(4);
	ASSERT_NE(srq, nullptr);
	ibv_srq_attr attr = {};
	attr.max_wr = 8;
	fake_.fail(IB_USER_VERBS_CMD_MODIFY_SRQ, EINVAL);
	EXPECT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	EXPECT_EQ(post_srq(srq, 0), 0) << "as before";
	fake_.fail(IB_USER_VERBS_CMD_DESTROY_SRQ, EBUSY);
	EXPECT_EQ(ibv_destroy_srq(srq), EBUSY);
	EXPECT_EQ(post_srq(srq, 1), 0) << "it is still there";
	/* The driver has moved it to where we cannot follow. */
	fake_.on_srq = [](auto &r) { r.buf_key++; };
	EXPECT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	EXPECT_EQ(post_srq(srq, 2), ENOMEM);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

/* ---- SRQs with tags ---------------------------------------------------------------------------
 */

class PluginTags : public PluginServices {
protected:
	PluginTags()
	{
		ibv_cq_init_attr_ex attr = {};
		attr.cqe = 16;
		attr.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_TM_INFO;
		cq_ = ibv_create_cq_ex(context_, &attr);
		cq_memory_ = fake_.last_cq;
		srq_ = create();
	}
	~PluginTags() override
	{
		if (srq_) {
			EXPECT_EQ(ibv_destroy_srq(srq_), 0);
		}
		if (cq_) {
			EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq_)), 0);
		}
	}

	ibv_srq *create()
	{
		ibv_srq_init_attr_ex attr = {};
		attr.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
		attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
		                 IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
		attr.srq_type = IBV_SRQT_TM;
		attr.pd = pd_;
		attr.cq = ibv_cq_ex_to_cq(cq_);
		attr.tm_cap = {.max_num_tags = 4, .max_ops = 8};
		return ibv_create_srq_ex(context_, &attr);
	}
	int add(ibv_srq *srq, uint64_t wr_id)
	{
		ibv_ops_wr wr = {}, *bad;
		wr.wr_id = wr_id;
		wr.opcode = IBV_WR_TAG_ADD;
		wr.flags = IBV_OPS_SIGNALED;
		wr.tm.add.recv_wr_id = wr_id + 1;
		wr.tm.add.tag = 0x77;
		const int err = ibv_post_srq_ops(srq, &wr, &bad);
		handle_ = wr.tm.handle;
		return err;
	}
	tern_hw_cqe &write(uint32_t n, uint8_t opcode, uint8_t flags, uint32_t index)
	{
		auto &cqe = fake_.at<tern_hw_cqe>(cq_memory_.buf_key)[n];
		cqe.srqn = fake_.last_srq.srqn;
		cqe.flags = flags;
		complete(cq_memory_, n, 0x900, opcode, index);
		return cqe;
	}
	/* The next completion. */
	void expect(uint64_t wr_id, ibv_wc_opcode opcode, unsigned flags, uint64_t tag = 0,
	            uint32_t priv = 0)
	{
		ibv_poll_cq_attr poll = {};
		ASSERT_EQ(ibv_start_poll(cq_, &poll), 0);
		ibv_wc_tm_info info = {1, 1};
		ibv_wc_read_tm_info(cq_, &info);
		EXPECT_EQ(cq_->wr_id, wr_id);
		EXPECT_EQ(ibv_wc_read_opcode(cq_), opcode);
		EXPECT_EQ(ibv_wc_read_wc_flags(cq_), flags);
		EXPECT_EQ(info.tag, tag);
		EXPECT_EQ(info.priv, priv);
		ibv_end_poll(cq_);
	}

	ibv_cq_ex *cq_ = nullptr;
	tern_create_cq_resp cq_memory_{};
	ibv_srq *srq_ = nullptr;
	uint32_t handle_ = 0;
};

TEST_F(PluginTags, OperationsAndMessages)
{
	ASSERT_NE(srq_, nullptr);
	EXPECT_EQ(fake_.last_max_ops, 8u);
	ASSERT_EQ(add(srq_, 10), 0);
	EXPECT_EQ(fake_.doorbell(TERN_DB_TAG_OPS),
	          fake_.last_srq.srqn | uint64_t{1} << TERN_DB_INDEX_SHIFT);
	write(0, TERN_CQE_TAG_ADD, TERN_CQE_TAG_SYNC_REQ, 0);
	expect(10, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ);
	tern_hw_cqe &match = write(1, TERN_CQE_TAG_RECV, TERN_CQE_TAG_MATCH, handle_);
	match.tag = 0x77;
	match.app_ctx = 0x88;
	expect(11, IBV_WC_TM_RECV, IBV_WC_TM_MATCH, 0x77, 0x88);
	write(2, TERN_CQE_TAG_RECV, TERN_CQE_TAG_DATA, handle_);
	expect(11, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
	ASSERT_EQ(post_srq(srq_, 5), 0);
	write(3, TERN_CQE_TAG_UNEXPECTED, 0, 0);
	expect(5, IBV_WC_TM_RECV, 0);
	ASSERT_EQ(post_srq(srq_, 6), 0);
	write(4, TERN_CQE_NO_TAG, 0, 1);
	expect(6, IBV_WC_TM_NO_TAG, 0);
}

/* What nobody polled goes with the SRQ. */
TEST_F(PluginTags, GoneWithTheSrq)
{
	ASSERT_EQ(add(srq_, 10), 0);
	write(0, TERN_CQE_TAG_ADD, 0, 0);
	ASSERT_EQ(ibv_destroy_srq(srq_), 0);
	srq_ = nullptr;
	ibv_poll_cq_attr poll = {};
	EXPECT_EQ(ibv_start_poll(cq_, &poll), ENOENT);
}

TEST_F(PluginTags, OthersTakeNoOperations)
{
	ibv_srq_init_attr attr = {};
	attr.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
	ibv_srq *plain = ibv_create_srq(pd_, &attr);
	ASSERT_NE(plain, nullptr);
	EXPECT_EQ(add(plain, 1), EINVAL);
	EXPECT_EQ(ibv_destroy_srq(plain), 0);
}

TEST_F(PluginTags, SpoiledAnswer)
{
	ASSERT_EQ(ibv_destroy_srq(srq_), 0);
	fake_.on_srq = [](tern_srq_buf &buf) { buf.tag_ops_offset = buf.buf_len; };
	errno = 0;
	srq_ = create();
	EXPECT_EQ(srq_, nullptr);
	EXPECT_EQ(errno, EINVAL) << "the operations are not in the mapping";
}

/* ---- XRC ------------------------------------------------------------------------------------ */

class PluginXrc : public PluginServices {
protected:
	PluginXrc()
	{
		ibv_xrcd_init_attr attr = {};
		attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
		attr.fd = -1;
		xrcd_ = ibv_open_xrcd(context_, &attr);
		srq_ = create_xrc_srq();
	}

	~PluginXrc() override
	{
		if (srq_) {
			EXPECT_EQ(ibv_destroy_srq(srq_), 0);
		}
		EXPECT_EQ(ibv_close_xrcd(xrcd_), 0);
	}

	ibv_srq *create_xrc_srq()
	{
		ibv_srq_init_attr_ex attr = {};
		attr.srq_context = this;
		attr.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
		attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
		                 IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		attr.srq_type = IBV_SRQT_XRC;
		attr.pd = pd_;
		attr.xrcd = xrcd_;
		attr.cq = recv_cq_;
		return ibv_create_srq_ex(context_, &attr);
	}

	ibv_xrcd *xrcd_ = nullptr;
	ibv_srq *srq_ = nullptr;
};

TEST_F(PluginXrc, CompletionsComeForQpsOfOthers)
{
	ASSERT_NE(xrcd_, nullptr);
	ASSERT_NE(srq_, nullptr);
	EXPECT_EQ(srq_->srq_context, this);
	EXPECT_EQ(srq_->pd, pd_);
	uint32_t number = 0;
	ASSERT_EQ(ibv_get_srq_num(srq_, &number), 0);
	EXPECT_EQ(number, fake_.last_srq.srqn);
	ASSERT_EQ(post_srq(srq_, 5), 0);
	complete_srq(recv_cq_memory_, 0, 0x900, 0);
	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 5u);
	EXPECT_EQ(wc.qp_num, 0x900u);

	/* What nobody polled goes with the SRQ, also for the next one of its number. */
	ASSERT_EQ(post_srq(srq_, 6), 0);
	complete_srq(recv_cq_memory_, 1, 0x900, 1);
	ASSERT_EQ(ibv_destroy_srq(srq_), 0);
	fake_.next_srqn = number;
	srq_ = create_xrc_srq();
	ASSERT_NE(srq_, nullptr);
	EXPECT_EQ(ibv_poll_cq(recv_cq_, 1, &wc), 0);
}

/*
 * The driver has destroyed an XRC SRQ and has given its number to an SRQ without a CQ of its own.
 * ibv_destroy_srq() of the first still waits until the program has acknowledged its events.
 */
class PluginReusedSrqn : public PluginXrc {
protected:
	static constexpr uint32_t kForeignQpn = 0x900, kSlots = 4;

	/* The first SRQ has an unpolled CQE, of a QP of another process. The new one has a QP. */
	PluginReusedSrqn()
	{
		EXPECT_EQ(post_srq(srq_, 5), 0);
		complete_srq(recv_cq_memory_, 0, kForeignQpn, 0);
		fake_.next_srqn = fake_.last_srq.srqn;
		plain_ = create_srq(kSlots);
		srq_qp_ = create(IBV_QPT_RC, plain_);
		for (uint64_t i = 0; i < kSlots; i++)
			EXPECT_EQ(post_srq(plain_, 20 + i), 0);
	}
	~PluginReusedSrqn() override
	{
		if (srq_qp_) {
			EXPECT_EQ(ibv_destroy_qp(srq_qp_), 0);
		}
		EXPECT_EQ(ibv_destroy_srq(plain_), 0);
	}

	/* The card completes request @post of the new SRQ to CQE @n. */
	void arrive(uint32_t n, uint32_t post)
	{
		complete_srq(recv_cq_memory_, n, srq_qp_->qp_num, post);
	}
	void destroy_old() { EXPECT_EQ(ibv_destroy_srq(std::exchange(srq_, nullptr)), 0); }

	/* How many more requests the new SRQ takes. */
	uint32_t room()
	{
		uint32_t n = 0;
		while (!post_srq(plain_, 100 + n))
			n++;
		return n;
	}
	/* The wr_id of each completion that can be polled. */
	std::vector<uint64_t> poll()
	{
		std::vector<uint64_t> found;
		for (ibv_wc wc; ibv_poll_cq(recv_cq_, 1, &wc) == 1;)
			found.push_back(wc.wr_id);
		return found;
	}

	ibv_srq *plain_ = nullptr;
	ibv_qp *srq_qp_ = nullptr;
};

using WrIds = std::vector<uint64_t>;

TEST_F(PluginReusedSrqn, CompletionsAreOfTheSrqOfTheirQp)
{
	arrive(1, 2);
	EXPECT_EQ(poll(), (WrIds{5, 22})) << "of each SRQ its own";
	EXPECT_EQ(room(), 1u);
}

TEST_F(PluginReusedSrqn, ThoseOfTheNewSrqStayWhenTheOldOneHasGone)
{
	arrive(1, 2);
	destroy_old();
	EXPECT_EQ(poll(), WrIds{22}) << "but not that of the old one";
	EXPECT_EQ(room(), 1u) << "nor was its slot given to the new one";
}

TEST_F(PluginReusedSrqn, AQpOfTheNewSrqThatRestartsGivesItsSlotsBack)
{
	arrive(1, 2);
	set_state(srq_qp_, IBV_QPS_RESET);
	EXPECT_EQ(room(), 1u);
	EXPECT_EQ(poll(), WrIds{5}) << "that of the XRC SRQ stays";
}

TEST_F(PluginReusedSrqn, AQpOfTheNewSrqThatGoesGivesItsSlotsBack)
{
	arrive(1, 2);
	EXPECT_EQ(ibv_destroy_qp(std::exchange(srq_qp_, nullptr)), 0);
	EXPECT_EQ(room(), 1u);
	EXPECT_EQ(poll(), WrIds{5}) << "that of the XRC SRQ stays";
}

/* rdma_create_qp_ex() passes the SRQ of its id. With uverbs and mlx5 it has no effect. */
TEST_F(PluginXrc, ATargetMayNameAnXrcSrq)
{
	ibv_qp_init_attr_ex attr = {};
	attr.qp_type = IBV_QPT_XRC_RECV;
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	attr.xrcd = xrcd_;
	attr.srq = srq_;
	ibv_qp *target = ibv_create_qp_ex(context_, &attr);
	ASSERT_NE(target, nullptr);
	EXPECT_EQ(target->srq, srq_);
	EXPECT_EQ(attr.srq, srq_);
	ready(target);
	EXPECT_EQ(post_recv(target, 1), EINVAL);
	EXPECT_EQ(ibv_destroy_qp(target), 0);

	ibv_srq_init_attr basic = {};
	basic.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
	attr.srq = ibv_create_srq(pd_, &basic);
	ASSERT_NE(attr.srq, nullptr);
	EXPECT_EQ(ibv_create_qp_ex(context_, &attr), nullptr);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(ibv_destroy_srq(attr.srq), 0);
}

TEST_F(PluginXrc, ATargetHasNoQueues)
{
	const int mappings = FakeUverbs::mappings();
	ibv_qp *target = create_ex(IBV_QPT_XRC_RECV, 0, xrcd_);
	ASSERT_NE(target, nullptr);
	EXPECT_EQ(FakeUverbs::mappings(), mappings);
	EXPECT_EQ(post_send(target, 1), EINVAL);
	EXPECT_EQ(post_recv(target, 1), EINVAL);
	set_state(target, IBV_QPS_RESET);

	ibv_qp_open_attr open = {};
	open.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	open.qp_num = target->qp_num;
	open.xrcd = xrcd_;
	open.qp_type = IBV_QPT_XRC_RECV;
	ibv_qp *again = ibv_open_qp(context_, &open);
	ASSERT_NE(again, nullptr);
	EXPECT_EQ(again->qp_num, target->qp_num);
	EXPECT_EQ(ibv_destroy_qp(again), 0);
	EXPECT_EQ(ibv_destroy_qp(target), 0);
	fake_.fail(IB_USER_VERBS_CMD_OPEN_QP, EINVAL);
	EXPECT_EQ(ibv_open_qp(context_, &open), nullptr);
	EXPECT_EQ(errno, EINVAL);
}

TEST_F(PluginXrc, AnInitiatorNamesTheSrq)
{
	ibv_qp *qp = create_ex(IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_BIND_MW |
	                                                 IBV_QP_EX_WITH_LOCAL_INV);
	ASSERT_NE(qp, nullptr);
	const tern_create_qp_resp memory = fake_.last_qp;
	ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	ibv_wr_set_xrc_srqn(qpx, 0x31);
	ibv_wr_local_inv(qpx, 0x4200);
	ibv_wr_send(qpx);
	ibv_wr_set_xrc_srqn(qpx, 0x32);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	ASSERT_EQ(ibv_wr_complete(qpx), 0);
	EXPECT_EQ(at<tern_hw_ctrl_seg>(memory, 0, 0).srqn.get(), 0x31u);
	EXPECT_EQ(at<tern_hw_ctrl_seg>(memory, 1, 0).srqn.get(), 0u);
	EXPECT_EQ(at<tern_hw_ctrl_seg>(memory, 2, 0).srqn.get(), 0x32u);

	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	EXPECT_EQ(ibv_wr_complete(qpx), EINVAL) << "to no SRQ";
	EXPECT_EQ(post_recv(qp, 1), EINVAL);

	ASSERT_EQ(post_send(qp, 77), 0);
	complete(send_cq_memory_, 0, qp->qp_num, TERN_OP_SEND, 3);
	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(send_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 77u);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(PluginXrc, DomainsCanFail)
{
	ibv_xrcd_init_attr attr = {};
	EXPECT_EQ(ibv_open_xrcd(context_, &attr), nullptr);
	EXPECT_EQ(errno, EINVAL);
	fake_.fail(IB_USER_VERBS_CMD_CLOSE_XRCD, EBUSY);
	EXPECT_EQ(ibv_close_xrcd(xrcd_), EBUSY);
}

} // namespace
} // namespace tern::provider::test
