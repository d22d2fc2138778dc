// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/control/congestion_commands.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "qemu/rnic/card.h"

namespace tern {

using namespace hw;

namespace {

/* In the order of enum tern_hw_congestion_param. */
using Values = std::array<uint32_t, TERN_CC_COUNT>;
static_assert(sizeof(Values) == sizeof(CongestionParameters));
static_assert(offsetof(CongestionParameters, rp_gd) == sizeof(uint32_t) * TERN_CC_RP_GD);
static_assert(offsetof(CongestionParameters, np_cnp_prio) ==
              sizeof(uint32_t) * TERN_CC_NP_CNP_PRIO);

} // namespace

CommandStatus query_congestion(const Card &card, tern_hw_congestion &result)
{
	std::ranges::copy(std::bit_cast<Values>(card.congestion), result.value);
	return TERN_AQ_OK;
}

CommandStatus set_congestion(Card &card, const tern_hw_set_congestion &cmd)
{
	auto values = std::bit_cast<Values>(card.congestion);
	if (cmd.param.get() >= values.size())
		return bad_field(cmd.param);
	values[cmd.param.get()] = cmd.value.get();
	if (!card.set_congestion(std::bit_cast<CongestionParameters>(values)))
		return bad_field(cmd.value);
	return TERN_AQ_OK;
}

} // namespace tern
