// SPDX-License-Identifier: GPL-2.0
/* The card's counters, read through a page that the card writes. */
#include <linux/dma-mapping.h>

#include "cmd.h"
#include "tern.h"

#define TERN_STATS_SIZE	PAGE_SIZE

int tern_stats_init(struct tern_dev *tdev)
{
	static_assert(TERN_STAT_COUNT * sizeof(__le64) <= TERN_STATS_SIZE);

	tdev->stats = dma_alloc_coherent(&tdev->pdev->dev, TERN_STATS_SIZE, &tdev->stats_dma,
					 GFP_KERNEL);
	return tdev->stats ? 0 : -ENOMEM;
}

void tern_stats_exit(struct tern_dev *tdev)
{
	dma_free_coherent(&tdev->pdev->dev, TERN_STATS_SIZE, tdev->stats, tdev->stats_dma);
}

/* Adds the counters of @set (of tern_cmd_create_stats(), or TERN_STATS_*) to @values. */
int tern_stats_add(struct tern_engine *engine, u32 set, u64 *values)
{
	struct tern_dev *tdev = engine->tdev;
	int i, err;

	mutex_lock(&tdev->stats_lock);
	err = tern_cmd_query_stats(engine, set, tdev->stats_dma, TERN_STAT_COUNT);
	for (i = 0; !err && i < TERN_STAT_COUNT; i++)
		values[i] += le64_to_cpu(tdev->stats[i]);
	mutex_unlock(&tdev->stats_lock);
	return err;
}

/*
 * Reads all counters of @set (TERN_STATS_*), by enum tern_hw_stat: what the engines have counted
 * together.
 */
int tern_stats_read(struct tern_dev *tdev, u32 set, u64 *values)
{
	int err = 0;
	u32 i;

	memset(values, 0, TERN_STAT_COUNT * sizeof(*values));
	for (i = 0; !err && i < tdev->num_engines; i++)
		err = tern_stats_add(&tdev->engines[i], set, values);
	return err;
}
