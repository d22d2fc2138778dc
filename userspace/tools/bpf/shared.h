/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the BPF programs and terntop or terntrace share: keys and values of maps, and events. */
#ifndef TERN_TOOLS_SHARED_H
#define TERN_TOOLS_SHARED_H

#include <linux/types.h>

#define TERN_COMM_SIZE 16
#define TERN_NAME_SIZE 32 /* of a device or a PCI address */

/* ---- terntop -------------------------------------------------------------------------- */

/* The groups in which work requests and received messages are counted. */
enum tern_group {
	TERN_GROUP_SEND,
	TERN_GROUP_WRITE,
	TERN_GROUP_READ,
	TERN_GROUP_ATOMIC,
	TERN_GROUP_FLUSH,
	TERN_GROUP_LOCAL, /* LOCAL_INV, BIND_MW: nothing travels */
	TERN_GROUP_RECV,
	TERN_GROUPS,
};

/*
 * Latencies are counted in buckets, eight for each power of two of nanoseconds, so that a bucket
 * is at most as wide as an eighth of its lower bound. The last one has all from 128 s on.
 */
#define TERN_LATENCY_BITS 3
#define TERN_LATENCY_PER_POWER (1u << TERN_LATENCY_BITS)
#define TERN_LATENCY_BUCKETS 280u

static inline __u32 tern_latency_bucket(__u64 ns)
{
	__u32 shift = 0, bucket;

	/* The largest shift that leaves TERN_LATENCY_BITS + 1 bits. */
	for (__u32 step = 32; step; step >>= 1) {
		if (ns >> shift >> step >= TERN_LATENCY_PER_POWER)
			shift += step;
	}
	bucket = shift * TERN_LATENCY_PER_POWER + (__u32)(ns >> shift);
	return bucket < TERN_LATENCY_BUCKETS ? bucket : TERN_LATENCY_BUCKETS - 1;
}

/* A QP of a process. @device is the address of the device's name there. */
struct tern_qp_key {
	__u64 device;
	__u32 tgid;
	__u32 qpn;
};

/*
 * The name of a QP on the RDMA device, whose QPs all have different numbers. It has no process, as
 * the driver may destroy a QP in another process than the one that uses it.
 */
struct tern_qp_name {
	char device[TERN_NAME_SIZE];
	__u32 qpn;
	__u32 rsvd;
};

/* All counted since terntop began. */
struct tern_qp_stats {
	char program[TERN_COMM_SIZE];
	char device[TERN_NAME_SIZE];
	__u64 messages[TERN_GROUPS]; /* posted; of TERN_GROUP_RECV received */
	__u64 bytes[TERN_GROUPS];
	__u64 posted;    /* work requests of the send queue */
	__u64 completed; /* of these, those that a completion covers, or that went with the QP */
	__u64 errors;    /* completions with an error */
	__u64 page_faults;
	__u32 send_cqn; /* zero until the first completion */
	__u32 recv_cqn;
	__u32 named; /* whether the QP exists, and its name leads here */
	__u32 rsvd;
	__u64 latency_ns; /* sum */
	__u64 latency[TERN_LATENCY_BUCKETS];
};

/* A signalled work request that is not completed. */
struct tern_wr_key {
	struct tern_qp_key qp;
	__u32 index; /* of its first block */
	__u32 rsvd;
};

struct tern_wr {
	__u64 time;   /* ns of CLOCK_MONOTONIC */
	__u64 posted; /* work requests of the QP up to it */
};

/* ---- terntrace ------------------------------------------------------------------------ */

enum tern_event_kind {
	TERN_TRACE_POST,
	TERN_TRACE_DOORBELL,
	TERN_TRACE_POST_RECV,
	TERN_TRACE_COMPLETE,
	TERN_TRACE_SUBMIT,  /* of an admin command */
	TERN_TRACE_COMMAND, /* completed */
	TERN_TRACE_CREATE,
	TERN_TRACE_DESTROY,
	TERN_TRACE_MODIFY,
	TERN_TRACE_EVENT,
	TERN_TRACE_FAULT,
};

/* Fields that an event does not use are zero. */
struct tern_trace_event {
	__u64 time;   /* ns of CLOCK_MONOTONIC */
	__u32 kind;   /* enum tern_event_kind */
	__u32 tgid;   /* of the process that was running; EVENT: zero */
	__u32 number; /* QPN or WQN; CREATE, DESTROY, EVENT: of the object; SUBMIT, COMMAND: id */
	__u32 cqn;
	__u32 op;     /* POST, COMPLETE: opcode; DOORBELL: whether it rang */
	__u32 flags;  /* TERN_WQE_* or TERN_CQE_*; FAULT: whether for writing */
	__u32 status; /* COMPLETE: enum tern_hw_cqe_status; FAULT: enum tern_hw_resume */
	__u32 index;  /* POST, COMPLETE: of the WQE; DOORBELL, POST_RECV: end of what is posted */
	__s32 error;  /* COMMAND, MODIFY: what the caller gets */
	__u32 engine;
	__u64 bytes;
	__u64 value; /* FAULT: address; COMMAND: microseconds */
	char program[TERN_COMM_SIZE];
	char device[TERN_NAME_SIZE]; /* the RDMA device; of the driver's events its PCI address */
	char text[TERN_NAME_SIZE];   /* command, object, event or state */
};

#endif
