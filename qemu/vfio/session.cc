// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/vfio/session.h"

#include <algorithm>
#include <cerrno>
#include <linux/vfio.h>
#include <optional>
#include <string>

#include "qemu/rnic/json.h"
#include "tern/tern_hw.h"

namespace tern::vfio {

namespace {

/* The structure at the front of a message; none if the message is shorter. */
template <typename T>
std::optional<T> front(const Message &message)
{
	T value;
	if (message.data.size() < sizeof(value))
		return std::nullopt;
	std::memcpy(&value, message.data.data(), sizeof(value));
	return value;
}

/* Like front(), but returns none if the message has more data. */
template <typename T>
std::optional<T> only(const Message &message)
{
	return message.data.size() == sizeof(T) ? front<T>(message) : std::nullopt;
}

/* Whether @count elements from @start on are among @size. */
bool within(uint64_t start, uint64_t count, uint64_t size)
{
	return start <= size && count <= size - start;
}

std::string capabilities()
{
	Json json;
	json.object({}, [&] {
		json.object("capabilities", [&] {
			json.number("max_msg_fds", kMaxFds);
			json.number("max_data_xfer_size", kMaxTransfer);
			json.number("max_dma_maps", kMaxRanges);
			json.number("pgsizes", kPageSize);
		});
	});
	return json.written();
}

} // namespace

Session::Session(const Function &function) : function_(function), config_(layout())
{
	function_.device.plug(true);
}

Session::~Session()
{
	function_.device.plug(false);
	reset();
	function_.interrupts.release();
	function_.dma.unmap_all();
}

Reply Session::handle(Message message)
{
	if ((message.header.flags & kTypeMask) != kTypeCommand)
		return Reply::end();
	const auto command = static_cast<Command>(message.header.command);
	if (!negotiated_ && command != Command::Version)
		return Reply::end();
	switch (command) {
	case Command::Version:
		return negotiate(message);
	case Command::DmaMap:
		return map(message);
	case Command::DmaUnmap:
		return unmap(message);
	case Command::GetDeviceInfo:
		return device_info(message);
	case Command::GetRegionInfo:
		return region_info(message);
	case Command::GetIrqInfo:
		return irq_info(message);
	case Command::SetIrqs:
		return set_irqs(message);
	case Command::RegionRead:
		return read_region(message);
	case Command::RegionWrite:
		return write_region(message);
	case Command::Reset:
		reset();
		return {};
	}
	return Reply::failed(ENOTSUP);
}

/* The client's capabilities do not matter here: a reply has at most one descriptor, and as much
 * data as the client asks for. */
Reply Session::negotiate(const Message &message)
{
	const auto version = front<Version>(message);
	if (!version || version->major != kMajor)
		return Reply::end();
	if (message.data.size() > sizeof(Version) && message.data.back() != std::byte{0})
		return Reply::end();
	if (negotiated_)
		return Reply::failed(EINVAL);
	negotiated_ = true;
	Reply reply;
	reply.append(Version{kMajor, std::min(version->minor, kMinor)});
	const std::string text = capabilities();
	reply.append_bytes(std::as_bytes(std::span(text.c_str(), text.size() + 1)));
	return reply;
}

/* ---- guest memory ----------------------------------------------------------- */

Reply Session::map(const Message &message)
{
	const auto what = only<DmaMap>(message);
	if (!what || message.fds.size() > 1)
		return Reply::end();
	const Fd none;
	return Reply::failed(
	        function_.dma.map(*what, message.fds.empty() ? none : message.fds.front()));
}

Reply Session::unmap(const Message &message)
{
	const auto what = only<DmaUnmap>(message);
	if (!what)
		return Reply::end();
	if (what->flags & ~uint32_t{VFIO_DMA_UNMAP_FLAG_ALL})
		return Reply::failed(EINVAL);
	if (what->flags)
		function_.dma.unmap_all();
	else if (const int error = function_.dma.unmap(what->address, what->size))
		return Reply::failed(error);
	Reply reply;
	reply.append(*what);
	return reply;
}

/* ---- what there is ------------------------------------------------------------ */

Reply Session::device_info(const Message &message) const
{
	const auto asked = front<DeviceInfo>(message);
	if (!asked)
		return Reply::end();
	if (asked->argsz < sizeof(DeviceInfo))
		return Reply::failed(EINVAL);
	Reply reply;
	reply.append(DeviceInfo{.argsz = sizeof(DeviceInfo),
	                        .flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET,
	                        .regions = VFIO_PCI_NUM_REGIONS,
	                        .irqs = VFIO_PCI_NUM_IRQS});
	return reply;
}

uint64_t Session::region_size(uint32_t region) const
{
	switch (region) {
	case hw::TERN_BAR_REGS:
		return function_.registers_size;
	case hw::TERN_BAR_DOORBELLS:
		return function_.doorbells_size;
	case hw::TERN_BAR_MSIX:
		return function_.interrupts.bar_size();
	case hw::TERN_BAR_DM:
		return function_.device_memory_bytes.size();
	case VFIO_PCI_CONFIG_REGION_INDEX:
		return ConfigSpace::kSize;
	default:
		return 0;
	}
}

ConfigSpace::Layout Session::layout() const
{
	ConfigSpace::Layout layout{};
	for (unsigned bar = 0; bar < ConfigSpace::kBars; bar++)
		layout.bar_sizes[bar] = region_size(bar);
	layout.vectors = function_.interrupts.count();
	layout.pending_offset = static_cast<uint32_t>(function_.interrupts.pending_offset());
	return layout;
}

Reply Session::region_info(const Message &message) const
{
	const auto asked = front<RegionInfo>(message);
	if (!asked)
		return Reply::end();
	if (asked->argsz < sizeof(RegionInfo) || asked->index >= VFIO_PCI_NUM_REGIONS)
		return Reply::failed(EINVAL);
	RegionInfo info{.argsz = sizeof(RegionInfo),
	                .flags = 0,
	                .index = asked->index,
	                .cap_offset = 0,
	                .size = region_size(asked->index),
	                .offset = 0};
	Reply reply;
	if (info.size)
		info.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	if (info.size && asked->index == hw::TERN_BAR_DM) {
		info.flags |= VFIO_REGION_INFO_FLAG_MMAP;
		reply.fd = function_.device_memory;
	}
	reply.append(info);
	return reply;
}

Reply Session::irq_info(const Message &message) const
{
	const auto asked = front<IrqInfo>(message);
	if (!asked)
		return Reply::end();
	if (asked->argsz < sizeof(IrqInfo) || asked->index >= VFIO_PCI_NUM_IRQS)
		return Reply::failed(EINVAL);
	const bool msix = asked->index == VFIO_PCI_MSIX_IRQ_INDEX;
	Reply reply;
	reply.append(IrqInfo{.argsz = sizeof(IrqInfo),
	                     .flags = msix ? VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_MASKABLE : 0u,
	                     .index = asked->index,
	                     .count = msix ? function_.interrupts.count() : 0});
	return reply;
}

/* ---- interrupts ----------------------------------------------------------------- */

Reply Session::set_irqs(Message &message)
{
	constexpr uint32_t kFlags = VFIO_IRQ_SET_DATA_TYPE_MASK | VFIO_IRQ_SET_ACTION_TYPE_MASK;
	const auto set = front<IrqSet>(message);
	if (!set)
		return Reply::end();
	const uint32_t count =
	        set->index == VFIO_PCI_MSIX_IRQ_INDEX ? function_.interrupts.count() : 0;
	if (set->index >= VFIO_PCI_NUM_IRQS || set->flags & ~kFlags ||
	    !within(set->start, set->count, count))
		return Reply::failed(EINVAL);
	if (set->index != VFIO_PCI_MSIX_IRQ_INDEX)
		return {}; /* nothing about interrupts that the card does not have */
	const auto data = std::span(message.data).subspan(sizeof(IrqSet));
	switch (set->flags & VFIO_IRQ_SET_ACTION_TYPE_MASK) {
	case VFIO_IRQ_SET_ACTION_TRIGGER:
		return set_eventfds(*set, std::move(message.fds));
	case VFIO_IRQ_SET_ACTION_MASK:
	case VFIO_IRQ_SET_ACTION_UNMASK:
		return set_masks(*set, data);
	default:
		return Reply::failed(EINVAL);
	}
}

/* Clients cannot raise an interrupt by message, as the data types NONE and BOOL would allow. */
Reply Session::set_eventfds(const IrqSet &set, std::vector<Fd> fds)
{
	switch (set.flags & VFIO_IRQ_SET_DATA_TYPE_MASK) {
	case VFIO_IRQ_SET_DATA_NONE:
		if (set.count)
			return Reply::failed(ENOTSUP);
		function_.interrupts.release();
		return {};
	case VFIO_IRQ_SET_DATA_EVENTFD:
		if (!fds.empty() && fds.size() != set.count)
			return Reply::failed(EINVAL);
		fds.resize(set.count);
		function_.interrupts.assign(set.start, std::move(fds));
		return {};
	default:
		return Reply::failed(ENOTSUP);
	}
}

Reply Session::set_masks(const IrqSet &set, std::span<const std::byte> data)
{
	const uint32_t kind = set.flags & VFIO_IRQ_SET_DATA_TYPE_MASK;
	const bool masked = set.flags & VFIO_IRQ_SET_ACTION_MASK;
	if (kind != VFIO_IRQ_SET_DATA_NONE && kind != VFIO_IRQ_SET_DATA_BOOL)
		return Reply::failed(ENOTSUP);
	if (kind == VFIO_IRQ_SET_DATA_BOOL && data.size() != set.count)
		return Reply::failed(EINVAL);
	for (uint32_t i = 0; i < set.count; i++) {
		if (kind == VFIO_IRQ_SET_DATA_NONE || data[i] != std::byte{0})
			function_.interrupts.mask(set.start + i, masked);
	}
	return {};
}

/* ---- regions ---------------------------------------------------------------------- */

bool Session::is_inside(const RegionAccess &access) const
{
	return access.count && within(access.offset, access.count, region_size(access.region));
}

Reply Session::read_region(const Message &message)
{
	const auto access = only<RegionAccess>(message);
	if (!access)
		return Reply::end();
	if (access->count > kMaxTransfer || !is_inside(*access))
		return Reply::failed(EINVAL);
	std::vector<std::byte> bytes(access->count);
	if (access->region == VFIO_PCI_CONFIG_REGION_INDEX)
		config_.read(access->offset, bytes);
	else if (access->region == hw::TERN_BAR_MSIX)
		function_.interrupts.read(access->offset, bytes);
	else if (access->region == hw::TERN_BAR_DM)
		std::memcpy(bytes.data(), &function_.device_memory_bytes[access->offset],
		            bytes.size());
	else
		function_.device.read_bar(access->region, access->offset, bytes);
	Reply reply;
	reply.append(*access);
	reply.append_bytes(bytes);
	return reply;
}

Reply Session::write_region(const Message &message)
{
	const auto access = front<RegionAccess>(message);
	if (!access || message.data.size() - sizeof(RegionAccess) != access->count)
		return Reply::end();
	if (!is_inside(*access))
		return Reply::failed(EINVAL);
	const auto bytes = std::span(message.data).subspan(sizeof(RegionAccess));
	if (access->region == VFIO_PCI_CONFIG_REGION_INDEX)
		write_config(access->offset, bytes);
	else if (access->region == hw::TERN_BAR_MSIX)
		function_.interrupts.write(access->offset, bytes);
	else if (access->region == hw::TERN_BAR_DM)
		std::memcpy(&function_.device_memory_bytes[access->offset], bytes.data(),
		            bytes.size());
	else
		function_.device.write_bar(access->region, access->offset, bytes);
	Reply reply;
	reply.append(*access);
	return reply;
}

void Session::write_config(uint64_t offset, std::span<const std::byte> from)
{
	const bool was_bus_master = config_.bus_master();
	config_.write(offset, from);
	if (config_.take_function_reset()) {
		reset();
		return;
	}
	follow_config();
	if (was_bus_master && !config_.bus_master())
		function_.device.flush();
}

void Session::follow_config()
{
	function_.dma.set_bus_master(config_.bus_master());
	function_.interrupts.configure(config_.msix_enabled(), config_.msix_masked());
}

/* The client keeps its mappings and its eventfds. */
void Session::reset()
{
	config_.reset();
	follow_config();
	function_.device.reset();
	function_.interrupts.reset();
}

} // namespace tern::vfio
