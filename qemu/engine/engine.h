/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An engine: one instance of the card's core with its thread, and the interface between it and a
 * front end: the QEMU device, or tern-card. It includes no QEMU header; the front end's side is
 * struct tern_engine_ops.
 *
 * All functions but tern_engine_run() are called with the front end's lock held, in QEMU the big
 * QEMU lock (BQL), so their callers form a single producer. Functions marked "blocks" drop the lock
 * while they wait, because the engine may need it (behind an IOMMU) to make progress. tern-card has
 * one thread that calls them, and no lock.
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

enum { TERN_ENGINE_MAX_VECTORS = 256, TERN_TRACE_EVENTS = 15 };

/* What can be traced, of all engines. QEMU counts enabled up and down. */
struct tern_trace_event {
	const char *name;
	uint16_t enabled;
};

extern struct tern_trace_event tern_trace_events[TERN_TRACE_EVENTS];

struct tern_engine_config {
	uint8_t mac[6];
	/* engine number and number of engines; with several, card is an id that only they share */
	uint32_t engine;
	uint32_t engines;
	uint64_t card;
	struct tern_engine *first; /* engine 0, NULL for itself; it outlives all threads */
	uint32_t vectors;
	uint32_t doorbell_pages; /* of this engine */
	uint32_t link_speed_mbps;
	/* BAR 5: outlives the engine; NULL and 0 if there is none */
	void *device_memory;
	size_t device_memory_size;
	/* socket of the switch for shared memory; NULL: frames go through QEMU's net layer */
	const char *wire_path;
};

/* A range in a RAM block that was shared by tern_engine_share_ram(). */
struct tern_ram_range {
	uint32_t block;
	uint32_t size;
	uint64_t offset;
};

struct tern_engine_ops {
	/* Called by the engine's thread without the BQL. */
	/* Bracket a round of work, to make each access in it cheaper. */
	void (*dma_hold)(void *opaque);
	void (*dma_release)(void *opaque);
	bool (*dma_read)(void *opaque, uint64_t from, void *to, size_t size);
	bool (*dma_write)(void *opaque, uint64_t to, const void *from, size_t size);
	bool (*dma_store64)(void *opaque, uint64_t to, uint64_t value);
	bool (*dma_load32)(void *opaque, uint64_t from, uint32_t *value);
	/* Finds @size bytes at @from in shared RAM and writes up to @room ranges. Returns their
	 * number, or 0 if the bytes are not all in shared RAM. */
	size_t (*dma_find_shared)(void *opaque, uint64_t from, size_t size,
	                          struct tern_ram_range *ranges, size_t room);
	/* There is something for take_interrupts(), next_frame() or receive(). */
	void (*interrupts_pending)(void *opaque);
	void (*frames_pending)(void *opaque);
	void (*receive_ready)(void *opaque);

	/* Engine number @engine has a line of text for @event, which is enabled. */
	void (*trace)(void *opaque, uint32_t engine, const char *event, const char *text);

	/* Drop and take the BQL; called by functions that block. */
	void (*unlock)(void);
	void (*lock)(void);
};

/* Returns NULL if there are no descriptors left. */
struct tern_engine *tern_engine_new(const struct tern_engine_config *config,
                                    const struct tern_engine_ops *ops, void *opaque);
/* When the thread has ended or was never started. Does nothing for NULL. */
void tern_engine_free(struct tern_engine *engine);

/* Lets other hosts read the first @size bytes of the memfd @fd, a block of guest RAM, and seals it
 * against new writable mappings. Requires a wire_path; call before tern_engine_connect(). Returns
 * false if the block cannot be shared. Blocks are numbered from 0 by successful calls. */
bool tern_engine_share_ram(struct tern_engine *engine, int fd, uint64_t size);
/* Connects to the wire. Requires a wire_path; call before tern_engine_run(). Returns NULL, or an
 * error message that belongs to @engine and is valid until the next call. */
const char *tern_engine_connect(struct tern_engine *engine);

/* Body of the thread: returns after tern_engine_stop(). The engine starts paused. */
void tern_engine_run(struct tern_engine *engine);
/* Blocks. Afterwards reads return all ones and all other calls have no effect. */
void tern_engine_stop(struct tern_engine *engine);

/* Posted: these block only while the command ring is full. */
void tern_engine_write_register(struct tern_engine *engine, uint32_t offset, uint32_t value);
void tern_engine_doorbell(struct tern_engine *engine, uint32_t page, uint32_t offset,
                          uint64_t value);
/* Plugs or unplugs the cable; it is unplugged at first. The link is up when the cable is plugged
 * and the wire is connected. While unplugged, all frames are dropped. */
void tern_engine_set_cable(struct tern_engine *engine, bool plugged);

/* The card's clock, ns; the source of CQE timestamps. */
uint64_t tern_engine_clock(struct tern_engine *engine);

/* Blocks: the engine answers after all posted commands. */
uint32_t tern_engine_read_register(struct tern_engine *engine, uint32_t offset);
/* Blocks: the card is in its power-on state, does no DMA and has no interrupt pending. */
void tern_engine_reset(struct tern_engine *engine);
/* Blocks: no DMA that started before is in progress. */
void tern_engine_flush(struct tern_engine *engine);
/* Blocks. A paused engine does no work and its clock stands still. */
void tern_engine_pause(struct tern_engine *engine, bool pause);

/* Blocks. Returns the state of the engine and its card as JSON, which the caller frees, with that
 * of QP @qpn, or of all QPs if it is negative. Returns NULL after tern_engine_stop(). */
char *tern_engine_describe(struct tern_engine *engine, int64_t qpn);

/* These block. They inject the faults that Rnic::fail_qp(), slow_qp(), hold_commands(),
 * refuse_command() and falsify() describe. Those that return bool return false after
 * tern_engine_stop(). */
bool tern_engine_fail_qp(struct tern_engine *engine, uint32_t qpn);
bool tern_engine_slow_qp(struct tern_engine *engine, uint32_t qpn, uint32_t rate);
void tern_engine_hold_commands(struct tern_engine *engine, bool hold, uint32_t answers);
void tern_engine_refuse_command(struct tern_engine *engine, uint32_t nth);
void tern_engine_falsify(struct tern_engine *engine, uint32_t every, uint32_t seed);

/* Passes a frame to the card. Returns false if there is no room; receive_ready() is called when
 * there is. Drops a frame that is too long, and all frames after tern_engine_stop(). */
bool tern_engine_receive(struct tern_engine *engine, const void *frame, size_t size);
bool tern_engine_can_receive(struct tern_engine *engine);

/* The oldest frame the card sends, or NULL; it stays valid until ..._frame_done(). */
const uint8_t *tern_engine_next_frame(struct tern_engine *engine, size_t *size);
void tern_engine_frame_done(struct tern_engine *engine);

/* Takes and clears the raised vectors 64 * word ... 64 * word + 63. */
uint64_t tern_engine_take_interrupts(struct tern_engine *engine, unsigned word);

#ifdef __cplusplus
}
#endif

#endif
