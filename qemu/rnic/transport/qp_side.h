/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

namespace tern {

/** The two halves of a QP: one sends requests, the other one receives and answers them. */
enum class QpSide : uint8_t { Requester, Responder };

} // namespace tern
