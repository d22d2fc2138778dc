/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The admin queue: its commands, of which each has a body of up to 120 bytes, and their results. */
#ifndef TERN_HW_ADMIN_H
#define TERN_HW_ADMIN_H

#include "tern/tern_hw_counters.h"
#include "tern/tern_hw_objects.h"
#include "tern/tern_hw_types.h"

#ifdef __cplusplus
namespace tern::hw {
#endif

enum tern_hw_aq_op {
	TERN_AQ_QUERY_DEVICE = 0x01,
	TERN_AQ_QUERY_STATS = 0x02,
	TERN_AQ_CREATE_EQ = 0x10,
	TERN_AQ_DESTROY_EQ = 0x11,
	TERN_AQ_ALLOC_PD = 0x12,
	TERN_AQ_DEALLOC_PD = 0x13,
	TERN_AQ_CREATE_MR = 0x14,
	TERN_AQ_DESTROY_MR = 0x15,
	TERN_AQ_CREATE_CQ = 0x16,
	TERN_AQ_DESTROY_CQ = 0x17,
	TERN_AQ_CREATE_QP = 0x18,
	TERN_AQ_MODIFY_QP = 0x19,
	TERN_AQ_QUERY_QP = 0x1a,
	TERN_AQ_DESTROY_QP = 0x1b,
	TERN_AQ_CREATE_SRQ = 0x1c,
	TERN_AQ_RESIZE_SRQ = 0x1d,
	TERN_AQ_SET_SRQ_LIMIT = 0x1e,
	TERN_AQ_QUERY_SRQ = 0x1f,
	TERN_AQ_SET_GID = 0x20,
	TERN_AQ_SET_ETH = 0x21,
	TERN_AQ_DESTROY_SRQ = 0x22,
	TERN_AQ_ALLOC_XRCD = 0x23,
	TERN_AQ_DEALLOC_XRCD = 0x24,
	TERN_AQ_ATTACH_MCAST = 0x25,
	TERN_AQ_DETACH_MCAST = 0x26,
	TERN_AQ_CREATE_FLOW = 0x27,
	TERN_AQ_DESTROY_FLOW = 0x28,
	TERN_AQ_ALLOC_MW = 0x29,
	TERN_AQ_DEALLOC_MW = 0x2a,
	TERN_AQ_CREATE_FAST_MR = 0x2b,
	TERN_AQ_MODIFY_MR = 0x2c,
	TERN_AQ_SYNC_MR = 0x2d,
	TERN_AQ_QUERY_FAULT = 0x2e,
	TERN_AQ_RESUME_QP = 0x2f,
	TERN_AQ_RESIZE_CQ = 0x30,
	TERN_AQ_MODERATE_CQ = 0x31,
	TERN_AQ_CREATE_WQ = 0x32,
	TERN_AQ_MODIFY_WQ = 0x33,
	TERN_AQ_DESTROY_WQ = 0x34,
	TERN_AQ_CREATE_WQ_TABLE = 0x35,
	TERN_AQ_DESTROY_WQ_TABLE = 0x36,
	TERN_AQ_CREATE_RSS_QP = 0x37,
	TERN_AQ_CREATE_COUNTERS = 0x3a,
	TERN_AQ_DESTROY_COUNTERS = 0x3b,
	TERN_AQ_READ_COUNTERS = 0x3c,
	TERN_AQ_SET_ETH_RSS = 0x3e,
	TERN_AQ_QUERY_CONGESTION = 0x40,
	TERN_AQ_SET_CONGESTION = 0x41,
	TERN_AQ_CREATE_STATS = 0x42,
	TERN_AQ_DESTROY_STATS = 0x43,
	TERN_AQ_BIND_STATS = 0x44,
	TERN_AQ_CREATE_COMP_COUNTER = 0x45,
	TERN_AQ_DESTROY_COMP_COUNTER = 0x46,
	TERN_AQ_MODIFY_COMP_COUNTER = 0x47,
	TERN_AQ_ATTACH_COMP_COUNTER = 0x48,
};

enum tern_hw_aq_status {
	TERN_AQ_OK = 0,
	TERN_AQ_BAD_OPCODE = 1,
	TERN_AQ_BAD_FIELD = 2,		/* a value out of range, or reserved bits set */
	TERN_AQ_BAD_OBJECT = 3,		/* no object of that number */
	TERN_AQ_NO_RESOURCE = 4,	/* the table of that kind is full */
	TERN_AQ_BUSY = 5,		/* another object still refers to it */
	TERN_AQ_BAD_STATE = 6,		/* the QP's state does not allow it */
	TERN_AQ_DMA_FAULT = 7,		/* memory named by the command is not reachable */
};

/* The size of a command in bytes, which is also that of its completion. */
enum { TERN_AQ_ENTRY = 128 };

/*
 * Parameters of congestion control, named as in mlx5's debugfs: of the reaction point (rp), the
 * notification point (np) and priority-based flow control (pfc). Rates are in Mb/s, times in us,
 * fractions in 1024ths.
 */
enum tern_hw_congestion_param {
	TERN_CC_RP_ALGORITHM,			/* enum tern_hw_congestion_algorithm */
	TERN_CC_RP_CLAMP_TGT_RATE,		/* each CNP makes the rate the target */
	TERN_CC_RP_CLAMP_TGT_RATE_ATI,		/* the first after an increase by time does */
	TERN_CC_RP_TIME_RESET,			/* between two increases */
	TERN_CC_RP_BYTE_RESET,			/* bytes between two increases; 0: none by bytes */
	TERN_CC_RP_THRESHOLD,			/* increases of fast recovery */
	TERN_CC_RP_AI_RATE,			/* additive increase */
	TERN_CC_RP_MAX_RATE,			/* 0: the link's */
	TERN_CC_RP_HAI_RATE,			/* hyper increase */
	TERN_CC_RP_MIN_DEC_FAC,			/* per cent that a CNP leaves, at least */
	TERN_CC_RP_MIN_RATE,
	TERN_CC_RP_RATE_TO_SET_ON_FIRST_CNP,	/* 0: max_rate, then reduced */
	TERN_CC_RP_DCE_TCP_G,			/* weight of the old alpha */
	TERN_CC_RP_DCE_TCP_RTT,			/* alpha decays this often */
	TERN_CC_RP_RATE_REDUCE_MONITOR_PERIOD,	/* between two reductions, at least */
	TERN_CC_RP_INITIAL_ALPHA_VALUE,
	TERN_CC_RP_GD,				/* a CNP takes alpha / 2^(gd - 10) */
	TERN_CC_RP_TIMER_SLACK,			/* delay of a packet that does not lower the rate */
	TERN_CC_RP_TIMELY_T_LOW,		/* TIMELY: below, additive increase */
	TERN_CC_RP_TIMELY_T_HIGH,		/* above, decrease */
	TERN_CC_RP_TIMELY_MIN_RTT,		/* of which the gradient is a multiple */
	TERN_CC_RP_TIMELY_BETA,			/* of the decrease */
	TERN_CC_RP_TIMELY_EWMA_ALPHA,		/* weight of a new difference */
	TERN_CC_NP_ENABLE,			/* send CNPs */
	TERN_CC_NP_MIN_TIME_BETWEEN_CNPS,	/* of a QP */
	TERN_CC_NP_CNP_DSCP,
	TERN_CC_NP_CNP_PRIO_MODE,		/* 0: cnp_prio in the VLAN tag, 1: the QP's SL */
	TERN_CC_NP_CNP_PRIO,
	TERN_CC_PFC_ENABLE,			/* priorities that pause frames stop, a bit each */
	TERN_CC_PFC_TRUST_DSCP,			/* priority by 0: VLAN tag, 1: DSCP / 8 */

	TERN_CC_COUNT,
};

enum tern_hw_congestion_algorithm {
	TERN_CC_NONE = 0,
	TERN_CC_DCQCN = 1,	/* by CNPs, which it alone takes */
	TERN_CC_TIMELY = 2,	/* by round-trip times of RC */
};

struct tern_hw_set_congestion {
	__le32 param;		/* enum tern_hw_congestion_param */
	__le32 value;
};

/* Result of QUERY_CONGESTION. */
struct tern_hw_congestion {
	__le32 value[TERN_CC_COUNT];
};

struct tern_hw_aq_cmd {
	__le16 opcode;		/* enum tern_hw_aq_op */
	__le16 id;		/* handed back in the completion */
	__le32 rsvd;
	union {
		struct tern_hw_query_stats query_stats;
		struct tern_hw_create_eq create_eq;
		struct tern_hw_create_mr create_mr;
		struct tern_hw_create_cq create_cq;
		struct tern_hw_create_qp create_qp;
		struct tern_hw_modify_qp modify_qp;
		struct tern_hw_set_gid set_gid;
		struct tern_hw_set_eth set_eth;
		struct tern_hw_object object;
		struct tern_hw_alloc_mw alloc_mw;
		struct tern_hw_create_srq create_srq;
		struct tern_hw_resize_srq resize_srq;
		struct tern_hw_set_srq_limit set_srq_limit;
		struct tern_hw_mcast mcast;
		struct tern_hw_create_flow create_flow;
		struct tern_hw_modify_mr modify_mr;
		struct tern_hw_resume_qp resume_qp;
		struct tern_hw_resize_cq resize_cq;
		struct tern_hw_moderate_cq moderate_cq;
		struct tern_hw_create_wq create_wq;
		struct tern_hw_modify_wq modify_wq;
		struct tern_hw_create_wq_table create_wq_table;
		struct tern_hw_create_rss_qp create_rss_qp;
		struct tern_hw_set_eth_rss set_eth_rss;
		struct tern_hw_set_congestion set_congestion;
		struct tern_hw_bind_stats bind_stats;
		struct tern_hw_create_comp_counter create_comp_counter;
		struct tern_hw_modify_comp_counter modify_comp_counter;
		struct tern_hw_attach_comp_counter attach_comp_counter;
		__u8 body[120];
	};
};

/* The results of commands. */

/* QUERY_DEVICE: limits of the card. */
struct tern_hw_device_attr {
	__le32 fw_version;		/* major in 31:16, minor in 15:0 */
	__le32 max_qp;
	__le32 max_cq;
	__le32 max_mr;
	__le32 max_pd;
	__le32 max_gids;
	__le64 max_mr_size;		/* bytes */
	__le64 page_size_cap;		/* bit n: leaf pages of 1 << n */
	__u8 max_sq_log_size;		/* 64-byte blocks */
	__u8 max_rq_log_size;		/* receive WQEs */
	__u8 max_cq_log_size;		/* CQEs */
	__u8 max_rd_atomic;		/* per QP, both roles */
	__u8 local_ca_ack_delay;	/* 4.096 us << n */
	__u8 rsvd0;
	__le16 max_mtu;			/* Ethernet payload, bytes */
	__le16 max_send_sge;
	__le16 max_recv_sge;
	__le16 max_inline;
	__le16 rsvd1;
	__le32 max_srq;
	__le32 max_xrcd;
	__le32 max_mcast_groups;
	__le32 max_mcast_qps;		/* per group */
	__le32 max_flows;
	__u8 max_srq_log_size;
	__u8 max_log_tags;		/* per SRQ */
	__u8 max_log_tag_ops;
	__u8 rsvd2;
	__le32 max_wq;
	__le32 max_wq_tables;
	__le32 max_counters;
	__le32 max_stats_sets;
	__le32 max_comp_counters;
	__le32 rsvd3;
};

/* Any command that ends with TERN_AQ_BAD_FIELD: which field was refused. */
struct tern_hw_refused {
	__le16 field;		/* its offset in struct tern_hw_aq_cmd; 0: unknown */
	__u8 rsvd[6];
};

/* Commands that create an object: its number (of a region or window the key). */
struct tern_hw_created {
	__le32 id;
	__le32 rsvd;
};

struct tern_hw_srq_attr {
	__le32 limit;		/* 0 once SRQ_LIMIT was raised */
	__le32 rsvd;
};

struct tern_hw_aq_cqe {
	union {
		struct tern_hw_device_attr device;
		struct tern_hw_refused refused;
		struct tern_hw_created created;
		struct tern_hw_qp_attr qp;
		struct tern_hw_srq_attr srq;
		struct tern_hw_faults faults;
		struct tern_hw_counters counters;
		struct tern_hw_congestion congestion;
		__u8 body[120];
	};
	/* the last 8 bytes are one store */
	__le32 rsvd;
	__le16 id;
	__u8 status;		/* enum tern_hw_aq_status */
	__u8 phase;
};

static_assert(sizeof(struct tern_hw_device_attr) == 104, "QUERY_DEVICE");
static_assert(sizeof(struct tern_hw_set_congestion) == 8, "SET_CONGESTION");
static_assert(sizeof(struct tern_hw_congestion) == 4 * TERN_CC_COUNT, "congestion control");
static_assert(sizeof(struct tern_hw_aq_cmd) == TERN_AQ_ENTRY, "admin command");
static_assert(sizeof(struct tern_hw_aq_cqe) == TERN_AQ_ENTRY, "admin completion");

#ifdef __cplusplus
} /* namespace tern::hw */
#endif

#endif /* TERN_HW_ADMIN_H */
