// SPDX-License-Identifier: GPL-2.0
/*
 * Pages for rings, and page lists for rings and memory regions. Both allocate single pages only,
 * so fragmented memory does not make them fail.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "pages.h"
#include "tern.h"

/* A table fills one page. A doorbell page is mapped into a process by itself. */
static_assert(PAGE_SIZE == TERN_TABLE_SIZE && PAGE_SIZE == TERN_DB_PAGE_SIZE);

/*
 * dma_alloc_pages() returns pages that are never bounced, and they are coherent on the platforms
 * that the driver supports. So no dma_sync_*() is needed when the card, the kernel or a process
 * writes.
 */
int tern_page_alloc(struct tern_dev *tdev, struct tern_page *page, gfp_t gfp)
{
	struct page *memory = dma_alloc_pages(&tdev->pdev->dev, PAGE_SIZE, &page->dma,
					      DMA_BIDIRECTIONAL, gfp | __GFP_ZERO);

	if (!memory)
		return -ENOMEM;
	/*
	 * An allocation has no bad address. dma-debug takes it for a mapping, and reports a driver
	 * that does not check a mapping's address.
	 */
	dma_mapping_error(&tdev->pdev->dev, page->dma);
	page->va = page_address(memory);
	return 0;
}

/* Ends DMA to the page. A process that has it mapped keeps its own reference. */
void tern_page_free(struct tern_dev *tdev, struct tern_page *page)
{
	dma_free_pages(&tdev->pdev->dev, PAGE_SIZE, virt_to_page(page->va), page->dma,
		       DMA_BIDIRECTIONAL);
}

static void tern_pages_free(struct tern_dev *tdev, struct tern_page *pages, size_t count)
{
	while (count--) {
		tern_page_free(tdev, &pages[count]);
		cond_resched();
	}
	kvfree(pages);
}

static struct tern_page *tern_pages_alloc(struct tern_dev *tdev, size_t count, gfp_t gfp)
{
	struct tern_page *pages = kvcalloc(count, sizeof(*pages), gfp);
	size_t i;
	int err;

	if (!pages)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < count; i++) {
		err = tern_page_alloc(tdev, &pages[i], gfp);
		if (err) {
			tern_pages_free(tdev, pages, i);
			return ERR_PTR(err);
		}
		cond_resched();
	}
	return pages;
}

static u64 tern_tables_for(u64 entries)
{
	return DIV_ROUND_UP_ULL(entries, TERN_TABLE_ENTRIES);
}

static void tern_table_store(struct tern_page *tables, u64 entry, dma_addr_t dma)
{
	__le64 *at = tables[entry / TERN_TABLE_ENTRIES].va;

	at[entry % TERN_TABLE_ENTRIES] = cpu_to_le64(dma);
}

/* Computes the number of tables and levels that @table needs. */
static int tern_table_measure(struct tern_table *table)
{
	u64 level = table->leaves;

	table->tables = 0;
	table->levels = 0;
	while (level > 1) {
		level = tern_tables_for(level);
		table->tables += level;
		table->levels++;
	}
	return table->levels > TERN_MAX_LEVELS ? -E2BIG : 0;
}

/* Makes the tables of each level point to those of the level below. */
static void tern_table_link(struct tern_table *table)
{
	struct tern_page *below = table->table;
	u64 count = tern_tables_for(table->leaves);
	u64 i;

	while (count > 1) {
		struct tern_page *level = below + count;

		for (i = 0; i < count; i++)
			tern_table_store(level, i, below[i].dma);
		below = level;
		count = tern_tables_for(count);
	}
}

/*
 * Allocates the list of @leaves leaf pages of 1 << @shift bytes; tern_table_set() then sets the
 * address of each. A single leaf needs no table.
 */
int tern_table_init(struct tern_dev *tdev, struct tern_table *table, u64 leaves, u8 shift,
		    gfp_t gfp)
{
	int err;

	*table = (struct tern_table) { .leaves = leaves, .shift = shift };
	err = tern_table_measure(table);
	if (err || !table->tables)
		return err;

	table->table = tern_pages_alloc(tdev, table->tables, gfp);
	if (IS_ERR(table->table))
		return PTR_ERR(table->table);
	tern_table_link(table);
	return 0;
}

void tern_table_set(struct tern_table *table, u64 leaf, dma_addr_t dma)
{
	if (table->levels)
		tern_table_store(table->table, leaf, dma);
	else
		table->leaf0 = dma;
}

void tern_table_exit(struct tern_dev *tdev, struct tern_table *table)
{
	if (table->tables)
		tern_pages_free(tdev, table->table, table->tables);
}

/* Fills in @pages. The buffer begins at @start modulo the leaf page size. */
void tern_table_describe(const struct tern_table *table, u64 start, struct tern_hw_pages *pages)
{
	u64 iova;

	if (table->levels)
		iova = table->table[table->tables - 1].dma;
	else
		iova = table->leaf0 + (start & (BIT_ULL(table->shift) - 1));

	*pages = (struct tern_hw_pages) {
		.iova = cpu_to_le64(iova),
		.levels = table->levels,
		.page_shift = table->levels ? table->shift : 0,
	};
}

int tern_buf_init(struct tern_dev *tdev, struct tern_buf *buf, size_t size, gfp_t gfp)
{
	u32 i;
	int err;

	buf->npages = PFN_UP(size);
	buf->page = tern_pages_alloc(tdev, buf->npages, gfp);
	if (IS_ERR(buf->page))
		return PTR_ERR(buf->page);

	err = tern_table_init(tdev, &buf->table, buf->npages, PAGE_SHIFT, gfp);
	if (err) {
		tern_pages_free(tdev, buf->page, buf->npages);
		return err;
	}
	for (i = 0; i < buf->npages; i++)
		tern_table_set(&buf->table, i, buf->page[i].dma);
	return 0;
}

void tern_buf_exit(struct tern_dev *tdev, struct tern_buf *buf)
{
	tern_table_exit(tdev, &buf->table);
	tern_pages_free(tdev, buf->page, buf->npages);
}
