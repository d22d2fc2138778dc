/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>

#include "qemu/rnic/all_zero.h"
#include "tern/tern_hw.h"

namespace tern {

/**
 * What an admin command ends with. BAD_FIELD comes with the field: a reference to a member of the
 * command itself, because the admin queue tells the host its offset there.
 */
class CommandStatus {
public:
	/** Any status but BAD_FIELD. */
	CommandStatus(hw::tern_hw_aq_status value) : value_(value) {}
	/** BAD_FIELD because of @field. */
	template <typename T>
	static CommandStatus bad_field(const T &field)
	{
		return CommandStatus(static_cast<const void *>(&field));
	}

	hw::tern_hw_aq_status value() const { return value_; }
	/** Null unless the status is BAD_FIELD. */
	const void *field() const { return field_; }
	bool operator==(hw::tern_hw_aq_status value) const { return value_ == value; }

private:
	explicit CommandStatus(const void *field) : value_(hw::TERN_AQ_BAD_FIELD), field_(field) {}

	hw::tern_hw_aq_status value_;
	const void *field_ = nullptr;
};

/** BAD_FIELD because of @field, a member of the command. */
template <typename T>
CommandStatus bad_field(const T &field)
{
	return CommandStatus::bad_field(field);
}

/** A field of a command and whether its value is valid. */
struct FieldCheck {
	template <typename T>
	FieldCheck(const T &field, bool is_valid)
	        : if_invalid(CommandStatus::bad_field(field)), valid(is_valid)
	{
	}

	CommandStatus if_invalid;
	bool valid;
};

/** OK, or BAD_FIELD because of the first of @fields that is not valid. */
inline CommandStatus check_fields(std::initializer_list<FieldCheck> fields)
{
	for (const FieldCheck &field : fields)
		if (!field.valid)
			return field.if_invalid;
	return hw::TERN_AQ_OK;
}

/** OK if all of @rest, a copy of @command without the fields that may have any value, is zero;
 * else BAD_FIELD because of the first byte that is not. */
template <typename Command>
CommandStatus check_zero(const Command &command, const Command &rest)
{
	const size_t zeros = leading_zeros(rest);
	if (zeros == sizeof(rest))
		return hw::TERN_AQ_OK;
	return bad_field(std::as_bytes(std::span(&command, 1))[zeros]);
}

} // namespace tern
