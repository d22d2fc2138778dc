/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hands terntrace the provider's probes and the driver's tracepoints as events in a ring. */
#include "common.bpf.h"

#include "tern/tern_hw.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} ring SEC(".maps");

const volatile __u32 only_qpn = 0; /* zero: any */

__u64 lost = 0; /* events for which the ring had no room */

static __always_inline struct tern_trace_event *reserve(__u32 kind)
{
	struct tern_trace_event *event = bpf_ringbuf_reserve(&ring, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	__builtin_memset(event, 0, sizeof(*event));
	event->time = bpf_ktime_get_ns();
	event->kind = kind;
	event->tgid = bpf_get_current_pid_tgid() >> 32;
	read_program(event->program);
	return event;
}

/* Reserves room for an event of the provider. Returns null if the user has not asked for this QP,
 * or if the ring buffer is full.
 */
static __always_inline struct tern_trace_event *reserve_of_qp(__u32 kind, const void *device,
							      __u32 qpn)
{
	struct tern_trace_event *event;

	if (only_qpn && qpn != only_qpn)
		return 0;
	event = reserve(kind);
	if (!event)
		return 0;
	event->number = qpn;
	bpf_probe_read_user_str(event->device, sizeof(event->device), device);
	return event;
}

SEC("usdt")
int BPF_USDT(on_post, void *device, __u32 qpn, __u32 op, __u32 flags, __u64 bytes, __u32 index)
{
	struct tern_trace_event *event = reserve_of_qp(TERN_TRACE_POST, device, qpn);

	if (!event)
		return 0;
	event->op = op;
	event->flags = flags;
	event->bytes = bytes;
	event->index = index;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

SEC("usdt")
int BPF_USDT(on_doorbell, void *device, __u32 qpn, __u32 pi, __u32 rang)
{
	struct tern_trace_event *event = reserve_of_qp(TERN_TRACE_DOORBELL, device, qpn);

	if (!event)
		return 0;
	event->op = rang;
	event->index = pi;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

SEC("usdt")
int BPF_USDT(on_post_recv, void *device, __u32 qpn, __u32 pi)
{
	struct tern_trace_event *event = reserve_of_qp(TERN_TRACE_POST_RECV, device, qpn);

	if (!event)
		return 0;
	event->index = pi;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

SEC("usdt")
int BPF_USDT(on_complete, void *device, __u32 cqn, __u32 qpn, __u32 opcode, __u32 flags,
	     __u32 status, __u32 bytes, __u32 index)
{
	struct tern_trace_event *event;

	/* Then qpn is the number of a WQ. */
	if (only_qpn && opcode >= TERN_CQE_RECV && flags & TERN_CQE_WQ)
		return 0;
	event = reserve_of_qp(TERN_TRACE_COMPLETE, device, qpn);
	if (!event)
		return 0;
	event->cqn = cqn;
	event->op = opcode;
	event->flags = flags;
	event->status = status;
	event->bytes = bytes;
	event->index = index;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

/* An event of the driver, about @number. @dev and, unless zero, @text locate strings of @entry. */
static __always_inline struct tern_trace_event *reserve_of_driver(__u32 kind, const void *entry,
								  __u32 dev, __u32 text,
								  __u32 number)
{
	struct tern_trace_event *event = reserve(kind);

	if (!event)
		return 0;
	read_string(event->device, entry, dev);
	if (text)
		read_string(event->text, entry, text);
	event->number = number;
	return event;
}

SEC("tp/tern/tern_cmd_submit")
int on_cmd_submit(const struct tern_entry_cmd_submit *entry)
{
	struct tern_trace_event *event =
		reserve_of_driver(TERN_TRACE_SUBMIT, entry, entry->dev, entry->op, entry->id);

	if (!event)
		return 0;
	event->engine = entry->engine;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

SEC("tp/tern/tern_cmd_complete")
int on_cmd_complete(const struct tern_entry_cmd_complete *entry)
{
	struct tern_trace_event *event =
		reserve_of_driver(TERN_TRACE_COMMAND, entry, entry->dev, entry->op, entry->id);

	if (!event)
		return 0;
	event->engine = entry->engine;
	event->error = entry->err;
	event->value = entry->usecs;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

static __always_inline int on_object(__u32 kind, const struct tern_entry_object *entry)
{
	struct tern_trace_event *event =
		reserve_of_driver(kind, entry, entry->dev, entry->op, entry->num);

	if (event)
		bpf_ringbuf_submit(event, 0);
	return 0;
}

SEC("tp/tern/tern_create")
int on_create(const struct tern_entry_object *entry)
{
	return on_object(TERN_TRACE_CREATE, entry);
}

SEC("tp/tern/tern_destroy")
int on_destroy(const struct tern_entry_object *entry)
{
	return on_object(TERN_TRACE_DESTROY, entry);
}

SEC("tp/tern/tern_modify_qp")
int on_modify_qp(const struct tern_entry_modify_qp *entry)
{
	struct tern_trace_event *event =
		reserve_of_driver(TERN_TRACE_MODIFY, entry, entry->dev, entry->state, entry->qpn);

	if (!event)
		return 0;
	event->error = entry->err;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

SEC("tp/tern/tern_event")
int on_event(const struct tern_entry_event *entry)
{
	struct tern_trace_event *event =
		reserve_of_driver(TERN_TRACE_EVENT, entry, entry->dev, entry->type, entry->num);

	if (!event)
		return 0;
	/* The event comes in an interrupt, and the interrupted process did not cause it. */
	event->tgid = 0;
	__builtin_memcpy(event->program, "interrupt", sizeof("interrupt"));
	bpf_ringbuf_submit(event, 0);
	return 0;
}

SEC("tp/tern/tern_page_fault")
int on_page_fault(const struct tern_entry_page_fault *entry)
{
	struct tern_trace_event *event =
		reserve_of_driver(TERN_TRACE_FAULT, entry, entry->dev, 0, entry->qpn);

	if (!event)
		return 0;
	event->value = entry->addr;
	event->bytes = entry->length;
	event->flags = entry->write;
	event->status = entry->resume;
	bpf_ringbuf_submit(event, 0);
	return 0;
}
