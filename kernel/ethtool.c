// SPDX-License-Identifier: GPL-2.0
/* What ethtool shows of the net_device. */
#include <linux/ethtool.h>
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
	u32 speed = tern_reg_read(tern_dev_of(ndev), TERN_REG_LINK_SPEED);

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
	struct tern_netdev *nd = netdev_priv(ndev);

	if (!nd->open)
		return;
	ring->rx_pending = nd->eth.rx.mask + 1;
	ring->rx_max_pending = ring->rx_pending;
	ring->tx_pending = nd->eth.tx.mask + 1;
	ring->tx_max_pending = ring->tx_pending;
}

static int tern_get_sset_count(struct net_device *ndev, int sset)
{
	return sset == ETH_SS_STATS ? TERN_STAT_COUNT : -EOPNOTSUPP;
}

static void tern_get_strings(struct net_device *ndev, u32 sset, u8 *data)
{
	if (sset == ETH_SS_STATS)
		memcpy(data, tern_stat_names, sizeof(tern_stat_names));
}

/* A card that does not answer counts nothing. */
static void tern_get_ethtool_stats(struct net_device *ndev, struct ethtool_stats *stats, u64 *data)
{
	if (tern_stats_read(tern_dev_of(ndev), data))
		memset(data, 0, TERN_STAT_COUNT * sizeof(*data));
}

const struct ethtool_ops tern_ethtool_ops = {
	.get_drvinfo = tern_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = tern_get_link_ksettings,
	.get_ringparam = tern_get_ringparam,
	.get_sset_count = tern_get_sset_count,
	.get_strings = tern_get_strings,
	.get_ethtool_stats = tern_get_ethtool_stats,
	.get_ts_info = ethtool_op_get_ts_info,
};
