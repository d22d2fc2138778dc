// SPDX-License-Identifier: GPL-2.0
/*
 * Flows: which frames a raw packet QP receives. The specs of a flow, one per header, become one
 * key and mask of the card. One more spec names the counters. Fields that the card does not compare
 * are refused.
 */
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "ib.h"

struct tern_flow_match {
	struct tern_hw_flow_key key;
	struct tern_hw_flow_key mask;
	u16 l3;			/* ETH_P_IP, ETH_P_IPV6, or 0: no IP spec yet */
	bool eth;		/* there was an Ethernet spec */
	bool l4;		/* there was a TCP or UDP spec */
	u32 counters;		/* 0: no counters */
};

#define TERN_FLOW(field)	offsetof(struct tern_hw_flow_key, field)

/* Sets the field at @offset in key and mask. Bits outside the mask are zero in the key. */
static void tern_flow_set(struct tern_flow_match *match, size_t offset, const void *value,
			  const void *mask, size_t size)
{
	const u8 *from = value, *from_mask = mask;
	u8 *key = (u8 *)&match->key + offset;
	u8 *key_mask = (u8 *)&match->mask + offset;
	size_t i;

	for (i = 0; i < size; i++) {
		key[i] = from[i] & from_mask[i];
		key_mask[i] = from_mask[i];
	}
}

static int tern_flow_add_eth(struct tern_flow_match *match, const struct ib_flow_spec_eth *spec)
{
	if (match->eth || match->l3)
		return -EINVAL;
	match->eth = true;

	tern_flow_set(match, TERN_FLOW(dmac), &spec->val.dst_mac, &spec->mask.dst_mac,
		      sizeof(spec->val.dst_mac));
	tern_flow_set(match, TERN_FLOW(smac), &spec->val.src_mac, &spec->mask.src_mac,
		      sizeof(spec->val.src_mac));
	tern_flow_set(match, TERN_FLOW(ethertype), &spec->val.ether_type, &spec->mask.ether_type,
		      sizeof(spec->val.ether_type));
	tern_flow_set(match, TERN_FLOW(vlan_tci), &spec->val.vlan_tag, &spec->mask.vlan_tag,
		      sizeof(spec->val.vlan_tag));
	return 0;
}

/* A spec of an IP header implies the ethertype. */
static int tern_flow_set_l3(struct tern_flow_match *match, u16 ethertype)
{
	const __be16 value = cpu_to_be16(ethertype), mask = cpu_to_be16(0xffff);

	if (match->l3 || (match->key.ethertype ^ value) & match->mask.ethertype)
		return -EINVAL;
	match->l3 = ethertype;
	tern_flow_set(match, TERN_FLOW(ethertype), &value, &mask, sizeof(value));
	return 0;
}

static int tern_flow_add_ipv4(struct tern_flow_match *match, const struct ib_flow_spec_ipv4 *spec)
{
	if (spec->mask.ttl || spec->mask.flags)
		return -EOPNOTSUPP;
	tern_flow_set(match, TERN_FLOW(src_ip), &spec->val.src_ip, &spec->mask.src_ip,
		      sizeof(spec->val.src_ip));
	tern_flow_set(match, TERN_FLOW(dst_ip), &spec->val.dst_ip, &spec->mask.dst_ip,
		      sizeof(spec->val.dst_ip));
	tern_flow_set(match, TERN_FLOW(ip_proto), &spec->val.proto, &spec->mask.proto,
		      sizeof(spec->val.proto));
	tern_flow_set(match, TERN_FLOW(tos), &spec->val.tos, &spec->mask.tos,
		      sizeof(spec->val.tos));
	return tern_flow_set_l3(match, ETH_P_IP);
}

static int tern_flow_add_ipv6(struct tern_flow_match *match, const struct ib_flow_spec_ipv6 *spec)
{
	if (spec->mask.flow_label || spec->mask.hop_limit)
		return -EOPNOTSUPP;
	tern_flow_set(match, TERN_FLOW(src_ip), &spec->val.src_ip, &spec->mask.src_ip,
		      sizeof(spec->val.src_ip));
	tern_flow_set(match, TERN_FLOW(dst_ip), &spec->val.dst_ip, &spec->mask.dst_ip,
		      sizeof(spec->val.dst_ip));
	tern_flow_set(match, TERN_FLOW(ip_proto), &spec->val.next_hdr, &spec->mask.next_hdr,
		      sizeof(spec->val.next_hdr));
	tern_flow_set(match, TERN_FLOW(tos), &spec->val.traffic_class, &spec->mask.traffic_class,
		      sizeof(spec->val.traffic_class));
	return tern_flow_set_l3(match, ETH_P_IPV6);
}

/* A spec of ports comes after that of the IP header, and implies the IP protocol. */
static int tern_flow_add_ports(struct tern_flow_match *match,
			       const struct ib_flow_spec_tcp_udp *spec, u8 proto)
{
	const u8 mask = 0xff;

	if (match->l4 || !match->l3 || (match->key.ip_proto ^ proto) & match->mask.ip_proto)
		return -EINVAL;
	match->l4 = true;

	tern_flow_set(match, TERN_FLOW(ip_proto), &proto, &mask, sizeof(proto));
	tern_flow_set(match, TERN_FLOW(src_port), &spec->val.src_port, &spec->mask.src_port,
		      sizeof(spec->val.src_port));
	tern_flow_set(match, TERN_FLOW(dst_port), &spec->val.dst_port, &spec->mask.dst_port,
		      sizeof(spec->val.dst_port));
	return 0;
}

static int tern_flow_add_count(struct tern_flow_match *match,
			       const struct ib_flow_spec_action_count *spec)
{
	if (match->counters)
		return -EINVAL;
	match->counters = to_tcounters(spec->counters)->id;
	return 0;
}

static int tern_flow_add_spec(struct tern_flow_match *match, const union ib_flow_spec *spec)
{
	switch (spec->type) {
	case IB_FLOW_SPEC_ETH:
		return tern_flow_add_eth(match, &spec->eth);
	case IB_FLOW_SPEC_IPV4:
		return tern_flow_add_ipv4(match, &spec->ipv4);
	case IB_FLOW_SPEC_IPV6:
		return tern_flow_add_ipv6(match, &spec->ipv6);
	case IB_FLOW_SPEC_TCP:
		return tern_flow_add_ports(match, &spec->tcp_udp, IPPROTO_TCP);
	case IB_FLOW_SPEC_UDP:
		return tern_flow_add_ports(match, &spec->tcp_udp, IPPROTO_UDP);
	case IB_FLOW_SPEC_ACTION_COUNT:
		return tern_flow_add_count(match, &spec->flow_count);
	default:
		return -EOPNOTSUPP;
	}
}

static int tern_flow_add_specs(struct tern_flow_match *match, const struct ib_flow_attr *attr)
{
	const void *spec = attr + 1;
	int i, err = 0;

	for (i = 0; !err && i < attr->num_of_specs; i++) {
		err = tern_flow_add_spec(match, spec);
		spec += ((const union ib_flow_spec *)spec)->size;
	}
	return err;
}

static bool tern_flow_looks_past_ethernet(const struct tern_hw_flow_key *mask)
{
	return mask->ip_proto || mask->tos || mask->src_port || mask->dst_port ||
	       memchr_inv(mask->src_ip, 0, sizeof(mask->src_ip)) ||
	       memchr_inv(mask->dst_ip, 0, sizeof(mask->dst_ip));
}

static int tern_flow_match_to_hw(const struct ib_flow_attr *attr, struct tern_hw_create_flow *hw)
{
	struct tern_flow_match match = {};
	int err = tern_flow_add_specs(&match, attr);

	if (err)
		return err;
	if (attr->type != IB_FLOW_ATTR_NORMAL && (match.eth || match.l3))
		return -EINVAL;
	hw->counters = cpu_to_le32(match.counters);
	hw->key = match.key;
	hw->mask = match.mask;
	if (tern_flow_looks_past_ethernet(&match.mask))
		hw->ip_version = match.l3 == ETH_P_IP ? 4 : 6;
	return 0;
}

static int tern_flow_to_hw(const struct ib_flow_attr *attr, u32 qpn,
			   struct tern_hw_create_flow *hw)
{
	static const u8 types[] = {
		[IB_FLOW_ATTR_NORMAL] = TERN_FLOW_NORMAL,
		[IB_FLOW_ATTR_ALL_DEFAULT] = TERN_FLOW_ALL_DEFAULT,
		[IB_FLOW_ATTR_MC_DEFAULT] = TERN_FLOW_MC_DEFAULT,
		[IB_FLOW_ATTR_SNIFFER] = TERN_FLOW_SNIFFER,
	};

	if (attr->flags)
		return -EOPNOTSUPP;
	/* Port 0 means the card's port, as with mlx5. */
	if ((u32)attr->type >= ARRAY_SIZE(types) || attr->port > TERN_PORT)
		return -EINVAL;

	*hw = (struct tern_hw_create_flow) {
		.qpn = cpu_to_le32(qpn),
		.priority = cpu_to_le16(attr->priority),
		.type = types[attr->type],
	};
	return tern_flow_match_to_hw(attr, hw);
}

static struct ib_flow *tern_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
					struct ib_udata *udata)
{
	struct tern_hw_create_flow hw;
	struct tern_flow *flow;
	int err;

	if (ibqp->qp_type != IB_QPT_RAW_PACKET)
		return ERR_PTR(-EOPNOTSUPP);
	err = tern_udata_no_input(udata) ?: tern_flow_to_hw(attr, ibqp->qp_num, &hw);
	if (err)
		return ERR_PTR(err);

	flow = kzalloc(sizeof(*flow), GFP_KERNEL_ACCOUNT);
	if (!flow)
		return ERR_PTR(-ENOMEM);
	err = tern_cmd_create_flow(to_tdev(ibqp->device), &hw, &flow->id);
	if (err) {
		kfree(flow);
		return ERR_PTR(err);
	}
	return &flow->ibflow;
}

static int tern_destroy_flow(struct ib_flow *ibflow)
{
	struct tern_flow *flow = to_tflow(ibflow);

	tern_cmd_destroy_flow(to_tdev(ibflow->device), flow->id);
	kfree(flow);
	return 0;
}

const struct ib_device_ops tern_flow_ops = {
	.create_flow = tern_create_flow,
	.destroy_flow = tern_destroy_flow,
};
