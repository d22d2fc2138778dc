// SPDX-License-Identifier: GPL-2.0-or-later
/* What terntop prints of an interval. */
#pragma once

#include <string>

#include "sampler.h"

namespace tern::tools {

/** A line for each device, then a line for each QP and operation that was active. */
std::string to_text(const Sample &sample);

/** One object without line break; times in ns unless the name says otherwise. */
std::string to_json(const Sample &sample);

/** A page in Prometheus' text format: totals, as its server makes rates of them. */
std::string to_prometheus(const Sample &sample);

} // namespace tern::tools
