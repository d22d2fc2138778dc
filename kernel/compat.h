/* SPDX-License-Identifier: GPL-2.0 */
/* Differences between the kernels that this driver builds for; Kbuild detects them. */
#ifndef TERN_COMPAT_H
#define TERN_COMPAT_H

/* 6.6 moved the functions of the page pool to a header of their own. */
#ifdef TERN_HAVE_PAGE_POOL_HELPERS
#include <net/page_pool/helpers.h>
#else
#include <net/page_pool.h>
#endif

/* Late stable releases moved the iterator over the blocks of a umem, too. */
#ifdef TERN_HAVE_RDMA_ITER
#include <rdma/iter.h>
#endif

/*
 * Since 6.2. Older uverbs passes unknown device_cap_flags on to processes, so the bit of ATOMIC
 * WRITE works there. Older ib_core refuses FLUSH as an access right of a region.
 */
#ifndef TERN_HAVE_MEM_PLACEMENT
#define IB_DEVICE_ATOMIC_WRITE	BIT_ULL(40)
#define IB_DEVICE_FLUSH_GLOBAL	0
#define IB_ACCESS_FLUSH_GLOBAL	0
#define IB_ACCESS_FLUSH_PERSISTENT	0
#endif

/* Since 6.3 devlink fills in the driver's name itself. */
#ifdef TERN_HAVE_DEVLINK_DRIVER_NAME
#define tern_devlink_driver_name(req, name)	0
#else
#define tern_devlink_driver_name(req, name)	devlink_info_driver_name_put(req, name)
#endif

/* From 5.16 to 6.2 a driver told devlink that it can reload. */
#ifdef TERN_HAVE_DEVLINK_FEATURES
#define tern_devlink_can_reload(devlink)	devlink_set_features(devlink, DEVLINK_F_RELOAD)
#else
#define tern_devlink_can_reload(devlink)	do { } while (0)
#endif

/* Since 6.10 a tracepoint names the source of a string once. */
#ifdef TERN_HAVE_ASSIGN_STR
#define tern_assign_str(dst, src)	__assign_str(dst)
#else
#define tern_assign_str(dst, src)	__assign_str(dst, src)
#endif

/*
 * TERN_HAVE_FILL_RES_SRQ: since 6.7 drivers add their details to a listed SRQ.
 * TERN_HAVE_RXFH_PARAM: since 6.8 ethtool passes the parameters of an RSS context in a struct.
 * TERN_HAVE_CREATE_CQ_ATTRS: since 6.11 create_cq() gets the attribute bundle, not only udata.
 * TERN_HAVE_REG_DMABUF_ATTRS: since 6.12 so does reg_user_mr_dmabuf().
 */

#endif
