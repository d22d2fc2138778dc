/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What host and card share in memory: page lists, records, and the entries of queues. */
#ifndef TERN_HW_QUEUES_H
#define TERN_HW_QUEUES_H

#include "tern/tern_hw_types.h"

#ifdef __cplusplus
namespace tern::hw {
#endif

/* ---- page lists ---------------------------------------------------------- */

/*
 * Where a buffer is. levels 0: it is contiguous and iova is that of its first
 * byte. levels 1..4: iova is that of a 4 KiB table of 512 entries (__le64); each
 * entry of the last level is the IOVA of a leaf page of 1 << page_shift bytes, of
 * the others the IOVA of a table of the next level. Tables and leaf pages are
 * aligned to their size. The buffer starts in leaf page 0 (a memory region: at
 * start modulo the leaf page size; a ring: at byte 0). The tables stay as they are
 * while the object lives; the card may cache them.
 *
 * The entries (of any level) of a region with TERN_MR_ON_DEMAND may be absent, and the host may
 * add and remove them at any time. An absent entry is zero. A present entry, of any level, has
 * TERN_PAGE_PRESENT besides the IOVA; one of the last level also has TERN_PAGE_WRITE if the card
 * may write to the page. Such a region has at least one level. Entries of all other page lists
 * have neither bit.
 */
struct tern_hw_pages {
	__le64 iova;
	__u8 levels;
	__u8 page_shift;	/* 12..30; zero with levels 0 */
	__u8 rsvd[6];
};

/* Limits of page lists */
enum {
	TERN_TABLE_SIZE = 4096,
	TERN_TABLE_ENTRIES = 512,
	TERN_MAX_LEVELS = 4,
	TERN_MIN_PAGE_SHIFT = 12,
	TERN_MAX_PAGE_SHIFT = 30,
};

/* Bits of the entries of a region on demand */
#define TERN_PAGE_PRESENT	0x1ull	/* entries of every level */
#define TERN_PAGE_WRITE		0x2ull	/* leaf pages only */

/* ---- records: indices in host memory, 64-byte aligned --------------------- */

/* The record of a QP. Producer indices are free-running. */
struct tern_hw_qp_record {
	__le32 rq_pi;		/* host: receive WQEs posted */
	__le32 sq_pi;		/* host: send blocks posted (TERN_CAP_SHADOW_DB) */
	__le32 rsvd0[6];
	__le32 sq_event;	/* card: ring the doorbell when sq_pi goes past this */
	__le32 rsvd1[7];
};

/* The record of an SRQ. */
struct tern_hw_srq_record {
	__le32 pi;		/* host: receive WQEs posted, free-running */
	__le32 rsvd[15];
};

/* The record of a CQ. */
struct tern_hw_cq_record {
	__le32 ci;		/* host: CQEs consumed, free-running */
	__le32 rsvd[15];
};

/* The record of a completion counter: its values, each written with one store. */
struct tern_hw_comp_record {
	__le64 completed;	/* card: what succeeded, in the counter's unit; wraps */
	__le64 failed;		/* card: requests that failed or were flushed; wraps */
	__le32 rsvd[12];
};

/* ---- work queue entries ---------------------------------------------------- */

/* Limits of work queue entries */
enum {
	TERN_SQ_BLOCK = 64,		/* a send WQE takes one or more blocks */
	TERN_SEG_SIZE = 16,
	TERN_MAX_SEND_SEGS = 64,	/* 1 KiB */
	TERN_MAX_SEND_SGE = 30,
	TERN_MAX_RECV_SGE = 32,
	TERN_MAX_INLINE = 960,
};

/* Opcode of a send WQE, and of the CQE that completes it. */
enum tern_hw_wqe_op {
	TERN_OP_SEND = 0x01,
	TERN_OP_SEND_IMM = 0x02,
	TERN_OP_WRITE = 0x03,
	TERN_OP_WRITE_IMM = 0x04,
	TERN_OP_READ = 0x05,
	TERN_OP_CMP_SWAP = 0x06,
	TERN_OP_FETCH_ADD = 0x07,
	TERN_OP_SEND_INV = 0x08,	/* the peer invalidates the key in imm */
	TERN_OP_LOCAL_INV = 0x09,	/* invalidates the key in imm */
	TERN_OP_BIND_MW = 0x0a,
	TERN_OP_REG_MR = 0x0b,		/* QPs of the kernel's page only */
	TERN_OP_ATOMIC_WRITE = 0x0c,	/* 8 bytes, from one data segment or inline */
	TERN_OP_FLUSH = 0x0d,		/* no data */
	TERN_OP_MASKED_CMP_SWAP = 0x0e,	/* QPs of type RC only */
	TERN_OP_MASKED_FETCH_ADD = 0x0f,	/* QPs of type RC only */
};

/* flags of the control segment */
#define TERN_WQE_SIGNALED	0x01u	/* write a CQE on success too */
#define TERN_WQE_SOLICITED	0x02u	/* set the SE bit of the last packet */
#define TERN_WQE_FENCE		0x04u	/* start after all earlier READs, atomics and FLUSHes */
#define TERN_WQE_INLINE		0x08u	/* the payload follows in the WQE, no data segments */

/* First segment of every send WQE. */
struct tern_hw_ctrl_seg {
	__u8 opcode;		/* enum tern_hw_wqe_op */
	__u8 flags;		/* TERN_WQE_* */
	__u8 segs;		/* 16-byte units of the whole WQE, inline data included */
	__u8 rsvd0;
	__be32 imm;		/* immediate data, as on the wire; SEND_INV, LOCAL_INV: a key */
	__le32 inline_len;	/* bytes, with TERN_WQE_INLINE */
	__le32 srqn;		/* QPs of type XRC_INI: the peer's SRQ; of others reserved */
};

/*
 * The first segment of a send WQE of an ETH QP, which replaces struct tern_hw_ctrl_seg. The card
 * completes the frame (TERN_CAP_ETH_OFFLOAD). If csum_start is not 0, the host stores the sum of
 * the pseudo header in the 16 bits at csum_start + csum_offset. The card replaces it by the
 * Internet checksum of all bytes from csum_start on (0xffff for 0 at UDP's csum_offset, 6).
 * If mss is not 0 either, the frame may be longer than the MTU, and the card sends it as TCP
 * segments of at most mss bytes of payload. csum_start is then the offset of the TCP header. The
 * length in the pseudo header is that of the TCP header and the payload of the whole WQE. The card
 * corrects it for each segment.
 */
struct tern_hw_eth_ctrl_seg {
	__u8 opcode;		/* TERN_OP_SEND */
	__u8 flags;		/* TERN_WQE_* */
	__u8 segs;
	__u8 rsvd0;
	__le16 csum_start;	/* 0: as it is; offset from the destination MAC, 14 or more */
	__le16 csum_offset;	/* with mss 16, that of TCP */
	__le32 inline_len;
	__le16 mss;		/* 0: one frame */
	__le16 rsvd1;
};

/* Longest send WQE with mss, headers included, in bytes */
enum { TERN_MAX_TSO = 65536 };

/* Where a datagram goes: 48 bytes after the control segment of QPs of type UD and GSI. */
struct tern_hw_ud_seg {
	__u8 dgid[16];
	__u8 dmac[6];
	__u8 sgid_index;
	__u8 hop_limit;
	__le32 dest_qpn;	/* 24 bits; 0xffffff with a multicast dgid */
	__le32 qkey;		/* that of the QP is sent when bit 31 is set (IBA 10.2.5) */
	__le32 flow_label;	/* 20 bits */
	__le16 udp_sport;
	__u8 traffic_class;
	__u8 sl;		/* 0..15 */
	__le32 rsvd[2];
};

/* Second segment of WRITE, READ, atomics, ATOMIC_WRITE and FLUSH. */
struct tern_hw_raddr_seg {
	__le64 addr;
	__le32 rkey;
	__le32 rsvd;
};

/* Third segment of atomics. A data segment follows; masked atomics have their masks before it. */
struct tern_hw_atomic_seg {
	__le64 swap_add;
	__le64 compare;		/* zero for FETCH_ADD and MASKED_FETCH_ADD */
};

/* Fourth segment of masked atomics. */
struct tern_hw_atomic_mask_seg {
	__le64 swap_add;	/* bits to replace; MASKED_FETCH_ADD: the top bit of each field */
	__le64 compare;		/* bits to compare; zero for MASKED_FETCH_ADD */
};

/* placement types of a FLUSH, one or both: the bits of enum ib_placement_type */
#define TERN_FLUSH_GLOBAL	0x1u	/* visible to all that read that memory */
#define TERN_FLUSH_PERSISTENT	0x2u	/* survives a loss of power */

/* How much of a region a FLUSH is about: the numbers of enum ib_selectivity_level. */
enum tern_hw_flush_level {
	TERN_FLUSH_RANGE = 0,
	TERN_FLUSH_MR = 1,	/* all of it: the peer looks at neither addr nor length */
};

/* Third segment of FLUSH. */
struct tern_hw_flush_seg {
	__le32 length;		/* of the range, at most 1 << 31 */
	__u8 type;		/* TERN_FLUSH_GLOBAL, TERN_FLUSH_PERSISTENT */
	__u8 level;		/* enum tern_hw_flush_level */
	__u8 rsvd[10];
};

/* After the control segment of BIND_MW: makes the window rkey name part of a region. */
struct tern_hw_bind_seg {
	__le64 addr;		/* of the region's address space */
	__le64 length;		/* zero only invalidates the window */
	__le32 rkey;		/* the window's index with its new variant */
	__le32 lkey;		/* the region, of the same PD */
	__u8 access;		/* TERN_ACCESS_REMOTE_*, TERN_ACCESS_ZERO_BASED (type 2) */
	__u8 rsvd[7];
};

/* After the control segment of REG_MR: fills a region of CREATE_FAST_MR. */
struct tern_hw_reg_seg {
	__le64 start;
	__le64 length;
	struct tern_hw_pages pages;
	__le32 key;		/* the region's index with its new variant */
	__u8 access;		/* TERN_ACCESS_* */
	__u8 rsvd[11];
};

/*
 * A local buffer. A receive WQE is a list of these and nothing else, ended by the
 * stride of the ring or by an entry whose lkey is TERN_LKEY_END. A zero length is
 * zero bytes.
 */
struct tern_hw_data_seg {
	__le64 addr;
	__le32 length;		/* at most 1 << 31 */
	__le32 lkey;
};

/* Keys: index in 31:8, variant (chosen by the driver) in 7:0. Index 0 is reserved. */
#define TERN_LKEY_END		0x00000000u	/* ends the list of a receive WQE */
#define TERN_LKEY_LOCAL_DMA	0x00000001u	/* addr is an IOVA; QPs of the kernel's page only */
#define TERN_LKEY_NULL		0x00000002u	/* no memory: reads as zeroes, ignores writes */

/* ---- tag operations ----------------------------------------------------------- */

/* Limits of tag matching */
enum {
	TERN_MAX_RNDV_HDR = 64,		/* a longer rendezvous request is never matched */
};

enum tern_hw_tag_opcode {
	TERN_TAG_ADD = 1,	/* at the end of the list */
	TERN_TAG_DEL = 2,	/* TM_ERR when a message has matched it, or it is not there */
	TERN_TAG_SYNC = 3,	/* only what its flags say */
};

/* flags of a tag operation */
#define TERN_TAG_SIGNALED	0x01u	/* write a CQE on success too */
#define TERN_TAG_COUNT		0x02u	/* the host has dealt with so many unexpected messages */

/* An SRQ with TERN_SRQ_TAGS has a ring of these. Fields that the opcode does not use are zero. */
struct tern_hw_tag_op {
	__u8 opcode;		/* enum tern_hw_tag_opcode */
	__u8 flags;		/* TERN_TAG_* */
	__u8 rsvd0[2];
	__le32 entry;		/* ADD: one that is free, of the list; DEL: the one to remove */
	__le32 unexpected;	/* with TERN_TAG_COUNT: since the SRQ was created, modulo 2^32 */
	__le32 rsvd1;
	/* ADD: a message matches if (its tag & mask) == tag; its data goes to buf */
	__le64 tag;
	__le64 mask;
	struct tern_hw_data_seg buf;
	__u8 rsvd2[16];
};

/* ---- completion queue entry ------------------------------------------------- */

/* A receive completion has one of these opcodes. A send completion has that of its WQE. */
enum tern_hw_cqe_op {
	TERN_CQE_RECV = 0x80,		/* SEND arrived */
	TERN_CQE_RECV_WRITE_IMM = 0x81,	/* WRITE with immediate arrived */
	/* of SRQs with TERN_SRQ_TAGS: operations; they complete all that were posted before */
	TERN_CQE_TAG_ADD = 0x82,
	TERN_CQE_TAG_DEL = 0x83,
	TERN_CQE_TAG_SYNC = 0x84,
	/* ... and messages */
	TERN_CQE_TAG_RECV = 0x85,	/* matched */
	TERN_CQE_TAG_UNEXPECTED = 0x86,	/* has a tag that nothing matched: in a slot */
	TERN_CQE_NO_TAG = 0x87,		/* has none: in a slot */
};

/* flags of a CQE */
#define TERN_CQE_IMM		0x01u	/* imm is immediate data */
#define TERN_CQE_INV		0x02u	/* imm is the key that the message invalidated */
#define TERN_CQE_GRH		0x04u	/* datagram: the first 40 bytes hold its GRH */
#define TERN_CQE_WQ		0x08u	/* receive: qpn is the number of a WQ */
#define TERN_CQE_TAG_MATCH	0x10u	/* TAG_RECV: the match; tag and app_ctx are the message's */
#define TERN_CQE_TAG_DATA	0x20u	/* TAG_RECV: the end; the entry is free again */
#define TERN_CQE_TAG_SYNC_REQ	0x40u	/* operation: entries wait for a count of the host */
/* flags of a CQE with opcode RECV of an ETH QP, where they replace TAG_MATCH and TAG_DATA */
#define TERN_CQE_IP_OK		0x10u	/* the checksum of the IPv4 header is right */
#define TERN_CQE_L4_OK		0x20u	/* so is that of TCP or UDP */

/* The header in the first 40 bytes of a datagram; an IPv4 header is in the last 20 of them. */
enum tern_hw_net_type {
	TERN_NET_ROCE_V1 = 1,
	TERN_NET_IPV4 = 2,
	TERN_NET_IPV6 = 3,
};

/* Status of a CQE: the numbers of enum ib_wc_status and ibv_wc_status. */
enum tern_hw_cqe_status {
	TERN_WC_SUCCESS = 0,
	TERN_WC_LOC_LEN_ERR = 1,
	TERN_WC_LOC_QP_OP_ERR = 2,
	TERN_WC_LOC_PROT_ERR = 4,
	TERN_WC_WR_FLUSH_ERR = 5,
	TERN_WC_MW_BIND_ERR = 6,
	TERN_WC_BAD_RESP_ERR = 7,
	TERN_WC_LOC_ACCESS_ERR = 8,
	TERN_WC_REM_INV_REQ_ERR = 9,
	TERN_WC_REM_ACCESS_ERR = 10,
	TERN_WC_REM_OP_ERR = 11,
	TERN_WC_RETRY_EXC_ERR = 12,
	TERN_WC_RNR_RETRY_EXC_ERR = 13,
	TERN_WC_FATAL_ERR = 19,
	TERN_WC_GENERAL_ERR = 21,
	TERN_WC_TM_ERR = 22,
	TERN_WC_TM_RNDV_INCOMPLETE = 23,
};

/* The phase of an entry is 1 in the first pass over the ring, 0 in the next, then 1 again. */
#define TERN_PHASE	0x01u

/*
 * The card writes bytes 0..55, then the last 8 with one store. A send CQE completes the WQE that
 * began at block wqe_index and all before it. A receive CQE completes receive WQE wqe_index and no
 * other. Both indices are free-running: they count blocks or WQEs since RESET. For a receive WQE of
 * an SRQ wqe_index is its slot, with TERN_CQE_TAG_ADD, TAG_DEL and TAG_SYNC the free-running index
 * of the operation, with TAG_RECV the entry of the list.
 */
struct tern_hw_cqe {
	__le32 wqe_index;
	__le32 byte_len;	/* receive: bytes that came, GRH included; READ, atomics: placed */
	__be32 imm;
	__le32 srqn;		/* receive: the SRQ that the WQE came from, or zero */
	__le64 timestamp;	/* the card's clock, ns */
	/* what follows up to tag is of datagrams, for others zero */
	__le32 src_qpn;
	__le16 vlan;		/* priority in 15:13, VLAN id in 11:0; 0xffff: no tag */
	__u8 net_type;		/* enum tern_hw_net_type */
	__u8 sl;
	__u8 smac[6];
	__u8 rsvd0[2];
	__le64 tag;		/* with TERN_CQE_TAG_MATCH, as app_ctx */
	__le32 app_ctx;
	__le32 hash;		/* ETH: what SET_ETH_RSS asked for; 0 without */
	__le32 qpn;		/* 23:0; zero for tag operations */
	__u8 opcode;
	__u8 status;
	__u8 flags;		/* TERN_CQE_* */
	__u8 phase;
};

/* ---- event queue entry ------------------------------------------------------- */

enum tern_hw_event {
	TERN_EVENT_COMP = 1,		/* id: CQN */
	TERN_EVENT_CQ_ERR = 2,		/* id: CQN; overrun, or the ring could not be written */
	TERN_EVENT_QP_FATAL = 3,	/* id: QPN; a queue or a CQ of it could not be used */
	TERN_EVENT_QP_REQ_ERR = 4,	/* id: QPN; responder: invalid request */
	TERN_EVENT_QP_ACCESS_ERR = 5,	/* id: QPN; responder: access violation */
	TERN_EVENT_COMM_EST = 6,	/* id: QPN; first packet in RTR */
	TERN_EVENT_SQ_DRAINED = 7,	/* id: QPN; SQD reached */
	TERN_EVENT_LINK = 8,		/* TERN_REG_LINK changed */
	TERN_EVENT_LAST_WQE = 9,	/* id: QPN in ERR; takes nothing more from its SRQ */
	TERN_EVENT_SRQ_LIMIT = 10,	/* id: SRQN; fewer WQEs than the limit, which is now 0 */
	TERN_EVENT_SRQ_ERR = 11,	/* id: SRQN; its rings could not be used */
	TERN_EVENT_PAGE_FAULT = 12,	/* id: QPN; it waits for pages: QUERY_FAULT, RESUME_QP */
	TERN_EVENT_WQ_FATAL = 13,	/* id: WQN; a queue or the CQ of it could not be used */
};

/* Asynchronous events go to the EQ of vector 0, TERN_EVENT_COMP to that of the CQ. */
struct tern_hw_eqe {
	__le32 id;
	__le32 rsvd0;
	__le32 rsvd1;
	__u8 rsvd2;
	__u8 rsvd3;
	__u8 type;		/* enum tern_hw_event */
	__u8 phase;		/* as in a CQE; the last 8 bytes are one store */
};

static_assert(sizeof(struct tern_hw_pages) == 16, "page list");
static_assert(sizeof(struct tern_hw_qp_record) == 64, "QP record");
static_assert(sizeof(struct tern_hw_cq_record) == 64, "CQ record");
static_assert(sizeof(struct tern_hw_ctrl_seg) == TERN_SEG_SIZE, "control segment");
static_assert(sizeof(struct tern_hw_eth_ctrl_seg) == TERN_SEG_SIZE, "ETH control segment");
static_assert(sizeof(struct tern_hw_raddr_seg) == TERN_SEG_SIZE, "remote address segment");
static_assert(sizeof(struct tern_hw_atomic_seg) == TERN_SEG_SIZE, "atomic segment");
static_assert(sizeof(struct tern_hw_atomic_mask_seg) == TERN_SEG_SIZE, "atomic mask segment");
static_assert(sizeof(struct tern_hw_flush_seg) == TERN_SEG_SIZE, "flush segment");
static_assert(sizeof(struct tern_hw_data_seg) == TERN_SEG_SIZE, "data segment");
static_assert(sizeof(struct tern_hw_ud_seg) == 3 * TERN_SEG_SIZE, "datagram segment");
static_assert(sizeof(struct tern_hw_bind_seg) == 2 * TERN_SEG_SIZE, "bind segment");
static_assert(sizeof(struct tern_hw_reg_seg) == 3 * TERN_SEG_SIZE, "registration segment");
static_assert(sizeof(struct tern_hw_srq_record) == 64, "SRQ record");
static_assert(sizeof(struct tern_hw_tag_op) == 64, "tag operation");
static_assert(sizeof(struct tern_hw_cqe) == 64, "CQE");
static_assert(sizeof(struct tern_hw_eqe) == 16, "EQE");
static_assert(sizeof(struct tern_hw_comp_record) == 64, "record of a completion counter");

#ifdef __cplusplus
} /* namespace tern::hw */
#endif

#endif /* TERN_HW_QUEUES_H */
