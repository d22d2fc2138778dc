// SPDX-License-Identifier: GPL-2.0
/* Which of the card's counters are the RDMA port's, and by which names. */
#include <rdma/ib_verbs.h>

#include "ib.h"

/*
 * The names are those of other drivers where such exist, since tools know them.
 * tern_port_stat_ids has the counter of the card for each.
 */
static const struct rdma_stat_desc tern_port_stats[] = {
	{ .name = "sent_pkts" },
	{ .name = "sent_bytes" },
	{ .name = "rcvd_pkts" },
	{ .name = "rcvd_bytes" },
	{ .name = "rx_malformed" },
	{ .name = "rx_icrc_encapsulated" },
	{ .name = "rx_pkey_err" },
	{ .name = "rx_no_qp" },
	{ .name = "rx_addr_err" },
	{ .name = "rx_state_err" },
	{ .name = "rx_opcode_err" },
	{ .name = "roce_retrans_pkts" },
	{ .name = "local_ack_timeout_err" },
	{ .name = "packet_seq_err" },
	{ .name = "rcvd_rnr_err" },
	{ .name = "req_remote_invalid_request" },
	{ .name = "req_remote_access_errors" },
	{ .name = "req_remote_operation_errors" },
	{ .name = "implied_nak_seq_err" },
	{ .name = "duplicate_ack" },
	{ .name = "req_bad_response" },
	{ .name = "req_cqe_error" },
	{ .name = "req_cqe_flush_error" },
	{ .name = "retry_exceeded_err" },
	{ .name = "rnr_nak_retry_err" },
	{ .name = "rx_send_requests" },
	{ .name = "rx_write_requests" },
	{ .name = "rx_read_requests" },
	{ .name = "rx_atomic_requests" },
	{ .name = "duplicate_request" },
	{ .name = "out_of_sequence" },
	{ .name = "sent_seq_err" },
	{ .name = "send_rnr_err" },
	{ .name = "resp_remote_invalid_request" },
	{ .name = "resp_remote_access_errors" },
	{ .name = "resp_remote_operation_errors" },
	{ .name = "resp_cqe_error" },
	{ .name = "resp_cqe_flush_error" },
	{ .name = "doorbells_dropped" },
	{ .name = "dma_faults" },
	{ .name = "cq_overruns" },
	{ .name = "eq_overruns" },
	{ .name = "rx_qkey_err" },
	{ .name = "uc_rx_dropped" },
	{ .name = "ud_rx_no_buffer" },
	{ .name = "rcvd_mcast_pkts" },
	{ .name = "raw_sent_pkts" },
	{ .name = "raw_sent_err" },
	{ .name = "raw_rcvd_pkts" },
	{ .name = "raw_rx_no_buffer" },
	{ .name = "raw_rcvd_err" },
	{ .name = "rx_invalidate_requests" },
	{ .name = "page_faults" },
	{ .name = "rx_flush_requests" },
	{ .name = "tx_revoked" },
	{ .name = "rx_revoked" },
	{ .name = "np_ecn_marked_roce_packets" },
	{ .name = "np_cnp_sent" },
	{ .name = "rp_cnp_handled" },
	{ .name = "rp_cnp_ignored" },
};

static const u8 tern_port_stat_ids[] = {
	TERN_STAT_ROCE_TX_PACKETS,
	TERN_STAT_ROCE_TX_BYTES,
	TERN_STAT_ROCE_RX_PACKETS,
	TERN_STAT_ROCE_RX_BYTES,
	TERN_STAT_RX_MALFORMED,
	TERN_STAT_RX_BAD_ICRC,
	TERN_STAT_RX_BAD_PKEY,
	TERN_STAT_RX_NO_QP,
	TERN_STAT_RX_BAD_ADDR,
	TERN_STAT_RX_BAD_STATE,
	TERN_STAT_RX_BAD_OPCODE,
	TERN_STAT_REQ_RETRANSMITS,
	TERN_STAT_REQ_TIMEOUTS,
	TERN_STAT_REQ_RX_SEQ_NAK,
	TERN_STAT_REQ_RX_RNR_NAK,
	TERN_STAT_REQ_RX_INV_REQ_NAK,
	TERN_STAT_REQ_RX_ACCESS_NAK,
	TERN_STAT_REQ_RX_OP_NAK,
	TERN_STAT_REQ_IMPLIED_NAK,
	TERN_STAT_REQ_DUP_ACK,
	TERN_STAT_REQ_BAD_RESP,
	TERN_STAT_REQ_CQE_ERRORS,
	TERN_STAT_REQ_CQE_FLUSHED,
	TERN_STAT_REQ_RETRY_EXCEEDED,
	TERN_STAT_REQ_RNR_RETRY_EXCEEDED,
	TERN_STAT_RESP_SENDS,
	TERN_STAT_RESP_WRITES,
	TERN_STAT_RESP_READS,
	TERN_STAT_RESP_ATOMICS,
	TERN_STAT_RESP_DUPLICATES,
	TERN_STAT_RESP_OUT_OF_SEQUENCE,
	TERN_STAT_RESP_TX_SEQ_NAK,
	TERN_STAT_RESP_TX_RNR_NAK,
	TERN_STAT_RESP_TX_INV_REQ_NAK,
	TERN_STAT_RESP_TX_ACCESS_NAK,
	TERN_STAT_RESP_TX_OP_NAK,
	TERN_STAT_RESP_CQE_ERRORS,
	TERN_STAT_RESP_CQE_FLUSHED,
	TERN_STAT_DB_DROPPED,
	TERN_STAT_DMA_FAULTS,
	TERN_STAT_CQ_OVERRUNS,
	TERN_STAT_EQ_OVERRUNS,
	TERN_STAT_RX_BAD_QKEY,
	TERN_STAT_UC_RX_DROPPED,
	TERN_STAT_UD_RX_NO_BUFFER,
	TERN_STAT_MCAST_RX_PACKETS,
	TERN_STAT_RAW_TX_FRAMES,
	TERN_STAT_RAW_TX_ERRORS,
	TERN_STAT_RAW_RX_FRAMES,
	TERN_STAT_RAW_RX_NO_BUFFER,
	TERN_STAT_RAW_RX_ERRORS,
	TERN_STAT_RESP_INVALIDATES,
	TERN_STAT_PAGE_FAULTS,
	TERN_STAT_RESP_FLUSHES,
	TERN_STAT_TX_REVOKED,
	TERN_STAT_RX_REVOKED,
	TERN_STAT_NP_ECN_MARKED,
	TERN_STAT_NP_CNP_SENT,
	TERN_STAT_RP_CNP_HANDLED,
	TERN_STAT_RP_CNP_IGNORED,
};

static_assert(ARRAY_SIZE(tern_port_stats) == ARRAY_SIZE(tern_port_stat_ids));

struct rdma_hw_stats *tern_port_stats_alloc(void)
{
	return rdma_alloc_hw_stats_struct(tern_port_stats, ARRAY_SIZE(tern_port_stats),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/* @values: by enum tern_hw_stat. */
void tern_port_stats_fill(struct rdma_hw_stats *stats, const u64 *values)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(tern_port_stat_ids); i++)
		stats->value[i] = values[tern_port_stat_ids[i]];
}

struct rdma_hw_stats *tern_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return tern_port_stats_alloc();
}

int tern_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct tern_dev *tdev = to_tdev(ibdev);
	u64 values[TERN_STAT_COUNT];
	int err;

	if (port != TERN_PORT)
		return -EINVAL;
	/* ib_core adds the counters of QPs that have their own. */
	err = tern_stats_read(tdev, tdev->caps & TERN_CAP_QP_STATS ? TERN_STATS_UNBOUND :
								     TERN_STATS_ALL, values);
	if (err)
		return err;
	tern_port_stats_fill(stats, values);
	return ARRAY_SIZE(tern_port_stat_ids);
}
