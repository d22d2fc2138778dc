/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks and steps that commands of several object kinds share. */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "qemu/rnic/all_zero.h"
#include "qemu/rnic/card.h"
#include "qemu/rnic/command_status.h"
#include "tern/tern_hw.h"

namespace tern {

inline constexpr uint64_t kRecordAlign = 64;

inline bool page_valid(const Card &card, uint32_t page)
{
	return page < card.config.doorbell_pages;
}

/** Adds @n to the users of @object; null is ignored. */
template <typename T>
void add_users(T *object, int n)
{
	if (object)
		object->users += static_cast<uint32_t>(n);
}

/** Removes an object that nothing uses from its table. */
template <typename T>
CommandStatus destroy_unused(ObjectTable<T> &table, uint32_t number)
{
	const T *object = table.find(number);
	if (!object)
		return hw::TERN_AQ_BAD_OBJECT;
	if (object->users)
		return hw::TERN_AQ_BUSY;
	table.remove(number);
	return hw::TERN_AQ_OK;
}

/** Inserts a new object of @owner, a doorbell page, into its table and writes its number to
 * @result. */
template <typename T>
CommandStatus created(ObjectTable<T> &table, std::unique_ptr<T> object, uint32_t owner,
                      hw::tern_hw_created &result)
{
	const auto number = table.insert(std::move(object), owner);
	if (!number)
		return hw::TERN_AQ_NO_RESOURCE;
	result.id = *number;
	return hw::TERN_AQ_OK;
}

} // namespace tern
