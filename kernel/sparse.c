// SPDX-License-Identifier: GPL-2.0
/* Page lists of on-demand regions, which allocate tables only for what is used. */
#include <linux/xarray.h>

#include "pages.h"
#include "tern.h"

#define TERN_TABLE_BITS	9

static_assert(BIT(TERN_TABLE_BITS) == TERN_TABLE_ENTRIES);

struct tern_sparse_table {
	struct tern_page page;
	u16 below;		/* tables that this one points to */
	struct list_head node;	/* in the list of tern_sparse_detach() */
};

/* The key in tern_sparse.tables of the table of @level for @leaf. Level 0 points to leaves. */
static unsigned long tern_sparse_key(u8 level, u64 leaf)
{
	return (unsigned long)level << (BITS_PER_LONG - 4) |
	       leaf >> (TERN_TABLE_BITS * (level + 1));
}

static __le64 *tern_sparse_slot(struct tern_sparse_table *table, u8 level, u64 leaf)
{
	__le64 *entries = table->page.va;

	return &entries[leaf >> (TERN_TABLE_BITS * level) & (TERN_TABLE_ENTRIES - 1)];
}

static struct tern_sparse_table *tern_sparse_add(struct tern_dev *tdev,
						 struct tern_sparse *sparse, unsigned long key)
{
	struct tern_sparse_table *table = kzalloc(sizeof(*table), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!table)
		return ERR_PTR(err);
	err = tern_page_alloc(tdev, &table->page, GFP_KERNEL_ACCOUNT);
	if (err)
		goto err_free;
	err = xa_err(xa_store(&sparse->tables, key, table, GFP_KERNEL_ACCOUNT));
	if (err)
		goto err_page;
	atomic_long_inc(&sparse->count);
	return table;

err_page:
	tern_page_free(tdev, &table->page);
err_free:
	kfree(table);
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
	struct tern_sparse_table *table;
	unsigned long key;

	xa_for_each(&sparse->tables, key, table) {
		tern_page_free(tdev, &table->page);
		kfree(table);
		cond_resched();
	}
	xa_destroy(&sparse->tables);
}

/* Allocates the tables for leaves @first .. @last. The caller prevents concurrent calls. */
int tern_sparse_reach(struct tern_dev *tdev, struct tern_sparse *sparse, u64 first, u64 last)
{
	struct tern_sparse_table *above, *table;
	u64 leaf;
	int level;

	for (leaf = first; leaf <= last; leaf = (leaf | (TERN_TABLE_ENTRIES - 1)) + 1) {
		above = xa_load(&sparse->tables, tern_sparse_key(sparse->levels - 1, leaf));
		for (level = sparse->levels - 2; level >= 0; level--, above = table) {
			unsigned long key = tern_sparse_key(level, leaf);

			table = xa_load(&sparse->tables, key);
			if (table)
				continue;
			table = tern_sparse_add(tdev, sparse, key);
			if (IS_ERR(table))
				return PTR_ERR(table);
			dma_wmb(); /* the card must not see what was in the page before */
			WRITE_ONCE(*tern_sparse_slot(above, level + 1, leaf),
				   cpu_to_le64(table->page.dma | TERN_PAGE_PRESENT));
			above->below++;
		}
	}
	return 0;
}

/* Returns whether the card may write to @leaf. tern_sparse_reach() has allocated its tables. */
bool tern_sparse_writable(struct tern_sparse *sparse, u64 leaf)
{
	struct tern_sparse_table *table = xa_load(&sparse->tables, tern_sparse_key(0, leaf));

	return le64_to_cpu(*tern_sparse_slot(table, 0, leaf)) & TERN_PAGE_WRITE;
}

/* Sets the entry of @leaf. tern_sparse_reach() has allocated its tables. */
void tern_sparse_set(struct tern_sparse *sparse, u64 leaf, u64 entry)
{
	struct tern_sparse_table *table = xa_load(&sparse->tables, tern_sparse_key(0, leaf));

	WRITE_ONCE(*tern_sparse_slot(table, 0, leaf), cpu_to_le64(entry));
}

/* Clears leaves @first .. @last. Returns whether any of them was present. */
bool tern_sparse_clear(struct tern_sparse *sparse, u64 first, u64 last)
{
	struct tern_sparse_table *table;
	bool any = false;
	__le64 *slot;
	u64 leaf;

	for (leaf = first; leaf <= last; leaf++) {
		table = xa_load(&sparse->tables, tern_sparse_key(0, leaf));
		if (!table) {
			leaf |= TERN_TABLE_ENTRIES - 1;
			continue;
		}
		slot = tern_sparse_slot(table, 0, leaf);
		any |= *slot != 0;
		WRITE_ONCE(*slot, 0);
	}
	return any;
}

/*
 * Moves the table of leaves that has @leaf, all of whose entries are absent, and the tables above
 * it that point to no other, to @tables. The card may read them until it has executed SYNC_MR. The
 * caller prevents concurrent calls of this function and of tern_sparse_reach().
 */
void tern_sparse_detach(struct tern_sparse *sparse, u64 leaf, struct list_head *tables)
{
	struct tern_sparse_table *above, *table;
	u8 level;

	for (level = 0; level + 1 < sparse->levels; level++) {
		table = xa_load(&sparse->tables, tern_sparse_key(level, leaf));
		if (!table)
			continue;	/* tern_sparse_reach() found no memory for it */
		if (table->below)
			return;
		above = xa_load(&sparse->tables, tern_sparse_key(level + 1, leaf));
		WRITE_ONCE(*tern_sparse_slot(above, level + 1, leaf), 0);
		above->below--;
		xa_erase(&sparse->tables, tern_sparse_key(level, leaf));
		atomic_long_dec(&sparse->count);
		list_add_tail(&table->node, tables);
	}
}

/* Frees the tables that tern_sparse_detach() has moved to @tables. */
void tern_sparse_free(struct tern_dev *tdev, struct list_head *tables)
{
	struct tern_sparse_table *table, *next;

	list_for_each_entry_safe(table, next, tables, node) {
		tern_page_free(tdev, &table->page);
		kfree(table);
	}
}

void tern_sparse_describe(struct tern_sparse *sparse, struct tern_hw_pages *pages)
{
	struct tern_sparse_table *root =
		xa_load(&sparse->tables, tern_sparse_key(sparse->levels - 1, 0));

	*pages = (struct tern_hw_pages) {
		.iova = cpu_to_le64(root->page.dma),
		.levels = sparse->levels,
		.page_shift = sparse->shift,
	};
}
