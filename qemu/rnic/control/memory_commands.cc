// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/control/memory_commands.h"

#include "qemu/rnic/card.h"
#include "qemu/rnic/control/command_fields.h"
#include "qemu/rnic/limits.h"

namespace tern {

using namespace hw;

namespace {

CommandStatus created_key(Card &card, Region &&region, tern_hw_created &result)
{
	const uint32_t pdn = region.pdn;
	const auto key = card.memory.create(std::move(region), card.pds.owner(pdn));
	if (!key)
		return TERN_AQ_NO_RESOURCE;
	add_users(card.pds.find(pdn), 1);
	result.id = *key;
	return TERN_AQ_OK;
}

/* @pdn: the domain of the object before. */
CommandStatus status_of(Card &card, Memory::Destroyed destroyed, uint32_t pdn)
{
	switch (destroyed) {
	case Memory::Destroyed::Missing:
		return TERN_AQ_BAD_OBJECT;
	case Memory::Destroyed::Busy:
		return TERN_AQ_BUSY;
	default:
		add_users(card.pds.find(pdn), -1);
		return TERN_AQ_OK;
	}
}

bool access_valid(uint8_t access)
{
	return region_access_valid(access & ~TERN_ACCESS_ZERO_BASED);
}

/* Sets range and pages of @region from @cmd. region.access is set already. */
CommandStatus place(const Card &card, const tern_hw_create_mr &cmd, bool on_demand, Region &region)
{
	const uint64_t start = cmd.start.get();
	const uint64_t length = cmd.length.get();
	if (length > (on_demand ? kMaxOnDemandSize : kMaxRegionSize) || start + length < start)
		return bad_field(cmd.length);
	if (region.device &&
	    (cmd.pages.levels || !card.memory.device().holds(cmd.pages.iova.get(), length)))
		return bad_field(cmd.pages);
	const auto pages = PageList::make_region(cmd.pages, start, length, on_demand);
	if (!pages)
		return bad_field(cmd.pages);
	region.start = region.access & TERN_ACCESS_ZERO_BASED ? 0 : start;
	region.length = length;
	region.pages = *pages;
	return TERN_AQ_OK;
}

/* All fields of @cmd that its mask does not select must be zero. */
CommandStatus check_others(const tern_hw_modify_mr &cmd)
{
	tern_hw_create_mr rest = cmd.to;
	if (cmd.mask & TERN_MODIFY_MR_PD)
		rest.pdn = 0u;
	if (cmd.mask & TERN_MODIFY_MR_ACCESS)
		rest.access = 0;
	if (cmd.mask & TERN_MODIFY_MR_TRANSLATION) {
		rest.start = uint64_t{0};
		rest.length = uint64_t{0};
		rest.pages = {};
	}
	return check_zero(cmd.to, rest);
}

} // namespace

CommandStatus create_mr(Card &card, const tern_hw_create_mr &cmd, tern_hw_created &result)
{
	constexpr uint8_t kFlags = TERN_MR_DEVICE | TERN_MR_ON_DEMAND;
	const auto valid = check_fields({{cmd.access, access_valid(cmd.access)},
	                                 {cmd.flags, !(cmd.flags & ~kFlags)},
	                                 {cmd.rsvd, all_zero(cmd.rsvd)}});
	if (valid != TERN_AQ_OK)
		return valid;
	if (!card.pds.find(cmd.pdn.get()))
		return TERN_AQ_BAD_OBJECT;

	Region region{.pdn = cmd.pdn.get(),
	              .access = cmd.access,
	              .variant = cmd.variant,
	              .device = (cmd.flags & TERN_MR_DEVICE) != 0};
	const auto placed = place(card, cmd, (cmd.flags & TERN_MR_ON_DEMAND) != 0, region);
	if (placed != TERN_AQ_OK)
		return placed;
	return created_key(card, std::move(region), result);
}

CommandStatus modify_mr(Card &card, const tern_hw_modify_mr &cmd)
{
	constexpr uint8_t kAll =
	        TERN_MODIFY_MR_PD | TERN_MODIFY_MR_ACCESS | TERN_MODIFY_MR_TRANSLATION;
	auto valid = check_fields(
	        {{cmd.mask, cmd.mask && !(cmd.mask & ~kAll)}, {cmd.rsvd, all_zero(cmd.rsvd)}});
	if (valid == TERN_AQ_OK)
		valid = check_others(cmd);
	if (valid != TERN_AQ_OK)
		return valid;
	const Region *region = card.memory.find(cmd.key.get());
	if (!region || region->kind != Region::Kind::Registered || region->device ||
	    region->pages.on_demand())
		return TERN_AQ_BAD_OBJECT;
	if (region->windows)
		return TERN_AQ_BUSY;

	Region changed = *region;
	if (cmd.mask & TERN_MODIFY_MR_ACCESS) {
		/* TERN_ACCESS_ZERO_BASED changes the translation, not only the rights. */
		const bool base_changed = (cmd.to.access ^ region->access) & TERN_ACCESS_ZERO_BASED;
		if (!access_valid(cmd.to.access) ||
		    (base_changed && !(cmd.mask & TERN_MODIFY_MR_TRANSLATION)))
			return bad_field(cmd.to.access);
		changed.access = cmd.to.access;
	}
	if (cmd.mask & TERN_MODIFY_MR_PD) {
		if (!card.pds.find(cmd.to.pdn.get()))
			return TERN_AQ_BAD_OBJECT;
		changed.pdn = cmd.to.pdn.get();
	}
	if (cmd.mask & TERN_MODIFY_MR_TRANSLATION) {
		const auto placed = place(card, cmd.to, false, changed);
		if (placed != TERN_AQ_OK)
			return placed;
	}
	card.out.recall(Recall::of_key(cmd.key.get()));
	add_users(card.pds.find(region->pdn), -1);
	add_users(card.pds.find(changed.pdn), 1);
	card.memory.replace(cmd.key.get(), changed);
	return TERN_AQ_OK;
}

CommandStatus create_fast_mr(Card &card, uint32_t pdn, tern_hw_created &result)
{
	if (!card.pds.find(pdn))
		return TERN_AQ_BAD_OBJECT;
	return created_key(card, {.pdn = pdn, .kind = Region::Kind::Fast, .valid = false}, result);
}

CommandStatus destroy_mr(Card &card, uint32_t key)
{
	card.out.recall(Recall::of_key(key));
	const uint32_t pdn = card.memory.pdn_of(key);
	return status_of(card, card.memory.destroy_region(key), pdn);
}

/* Tables of on-demand regions are never cached, so there is nothing to drop. */
CommandStatus sync_mr(Card &card, const tern_hw_object &cmd)
{
	card.out.recall(Recall::of_key(cmd.id.get()));
	const Region *region = card.memory.find(cmd.id.get());
	if (!region || region->is_window())
		return TERN_AQ_BAD_OBJECT;
	if (!region->pages.on_demand())
		return bad_field(cmd.id);
	return TERN_AQ_OK;
}

CommandStatus alloc_mw(Card &card, const tern_hw_alloc_mw &cmd, tern_hw_created &result)
{
	const auto valid =
	        check_fields({{cmd.type, cmd.type == TERN_MW_TYPE_1 || cmd.type == TERN_MW_TYPE_2},
	                      {cmd.rsvd, all_zero(cmd.rsvd)}});
	if (valid != TERN_AQ_OK)
		return valid;
	if (!card.pds.find(cmd.pdn.get()))
		return TERN_AQ_BAD_OBJECT;
	const auto kind =
	        cmd.type == TERN_MW_TYPE_1 ? Region::Kind::Window1 : Region::Kind::Window2;
	return created_key(
	        card, {.pdn = cmd.pdn.get(), .variant = cmd.variant, .kind = kind, .valid = false},
	        result);
}

CommandStatus dealloc_mw(Card &card, uint32_t key)
{
	card.out.recall(Recall::of_key(key));
	const uint32_t pdn = card.memory.pdn_of(key);
	return status_of(card, card.memory.destroy_window(key), pdn);
}

} // namespace tern
