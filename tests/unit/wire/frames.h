/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "qemu/wire/framing.h"
#include "qemu/wire/switch.h"

namespace tern::wire {

using Bytes = std::vector<std::byte>;

constexpr uint8_t kBroadcast = 0xff;

/** A frame from host @from to host @to (kBroadcast: to all), told apart by @tag. */
inline Bytes frame(uint8_t to, uint8_t from, uint32_t tag = 0, size_t size = 64)
{
	Bytes bytes(size < 18 ? 18 : size);
	for (size_t i = 0; i < 6; i++)
		bytes[i] = std::byte{to == kBroadcast ? kBroadcast : uint8_t{0}};
	bytes[5] = std::byte{to};
	bytes[11] = std::byte{from};
	for (size_t i = 0; i < 4; i++)
		bytes[14 + i] = static_cast<std::byte>(tag >> 8 * i);
	bytes.resize(size);
	return bytes;
}

/** As frame(), a RoCEv1 packet to QP @qpn. */
inline Bytes roce(uint8_t to, uint8_t from, uint32_t qpn, uint32_t tag = 0)
{
	constexpr size_t kGrhEnd = 14 + 40;
	Bytes bytes = frame(to, from, tag, kGrhEnd + 12);
	bytes[12] = std::byte{0x89};
	bytes[13] = std::byte{0x15};
	for (size_t i = 0; i < 3; i++)
		bytes[kGrhEnd + 5 + i] = static_cast<std::byte>(qpn >> (16 - 8 * i));
	return bytes;
}

/** A QP of that engine. */
constexpr uint32_t qp_of(uint32_t engine)
{
	return engine << 20 | 5;
}

inline uint32_t tag_of(Frame bytes)
{
	uint32_t tag = 0;
	for (size_t i = 0; i < 4; i++)
		tag |= std::to_integer<uint32_t>(bytes[14 + i]) << 8 * i;
	return tag;
}

inline Bytes on_stream(Frame bytes)
{
	Bytes out(kLengthSize);
	put_length(std::span<std::byte, kLengthSize>(out), bytes.size());
	out.insert(out.end(), bytes.begin(), bytes.end());
	return out;
}

/** Keeps what it gets. */
class Host final : public Outlet {
public:
	bool deliver(Frame frame) override
	{
		got.emplace_back(frame.begin(), frame.end());
		return room;
	}
	bool takes_copy() override { return room; }

	std::vector<uint32_t> tags() const
	{
		std::vector<uint32_t> tags;
		for (const Bytes &bytes : got)
			tags.push_back(tag_of(bytes));
		return tags;
	}

	std::deque<Bytes> got;
	bool room = true;
};

} // namespace tern::wire
