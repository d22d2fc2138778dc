/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <functional>

namespace tern::wire {

/** Calls @run in a child process, and again in a new one whenever a signal has ended it. Passes
 * SIGINT and SIGTERM on to the child, and returns its exit status when it exits by itself or after
 * such a signal. The child dies with this process. */
int keep_running(const std::function<int()> &run);

} // namespace tern::wire
