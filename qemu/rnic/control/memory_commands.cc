// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/control/memory_commands.h"

#include "qemu/rnic/card.h"
#include "qemu/rnic/control/command_fields.h"

namespace tern {

using namespace hw;

namespace {

tern_hw_aq_status created_key(Card &card, Region region, tern_hw_created &result)
{
	const auto key = card.memory.create(std::move(region));
	if (!key)
		return TERN_AQ_NO_RESOURCE;
	result.id = *key;
	return TERN_AQ_OK;
}

tern_hw_aq_status status_of(Memory::Destroyed destroyed)
{
	switch (destroyed) {
	case Memory::Destroyed::Missing:
		return TERN_AQ_BAD_OBJECT;
	case Memory::Destroyed::Busy:
		return TERN_AQ_BUSY;
	default:
		return TERN_AQ_OK;
	}
}

} // namespace

tern_hw_aq_status dealloc_pd(Card &card, uint32_t pdn)
{
	const ProtectionDomain *pd = card.pds.find(pdn);
	if (!pd)
		return TERN_AQ_BAD_OBJECT;
	if (pd->users || card.memory.uses_pd(pdn))
		return TERN_AQ_BUSY;
	card.pds.remove(pdn);
	return TERN_AQ_OK;
}

tern_hw_aq_status create_mr(Card &card, const tern_hw_create_mr &cmd, tern_hw_created &result)
{
	const uint64_t start = cmd.start.get();
	const uint64_t length = cmd.length.get();
	if (!all_zero(cmd.rsvd) || !region_access_valid(cmd.access) || length > kMaxRegionSize ||
	    start + length < start)
		return TERN_AQ_BAD_FIELD;
	if (!card.pds.find(cmd.pdn.get()))
		return TERN_AQ_BAD_OBJECT;

	const auto pages = PageList::make_region(cmd.pages, start, length);
	if (!pages)
		return TERN_AQ_BAD_FIELD;
	return created_key(card,
	                   {.start = start,
	                    .length = length,
	                    .pdn = cmd.pdn.get(),
	                    .access = cmd.access,
	                    .variant = cmd.variant,
	                    .pages = *pages},
	                   result);
}

tern_hw_aq_status create_fast_mr(Card &card, uint32_t pdn, tern_hw_created &result)
{
	if (!card.pds.find(pdn))
		return TERN_AQ_BAD_OBJECT;
	return created_key(card, {.pdn = pdn, .kind = Region::Kind::Fast, .valid = false}, result);
}

tern_hw_aq_status destroy_mr(Card &card, uint32_t key)
{
	return status_of(card.memory.destroy_region(key));
}

tern_hw_aq_status alloc_mw(Card &card, const tern_hw_alloc_mw &cmd, tern_hw_created &result)
{
	if (!all_zero(cmd.rsvd) || (cmd.type != TERN_MW_TYPE_1 && cmd.type != TERN_MW_TYPE_2))
		return TERN_AQ_BAD_FIELD;
	if (!card.pds.find(cmd.pdn.get()))
		return TERN_AQ_BAD_OBJECT;
	const auto kind =
	        cmd.type == TERN_MW_TYPE_1 ? Region::Kind::Window1 : Region::Kind::Window2;
	return created_key(
	        card, {.pdn = cmd.pdn.get(), .variant = cmd.variant, .kind = kind, .valid = false},
	        result);
}

tern_hw_aq_status dealloc_mw(Card &card, uint32_t key)
{
	return status_of(card.memory.destroy_window(key));
}

} // namespace tern
