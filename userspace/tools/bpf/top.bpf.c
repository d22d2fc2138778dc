/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts for terntop what processes post and poll, by the provider's probes. */
#include "common.bpf.h"

#include "tern/tern_hw.h"

char LICENSE[] SEC("license") = "GPL";

/*
 * terntop removes the QPs of processes that have ended. A QP that a process has destroyed stays for
 * its totals, until it is the least recently used one and another needs its place.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct tern_qp_key);
	__type(value, struct tern_qp_stats);
} qps SEC(".maps");

/* The existing QPs of the map qps by what the driver tells of them. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct tern_qp_name);
	__type(value, struct tern_qp_key);
} named_qps SEC(".maps");

/* The name of each RDMA device by its PCI address, both filled up with zeros. terntop fills it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, char[TERN_NAME_SIZE]);
	__type(value, char[TERN_NAME_SIZE]);
} devices SEC(".maps");

/* Requests of destroyed QPs stay here until the least recently used are replaced. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, struct tern_wr_key);
	__type(value, struct tern_wr);
} wrs SEC(".maps");

/* Page faults of QPs that have not been named yet. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct tern_qp_name);
	__type(value, __u64);
} faults SEC(".maps");

/* A value to insert, as the stack of a BPF program has no room for one. */
static const struct tern_qp_stats no_stats;

/* The QP does not exist any more: its requests are gone without completions. */
static __always_inline void end_qp(struct tern_qp_stats *stats)
{
	stats->completed = stats->posted;
	stats->named = 0;
}

/*
 * Has the name of the QP lead to @stats, the value of @key. A process that posts (@owns) uses the
 * QP that has the number now, so the number is no longer that of another entry. A completion may
 * still be polled when its QP is destroyed, so it takes the name only if no entry has it.
 */
static __always_inline void name_qp(const struct tern_qp_key *key, struct tern_qp_stats *stats,
				    bool owns)
{
	struct tern_qp_name name = { .qpn = key->qpn };
	const struct tern_qp_key *other;
	struct tern_qp_stats *replaced;
	const __u64 *number;

	__builtin_memcpy(name.device, stats->device, sizeof(name.device));
	other = bpf_map_lookup_elem(&named_qps, &name);
	if (other && !owns)
		return;
	replaced = other ? bpf_map_lookup_elem(&qps, other) : 0;
	if (replaced && replaced != stats)
		end_qp(replaced);
	if (bpf_map_update_elem(&named_qps, &name, key, BPF_ANY))
		return;
	stats->named = 1;
	number = bpf_map_lookup_elem(&faults, &name);
	if (number) {
		__sync_fetch_and_add(&stats->page_faults, *number);
		bpf_map_delete_elem(&faults, &name);
	}
}

static __always_inline struct tern_qp_stats *stats_of(const struct tern_qp_key *key, bool owns)
{
	struct tern_qp_stats *stats = bpf_map_lookup_elem(&qps, key);

	if (!stats) {
		bpf_map_update_elem(&qps, key, &no_stats, BPF_NOEXIST);
		stats = bpf_map_lookup_elem(&qps, key);
		if (!stats)
			return 0;
		read_program(stats->program);
		bpf_probe_read_user_str(stats->device, sizeof(stats->device),
					(const void *)key->device);
	}
	if (!stats->named)
		name_qp(key, stats, owns);
	return stats;
}

static __always_inline struct tern_qp_key key_of(__u64 device, __u32 qpn)
{
	struct tern_qp_key key = {
		.device = device,
		.tgid = bpf_get_current_pid_tgid() >> 32,
		.qpn = qpn,
	};

	return key;
}

static __always_inline void count(struct tern_qp_stats *stats, __u32 group, __u64 bytes)
{
	if (group >= TERN_GROUPS)
		return;
	__sync_fetch_and_add(&stats->messages[group], 1);
	__sync_fetch_and_add(&stats->bytes[group], bytes);
}

static __always_inline __u32 group_of(__u32 op)
{
	switch (op) {
	case TERN_OP_SEND:
	case TERN_OP_SEND_IMM:
	case TERN_OP_SEND_INV:
		return TERN_GROUP_SEND;
	case TERN_OP_WRITE:
	case TERN_OP_WRITE_IMM:
		return TERN_GROUP_WRITE;
	case TERN_OP_READ:
		return TERN_GROUP_READ;
	case TERN_OP_CMP_SWAP:
	case TERN_OP_FETCH_ADD:
	case TERN_OP_ATOMIC_WRITE:
		return TERN_GROUP_ATOMIC;
	case TERN_OP_FLUSH:
		return TERN_GROUP_FLUSH;
	default:
		return TERN_GROUP_LOCAL;
	}
}

SEC("usdt")
int BPF_USDT(on_post, void *device, __u32 qpn, __u32 op, __u32 flags, __u64 bytes, __u32 index)
{
	struct tern_wr_key wr_key = { .qp = key_of((__u64)device, qpn), .index = index };
	struct tern_qp_stats *stats = stats_of(&wr_key.qp, true);
	struct tern_wr wr;

	if (!stats)
		return 0;
	count(stats, group_of(op), bytes);
	/* The program holds the lock of the send queue. */
	wr.posted = ++stats->posted;
	if (flags & TERN_WQE_SIGNALED) {
		wr.time = bpf_ktime_get_ns();
		bpf_map_update_elem(&wrs, &wr_key, &wr, BPF_ANY);
	} else { /* There may be one from before the QP was reset. */
		bpf_map_delete_elem(&wrs, &wr_key);
	}
	return 0;
}

/*
 * Whether a receive completion stands for a message of a QP. Tag operations do not, tagged receives
 * only with data. Receives of WQs are not counted, since they have no QPN.
 */
static __always_inline int is_message(__u32 opcode, __u32 flags)
{
	switch (opcode) {
	case TERN_CQE_TAG_ADD:
	case TERN_CQE_TAG_DEL:
	case TERN_CQE_TAG_SYNC:
		return 0;
	case TERN_CQE_TAG_RECV:
		return flags & TERN_CQE_TAG_DATA;
	default:
		return !(flags & TERN_CQE_WQ);
	}
}

/*
 * An unsignalled request has a completion only if it fails. Those behind it are flushed, each with
 * a completion of its own.
 */
static __always_inline void complete_unknown(struct tern_qp_stats *stats, __u32 status)
{
	if (status && stats->completed < stats->posted)
		stats->completed++;
}

static __always_inline void complete_send(struct tern_qp_stats *stats,
					  const struct tern_wr_key *key, __u32 status)
{
	const struct tern_wr *wr = bpf_map_lookup_elem(&wrs, key);
	__u64 taken;
	__u32 bucket;

	if (!wr) { /* unsignalled, or posted before terntop began */
		complete_unknown(stats, status);
		return;
	}
	taken = bpf_ktime_get_ns() - wr->time;
	bucket = tern_latency_bucket(taken);
	barrier_var(bucket); /* so that the verifier sees the check of what is used */
	if (bucket < TERN_LATENCY_BUCKETS)
		__sync_fetch_and_add(&stats->latency[bucket], 1);
	__sync_fetch_and_add(&stats->latency_ns, taken);
	/*
	 * The program holds the lock of the CQ, and a QP has one for its send queue. What was polled
	 * after the QP was destroyed counts as completed already.
	 */
	if (stats->completed < wr->posted)
		stats->completed = wr->posted;
	bpf_map_delete_elem(&wrs, key);
}

SEC("usdt")
int BPF_USDT(on_complete, void *device, __u32 cqn, __u32 qpn, __u32 opcode, __u32 flags,
	     __u32 status, __u32 bytes, __u32 index)
{
	struct tern_wr_key wr_key = { .qp = key_of((__u64)device, qpn), .index = index };
	struct tern_qp_stats *stats;

	if (opcode & 0x80 && !is_message(opcode, flags))
		return 0;
	stats = stats_of(&wr_key.qp, false);
	if (!stats)
		return 0;
	if (status)
		__sync_fetch_and_add(&stats->errors, 1);
	if (opcode & 0x80) {
		stats->recv_cqn = cqn;
		if (!status)
			count(stats, TERN_GROUP_RECV, bytes);
		return 0;
	}
	stats->send_cqn = cqn;
	complete_send(stats, &wr_key, status);
	return 0;
}

/* Writes the name of QP @qpn of the device whose PCI address @dev locates in @entry. */
static __always_inline bool read_name(struct tern_qp_name *name, const void *entry, __u32 dev,
				      __u32 qpn)
{
	char pci[TERN_NAME_SIZE] = {};
	const char *device;

	read_string(pci, entry, dev);
	device = bpf_map_lookup_elem(&devices, pci);
	if (!device)
		return false;
	__builtin_memcpy(name->device, device, sizeof(name->device));
	name->qpn = qpn;
	return true;
}

/* The entry of the QP that has the name now. */
static __always_inline struct tern_qp_stats *named_stats(const struct tern_qp_name *name)
{
	const struct tern_qp_key *key = bpf_map_lookup_elem(&named_qps, name);

	return key ? bpf_map_lookup_elem(&qps, key) : 0;
}

/* Whatever was known of a QP with the number @entry->num is of one that does not exist any more. */
static __always_inline void forget_qp(const struct tern_entry_object *entry)
{
	struct tern_qp_name name = {};
	struct tern_qp_stats *stats;

	if (!read_name(&name, entry, entry->dev, entry->num))
		return;
	stats = named_stats(&name);
	if (stats)
		end_qp(stats);
	bpf_map_delete_elem(&named_qps, &name);
	bpf_map_delete_elem(&faults, &name);
}

SEC("tp/tern/tern_create")
int on_create(const struct tern_entry_object *entry)
{
	char op[TERN_NAME_SIZE] = {};

	read_string(op, entry, entry->op);
	if (!bpf_strncmp(op, sizeof(op), "CREATE_QP"))
		forget_qp(entry);
	return 0;
}

/* This may be in any process: the driver destroys the QPs of a device that is removed. */
SEC("tp/tern/tern_destroy")
int on_destroy(const struct tern_entry_object *entry)
{
	char op[TERN_NAME_SIZE] = {};

	read_string(op, entry, entry->op);
	if (!bpf_strncmp(op, sizeof(op), "DESTROY_QP"))
		forget_qp(entry);
	return 0;
}

SEC("tp/tern/tern_modify_qp")
int on_modify_qp(const struct tern_entry_modify_qp *entry)
{
	char state[TERN_NAME_SIZE] = {};
	struct tern_qp_name name = {};
	struct tern_qp_stats *stats;

	read_string(state, entry, entry->state);
	if (entry->err || bpf_strncmp(state, sizeof(state), "RESET"))
		return 0;
	if (!read_name(&name, entry, entry->dev, entry->qpn))
		return 0;
	stats = named_stats(&name);
	if (stats) /* The requests are gone without completions. */
		stats->completed = stats->posted;
	return 0;
}

SEC("tp/tern/tern_page_fault")
int on_page_fault(const struct tern_entry_page_fault *entry)
{
	struct tern_qp_name name = {};
	struct tern_qp_stats *stats;
	const __u64 none = 0;
	__u64 *number;

	if (!read_name(&name, entry, entry->dev, entry->qpn))
		return 0;
	stats = named_stats(&name);
	if (stats) {
		__sync_fetch_and_add(&stats->page_faults, 1);
		return 0;
	}
	bpf_map_update_elem(&faults, &name, &none, BPF_NOEXIST);
	number = bpf_map_lookup_elem(&faults, &name);
	if (number)
		__sync_fetch_and_add(number, 1);
	return 0;
}
