// SPDX-License-Identifier: GPL-2.0
/* ethtool: statistics, rings, channels, coalescing and RSS. */
#include <linux/ethtool.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "hw.h"
#include "netdev.h"

/* All counters of the card, by enum tern_hw_stat. */
static const char tern_stat_names[TERN_STAT_COUNT][ETH_GSTRING_LEN] = {
	[TERN_STAT_TX_FRAMES] = "port_tx_frames",
	[TERN_STAT_TX_BYTES] = "port_tx_bytes",
	[TERN_STAT_RX_FRAMES] = "port_rx_frames",
	[TERN_STAT_RX_BYTES] = "port_rx_bytes",
	[TERN_STAT_RX_FILTERED] = "port_rx_filtered",
	[TERN_STAT_ETH_TX_FRAMES] = "eth_tx_frames",
	[TERN_STAT_ETH_TX_BYTES] = "eth_tx_bytes",
	[TERN_STAT_ETH_TX_ERRORS] = "eth_tx_errors",
	[TERN_STAT_ETH_RX_FRAMES] = "eth_rx_frames",
	[TERN_STAT_ETH_RX_BYTES] = "eth_rx_bytes",
	[TERN_STAT_ETH_RX_NO_BUFFER] = "eth_rx_no_buffer",
	[TERN_STAT_ETH_RX_ERRORS] = "eth_rx_errors",
	[TERN_STAT_ROCE_TX_PACKETS] = "roce_tx_packets",
	[TERN_STAT_ROCE_TX_BYTES] = "roce_tx_bytes",
	[TERN_STAT_ROCE_RX_PACKETS] = "roce_rx_packets",
	[TERN_STAT_ROCE_RX_BYTES] = "roce_rx_bytes",
	[TERN_STAT_RX_MALFORMED] = "roce_rx_malformed",
	[TERN_STAT_RX_BAD_ICRC] = "roce_rx_bad_icrc",
	[TERN_STAT_RX_BAD_PKEY] = "roce_rx_bad_pkey",
	[TERN_STAT_RX_NO_QP] = "roce_rx_no_qp",
	[TERN_STAT_RX_BAD_ADDR] = "roce_rx_bad_addr",
	[TERN_STAT_RX_BAD_STATE] = "roce_rx_bad_state",
	[TERN_STAT_RX_BAD_OPCODE] = "roce_rx_bad_opcode",
	[TERN_STAT_REQ_RETRANSMITS] = "req_retransmits",
	[TERN_STAT_REQ_TIMEOUTS] = "req_timeouts",
	[TERN_STAT_REQ_RX_SEQ_NAK] = "req_rx_seq_nak",
	[TERN_STAT_REQ_RX_RNR_NAK] = "req_rx_rnr_nak",
	[TERN_STAT_REQ_RX_INV_REQ_NAK] = "req_rx_inv_req_nak",
	[TERN_STAT_REQ_RX_ACCESS_NAK] = "req_rx_access_nak",
	[TERN_STAT_REQ_RX_OP_NAK] = "req_rx_op_nak",
	[TERN_STAT_REQ_IMPLIED_NAK] = "req_implied_nak",
	[TERN_STAT_REQ_DUP_ACK] = "req_dup_ack",
	[TERN_STAT_REQ_BAD_RESP] = "req_bad_resp",
	[TERN_STAT_REQ_CQE_ERRORS] = "req_cqe_errors",
	[TERN_STAT_REQ_CQE_FLUSHED] = "req_cqe_flushed",
	[TERN_STAT_REQ_RETRY_EXCEEDED] = "req_retry_exceeded",
	[TERN_STAT_REQ_RNR_RETRY_EXCEEDED] = "req_rnr_retry_exceeded",
	[TERN_STAT_RESP_SENDS] = "resp_sends",
	[TERN_STAT_RESP_WRITES] = "resp_writes",
	[TERN_STAT_RESP_READS] = "resp_reads",
	[TERN_STAT_RESP_ATOMICS] = "resp_atomics",
	[TERN_STAT_RESP_DUPLICATES] = "resp_duplicates",
	[TERN_STAT_RESP_OUT_OF_SEQUENCE] = "resp_out_of_sequence",
	[TERN_STAT_RESP_TX_SEQ_NAK] = "resp_tx_seq_nak",
	[TERN_STAT_RESP_TX_RNR_NAK] = "resp_tx_rnr_nak",
	[TERN_STAT_RESP_TX_INV_REQ_NAK] = "resp_tx_inv_req_nak",
	[TERN_STAT_RESP_TX_ACCESS_NAK] = "resp_tx_access_nak",
	[TERN_STAT_RESP_TX_OP_NAK] = "resp_tx_op_nak",
	[TERN_STAT_RESP_CQE_ERRORS] = "resp_cqe_errors",
	[TERN_STAT_RESP_CQE_FLUSHED] = "resp_cqe_flushed",
	[TERN_STAT_DB_DROPPED] = "doorbells_dropped",
	[TERN_STAT_DMA_FAULTS] = "dma_faults",
	[TERN_STAT_CQ_OVERRUNS] = "cq_overruns",
	[TERN_STAT_EQ_OVERRUNS] = "eq_overruns",
	[TERN_STAT_AQ_ERRORS] = "aq_errors",
	[TERN_STAT_RX_BAD_QKEY] = "roce_rx_bad_qkey",
	[TERN_STAT_UC_RX_DROPPED] = "uc_rx_dropped",
	[TERN_STAT_UD_RX_NO_BUFFER] = "ud_rx_no_buffer",
	[TERN_STAT_MCAST_RX_PACKETS] = "mcast_rx_packets",
	[TERN_STAT_RAW_TX_FRAMES] = "raw_tx_frames",
	[TERN_STAT_RAW_TX_ERRORS] = "raw_tx_errors",
	[TERN_STAT_RAW_RX_FRAMES] = "raw_rx_frames",
	[TERN_STAT_RAW_RX_NO_BUFFER] = "raw_rx_no_buffer",
	[TERN_STAT_RAW_RX_ERRORS] = "raw_rx_errors",
	[TERN_STAT_RESP_INVALIDATES] = "resp_invalidates",
	[TERN_STAT_PAGE_FAULTS] = "page_faults",
	[TERN_STAT_ETH_TX_CSUM] = "eth_tx_csum",
	[TERN_STAT_ETH_TX_TSO] = "eth_tx_tso",
	[TERN_STAT_ETH_RX_CSUM_OK] = "eth_rx_csum_ok",
	[TERN_STAT_ETH_RX_CSUM_BAD] = "eth_rx_csum_bad",
	[TERN_STAT_RESP_FLUSHES] = "resp_flushes",
	[TERN_STAT_TX_REVOKED] = "tx_revoked",
	[TERN_STAT_RX_REVOKED] = "rx_revoked",
	[TERN_STAT_NP_ECN_MARKED] = "np_ecn_marked_roce_packets",
	[TERN_STAT_NP_CNP_SENT] = "np_cnp_sent",
	[TERN_STAT_RP_CNP_HANDLED] = "rp_cnp_handled",
	[TERN_STAT_RP_CNP_IGNORED] = "rp_cnp_ignored",
	[TERN_STAT_RX_PRIO0_PAUSE] = "rx_prio0_pause",
	[TERN_STAT_RX_PRIO1_PAUSE] = "rx_prio1_pause",
	[TERN_STAT_RX_PRIO2_PAUSE] = "rx_prio2_pause",
	[TERN_STAT_RX_PRIO3_PAUSE] = "rx_prio3_pause",
	[TERN_STAT_RX_PRIO4_PAUSE] = "rx_prio4_pause",
	[TERN_STAT_RX_PRIO5_PAUSE] = "rx_prio5_pause",
	[TERN_STAT_RX_PRIO6_PAUSE] = "rx_prio6_pause",
	[TERN_STAT_RX_PRIO7_PAUSE] = "rx_prio7_pause",
};

/* Counters of a queue pair: those of tern_queue_stats_read(), for each direction, and restarts. */
static const char * const tern_queue_stat_names[] = {
	"tx%u_packets", "tx%u_bytes", "tx%u_errors",
	"rx%u_packets", "rx%u_bytes", "rx%u_errors",
	"ch%u_recover",
};

static struct tern_dev *tern_dev_of(struct net_device *ndev)
{
	struct tern_netdev *nd = netdev_priv(ndev);

	return nd->tdev;
}

static void tern_get_drvinfo(struct net_device *ndev, struct ethtool_drvinfo *info)
{
	struct tern_dev *tdev = tern_dev_of(ndev);
	u32 fw = tdev->attr.fw_version;

	strscpy(info->driver, TERN_DRV_NAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(tdev->pdev), sizeof(info->bus_info));
	snprintf(info->fw_version, sizeof(info->fw_version), "%u.%u", fw >> 16, fw & 0xffff);
}

static int tern_get_link_ksettings(struct net_device *ndev, struct ethtool_link_ksettings *ks)
{
	u32 speed = tern_hw_link_speed(tern_dev_of(ndev));

	ethtool_link_ksettings_zero_link_mode(ks, supported);
	ethtool_link_ksettings_zero_link_mode(ks, advertising);
	ks->base.speed = netif_carrier_ok(ndev) ? speed : SPEED_UNKNOWN;
	ks->base.duplex = netif_carrier_ok(ndev) ? DUPLEX_FULL : DUPLEX_UNKNOWN;
	ks->base.autoneg = AUTONEG_DISABLE;
	ks->base.port = PORT_OTHER;
	return 0;
}

static void tern_get_ringparam(struct net_device *ndev, struct ethtool_ringparam *ring,
			       struct kernel_ethtool_ringparam *kernel_ring,
			       struct netlink_ext_ack *extack)
{
	const struct tern_netdev *nd = netdev_priv(ndev);
	const struct tern_device_attr *attr = &nd->tdev->attr;

	ring->rx_pending = 1U << nd->settings.rx_log_size;
	ring->tx_pending = 1U << nd->settings.tx_log_size;
	ring->rx_max_pending = 1U << min3((u8)TERN_RING_MAX_LOG, attr->max_rq_log_size,
					  attr->max_cq_log_size);
	ring->tx_max_pending = 1U << min3((u8)TERN_RING_MAX_LOG, attr->max_sq_log_size,
					  attr->max_cq_log_size);
}

/* Rounds up to a power of two. The core has checked the maximum. */
static u8 tern_ring_log(u32 entries)
{
	return max_t(u8, order_base_2(entries), TERN_RING_MIN_LOG);
}

static int tern_set_ringparam(struct net_device *ndev, struct ethtool_ringparam *ring,
			      struct kernel_ethtool_ringparam *kernel_ring,
			      struct netlink_ext_ack *extack)
{
	struct tern_netdev *nd = netdev_priv(ndev);
	struct tern_eth_settings settings = nd->settings;

	settings.rx_log_size = tern_ring_log(ring->rx_pending);
	settings.tx_log_size = tern_ring_log(ring->tx_pending);
	return tern_netdev_apply(nd, &settings);
}

static void tern_get_channels(struct net_device *ndev, struct ethtool_channels *channels)
{
	struct tern_netdev *nd = netdev_priv(ndev);

	channels->max_combined = nd->max_queues;
	channels->combined_count = nd->settings.queues;
}

static int tern_set_channels(struct net_device *ndev, struct ethtool_channels *channels)
{
	struct tern_netdev *nd = netdev_priv(ndev);
	struct tern_eth_settings settings = nd->settings;

	if (!channels->combined_count)
		return -EINVAL;
	settings.queues = channels->combined_count;
	return tern_netdev_apply(nd, &settings);
}

static int tern_get_coalesce(struct net_device *ndev, struct ethtool_coalesce *ec,
			     struct kernel_ethtool_coalesce *kernel_ec,
			     struct netlink_ext_ack *extack)
{
	const struct tern_netdev *nd = netdev_priv(ndev);

	ec->tx_coalesce_usecs = nd->tx_moderation.usecs;
	ec->tx_max_coalesced_frames = nd->tx_moderation.frames;
	ec->rx_coalesce_usecs = nd->rx_moderation.usecs;
	ec->rx_max_coalesced_frames = nd->rx_moderation.frames;
	return 0;
}

static int tern_read_moderation(struct tern_moderation *to, u32 usecs, u32 frames,
				struct netlink_ext_ack *extack)
{
	if (usecs > U16_MAX || frames > U16_MAX) {
		NL_SET_ERR_MSG_MOD(extack, "more than 65535");
		return -ERANGE;
	}
	if (frames > 1 && !usecs) {
		NL_SET_ERR_MSG_MOD(extack, "a number of frames needs a time as well");
		return -EINVAL;
	}
	to->usecs = usecs;
	to->frames = frames;
	return 0;
}

static int tern_set_coalesce(struct net_device *ndev, struct ethtool_coalesce *ec,
			     struct kernel_ethtool_coalesce *kernel_ec,
			     struct netlink_ext_ack *extack)
{
	struct tern_netdev *nd = netdev_priv(ndev);
	struct tern_moderation old_tx = nd->tx_moderation, old_rx = nd->rx_moderation;
	struct tern_moderation tx, rx;
	int err;

	if (!(nd->tdev->caps & TERN_CAP_MODIFY_CQ))
		return -EOPNOTSUPP;
	err = tern_read_moderation(&tx, ec->tx_coalesce_usecs, ec->tx_max_coalesced_frames,
				   extack);
	if (!err)
		err = tern_read_moderation(&rx, ec->rx_coalesce_usecs,
					   ec->rx_max_coalesced_frames, extack);
	if (err)
		return err;
	nd->tx_moderation = tx;
	nd->rx_moderation = rx;
	err = nd->open ? tern_eth_moderate(nd) : 0;
	if (err) {
		nd->tx_moderation = old_tx;
		nd->rx_moderation = old_rx;
		tern_eth_moderate(nd); /* some queues may have the new values */
	}
	return err;
}

static u32 tern_get_rxfh_indir_size(struct net_device *ndev)
{
	return tern_dev_of(ndev)->caps & TERN_CAP_ETH_QUEUES ? TERN_RSS_ENTRIES : 0;
}

static u32 tern_get_rxfh_key_size(struct net_device *ndev)
{
	return tern_get_rxfh_indir_size(ndev) ? TERN_HASH_KEY_SIZE : 0;
}

/* @table and @key may be NULL. */
static void tern_read_rss(const struct tern_netdev *nd, u32 *table, u8 *key)
{
	u32 i;

	for (i = 0; table && i < TERN_RSS_ENTRIES; i++)
		table[i] = nd->rss_table[i];
	if (key)
		memcpy(key, nd->rss_key, sizeof(nd->rss_key));
}

static int tern_write_rss(struct tern_netdev *nd, const u32 *table, const u8 *key, u8 hfunc)
{
	u8 old_table[TERN_RSS_ENTRIES], old_key[TERN_HASH_KEY_SIZE];
	int err;
	u32 i;

	if (hfunc != ETH_RSS_HASH_NO_CHANGE && hfunc != ETH_RSS_HASH_TOP)
		return -EOPNOTSUPP;
	memcpy(old_table, nd->rss_table, sizeof(old_table));
	memcpy(old_key, nd->rss_key, sizeof(old_key));
	for (i = 0; table && i < TERN_RSS_ENTRIES; i++)
		nd->rss_table[i] = table[i];
	if (key)
		memcpy(nd->rss_key, key, sizeof(nd->rss_key));
	err = nd->open ? tern_eth_set_rss(nd) : 0;
	if (err) {
		memcpy(nd->rss_table, old_table, sizeof(old_table));
		memcpy(nd->rss_key, old_key, sizeof(old_key));
	}
	return err;
}

#ifdef TERN_HAVE_RXFH_PARAM
static int tern_get_rxfh(struct net_device *ndev, struct ethtool_rxfh_param *rxfh)
{
	rxfh->hfunc = ETH_RSS_HASH_TOP;
	tern_read_rss(netdev_priv(ndev), rxfh->indir, rxfh->key);
	return 0;
}

static int tern_set_rxfh(struct net_device *ndev, struct ethtool_rxfh_param *rxfh,
			 struct netlink_ext_ack *extack)
{
	return tern_write_rss(netdev_priv(ndev), rxfh->indir, rxfh->key, rxfh->hfunc);
}
#else
static int tern_get_rxfh(struct net_device *ndev, u32 *indir, u8 *key, u8 *hfunc)
{
	if (hfunc)
		*hfunc = ETH_RSS_HASH_TOP;
	tern_read_rss(netdev_priv(ndev), indir, key);
	return 0;
}

static int tern_set_rxfh(struct net_device *ndev, const u32 *indir, const u8 *key,
			 const u8 hfunc)
{
	return tern_write_rss(netdev_priv(ndev), indir, key, hfunc);
}
#endif

/* The fields of the hash, which are fixed. */
static u32 tern_rxfh_fields(const struct tern_dev *tdev, u32 flow_type)
{
	if (!(tdev->caps & TERN_CAP_ETH_QUEUES))
		return 0;
	switch (flow_type) {
	case TCP_V4_FLOW:
	case UDP_V4_FLOW:
	case TCP_V6_FLOW:
	case UDP_V6_FLOW:
		return RXH_IP_SRC | RXH_IP_DST | RXH_L4_B_0_1 | RXH_L4_B_2_3;
	case SCTP_V4_FLOW:
	case AH_V4_FLOW:
	case ESP_V4_FLOW:
	case AH_ESP_V4_FLOW:
	case IPV4_FLOW:
	case SCTP_V6_FLOW:
	case AH_V6_FLOW:
	case ESP_V6_FLOW:
	case AH_ESP_V6_FLOW:
	case IPV6_FLOW:
		return RXH_IP_SRC | RXH_IP_DST;
	default:
		return 0;
	}
}

static int tern_get_rxnfc(struct net_device *ndev, struct ethtool_rxnfc *info, u32 *rules)
{
	const struct tern_netdev *nd = netdev_priv(ndev);

	switch (info->cmd) {
	case ETHTOOL_GRXRINGS:
		info->data = nd->settings.queues;
		return 0;
	case ETHTOOL_GRXFH:
		info->data = tern_rxfh_fields(nd->tdev, info->flow_type);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

#ifdef TERN_HAVE_RX_RING_COUNT
static u32 tern_get_rx_ring_count(struct net_device *ndev)
{
	const struct tern_netdev *nd = netdev_priv(ndev);

	return nd->settings.queues;
}
#endif

#ifdef TERN_HAVE_RXFH_FIELDS
static int tern_get_rxfh_fields(struct net_device *ndev, struct ethtool_rxfh_fields *fields)
{
	fields->data = tern_rxfh_fields(tern_dev_of(ndev), fields->flow_type);
	return 0;
}
#endif

/* Counts unused queues too, so that the number does not change. */
static int tern_get_sset_count(struct net_device *ndev, int sset)
{
	const struct tern_netdev *nd = netdev_priv(ndev);

	if (sset != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return TERN_STAT_COUNT + nd->max_queues * ARRAY_SIZE(tern_queue_stat_names);
}

static void tern_get_strings(struct net_device *ndev, u32 sset, u8 *data)
{
	const struct tern_netdev *nd = netdev_priv(ndev);
	u32 i, n;

	if (sset != ETH_SS_STATS)
		return;
	memcpy(data, tern_stat_names, sizeof(tern_stat_names));
	data += sizeof(tern_stat_names);
	for (i = 0; i < nd->max_queues; i++) {
		for (n = 0; n < ARRAY_SIZE(tern_queue_stat_names); n++) {
			snprintf(data, ETH_GSTRING_LEN, tern_queue_stat_names[n], i);
			data += ETH_GSTRING_LEN;
		}
	}
}

/* The counters of a dead card read as zero. */
static void tern_get_ethtool_stats(struct net_device *ndev, struct ethtool_stats *stats, u64 *data)
{
	const struct tern_netdev *nd = netdev_priv(ndev);
	u32 i;

	if (tern_stats_read(nd->tdev, TERN_STATS_ALL, data))
		memset(data, 0, TERN_STAT_COUNT * sizeof(*data));
	data += TERN_STAT_COUNT;
	for (i = 0; i < nd->max_queues; i++, data += ARRAY_SIZE(tern_queue_stat_names)) {
		tern_queue_stats_read(&nd->queues[i].tx_stats, data);
		tern_queue_stats_read(&nd->queues[i].rx_stats, data + 3);
		data[6] = nd->queues[i].restarts;
	}
}

const struct ethtool_ops tern_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_USECS | ETHTOOL_COALESCE_MAX_FRAMES,
	.get_drvinfo = tern_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = tern_get_link_ksettings,
	.get_ringparam = tern_get_ringparam,
	.set_ringparam = tern_set_ringparam,
	.get_channels = tern_get_channels,
	.set_channels = tern_set_channels,
	.get_coalesce = tern_get_coalesce,
	.set_coalesce = tern_set_coalesce,
	.get_rxnfc = tern_get_rxnfc,
#ifdef TERN_HAVE_RX_RING_COUNT
	.get_rx_ring_count = tern_get_rx_ring_count,
#endif
#ifdef TERN_HAVE_RXFH_FIELDS
	.get_rxfh_fields = tern_get_rxfh_fields,
#endif
	.get_rxfh_indir_size = tern_get_rxfh_indir_size,
	.get_rxfh_key_size = tern_get_rxfh_key_size,
	.get_rxfh = tern_get_rxfh,
	.set_rxfh = tern_set_rxfh,
	.get_sset_count = tern_get_sset_count,
	.get_strings = tern_get_strings,
	.get_ethtool_stats = tern_get_ethtool_stats,
	.get_ts_info = ethtool_op_get_ts_info,
};
