// SPDX-License-Identifier: GPL-2.0-or-later
/* Work requests on keys: binding windows, fast registration, invalidation. */
#include "qemu/rnic/memory/region.h"

namespace tern {

using namespace hw;

namespace {

constexpr uint8_t kWindowRights =
        TERN_ACCESS_REMOTE_WRITE | TERN_ACCESS_REMOTE_READ | TERN_ACCESS_REMOTE_ATOMIC;
constexpr uint8_t kRemoteRights = kWindowRights | TERN_ACCESS_FLUSH_GLOBAL;
constexpr uint8_t kWrites = TERN_ACCESS_REMOTE_WRITE | TERN_ACCESS_REMOTE_ATOMIC;

bool window_access_valid(const Region &window, uint8_t access)
{
	const uint8_t more = window.kind == Region::Kind::Window2 ? TERN_ACCESS_ZERO_BASED : 0;
	return !(access & ~(kWindowRights | more));
}

/* Whether @request may bind a window to @region (IBA 10.6.7.1). */
bool may_bind_to(const Region &region, const BindRequest &request, uint32_t pdn)
{
	if (region.is_window() || !region.valid || region.pdn != pdn ||
	    !(region.access & TERN_ACCESS_MW_BIND))
		return false;
	if ((request.access & kWrites) && !(region.access & TERN_ACCESS_LOCAL_WRITE))
		return false;
	return request.addr >= region.start && request.addr - region.start <= region.length &&
	       request.length <= region.length - (request.addr - region.start);
}

} // namespace

Region *Memory::at_index(uint32_t key) const
{
	return regions_.find(key >> kKeyIndexShift);
}

void Memory::unbind(Region &window)
{
	if (window.parent)
		window.parent->windows--;
	window.parent = nullptr;
	window.valid = false;
	if (window.qpn)
		unlink(window);
}

void Memory::link(Region &window)
{
	uint32_t &first = bound_[window.qpn];
	if (first)
		regions_.find(first)->previous_window = window.index;
	window.next_window = first;
	first = window.index;
}

void Memory::unlink(Region &window)
{
	if (window.next_window)
		regions_.find(window.next_window)->previous_window = window.previous_window;
	if (window.previous_window)
		regions_.find(window.previous_window)->next_window = window.next_window;
	else if (window.next_window)
		bound_[window.qpn] = window.next_window;
	else
		bound_.erase(window.qpn);
	window.qpn = window.next_window = window.previous_window = 0;
}

bool Memory::may_bind(const BindRequest &request, Target target) const
{
	const Region *window = at_index(request.rkey);
	if (!window || !window->is_window() || window->pdn != target.pdn ||
	    !window_access_valid(*window, request.access))
		return false;
	/* Type 1 may be bound again, and is unbound by a zero length; type 2 must be unbound. */
	if (window->kind == Region::Kind::Window2 && (window->valid || !request.length))
		return false;
	if (!request.length)
		return true;
	const Region *region = find(request.lkey);
	return region && may_bind_to(*region, request, target.pdn);
}

void Memory::bind(const BindRequest &request, Target target)
{
	Region *window = at_index(request.rkey);
	unbind(*window);
	window->variant = static_cast<uint8_t>(request.rkey & kKeyVariantMask);
	if (!request.length)
		return;
	Region *region = at_index(request.lkey);
	region->windows++;
	window->parent = region;
	window->parent_offset = request.addr - region->start;
	window->start = request.access & TERN_ACCESS_ZERO_BASED ? 0 : request.addr;
	window->length = request.length;
	window->access = request.access;
	window->valid = true;
	if (window->kind == Region::Kind::Window2) {
		window->qpn = target.qpn;
		link(*window);
	}
}

bool Memory::register_fast(const RegisterRequest &request, uint32_t pdn)
{
	Region *region = at_index(request.key);
	if (!region || region->kind != Region::Kind::Fast || region->valid || region->pdn != pdn ||
	    !region_access_valid(request.access) || request.length > kMaxRegionSize ||
	    request.start + request.length < request.start)
		return false;
	const auto pages = PageList::make_region(request.pages, request.start, request.length);
	if (!pages)
		return false;
	region->start = request.start;
	region->length = request.length;
	region->access = request.access;
	region->variant = static_cast<uint8_t>(request.key & kKeyVariantMask);
	region->pages = *pages;
	region->valid = true;
	return true;
}

/* Only windows of type 2 and fast regions can be invalidated, and only while bound or registered
 * (IBA 10.6.5, 10.6.7.2.3). */
bool Memory::may_invalidate(uint32_t key, Target target, Invalidator by) const
{
	const Region *region = find(key);
	if (!region || !region->valid || region->pdn != target.pdn)
		return false;
	switch (region->kind) {
	case Region::Kind::Window2:
		return region->qpn == target.qpn;
	case Region::Kind::Fast:
		return !region->windows &&
		       (by == Invalidator::Host || (region->access & kRemoteRights));
	default:
		return false;
	}
}

void Memory::invalidate(uint32_t key)
{
	Region *region = at_index(key);
	if (region->is_window()) {
		unbind(*region);
		return;
	}
	region->valid = false;
	/* The host may reuse its tables now. */
	region->pages.forget(tables_);
}

Memory::Destroyed Memory::destroy_window(uint32_t key)
{
	Region *window = at_index(key);
	if (!window || !window->is_window())
		return Destroyed::Missing;
	unbind(*window);
	regions_.remove(key >> kKeyIndexShift);
	return Destroyed::Done;
}

bool Memory::release_windows(uint32_t qpn, unsigned &budget)
{
	for (auto first = bound_.find(qpn); first != bound_.end(); first = bound_.find(qpn)) {
		if (!budget)
			return false;
		budget--;
		unbind(*regions_.find(first->second));
	}
	return true;
}

} // namespace tern
