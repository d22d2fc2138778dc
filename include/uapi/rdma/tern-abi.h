/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * The structures that tern.ko and its rdma-core provider exchange through uverbs.
 * Every request ends where its struct ends: the driver refuses non-zero bytes
 * past it, and non-zero reserved fields.
 */
#ifndef TERN_ABI_USER_H
#define TERN_ABI_USER_H

#include <linux/types.h>

/* Incremented only by a change that is incompatible with older providers. */
#define TERN_UVERBS_ABI_VERSION 1

/* Keys are offsets for mmap() on the uverbs file. */

struct tern_alloc_ucontext_resp {
	__aligned_u64 db_key;	/* the doorbell page of this process; only TERN_DB_CLOCK is read */
	__u32 db_len;
	__u32 caps;		/* TERN_REG_CAPS */
	__u16 max_inline;	/* bytes */
	__u16 max_send_sge;
	__u16 max_recv_sge;
	__u16 reserved;
};

struct tern_alloc_pd_resp {
	__u32 pdn;
	__u32 reserved;
};

/* One mapping holds the CQE ring at offset 0 and the CQ record after it. */
struct tern_create_cq_resp {
	__aligned_u64 buf_key;
	__u32 buf_len;
	__u32 record_offset;	/* of struct tern_hw_cq_record */
	__u32 cqn;
	__u32 log_size;		/* CQEs */
};

/* One mapping holds SQ (offset 0), RQ and the QP record. */
struct tern_create_qp_resp {
	__aligned_u64 buf_key;
	__u32 buf_len;
	__u32 rq_offset;
	__u32 record_offset;	/* of struct tern_hw_qp_record */
	__u32 qpn;
	__u8 sq_log_size;	/* blocks of 64 bytes */
	__u8 rq_log_size;	/* receive WQEs */
	__u8 rq_log_stride;	/* bytes of a receive WQE */
	__u8 reserved[5];
};

/*
 * A QP without queues (XRC_TGT) has no mapping: buf_len is 0. One without a receive queue has
 * rq_log_stride 0.
 */

/* modify_qp with IB_QP_RATE_LIMIT: the rest of struct ibv_qp_rate_limit_attr. */
struct tern_modify_qp_cmd {
	__u32 max_burst_sz;	/* bytes; 0: the card's choice */
	__u16 typical_pkt_sz;
	__u16 reserved;
};

/* What read_counters tells, in this order, whatever the process attached to which index. */
enum tern_counter {
	TERN_COUNTER_PACKETS,
	TERN_COUNTER_BYTES,
	TERN_COUNTER_COUNT,
};

struct tern_create_ah_resp {
	__u8 dmac[6];		/* of the destination or the next hop, as the kernel resolved it */
	__u16 udp_sport;
	__u8 hop_limit;		/* of the route, as a connected QP gets it, too */
	__u8 reserved[7];
};

/* One mapping holds the slots at offset 0, the index ring and the SRQ record. */
struct tern_srq_buf {
	__aligned_u64 buf_key;
	__u32 buf_len;
	__u32 ring_offset;
	__u32 record_offset;	/* of struct tern_hw_srq_record */
	__u32 srqn;
	__u8 log_size;		/* slots */
	__u8 log_stride;	/* bytes of a slot */
	/* IBV_SRQT_TM, else zero: its tag operations lie in the same mapping */
	__u8 log_tags;
	__u8 log_tag_ops;
	__u32 tag_ops_offset;
};

/* create_srq of type IBV_SRQT_TM: what uverbs has no field for */
struct tern_create_srq_cmd {
	__u32 max_ops;		/* tag operations that can be outstanding */
	__u32 reserved;
};

struct tern_create_srq_resp {
	struct tern_srq_buf buf;
};

/*
 * With IBV_SRQ_MAX_WR the kernel copies slots and ring to a larger buffer and writes its location
 * to buf_addr before it frees the old buffer. The location is passed through memory because
 * modify_srq has no response. The process must not post meanwhile. If the old buffer is large
 * enough, buf_len is 0 and nothing has changed.
 */
struct tern_modify_srq_cmd {
	__aligned_u64 buf_addr;	/* of a struct tern_srq_buf */
};

/*
 * As tern_create_cq_resp, of the larger or smaller ring; the CQN stays. The CQ is not polled
 * meanwhile. The old mapping holds nothing any more.
 */
struct tern_resize_cq_resp {
	__aligned_u64 buf_key;
	__u32 buf_len;
	__u32 record_offset;
	__u32 log_size;
	__u32 reserved;
};

/* One mapping holds the receive queue at offset 0 and the record. */
struct tern_create_wq_resp {
	__aligned_u64 buf_key;
	__u32 buf_len;
	__u32 record_offset;	/* of struct tern_hw_qp_record */
	__u32 wqn;
	__u8 log_size;
	__u8 log_stride;
	__u8 reserved[2];
};

/* create_qp with an indirection table: the driver's own input, as uverbs has none for it. */
struct tern_create_rss_qp_cmd {
	__aligned_u64 hash_fields;	/* enum ibv_rx_hash_fields */
	__u8 hash_function;	/* enum ibv_rx_hash_function_flags: Toeplitz */
	__u8 key_len;		/* 40 */
	__u8 reserved[6];
	__u8 key[40];
};

/* The driver's additions to the ioctl() interface. Driver-specific numbers begin at 1 << 12. */

/* of UVERBS_METHOD_QUERY_CONTEXT */
enum tern_query_context_attrs {
	TERN_ATTR_QUERY_CONTEXT_RESP = 1 << 12,	/* struct tern_alloc_ucontext_resp */
};

/* of UVERBS_METHOD_DM_ALLOC */
enum tern_alloc_dm_attrs {
	TERN_ATTR_ALLOC_DM_RESP_KEY = 1 << 12,	/* __u64, for mmap() */
};

/* of UVERBS_OBJECT_DM */
enum tern_dm_methods {
	TERN_METHOD_DM_QUERY = 1 << 12,
};

enum tern_dm_query_attrs {
	TERN_ATTR_DM_QUERY_HANDLE = 1 << 12,
	TERN_ATTR_DM_QUERY_RESP_KEY,		/* __u64, for mmap() */
	TERN_ATTR_DM_QUERY_RESP_LENGTH,		/* __u64, bytes */
};

/* of UVERBS_METHOD_COMP_CNTR_CREATE */
enum tern_create_comp_cntr_attrs {
	TERN_ATTR_CREATE_COMP_CNTR_UNIT = 1 << 12,	/* __u32, enum tern_hw_comp_unit */
	TERN_ATTR_CREATE_COMP_CNTR_RESP_KEY,	/* __u64, for mmap(): struct tern_hw_comp_record */
};

/* of UVERBS_OBJECT_PD */
enum tern_pd_methods {
	TERN_METHOD_PD_QUERY = 1 << 12,
};

enum tern_pd_query_attrs {
	TERN_ATTR_PD_QUERY_HANDLE = 1 << 12,
	TERN_ATTR_PD_QUERY_RESP,		/* struct tern_alloc_pd_resp */
};

#endif /* TERN_ABI_USER_H */
