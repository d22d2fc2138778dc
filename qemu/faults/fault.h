/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <climits>
#include <cstdint>
#include <string>
#include <string_view>

namespace tern::faults {

/** What may happen to a frame on its way to one port. Count does nothing to it. */
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
	unsigned to = 0;     /* port of the switch, if there is no topology */
	std::string_view link; /* LinkEnd::name, if there is a topology */
};

/** What caused it, such as "rule 2". */
std::string cause_of(const FaultEvent &event);
/** Returns the comment on a captured packet. Examples are
 * "fault: delay 5000us, rule 2, to port 1" and "fault: drop, rule 1, on leaf1:spine1". */
std::string to_string(const FaultEvent &event);

} // namespace tern::faults
