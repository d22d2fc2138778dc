/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For both BPF programs: who runs, and the entries of the driver's tracepoints, which the tools
 * compare with the kernel's format files before they load a program (attach.cc).
 */
#ifndef TERN_TOOLS_COMMON_BPF_H
#define TERN_TOOLS_COMMON_BPF_H

#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/usdt.bpf.h>

#include "entries.h"
#include "shared.h"

/* Of the kernel's structure only what is read; CO-RE finds where the running kernel has it. */
struct task_struct {
	struct task_struct *group_leader;
	char comm[TERN_COMM_SIZE];
} __attribute__((preserve_access_index));

/* The name of the process, whichever of its threads is running. */
static __always_inline void read_program(char *program)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	bpf_core_read_str(program, TERN_COMM_SIZE, &leader->comm);
}

/* A string of a tracepoint's entry: its offset is in the lower half of @location. */
static __always_inline void read_string(char *target, const void *entry, __u32 location)
{
	bpf_probe_read_kernel_str(target, TERN_NAME_SIZE, entry + (location & 0xffff));
}

#endif
