// SPDX-License-Identifier: GPL-2.0-or-later
/* This file has the operations on WQs and on tables of WQs. */
#include <rdma/ib_user_ioctl_verbs.h>

#include "uverbs_fuzzer.h"

namespace tern::guest::uverbs {
namespace {

Object object_of(const tern_create_wq_resp &driver, uint32_t handle)
{
	return {.handle = handle,
	        .number = driver.wqn,
	        .key = driver.buf_key,
	        .length = driver.buf_len,
	        .record_offset = driver.record_offset};
}

int create_wq(Fuzzer &f)
{
	ib_uverbs_ex_create_wq in = {};
	ib_uverbs_ex_create_wq_resp out = {};
	tern_create_wq_resp driver = {};
	in.comp_mask = f.value(0u);
	in.wq_type = f.value(static_cast<uint32_t>(IB_UVERBS_WQT_RQ));
	in.pd_handle = f.handle(Kind::kPd);
	in.cq_handle = f.handle(Kind::kCq);
	in.max_wr = f.size(kLarge, kMaxReceives);
	in.max_sge = f.value(1u);
	in.create_flags = f.value(0u);
	const int err = f.call(Command{.number = IB_USER_VERBS_EX_CMD_CREATE_WQ,
	                               .in = part(in),
	                               .out = part(out),
	                               .driver_out = part(driver),
	                               .extended = true});
	if (!err)
		f.created(Kind::kWq, object_of(driver, out.wq_handle));
	return err;
}

int create_wq_by_ioctl(Fuzzer &f)
{
	uint32_t max_wr, max_sge, number;
	tern_create_wq_resp driver = {};
	Method method(UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE);
	method.handle(UVERBS_ATTR_CREATE_WQ_HANDLE)
	        .handle(UVERBS_ATTR_CREATE_WQ_PD_HANDLE, f.handle(Kind::kPd))
	        .in(UVERBS_ATTR_CREATE_WQ_USER_HANDLE, f.rng.next())
	        .in(UVERBS_ATTR_CREATE_WQ_TYPE, f.value(uint64_t{IB_UVERBS_WQT_RQ}))
	        .in(UVERBS_ATTR_CREATE_WQ_MAX_WR, f.size(kLarge, kMaxReceives))
	        .in(UVERBS_ATTR_CREATE_WQ_MAX_SGE, f.value(1u))
	        .in(UVERBS_ATTR_CREATE_WQ_FLAGS, f.value(0u))
	        .out(UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, max_wr)
	        .out(UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, max_sge)
	        .out(UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, number)
	        .out(UVERBS_ATTR_UHW_OUT, driver);
	/* The kernel does not ask for the CQ, although it needs one. */
	if (f.rng.chance(9, 10))
		method.handle(UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, f.handle(Kind::kCq));
	if (f.rng.chance(1, 3))
		method.handle(UVERBS_ATTR_CREATE_WQ_EVENT_FD, f.handle(Kind::kAsync));
	const int err = f.call(method);
	if (!err)
		f.created(Kind::kWq, object_of(driver, method.result(0)));
	return err;
}

int modify_wq(Fuzzer &f)
{
	ib_uverbs_ex_modify_wq in = {};
	in.attr_mask = f.value(1u); /* IB_WQ_STATE */
	in.wq_handle = f.handle(Kind::kWq);
	/* Never past ERR: ib_uverbs_ex_modify_wq() of the kernel then keeps the WQ locked, and
	 * warns when the file is closed. */
	in.wq_state = static_cast<uint32_t>(f.rng.below(3));
	return f.call(Command{
	        .number = IB_USER_VERBS_EX_CMD_MODIFY_WQ, .in = part(in), .extended = true});
}

int create_table(Fuzzer &f)
{
	struct {
		uint32_t comp_mask, log_size, handles[8]; /* ib_uverbs_ex_create_rwq_ind_table */
	} in = {};
	ib_uverbs_ex_create_rwq_ind_table_resp out = {};
	const auto log_size = static_cast<uint32_t>(f.rng.below(4));
	in.log_size = f.value(log_size);
	for (uint32_t i = 0; i < 1u << log_size; i++)
		in.handles[i] = f.handle(Kind::kWq);
	const size_t size =
	        sizeof(ib_uverbs_ex_create_rwq_ind_table) + (sizeof(uint32_t) << log_size);
	const int err = f.call(Command{.number = IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL,
	                               .in = {&in, (size + 7) & ~size_t{7}},
	                               .out = part(out),
	                               .extended = true});
	if (!err)
		f.created(Kind::kTable, {.handle = out.ind_tbl_handle});
	return err;
}

constexpr Operation kOperations[] = {
        {"create_wq", 8, create_wq, true},       {"create_wq_ioctl", 8, create_wq_by_ioctl, true},
        {"destroy_wq", 3, destroy<Kind::kWq>},   {"modify_wq", 5, modify_wq},
        {"create_table", 8, create_table, true}, {"destroy_table", 3, destroy<Kind::kTable>},
};

} // namespace

std::span<const Operation> wq_operations()
{
	return kOperations;
}

} // namespace tern::guest::uverbs
