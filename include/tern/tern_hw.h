/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The interface of the Tern card to its host: registers, doorbells, rings and
 * admin commands. docs/hardware.md explains it. The kernel driver, the
 * user-space provider and the card itself include this file.
 *
 * All multi-byte values in host memory and registers are little-endian, unless
 * the type says big-endian. "Reserved" fields and bits are zero; the card refuses
 * a command or a work request in which they are not.
 */
#ifndef TERN_HW_H
#define TERN_HW_H

#ifdef __cplusplus
#include <cstdint>

#include "tern/endian.hpp"

namespace tern::hw {
/* Shadow the names of <linux/types.h> by types that swap and check. */
using __u8 = uint8_t;
using __le16 = Le<uint16_t>;
using __le32 = Le<uint32_t>;
using __le64 = Le<uint64_t>;
using __be16 = Be<uint16_t>;
using __be32 = Be<uint32_t>;
#else
#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/build_bug.h>
#else
#include <assert.h>
#endif
#endif

/* ---- PCI identity ------------------------------------------------------ */

/* PCI identity, BARs and the version of this interface */
enum {
	TERN_PCI_VENDOR_ID = 0x1234,
	TERN_PCI_DEVICE_ID = 0x7e44,

	TERN_BAR_REGS = 0,	/* registers, 4 KiB for each engine */
	TERN_BAR_DOORBELLS = 2,	/* doorbell pages, 64-bit, prefetchable */
	TERN_BAR_MSIX = 4,
	TERN_BAR_DM = 5,	/* device memory, 32-bit, prefetchable (TERN_CAP_DM) */

	TERN_HW_MAJOR = 1,	/* a driver refuses a major it does not know */
	TERN_HW_MINOR = 11,
};

/* ---- engines ----------------------------------------------------------- */

/*
 * A card has one or more engines. Each is a card by itself, with its own admin queue, event
 * queues and objects; they share the PCI function, the vectors, the MAC address and the device
 * memory. Engine k has its registers at k * TERN_REGS_SIZE of BAR 0. Page n of an engine is page
 * n * engines + k of BAR 2. Bits 23:20 of an object's number (for a key, of its index) are the
 * number of its engine. An object can refer only to objects of the same engine. Only engine 0
 * has QPs of the types GSI, ETH and RAW. The driver sets GIDs, MAC address and MTU on each engine.
 *
 * A RoCE packet reaches the engine of its destination QPN, and a multicast packet all engines.
 * Engine 0 receives all other frames, and packets whose QPN names no engine of the card.
 */

/* Engines: bytes of the registers of each, most engines, lowest bit of the engine in a number */
enum {
	TERN_REGS_SIZE = 4096,
	TERN_MAX_ENGINES = 16,
	TERN_ENGINE_SHIFT = 20,
};

/* ---- registers (BAR 0), all 32 bits wide, aligned accesses of 4 bytes ---- */

/* Registers: offsets in an engine's part of BAR 0, 32 bits wide */
enum {
	TERN_REG_VERSION = 0x00,	/* RO: major in 31:16, minor in 15:0 */
	TERN_REG_STATUS = 0x04,		/* RO: TERN_STATUS_* */
	TERN_REG_CAPS = 0x08,		/* RO: TERN_CAP_* */
	TERN_REG_CAPS_HI = 0x0c,	/* RO: no bit defined yet */
	TERN_REG_CTRL = 0x10,		/* RW: TERN_CTRL_* */
	TERN_REG_LINK = 0x14,		/* RO: TERN_LINK_* */
	TERN_REG_LINK_SPEED = 0x18,	/* RO: Mb/s */
	TERN_REG_MAC_LO = 0x20,		/* RO: permanent MAC, bytes 0..3, byte 0 in 7:0 */
	TERN_REG_MAC_HI = 0x24,		/* RO: permanent MAC, bytes 4..5 in 15:0 */
	TERN_REG_DB_PAGES = 0x28,	/* RO: number of the engine's doorbell pages */
	TERN_REG_VECTORS = 0x2c,	/* RO: number of MSI-X vectors */
	TERN_REG_AQ_LOG_SIZE = 0x30,	/* RW: log2 of the admin rings' entries, 1..10 */
	TERN_REG_AQ_BASE_LO = 0x38,	/* RW: IOVA of the admin queue, 4 KiB aligned */
	TERN_REG_AQ_BASE_HI = 0x3c,
	TERN_REG_ACQ_BASE_LO = 0x40,	/* RW: IOVA of the admin completion queue, 4 KiB aligned */
	TERN_REG_ACQ_BASE_HI = 0x44,
	TERN_REG_AQ_PI = 0x48,		/* WO: admin producer index, free-running */
	TERN_REG_DM_SIZE = 0x4c,	/* RO: bytes of device memory */
	TERN_REG_ENGINES = 0x50,	/* RO: number of engines; 0, before minor 4: one */
};

/* TERN_REG_STATUS */
#define TERN_STATUS_READY	0x00000001u	/* enabled, takes commands */
#define TERN_STATUS_RESETTING	0x00000002u	/* a reset is under way */
#define TERN_STATUS_FATAL	0x00000004u	/* stopped, only a reset helps */
#define TERN_STATUS_REASON_SHIFT	8	/* enum tern_hw_fatal in 15:8 */
#define TERN_STATUS_REASON_MASK	0x0000ff00u

enum tern_hw_fatal {
	TERN_FATAL_NONE = 0,
	TERN_FATAL_AQ_CONFIG = 1,	/* enabled with a bad admin ring base or size */
	TERN_FATAL_AQ_DMA = 2,		/* an admin ring could not be read or written */
	TERN_FATAL_AQ_INDEX = 3,	/* AQ_PI moved by more than the ring holds */
	TERN_FATAL_EQ_DMA = 4,		/* an event queue could not be written */
};

/* TERN_REG_CAPS */
#define TERN_CAP_RC		0x00000001u	/* reliable connected QPs */
#define TERN_CAP_ATOMIC		0x00000002u	/* compare-swap and fetch-add, 8 bytes */
#define TERN_CAP_ROCE_V1	0x00000004u	/* ethertype 0x8915 */
#define TERN_CAP_ROCE_V2	0x00000008u	/* UDP port 4791 over IPv4 and IPv6 */
#define TERN_CAP_ETH		0x00000010u	/* the Ethernet function: QPs of type ETH */
#define TERN_CAP_SHADOW_DB	0x00000020u	/* sq_pi and sq_event of the QP record are live */
#define TERN_CAP_UC		0x00000040u	/* unreliable connected QPs */
#define TERN_CAP_UD		0x00000080u	/* datagram QPs, and the GSI */
#define TERN_CAP_MULTICAST	0x00000100u	/* multicast groups of datagram QPs */
#define TERN_CAP_SRQ		0x00000200u	/* shared receive queues */
#define TERN_CAP_XRC		0x00000400u	/* XRC domains, SRQs and QPs */
#define TERN_CAP_RAW		0x00000800u	/* QPs of type RAW, and flows */
#define TERN_CAP_MW		0x00001000u	/* memory windows, SEND with invalidate */
#define TERN_CAP_FAST_REG	0x00002000u	/* regions registered by work requests */
#define TERN_CAP_CLOCK		0x00004000u	/* TERN_DB_CLOCK can be read */
#define TERN_CAP_MODIFY_CQ	0x00008000u	/* CQs can be resized and moderated */
#define TERN_CAP_MODIFY_MR	0x00010000u	/* regions can be changed */
#define TERN_CAP_DM		0x00020000u	/* device memory */
#define TERN_CAP_ODP		0x00040000u	/* regions whose pages come on demand */
#define TERN_CAP_RSS		0x00080000u	/* receive WQs, QPs that spread frames over them */
#define TERN_CAP_ATOMIC_WRITE	0x00100000u	/* ATOMIC_WRITE, 8 bytes */
#define TERN_CAP_TAG_MATCHING	0x00200000u	/* SRQs that match messages by tag */
#define TERN_CAP_PACING		0x00400000u	/* QPs have a rate limit */
#define TERN_CAP_FLOW_COUNTERS	0x00800000u	/* flows are counted */
#define TERN_CAP_FLUSH		0x01000000u	/* FLUSH */
#define TERN_CAP_ETH_OFFLOAD	0x02000000u	/* ETH QPs: checksums, segmentation of TCP */
#define TERN_CAP_ETH_QUEUES	0x04000000u	/* several ETH QPs, frames spread over them */
#define TERN_CAP_CONGESTION	0x08000000u	/* congestion control has parameters */
#define TERN_CAP_QP_STATS	0x10000000u	/* sets of counters for chosen QPs */
#define TERN_CAP_MASKED_ATOMIC	0x20000000u	/* atomics of parts of a word */
#define TERN_CAP_NULL_KEY	0x40000000u	/* TERN_LKEY_NULL */
#define TERN_CAP_COMP_COUNTERS	0x80000000u	/* completion counters */

/* TERN_REG_CTRL */
#define TERN_CTRL_ENABLE	0x00000001u	/* latches the admin ring registers */
#define TERN_CTRL_RESET		0x00000002u	/* starts a reset; reads as zero */
#define TERN_CTRL_AQ_IRQ	0x00000004u	/* admin completions raise vector 0 */

/* TERN_REG_LINK */
#define TERN_LINK_UP		0x00000001u

/* ---- doorbells (BAR 2), one aligned 8-byte store each -------------------- */

/* Doorbell pages */
enum {
	TERN_DB_PAGE_SIZE = 4096,
	TERN_DB_PAGE_KERNEL = 0,	/* the driver's own; the others go to processes */

	/* offsets in a page */
	TERN_DB_SQ = 0x00,	/* QPN in 23:0, producer index in 63:32 */
	TERN_DB_CQ_ARM = 0x08,	/* CQN in 23:0, TERN_DB_CQ_SOLICITED, consumer index in 63:32 */
	TERN_DB_EQ_ARM = 0x10,	/* page 0 only: EQN in 23:0, consumer index in 63:32 */
	TERN_DB_CLOCK = 0x18,	/* RO, 8 bytes: the clock of the CQEs' timestamps, ns */
	TERN_DB_TAG_OPS = 0x20,	/* SRQN in 23:0, producer index of its tag operations in 63:32 */
};

/* Fields of a doorbell */
#define TERN_DB_NUM_MASK	0x00ffffffu
#define TERN_DB_CQ_SOLICITED	0x01000000u	/* event only for solicited or failed completions */
#define TERN_DB_INDEX_SHIFT	32

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

/* ---- admin queue --------------------------------------------------------------- */

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

/* The bodies of commands; each fits in 120 bytes. */

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

/* READ_COUNTERS returns what the flows of these counters have taken since CREATE_COUNTERS. */
struct tern_hw_counters {
	__le64 packets;
	__le64 bytes;		/* without FCS */
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

/* ---- counters ------------------------------------------------------------------- */

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

/* ---- sizes ------------------------------------------------------------------------ */

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
static_assert(sizeof(struct tern_hw_query_stats) == 16, "QUERY_STATS");
static_assert(sizeof(struct tern_hw_bind_stats) == 8, "BIND_STATS");
static_assert(sizeof(struct tern_hw_comp_record) == 64, "record of a completion counter");
static_assert(sizeof(struct tern_hw_create_comp_counter) == 16, "CREATE_COMP_COUNTER");
static_assert(sizeof(struct tern_hw_modify_comp_counter) == 16, "MODIFY_COMP_COUNTER");
static_assert(sizeof(struct tern_hw_attach_comp_counter) == 16, "ATTACH_COMP_COUNTER");
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
static_assert(sizeof(struct tern_hw_device_attr) == 104, "QUERY_DEVICE");
static_assert(sizeof(struct tern_hw_modify_mr) == 48, "MODIFY_MR");
static_assert(sizeof(struct tern_hw_faults) == 48, "QUERY_FAULT");
static_assert(sizeof(struct tern_hw_resume_qp) == 8, "RESUME_QP");
static_assert(sizeof(struct tern_hw_resize_cq) == 32, "RESIZE_CQ");
static_assert(sizeof(struct tern_hw_moderate_cq) == 8, "MODERATE_CQ");
static_assert(sizeof(struct tern_hw_create_wq) == 40, "CREATE_WQ");
static_assert(sizeof(struct tern_hw_modify_wq) == 8, "MODIFY_WQ");
static_assert(sizeof(struct tern_hw_create_wq_table) == 16, "CREATE_WQ_TABLE");
static_assert(sizeof(struct tern_hw_create_rss_qp) == 52, "CREATE_RSS_QP");
static_assert(sizeof(struct tern_hw_counters) == 16, "READ_COUNTERS");
static_assert(sizeof(struct tern_hw_set_eth_rss) == 56, "SET_ETH_RSS");
static_assert(sizeof(struct tern_hw_set_congestion) == 8, "SET_CONGESTION");
static_assert(sizeof(struct tern_hw_congestion) == 4 * TERN_CC_COUNT, "congestion control");
static_assert(sizeof(struct tern_hw_aq_cmd) == TERN_AQ_ENTRY, "admin command");
static_assert(sizeof(struct tern_hw_aq_cqe) == TERN_AQ_ENTRY, "admin completion");

#ifdef __cplusplus
} /* namespace tern::hw */
#endif

#endif /* TERN_HW_H */
