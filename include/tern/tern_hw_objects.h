/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The bodies of admin commands on objects and on the Ethernet function. */
#ifndef TERN_HW_OBJECTS_H
#define TERN_HW_OBJECTS_H

#include "tern/tern_hw_queues.h"
#include "tern/tern_hw_types.h"

#ifdef __cplusplus
namespace tern::hw {
#endif

struct tern_hw_create_eq {
	struct tern_hw_pages pages;
	__le32 vector;		/* one EQ per vector */
	__u8 log_size;		/* entries, 1..16 */
	__u8 rsvd[3];
};

/*
 * The number of an object: DESTROY_EQ, DEALLOC_PD, DESTROY_MR and DEALLOC_MW (the key; of a window
 * and of a region of CREATE_FAST_MR the variant does not count), DESTROY_CQ, QUERY_QP, DESTROY_QP,
 * QUERY_SRQ, DESTROY_SRQ, DEALLOC_XRCD, DESTROY_FLOW, CREATE_FAST_MR (the PDN), SYNC_MR (the key),
 * QUERY_FAULT (the QPN), DESTROY_WQ, DESTROY_WQ_TABLE, DESTROY_COUNTERS, READ_COUNTERS,
 * DESTROY_STATS, DESTROY_COMP_COUNTER; ALLOC_PD, ALLOC_XRCD and CREATE_COUNTERS (the doorbell page
 * of the process that owns the new object, or TERN_DB_PAGE_KERNEL).
 */
struct tern_hw_object {
	__le32 id;
	__le32 rsvd;
};

/* access of a region and of a QP: the bits of enum ib_access_flags, except FLUSH_GLOBAL */
#define TERN_ACCESS_LOCAL_WRITE		0x1u
#define TERN_ACCESS_REMOTE_WRITE	0x2u
#define TERN_ACCESS_REMOTE_READ		0x4u
#define TERN_ACCESS_REMOTE_ATOMIC	0x8u
#define TERN_ACCESS_MW_BIND		0x10u	/* of a region: windows may be bound to it */
#define TERN_ACCESS_ZERO_BASED		0x20u	/* CREATE_MR, windows of type 2: addresses from 0 */
#define TERN_ACCESS_FLUSH_GLOBAL	0x40u	/* not of windows: FLUSH with TERN_FLUSH_GLOBAL */

/* flags of a region */
#define TERN_MR_DEVICE		0x01u	/* device memory: levels 0, iova is an offset in it */
#define TERN_MR_ON_DEMAND	0x02u	/* entries of its tables may be absent */

struct tern_hw_create_mr {
	__le64 start;		/* virtual address of the first byte, as WQEs and peers name it */
	__le64 length;		/* bytes; start + length must not wrap */
	struct tern_hw_pages pages;
	__le32 pdn;
	__u8 access;		/* TERN_ACCESS_*; ZERO_BASED: start gives its place in a page */
	__u8 variant;		/* bits 7:0 of the key */
	__u8 flags;		/* TERN_MR_* */
	__u8 rsvd;
};

/* mask of MODIFY_MR: what it changes; the key stays */
#define TERN_MODIFY_MR_PD		0x1u
#define TERN_MODIFY_MR_ACCESS		0x2u
#define TERN_MODIFY_MR_TRANSLATION	0x4u	/* start, length and pages */

struct tern_hw_modify_mr {
	__le32 key;		/* of CREATE_MR, without flags */
	__u8 mask;		/* TERN_MODIFY_MR_* */
	__u8 rsvd[3];
	struct tern_hw_create_mr to;	/* zero: variant, flags, what mask does not name */
};

/* What a QP waits for. length 0: nothing. */
struct tern_hw_fault {
	__le64 addr;		/* of the region's address space */
	__le32 length;		/* bytes that the QP will touch from there; within the region */
	__le32 key;
	__u8 write;		/* 1: it will write them */
	__u8 rsvd[7];
};

/* Result of QUERY_FAULT. */
struct tern_hw_faults {
	struct tern_hw_fault requester;
	struct tern_hw_fault responder;
};

/* RESUME_QP answers the faults that QUERY_FAULT has reported. The QP then goes on, or fails. */
struct tern_hw_resume_qp {
	__le32 qpn;
	__u8 requester;		/* enum tern_hw_resume */
	__u8 responder;
	__u8 rsvd[2];
};

enum tern_hw_resume {
	TERN_RESUME_NONE = 0,	/* leave this side as it is */
	TERN_RESUME_RETRY = 1,	/* the pages are there */
	TERN_RESUME_FAIL = 2,	/* they cannot be had: LOC_PROT_ERR, NAK Remote Access Error */
};

struct tern_hw_create_cq {
	struct tern_hw_pages pages;
	__le64 record;		/* IOVA of a struct tern_hw_cq_record */
	__le32 eqn;
	__le32 db_page;
	__u8 log_size;		/* entries */
	__u8 rsvd[7];
};

/*
 * Moves the ring and the record; the host has written ci to the new record. The card copies the
 * CQEs that the host has not consumed, from ci to its producer index, to the entries of the same
 * indices in the new ring, with the phase of those entries, and marks all others as unwritten.
 * Refused with BAD_STATE when the new ring cannot hold them, or the CQ has failed.
 */
struct tern_hw_resize_cq {
	struct tern_hw_pages pages;
	__le64 record;
	__le32 cqn;
	__u8 log_size;
	__u8 rsvd[3];
};

/* An armed CQ raises its event after so many CQEs or so long after the first. */
struct tern_hw_moderate_cq {
	__le32 cqn;
	__le16 count;		/* 0: the period alone counts */
	__le16 period;		/* us; 0: at once, whatever count says */
};

enum tern_hw_mw_type {
	TERN_MW_TYPE_1 = 1,	/* of the PD; only BIND_MW changes it */
	TERN_MW_TYPE_2 = 2,	/* 2B: of the QP it was bound through; can be invalidated */
};

struct tern_hw_alloc_mw {
	__le32 pdn;
	__u8 type;		/* enum tern_hw_mw_type */
	__u8 variant;		/* bits 7:0 of the key */
	__u8 rsvd[2];
};

/*
 * A receive queue that QPs share. WQEs live in slots, which the host uses in any order: the
 * slot of the WQE posted as number n is entry n modulo the size of the index ring. With
 * TERN_SRQ_TAGS it has a list of tagged buffers besides and a CQ of its own, and serves QPs of
 * type RC.
 */
struct tern_hw_create_srq {
	struct tern_hw_pages pages;	/* slots at byte 0, index ring (__le32) at ring_offset */
	__le64 record;			/* IOVA of a struct tern_hw_srq_record */
	__le32 ring_offset;		/* bytes, multiple of 64, at or past the end of the slots */
	__le32 pdn;
	__le32 xrcdn;			/* XRC only, else zero */
	__le32 cqn;			/* XRC and TERN_SRQ_TAGS, else zero */
	__u8 log_size;			/* slots, and entries of the index ring */
	__u8 log_stride;		/* bytes per slot, 4..9 */
	__u8 flags;			/* TERN_SRQ_* */
	/* the rest with TERN_SRQ_TAGS, else zero */
	__u8 log_tags;			/* entries of the list */
	__u8 log_tag_ops;		/* struct tern_hw_tag_op of the ring */
	__u8 rsvd[3];
	__le32 tag_ops_offset;		/* bytes, multiple of 64, past the index ring */
	__le32 db_page;			/* of TERN_DB_TAG_OPS */
};

/* flags of CREATE_SRQ */
#define TERN_SRQ_TAGS	0x01u	/* not for XRC; RESIZE_SRQ refuses such an SRQ */

/*
 * The buffer, ring and record move. Slots keep their numbers, so log_size is at least the present
 * one; the same size is allowed.
 */
struct tern_hw_resize_srq {
	struct tern_hw_pages pages;
	__le64 record;
	__le32 srqn;
	__le32 ring_offset;
	__u8 log_size;
	__u8 rsvd[7];
};

struct tern_hw_set_srq_limit {
	__le32 srqn;
	__le32 limit;		/* SRQ_LIMIT when fewer WQEs are left; at most the slots; 0: none */
};

struct tern_hw_mcast {
	__le32 qpn;		/* a QP of type UD */
	__le32 rsvd;
	__u8 mgid[16];
};

enum tern_hw_qp_type {
	TERN_QPT_GSI = 1,	/* a UD QP that is QPN 1; page 0 only, one per card */
	TERN_QPT_RC = 2,
	TERN_QPT_UC = 3,
	TERN_QPT_UD = 4,
	TERN_QPT_ETH = 8,	/* Ethernet frames, without FCS; page 0 only */
	TERN_QPT_XRC_INI = 9,	/* no receive queue, recv_cqn is zero */
	TERN_QPT_XRC_TGT = 10,	/* no queues, no PD, no CQs: all that is zero */
	TERN_QPT_RAW = 11,	/* Ethernet frames, without FCS; receives what its flows match */
};

struct tern_hw_create_qp {
	struct tern_hw_pages pages;	/* SQ at byte 0, RQ at rq_offset */
	__le64 record;			/* IOVA of a struct tern_hw_qp_record */
	__le32 rq_offset;		/* bytes, multiple of 64, at or past the end of the SQ */
	__le32 pdn;
	__le32 send_cqn;
	__le32 recv_cqn;
	__le32 db_page;
	__u8 type;			/* enum tern_hw_qp_type */
	__u8 sq_log_size;		/* 64-byte blocks */
	__u8 rq_log_size;		/* receive WQEs */
	__u8 rq_log_stride;		/* bytes per receive WQE, 4..9; 0: no receive queue */
	__u8 flags;			/* TERN_QP_* flags */
	__u8 rsvd[7];
	__le32 srqn;			/* with TERN_QP_SRQ, and then there is no receive queue */
	__le32 xrcdn;			/* XRC_TGT */
};

/* flags of CREATE_QP */
#define TERN_QP_SIGNAL_ALL	0x01u	/* every send WQE completes with a CQE */
#define TERN_QP_SRQ		0x02u	/* receives into an SRQ: RC, UC, UD */
#define TERN_QP_NO_MC_LOOPBACK	0x04u	/* its multicasts do not come back to this card: UD */

/* A receive queue of its own, for frames that a QP of CREATE_RSS_QP spreads. */
struct tern_hw_create_wq {
	struct tern_hw_pages pages;
	__le64 record;		/* IOVA of a struct tern_hw_qp_record, of which rq_pi counts */
	__le32 pdn;
	__le32 cqn;
	__u8 log_size;		/* receive WQEs */
	__u8 log_stride;	/* bytes of one, 4..9 */
	__u8 rsvd[6];
};

/* The numbers of enum ib_wq_state; a new WQ is in RESET. */
enum tern_hw_wq_state {
	TERN_WQS_RESET = 0,
	TERN_WQS_RDY = 1,
	TERN_WQS_ERR = 2,
};

struct tern_hw_modify_wq {
	__le32 wqn;
	__u8 state;		/* enum tern_hw_wq_state */
	__u8 rsvd[3];
};

/* Largest log_size of CREATE_WQ_TABLE and SET_ETH_RSS */
enum { TERN_MAX_LOG_WQ_TABLE = 7 };

/* Which WQ takes a frame: entry hash modulo 2^log_size. Read once. */
struct tern_hw_create_wq_table {
	__le64 iova;		/* of 1 << log_size WQNs, __le32 each */
	__u8 log_size;
	__u8 rsvd[7];
};

/* hash_fields: the bits of enum ibv_rx_hash_fields. 0: entry 0 takes all frames. */
#define TERN_HASH_SRC_IPV4	(1u << 0)
#define TERN_HASH_DST_IPV4	(1u << 1)
#define TERN_HASH_SRC_IPV6	(1u << 2)
#define TERN_HASH_DST_IPV6	(1u << 3)
#define TERN_HASH_SRC_PORT_TCP	(1u << 4)
#define TERN_HASH_DST_PORT_TCP	(1u << 5)
#define TERN_HASH_SRC_PORT_UDP	(1u << 6)
#define TERN_HASH_DST_PORT_UDP	(1u << 7)

/* Bytes of a Toeplitz key */
enum { TERN_HASH_KEY_SIZE = 40 };

/* A QP of type RAW without queues: a flow that names it gives frames to the WQs of a table. */
struct tern_hw_create_rss_qp {
	__le32 pdn;
	__le32 table;
	__le32 hash_fields;	/* TERN_HASH_* */
	__u8 key[TERN_HASH_KEY_SIZE];	/* Toeplitz */
};

/* State of a QP: the numbers of enum ib_qp_state. */
enum tern_hw_qp_state {
	TERN_QPS_RESET = 0,
	TERN_QPS_INIT = 1,
	TERN_QPS_RTR = 2,
	TERN_QPS_RTS = 3,
	TERN_QPS_SQD = 4,
	TERN_QPS_SQE = 5,
	TERN_QPS_ERR = 6,
};

/* attr_mask of MODIFY_QP: the bits of enum ib_qp_attr_mask */
#define TERN_QP_STATE			(1u << 0)
#define TERN_QP_CUR_STATE		(1u << 1)
#define TERN_QP_EN_SQD_ASYNC_NOTIFY	(1u << 2)
#define TERN_QP_ACCESS_FLAGS		(1u << 3)
#define TERN_QP_PKEY_INDEX		(1u << 4)
#define TERN_QP_PORT			(1u << 5)
#define TERN_QP_QKEY			(1u << 6)
#define TERN_QP_AV			(1u << 7)
#define TERN_QP_PATH_MTU		(1u << 8)
#define TERN_QP_TIMEOUT			(1u << 9)
#define TERN_QP_RETRY_CNT		(1u << 10)
#define TERN_QP_RNR_RETRY		(1u << 11)
#define TERN_QP_RQ_PSN			(1u << 12)
#define TERN_QP_MAX_QP_RD_ATOMIC	(1u << 13)
#define TERN_QP_MIN_RNR_TIMER		(1u << 15)
#define TERN_QP_SQ_PSN			(1u << 16)
#define TERN_QP_MAX_DEST_RD_ATOMIC	(1u << 17)
#define TERN_QP_DEST_QPN		(1u << 20)
#define TERN_QP_RATE_LIMIT		(1u << 25)

/* Highest rate limit of a QP, kb/s */
enum { TERN_MAX_RATE_LIMIT = 400000000 };

/* How fast a QP sends; all that it puts on the wire counts, as whole frames without FCS. */
struct tern_hw_rate_limit {
	__le32 rate;		/* kb/s (1000 bits), at most TERN_MAX_RATE_LIMIT; 0: no limit */
	__le32 burst;		/* bytes that may go at once after a pause; 0: the card's choice */
	__le16 packet;		/* bytes of the burst that a frame waits for; 0: it may borrow */
	__u8 rsvd[2];
};

/* The attributes of a QP: what MODIFY_QP sets and QUERY_QP tells. */
struct tern_hw_qp_attr {
	__u8 state;		/* enum tern_hw_qp_state */
	__u8 cur_state;		/* what the driver takes it to be, with CUR_STATE */
	__u8 access;		/* TERN_ACCESS_REMOTE_*, FLUSH_GLOBAL; LOCAL_WRITE has no effect */
	__u8 path_mtu;		/* enum ib_mtu: 1 = 256 ... 5 = 4096 */
	__u8 timeout;		/* local ACK timeout: 4.096 us << timeout; 0 is none */
	__u8 retry_cnt;		/* 0..7 */
	__u8 rnr_retry;		/* 0..7, 7 is for ever */
	__u8 min_rnr_timer;	/* 0..31, IBA table 45 */
	__u8 max_rd_atomic;	/* as requester; 0: READs and atomics are LOC_QP_OP_ERR */
	__u8 max_dest_rd_atomic;	/* as responder; 0: NAK Invalid Request */
	__u8 sq_draining;	/* QUERY_QP: SQD asked for, not yet reached */
	__u8 en_sqd_async_notify;
	__le32 rq_psn;		/* 24 bits */
	__le32 sq_psn;
	__le32 dest_qpn;
	__le16 pkey_index;
	__u8 port;		/* 1 */
	/* address vector */
	__u8 sgid_index;
	__u8 dgid[16];
	__u8 dmac[6];
	__u8 traffic_class;
	__u8 hop_limit;
	__le32 flow_label;	/* 20 bits */
	__le16 udp_sport;
	__u8 sl;
	__u8 rsvd;
	__le32 qkey;		/* UD */
	struct tern_hw_rate_limit rate_limit;
};

struct tern_hw_modify_qp {
	__le32 qpn;
	__le32 attr_mask;	/* TERN_QP_* */
	struct tern_hw_qp_attr attr;
};

enum tern_hw_gid_type {
	TERN_GID_NONE = 0,	/* the entry is empty */
	TERN_GID_ROCE_V1 = 1,
	TERN_GID_ROCE_V2 = 2,	/* IPv4 when the GID is an IPv4-mapped address */
};

struct tern_hw_set_gid {
	__le32 index;
	__u8 type;		/* enum tern_hw_gid_type */
	__u8 rsvd0;
	__le16 vlan;		/* VLAN id, 0xffff for none */
	__u8 gid[16];
	__u8 mac[6];		/* since minor 10; zero, as before: the port's, of SET_ETH */
	__u8 rsvd1[2];
};

/* mask of SET_ETH */
#define TERN_ETH_MAC		0x1u
#define TERN_ETH_MTU		0x2u
#define TERN_ETH_RX_MODE	0x4u

/* rx_mode: own unicast and broadcast frames always pass */
#define TERN_ETH_PROMISC	0x1u
#define TERN_ETH_ALLMULTI	0x2u

struct tern_hw_set_eth {
	__le32 mask;
	__u8 mac[6];
	__le16 mtu;		/* bytes of an Ethernet payload, 68..9000 */
	__le32 rx_mode;
};

/* Most QPs of type ETH; without TERN_CAP_ETH_QUEUES one */
enum { TERN_MAX_ETH_QPS = 64 };

/*
 * Which ETH QP takes a frame: entry hash modulo 2^log_size. The table is read once, and
 * forgotten when one of its QPs is destroyed. Without it the oldest ETH QP takes all.
 */
struct tern_hw_set_eth_rss {
	__le64 iova;		/* of 1 << log_size QPNs, __le32 each */
	__le32 hash_fields;	/* TERN_HASH_*; 0: entry 0 takes all */
	__u8 log_size;		/* at most TERN_MAX_LOG_WQ_TABLE */
	__u8 rsvd[3];
	__u8 key[TERN_HASH_KEY_SIZE];	/* Toeplitz */
};

enum tern_hw_flow_type {
	TERN_FLOW_NORMAL = 0,		/* frames that match go to it and its equals alone */
	TERN_FLOW_ALL_DEFAULT = 1,	/* frames that match no NORMAL flow; not the host's own */
	TERN_FLOW_MC_DEFAULT = 2,	/* of those, the multicast ones */
	TERN_FLOW_SNIFFER = 3,		/* a copy of every frame that arrives, RoCE included */
};

/*
 * The fields of a frame that a flow compares, in the byte order of the wire. An IPv4 address is in
 * the first 4 bytes of src_ip and dst_ip; the other 12 bytes of the mask are zero.
 */
struct tern_hw_flow_key {
	__u8 dmac[6];
	__u8 smac[6];
	__u8 src_ip[16];
	__u8 dst_ip[16];
	__be16 vlan_tci;
	__be16 ethertype;	/* the one after the VLAN tag */
	__be16 src_port;	/* of TCP and UDP */
	__be16 dst_port;
	__u8 ip_proto;
	__u8 tos;		/* IPv6: traffic class */
};

/*
 * A frame matches a flow if (frame & mask) == key, and if it has all fields that the mask has bits
 * of. The IP header, of version ip_version, must follow the Ethernet header or its VLAN tag
 * directly, and the ports must follow the IP header directly: the card does not parse the extension
 * headers of IPv6. Of a packet in fragments only the first one has ports. The card refuses a key
 * with bits outside the mask (BAD_FIELD). It tries flows in the order of priority, and those of one
 * priority from the oldest to the newest. The first one that matches takes the frame, together with
 * its equals: the flows that have the same key, mask, ip_version and priority. Each QP that they
 * name gets one copy.
 */
struct tern_hw_create_flow {
	__le32 qpn;		/* a QP of type RAW */
	__le16 priority;	/* lowest first */
	__u8 type;		/* enum tern_hw_flow_type; key and mask are of NORMAL only */
	__u8 ip_version;	/* 4 or 6 when IP or port fields are in the mask, else 0 */
	struct tern_hw_flow_key key;
	struct tern_hw_flow_key mask;
	__le32 counters;	/* of CREATE_COUNTERS, or 0: it is not counted */
};

static_assert(sizeof(struct tern_hw_create_eq) == 24, "CREATE_EQ");
static_assert(sizeof(struct tern_hw_create_mr) == 40, "CREATE_MR");
static_assert(sizeof(struct tern_hw_create_cq) == 40, "CREATE_CQ");
static_assert(sizeof(struct tern_hw_create_qp) == 64, "CREATE_QP");
static_assert(sizeof(struct tern_hw_rate_limit) == 12, "rate limit");
static_assert(sizeof(struct tern_hw_qp_attr) == 76, "QP attributes");
static_assert(sizeof(struct tern_hw_modify_qp) == 84, "MODIFY_QP");
static_assert(sizeof(struct tern_hw_set_gid) == 32, "SET_GID");
static_assert(sizeof(struct tern_hw_set_eth) == 16, "SET_ETH");
static_assert(sizeof(struct tern_hw_alloc_mw) == 8, "ALLOC_MW");
static_assert(sizeof(struct tern_hw_create_srq) == 56, "CREATE_SRQ");
static_assert(sizeof(struct tern_hw_resize_srq) == 40, "RESIZE_SRQ");
static_assert(sizeof(struct tern_hw_mcast) == 24, "ATTACH_MCAST");
static_assert(sizeof(struct tern_hw_create_flow) == 120, "CREATE_FLOW");
static_assert(sizeof(struct tern_hw_modify_mr) == 48, "MODIFY_MR");
static_assert(sizeof(struct tern_hw_faults) == 48, "QUERY_FAULT");
static_assert(sizeof(struct tern_hw_resume_qp) == 8, "RESUME_QP");
static_assert(sizeof(struct tern_hw_resize_cq) == 32, "RESIZE_CQ");
static_assert(sizeof(struct tern_hw_moderate_cq) == 8, "MODERATE_CQ");
static_assert(sizeof(struct tern_hw_create_wq) == 40, "CREATE_WQ");
static_assert(sizeof(struct tern_hw_modify_wq) == 8, "MODIFY_WQ");
static_assert(sizeof(struct tern_hw_create_wq_table) == 16, "CREATE_WQ_TABLE");
static_assert(sizeof(struct tern_hw_create_rss_qp) == 52, "CREATE_RSS_QP");
static_assert(sizeof(struct tern_hw_set_eth_rss) == 56, "SET_ETH_RSS");

#ifdef __cplusplus
} /* namespace tern::hw */
#endif

#endif /* TERN_HW_OBJECTS_H */
