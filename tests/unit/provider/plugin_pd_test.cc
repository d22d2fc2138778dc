// SPDX-License-Identifier: GPL-2.0-or-later
/* Thread domains and parent domains of the plugin, through libibverbs. */
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <utility>

#include "plugin_fixture.h"

namespace tern::provider::test {
namespace {

class PluginParentDomain : public PluginQp {
protected:
	~PluginParentDomain() override
	{
		if (domain_) {
			EXPECT_EQ(ibv_dealloc_pd(domain_), 0);
		}
		if (td_) {
			EXPECT_EQ(ibv_dealloc_td(td_), 0);
		}
		EXPECT_TRUE(arrays_.empty());
	}

	/* With our allocators, when @allocators. */
	void make_domain(bool allocators)
	{
		ibv_parent_domain_init_attr attr = {};
		attr.pd = pd_;
		attr.td = td_;
		if (allocators) {
			attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			                 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
			attr.alloc = alloc;
			attr.free = release;
			attr.pd_context = this;
		}
		domain_ = ibv_alloc_parent_domain(context_, &attr);
		ASSERT_NE(domain_, nullptr);
		EXPECT_EQ(domain_->context, context_);
		EXPECT_EQ(domain_->handle, pd_->handle);
	}

	ibv_qp *create_in_domain(ibv_srq *srq = nullptr)
	{
		ibv_qp_init_attr attr = init_attr();
		attr.srq = srq;
		return ready(ibv_create_qp(domain_, &attr));
	}

	ibv_srq *create_srq()
	{
		ibv_srq_init_attr attr = {};
		attr.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
		return ibv_create_srq(domain_, &attr);
	}

	static int post_srq(ibv_srq *srq, uint64_t wr_id)
	{
		ibv_recv_wr wr = {}, *bad;
		wr.wr_id = wr_id;
		return ibv_post_srq_recv(srq, &wr, &bad);
	}

	static int grow(ibv_srq *srq, uint32_t max_wr)
	{
		ibv_srq_attr attr = {};
		attr.max_wr = max_wr;
		return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
	}

	int refused(const ibv_parent_domain_init_attr &attr)
	{
		ibv_parent_domain_init_attr copy = attr;
		errno = 0;
		EXPECT_EQ(ibv_alloc_parent_domain(context_, &copy), nullptr);
		return errno;
	}

	static void *alloc(ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
	{
		auto *self = static_cast<PluginParentDomain *>(context);
		EXPECT_EQ(pd, self->domain_);
		EXPECT_GT(alignment, 1u);
		if (self->srq_) {
			EXPECT_EQ(post_srq(self->srq_, 1), 0);
		}
		if (self->answer_ != self)
			return self->answer_;
		void *p = aligned_alloc(64, (size + 63) & ~size_t{63});
		std::memset(p, 0xcc, size);
		self->arrays_[p] = type;
		return p;
	}

	static void release(ibv_pd *pd, void *context, void *p, uint64_t type)
	{
		auto *self = static_cast<PluginParentDomain *>(context);
		EXPECT_EQ(pd, self->domain_);
		EXPECT_EQ(self->arrays_.count(p), 1u);
		EXPECT_EQ(self->arrays_[p], type);
		if (self->srq_) {
			EXPECT_EQ(post_srq(self->srq_, 2), 0);
		}
		self->arrays_.erase(p);
		std::free(p);
	}

	ibv_td *td_ = nullptr;
	ibv_pd *domain_ = nullptr;
	void *answer_ = this;    /* of alloc(); this: memory */
	ibv_srq *srq_ = nullptr; /* to which alloc() and release() post */
	std::map<void *, uint64_t> arrays_;
};

TEST_F(PluginParentDomain, IsThePdForTheKernel)
{
	make_domain(false);
	EXPECT_EQ(fake_.pds, 1);
	ibv_mr *mr = ibv_reg_mr(domain_, buffer_, sizeof(buffer_), int{IBV_ACCESS_LOCAL_WRITE});
	ASSERT_NE(mr, nullptr);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	ibv_qp *qp = create_in_domain();
	ASSERT_NE(qp, nullptr);
	EXPECT_EQ(fake_.last_qp_pd, pd_->handle);
	EXPECT_EQ(post_send(qp, 1), 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(PluginParentDomain, WhatIsInUseStays)
{
	ibv_td_init_attr td = {};
	td_ = ibv_alloc_td(context_, &td);
	ASSERT_NE(td_, nullptr);
	make_domain(false);
	EXPECT_EQ(ibv_dealloc_td(td_), EBUSY);
	EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
	EXPECT_EQ(fake_.pds, 1);

	ibv_qp *qp = create_in_domain();
	EXPECT_EQ(ibv_dealloc_pd(domain_), EBUSY);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	ibv_srq *srq = create_srq();
	EXPECT_EQ(ibv_dealloc_pd(domain_), EBUSY);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
	ibv_cq_init_attr_ex cq_attr = {};
	cq_attr.cqe = 4;
	cq_attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	cq_attr.parent_domain = domain_;
	ibv_cq_ex *cq = ibv_create_cq_ex(context_, &cq_attr);
	ASSERT_NE(cq, nullptr);
	EXPECT_EQ(ibv_dealloc_pd(domain_), EBUSY);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);

	/* What could not be made holds nothing. */
	fake_.fail(IB_USER_VERBS_CMD_CREATE_QP, ENOSPC);
	EXPECT_EQ(create_in_domain(), nullptr);
	EXPECT_EQ(ibv_dealloc_pd(domain_), 0);
	domain_ = nullptr;
	EXPECT_EQ(ibv_dealloc_td(td_), 0);
	td_ = nullptr;
}

TEST_F(PluginParentDomain, ItsParentCanBeAParentDomain)
{
	make_domain(false);
	ibv_parent_domain_init_attr attr = {};
	attr.pd = domain_;
	ibv_pd *other = ibv_alloc_parent_domain(context_, &attr);
	ASSERT_NE(other, nullptr);
	EXPECT_EQ(other->handle, pd_->handle);
	EXPECT_EQ(ibv_dealloc_pd(domain_), 0);
	domain_ = nullptr;
	EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
	EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(PluginParentDomain, ArraysComeFromItsAllocators)
{
	make_domain(true);
	ibv_srq *srq = create_srq();
	ASSERT_NE(srq, nullptr);
	EXPECT_EQ(arrays_.size(), 1u);
	ibv_qp *qp = create_in_domain();
	ASSERT_NE(qp, nullptr);
	EXPECT_EQ(arrays_.size(), 3u) << "send and receive requests";
	ASSERT_EQ(post_send(qp, 41), 0);
	complete(send_cq_memory_, 0, qp->qp_num, TERN_OP_SEND, 0);
	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(send_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 41u);

	ibv_srq_attr attr = {};
	attr.max_wr = 16;
	ASSERT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	EXPECT_EQ(arrays_.size(), 3u) << "a larger one in the place of the first";
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(arrays_.size(), 1u);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(PluginParentDomain, AnSrqThatCannotGrowStaysAsItWas)
{
	make_domain(true);
	ibv_srq *srq = create_srq();
	ASSERT_NE(srq, nullptr);
	const uint64_t place = fake_.last_srq.buf_key;
	const unsigned writes = fake_.writes;
	answer_ = nullptr;
	EXPECT_EQ(grow(srq, 16), ENOMEM);
	EXPECT_EQ(fake_.writes, writes);
	EXPECT_EQ(fake_.last_srq.buf_key, place);
	EXPECT_EQ(grow(srq, 4), 0) << "needs no memory";
	EXPECT_EQ(post_srq(srq, 1), 0);

	answer_ = this;
	EXPECT_EQ(grow(srq, 16), 0);
	EXPECT_EQ(post_srq(srq, 2), 0);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(PluginParentDomain, AnSrqThatIsNotGrownReturnsTheArray)
{
	make_domain(true);
	ibv_srq *srq = create_srq();
	ASSERT_NE(srq, nullptr);
	fake_.fail(IB_USER_VERBS_CMD_MODIFY_SRQ, EINVAL);
	EXPECT_EQ(grow(srq, 16), EINVAL);
	EXPECT_EQ(arrays_.size(), 1u);
	EXPECT_EQ(post_srq(srq, 1), 0);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(PluginParentDomain, AllocatorsMayPostToTheSrqThatGrows)
{
	const Deadline deadline;
	make_domain(true);
	ibv_srq *srq = create_srq();
	ASSERT_NE(srq, nullptr);
	srq_ = srq;
	EXPECT_EQ(grow(srq, 16), 0);
	srq_ = nullptr;
	for (uint64_t i = 2; i < 16; i++)
		EXPECT_EQ(post_srq(srq, i), 0);
	EXPECT_EQ(post_srq(srq, 16), ENOMEM) << "two are the allocators'";
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(PluginParentDomain, AllocatorsCanDecline)
{
	make_domain(true);
	answer_ = IBV_ALLOCATOR_USE_DEFAULT;
	ibv_qp *qp = create_in_domain();
	ASSERT_NE(qp, nullptr);
	EXPECT_TRUE(arrays_.empty());
	ASSERT_EQ(post_send(qp, 41), 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);

	answer_ = nullptr;
	EXPECT_EQ(create_in_domain(), nullptr);
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_EQ(create_srq(), nullptr);
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_EQ(fake_.qps, 1);
}

TEST_F(PluginParentDomain, QueuesOfAThreadDomainHaveNoLock)
{
	const uint64_t ops = IBV_QP_EX_WITH_SEND;
	ibv_td_init_attr td = {};
	td_ = ibv_alloc_td(context_, &td);
	make_domain(false);
	ibv_pd *pd = std::exchange(pd_, domain_);
	ibv_qp *qp = create_qp_ex(ops);
	pd_ = pd;
	ASSERT_NE(qp, nullptr);

	/* A second list inside the first would wait for ever. */
	ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ASSERT_EQ(post_send(qp, 1), 0);
	EXPECT_EQ(ibv_wr_complete(qpx), 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(PluginParentDomain, MayTakeMemoryThatIsNotProtected)
{
	ibv_parent_domain_init_attr attr = {};
	attr.pd = pd_;
	attr.comp_mask = 1u << 2; /* IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC */
	ibv_pd *domain = ibv_alloc_parent_domain(context_, &attr);
	ASSERT_NE(domain, nullptr);
	EXPECT_EQ(ibv_dealloc_pd(domain), 0);
}

TEST_F(PluginParentDomain, NonsenseIsRefused)
{
	ibv_parent_domain_init_attr attr = {};
	EXPECT_EQ(refused(attr), EINVAL) << "no PD";
	attr.pd = pd_;
	attr.comp_mask = 1u << 31;
	EXPECT_EQ(refused(attr), EINVAL);
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	attr.alloc = alloc;
	EXPECT_EQ(refused(attr), EINVAL) << "nothing to free with";
	ibv_td_init_attr td = {};
	td.comp_mask = 1;
	EXPECT_EQ(ibv_alloc_td(context_, &td), nullptr);
	EXPECT_EQ(errno, EINVAL);

	ibv_cq_init_attr_ex cq = {};
	cq.cqe = 4;
	cq.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	EXPECT_EQ(ibv_create_cq_ex(context_, &cq), nullptr);
	EXPECT_EQ(errno, EINVAL);
	cq.parent_domain = pd_;
	EXPECT_EQ(ibv_create_cq_ex(context_, &cq), nullptr) << "not a parent domain";
	EXPECT_EQ(errno, EINVAL);
}

} // namespace
} // namespace tern::provider::test
