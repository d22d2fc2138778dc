// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Holds private_abi.h against the installed libibverbs: a context gets a table of our stubs by
 * verbs_set_ops(), and each public function must then arrive in the stub of its name.
 */
#include "private_abi.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <gtest/gtest.h>
#include <rdma/ib_user_ioctl_verbs.h>

namespace tern::private_abi {
namespace {

std::string called;
int access_of_mr;

int stub(const char *name)
{
	called = name;
	return 0;
}

const ContextOps kStubs = [] {
	ContextOps ops = {};
	ops.alloc_mw = [](ibv_pd *, ibv_mw_type) -> ibv_mw * {
		stub("alloc_mw");
		return nullptr;
	};
	ops.alloc_dm = [](ibv_context *, ibv_alloc_dm_attr *) -> ibv_dm * {
		stub("alloc_dm");
		return nullptr;
	};
	ops.free_dm = [](ibv_dm *) { return stub("free_dm"); };
	ops.reg_dm_mr = [](ibv_pd *, ibv_dm *, uint64_t, size_t, unsigned) -> ibv_mr * {
		stub("reg_dm_mr");
		return nullptr;
	};
	ops.advise_mr = [](ibv_pd *, ibv_advise_mr_advice, uint32_t, ibv_sge *, uint32_t) {
		return stub("advise_mr");
	};
	ops.reg_dmabuf_mr = [](ibv_pd *, uint64_t, size_t, uint64_t, int, int) -> ibv_mr * {
		stub("reg_dmabuf_mr");
		return nullptr;
	};
	ops.rereg_mr = [](VerbsMr *, int, ibv_pd *, void *, size_t, int) {
		return stub("rereg_mr");
	};
	ops.import_dm = [](ibv_context *, uint32_t) -> ibv_dm * {
		stub("import_dm");
		return nullptr;
	};
	ops.import_mr = [](ibv_pd *, uint32_t) -> ibv_mr * {
		stub("import_mr");
		return nullptr;
	};
	ops.import_pd = [](ibv_context *, uint32_t) -> ibv_pd * {
		stub("import_pd");
		return nullptr;
	};
	ops.unimport_dm = [](ibv_dm *) { stub("unimport_dm"); };
	ops.unimport_mr = [](ibv_mr *) { stub("unimport_mr"); };
	ops.unimport_pd = [](ibv_pd *) { stub("unimport_pd"); };
	ops.attach_mcast = [](ibv_qp *, const ibv_gid *, uint16_t) { return stub("attach_mcast"); };
	ops.bind_mw = [](ibv_qp *, ibv_mw *, ibv_mw_bind *) { return stub("bind_mw"); };
	ops.close_xrcd = [](ibv_xrcd *) { return stub("close_xrcd"); };
	ops.create_ah = [](ibv_pd *, ibv_ah_attr *) -> ibv_ah * {
		stub("create_ah");
		return nullptr;
	};
	ops.create_flow = [](ibv_qp *, ibv_flow_attr *) -> ibv_flow * {
		stub("create_flow");
		return nullptr;
	};
	ops.create_srq = [](ibv_pd *, ibv_srq_init_attr *) -> ibv_srq * {
		stub("create_srq");
		return nullptr;
	};
	ops.create_srq_ex = [](ibv_context *, ibv_srq_init_attr_ex *) -> ibv_srq * {
		stub("create_srq_ex");
		return nullptr;
	};
	ops.dealloc_mw = [](ibv_mw *) { return stub("dealloc_mw"); };
	ops.destroy_ah = [](ibv_ah *) { return stub("destroy_ah"); };
	ops.destroy_flow = [](ibv_flow *) { return stub("destroy_flow"); };
	ops.destroy_srq = [](ibv_srq *) { return stub("destroy_srq"); };
	ops.detach_mcast = [](ibv_qp *, const ibv_gid *, uint16_t) { return stub("detach_mcast"); };
	ops.get_srq_num = [](ibv_srq *, uint32_t *) { return stub("get_srq_num"); };
	ops.modify_srq = [](ibv_srq *, ibv_srq_attr *, int) { return stub("modify_srq"); };
	ops.open_qp = [](ibv_context *, ibv_qp_open_attr *) -> ibv_qp * {
		stub("open_qp");
		return nullptr;
	};
	ops.open_xrcd = [](ibv_context *, ibv_xrcd_init_attr *) -> ibv_xrcd * {
		stub("open_xrcd");
		return nullptr;
	};
	ops.post_srq_ops = [](ibv_srq *, ibv_ops_wr *, ibv_ops_wr **) {
		return stub("post_srq_ops");
	};
	ops.post_srq_recv = [](ibv_srq *, ibv_recv_wr *, ibv_recv_wr **) {
		return stub("post_srq_recv");
	};
	ops.query_srq = [](ibv_srq *, ibv_srq_attr *) { return stub("query_srq"); };
	ops.alloc_pd = [](ibv_context *) -> ibv_pd * {
		stub("alloc_pd");
		return nullptr;
	};
	ops.create_cq = [](ibv_context *, int, ibv_comp_channel *, int) -> ibv_cq * {
		stub("create_cq");
		return nullptr;
	};
	ops.alloc_parent_domain = [](ibv_context *, ibv_parent_domain_init_attr *) -> ibv_pd * {
		stub("alloc_parent_domain");
		return nullptr;
	};
	ops.alloc_td = [](ibv_context *, ibv_td_init_attr *) -> ibv_td * {
		stub("alloc_td");
		return nullptr;
	};
	ops.dealloc_td = [](ibv_td *) { return stub("dealloc_td"); };
	ops.modify_cq = [](ibv_cq *, ibv_modify_cq_attr *) { return stub("modify_cq"); };
	ops.resize_cq = [](ibv_cq *, int) { return stub("resize_cq"); };
	ops.create_wq = [](ibv_context *, ibv_wq_init_attr *) -> ibv_wq * {
		stub("create_wq");
		return nullptr;
	};
	ops.modify_wq = [](ibv_wq *, ibv_wq_attr *) { return stub("modify_wq"); };
	ops.destroy_wq = [](ibv_wq *) { return stub("destroy_wq"); };
	ops.create_rwq_ind_table = [](ibv_context *,
	                              ibv_rwq_ind_table_init_attr *) -> ibv_rwq_ind_table * {
		stub("create_rwq_ind_table");
		return nullptr;
	};
	ops.destroy_rwq_ind_table = [](ibv_rwq_ind_table *) {
		return stub("destroy_rwq_ind_table");
	};
	ops.query_rt_values = [](ibv_context *, ibv_values_ex *) {
		return stub("query_rt_values");
	};
	ops.create_qp = [](ibv_pd *, ibv_qp_init_attr *) -> ibv_qp * {
		stub("create_qp");
		return nullptr;
	};
	ops.create_qp_ex = [](ibv_context *, ibv_qp_init_attr_ex *) -> ibv_qp * {
		stub("create_qp_ex");
		return nullptr;
	};
	ops.dealloc_pd = [](ibv_pd *) { return stub("dealloc_pd"); };
	ops.dereg_mr = [](VerbsMr *) { return stub("dereg_mr"); };
	ops.destroy_cq = [](ibv_cq *) { return stub("destroy_cq"); };
	ops.destroy_qp = [](ibv_qp *) { return stub("destroy_qp"); };
	ops.free_context = [](ibv_context *) { stub("free_context"); };
	ops.modify_qp_rate_limit = [](ibv_qp *, ibv_qp_rate_limit_attr *) {
		return stub("modify_qp_rate_limit");
	};
	ops.create_counters = [](ibv_context *, ibv_counters_init_attr *) -> ibv_counters * {
		stub("create_counters");
		return nullptr;
	};
	ops.attach_counters_point_flow = [](ibv_counters *, ibv_counter_attach_attr *, ibv_flow *) {
		return stub("attach_counters_point_flow");
	};
	ops.read_counters = [](ibv_counters *, uint64_t *, uint32_t, uint32_t) {
		return stub("read_counters");
	};
	ops.destroy_counters = [](ibv_counters *) { return stub("destroy_counters"); };
	ops.modify_qp = [](ibv_qp *, ibv_qp_attr *, int) { return stub("modify_qp"); };
	ops.poll_cq = [](ibv_cq *, int, ibv_wc *) { return stub("poll_cq"); };
	ops.post_recv = [](ibv_qp *, ibv_recv_wr *, ibv_recv_wr **) { return stub("post_recv"); };
	ops.post_send = [](ibv_qp *, ibv_send_wr *, ibv_send_wr **) { return stub("post_send"); };
	ops.query_device_ex = [](ibv_context *, const ibv_query_device_ex_input *,
	                         ibv_device_attr_ex *, size_t) { return stub("query_device_ex"); };
	ops.query_port = [](ibv_context *, uint8_t, ibv_port_attr *) { return stub("query_port"); };
	TERN_SINCE_65(ops.query_port_speed = [](ibv_context *, uint32_t, uint64_t *) {
		return stub("query_port_speed");
	};)
	ops.query_qp = [](ibv_qp *, ibv_qp_attr *, int, ibv_qp_init_attr *) {
		return stub("query_qp");
	};
	ops.reg_mr = [](ibv_pd *, void *, size_t, uint64_t, int access) -> ibv_mr * {
		access_of_mr = access;
		stub("reg_mr");
		return nullptr;
	};
	ops.req_notify_cq = [](ibv_cq *, int) { return stub("req_notify_cq"); };
	return ops;
}();

/* create_cq_ex is offered in contexts that libibverbs has opened: see plugin_cq_test.cc. */

/* A context as verbs_init_context() would leave it, with more than enough private room. */
class PrivateAbi : public ::testing::Test {
protected:
	PrivateAbi()
	{
		verbs_.priv = reinterpret_cast<verbs_ex_private *>(private_);
		verbs_.sz = sizeof(verbs_);
		verbs_.context.device = &device_.device;
		verbs_.context.abi_compat = reinterpret_cast<void *>(UINTPTR_MAX);
		verbs_set_ops(&verbs_, &kStubs);
		pd_.context = cq_.context = qp_.context = mr_.mr.context = &verbs_.context;
		dm_.context = ah_.context = srq_.context = mw_.context = xrcd_.context =
		        flow_.context = counters_.context = &verbs_.context;
		td_.context = wq_.context = table_.context = &verbs_.context;
		mw_.type = IBV_MW_TYPE_1;
		mw_.pd = &pd_;
		qp_.pd = &pd_;
		mr_.mr.pd = &pd_;
		pthread_mutex_init(&cq_.mutex, nullptr);
		pthread_mutex_init(&qp_.mutex, nullptr);
	}

	alignas(16) char private_[64 << 10] = {};
	VerbsDevice device_{};
	verbs_context verbs_{};
	ibv_pd pd_{};
	ibv_td td_{};
	ibv_wq wq_{};
	ibv_rwq_ind_table table_{};
	ibv_cq cq_{};
	ibv_qp qp_{};
	VerbsMr mr_{};
	ibv_dm dm_{};
	ibv_ah ah_{};
	ibv_srq srq_{};
	ibv_mw mw_{};
	ibv_xrcd xrcd_{};
	ibv_flow flow_{};
	ibv_counters counters_{};
};

#define EXPECT_CALLS(name, expression)                                                             \
	do {                                                                                       \
		called.clear();                                                                    \
		(void)(expression);                                                                \
		EXPECT_EQ(called, name);                                                           \
	} while (0)

TEST_F(PrivateAbi, EveryVerbArrivesWhereWePutIt)
{
	ibv_context *context = &verbs_.context;
	ibv_qp_init_attr init = {};
	ibv_qp_init_attr_ex init_ex = {};
	ibv_qp_attr attr = {};
	ibv_device_attr_ex device = {};
	ibv_port_attr port = {};
	ibv_send_wr *bad_send;
	ibv_recv_wr *bad_recv;
	char buffer[16];

	EXPECT_CALLS("alloc_pd", ibv_alloc_pd(context));
	EXPECT_CALLS("dealloc_pd", ibv_dealloc_pd(&pd_));
	ibv_td_init_attr td = {};
	ibv_parent_domain_init_attr domain = {};
	EXPECT_CALLS("alloc_td", ibv_alloc_td(context, &td));
	EXPECT_CALLS("dealloc_td", ibv_dealloc_td(&td_));
	EXPECT_CALLS("alloc_parent_domain", ibv_alloc_parent_domain(context, &domain));
	EXPECT_CALLS("reg_mr", ibv_reg_mr(&pd_, buffer, sizeof(buffer), 0));
	EXPECT_CALLS("dereg_mr", ibv_dereg_mr(&mr_.mr));
	EXPECT_CALLS("create_cq", ibv_create_cq(context, 1, nullptr, nullptr, 0));
	EXPECT_CALLS("poll_cq", ibv_poll_cq(&cq_, 0, nullptr));
	EXPECT_CALLS("req_notify_cq", ibv_req_notify_cq(&cq_, 0));
	ibv_modify_cq_attr modify_cq = {};
	EXPECT_CALLS("modify_cq", ibv_modify_cq(&cq_, &modify_cq));
	EXPECT_CALLS("resize_cq", ibv_resize_cq(&cq_, 1));
	EXPECT_CALLS("destroy_cq", ibv_destroy_cq(&cq_));
	EXPECT_CALLS("create_qp", ibv_create_qp(&pd_, &init));
	init_ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	EXPECT_CALLS("create_qp_ex", ibv_create_qp_ex(context, &init_ex));
	EXPECT_CALLS("modify_qp", ibv_modify_qp(&qp_, &attr, 0));
	ibv_qp_rate_limit_attr rate = {};
	EXPECT_CALLS("modify_qp_rate_limit", ibv_modify_qp_rate_limit(&qp_, &rate));
	EXPECT_CALLS("query_qp", ibv_query_qp(&qp_, &attr, 0, &init));
	EXPECT_CALLS("post_send", ibv_post_send(&qp_, nullptr, &bad_send));
	EXPECT_CALLS("post_recv", ibv_post_recv(&qp_, nullptr, &bad_recv));
	EXPECT_CALLS("destroy_qp", ibv_destroy_qp(&qp_));
	EXPECT_CALLS("query_device_ex", ibv_query_device_ex(context, nullptr, &device));
	EXPECT_CALLS("query_port", ibv_query_port(context, 1, &port));
	TERN_SINCE_65(uint64_t speed;
	              EXPECT_CALLS("query_port_speed", ibv_query_port_speed(context, 1, &speed));)
	ibv_values_ex values = {};
	EXPECT_CALLS("query_rt_values", ibv_query_rt_values_ex(context, &values));

	ibv_alloc_dm_attr dm = {};
	EXPECT_CALLS("alloc_dm", ibv_alloc_dm(context, &dm));
	EXPECT_CALLS("free_dm", ibv_free_dm(&dm_));
	EXPECT_CALLS("reg_dm_mr", ibv_reg_dm_mr(&pd_, &dm_, 0, 0, 0));
	EXPECT_CALLS("reg_dmabuf_mr", ibv_reg_dmabuf_mr(&pd_, 0, 0, 0, -1, 0));
	EXPECT_CALLS("advise_mr",
	             ibv_advise_mr(&pd_, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, nullptr, 0));
	mr_.type = 0; /* as ibv_cmd_reg_mr() sets it */
	EXPECT_CALLS("rereg_mr", ibv_rereg_mr(&mr_.mr, 0, &pd_, nullptr, 0, 0));
	EXPECT_CALLS("import_dm", ibv_import_dm(context, 1));
	EXPECT_CALLS("import_mr", ibv_import_mr(&pd_, 1));
	EXPECT_CALLS("import_pd", ibv_import_pd(context, 1));
	EXPECT_CALLS("unimport_dm", ibv_unimport_dm(&dm_));
	EXPECT_CALLS("unimport_mr", ibv_unimport_mr(&mr_.mr));
	EXPECT_CALLS("unimport_pd", ibv_unimport_pd(&pd_));

	ibv_gid gid = {.raw = {0xff}};
	ibv_ah_attr ah = {};
	EXPECT_CALLS("create_ah", ibv_create_ah(&pd_, &ah));
	EXPECT_CALLS("destroy_ah", ibv_destroy_ah(&ah_));
	EXPECT_CALLS("attach_mcast", ibv_attach_mcast(&qp_, &gid, 0));
	EXPECT_CALLS("detach_mcast", ibv_detach_mcast(&qp_, &gid, 0));

	ibv_srq_init_attr srq = {};
	ibv_srq_init_attr_ex srq_ex = {};
	ibv_srq_attr srq_attr = {};
	uint32_t srq_num;
	EXPECT_CALLS("create_srq", ibv_create_srq(&pd_, &srq));
	srq_ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	srq_ex.srq_type = IBV_SRQT_XRC;
	EXPECT_CALLS("create_srq_ex", ibv_create_srq_ex(context, &srq_ex));
	EXPECT_CALLS("modify_srq", ibv_modify_srq(&srq_, &srq_attr, IBV_SRQ_LIMIT));
	EXPECT_CALLS("query_srq", ibv_query_srq(&srq_, &srq_attr));
	EXPECT_CALLS("get_srq_num", ibv_get_srq_num(&srq_, &srq_num));
	ibv_ops_wr *bad_ops;
	EXPECT_CALLS("post_srq_ops", ibv_post_srq_ops(&srq_, nullptr, &bad_ops));
	EXPECT_CALLS("post_srq_recv", ibv_post_srq_recv(&srq_, nullptr, &bad_recv));
	EXPECT_CALLS("destroy_srq", ibv_destroy_srq(&srq_));

	ibv_xrcd_init_attr xrcd = {};
	ibv_qp_open_attr open = {};
	EXPECT_CALLS("open_xrcd", ibv_open_xrcd(context, &xrcd));
	EXPECT_CALLS("close_xrcd", ibv_close_xrcd(&xrcd_));
	EXPECT_CALLS("open_qp", ibv_open_qp(context, &open));

	ibv_wq_init_attr wq = {};
	ibv_wq_attr wq_attr = {};
	ibv_rwq_ind_table_init_attr table = {};
	EXPECT_CALLS("create_wq", ibv_create_wq(context, &wq));
	EXPECT_CALLS("modify_wq", ibv_modify_wq(&wq_, &wq_attr));
	EXPECT_CALLS("destroy_wq", ibv_destroy_wq(&wq_));
	EXPECT_CALLS("create_rwq_ind_table", ibv_create_rwq_ind_table(context, &table));
	EXPECT_CALLS("destroy_rwq_ind_table", ibv_destroy_rwq_ind_table(&table_));

	ibv_flow_attr flow = {};
	EXPECT_CALLS("create_flow", ibv_create_flow(&qp_, &flow));
	EXPECT_CALLS("destroy_flow", ibv_destroy_flow(&flow_));
	ibv_counters_init_attr counters = {};
	ibv_counter_attach_attr attach = {};
	EXPECT_CALLS("create_counters", ibv_create_counters(context, &counters));
	EXPECT_CALLS("attach_counters_point_flow",
	             ibv_attach_counters_point_flow(&counters_, &attach, nullptr));
	EXPECT_CALLS("read_counters", ibv_read_counters(&counters_, nullptr, 0, 0));
	EXPECT_CALLS("destroy_counters", ibv_destroy_counters(&counters_));

	ibv_mw_bind bind = {};
	EXPECT_CALLS("alloc_mw", ibv_alloc_mw(&pd_, IBV_MW_TYPE_1));
	EXPECT_CALLS("bind_mw", ibv_bind_mw(&qp_, &mw_, &bind));
	EXPECT_CALLS("dealloc_mw", ibv_dealloc_mw(&mw_));
	EXPECT_CALLS("free_context", ibv_close_device(context));
}

/* libibverbs lets optional rights through when the device's core_support says so. */
TEST_F(PrivateAbi, TheDeviceEndsWhereLibibverbsThinks)
{
	char buffer[16];
	device_.core_support = 0;
	ibv_reg_mr_iova2(&pd_, buffer, sizeof(buffer), 0, IBV_ACCESS_RELAXED_ORDERING);
	EXPECT_EQ(access_of_mr, 0);
	device_.core_support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
	ibv_reg_mr_iova2(&pd_, buffer, sizeof(buffer), 0, IBV_ACCESS_RELAXED_ORDERING);
	EXPECT_EQ(access_of_mr, IBV_ACCESS_RELAXED_ORDERING);
}

/* Which QPs have the extended calls is told by a bit of ours behind the public struct. */
TEST_F(PrivateAbi, TheExtendedQpIsMarkedWhereLibibverbsLooks)
{
	VerbsQp qp = {};
	EXPECT_EQ(ibv_qp_to_qp_ex(&qp.qp), nullptr);
	qp.comp_mask = kVerbsQpEx;
	EXPECT_EQ(ibv_qp_to_qp_ex(&qp.qp), &qp.qp_ex);
}

} // namespace
} // namespace tern::private_abi
