/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "qemu/rnic/environment.h"
#include "tern/tern_hw.h"

namespace tern {

/** A completion counter: two values, which the host reads from a record in its memory. */
class CompletionCounter {
public:
	CompletionCounter(Iova record, hw::tern_hw_comp_unit unit) : record_(record), unit_(unit) {}

	/* These return false, and change no value, if the record cannot be written. */

	/** Writes both values to the record. */
	bool begin(HostMemory &memory) const
	{
		return write(memory, hw::TERN_COMP_COMPLETED, 0) &&
		       write(memory, hw::TERN_COMP_FAILED, 0);
	}
	/** Counts a request that has succeeded with @bytes of data, or failed. Everything that the
	 * card has written before is visible to who reads the value. */
	bool count(HostMemory &memory, bool success, uint64_t bytes)
	{
		if (!success)
			return change(memory, hw::TERN_COMP_FAILED, hw::TERN_COMP_ADD, 1);
		return change(memory, hw::TERN_COMP_COMPLETED, hw::TERN_COMP_ADD,
		              unit_ == hw::TERN_COMP_BYTES ? bytes : 1);
	}
	/** MODIFY_COMP_COUNTER. */
	bool change(HostMemory &memory, hw::tern_hw_comp_value value, hw::tern_hw_comp_change how,
	            uint64_t operand)
	{
		const uint64_t to = how == hw::TERN_COMP_SET ? operand : values_[value] + operand;
		if (!write(memory, value, to))
			return false;
		values_[value] = to;
		return true;
	}

	uint32_t users = 0; /* operations of QPs that it counts */

private:
	bool write(HostMemory &memory, hw::tern_hw_comp_value value, uint64_t to) const
	{
		const size_t offset = value == hw::TERN_COMP_COMPLETED
		                              ? offsetof(hw::tern_hw_comp_record, completed)
		                              : offsetof(hw::tern_hw_comp_record, failed);
		return memory.store_release(record_ + offset, to);
	}

	Iova record_;
	hw::tern_hw_comp_unit unit_;
	std::array<uint64_t, 2> values_{}; /* by enum tern_hw_comp_value */
};

} // namespace tern
