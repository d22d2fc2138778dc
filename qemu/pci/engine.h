/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An engine: the thread in which the card runs, or one of its engines, and what passes between
 * it and the rest of QEMU. It knows no QEMU header; QEMU's side is struct tern_engine_ops.
 *
 * All functions but tern_engine_run() are called with the big QEMU lock (BQL)
 * held, which makes their callers one producer. Those marked "waits" let
 * the lock go meanwhile, because the engine may need it (behind an IOMMU) to get there.
 */
#ifndef TERN_ENGINE_H
#define TERN_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tern_engine;

enum { TERN_ENGINE_MAX_VECTORS = 256 };

struct tern_engine_config {
	uint8_t mac[6];
	/* which of how many; with several, a number that these share and no other card has */
	uint32_t engine;
	uint32_t engines;
	uint64_t card;
	struct tern_engine *first; /* of them, which outlives the threads of all; its own: NULL */
	uint32_t vectors;
	uint32_t doorbell_pages; /* of this engine */
	uint32_t link_speed_mbps;
	/* BAR 5: outlives the engine; NULL and 0 if there is none */
	void *device_memory;
	size_t device_memory_size;
	/* where the switch listens for hosts that share memory; NULL: frames go through QEMU */
	const char *wire_path;
};

/* Where memory that was shared with tern_engine_share_ram() lies. */
struct tern_ram_range {
	uint32_t block;
	uint32_t size;
	uint64_t offset;
};

struct tern_engine_ops {
	/* Called by the engine's thread, without the BQL. */
	/* Around a round of work, which makes each of its accesses cheaper. */
	void (*dma_hold)(void *opaque);
	void (*dma_release)(void *opaque);
	bool (*dma_read)(void *opaque, uint64_t from, void *to, size_t size);
	bool (*dma_write)(void *opaque, uint64_t to, const void *from, size_t size);
	bool (*dma_store64)(void *opaque, uint64_t to, uint64_t value);
	bool (*dma_load32)(void *opaque, uint64_t from, uint32_t *value);
	/* Finds @size bytes at @from in shared RAM, in up to @room ranges; how many they are,
	 * or 0 when they are elsewhere. */
	size_t (*dma_find_shared)(void *opaque, uint64_t from, size_t size,
	                          struct tern_ram_range *ranges, size_t room);
	/* Something waits for tern_engine_take_interrupts(), ..._next_frame(), ..._receive(). */
	void (*interrupts_pending)(void *opaque);
	void (*frames_pending)(void *opaque);
	void (*receive_ready)(void *opaque);

	/* Called by those that wait, with the BQL and without it. */
	void (*unlock)(void);
	void (*lock)(void);
};

struct tern_engine *tern_engine_new(const struct tern_engine_config *config,
                                    const struct tern_engine_ops *ops, void *opaque);
/* After tern_engine_stop(), when the thread has ended. */
void tern_engine_free(struct tern_engine *engine);

/* With a wire_path, before tern_engine_connect(): lets the other hosts read that RAM. False: they
 * cannot; its number is how many true ones there were before. */
bool tern_engine_share_ram(struct tern_engine *engine, int fd, uint64_t size);
/* With a wire_path, before tern_engine_run(). NULL, or why there is no wire. */
const char *tern_engine_connect(struct tern_engine *engine);

/* The thread: returns after tern_engine_stop(). Begins paused. */
void tern_engine_run(struct tern_engine *engine);
/* Waits. From then on reads give all ones, and everything else does nothing. */
void tern_engine_stop(struct tern_engine *engine);

/* Posted: wait only when the engine is far behind. */
void tern_engine_write_register(struct tern_engine *engine, uint32_t offset, uint32_t value);
void tern_engine_doorbell(struct tern_engine *engine, uint32_t page, uint32_t offset,
                          uint64_t value);
/* Whether a cable is plugged in, as it is not at first. The link is up when there is somebody at
 * its other end, too; without it all frames are lost. */
void tern_engine_set_cable(struct tern_engine *engine, bool plugged);

/* The card's clock, ns, with which CQEs are stamped. */
uint64_t tern_engine_clock(struct tern_engine *engine);

/* Waits: the engine answers after all that was posted before. */
uint32_t tern_engine_read_register(struct tern_engine *engine, uint32_t offset);
/* Waits: the card is as after power-on, does no DMA and has no interrupt on the way. */
void tern_engine_reset(struct tern_engine *engine);
/* Waits: no DMA that began before is still under way. */
void tern_engine_flush(struct tern_engine *engine);
/* Waits. A paused card does nothing by itself, and its clock stands still. */
void tern_engine_pause(struct tern_engine *engine, bool pause);

/* Hands a frame to the card. False: no room; receive_ready() will be called. */
bool tern_engine_receive(struct tern_engine *engine, const void *frame, size_t size);
bool tern_engine_can_receive(struct tern_engine *engine);

/* The oldest frame that the card sends, or NULL; it stays until ..._frame_done(). */
const uint8_t *tern_engine_next_frame(struct tern_engine *engine, size_t *size);
void tern_engine_frame_done(struct tern_engine *engine);

/* Takes the raised vectors of 64 * word ... 64 * word + 63. */
uint64_t tern_engine_take_interrupts(struct tern_engine *engine, unsigned word);

#ifdef __cplusplus
}
#endif

#endif
