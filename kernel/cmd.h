/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One function per admin command: parameters in, result out, all in the CPU's byte order
 * (but for page lists, QP attributes and flows, which their makers fill in the card's).
 * A command goes to the engine of its object or of the object's parent, or to @engine. Commands of
 * the Ethernet function go to the first engine; GIDs, MAC and MTU are set in every engine.
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

struct tern_create_eq_params {
	struct tern_hw_pages pages;
	u32 vector;
	u8 log_size;
};

struct tern_create_mr_params {
	struct tern_hw_pages pages;
	u64 start;
	u64 length;
	u32 pdn;
	u8 access;
	u8 variant;
	u8 flags;
};

/* Fields that the mask does not name are zero. */
struct tern_modify_mr_params {
	u32 key;
	u8 mask;
	u8 access;
	u32 pdn;
	u64 start;
	u64 length;
	struct tern_hw_pages pages;
};

/* Memory that a QP waits for; length 0: none. */
struct tern_fault {
	u64 addr;
	u32 length;
	u32 key;
	bool write;
};

struct tern_faults {
	struct tern_fault requester;
	struct tern_fault responder;
};

struct tern_create_cq_params {
	struct tern_hw_pages pages;
	dma_addr_t record;
	u32 eqn;
	u32 db_page;
	u8 log_size;
};

struct tern_resize_cq_params {
	struct tern_hw_pages pages;
	dma_addr_t record;
	u32 cqn;
	u8 log_size;
};

struct tern_moderate_cq_params {
	u32 cqn;
	u16 count;
	u16 period;		/* us */
};

struct tern_create_qp_params {
	struct tern_hw_pages pages;
	dma_addr_t record;
	u32 rq_offset;
	u32 pdn;
	u32 send_cqn;
	u32 recv_cqn;
	u32 db_page;
	u8 type;
	u8 sq_log_size;
	u8 rq_log_size;
	u8 rq_log_stride;
	u8 flags;
	u32 srqn;
	u32 xrcdn;
};

struct tern_create_srq_params {
	struct tern_hw_pages pages;
	dma_addr_t record;
	u32 ring_offset;
	u32 pdn;
	u32 xrcdn;
	u32 cqn;
	u8 log_size;
	u8 log_stride;
	u8 flags;
	u8 log_tags;
	u8 log_tag_ops;
	u32 tag_ops_offset;
	u32 db_page;
};

struct tern_resize_srq_params {
	struct tern_hw_pages pages;
	dma_addr_t record;
	u32 srqn;
	u32 ring_offset;
	u8 log_size;
};

struct tern_create_wq_params {
	struct tern_hw_pages pages;
	dma_addr_t record;
	u32 pdn;
	u32 cqn;
	u8 log_size;
	u8 log_stride;
};

struct tern_create_rss_qp_params {
	u32 pdn;
	u32 table;
	u32 hash_fields;
	const u8 *key;		/* TERN_HASH_KEY_SIZE bytes */
};

struct tern_set_eth_rss_params {
	dma_addr_t table;
	u32 hash_fields;
	u8 log_size;
	const u8 *key;		/* TERN_HASH_KEY_SIZE bytes */
};

struct tern_alloc_mw_params {
	u32 pdn;
	u8 type;
	u8 variant;
};

struct tern_set_gid_params {
	u32 index;
	u8 type;
	u16 vlan;
	const u8 *gid;		/* not with TERN_GID_NONE */
};

int tern_cmd_query_device(struct tern_engine *engine, struct tern_device_attr *attr);
int tern_cmd_query_stats(struct tern_engine *engine, dma_addr_t to, u32 count);

int tern_cmd_create_eq(struct tern_engine *engine, const struct tern_create_eq_params *params,
		       u32 *eqn);
void tern_cmd_destroy_eq(struct tern_dev *tdev, u32 eqn);
int tern_cmd_alloc_pd(struct tern_engine *engine, u32 *pdn);
void tern_cmd_dealloc_pd(struct tern_dev *tdev, u32 pdn);
int tern_cmd_create_mr(struct tern_dev *tdev, const struct tern_create_mr_params *params, u32 *key);
int tern_cmd_modify_mr(struct tern_dev *tdev, const struct tern_modify_mr_params *params);
int tern_cmd_create_fast_mr(struct tern_dev *tdev, u32 pdn, u32 *key);
int tern_cmd_destroy_mr(struct tern_dev *tdev, u32 key);
int tern_cmd_sync_mr(struct tern_dev *tdev, u32 key);
int tern_cmd_alloc_mw(struct tern_dev *tdev, const struct tern_alloc_mw_params *params, u32 *key);
void tern_cmd_dealloc_mw(struct tern_dev *tdev, u32 key);
int tern_cmd_create_cq(struct tern_dev *tdev, const struct tern_create_cq_params *params, u32 *cqn);
int tern_cmd_resize_cq(struct tern_dev *tdev, const struct tern_resize_cq_params *params);
int tern_cmd_moderate_cq(struct tern_dev *tdev, const struct tern_moderate_cq_params *params);
void tern_cmd_destroy_cq(struct tern_dev *tdev, u32 cqn);
int tern_cmd_create_qp(struct tern_dev *tdev, const struct tern_create_qp_params *params, u32 *qpn);
int tern_cmd_modify_qp(struct tern_dev *tdev, u32 qpn, u32 mask,
		       const struct tern_hw_qp_attr *attr);
int tern_cmd_query_fault(struct tern_dev *tdev, u32 qpn, struct tern_faults *faults);
int tern_cmd_resume_qp(struct tern_dev *tdev, u32 qpn, u8 requester, u8 responder);
int tern_cmd_query_qp(struct tern_dev *tdev, u32 qpn, struct tern_hw_qp_attr *attr);
void tern_cmd_destroy_qp(struct tern_dev *tdev, u32 qpn);

int tern_cmd_create_srq(struct tern_dev *tdev, const struct tern_create_srq_params *params,
			u32 *srqn);
int tern_cmd_resize_srq(struct tern_dev *tdev, const struct tern_resize_srq_params *params);
int tern_cmd_set_srq_limit(struct tern_dev *tdev, u32 srqn, u32 limit);
int tern_cmd_query_srq(struct tern_dev *tdev, u32 srqn, u32 *limit);
void tern_cmd_destroy_srq(struct tern_dev *tdev, u32 srqn);
int tern_cmd_alloc_xrcd(struct tern_engine *engine, u32 *xrcdn);
void tern_cmd_dealloc_xrcd(struct tern_dev *tdev, u32 xrcdn);

int tern_cmd_create_wq(struct tern_dev *tdev, const struct tern_create_wq_params *params, u32 *wqn);
int tern_cmd_modify_wq(struct tern_dev *tdev, u32 wqn, u8 state);
void tern_cmd_destroy_wq(struct tern_dev *tdev, u32 wqn);
int tern_cmd_create_wq_table(struct tern_engine *engine, dma_addr_t wqns, u8 log_size, u32 *id);
void tern_cmd_destroy_wq_table(struct tern_dev *tdev, u32 id);
int tern_cmd_create_rss_qp(struct tern_dev *tdev, const struct tern_create_rss_qp_params *params,
			   u32 *qpn);

int tern_cmd_attach_mcast(struct tern_dev *tdev, u32 qpn, const u8 *mgid);
int tern_cmd_detach_mcast(struct tern_dev *tdev, u32 qpn, const u8 *mgid);
int tern_cmd_create_flow(struct tern_dev *tdev, const struct tern_hw_create_flow *flow, u32 *id);
void tern_cmd_destroy_flow(struct tern_dev *tdev, u32 id);
int tern_cmd_create_counters(struct tern_engine *engine, u32 *id);
int tern_cmd_read_counters(struct tern_dev *tdev, u32 id, u64 *packets, u64 *bytes);
void tern_cmd_destroy_counters(struct tern_dev *tdev, u32 id);

int tern_cmd_set_gid(struct tern_dev *tdev, const struct tern_set_gid_params *params);
int tern_cmd_set_mac(struct tern_dev *tdev, const u8 *mac);
int tern_cmd_set_mtu(struct tern_dev *tdev, u16 mtu);
int tern_cmd_set_eth_rss(struct tern_dev *tdev, const struct tern_set_eth_rss_params *params);
int tern_cmd_set_rx_mode(struct tern_dev *tdev, u32 rx_mode);

/* card_stats.c */
int tern_stats_init(struct tern_dev *tdev);
void tern_stats_exit(struct tern_dev *tdev);
int tern_stats_read(struct tern_dev *tdev, u64 *values);

#endif
