// SPDX-License-Identifier: GPL-2.0
/* Page lists of on-demand regions, which allocate tables only for what is used. */
#include <linux/xarray.h>

#include "pages.h"
#include "tern.h"

#define TERN_TABLE_BITS	9

static_assert(BIT(TERN_TABLE_BITS) == TERN_TABLE_ENTRIES);

/* The key in tern_sparse.tables of the table of @level for @leaf. Level 0 points to leaves. */
static unsigned long tern_sparse_key(u8 level, u64 leaf)
{
	return (unsigned long)level << (BITS_PER_LONG - 4) |
	       leaf >> (TERN_TABLE_BITS * (level + 1));
}

static __le64 *tern_sparse_slot(struct tern_page *page, u8 level, u64 leaf)
{
	__le64 *entries = page->va;

	return &entries[leaf >> (TERN_TABLE_BITS * level) & (TERN_TABLE_ENTRIES - 1)];
}

static struct tern_page *tern_sparse_add(struct tern_dev *tdev, struct tern_sparse *sparse,
					 unsigned long key)
{
	struct tern_page *page = kmalloc(sizeof(*page), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!page)
		return ERR_PTR(err);
	err = tern_page_alloc(tdev, page, GFP_KERNEL_ACCOUNT);
	if (err)
		goto err_free;
	err = xa_err(xa_store(&sparse->tables, key, page, GFP_KERNEL_ACCOUNT));
	if (err)
		goto err_page;
	return page;

err_page:
	tern_page_free(tdev, page);
err_free:
	kfree(page);
	return ERR_PTR(err);
}

/* For leaf pages of 1 << @shift bytes, numbered 0 .. @leaves - 1. */
int tern_sparse_init(struct tern_dev *tdev, struct tern_sparse *sparse, u64 leaves, u8 shift)
{
	xa_init(&sparse->tables);
	sparse->shift = shift;
	sparse->levels = 1;
	while (sparse->levels < TERN_MAX_LEVELS &&
	       leaves > BIT_ULL(TERN_TABLE_BITS * sparse->levels))
		sparse->levels++;
	if (leaves > BIT_ULL(TERN_TABLE_BITS * sparse->levels))
		return -E2BIG;
	return PTR_ERR_OR_ZERO(tern_sparse_add(tdev, sparse,
					       tern_sparse_key(sparse->levels - 1, 0)));
}

/* The card no longer uses the tables. */
void tern_sparse_exit(struct tern_dev *tdev, struct tern_sparse *sparse)
{
	struct tern_page *page;
	unsigned long key;

	xa_for_each(&sparse->tables, key, page) {
		tern_page_free(tdev, page);
		kfree(page);
		cond_resched();
	}
	xa_destroy(&sparse->tables);
}

/* Allocates the tables for leaves @first .. @last. The caller prevents concurrent calls. */
int tern_sparse_reach(struct tern_dev *tdev, struct tern_sparse *sparse, u64 first, u64 last)
{
	struct tern_page *above, *page;
	u64 leaf;
	int level;

	for (leaf = first; leaf <= last; leaf = (leaf | (TERN_TABLE_ENTRIES - 1)) + 1) {
		above = xa_load(&sparse->tables, tern_sparse_key(sparse->levels - 1, leaf));
		for (level = sparse->levels - 2; level >= 0; level--, above = page) {
			unsigned long key = tern_sparse_key(level, leaf);

			page = xa_load(&sparse->tables, key);
			if (page)
				continue;
			page = tern_sparse_add(tdev, sparse, key);
			if (IS_ERR(page))
				return PTR_ERR(page);
			WRITE_ONCE(*tern_sparse_slot(above, level + 1, leaf),
				   cpu_to_le64(page->dma | TERN_PAGE_PRESENT));
		}
	}
	return 0;
}

/* Sets the entry of @leaf. tern_sparse_reach() has allocated its tables. */
void tern_sparse_set(struct tern_sparse *sparse, u64 leaf, u64 entry)
{
	struct tern_page *page = xa_load(&sparse->tables, tern_sparse_key(0, leaf));

	WRITE_ONCE(*tern_sparse_slot(page, 0, leaf), cpu_to_le64(entry));
}

/* Clears leaves @first .. @last. Returns whether any of them was present. */
bool tern_sparse_clear(struct tern_sparse *sparse, u64 first, u64 last)
{
	struct tern_page *page;
	bool any = false;
	__le64 *slot;
	u64 leaf;

	for (leaf = first; leaf <= last; leaf++) {
		page = xa_load(&sparse->tables, tern_sparse_key(0, leaf));
		if (!page) {
			leaf |= TERN_TABLE_ENTRIES - 1;
			continue;
		}
		slot = tern_sparse_slot(page, 0, leaf);
		any |= *slot != 0;
		WRITE_ONCE(*slot, 0);
	}
	return any;
}

void tern_sparse_describe(struct tern_sparse *sparse, struct tern_hw_pages *pages)
{
	struct tern_page *root = xa_load(&sparse->tables, tern_sparse_key(sparse->levels - 1, 0));

	*pages = (struct tern_hw_pages) {
		.iova = cpu_to_le64(root->dma),
		.levels = sparse->levels,
		.page_shift = sparse->shift,
	};
}
