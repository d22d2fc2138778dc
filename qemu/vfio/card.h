/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "qemu/engine/engine.h"
#include "qemu/shm/segment.h"
#include "qemu/vfio/session.h"

namespace tern::vfio {

/** The engines of a card with their threads. All members are called by one thread, which is the
 * only one that gives the engines work; so they need no lock that stands for QEMU's. */
class Card final : public Device {
public:
	struct Config {
		std::array<uint8_t, 6> mac{};
		std::string wire;
		uint32_t engines = 1;
		uint32_t vectors = 8;
		uint32_t doorbell_pages = 2048;
		uint32_t device_memory = 1 << 20; /* bytes */
		uint32_t speed = 100'000;         /* Mb/s */
		bool trace = false;
	};

	explicit Card(const Config &config);
	~Card();
	Card(const Card &) = delete;
	Card &operator=(const Card &) = delete;

	/** Makes the device memory, connects the engines to the wire and starts them. Returns an
	 * error message, or empty. */
	std::string start();

	/** Allocates new device memory and frees the old. A client may keep the descriptor that it
	 * was given, so each client needs memory of its own. Call this between two sessions.
	 * Returns an error message, or empty. */
	std::string renew_device_memory();

	Session::Function function();

	void read_bar(unsigned bar, uint64_t offset, std::span<std::byte> to) override;
	void write_bar(unsigned bar, uint64_t offset, std::span<const std::byte> from) override;
	void reset() override;
	void flush() override;
	void plug(bool plugged) override;

private:
	struct Engine {
		Card &card;
		uint32_t number;
		DmaTable::Reader &dma;
		std::unique_ptr<tern_engine, void (*)(tern_engine *)> core;
		std::thread thread;
	};

	static const tern_engine_ops kOps;

	std::string add_engine(uint64_t id);
	void deliver_interrupts(const Engine &from);
	tern_engine *engine_at(uint64_t offset);
	tern_engine *engine_of_page(uint64_t page);

	const Config config_;
	DmaTable dma_;
	Interrupts interrupts_;
	Fd device_memory_;
	shm::Mapping device_memory_bytes_;
	std::deque<Engine> engines_;
};

} // namespace tern::vfio
