/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <span>

#include "qemu/vfio/config_space.h"
#include "qemu/vfio/dma_table.h"
#include "qemu/vfio/interrupts.h"
#include "qemu/vfio/protocol.h"

namespace tern::vfio {

/** The card behind its PCI function, as a session drives it. */
class Device {
public:
	/** Accesses to the registers and the doorbells (TERN_BAR_*), which end within the BAR. */
	virtual void read_bar(unsigned bar, uint64_t offset, std::span<std::byte> to) = 0;
	virtual void write_bar(unsigned bar, uint64_t offset, std::span<const std::byte> from) = 0;
	/** The card is in its power-on state, and does no DMA. */
	virtual void reset() = 0;
	/** No DMA that began before is in progress. */
	virtual void flush() = 0;
	/** While no client is there, the cable is out. */
	virtual void plug(bool plugged) = 0;

protected:
	~Device() = default;
};

/**
 * The vfio-user protocol without its socket: handles the messages of one client. All fields of a
 * message are checked before they are used. A session begins when a client connects and ends when
 * the client leaves; the destructor resets the card and removes the client's mappings and eventfds.
 */
class Session {
public:
	struct Function {
		Device &device;
		DmaTable &dma;
		Interrupts &interrupts;
		uint64_t registers_size;
		uint64_t doorbells_size;
		int device_memory; /* a memfd */
		std::span<std::byte> device_memory_bytes;
	};

	explicit Session(const Function &function);
	~Session();
	Session(const Session &) = delete;
	Session &operator=(const Session &) = delete;

	Reply handle(Message message);

private:
	Reply negotiate(const Message &message);
	Reply map(const Message &message);
	Reply unmap(const Message &message);
	Reply device_info(const Message &message) const;
	Reply region_info(const Message &message) const;
	Reply irq_info(const Message &message) const;
	Reply set_irqs(Message &message);
	Reply set_eventfds(const IrqSet &set, std::vector<Fd> fds);
	Reply set_masks(const IrqSet &set, std::span<const std::byte> data);
	Reply read_region(const Message &message);
	Reply write_region(const Message &message);
	void write_config(uint64_t offset, std::span<const std::byte> from);
	void follow_config();
	void reset();

	bool is_inside(const RegionAccess &access) const;
	uint64_t region_size(uint32_t region) const;
	ConfigSpace::Layout layout() const;

	const Function function_;
	ConfigSpace config_;
	bool negotiated_ = false;
};

} // namespace tern::vfio
