// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/vfio/card.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <optional>
#include <sys/random.h>

#include "tern/tern_hw.h"

namespace tern::vfio {

/* ---- callbacks from the engines' threads ----------------------------------------- */

/* There are no frames of a netdev: the wire is one of shared memory. No RAM is lent: a client
 * offers none that can be sealed. */
const tern_engine_ops Card::kOps = {
        .dma_hold = [](void *opaque) { static_cast<Engine *>(opaque)->dma.hold(); },
        .dma_release = [](void *opaque) { static_cast<Engine *>(opaque)->dma.release(); },
        .dma_read =
                [](void *opaque, uint64_t from, void *to, size_t size) {
	                return static_cast<Engine *>(opaque)->dma.read(
	                        from, {static_cast<std::byte *>(to), size});
                },
        .dma_write =
                [](void *opaque, uint64_t to, const void *from, size_t size) {
	                return static_cast<Engine *>(opaque)->dma.write(
	                        to, {static_cast<const std::byte *>(from), size});
                },
        .dma_store64 =
                [](void *opaque, uint64_t to, uint64_t value) {
	                return static_cast<Engine *>(opaque)->dma.store64(to, value);
                },
        .dma_load32 =
                [](void *opaque, uint64_t from, uint32_t *value) {
	                return static_cast<Engine *>(opaque)->dma.load32(from, *value);
                },
        .dma_find_shared = [](void *, uint64_t, size_t, tern_ram_range *, size_t) -> size_t {
	        return 0;
        },
        .interrupts_pending =
                [](void *opaque) {
	                const Engine &engine = *static_cast<Engine *>(opaque);
	                engine.card.deliver_interrupts(engine);
                },
        .frames_pending = [](void *) {},
        .receive_ready = [](void *) {},
        .trace =
                [](void *, uint32_t engine, const char *event, const char *text) {
	                std::fprintf(stderr, "%s engine %u %s\n", event, engine, text);
                },
        .unlock = [] {},
        .lock = [] {},
};

void Card::deliver_interrupts(const Engine &from)
{
	for (unsigned word = 0; word * 64 < config_.vectors; word++) {
		uint64_t raised = tern_engine_take_interrupts(from.core.get(), word);
		for (; raised; raised &= raised - 1)
			interrupts_.raise(word * 64 +
			                  static_cast<unsigned>(std::countr_zero(raised)));
	}
}

/* ---- start and end ------------------------------------------------------------------ */

Card::Card(const Config &config)
        : config_(config), dma_(config.engines), interrupts_(config.vectors)
{
}

/* Stops all engines before any is destroyed. A running engine still executes commands, which may
 * lock the mutex of engine 0 that all engines share. */
Card::~Card()
{
	for (Engine &engine : engines_) {
		if (!engine.thread.joinable())
			continue;
		tern_engine_stop(engine.core.get());
		engine.thread.join();
	}
	while (!engines_.empty())
		engines_.pop_back();
}

std::string Card::add_engine(uint64_t id)
{
	const auto number = static_cast<uint32_t>(engines_.size());
	const std::span memory = device_memory_bytes_.bytes();
	tern_engine_config config{
	        .mac = {},
	        .engine = number,
	        .engines = config_.engines,
	        .card = id,
	        .first = number ? engines_.front().core.get() : nullptr,
	        .vectors = config_.vectors,
	        .doorbell_pages = config_.doorbell_pages / config_.engines,
	        .link_speed_mbps = config_.speed,
	        .device_memory = memory.data(),
	        .device_memory_size = memory.size(),
	        .wire_path = config_.wire.c_str(),
	};
	std::ranges::copy(config_.mac, config.mac);
	Engine &engine = engines_.emplace_back(Engine{
	        *this, number, dma_.reader(number), {nullptr, tern_engine_free}, std::thread()});
	engine.core.reset(tern_engine_new(&config, &kOps, &engine));
	if (!engine.core)
		return "no file descriptors for an engine";
	const char *error = tern_engine_connect(engine.core.get());
	return error ? "wire: " + std::string(error) : std::string();
}

std::string Card::renew_device_memory()
{
	if (!config_.device_memory)
		return {};
	Fd memory = shm::make_segment("tern-dm", config_.device_memory);
	const auto error = device_memory_
	                           ? device_memory_bytes_.replace(memory)
	                           : device_memory_bytes_.map(memory, config_.device_memory,
	                                                      shm::Mapping::Access::ReadWrite);
	if (!error.empty())
		return "device memory: " + error;
	device_memory_ = std::move(memory);
	return {};
}

std::string Card::start()
{
	/* add_engine() gives each engine the address of the device memory. A later renewal replaces
	 * the memory at the same address. */
	if (std::string error = renew_device_memory(); !error.empty())
		return error;
	uint64_t id = 0;
	if (config_.engines > 1 && getrandom(&id, sizeof(id), 0) != sizeof(id))
		return "no random numbers";
	if (config_.trace)
		std::ranges::for_each(tern_trace_events, [](auto &event) { event.enabled = 1; });
	for (uint32_t number = 0; number < config_.engines; number++) {
		if (std::string error = add_engine(id); !error.empty())
			return error;
	}
	for (Engine &engine : engines_) {
		engine.thread = std::thread(tern_engine_run, engine.core.get());
		tern_engine_pause(engine.core.get(), false);
	}
	return {};
}

Session::Function Card::function()
{
	return {.device = *this,
	        .dma = dma_,
	        .interrupts = interrupts_,
	        .registers_size = std::bit_ceil(uint64_t{config_.engines} * hw::TERN_REGS_SIZE),
	        .doorbells_size = uint64_t{config_.doorbell_pages} * hw::TERN_DB_PAGE_SIZE,
	        .device_memory = device_memory_.get(),
	        .device_memory_bytes = device_memory_bytes_.bytes()};
}

/* ---- what the client does ------------------------------------------------------------- */

/* The engine whose registers are there; null past the last engine. */
tern_engine *Card::engine_at(uint64_t offset)
{
	const uint64_t number = offset / hw::TERN_REGS_SIZE;
	return number < engines_.size() ? engines_[number].core.get() : nullptr;
}

tern_engine *Card::engine_of_page(uint64_t page)
{
	return engines_[page % engines_.size()].core.get();
}

/* The bytes as a number, if they are one that is aligned. */
template <typename T>
static std::optional<T> number(uint64_t offset, std::span<const std::byte> bytes)
{
	T value;
	if (bytes.size() != sizeof(value) || offset % sizeof(value))
		return std::nullopt;
	std::memcpy(&value, bytes.data(), sizeof(value));
	return value;
}

/* A read of another size or alignment than specified returns all ones, a write has no effect. */
void Card::read_bar(unsigned bar, uint64_t offset, std::span<std::byte> to)
{
	std::ranges::fill(to, std::byte{0xff});
	if (bar == hw::TERN_BAR_REGS) {
		tern_engine *const engine = engine_at(offset);
		if (!engine || !number<uint32_t>(offset, to))
			return;
		const uint32_t value =
		        tern_engine_read_register(engine, offset % hw::TERN_REGS_SIZE);
		std::memcpy(to.data(), &value, sizeof(value));
	} else if (number<uint64_t>(offset, to) &&
	           offset % hw::TERN_DB_PAGE_SIZE == hw::TERN_DB_CLOCK) {
		const uint64_t value =
		        tern_engine_clock(engine_of_page(offset / hw::TERN_DB_PAGE_SIZE));
		std::memcpy(to.data(), &value, sizeof(value));
	}
}

void Card::write_bar(unsigned bar, uint64_t offset, std::span<const std::byte> from)
{
	if (bar == hw::TERN_BAR_REGS) {
		tern_engine *const engine = engine_at(offset);
		if (const auto value = number<uint32_t>(offset, from); engine && value)
			tern_engine_write_register(engine, offset % hw::TERN_REGS_SIZE, *value);
	} else if (const auto value = number<uint64_t>(offset, from)) {
		const uint64_t page = offset / hw::TERN_DB_PAGE_SIZE;
		tern_engine_doorbell(engine_of_page(page),
		                     static_cast<uint32_t>(page / engines_.size()),
		                     offset % hw::TERN_DB_PAGE_SIZE, *value);
	}
}

void Card::reset()
{
	for (const Engine &engine : engines_)
		tern_engine_reset(engine.core.get());
}

void Card::flush()
{
	for (const Engine &engine : engines_)
		tern_engine_flush(engine.core.get());
}

void Card::plug(bool plugged)
{
	for (const Engine &engine : engines_)
		tern_engine_set_cable(engine.core.get(), plugged);
}

} // namespace tern::vfio
