/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The entries of the driver's tracepoints (kernel/trace.h) as far as the tools read them. Kernel
 * and module describe them in /sys/kernel/tracing/events/tern/NAME/format; the module has no BTF of
 * its own, as DKMS builds it where the kernel's vmlinux is not installed.
 */
#ifndef TERN_TOOLS_ENTRIES_H
#define TERN_TOOLS_ENTRIES_H

#include <linux/types.h>

/*
 * @common has type, flags, preemption count and PID. A string is a word: its offset in the entry in
 * the lower half, its length in the upper one.
 */
struct tern_entry_page_fault {
	__u64 common;
	__u32 dev;
	__u32 qpn;
	__u32 key;
	__u64 addr;
	__u32 length;
	__u8 write;
	__u8 resume;
};

struct tern_entry_cmd_submit {
	__u64 common;
	__u32 dev;
	__u32 op;
	__u32 engine;
	__u16 id;
};

struct tern_entry_cmd_complete {
	__u64 common;
	__u32 dev;
	__u32 op;
	__u32 status;
	__u32 engine;
	__u16 id;
	__u16 refused;
	__s32 err;
	__s64 usecs;
};

struct tern_entry_object {
	__u64 common;
	__u32 dev;
	__u32 op;
	__u32 num;
};

struct tern_entry_modify_qp {
	__u64 common;
	__u32 dev;
	__u32 state;
	__u32 qpn;
	__u32 mask;
	__u32 dest_qpn;
	__u32 sq_psn;
	__u32 rq_psn;
	__s32 err;
};

struct tern_entry_event {
	__u64 common;
	__u32 dev;
	__u32 type;
	__u32 eqn;
	__u32 num;
};

#endif
