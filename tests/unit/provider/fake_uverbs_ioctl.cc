// SPDX-License-Identifier: GPL-2.0-or-later
/* The driver of the pretended card: what only the ioctl() interface has. */
#include <cerrno>
#include <cstdarg>

#include <dlfcn.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "fake_uverbs.h"

namespace tern::provider::test {

namespace {

/** The attributes of a request. */
class Attributes {
public:
	explicit Attributes(ib_uverbs_ioctl_hdr &hdr) : attrs_(hdr.attrs, hdr.num_attrs) {}

	/** Exactly @ids are there, in any order. */
	bool are(std::initializer_list<unsigned> ids) const
	{
		return ids.size() == attrs_.size() &&
		       std::ranges::all_of(ids, [this](unsigned id) { return find(id); });
	}
	uint64_t get(unsigned id) const { return find(id)->data; }
	uint32_t get_u32(unsigned id) const { return static_cast<uint32_t>(find(id)->data); }
	void set(unsigned id, uint64_t value) const { find(id)->data = value; }
	/** Writes @value to where the attribute points. */
	template <class T>
	void respond(unsigned id, const T &value) const
	{
		std::memcpy(reinterpret_cast<void *>(get(id)), &value,
		            std::min<size_t>(find(id)->len, sizeof(value)));
	}

private:
	ib_uverbs_attr *find(unsigned id) const
	{
		for (ib_uverbs_attr &attr : attrs_)
			if (attr.attr_id == id)
				return &attr;
		return nullptr;
	}

	std::span<ib_uverbs_attr> attrs_;
};

constexpr uint32_t method(unsigned object, unsigned number)
{
	return object << 16 | number;
}

} // namespace

int FakeUverbs::ioctl(ib_uverbs_ioctl_hdr &hdr)
{
	const std::lock_guard guard(mutex_);
	return do_ioctl(hdr);
}

int FakeUverbs::do_ioctl(ib_uverbs_ioctl_hdr &hdr)
{
	const Attributes attrs(hdr);

	if (hdr.driver_id)
		return EINVAL;
	switch (method(hdr.object_id, hdr.method_id)) {
	case method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT):
		if (!attrs.are({UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS,
		                UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT,
		                TERN_ATTR_QUERY_CONTEXT_RESP}))
			return EINVAL;
		attrs.respond(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, uint32_t{2});
		attrs.respond(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, uint64_t{0});
		attrs.respond(TERN_ATTR_QUERY_CONTEXT_RESP, describe_context());
		return 0;
	case method(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC):
		attrs.set(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE,
		          static_cast<uint64_t>(open("/dev/null", O_RDONLY)));
		return 0;
	case method(UVERBS_OBJECT_PD, TERN_METHOD_PD_QUERY):
		if (!attrs.are({TERN_ATTR_PD_QUERY_HANDLE, TERN_ATTR_PD_QUERY_RESP}))
			return EINVAL;
		return attrs.get(TERN_ATTR_PD_QUERY_HANDLE) == kPdHandle && pds ? 0 : ENOENT;
	case method(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR):
		if (attrs.get(UVERBS_ATTR_QUERY_MR_HANDLE) != kMrHandle || !mrs)
			return ENOENT;
		attrs.respond(UVERBS_ATTR_QUERY_MR_RESP_LKEY, kMrKey);
		attrs.respond(UVERBS_ATTR_QUERY_MR_RESP_RKEY, kMrKey);
		attrs.respond(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, uint64_t{64});
		return 0;
	case method(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR):
		last_dmabuf = {attrs.get(UVERBS_ATTR_REG_DMABUF_MR_OFFSET),
		               attrs.get(UVERBS_ATTR_REG_DMABUF_MR_IOVA),
		               attrs.get_u32(UVERBS_ATTR_REG_DMABUF_MR_FD)};
		attrs.set(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, kMrHandle);
		attrs.respond(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, kMrKey);
		attrs.respond(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, kMrKey);
		mrs++;
		return 0;
	case method(UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG):
		if (attrs.get(UVERBS_ATTR_REG_DM_MR_DM_HANDLE) != kDmHandle || !dms)
			return ENOENT;
		attrs.set(UVERBS_ATTR_REG_DM_MR_HANDLE, kMrHandle);
		attrs.respond(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, kMrKey);
		attrs.respond(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, kMrKey);
		mrs++;
		return 0;
	case method(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC): {
		if (!attrs.are({UVERBS_ATTR_ALLOC_DM_HANDLE, UVERBS_ATTR_ALLOC_DM_LENGTH,
		                UVERBS_ATTR_ALLOC_DM_ALIGNMENT, TERN_ATTR_ALLOC_DM_RESP_KEY}))
			return EINVAL;
		dm_length = attrs.get(UVERBS_ATTR_ALLOC_DM_LENGTH);
		if (dm_length > kMaxDm)
			return ENOMEM;
		dm_key = allocate(dm_length);
		attrs.set(UVERBS_ATTR_ALLOC_DM_HANDLE, kDmHandle);
		attrs.respond(TERN_ATTR_ALLOC_DM_RESP_KEY, bad_dm_key ? dm_key + 1 : dm_key);
		dms++;
		return 0;
	}
	case method(UVERBS_OBJECT_DM, TERN_METHOD_DM_QUERY):
		if (!attrs.are({TERN_ATTR_DM_QUERY_HANDLE, TERN_ATTR_DM_QUERY_RESP_KEY,
		                TERN_ATTR_DM_QUERY_RESP_LENGTH}))
			return EINVAL;
		if (attrs.get(TERN_ATTR_DM_QUERY_HANDLE) != kDmHandle || !dms)
			return ENOENT;
		attrs.respond(TERN_ATTR_DM_QUERY_RESP_KEY, dm_key);
		attrs.respond(TERN_ATTR_DM_QUERY_RESP_LENGTH, dm_length);
		return 0;
	case method(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE):
		dms--;
		return 0;
	case method(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE):
		attrs.set(UVERBS_ATTR_CREATE_COUNTERS_HANDLE, kCountersHandle);
		counters++;
		return 0;
	case method(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ):
		if (attrs.get(UVERBS_ATTR_READ_COUNTERS_HANDLE) != kCountersHandle || !counters)
			return ENOENT;
		attrs.respond(UVERBS_ATTR_READ_COUNTERS_BUFF, counted);
		return 0;
	case method(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY):
		counters--;
		return 0;
	default:
		return ENOTTY; /* as a kernel without it: libibverbs uses write() */
	}
}

} // namespace tern::provider::test

/* Before libc's. */
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept
{
	using tern::provider::test::FakeUverbs;

	va_list args;
	va_start(args, request);
	void *argument = va_arg(args, void *);
	va_end(args);
	if (request == RDMA_VERBS_IOCTL && FakeUverbs::instance().is_device(fd)) {
		errno = FakeUverbs::instance().ioctl(*static_cast<ib_uverbs_ioctl_hdr *>(argument));
		return errno ? -1 : 0;
	}
	static auto *const next =
	        reinterpret_cast<int (*)(int, unsigned long, ...)>(dlsym(RTLD_NEXT, "ioctl"));
	return next(fd, request, argument);
}
