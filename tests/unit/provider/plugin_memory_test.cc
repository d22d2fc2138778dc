// SPDX-License-Identifier: GPL-2.0-or-later
/* Device memory, imported objects, and regions that change: the plugin through libibverbs. */
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>

#include "plugin_fixture.h"

namespace tern::provider::test {
namespace {

class PluginMemory : public PluginQp {
protected:
	ibv_dm *alloc(size_t length, uint32_t comp_mask = 0)
	{
		ibv_alloc_dm_attr attr = {
		        .length = length, .log_align_req = 3, .comp_mask = comp_mask};
		return ibv_alloc_dm(context_, &attr);
	}
};

TEST_F(PluginMemory, DeviceMemoryIsMapped)
{
	ibv_dm *dm = alloc(6000);
	ASSERT_NE(dm, nullptr);
	std::array<char, 100> out, in{};
	out.fill('x');
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 5900, out.data(), out.size()), 0);
	EXPECT_EQ(std::memcmp(fake_.memory(fake_.dm_key + 5900), out.data(), out.size()), 0);
	EXPECT_EQ(ibv_memcpy_from_dm(in.data(), dm, 5900, in.size()), 0);
	EXPECT_EQ(in, out);
	EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(PluginMemory, CopiesStayInDeviceMemory)
{
	ibv_dm *dm = alloc(6000);
	ASSERT_NE(dm, nullptr);
	char bytes[8] = {};
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 2, bytes, 4), EINVAL);
	EXPECT_EQ(ibv_memcpy_from_dm(bytes, dm, 0, 3), EINVAL);
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 5996, bytes, 8), EFAULT);
	EXPECT_EQ(ibv_memcpy_from_dm(bytes, dm, 6004, 0), EFAULT);
	EXPECT_EQ(ibv_memcpy_from_dm(bytes, dm, ~uint64_t{3}, 8), EFAULT);
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 6000, bytes, 0), 0);
	EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(PluginMemory, DeviceMemoryThatCannotBe)
{
	EXPECT_EQ(alloc(64, 1), nullptr);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(alloc(FakeUverbs::kMaxDm + 1), nullptr);
	EXPECT_EQ(errno, ENOMEM);
	/* It cannot be mapped, and is given back. */
	fake_.bad_dm_key = true;
	EXPECT_EQ(alloc(64), nullptr);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(fake_.dms, 0);
}

TEST_F(Plugin, DeviceMemoryOfCardsThatHaveNone)
{
	fake_.caps = FakeUverbs::kAllCaps & ~TERN_CAP_DM;
	ibv_context *context = open();
	ASSERT_NE(context, nullptr);
	ibv_alloc_dm_attr attr = {.length = 64, .log_align_req = 0, .comp_mask = 0};
	EXPECT_EQ(ibv_alloc_dm(context, &attr), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_EQ(ibv_close_device(context), 0);
}

TEST_F(PluginMemory, RegionsOfDeviceMemory)
{
	ibv_dm *dm = alloc(6000);
	ASSERT_NE(dm, nullptr);
	EXPECT_EQ(ibv_reg_dm_mr(pd_, dm, 0, 64, IBV_ACCESS_LOCAL_WRITE), nullptr);
	EXPECT_EQ(errno, EINVAL);
	ibv_mr *mr = ibv_reg_dm_mr(pd_, dm, 0, 64, IBV_ACCESS_ZERO_BASED);
	ASSERT_NE(mr, nullptr);
	EXPECT_EQ(mr->lkey, FakeUverbs::kMrKey);
	EXPECT_EQ(mr->length, 64u);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(PluginMemory, RegionsOfDmaBufs)
{
	ibv_mr *mr = ibv_reg_dmabuf_mr(pd_, 0x1000, 64, 0x7000, 5, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(mr, nullptr);
	EXPECT_EQ(fake_.last_dmabuf, (std::array<uint64_t, 3>{0x1000, 0x7000, 5}));
	EXPECT_EQ(mr->rkey, FakeUverbs::kMrKey);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(PluginMemory, ANullRegionIsNotInTheKernel)
{
	ibv_mr *mr = ibv_alloc_null_mr(pd_);
	ASSERT_NE(mr, nullptr);
	EXPECT_EQ(mr->lkey, uint32_t{TERN_LKEY_NULL});
	EXPECT_EQ(mr->length, SIZE_MAX);
	/* libibverbs refuses this by the type of the region. */
	EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
	          int{IBV_REREG_MR_ERR_INPUT});
	const int before = fake_.mrs;
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(fake_.mrs, before);
}

TEST_F(Plugin, NullRegionsOfCardsThatHaveNone)
{
	fake_.caps = FakeUverbs::kAllCaps & ~TERN_CAP_NULL_KEY;
	ibv_context *context = open();
	ASSERT_NE(context, nullptr);
	ibv_pd *pd = ibv_alloc_pd(context);
	EXPECT_EQ(ibv_alloc_null_mr(pd), nullptr);
	EXPECT_EQ(errno, EOPNOTSUPP);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(context), 0);
}

TEST_F(PluginMemory, RegionsChange)
{
	ibv_pd *other = ibv_alloc_pd(context_);
	ASSERT_NE(other, nullptr);
	char elsewhere[16];
	ASSERT_EQ(ibv_rereg_mr(mr_,
	                       IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |
	                               IBV_REREG_MR_CHANGE_ACCESS,
	                       other, elsewhere, sizeof(elsewhere), IBV_ACCESS_LOCAL_WRITE),
	          0);
	EXPECT_EQ(fake_.last_rereg.flags, 7u);
	EXPECT_EQ(fake_.last_rereg.start, reinterpret_cast<uintptr_t>(elsewhere));
	EXPECT_EQ(fake_.last_rereg.iova, reinterpret_cast<uintptr_t>(elsewhere));
	EXPECT_EQ(fake_.last_rereg.access, uint32_t{IBV_ACCESS_LOCAL_WRITE});
	EXPECT_EQ(mr_->pd, other);
	EXPECT_EQ(mr_->addr, elsewhere);
	fake_.fail(IB_USER_VERBS_CMD_REREG_MR, EBUSY);
	EXPECT_EQ(ibv_rereg_mr(mr_, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
	          int{IBV_REREG_MR_ERR_CMD});
	EXPECT_EQ(errno, EBUSY);
	EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(PluginMemory, AnImportedDeviceIsTheSame)
{
	ibv_dm *dm = alloc(4096);
	ASSERT_NE(dm, nullptr);
	ibv_context *imported = ibv_import_device(fcntl(context_->cmd_fd, F_DUPFD_CLOEXEC, 0));
	ASSERT_NE(imported, nullptr);
	EXPECT_EQ(imported->num_comp_vectors, 2);
	EXPECT_EQ(fake_.contexts, 1);

	ibv_pd *pd = ibv_import_pd(imported, pd_->handle);
	ASSERT_NE(pd, nullptr);
	ibv_mr *mr = ibv_import_mr(pd, mr_->handle);
	ASSERT_NE(mr, nullptr);
	EXPECT_EQ(mr->lkey, mr_->lkey);
	ibv_dm *same = ibv_import_dm(imported, dm->handle);
	ASSERT_NE(same, nullptr);
	EXPECT_EQ(same->handle, dm->handle);
	const char out[4] = {'t', 'e', 'r', 'n'};
	char in[4];
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 4092, out, sizeof(out)), 0);
	EXPECT_EQ(ibv_memcpy_from_dm(in, same, 4092, sizeof(in)), 0);
	EXPECT_EQ(std::memcmp(in, out, sizeof(in)), 0);
	EXPECT_EQ(ibv_memcpy_from_dm(in, same, 4096, sizeof(in)), EFAULT);

	EXPECT_EQ(ibv_import_pd(imported, pd_->handle + 1), nullptr);
	EXPECT_EQ(errno, ENOENT);
	EXPECT_EQ(ibv_import_mr(pd, mr_->handle + 1), nullptr);
	EXPECT_EQ(errno, ENOENT);
	EXPECT_EQ(ibv_import_dm(imported, dm->handle + 1), nullptr);
	EXPECT_EQ(errno, ENOENT);

	/* Their owner has them still. */
	ibv_unimport_dm(same);
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	EXPECT_EQ(ibv_close_device(imported), 0);
	EXPECT_EQ(fake_.dms, 1);
	EXPECT_EQ(fake_.mrs, 1);
	EXPECT_EQ(fake_.pds, 1);
	EXPECT_EQ(ibv_free_dm(dm), 0);
}

/* The import ends; the parent domain that was made of it stays. */
TEST_F(PluginMemory, AParentDomainOutlivesTheImport)
{
	ibv_pd *pd = ibv_import_pd(context_, pd_->handle);
	ASSERT_NE(pd, nullptr);
	ibv_parent_domain_init_attr attr = {};
	attr.pd = pd;
	ibv_pd *domain = ibv_alloc_parent_domain(context_, &attr);
	ASSERT_NE(domain, nullptr);
	ibv_unimport_pd(pd);
	/* Would get the memory if it were free. */
	ibv_pd *other = ibv_import_pd(context_, pd_->handle);
	EXPECT_NE(other, pd);
	EXPECT_EQ(ibv_dealloc_pd(domain), 0);
	ibv_unimport_pd(other);
}

TEST_F(PluginMemory, ImportingFailsCleanly)
{
	fake_.on_context = [](auto &resp) { resp.db_len = 0; };
	EXPECT_EQ(ibv_import_device(fcntl(context_->cmd_fd, F_DUPFD_CLOEXEC, 0)), nullptr);
	EXPECT_EQ(errno, EPROTO);
}

} // namespace
} // namespace tern::provider::test
