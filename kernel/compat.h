/* SPDX-License-Identifier: GPL-2.0 */
/* Where the kernels that this driver builds for differ; Kbuild finds out which has what. */
#ifndef TERN_COMPAT_H
#define TERN_COMPAT_H

/* 6.6 moved the functions of the page pool to a header of their own. */
#ifdef TERN_HAVE_PAGE_POOL_HELPERS
#include <net/page_pool/helpers.h>
#else
#include <net/page_pool.h>
#endif

/* So did late stable releases with the iterator over the blocks of a umem. */
#ifdef TERN_HAVE_RDMA_ITER
#include <rdma/iter.h>
#endif

/*
 * Since 6.2; uverbs hands the bits of older ones to processes as well, whatever they mean. But no
 * ib_core before that lets a region have the right to be flushed.
 */
#ifndef TERN_HAVE_MEM_PLACEMENT
#define IB_DEVICE_ATOMIC_WRITE	BIT_ULL(40)
#define IB_DEVICE_FLUSH_GLOBAL	0
#define IB_ACCESS_FLUSH_GLOBAL	0
#define IB_ACCESS_FLUSH_PERSISTENT	0
#endif

/* Since 6.3 devlink finds the driver's name by itself. */
#ifdef TERN_HAVE_DEVLINK_DRIVER_NAME
#define tern_devlink_driver_name(req, name)	0
#else
#define tern_devlink_driver_name(req, name)	devlink_info_driver_name_put(req, name)
#endif

/*
 * TERN_HAVE_RXFH_PARAM: since 6.8 the parts of an RSS context come in one struct.
 * TERN_HAVE_CREATE_CQ_ATTRS: since 6.11 create_cq() is handed all attributes, not the driver's
 * part alone. TERN_HAVE_REG_DMABUF_ATTRS: since 6.12 reg_user_mr_dmabuf(), too.
 */

#endif
