/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Counters, and the admin commands that are about them. */
#ifndef TERN_HW_COUNTERS_H
#define TERN_HW_COUNTERS_H

#include "tern/tern_hw_types.h"

#ifdef __cplusplus
namespace tern::hw {
#endif

/* Counters of QUERY_STATS: one __le64 each, since reset. */
enum tern_hw_stat {
	/* the port */
	TERN_STAT_TX_FRAMES,
	TERN_STAT_TX_BYTES,
	TERN_STAT_RX_FRAMES,
	TERN_STAT_RX_BYTES,
	TERN_STAT_RX_FILTERED,		/* not for this card */
	/* the Ethernet function */
	TERN_STAT_ETH_TX_FRAMES,
	TERN_STAT_ETH_TX_BYTES,
	TERN_STAT_ETH_TX_ERRORS,
	TERN_STAT_ETH_RX_FRAMES,
	TERN_STAT_ETH_RX_BYTES,
	TERN_STAT_ETH_RX_NO_BUFFER,
	TERN_STAT_ETH_RX_ERRORS,
	/* RoCE packets */
	TERN_STAT_ROCE_TX_PACKETS,
	TERN_STAT_ROCE_TX_BYTES,	/* whole frames */
	TERN_STAT_ROCE_RX_PACKETS,
	TERN_STAT_ROCE_RX_BYTES,
	/* RoCE packets that were dropped, by reason */
	TERN_STAT_RX_MALFORMED,		/* truncated, bad header or length, too long */
	TERN_STAT_RX_BAD_ICRC,
	TERN_STAT_RX_BAD_PKEY,
	TERN_STAT_RX_NO_QP,		/* no such QP, or of another service */
	TERN_STAT_RX_BAD_ADDR,		/* GIDs are not those of the connection */
	TERN_STAT_RX_BAD_STATE,		/* the QP cannot receive, or has 64 responses to send */
	TERN_STAT_RX_BAD_OPCODE,	/* reserved, not of RC or XRC */
	/* requester */
	TERN_STAT_REQ_RETRANSMITS,	/* request packets sent again */
	TERN_STAT_REQ_TIMEOUTS,
	TERN_STAT_REQ_RX_SEQ_NAK,	/* that arrived, duplicates too */
	TERN_STAT_REQ_RX_RNR_NAK,
	TERN_STAT_REQ_RX_INV_REQ_NAK,
	TERN_STAT_REQ_RX_ACCESS_NAK,
	TERN_STAT_REQ_RX_OP_NAK,
	TERN_STAT_REQ_IMPLIED_NAK,	/* response PSN shows that an earlier one was lost */
	TERN_STAT_REQ_DUP_ACK,		/* acknowledges nothing new */
	TERN_STAT_REQ_BAD_RESP,
	TERN_STAT_REQ_CQE_ERRORS,
	TERN_STAT_REQ_CQE_FLUSHED,
	TERN_STAT_REQ_RETRY_EXCEEDED,
	TERN_STAT_REQ_RNR_RETRY_EXCEEDED,
	/* responder */
	TERN_STAT_RESP_SENDS,
	TERN_STAT_RESP_WRITES,
	TERN_STAT_RESP_READS,
	TERN_STAT_RESP_ATOMICS,
	TERN_STAT_RESP_DUPLICATES,
	TERN_STAT_RESP_OUT_OF_SEQUENCE,	/* gaps, not the packets behind them */
	TERN_STAT_RESP_TX_SEQ_NAK,
	TERN_STAT_RESP_TX_RNR_NAK,
	TERN_STAT_RESP_TX_INV_REQ_NAK,
	TERN_STAT_RESP_TX_ACCESS_NAK,
	TERN_STAT_RESP_TX_OP_NAK,
	TERN_STAT_RESP_CQE_ERRORS,
	TERN_STAT_RESP_CQE_FLUSHED,
	/* host interface */
	TERN_STAT_DB_DROPPED,		/* no such queue, other page, impossible ci of an EQ */
	TERN_STAT_DMA_FAULTS,
	TERN_STAT_CQ_OVERRUNS,
	TERN_STAT_EQ_OVERRUNS,
	TERN_STAT_AQ_ERRORS,		/* commands that ended with a status other than OK */
	/* UC and UD */
	TERN_STAT_RX_BAD_QKEY,
	TERN_STAT_UC_RX_DROPPED,	/* out of sequence, or of a message given up */
	TERN_STAT_UD_RX_NO_BUFFER,
	/* multicast: RoCE packets that reached a QP, one for each */
	TERN_STAT_MCAST_RX_PACKETS,
	/* QPs of type RAW */
	TERN_STAT_RAW_TX_FRAMES,
	TERN_STAT_RAW_TX_ERRORS,
	TERN_STAT_RAW_RX_FRAMES,
	TERN_STAT_RAW_RX_NO_BUFFER,
	TERN_STAT_RAW_RX_ERRORS,
	/* responder */
	TERN_STAT_RESP_INVALIDATES,
	/* pages on demand */
	TERN_STAT_PAGE_FAULTS,		/* PAGE_FAULT events, both sides */
	/* offloads of the Ethernet function */
	TERN_STAT_ETH_TX_CSUM,		/* checksums put in, one for each frame */
	TERN_STAT_ETH_TX_TSO,		/* send WQEs that became segments */
	TERN_STAT_ETH_RX_CSUM_OK,	/* frames with L4_OK */
	TERN_STAT_ETH_RX_CSUM_BAD,	/* wrong checksum of IPv4, TCP or UDP; delivered too */
	/* responder */
	TERN_STAT_RESP_FLUSHES,
	/* lent payload that its host withdrew before the peer had read it */
	TERN_STAT_TX_REVOKED,		/* packets that the sender revoked */
	TERN_STAT_RX_REVOKED,		/* packets that the receiver found revoked */
	/* congestion control: notification point, reaction point */
	TERN_STAT_NP_ECN_MARKED,	/* RoCEv2 packets that arrived with CE */
	TERN_STAT_NP_CNP_SENT,
	TERN_STAT_RP_CNP_HANDLED,
	TERN_STAT_RP_CNP_IGNORED,	/* no such QP, or its rate is not controlled */
	/* pause frames that named the priority and were obeyed, including those that end a pause */
	TERN_STAT_RX_PRIO0_PAUSE,
	TERN_STAT_RX_PRIO1_PAUSE,
	TERN_STAT_RX_PRIO2_PAUSE,
	TERN_STAT_RX_PRIO3_PAUSE,
	TERN_STAT_RX_PRIO4_PAUSE,
	TERN_STAT_RX_PRIO5_PAUSE,
	TERN_STAT_RX_PRIO6_PAUSE,
	TERN_STAT_RX_PRIO7_PAUSE,

	TERN_STAT_COUNT,
};

/* Sets of counters that are not made by CREATE_STATS. */
enum {
	TERN_STATS_ALL = 0,		/* all that the engine counts */
	TERN_STATS_UNBOUND = 0xffffff,	/* all but what is counted for a QP bound to a set */
};

/* QUERY_STATS: the card writes the first count values of enum tern_hw_stat, each a __le64. */
struct tern_hw_query_stats {
	__le64 iova;
	__le32 count;
	__le32 set;		/* of CREATE_STATS, or TERN_STATS_*; only 0 without QP_STATS */
};

/* BIND_STATS: from now on what happens to the QP is counted in that set, or in none. */
struct tern_hw_bind_stats {
	__le32 qpn;
	__le32 set;		/* of CREATE_STATS; 0: none */
};

/* What a completion counter adds up for a success. A failure always counts as one. */
enum tern_hw_comp_unit {
	TERN_COMP_REQUESTS = 0,
	TERN_COMP_BYTES = 1,	/* bytes of data; of a receive, byte_len of its CQE */
};

struct tern_hw_create_comp_counter {
	__le64 record;		/* of struct tern_hw_comp_record; the card clears both values */
	__le32 db_page;		/* of the process that owns it, or TERN_DB_PAGE_KERNEL */
	__u8 unit;		/* enum tern_hw_comp_unit */
	__u8 rsvd[3];
};

/* A value of a completion counter */
enum tern_hw_comp_value {
	TERN_COMP_COMPLETED = 0,
	TERN_COMP_FAILED = 1,
};

/* MODIFY_COMP_COUNTER: what it does with the value */
enum tern_hw_comp_change {
	TERN_COMP_SET = 0,
	TERN_COMP_ADD = 1,
};

struct tern_hw_modify_comp_counter {
	__le64 operand;
	__le32 id;
	__u8 value;		/* enum tern_hw_comp_value */
	__u8 change;		/* enum tern_hw_comp_change */
	__u8 rsvd[2];
};

/* Operations that a completion counter counts: the bits of enum ibv_qp_attach_comp_cntr_op */
#define TERN_COMP_SEND		0x01u	/* SEND, SEND_IMM, SEND_INV */
#define TERN_COMP_RECV		0x02u	/* receive WQEs */
#define TERN_COMP_READ		0x04u	/* READ */
#define TERN_COMP_REMOTE_READ	0x08u	/* READs of the peer, whose data has been sent */
#define TERN_COMP_WRITE		0x10u	/* WRITE, WRITE_IMM */
#define TERN_COMP_REMOTE_WRITE	0x20u	/* WRITEs of the peer, whose data is in memory */

/* ATTACH_COMP_COUNTER: in RESET or INIT. The QP's destruction detaches its counters. */
struct tern_hw_attach_comp_counter {
	__le32 qpn;
	__le32 id;
	__le32 ops;		/* TERN_COMP_* of the QP's type that have no counter */
	__le32 rsvd;
};

/* READ_COUNTERS returns what the flows of these counters have taken since CREATE_COUNTERS. */
struct tern_hw_counters {
	__le64 packets;
	__le64 bytes;		/* without FCS */
};

static_assert(sizeof(struct tern_hw_query_stats) == 16, "QUERY_STATS");
static_assert(sizeof(struct tern_hw_bind_stats) == 8, "BIND_STATS");
static_assert(sizeof(struct tern_hw_create_comp_counter) == 16, "CREATE_COMP_COUNTER");
static_assert(sizeof(struct tern_hw_modify_comp_counter) == 16, "MODIFY_COMP_COUNTER");
static_assert(sizeof(struct tern_hw_attach_comp_counter) == 16, "ATTACH_COMP_COUNTER");
static_assert(sizeof(struct tern_hw_counters) == 16, "READ_COUNTERS");

#ifdef __cplusplus
} /* namespace tern::hw */
#endif

#endif /* TERN_HW_COUNTERS_H */
