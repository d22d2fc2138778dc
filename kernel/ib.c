// SPDX-License-Identifier: GPL-2.0
/* The ib_device: registration, attributes of device and port, and their events. */
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>
#include <rdma/tern-abi.h>

#include "compat.h"
#include "eq.h"
#include "hw.h"
#include "ib.h"
#include "port.h"

#define TERN_MAX_MESSAGE	BIT(31)

static __be64 tern_guid(const struct tern_dev *tdev)
{
	__be64 guid;

	addrconf_addr_eui48((u8 *)&guid, (const char *)tdev->mac);
	return guid;
}

/* MEM_MGT_EXTENSIONS includes SEND with invalidate, which TERN_CAP_MW stands for. */
static bool tern_has_mem_mgt(const struct tern_dev *tdev)
{
	u32 caps = TERN_CAP_FAST_REG | TERN_CAP_MW;

	return (tdev->caps & caps) == caps;
}

static void tern_query_multicast(const struct tern_device_attr *attr, struct ib_device_attr *props)
{
	u64 total = (u64)attr->max_mcast_groups * attr->max_mcast_qps;

	props->kernel_cap_flags |= IBK_BLOCK_MULTICAST_LOOPBACK;
	props->max_mcast_grp = attr->max_mcast_groups;
	props->max_mcast_qp_attach = attr->max_mcast_qps;
	props->max_total_mcast_qp_attach = min_t(u64, total, INT_MAX);
}

/*
 * UC and UD drop what they receive during a page fault, so they support sending only. Only RC has
 * FLUSH and ATOMIC WRITE.
 */
static void tern_query_odp(struct ib_device_attr *props)
{
	u32 connected = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV | IB_ODP_SUPPORT_WRITE |
			IB_ODP_SUPPORT_READ | IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_SRQ_RECV;

	props->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	props->odp_caps.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	props->odp_caps.per_transport_caps.rc_odp_caps = connected;
	if (props->device_cap_flags & IB_DEVICE_FLUSH_GLOBAL)
		props->odp_caps.per_transport_caps.rc_odp_caps |= IB_ODP_SUPPORT_FLUSH;
	if (props->device_cap_flags & IB_DEVICE_ATOMIC_WRITE)
		props->odp_caps.per_transport_caps.rc_odp_caps |= IB_ODP_SUPPORT_ATOMIC_WRITE;
	props->odp_caps.per_transport_caps.xrc_odp_caps = connected;
	props->odp_caps.per_transport_caps.uc_odp_caps = IB_ODP_SUPPORT_SEND;
	props->odp_caps.per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND;
}

/* Attributes that depend on capabilities. */
static void tern_query_optional(const struct tern_ib *ib, struct ib_device_attr *props)
{
	const struct tern_dev *tdev = ib->tdev;
	const struct tern_device_attr *attr = &tdev->attr;

	if (tdev->caps & TERN_CAP_UD) {
		props->device_cap_flags |= IB_DEVICE_UD_AV_PORT_ENFORCE;
		props->max_ah = INT_MAX; /* the card has no such object */
	}
	if (tdev->caps & TERN_CAP_MULTICAST)
		tern_query_multicast(attr, props);
	if (tdev->caps & TERN_CAP_SRQ) {
		props->device_cap_flags |= IB_DEVICE_SRQ_RESIZE;
		props->max_srq = attr->max_srq;
		props->max_srq_wr = 1 << attr->max_srq_log_size;
		props->max_srq_sge = attr->max_recv_sge;
	}
	if (tdev->caps & TERN_CAP_XRC)
		props->device_cap_flags |= IB_DEVICE_XRC;
	if (tdev->caps & TERN_CAP_TAG_MATCHING) {
		props->tm_caps.max_rndv_hdr_size = TERN_MAX_RNDV_HDR;
		props->tm_caps.max_num_tags = 1 << attr->max_log_tags;
		props->tm_caps.flags = IB_TM_CAP_RNDV_RC;
		props->tm_caps.max_ops = 1 << attr->max_log_tag_ops;
		props->tm_caps.max_sge = 1;
	}
	if (tdev->caps & TERN_CAP_RAW) {
		props->device_cap_flags |= IB_DEVICE_MANAGED_FLOW_STEERING;
		props->max_raw_ethy_qp = attr->max_qp;
	}
	if (tdev->caps & TERN_CAP_RSS) {
		props->max_wq_type_rq = attr->max_wq;
		props->rss_caps.supported_qpts = BIT(IB_QPT_RAW_PACKET);
		props->rss_caps.max_rwq_indirection_tables = attr->max_wq_tables;
		props->rss_caps.max_rwq_indirection_table_size = 1 << TERN_MAX_LOG_WQ_TABLE;
	}
	if (tdev->caps & TERN_CAP_MW) {
		props->device_cap_flags |= IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B;
		props->max_mw = attr->max_mr; /* they share the table of keys */
	}
	props->max_dm_size = (u64)ib->dm.pages << PAGE_SHIFT;
	if (tdev->caps & TERN_CAP_MASKED_ATOMIC)
		props->masked_atomic_cap = IB_ATOMIC_HCA;
	if (tdev->caps & TERN_CAP_ATOMIC_WRITE)
		props->device_cap_flags |= IB_DEVICE_ATOMIC_WRITE;
	if (tdev->caps & TERN_CAP_FLUSH)
		props->device_cap_flags |= IB_DEVICE_FLUSH_GLOBAL;
	if (tdev->caps & TERN_CAP_CLOCK) {
		props->timestamp_mask = U64_MAX;
		props->hca_core_clock = USEC_PER_SEC; /* kHz: the clock counts ns */
	}
	if (tdev->caps & TERN_CAP_MODIFY_CQ) {
		props->cq_caps.max_cq_moderation_count = U16_MAX;
		props->cq_caps.max_cq_moderation_period = U16_MAX;
	}
	if (tdev->caps & TERN_CAP_ODP)
		tern_query_odp(props);
	if (tern_has_mem_mgt(tdev)) {
		props->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
		props->max_fast_reg_page_list_len = TERN_MAX_FAST_REG_PAGES;
	}
}

static int tern_query_device(struct ib_device *ibdev, struct ib_device_attr *props,
			     struct ib_udata *udata)
{
	struct tern_dev *tdev = to_tdev(ibdev);
	const struct tern_device_attr *attr = &tdev->attr;
	int err;

	err = tern_udata_no_input(udata);
	if (err)
		return err;

	*props = (struct ib_device_attr) {
		.fw_ver = attr->fw_version,
		.sys_image_guid = tern_guid(tdev),
		.max_mr_size = attr->max_mr_size,
		.page_size_cap = attr->page_size_cap,
		.vendor_id = tdev->pdev->vendor,
		.vendor_part_id = tdev->pdev->device,
		.hw_ver = tdev->pdev->revision,
		.device_cap_flags = IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_PORT_ACTIVE_EVENT |
				    IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN |
				    IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR,
		.max_qp = attr->max_qp,
		.max_qp_wr = 1 << min(attr->max_sq_log_size, attr->max_rq_log_size),
		.max_send_sge = attr->max_send_sge,
		.max_recv_sge = attr->max_recv_sge,
		.max_sge_rd = attr->max_send_sge,
		.max_cq = attr->max_cq,
		.max_cqe = 1 << attr->max_cq_log_size,
		.max_mr = attr->max_mr,
		.max_pd = attr->max_pd,
		.max_qp_rd_atom = attr->max_rd_atomic,
		.max_qp_init_rd_atom = attr->max_rd_atomic,
		.max_res_rd_atom = attr->max_rd_atomic * attr->max_qp,
		.atomic_cap = tdev->caps & TERN_CAP_ATOMIC ? IB_ATOMIC_HCA : IB_ATOMIC_NONE,
		.max_pkeys = 1,
		.local_ca_ack_delay = attr->local_ca_ack_delay,
		.kernel_cap_flags = IBK_LOCAL_DMA_LKEY,
	};
	tern_query_optional(to_tib(ibdev), props);
	return 0;
}

/* The description is ib_core's alone. rdma-ndd sets it to the name of the machine. */
static int tern_modify_device(struct ib_device *ibdev, int mask, struct ib_device_modify *change)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ibdev->node_desc, change->node_desc, IB_DEVICE_NODE_DESC_MAX);
	return 0;
}

/* The largest IB speed times width that is not above @mbps. */
static void tern_port_speed(u32 mbps, u16 *speed, u8 *width)
{
	static const struct {
		u32 mbps;
		u16 speed;
		u8 width;
	} rates[] = {
		{ 400000, IB_SPEED_NDR, IB_WIDTH_4X },
		{ 200000, IB_SPEED_HDR, IB_WIDTH_4X },
		{ 100000, IB_SPEED_EDR, IB_WIDTH_4X },
		{ 50000, IB_SPEED_EDR, IB_WIDTH_2X },
		{ 40000, IB_SPEED_FDR10, IB_WIDTH_4X },
		{ 25000, IB_SPEED_EDR, IB_WIDTH_1X },
		{ 10000, IB_SPEED_FDR10, IB_WIDTH_1X },
		{ 0, IB_SPEED_SDR, IB_WIDTH_1X },
	};
	int i = 0;

	while (mbps < rates[i].mbps)
		i++;
	*speed = rates[i].speed;
	*width = rates[i].width;
}

/* The largest path MTU whose packets fit in frames of @mtu. */
static enum ib_mtu tern_port_mtu(int mtu)
{
	return max_t(enum ib_mtu, iboe_get_mtu(mtu), IB_MTU_256);
}

/* The largest path MTU that the port's MTU has room for. */
enum ib_mtu tern_active_mtu(const struct tern_dev *tdev)
{
	return tern_port_mtu(READ_ONCE(tern_port_netdev(tdev)->mtu));
}

/* The counters saturate (IBA 14.2.5.6). Those of a dead card stay zero. */
static void tern_query_violations(struct tern_dev *tdev, struct ib_port_attr *props)
{
	u64 values[TERN_STAT_COUNT];

	if (tern_stats_read(tdev, TERN_STATS_ALL, values))
		return;
	props->bad_pkey_cntr = min_t(u64, values[TERN_STAT_RX_BAD_PKEY], U16_MAX);
	props->qkey_viol_cntr = min_t(u64, values[TERN_STAT_RX_BAD_QKEY], U16_MAX);
}

static int tern_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *props)
{
	struct tern_dev *tdev = to_tdev(ibdev);
	bool up = tern_port_is_up(tdev);

	props->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	props->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	props->max_mtu = tern_port_mtu(tern_port_netdev(tdev)->max_mtu);
	props->active_mtu = tern_active_mtu(tdev);
	props->gid_tbl_len = tdev->attr.max_gids;
	props->ip_gids = true;
	props->port_cap_flags = tdev->caps & TERN_CAP_UD ? IB_PORT_CM_SUP : 0;
	props->max_msg_sz = TERN_MAX_MESSAGE;
	props->pkey_tbl_len = 1;
	props->max_vl_num = 1;
	tern_query_violations(tdev, props);
	tern_port_speed(tern_hw_link_speed(tdev), &props->active_speed, &props->active_width);
	return 0;
}

#ifdef TERN_HAVE_PORT_SPEED
/* In units of 100 Mb/s. */
static int tern_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed)
{
	*speed = tern_hw_link_speed(to_tdev(ibdev)) / 100;
	return 0;
}
#endif

/* Only SMC of older kernels asks the driver; ib_core knows by ib_device_set_netdev(). */
static struct net_device *tern_get_netdev(struct ib_device *ibdev, u32 port)
{
	struct net_device *netdev = tern_port_netdev(to_tdev(ibdev));

	dev_hold(netdev);
	return netdev;
}

/* MADs and the CM need the general services QP, which needs datagrams. */
static int tern_get_port_immutable(struct ib_device *ibdev, u32 port,
				   struct ib_port_immutable *immutable)
{
	struct tern_dev *tdev = to_tdev(ibdev);

	immutable->pkey_tbl_len = 1;
	immutable->gid_tbl_len = tdev->attr.max_gids;
	immutable->core_cap_flags = RDMA_CORE_CAP_AF_IB | RDMA_CORE_CAP_ETH_AH;
	if (tdev->caps & TERN_CAP_UD) {
		immutable->core_cap_flags |= RDMA_CORE_CAP_IB_MAD | RDMA_CORE_CAP_IB_CM;
		immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	}
	if (tdev->caps & TERN_CAP_ROCE_V1)
		immutable->core_cap_flags |= RDMA_CORE_CAP_PROT_ROCE;
	if (tdev->caps & TERN_CAP_ROCE_V2)
		immutable->core_cap_flags |= RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP;
	return 0;
}

static enum rdma_link_layer tern_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int tern_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static void tern_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	u32 fw = to_tdev(ibdev)->attr.fw_version;

	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u", fw >> 16, fw & 0xffff);
}

#ifdef TERN_HAVE_REPORT_PORT_EVENT
/*
 * The driver reports port events itself. Without this function ib_core would report them again
 * when it learns of the carrier change, which may be a second later.
 */
static void tern_report_port_event(struct ib_device *ibdev, struct net_device *ndev,
				   unsigned long event)
{
}
#endif

/* ib_core wants this function. It has unmapped the doorbells itself. */
static void tern_disassociate_ucontext(struct ib_ucontext *ibucontext)
{
}

static const struct ib_device_ops tern_ib_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = TERN_UVERBS_ABI_VERSION,

	.query_device = tern_query_device,
	.modify_device = tern_modify_device,
	.query_port = tern_query_port,
#ifdef TERN_HAVE_PORT_SPEED
	.query_port_speed = tern_query_port_speed,
#endif
#ifdef TERN_HAVE_REPORT_PORT_EVENT
	.report_port_event = tern_report_port_event,
#endif
	.query_pkey = tern_query_pkey,
	.get_port_immutable = tern_get_port_immutable,
	.get_link_layer = tern_get_link_layer,
	.get_netdev = tern_get_netdev,
	.get_dev_fw_str = tern_get_dev_fw_str,
	.add_gid = tern_add_gid,
	.del_gid = tern_del_gid,

	.alloc_ucontext = tern_alloc_ucontext,
	.dealloc_ucontext = tern_dealloc_ucontext,
	.query_ucontext = tern_query_ucontext,
	.disassociate_ucontext = tern_disassociate_ucontext,
	.mmap = tern_mmap,
#ifdef TERN_HAVE_DMABUF_EXPORT
	.mmap_get_pfns = tern_mmap_get_pfns,
	.pgoff_to_mmap_entry = tern_pgoff_to_mmap_entry,
#endif
	.mmap_free = tern_mmap_free,

	.alloc_pd = tern_alloc_pd,
	.dealloc_pd = tern_dealloc_pd,
	.get_dma_mr = tern_get_dma_mr,
	.reg_user_mr = tern_reg_user_mr,
	.reg_user_mr_dmabuf = tern_reg_user_mr_dmabuf,
	.dereg_mr = tern_dereg_mr,
	.create_qp = tern_create_qp,
	.modify_qp = tern_modify_qp,
	.query_qp = tern_query_qp,
	.destroy_qp = tern_destroy_qp,

	.post_send = tern_post_send,
	.post_recv = tern_post_recv,
	.poll_cq = tern_poll_cq,
	.req_notify_cq = tern_req_notify_cq,

	.alloc_hw_port_stats = tern_alloc_hw_port_stats,
	.get_hw_stats = tern_get_hw_stats,

	INIT_RDMA_OBJ_SIZE(ib_pd, tern_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, tern_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, tern_ucontext, ibucontext),
};

/* May be called under a spinlock, since ib_dispatch_event() only queues the event. */
static void tern_ib_port_event(struct tern_ib *ib, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &ib->ibdev,
		.element.port_num = TERN_PORT,
		.event = type,
	};

	ib_dispatch_event(&event);
}

/* Reports an event if the port went up or down. From any context. */
void tern_ib_update_port(struct tern_dev *tdev)
{
	struct tern_ib *ib;
	unsigned long flags;
	bool up;

	spin_lock_irqsave(&tdev->ib_lock, flags);
	ib = tdev->ib;
	up = ib && tern_port_is_up(tdev);
	if (ib && up != ib->port_up) {
		ib->port_up = up;
		tern_ib_port_event(ib, up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
	}
	spin_unlock_irqrestore(&tdev->ib_lock, flags);
}

void tern_ib_device_fatal(struct tern_dev *tdev)
{
	unsigned long flags;

	spin_lock_irqsave(&tdev->ib_lock, flags);
	if (tdev->ib)
		tern_ib_port_event(tdev->ib, IB_EVENT_DEVICE_FATAL);
	spin_unlock_irqrestore(&tdev->ib_lock, flags);
}

static void tern_ib_publish(struct tern_dev *tdev, struct tern_ib *ib)
{
	unsigned long flags;

	spin_lock_irqsave(&tdev->ib_lock, flags);
	tdev->ib = ib;
	spin_unlock_irqrestore(&tdev->ib_lock, flags);
}

static void tern_ib_set_optional_ops(const struct tern_dev *tdev, struct ib_device *ibdev)
{
	static const struct {
		u32 cap;
		const struct ib_device_ops *ops;
	} optional[] = {
		{ TERN_CAP_MODIFY_CQ, &tern_modify_cq_ops },
		{ TERN_CAP_UD, &tern_ah_ops },
		{ TERN_CAP_SRQ, &tern_srq_ops },
		{ TERN_CAP_XRC, &tern_xrcd_ops },
		{ TERN_CAP_MULTICAST, &tern_mcast_ops },
		{ TERN_CAP_RAW, &tern_flow_ops },
		{ TERN_CAP_FLOW_COUNTERS, &tern_counters_ops },
		{ TERN_CAP_QP_STATS, &tern_qp_counter_ops },
		{ TERN_CAP_RSS, &tern_wq_ops },
		{ TERN_CAP_RSS, &tern_rss_ops },
		{ TERN_CAP_MW, &tern_mw_ops },
		{ TERN_CAP_MODIFY_MR, &tern_rereg_ops },
		{ TERN_CAP_DM, &tern_dm_ops },
		{ TERN_CAP_ODP, &tern_odp_dev_ops },
		{ TERN_CAP_FAST_REG, &tern_fast_reg_ops },
#ifdef TERN_HAVE_COMP_CNTR
		{ TERN_CAP_COMP_COUNTERS, &tern_comp_cntr_ops },
#endif
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(optional); i++)
		if (tdev->caps & optional[i].cap)
			ib_set_device_ops(ibdev, optional[i].ops);
}

static void tern_ib_setup(struct tern_ib *ib)
{
	struct tern_dev *tdev = ib->tdev;
	struct ib_device *ibdev = &ib->ibdev;

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->node_guid = tern_guid(tdev);
	ibdev->phys_port_cnt = 1;
	ibdev->local_dma_lkey = TERN_LKEY_LOCAL_DMA;
	ibdev->num_comp_vectors = tern_eqs_comp_vectors(tdev);
	ibdev->dev.parent = &tdev->pdev->dev;
	ib_set_device_ops(ibdev, &tern_ib_ops);
	ib_set_device_ops(ibdev, &tern_cq_ops);
	ib_set_device_ops(ibdev, &tern_restrack_ops);
	ib_set_device_ops(ibdev, &tern_pma_ops);
	tern_ib_set_optional_ops(tdev, ibdev);
	if (IS_ENABLED(CONFIG_INFINIBAND_USER_ACCESS))
		ibdev->driver_def = tern_uapi_defs;
}

static bool tern_ib_possible(const struct tern_dev *tdev)
{
	return tdev->caps & TERN_CAP_RC &&
	       tdev->caps & (TERN_CAP_ROCE_V1 | TERN_CAP_ROCE_V2) &&
	       tdev->db_pages > tdev->num_engines;
}

static int tern_ib_init(struct tern_ib *ib, struct tern_dev *tdev)
{
	int err;

	ib->tdev = tdev;
	ida_init(&ib->db_ida);
	xa_init(&ib->odps);
	xa_init_flags(&ib->qp_counters, XA_FLAGS_ALLOC1);
	err = tern_dm_init(ib);
	if (err)
		return err;
	ib->fault_wq = alloc_workqueue("tern-odp", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!ib->fault_wq) {
		tern_dm_exit(ib);
		return -ENOMEM;
	}
	tern_ib_setup(ib);
	return 0;
}

/* All objects were destroyed. */
static void tern_ib_exit(struct tern_ib *ib)
{
	destroy_workqueue(ib->fault_wq);
	tern_dm_exit(ib);
}

/*
 * The device of a card that was reset gets its old name back, unless another has it now. A name
 * with a % would be taken for a pattern.
 */
static int tern_ib_register_named(struct tern_dev *tdev, struct ib_device *ibdev)
{
	const char *old = tdev->ib_name;
	int err = -ENFILE;

	if (*old && !strchr(old, '%'))
		err = ib_register_device(ibdev, old, &tdev->pdev->dev);
	if (err == -ENFILE)
		err = ib_register_device(ibdev, "tern%d", &tdev->pdev->dev);
	return err;
}

/* The net_device must be registered: ib_core derives the GIDs from its addresses. */
int tern_ib_register(struct tern_dev *tdev)
{
	struct tern_ib *ib;
	int err;

	if (!tern_ib_possible(tdev)) {
		dev_info(&tdev->pdev->dev, "the card has no RDMA for processes\n");
		return 0;
	}

	ib = ib_alloc_device(tern_ib, ibdev);
	if (!ib)
		return -ENOMEM;
	err = tern_ib_init(ib, tdev);
	if (err)
		goto err_dealloc;
	err = ib_device_set_netdev(&ib->ibdev, tern_port_netdev(tdev), TERN_PORT);
	if (err)
		goto err_exit;
	err = tern_ib_register_named(tdev, &ib->ibdev);
	if (err)
		goto err_exit;

	tern_ib_publish(tdev, ib);
	tern_ib_update_port(tdev);
	return 0;

err_exit:
	tern_ib_exit(ib);
err_dealloc:
	ib_dealloc_device(&ib->ibdev);
	return err;
}

void tern_ib_unregister(struct tern_dev *tdev)
{
	struct tern_ib *ib = tdev->ib;

	if (!ib)
		return;
	tern_ib_publish(tdev, NULL);
	ib_unregister_device(&ib->ibdev);
	strscpy(tdev->ib_name, dev_name(&ib->ibdev.dev), sizeof(tdev->ib_name));
	tern_ib_exit(ib);
	ib_dealloc_device(&ib->ibdev);
}
