/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * FLUSH, which <infiniband/verbs.h> of rdma-core 44 does not declare. The values are those of
 * rdma-core 45, whose ibv_wr_flush() works too. Programs link with libtern.so.1, the provider.
 */
#ifndef TERNDV_H
#define TERNDV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TERNDV_QP_EX_WITH_FLUSH (1 << 11)   /* send_ops_flags of ibv_create_qp_ex() */
#define TERNDV_WC_FLUSH 8                   /* opcode of a completion */
#define TERNDV_ACCESS_FLUSH_GLOBAL (1 << 8) /* access flag of regions and QPs */
/* device_cap_flags_ex: regions and QPs can have the access flag; needs Linux 6.2 */
#define TERNDV_DEVICE_FLUSH_GLOBAL (1ull << 38)

/* placement types, one or both */
enum {
	TERNDV_FLUSH_GLOBAL = 1 << 0,
	TERNDV_FLUSH_PERSISTENT = 1 << 1, /* no region of a Tern card grants it */
};

/* selectivity levels */
enum {
	TERNDV_FLUSH_RANGE = 0,
	TERNDV_FLUSH_MR = 1, /* the whole region; address and length are ignored */
};

/** Whether @device is a Tern card, which the rest of this header needs. */
bool terndv_is_supported(struct ibv_device *device);

/**
 * Begins a FLUSH request, like an ibv_wr_* call: between ibv_wr_start() and ibv_wr_complete(), with
 * wr_id and wr_flags of @qp, which was created with TERNDV_QP_EX_WITH_FLUSH. The request completes
 * when all earlier writes of the QP to @len bytes (2^31 at most) at @remote_addr in the region of
 * @rkey have the placement @type. ibv_wr_complete() returns EINVAL if an argument is invalid.
 */
void terndv_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
                     uint8_t type, uint8_t level);

#ifdef __cplusplus
}
#endif

#endif /* TERNDV_H */
