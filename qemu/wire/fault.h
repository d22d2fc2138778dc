/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tern::wire {

/** What the switch may do to a frame on its way to one port. Count does nothing to it. */
enum class Fault : uint8_t { Count, Drop, Corrupt, Mark, Duplicate, Delay, Reorder };

/** In lower case. */
std::string_view fault_name(Fault fault);

/** A fault that was applied. */
struct FaultEvent {
	/* Dropped, because too many frames are held back. */
	static constexpr unsigned kNoRoom = UINT_MAX;

	Fault fault = Fault::Count;
	unsigned rule = 0;   /* number of the rule; 0: by a percentage; or kNoRoom */
	uint64_t amount = 0; /* of a delay, in ns; of Reorder, the number of frames that overtake */
	unsigned to = 0;     /* port */
};

/** What caused it, such as "rule 2". */
std::string cause_of(const FaultEvent &event);
/** The comment on a captured packet, such as "fault: delay 5000us, rule 2, to port 1". */
std::string to_string(const FaultEvent &event);

/** Whether the sender of a frame is capable of ECN (RFC 3168) and nothing has marked the frame. */
bool can_mark(std::span<const std::byte> frame);
/** Sets CE in the IP header of such a frame, as a congested switch does. Returns false for other
 * frames. */
bool mark(std::span<std::byte> frame);

} // namespace tern::wire
