// SPDX-License-Identifier: GPL-2.0
/*
 * Address handles. The card has no such object: a handle holds the datagram segment of a send
 * WQE, so creating one does not sleep.
 */
#include <linux/etherdevice.h>
#include <linux/jhash.h>
#include <rdma/ib_verbs.h>
#include <rdma/tern-abi.h>

#include "ib.h"

#define TERN_MAX_SL	15

/*
 * With flow label zero, which asks for no particular path, the port depends on the destination, so
 * that ECMP spreads the load.
 */
static u16 tern_ah_udp_sport(const struct ib_global_route *grh)
{
	u32 flow_label = grh->flow_label & IB_GRH_FLOWLABEL_MASK;

	if (!flow_label)
		flow_label = jhash(grh->dgid.raw, sizeof(grh->dgid.raw), 0) &
			     IB_GRH_FLOWLABEL_MASK;
	return rdma_flow_label_to_udp_sport(flow_label);
}

static void tern_ah_to_hw(const struct rdma_ah_attr *attr, struct tern_hw_ud_seg *av)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);

	*av = (struct tern_hw_ud_seg) {
		.sgid_index = grh->sgid_index,
		.hop_limit = grh->hop_limit,
		.flow_label = cpu_to_le32(grh->flow_label & IB_GRH_FLOWLABEL_MASK),
		.udp_sport = cpu_to_le16(tern_ah_udp_sport(grh)),
		.traffic_class = grh->traffic_class,
		.sl = rdma_ah_get_sl(attr),
	};
	memcpy(av->dgid, grh->dgid.raw, sizeof(av->dgid));
	ether_addr_copy(av->dmac, attr->roce.dmac);
}

/* For processes and the kernel. ib_core has resolved the MAC and the hop limit. */
static int tern_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
			  struct ib_udata *udata)
{
	struct rdma_ah_attr *attr = init->ah_attr;
	struct tern_create_ah_resp resp = {};
	struct tern_ah *ah = to_tah(ibah);

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE || !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) ||
	    rdma_ah_get_sl(attr) > TERN_MAX_SL || tern_udata_no_input(udata))
		return -EINVAL;

	tern_ah_to_hw(attr, &ah->av);
	if (!udata)
		return 0;

	ether_addr_copy(resp.dmac, ah->av.dmac);
	resp.udp_sport = le16_to_cpu(ah->av.udp_sport);
	resp.hop_limit = ah->av.hop_limit;
	return tern_udata_respond(udata, &resp, sizeof(resp));
}

/* ib_mad compares the address handles of a request and its response. */
static int tern_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	struct tern_hw_ud_seg *av = &to_tah(ibah)->av;

	memset(attr, 0, sizeof(*attr));
	attr->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_sl(attr, av->sl);
	rdma_ah_set_port_num(attr, TERN_PORT);
	rdma_ah_set_grh(attr, NULL, le32_to_cpu(av->flow_label), av->sgid_index, av->hop_limit,
			av->traffic_class);
	rdma_ah_set_dgid_raw(attr, av->dgid);
	ether_addr_copy(attr->roce.dmac, av->dmac);
	return 0;
}

/* ib_core wants this function. */
static int tern_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}

const struct ib_device_ops tern_ah_ops = {
	.create_ah = tern_create_ah,
	.create_user_ah = tern_create_ah,
	.destroy_ah = tern_destroy_ah,
	.query_ah = tern_query_ah,

	INIT_RDMA_OBJ_SIZE(ib_ah, tern_ah, ibah),
};
