/* SPDX-License-Identifier: GPL-2.0 */
/* Memory for DMA, and the page lists that describe memory to the card. */
#ifndef TERN_PAGES_H
#define TERN_PAGES_H

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "tern/tern_hw.h"

struct tern_dev;

/* A coherent page that card and CPU share. */
struct tern_page {
	void *va;
	dma_addr_t dma;
};

/* A page list: the number and size of the leaf pages, and the tables that point to them. */
struct tern_table {
	u64 leaves;
	u8 shift;
	u8 levels;
	dma_addr_t leaf0;		/* the only leaf, with levels 0 */
	size_t tables;
	struct tern_page *table;	/* level by level: tables of leaves first, the root last */
};

int tern_table_init(struct tern_dev *tdev, struct tern_table *table, u64 leaves, u8 shift,
		    gfp_t gfp);
void tern_table_set(struct tern_table *table, u64 leaf, dma_addr_t dma);
void tern_table_exit(struct tern_dev *tdev, struct tern_table *table);
void tern_table_describe(const struct tern_table *table, u64 start, struct tern_hw_pages *pages);

int tern_page_alloc(struct tern_dev *tdev, struct tern_page *page, gfp_t gfp);
void tern_page_free(struct tern_dev *tdev, struct tern_page *page);

/* The page list of an on-demand region. Entries and tables are absent until they are set. */
struct tern_sparse {
	u8 shift;
	u8 levels;
	struct xarray tables;	/* struct tern_sparse_table, by tern_sparse_key() */
	atomic_long_t count;	/* tables */
};

int tern_sparse_init(struct tern_dev *tdev, struct tern_sparse *sparse, u64 leaves, u8 shift);
void tern_sparse_exit(struct tern_dev *tdev, struct tern_sparse *sparse);
int tern_sparse_reach(struct tern_dev *tdev, struct tern_sparse *sparse, u64 first, u64 last);
bool tern_sparse_writable(struct tern_sparse *sparse, u64 leaf);
void tern_sparse_set(struct tern_sparse *sparse, u64 leaf, u64 entry);
bool tern_sparse_clear(struct tern_sparse *sparse, u64 first, u64 last);
void tern_sparse_detach(struct tern_sparse *sparse, u64 leaf, struct list_head *tables);
void tern_sparse_free(struct tern_dev *tdev, struct list_head *tables);
void tern_sparse_describe(struct tern_sparse *sparse, struct tern_hw_pages *pages);

/* Memory of a queue: zeroed pages, contiguous only in the address space of the card. */
struct tern_buf {
	u32 npages;
	struct tern_page *page;
	struct tern_table table;
};

int tern_buf_init(struct tern_dev *tdev, struct tern_buf *buf, size_t size, gfp_t gfp);
void tern_buf_exit(struct tern_dev *tdev, struct tern_buf *buf);

/* The CPU address of @offset. A naturally aligned object of up to a page is contiguous. */
static inline void *tern_buf_at(const struct tern_buf *buf, size_t offset)
{
	return buf->page[offset >> PAGE_SHIFT].va + offset_in_page(offset);
}

static inline dma_addr_t tern_buf_dma(const struct tern_buf *buf, size_t offset)
{
	return buf->page[offset >> PAGE_SHIFT].dma + offset_in_page(offset);
}

#endif
