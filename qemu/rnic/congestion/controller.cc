// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/congestion/controller.h"

#include <algorithm>

#include "qemu/rnic/congestion/dcqcn.h"
#include "qemu/rnic/congestion/timely.h"

namespace tern {

uint64_t max_rate(const CongestionParameters &parameters, uint32_t link_mbps)
{
	const uint32_t most =
	        parameters.rp_max_rate ? std::min(parameters.rp_max_rate, link_mbps) : link_mbps;
	return uint64_t{most} * 1000;
}

std::unique_ptr<CongestionController> make_controller(const CongestionParameters &parameters,
                                                      uint32_t link_mbps)
{
	switch (parameters.algorithm()) {
	case CongestionAlgorithm::Dcqcn:
		return std::make_unique<Dcqcn>(parameters, link_mbps);
	case CongestionAlgorithm::Timely:
		return std::make_unique<Timely>(parameters, link_mbps);
	case CongestionAlgorithm::None:
		break;
	}
	return nullptr;
}

} // namespace tern
