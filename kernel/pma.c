// SPDX-License-Identifier: GPL-2.0
/*
 * Performance management (IBA 16.1): the counters below ports/1/counters in sysfs, for which
 * ib_core sends itself a MAD. As with other RoCE cards they count what the RDMA function sends and
 * receives. The netdev counts its own frames.
 */
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "ib.h"

/* The attribute begins at this byte of the MAD's data (IBA 16.1.1). */
#define TERN_PMA_ATTR	40

static void *tern_pma_attr(struct ib_mad *mad)
{
	return (u8 *)mad + offsetof(struct ib_mad, data) + TERN_PMA_ATTR;
}

static void tern_pma_class_info(struct ib_mad *out)
{
	struct ib_class_port_info *info = tern_pma_attr(out);

	info->base_version = IB_MGMT_BASE_VERSION;
	info->class_version = 1;
	info->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH;
}

/* Data counters count words of four bytes. */
static void tern_pma_ext(struct ib_mad *out, const u64 *values)
{
	struct ib_pma_portcounters_ext *ext = tern_pma_attr(out);
	u64 multicast = values[TERN_STAT_MCAST_RX_PACKETS];
	u64 received = values[TERN_STAT_ROCE_RX_PACKETS];

	ext->port_select = TERN_PORT;
	ext->port_xmit_data = cpu_to_be64(values[TERN_STAT_ROCE_TX_BYTES] / 4);
	ext->port_rcv_data = cpu_to_be64(values[TERN_STAT_ROCE_RX_BYTES] / 4);
	ext->port_xmit_packets = cpu_to_be64(values[TERN_STAT_ROCE_TX_PACKETS]);
	ext->port_rcv_packets = cpu_to_be64(received);
	ext->port_unicast_rcv_packets = cpu_to_be64(received - min(multicast, received));
	ext->port_multicast_rcv_packets = cpu_to_be64(multicast);
	/* The card does not count by the kind of destination what it sends. */
	ext->port_unicast_xmit_packets = ext->port_xmit_packets;
}

/* These counters stay at their largest value (IBA 16.1.3.5). */
static void tern_pma_errors(struct ib_mad *out, const u64 *values)
{
	struct ib_pma_portcounters *pc = tern_pma_attr(out);
	u64 broken = values[TERN_STAT_RX_MALFORMED] + values[TERN_STAT_RX_BAD_ICRC];

	pc->port_select = TERN_PORT;
	pc->port_rcv_errors = cpu_to_be16(min_t(u64, broken, U16_MAX));
	pc->port_rcv_constraint_errors = min_t(u64, values[TERN_STAT_RX_BAD_PKEY], U8_MAX);
	pc->port_xmit_data = cpu_to_be32(min_t(u64, values[TERN_STAT_ROCE_TX_BYTES] / 4, U32_MAX));
	pc->port_rcv_data = cpu_to_be32(min_t(u64, values[TERN_STAT_ROCE_RX_BYTES] / 4, U32_MAX));
	pc->port_xmit_packets =
		cpu_to_be32(min_t(u64, values[TERN_STAT_ROCE_TX_PACKETS], U32_MAX));
	pc->port_rcv_packets =
		cpu_to_be32(min_t(u64, values[TERN_STAT_ROCE_RX_PACKETS], U32_MAX));
}

static int tern_pma_get(struct tern_dev *tdev, __be16 attribute, struct ib_mad *out)
{
	u64 values[TERN_STAT_COUNT];
	int err;

	if (attribute == IB_PMA_CLASS_PORT_INFO) {
		tern_pma_class_info(out);
		return 0;
	}
	if (attribute != IB_PMA_PORT_COUNTERS && attribute != IB_PMA_PORT_COUNTERS_EXT) {
		out->mad_hdr.status = cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
		return 0;
	}
	err = tern_stats_read(tdev, TERN_STATS_ALL, values);
	if (err)
		return err;
	if (attribute == IB_PMA_PORT_COUNTERS)
		tern_pma_errors(out, values);
	else
		tern_pma_ext(out, values);
	return 0;
}

/* ib_core handles the MADs of all other classes. */
static int tern_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *wc,
			    const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
			    size_t *out_size, u16 *out_pkey_index)
{
	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return IB_MAD_RESULT_SUCCESS;
	memset(out, 0, sizeof(*out));
	out->mad_hdr = in->mad_hdr;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	if (tern_pma_get(to_tdev(ibdev), in->mad_hdr.attr_id, out))
		return IB_MAD_RESULT_FAILURE;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

const struct ib_device_ops tern_pma_ops = {
	.process_mad = tern_process_mad,
};
