// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datapath/probes.h"

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

/* The kernel finds a semaphore by its place in a writable part of the library. */
#define TERN_SEMAPHORE __attribute__((section(".probes")))
TERN_SEMAPHORE volatile uint16_t tern_post_semaphore;
TERN_SEMAPHORE volatile uint16_t tern_doorbell_semaphore;
TERN_SEMAPHORE volatile uint16_t tern_post_recv_semaphore;
TERN_SEMAPHORE volatile uint16_t tern_complete_semaphore;

namespace tern::provider::probes {

/*
 * The arguments are parameters, and not members of a structure, as libbpf 1.1 reads them in
 * registers and at offsets of the stack, but not at "(%rdi)".
 */
void post(const char *device, uint32_t qpn, uint32_t op, uint32_t flags, uint64_t bytes,
          uint32_t index)
{
	STAP_PROBE6(tern, post, device, qpn, op, flags, bytes, index);
}

void doorbell(const char *device, uint32_t qpn, uint32_t pi, uint32_t rang)
{
	STAP_PROBE4(tern, doorbell, device, qpn, pi, rang);
}

void post_recv(const char *device, uint32_t qpn, uint32_t pi)
{
	STAP_PROBE3(tern, post_recv, device, qpn, pi);
}

void complete(const char *device, uint32_t cqn, uint32_t qpn, uint32_t opcode, uint32_t flags,
              uint32_t status, uint32_t bytes, uint32_t index)
{
	STAP_PROBE8(tern, complete, device, cqn, qpn, opcode, flags, status, bytes, index);
}

} // namespace tern::provider::probes
