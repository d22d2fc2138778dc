/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The interface of the Tern card to its host: registers and doorbells are here,
 * queues, admin commands and counters in the files that are included.
 * docs/hardware.md explains it. The kernel driver, the user-space provider and
 * the card itself include this file.
 *
 * All multi-byte values in host memory and registers are little-endian, unless
 * the type says big-endian. "Reserved" fields and bits are zero; the card refuses
 * a command or a work request in which they are not.
 */
#ifndef TERN_HW_H
#define TERN_HW_H

#include "tern/tern_hw_admin.h"
#include "tern/tern_hw_counters.h"
#include "tern/tern_hw_objects.h"
#include "tern/tern_hw_queues.h"

#ifdef __cplusplus
namespace tern::hw {
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

#ifdef __cplusplus
} /* namespace tern::hw */
#endif

#endif /* TERN_HW_H */
