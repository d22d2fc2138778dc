// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Requests of uverbs' ioctl() interface with attributes of the driver (rdma/tern-abi.h). */
#pragma once

#include <cstddef>
#include <cstdint>

#include "private_abi.h"

namespace tern::provider {

/** A request with room for N attributes. Output variables must live until it is sent. */
template <unsigned N>
class Ioctl {
public:
	Ioctl(uint16_t object, uint16_t method)
	{
		command_.next_attr = attrs_;
		command_.last_attr = attrs_ + N;
		command_.uhw_in_index = command_.uhw_out_index = private_abi::CommandBuffer::kNoUhw;
		command_.object_id = object;
		command_.method_id = method;
	}
	Ioctl(const Ioctl &) = delete;
	Ioctl &operator=(const Ioctl &) = delete;

	/** Adds the object of @handle. */
	Ioctl &object(uint16_t attr, uint32_t handle)
	{
		add(attr, 0).data = handle;
		return *this;
	}
	/** Adds @value. */
	Ioctl &in(uint16_t attr, uint32_t value)
	{
		add(attr, sizeof(value)).data = value;
		return *this;
	}
	/** Adds @to, which the kernel fills. */
	template <class T>
	Ioctl &out(uint16_t attr, T &to)
	{
		add(attr, sizeof(to)).data = reinterpret_cast<uintptr_t>(&to);
		return *this;
	}

	/** The request for a function of libibverbs, which adds its own attributes and sends it. */
	private_abi::CommandBuffer *link()
	{
		static_assert(offsetof(Ioctl, attrs_) == sizeof(command_));
		return &command_;
	}
	/** Sends it. Returns 0 or an errno. */
	int execute(ibv_context *context) { return private_abi::execute_ioctl(context, link()); }

private:
	ib_uverbs_attr &add(uint16_t attr, uint16_t length)
	{
		ib_uverbs_attr &next = *command_.next_attr++;
		next.attr_id = attr;
		next.len = length;
		next.flags = UVERBS_ATTR_F_MANDATORY;
		return next;
	}

	private_abi::CommandBuffer command_{};
	ib_uverbs_attr attrs_[N]{};
};

} // namespace tern::provider
