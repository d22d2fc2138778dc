// SPDX-License-Identifier: GPL-2.0-or-later
/* FLUSH as a program posts it that links with libtern.so.1. */
#include <cerrno>
#include <memory>

#include <dlfcn.h>

#include "plugin_fixture.h"
#include "terndv.h"

namespace tern::provider::test {
namespace {

/* The library is a plugin here, so what it exports is looked up. */
class PluginFlush : public PluginQp {
protected:
	struct Close {
		void operator()(void *handle) const { dlclose(handle); }
	};
	using Library = std::unique_ptr<void, Close>;

	PluginFlush() : library_(dlopen(TERN_PLUGIN TERN_PROVIDER_SUFFIX, RTLD_NOW | RTLD_NOLOAD))
	{
		wr_flush_ = function<decltype(terndv_wr_flush)>("terndv_wr_flush");
		is_supported_ = function<decltype(terndv_is_supported)>("terndv_is_supported");
		flushing_ = create_qp_ex(TERNDV_QP_EX_WITH_FLUSH);
		memory_ = fake_.last_qp;
	}
	~PluginFlush() override
	{
		if (flushing_) {
			EXPECT_EQ(ibv_destroy_qp(flushing_), 0);
		}
	}

	template <class Function>
	Function *function(const char *name) const
	{
		void *symbol = library_ ? dlvsym(library_.get(), name, "TERN_1.0") : nullptr;
		return reinterpret_cast<Function *>(symbol);
	}
	int flush(ibv_qp *qp, size_t length, uint8_t type, uint8_t level)
	{
		ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
		ibv_wr_start(ex);
		ex->wr_id = 9;
		ex->wr_flags = IBV_SEND_SIGNALED;
		wr_flush_(ex, 0x15, 0x20, length, type, level);
		return ibv_wr_complete(ex);
	}
	template <class Segment>
	Segment &segment(size_t n)
	{
		return fake_.at<Segment>(memory_.buf_key)[n];
	}

	Library library_;
	decltype(terndv_wr_flush) *wr_flush_;
	decltype(terndv_is_supported) *is_supported_;
	ibv_qp *flushing_ = nullptr;
	tern_create_qp_resp memory_{};
};

TEST_F(PluginFlush, TheLibraryIsThePlugin)
{
	ASSERT_TRUE(library_) << dlerror();
	ASSERT_TRUE(wr_flush_ && is_supported_);
	EXPECT_TRUE(is_supported_(context_->device));
}

TEST_F(PluginFlush, IsPostedAndCompletes)
{
	ASSERT_NE(flushing_, nullptr);
	ASSERT_EQ(flush(flushing_, size_t{1} << 31, TERNDV_FLUSH_GLOBAL, TERNDV_FLUSH_RANGE), 0);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(0).opcode, TERN_OP_FLUSH);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(0).segs, 3);
	EXPECT_EQ(segment<tern_hw_raddr_seg>(1).addr.get(), 0x20u);
	EXPECT_EQ(segment<tern_hw_raddr_seg>(1).rkey.get(), 0x15u);
	EXPECT_EQ(segment<tern_hw_flush_seg>(2).length.get(), 1u << 31);
	EXPECT_EQ(segment<tern_hw_flush_seg>(2).type, TERN_FLUSH_GLOBAL);
	EXPECT_EQ(segment<tern_hw_flush_seg>(2).level, TERN_FLUSH_RANGE);
	EXPECT_EQ(fake_.doorbell(TERN_DB_SQ), flushing_->qp_num | uint64_t{1} << 32);

	complete(send_cq_memory_, 0, flushing_->qp_num, TERN_OP_FLUSH, 0);
	ibv_wc wc;
	ASSERT_EQ(ibv_poll_cq(send_cq_, 1, &wc), 1);
	EXPECT_EQ(wc.wr_id, 9u);
	EXPECT_EQ(int{wc.opcode}, TERNDV_WC_FLUSH);
}

/* Of a whole region, however long it is, no range is told. */
TEST_F(PluginFlush, OfAWholeRegion)
{
	ASSERT_EQ(flush(flushing_, size_t{1} << 40, TERNDV_FLUSH_GLOBAL | TERNDV_FLUSH_PERSISTENT,
	                TERNDV_FLUSH_MR),
	          0);
	EXPECT_EQ(segment<tern_hw_flush_seg>(2).length.get(), 0u);
	EXPECT_EQ(segment<tern_hw_flush_seg>(2).type, TERN_FLUSH_GLOBAL | TERN_FLUSH_PERSISTENT);
	EXPECT_EQ(segment<tern_hw_flush_seg>(2).level, TERN_FLUSH_MR);
}

TEST_F(PluginFlush, ArgumentsThatCannotBe)
{
	EXPECT_EQ(flush(flushing_, (size_t{1} << 31) + 1, TERNDV_FLUSH_GLOBAL, TERNDV_FLUSH_RANGE),
	          EINVAL);
	EXPECT_EQ(flush(flushing_, 8, 0, TERNDV_FLUSH_RANGE), EINVAL);
	EXPECT_EQ(flush(flushing_, 8, 4, TERNDV_FLUSH_RANGE), EINVAL);
	EXPECT_EQ(flush(flushing_, 8, TERNDV_FLUSH_GLOBAL, 2), EINVAL);
	EXPECT_EQ(flush(flushing_, 8, TERNDV_FLUSH_GLOBAL, TERNDV_FLUSH_RANGE), 0);
}

TEST_F(PluginFlush, TakesNoData)
{
	ibv_qp_ex *ex = ibv_qp_to_qp_ex(flushing_);
	ibv_wr_start(ex);
	wr_flush_(ex, 0x15, 0x20, 8, TERNDV_FLUSH_GLOBAL, TERNDV_FLUSH_RANGE);
	ibv_wr_set_sge(ex, 1, 2, 8);
	EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
}

TEST_F(PluginFlush, OnlyWhereItWasAskedFor)
{
	ibv_qp *plain = create_qp_ex(IBV_QP_EX_WITH_SEND);
	ASSERT_NE(plain, nullptr);
	EXPECT_EQ(flush(plain, 8, TERNDV_FLUSH_GLOBAL, TERNDV_FLUSH_RANGE), EINVAL);
	EXPECT_EQ(ibv_destroy_qp(plain), 0);
}

TEST_F(Plugin, NoFlushWithoutTheCapability)
{
	fake_.caps &= ~TERN_CAP_FLUSH;
	ibv_context *context = open();
	ibv_pd *pd = ibv_alloc_pd(context);
	ibv_cq *cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
	ibv_qp_init_attr_ex attr = {};
	attr.send_cq = attr.recv_cq = cq;
	attr.qp_type = IBV_QPT_RC;
	attr.cap = {8, 8, 1, 1, 0};
	attr.pd = pd;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = TERNDV_QP_EX_WITH_FLUSH;
	EXPECT_EQ(ibv_create_qp_ex(context, &attr), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(context), 0);
}

} // namespace
} // namespace tern::provider::test
