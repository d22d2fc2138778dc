/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One function per admin command: parameters in, result out. A command with many parameters takes
 * the hardware struct that goes to the card, so that its fields are not copied from struct to
 * struct; sparse checks the byte order. Other parameters are in the CPU's byte order.
 * A command goes to the engine of its object or of the object's parent, or to @engine. Commands of
 * the Ethernet function go to the first engine; GIDs, MAC, MTU and the parameters of congestion
 * control are set in every engine.
 * All may sleep, and fail with -EIO once the card is dead. Destroying always succeeds, except that
 * a region with windows is busy. After it the card does not use the object.
 */
#ifndef TERN_CMD_H
#define TERN_CMD_H

#include <linux/types.h>

#include "tern/tern_hw.h"

struct tern_dev;
struct tern_device_attr;
struct tern_engine;

void tern_cmd_wrong_number(struct tern_dev *tdev, u32 id);
int tern_cmd_query_device(struct tern_engine *engine, struct tern_device_attr *attr);
int tern_cmd_query_stats(struct tern_engine *engine, u32 set, dma_addr_t to, u32 count);
int tern_cmd_create_stats(struct tern_engine *engine, u32 *set);
int tern_cmd_bind_stats(struct tern_dev *tdev, u32 qpn, u32 set);
void tern_cmd_destroy_stats(struct tern_dev *tdev, u32 set);

int tern_cmd_query_congestion(struct tern_dev *tdev, u32 param, u32 *value);
int tern_cmd_set_congestion(struct tern_dev *tdev, u32 param, u32 value);

int tern_cmd_create_eq(struct tern_engine *engine, const struct tern_hw_create_eq *hw,
		       u32 *eqn);
void tern_cmd_destroy_eq(struct tern_dev *tdev, u32 eqn);
/* @db_page: of the process that owns the object, or TERN_DB_PAGE_KERNEL. */
int tern_cmd_alloc_pd(struct tern_engine *engine, u32 db_page, u32 *pdn);
void tern_cmd_dealloc_pd(struct tern_dev *tdev, u32 pdn);
int tern_cmd_create_mr(struct tern_dev *tdev, const struct tern_hw_create_mr *hw, u32 *key);
int tern_cmd_modify_mr(struct tern_dev *tdev, const struct tern_hw_modify_mr *hw);
int tern_cmd_create_fast_mr(struct tern_dev *tdev, u32 pdn, u32 *key);
int tern_cmd_destroy_mr(struct tern_dev *tdev, u32 key);
int tern_cmd_sync_mr(struct tern_dev *tdev, u32 key);
int tern_cmd_alloc_mw(struct tern_dev *tdev, u32 pdn, u8 type, u8 variant, u32 *key);
void tern_cmd_dealloc_mw(struct tern_dev *tdev, u32 key);
int tern_cmd_create_cq(struct tern_dev *tdev, const struct tern_hw_create_cq *hw, u32 *cqn);
int tern_cmd_resize_cq(struct tern_dev *tdev, const struct tern_hw_resize_cq *hw);
int tern_cmd_moderate_cq(struct tern_dev *tdev, u32 cqn, u16 count, u16 usecs);
void tern_cmd_destroy_cq(struct tern_dev *tdev, u32 cqn);
int tern_cmd_create_qp(struct tern_dev *tdev, const struct tern_hw_create_qp *hw, u32 *qpn);
int tern_cmd_modify_qp(struct tern_dev *tdev, u32 qpn, u32 mask,
		       const struct tern_hw_qp_attr *attr);
int tern_cmd_query_fault(struct tern_dev *tdev, u32 qpn, struct tern_hw_faults *faults);
int tern_cmd_resume_qp(struct tern_dev *tdev, u32 qpn, u8 requester, u8 responder);
int tern_cmd_query_qp(struct tern_dev *tdev, u32 qpn, struct tern_hw_qp_attr *attr);
void tern_cmd_destroy_qp(struct tern_dev *tdev, u32 qpn);

int tern_cmd_create_srq(struct tern_dev *tdev, const struct tern_hw_create_srq *hw,
			u32 *srqn);
int tern_cmd_resize_srq(struct tern_dev *tdev, const struct tern_hw_resize_srq *hw);
int tern_cmd_set_srq_limit(struct tern_dev *tdev, u32 srqn, u32 limit);
int tern_cmd_query_srq(struct tern_dev *tdev, u32 srqn, u32 *limit);
void tern_cmd_destroy_srq(struct tern_dev *tdev, u32 srqn);
int tern_cmd_alloc_xrcd(struct tern_engine *engine, u32 db_page, u32 *xrcdn);
void tern_cmd_dealloc_xrcd(struct tern_dev *tdev, u32 xrcdn);

int tern_cmd_create_wq(struct tern_dev *tdev, const struct tern_hw_create_wq *hw, u32 *wqn);
int tern_cmd_modify_wq(struct tern_dev *tdev, u32 wqn, u8 state);
void tern_cmd_destroy_wq(struct tern_dev *tdev, u32 wqn);
int tern_cmd_create_wq_table(struct tern_engine *engine, dma_addr_t wqns, u8 log_size, u32 *id);
void tern_cmd_destroy_wq_table(struct tern_dev *tdev, u32 id);
int tern_cmd_create_rss_qp(struct tern_dev *tdev, const struct tern_hw_create_rss_qp *hw,
			   u32 *qpn);

int tern_cmd_attach_mcast(struct tern_dev *tdev, u32 qpn, const u8 *mgid);
int tern_cmd_detach_mcast(struct tern_dev *tdev, u32 qpn, const u8 *mgid);
int tern_cmd_create_flow(struct tern_dev *tdev, const struct tern_hw_create_flow *hw, u32 *id);
void tern_cmd_destroy_flow(struct tern_dev *tdev, u32 id);
int tern_cmd_create_counters(struct tern_engine *engine, u32 db_page, u32 *id);
int tern_cmd_read_counters(struct tern_dev *tdev, u32 id, u64 *packets, u64 *bytes);
void tern_cmd_destroy_counters(struct tern_dev *tdev, u32 id);
int tern_cmd_create_comp_counter(struct tern_engine *engine,
				 const struct tern_hw_create_comp_counter *hw, u32 *id);
int tern_cmd_modify_comp_counter(struct tern_dev *tdev,
				 const struct tern_hw_modify_comp_counter *hw);
int tern_cmd_attach_comp_counter(struct tern_dev *tdev,
				 const struct tern_hw_attach_comp_counter *hw);
void tern_cmd_destroy_comp_counter(struct tern_dev *tdev, u32 id);

int tern_cmd_set_gid(struct tern_dev *tdev, const struct tern_hw_set_gid *hw);
int tern_cmd_set_mac(struct tern_dev *tdev, const u8 *mac);
int tern_cmd_set_mtu(struct tern_dev *tdev, u16 mtu);
int tern_cmd_set_eth_rss(struct tern_dev *tdev, const struct tern_hw_set_eth_rss *hw);
int tern_cmd_set_rx_mode(struct tern_dev *tdev, u32 rx_mode);

/* card_stats.c */
int tern_stats_init(struct tern_dev *tdev);
void tern_stats_exit(struct tern_dev *tdev);
int tern_stats_add(struct tern_engine *engine, u32 set, u64 *values);
int tern_stats_read(struct tern_dev *tdev, u32 set, u64 *values);

#endif
