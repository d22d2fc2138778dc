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

/* The QPs of the map qps by what the driver tells of them, until they are destroyed. */
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

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct tern_fault_key);
	__type(value, __u64);
} faults SEC(".maps");

/* A value to insert, as the stack of a BPF program has no room for one. */
static const struct tern_qp_stats no_stats;

static __always_inline struct tern_qp_stats *stats_of(const struct tern_qp_key *key)
{
	struct tern_qp_stats *stats = bpf_map_lookup_elem(&qps, key);
	struct tern_qp_name name = { .tgid = key->tgid, .qpn = key->qpn };

	if (stats)
		return stats;
	bpf_map_update_elem(&qps, key, &no_stats, BPF_NOEXIST);
	stats = bpf_map_lookup_elem(&qps, key);
	if (!stats)
		return 0;
	read_program(stats->program);
	bpf_probe_read_user_str(stats->device, sizeof(stats->device), (const void *)key->device);
	__builtin_memcpy(name.device, stats->device, sizeof(name.device));
	bpf_map_update_elem(&named_qps, &name, key, BPF_ANY);
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
	struct tern_qp_stats *stats = stats_of(&wr_key.qp);
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
	/* The program holds the lock of the CQ, and a QP has one for its send queue. */
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
	stats = stats_of(&wr_key.qp);
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

/*
 * The requests of a QP are gone without completions. If it is destroyed, so is its name. @dev locates
 * a string of @entry.
 */
static __always_inline void forget_posted(const void *entry, __u32 dev, __u32 qpn, bool destroyed)
{
	struct tern_qp_name name = {
		.tgid = bpf_get_current_pid_tgid() >> 32,
		.qpn = qpn,
	};
	char pci[TERN_NAME_SIZE] = {};
	const struct tern_qp_key *key;
	struct tern_qp_stats *stats;
	const char *device;

	read_string(pci, entry, dev);
	device = bpf_map_lookup_elem(&devices, pci);
	if (!device)
		return;
	__builtin_memcpy(name.device, device, sizeof(name.device));
	key = bpf_map_lookup_elem(&named_qps, &name);
	stats = key ? bpf_map_lookup_elem(&qps, key) : 0;
	if (stats)
		stats->completed = stats->posted;
	if (destroyed)
		bpf_map_delete_elem(&named_qps, &name);
}

SEC("tp/tern/tern_destroy")
int on_destroy(const struct tern_entry_object *entry)
{
	char op[TERN_NAME_SIZE] = {};

	read_string(op, entry, entry->op);
	if (!bpf_strncmp(op, sizeof(op), "DESTROY_QP"))
		forget_posted(entry, entry->dev, entry->num, true);
	return 0;
}

SEC("tp/tern/tern_modify_qp")
int on_modify_qp(const struct tern_entry_modify_qp *entry)
{
	char state[TERN_NAME_SIZE] = {};

	read_string(state, entry, entry->state);
	if (!entry->err && !bpf_strncmp(state, sizeof(state), "RESET"))
		forget_posted(entry, entry->dev, entry->qpn, false);
	return 0;
}

SEC("tp/tern/tern_page_fault")
int on_page_fault(const struct tern_entry_page_fault *entry)
{
	struct tern_fault_key key = { .qpn = entry->qpn };
	const __u64 none = 0;
	__u64 *number;

	read_string(key.pci, entry, entry->dev);
	bpf_map_update_elem(&faults, &key, &none, BPF_NOEXIST);
	number = bpf_map_lookup_elem(&faults, &key);
	if (number)
		__sync_fetch_and_add(number, 1);
	return 0;
}
