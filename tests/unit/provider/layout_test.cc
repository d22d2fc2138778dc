// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The provider beside a libibverbs that looks for the mark of an extended QP elsewhere: rdma-core
 * 44 and 45 differ in that under one private version. This program's functions come before the
 * library's.
 */
#include "private_abi.h"

#include <cstddef>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace {

size_t mark_at;
int registered;

constexpr size_t kMarkAt = offsetof(tern::private_abi::VerbsQp, comp_mask);
static_assert(kMarkAt == sizeof(ibv_qp_ex));

} // namespace

ibv_qp_ex *ibv_qp_to_qp_ex(ibv_qp *qp)
{
	const auto *mark = reinterpret_cast<const char *>(qp) + mark_at;
	return *reinterpret_cast<const uint32_t *>(mark) & tern::private_abi::kVerbsQpEx
	               ? reinterpret_cast<ibv_qp_ex *>(qp)
	               : nullptr;
}

extern "C" void TERN_VERSIONED(verbs_register_driver_,
                               TERN_IBVERBS_PRIVATE)(const tern::private_abi::DeviceOps *ops)
{
	EXPECT_STREQ(ops->name, "tern");
	registered++;
}

namespace {

/* What the library prints when libibverbs has the mark at @at. */
std::string load(size_t at)
{
	mark_at = at;
	registered = 0;
	testing::internal::CaptureStderr();
	void *library = dlopen(TERN_PLUGIN TERN_PROVIDER_SUFFIX, RTLD_NOW);
	EXPECT_TRUE(library) << dlerror();
	if (library)
		dlclose(library);
	return testing::internal::GetCapturedStderr();
}

TEST(Layout, TheOneItWasBuiltFor)
{
	EXPECT_EQ(load(kMarkAt), "");
	EXPECT_EQ(registered, 1);
}

TEST(Layout, AnotherOneIsToldInOneLine)
{
	for (const size_t at : {kMarkAt - 8, kMarkAt + 8}) {
		const std::string said = load(at);
		EXPECT_EQ(registered, 0);
		EXPECT_NE(said.find("built for rdma-core"), std::string::npos) << said;
		EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
	}
}

} // namespace
