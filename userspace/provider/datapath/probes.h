// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The probes of the data path (USDT, provider name "tern"), by which terntop and terntrace see what
 * a program posts and polls. Each has a semaphore that the kernel increments while a tool is
 * attached, so that a process without observer pays for a load and a branch not taken.
 *
 * The arguments are an interface to userspace/tools, and to bpftrace and perf, in this order.
 * @device is the name of the RDMA device as a C string; its address is the same for all queues of a
 * device in a process.
 */
#pragma once

#include <cstdint>

#include "tern/tern_hw.h"

/* Their names are those that sys/sdt.h expects. */
extern "C" {
extern volatile uint16_t tern_post_semaphore;
extern volatile uint16_t tern_doorbell_semaphore;
extern volatile uint16_t tern_post_recv_semaphore;
extern volatile uint16_t tern_complete_semaphore;
}

namespace tern::provider::probes {

/**
 * A send WQE with opcode @op (enum tern_hw_wqe_op), @flags (TERN_WQE_*) and @bytes of local data is
 * about to be published. It begins at block @index, free-running.
 */
void post(const char *device, uint32_t qpn, uint32_t op, uint32_t flags, uint64_t bytes,
          uint32_t index);

/** Send WQEs up to block @pi were published; @rang: by a doorbell, as the card was idle. */
void doorbell(const char *device, uint32_t qpn, uint32_t pi, uint32_t rang);

/** Receive WQEs of a QP's own queue up to @pi, free-running, were published. */
void post_recv(const char *device, uint32_t qpn, uint32_t pi);

/**
 * A poll returns a CQE of a queue that exists: its @qpn (of a WQ, if it is a receive and @flags has
 * TERN_CQE_WQ), @opcode, @flags, @status, byte_len and wqe_index, as the card wrote them.
 */
void complete(const char *device, uint32_t cqn, uint32_t qpn, uint32_t opcode, uint32_t flags,
              uint32_t status, uint32_t bytes, uint32_t index);

} // namespace tern::provider::probes
