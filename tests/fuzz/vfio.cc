// SPDX-License-Identifier: GPL-2.0-or-later
/* A client of the card in a process of its own, at the vfio-user protocol without its socket: any
 * messages, most of them nearly right, while the card does DMA and raises interrupts. */
#include <array>
#include <cstdlib>
#include <cstring>
#include <linux/vfio.h>
#include <optional>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "qemu/vfio/session.h"
#include "tern/tern_hw.h"
#include "tests/sim/rng.h"

namespace tern::vfio {
namespace {

using sim::Rng;

constexpr unsigned kMaxActs = 200;
constexpr size_t kMemory = 16 * kPageSize;
constexpr unsigned kVectors = 70;

/* Stands for the registers and doorbells, and looks whether accesses are within them. */
class CheckingDevice final : public Device {
public:
	void read_bar(unsigned bar, uint64_t offset, std::span<std::byte> to) override
	{
		check(bar, offset, to.size());
	}
	void write_bar(unsigned bar, uint64_t offset, std::span<const std::byte> from) override
	{
		check(bar, offset, from.size());
	}
	void reset() override {}
	void flush() override {}
	void plug(bool) override {}

	static constexpr uint64_t kRegisters = 4096;
	static constexpr uint64_t kDoorbells = 8192;

private:
	static void check(unsigned bar, uint64_t offset, size_t size)
	{
		const uint64_t end = bar == hw::TERN_BAR_REGS        ? kRegisters
		                     : bar == hw::TERN_BAR_DOORBELLS ? kDoorbells
		                                                     : 0;
		if (offset > end || size > end - offset)
			std::abort();
	}
};

class World {
public:
	explicit World(Rng &rng) : rng_(rng)
	{
		sealed_ = shm::make_segment("guest", kMemory);
		open_ = Fd(memfd_create("open", MFD_CLOEXEC));
	}

	void act()
	{
		switch (rng_.below(16)) {
		case 0:
			session_.emplace(function());
			break;
		case 1:
			interrupts_.raise(static_cast<unsigned>(rng_.below(kVectors + 1)));
			break;
		case 2:
			access_memory();
			break;
		default:
			answer(make_message());
			break;
		}
	}

private:
	Session::Function function()
	{
		return {.device = device_,
		        .dma = dma_,
		        .interrupts = interrupts_,
		        .registers_size = CheckingDevice::kRegisters,
		        .doorbells_size = CheckingDevice::kDoorbells,
		        .device_memory = sealed_.get(),
		        .device_memory_bytes = device_memory_};
	}

	void answer(Message message)
	{
		if (!session_)
			session_.emplace(function());
		const Reply reply = session_->handle(std::move(message));
		if (reply.data.size() > kMaxMessage || (reply.error && reply.malformed))
			std::abort();
		if (reply.malformed)
			session_.reset();
	}

	/* A small number, or one at the edge of something. */
	uint64_t number()
	{
		static constexpr uint64_t kEdges[] = {kPageSize, kMemory, kMaxTransfer,
		                                      uint64_t{0} - kPageSize, ~uint64_t{0}};
		switch (rng_.below(4)) {
		case 0:
			return kEdges[rng_.below(std::size(kEdges))];
		case 1:
			return kPageSize * rng_.below(20);
		default:
			return rng_.below(256);
		}
	}
	uint32_t small() { return static_cast<uint32_t>(number()); }

	template <typename T>
	void put(Message &message, const T &value)
	{
		const auto bytes = std::as_bytes(std::span(&value, 1));
		message.data.insert(message.data.end(), bytes.begin(), bytes.end());
	}
	void put_bytes(Message &message, size_t size)
	{
		for (; size; size--)
			message.data.push_back(static_cast<std::byte>(rng_.below(256)));
	}

	void put_body(Message &message, Command command)
	{
		const uint32_t size = static_cast<uint32_t>(rng_.below(9));
		switch (command) {
		case Command::Version:
			put(message, Version{static_cast<uint16_t>(rng_.below(16) / 15), 0});
			break;
		case Command::DmaMap:
			put(message, DmaMap{32, static_cast<uint32_t>(rng_.below(5)), number(),
			                    number(), number()});
			break;
		case Command::DmaUnmap:
			put(message,
			    DmaUnmap{24, static_cast<uint32_t>(rng_.below(4)), number(), number()});
			break;
		case Command::GetDeviceInfo:
			put(message, DeviceInfo{small(), 0, 0, 0});
			break;
		case Command::GetRegionInfo:
			put(message, RegionInfo{small(), 0, small(), 0, 0, 0});
			break;
		case Command::GetIrqInfo:
			put(message, IrqInfo{small(), 0, small(), 0});
			break;
		case Command::SetIrqs:
			put(message, IrqSet{20, static_cast<uint32_t>(rng_.below(64)),
			                    rng_.chance(7, 8) ? VFIO_PCI_MSIX_IRQ_INDEX : small(),
			                    small(), small()});
			put_bytes(message, size);
			break;
		case Command::RegionRead:
			put(message, RegionAccess{number(), static_cast<uint32_t>(rng_.below(10)),
			                          rng_.chance(7, 8) ? size : small()});
			break;
		case Command::RegionWrite:
			put(message,
			    RegionAccess{number(), static_cast<uint32_t>(rng_.below(10)), size});
			put_bytes(message, rng_.chance(15, 16) ? size : rng_.below(16));
			break;
		case Command::Reset:
			break;
		}
	}

	Message make_message()
	{
		Message message{};
		message.header.command = static_cast<uint16_t>(rng_.below(18));
		if (rng_.chance(1, 64))
			message.header.flags = static_cast<uint32_t>(rng_.below(64));
		put_body(message, static_cast<Command>(message.header.command));
		if (rng_.chance(1, 32))
			message.data.resize(rng_.below(message.data.size() + 1));
		for (uint64_t fds = rng_.below(4); fds; fds--)
			message.fds.push_back(descriptor());
		return message;
	}

	Fd descriptor()
	{
		switch (rng_.below(4)) {
		case 0:
			return Fd(dup(open_.get()));
		case 1:
			return Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		default:
			return Fd(dup(sealed_.get()));
		}
	}

	/* As an engine. */
	void access_memory()
	{
		DmaTable::Reader &reader = dma_.reader(0);
		std::array<std::byte, 64> bytes{};
		uint32_t value = 0;
		const uint64_t at = number() + rng_.below(64);
		switch (rng_.below(4)) {
		case 0:
			reader.read(at, bytes);
			break;
		case 1:
			reader.write(at, bytes);
			break;
		case 2:
			reader.load32(at, value);
			break;
		default:
			reader.store64(at, at);
			break;
		}
	}

	Rng &rng_;
	CheckingDevice device_;
	DmaTable dma_{1};
	Interrupts interrupts_{kVectors};
	Fd sealed_, open_;
	std::array<std::byte, 2 * kPageSize> device_memory_{};
	std::optional<Session> session_;
};

} // namespace
} // namespace tern::vfio

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	using namespace tern::vfio;
	Rng rng(std::as_bytes(std::span(data, size)));
	World world(rng);
	for (unsigned i = 0; i < kMaxActs && !rng.exhausted(); i++)
		world.act();
	return 0;
}
