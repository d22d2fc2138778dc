/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "qemu/engine/engine.h"
#include "qemu/engine/frame_rings.h"
#include "qemu/engine/guest_memory.h"
#include "qemu/engine/tracer.h"
#include "qemu/rnic/environment.h"
#include "qemu/rnic/rnic.h"
#include "qemu/shm/shared_wire.h"

namespace tern {

/** The card's link: the wire in shared memory, or else the front end's network. Used by the
 * engine's thread, but for rings(). */
class Link final : public Wire {
public:
	Link(const tern_engine_config &config, const tern_engine_ops &ops, void *opaque,
	     GuestMemory &memory, Parking &parking, Tracer &tracer)
	        : memory_(memory), tracer_(tracer), rings_(ops, opaque, parking)
	{
		if (config.wire_path)
			shared_.emplace(config.wire_path, parking.poll(), config.card,
			                config.engine);
	}

	/** The wire in shared memory; null if the front end has the network. */
	shm::SharedWire *shared() { return shared_ ? &*shared_ : nullptr; }
	void disconnect() { shared_.reset(); }
	/** The rings of the front end's network, which are unused while shared() exists. */
	FrameRings &rings() { return rings_; }

	/** Plugs or unplugs the cable; without it all frames are dropped. */
	void plug(bool plugged);
	bool up() const { return plugged_ && (!shared_ || shared_->up()); }

	/** Passes frames to @rnic, from each host up to @budget. Returns true if there may be
	 * more. */
	bool receive(unsigned budget, Rnic &rnic);
	void discard_received();
	/** Returns whether the engine may receive all frames that have arrived before it runs a
	 * timer. Rings in shared memory have room for more frames, and hosts that fill them must
	 * not delay this host's timers. */
	bool receives_before_timers() const { return !shared_; }
	/** A destination that has room again after it had none. */
	std::optional<Destination> take_room();
	bool has_work() const;
	/** Frames sent and received since this was last called. */
	unsigned take_traffic() { return std::exchange(traffic_, 0); }

	bool transmit(std::span<const std::byte> frame) override;
	Destination full() const override { return shared_ ? shared_->full() : 0; }
	Lend lend(std::span<const std::byte> head, std::span<const HostRange> payload,
	          uint32_t segment, const Loan &loan) override;
	uint64_t recall(const Recall &what) override;

private:
	class ToCard;

	GuestMemory &memory_;
	Tracer &tracer_;
	std::optional<shm::SharedWire> shared_;
	FrameRings rings_;
	bool plugged_ = false;
	unsigned traffic_ = 0;
};

} // namespace tern
