// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The verbs that libibverbs calls, by file. The ibv_* manual pages state their contracts. */
#pragma once

#include "private_abi.h"

namespace tern::provider {

/* verbs_query.cc */
int query_device_ex(ibv_context *context, const ibv_query_device_ex_input *input,
                    ibv_device_attr_ex *attr, size_t attr_size);
int query_port(ibv_context *context, uint8_t port_num, ibv_port_attr *attr);
int query_rt_values(ibv_context *context, ibv_values_ex *values);

/* verbs_pd.cc */
ibv_pd *alloc_pd(ibv_context *context);
ibv_pd *import_pd(ibv_context *context, uint32_t handle);
void unimport_pd(ibv_pd *pd);
int dealloc_pd(ibv_pd *pd);
ibv_td *alloc_td(ibv_context *context, ibv_td_init_attr *attr);
int dealloc_td(ibv_td *td);
ibv_pd *alloc_parent_domain(ibv_context *context, ibv_parent_domain_init_attr *attr);

/* verbs_mr.cc */
ibv_mr *reg_mr(ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access);
ibv_mr *reg_dmabuf_mr(ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                      int access);
ibv_mr *alloc_null_mr(ibv_pd *pd);
int rereg_mr(private_abi::VerbsMr *mr, int flags, ibv_pd *pd, void *addr, size_t length,
             int access);
int dereg_mr(private_abi::VerbsMr *mr);
ibv_mr *import_mr(ibv_pd *pd, uint32_t handle);
void unimport_mr(ibv_mr *mr);

/* verbs_dm.cc */
ibv_dm *alloc_dm(ibv_context *context, ibv_alloc_dm_attr *attr);
int free_dm(ibv_dm *dm);
TERN_SINCE_65(int dm_export_dmabuf_fd(ibv_dm *dm);)
ibv_dm *import_dm(ibv_context *context, uint32_t handle);
void unimport_dm(ibv_dm *dm);
ibv_mr *reg_dm_mr(ibv_pd *pd, ibv_dm *dm, uint64_t offset, size_t length, unsigned access);

/* verbs_cq.cc */
ibv_cq *create_cq(ibv_context *context, int cqe, ibv_comp_channel *channel, int comp_vector);
ibv_cq_ex *create_cq_ex(ibv_context *context, ibv_cq_init_attr_ex *attr);
int destroy_cq(ibv_cq *cq);
int resize_cq(ibv_cq *cq, int cqe);
int modify_cq(ibv_cq *cq, ibv_modify_cq_attr *attr);
int poll_cq(ibv_cq *cq, int num_entries, ibv_wc *wc);
int req_notify_cq(ibv_cq *cq, int solicited_only);

/* verbs_ah.cc */
ibv_ah *create_ah(ibv_pd *pd, ibv_ah_attr *attr);
int destroy_ah(ibv_ah *ah);

/* verbs_mw.cc */
ibv_mw *alloc_mw(ibv_pd *pd, ibv_mw_type type);
int dealloc_mw(ibv_mw *mw);
int bind_mw(ibv_qp *qp, ibv_mw *mw, ibv_mw_bind *bind);

/* verbs_xrcd.cc */
ibv_xrcd *open_xrcd(ibv_context *context, ibv_xrcd_init_attr *attr);
int close_xrcd(ibv_xrcd *xrcd);

/* verbs_srq.cc */
ibv_srq *create_srq(ibv_pd *pd, ibv_srq_init_attr *attr);
ibv_srq *create_srq_ex(ibv_context *context, ibv_srq_init_attr_ex *attr);
int modify_srq(ibv_srq *srq, ibv_srq_attr *attr, int attr_mask);
int query_srq(ibv_srq *srq, ibv_srq_attr *attr);
int get_srq_num(ibv_srq *srq, uint32_t *number);
int destroy_srq(ibv_srq *srq);
int post_srq_ops(ibv_srq *srq, ibv_ops_wr *wr, ibv_ops_wr **bad_wr);
int post_srq_recv(ibv_srq *srq, ibv_recv_wr *wr, ibv_recv_wr **bad_wr);

/* verbs_flow.cc */
ibv_flow *create_flow(ibv_qp *qp, ibv_flow_attr *attr);
int destroy_flow(ibv_flow *flow);

/* verbs_counters.cc */
ibv_counters *create_counters(ibv_context *context, ibv_counters_init_attr *attr);
int attach_counters_point_flow(ibv_counters *counters, ibv_counter_attach_attr *attr,
                               ibv_flow *flow);
int read_counters(ibv_counters *counters, uint64_t *values, uint32_t count, uint32_t flags);
int destroy_counters(ibv_counters *counters);

#if TERN_IBVERBS_PRIVATE == 65
/* verbs_comp_cntr.cc */
ibv_comp_cntr *create_comp_cntr(ibv_context *context, ibv_comp_cntr_init_attr *attr);
int destroy_comp_cntr(ibv_comp_cntr *counter);
int qp_attach_comp_cntr(ibv_qp *qp, ibv_comp_cntr *counter, ibv_qp_attach_comp_cntr_attr *attr);
int read_comp_cntr(ibv_comp_cntr *counter, uint64_t *value);
int read_err_comp_cntr(ibv_comp_cntr *counter, uint64_t *value);
#endif

/* verbs_wq.cc */
ibv_wq *create_wq(ibv_context *context, ibv_wq_init_attr *attr);
int modify_wq(ibv_wq *wq, ibv_wq_attr *attr);
int destroy_wq(ibv_wq *wq);
ibv_rwq_ind_table *create_rwq_ind_table(ibv_context *context, ibv_rwq_ind_table_init_attr *attr);
int destroy_rwq_ind_table(ibv_rwq_ind_table *table);

/* verbs_qp.cc */
ibv_qp *open_qp(ibv_context *context, ibv_qp_open_attr *attr);
ibv_qp *create_qp(ibv_pd *pd, ibv_qp_init_attr *attr);
ibv_qp *create_qp_ex(ibv_context *context, ibv_qp_init_attr_ex *attr);
int modify_qp(ibv_qp *qp, ibv_qp_attr *attr, int attr_mask);
int modify_qp_rate_limit(ibv_qp *qp, ibv_qp_rate_limit_attr *attr);
int query_qp(ibv_qp *qp, ibv_qp_attr *attr, int attr_mask, ibv_qp_init_attr *init_attr);
int destroy_qp(ibv_qp *qp);
int post_send(ibv_qp *qp, ibv_send_wr *wr, ibv_send_wr **bad_wr);
int post_recv(ibv_qp *qp, ibv_recv_wr *wr, ibv_recv_wr **bad_wr);

} // namespace tern::provider
