// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/names.h"

#include <algorithm>
#include <span>

namespace tern {

using namespace hw;

namespace {

struct Name {
	uint32_t value;
	std::string_view name;
};

constexpr Name kCommands[] = {
        {TERN_AQ_QUERY_DEVICE, "QUERY_DEVICE"},
        {TERN_AQ_QUERY_STATS, "QUERY_STATS"},
        {TERN_AQ_CREATE_EQ, "CREATE_EQ"},
        {TERN_AQ_DESTROY_EQ, "DESTROY_EQ"},
        {TERN_AQ_ALLOC_PD, "ALLOC_PD"},
        {TERN_AQ_DEALLOC_PD, "DEALLOC_PD"},
        {TERN_AQ_CREATE_MR, "CREATE_MR"},
        {TERN_AQ_DESTROY_MR, "DESTROY_MR"},
        {TERN_AQ_CREATE_CQ, "CREATE_CQ"},
        {TERN_AQ_DESTROY_CQ, "DESTROY_CQ"},
        {TERN_AQ_CREATE_QP, "CREATE_QP"},
        {TERN_AQ_MODIFY_QP, "MODIFY_QP"},
        {TERN_AQ_QUERY_QP, "QUERY_QP"},
        {TERN_AQ_DESTROY_QP, "DESTROY_QP"},
        {TERN_AQ_CREATE_SRQ, "CREATE_SRQ"},
        {TERN_AQ_RESIZE_SRQ, "RESIZE_SRQ"},
        {TERN_AQ_SET_SRQ_LIMIT, "SET_SRQ_LIMIT"},
        {TERN_AQ_QUERY_SRQ, "QUERY_SRQ"},
        {TERN_AQ_SET_GID, "SET_GID"},
        {TERN_AQ_SET_ETH, "SET_ETH"},
        {TERN_AQ_DESTROY_SRQ, "DESTROY_SRQ"},
        {TERN_AQ_ALLOC_XRCD, "ALLOC_XRCD"},
        {TERN_AQ_DEALLOC_XRCD, "DEALLOC_XRCD"},
        {TERN_AQ_ATTACH_MCAST, "ATTACH_MCAST"},
        {TERN_AQ_DETACH_MCAST, "DETACH_MCAST"},
        {TERN_AQ_CREATE_FLOW, "CREATE_FLOW"},
        {TERN_AQ_DESTROY_FLOW, "DESTROY_FLOW"},
        {TERN_AQ_ALLOC_MW, "ALLOC_MW"},
        {TERN_AQ_DEALLOC_MW, "DEALLOC_MW"},
        {TERN_AQ_CREATE_FAST_MR, "CREATE_FAST_MR"},
        {TERN_AQ_MODIFY_MR, "MODIFY_MR"},
        {TERN_AQ_SYNC_MR, "SYNC_MR"},
        {TERN_AQ_QUERY_FAULT, "QUERY_FAULT"},
        {TERN_AQ_RESUME_QP, "RESUME_QP"},
        {TERN_AQ_RESIZE_CQ, "RESIZE_CQ"},
        {TERN_AQ_MODERATE_CQ, "MODERATE_CQ"},
        {TERN_AQ_CREATE_WQ, "CREATE_WQ"},
        {TERN_AQ_MODIFY_WQ, "MODIFY_WQ"},
        {TERN_AQ_DESTROY_WQ, "DESTROY_WQ"},
        {TERN_AQ_CREATE_WQ_TABLE, "CREATE_WQ_TABLE"},
        {TERN_AQ_DESTROY_WQ_TABLE, "DESTROY_WQ_TABLE"},
        {TERN_AQ_CREATE_RSS_QP, "CREATE_RSS_QP"},
        {TERN_AQ_CREATE_COUNTERS, "CREATE_COUNTERS"},
        {TERN_AQ_DESTROY_COUNTERS, "DESTROY_COUNTERS"},
        {TERN_AQ_READ_COUNTERS, "READ_COUNTERS"},
        {TERN_AQ_SET_ETH_RSS, "SET_ETH_RSS"},
        {TERN_AQ_QUERY_CONGESTION, "QUERY_CONGESTION"},
        {TERN_AQ_SET_CONGESTION, "SET_CONGESTION"},
        {TERN_AQ_CREATE_STATS, "CREATE_STATS"},
        {TERN_AQ_DESTROY_STATS, "DESTROY_STATS"},
        {TERN_AQ_BIND_STATS, "BIND_STATS"},
        {TERN_AQ_CREATE_COMP_COUNTER, "CREATE_COMP_COUNTER"},
        {TERN_AQ_DESTROY_COMP_COUNTER, "DESTROY_COMP_COUNTER"},
        {TERN_AQ_MODIFY_COMP_COUNTER, "MODIFY_COMP_COUNTER"},
        {TERN_AQ_ATTACH_COMP_COUNTER, "ATTACH_COMP_COUNTER"},
};

constexpr Name kCommandStatus[] = {
        {TERN_AQ_OK, "OK"},
        {TERN_AQ_BAD_OPCODE, "BAD_OPCODE"},
        {TERN_AQ_BAD_FIELD, "BAD_FIELD"},
        {TERN_AQ_BAD_OBJECT, "BAD_OBJECT"},
        {TERN_AQ_NO_RESOURCE, "NO_RESOURCE"},
        {TERN_AQ_BUSY, "BUSY"},
        {TERN_AQ_BAD_STATE, "BAD_STATE"},
        {TERN_AQ_DMA_FAULT, "DMA_FAULT"},
};

constexpr Name kCqeStatus[] = {
        {TERN_WC_SUCCESS, "SUCCESS"},
        {TERN_WC_LOC_LEN_ERR, "LOC_LEN_ERR"},
        {TERN_WC_LOC_QP_OP_ERR, "LOC_QP_OP_ERR"},
        {TERN_WC_LOC_PROT_ERR, "LOC_PROT_ERR"},
        {TERN_WC_WR_FLUSH_ERR, "WR_FLUSH_ERR"},
        {TERN_WC_MW_BIND_ERR, "MW_BIND_ERR"},
        {TERN_WC_BAD_RESP_ERR, "BAD_RESP_ERR"},
        {TERN_WC_LOC_ACCESS_ERR, "LOC_ACCESS_ERR"},
        {TERN_WC_REM_INV_REQ_ERR, "REM_INV_REQ_ERR"},
        {TERN_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR"},
        {TERN_WC_REM_OP_ERR, "REM_OP_ERR"},
        {TERN_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR"},
        {TERN_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC_ERR"},
        {TERN_WC_FATAL_ERR, "FATAL_ERR"},
        {TERN_WC_GENERAL_ERR, "GENERAL_ERR"},
        {TERN_WC_TM_ERR, "TM_ERR"},
        {TERN_WC_TM_RNDV_INCOMPLETE, "TM_RNDV_INCOMPLETE"},
};

constexpr Name kFatal[] = {
        {TERN_FATAL_NONE, "NONE"},     {TERN_FATAL_AQ_CONFIG, "AQ_CONFIG"},
        {TERN_FATAL_AQ_DMA, "AQ_DMA"}, {TERN_FATAL_AQ_INDEX, "AQ_INDEX"},
        {TERN_FATAL_EQ_DMA, "EQ_DMA"},
};

constexpr Name kQpStates[] = {
        {TERN_QPS_RESET, "RESET"}, {TERN_QPS_INIT, "INIT"}, {TERN_QPS_RTR, "RTR"},
        {TERN_QPS_RTS, "RTS"},     {TERN_QPS_SQD, "SQD"},   {TERN_QPS_SQE, "SQE"},
        {TERN_QPS_ERR, "ERR"},
};

constexpr Name kQpTypes[] = {
        {TERN_QPT_GSI, "GSI"},         {TERN_QPT_RC, "RC"},   {TERN_QPT_UC, "UC"},
        {TERN_QPT_UD, "UD"},           {TERN_QPT_ETH, "ETH"}, {TERN_QPT_XRC_INI, "XRC_INI"},
        {TERN_QPT_XRC_TGT, "XRC_TGT"}, {TERN_QPT_RAW, "RAW"},
};

constexpr Name kStats[] = {
        {TERN_STAT_TX_FRAMES, "tx_frames"},
        {TERN_STAT_TX_BYTES, "tx_bytes"},
        {TERN_STAT_RX_FRAMES, "rx_frames"},
        {TERN_STAT_RX_BYTES, "rx_bytes"},
        {TERN_STAT_RX_FILTERED, "rx_filtered"},
        {TERN_STAT_ETH_TX_FRAMES, "eth_tx_frames"},
        {TERN_STAT_ETH_TX_BYTES, "eth_tx_bytes"},
        {TERN_STAT_ETH_TX_ERRORS, "eth_tx_errors"},
        {TERN_STAT_ETH_RX_FRAMES, "eth_rx_frames"},
        {TERN_STAT_ETH_RX_BYTES, "eth_rx_bytes"},
        {TERN_STAT_ETH_RX_NO_BUFFER, "eth_rx_no_buffer"},
        {TERN_STAT_ETH_RX_ERRORS, "eth_rx_errors"},
        {TERN_STAT_ROCE_TX_PACKETS, "roce_tx_packets"},
        {TERN_STAT_ROCE_TX_BYTES, "roce_tx_bytes"},
        {TERN_STAT_ROCE_RX_PACKETS, "roce_rx_packets"},
        {TERN_STAT_ROCE_RX_BYTES, "roce_rx_bytes"},
        {TERN_STAT_RX_MALFORMED, "rx_malformed"},
        {TERN_STAT_RX_BAD_ICRC, "rx_bad_icrc"},
        {TERN_STAT_RX_BAD_PKEY, "rx_bad_pkey"},
        {TERN_STAT_RX_NO_QP, "rx_no_qp"},
        {TERN_STAT_RX_BAD_ADDR, "rx_bad_addr"},
        {TERN_STAT_RX_BAD_STATE, "rx_bad_state"},
        {TERN_STAT_RX_BAD_OPCODE, "rx_bad_opcode"},
        {TERN_STAT_REQ_RETRANSMITS, "req_retransmits"},
        {TERN_STAT_REQ_TIMEOUTS, "req_timeouts"},
        {TERN_STAT_REQ_RX_SEQ_NAK, "req_rx_seq_nak"},
        {TERN_STAT_REQ_RX_RNR_NAK, "req_rx_rnr_nak"},
        {TERN_STAT_REQ_RX_INV_REQ_NAK, "req_rx_inv_req_nak"},
        {TERN_STAT_REQ_RX_ACCESS_NAK, "req_rx_access_nak"},
        {TERN_STAT_REQ_RX_OP_NAK, "req_rx_op_nak"},
        {TERN_STAT_REQ_IMPLIED_NAK, "req_implied_nak"},
        {TERN_STAT_REQ_DUP_ACK, "req_dup_ack"},
        {TERN_STAT_REQ_BAD_RESP, "req_bad_resp"},
        {TERN_STAT_REQ_CQE_ERRORS, "req_cqe_errors"},
        {TERN_STAT_REQ_CQE_FLUSHED, "req_cqe_flushed"},
        {TERN_STAT_REQ_RETRY_EXCEEDED, "req_retry_exceeded"},
        {TERN_STAT_REQ_RNR_RETRY_EXCEEDED, "req_rnr_retry_exceeded"},
        {TERN_STAT_RESP_SENDS, "resp_sends"},
        {TERN_STAT_RESP_WRITES, "resp_writes"},
        {TERN_STAT_RESP_READS, "resp_reads"},
        {TERN_STAT_RESP_ATOMICS, "resp_atomics"},
        {TERN_STAT_RESP_DUPLICATES, "resp_duplicates"},
        {TERN_STAT_RESP_OUT_OF_SEQUENCE, "resp_out_of_sequence"},
        {TERN_STAT_RESP_TX_SEQ_NAK, "resp_tx_seq_nak"},
        {TERN_STAT_RESP_TX_RNR_NAK, "resp_tx_rnr_nak"},
        {TERN_STAT_RESP_TX_INV_REQ_NAK, "resp_tx_inv_req_nak"},
        {TERN_STAT_RESP_TX_ACCESS_NAK, "resp_tx_access_nak"},
        {TERN_STAT_RESP_TX_OP_NAK, "resp_tx_op_nak"},
        {TERN_STAT_RESP_CQE_ERRORS, "resp_cqe_errors"},
        {TERN_STAT_RESP_CQE_FLUSHED, "resp_cqe_flushed"},
        {TERN_STAT_DB_DROPPED, "db_dropped"},
        {TERN_STAT_DMA_FAULTS, "dma_faults"},
        {TERN_STAT_CQ_OVERRUNS, "cq_overruns"},
        {TERN_STAT_EQ_OVERRUNS, "eq_overruns"},
        {TERN_STAT_AQ_ERRORS, "aq_errors"},
        {TERN_STAT_RX_BAD_QKEY, "rx_bad_qkey"},
        {TERN_STAT_UC_RX_DROPPED, "uc_rx_dropped"},
        {TERN_STAT_UD_RX_NO_BUFFER, "ud_rx_no_buffer"},
        {TERN_STAT_MCAST_RX_PACKETS, "mcast_rx_packets"},
        {TERN_STAT_RAW_TX_FRAMES, "raw_tx_frames"},
        {TERN_STAT_RAW_TX_ERRORS, "raw_tx_errors"},
        {TERN_STAT_RAW_RX_FRAMES, "raw_rx_frames"},
        {TERN_STAT_RAW_RX_NO_BUFFER, "raw_rx_no_buffer"},
        {TERN_STAT_RAW_RX_ERRORS, "raw_rx_errors"},
        {TERN_STAT_RESP_INVALIDATES, "resp_invalidates"},
        {TERN_STAT_PAGE_FAULTS, "page_faults"},
        {TERN_STAT_ETH_TX_CSUM, "eth_tx_csum"},
        {TERN_STAT_ETH_TX_TSO, "eth_tx_tso"},
        {TERN_STAT_ETH_RX_CSUM_OK, "eth_rx_csum_ok"},
        {TERN_STAT_ETH_RX_CSUM_BAD, "eth_rx_csum_bad"},
        {TERN_STAT_RESP_FLUSHES, "resp_flushes"},
        {TERN_STAT_TX_REVOKED, "tx_revoked"},
        {TERN_STAT_RX_REVOKED, "rx_revoked"},
        {TERN_STAT_NP_ECN_MARKED, "np_ecn_marked"},
        {TERN_STAT_NP_CNP_SENT, "np_cnp_sent"},
        {TERN_STAT_RP_CNP_HANDLED, "rp_cnp_handled"},
        {TERN_STAT_RP_CNP_IGNORED, "rp_cnp_ignored"},
        {TERN_STAT_RX_PRIO0_PAUSE, "rx_prio0_pause"},
        {TERN_STAT_RX_PRIO1_PAUSE, "rx_prio1_pause"},
        {TERN_STAT_RX_PRIO2_PAUSE, "rx_prio2_pause"},
        {TERN_STAT_RX_PRIO3_PAUSE, "rx_prio3_pause"},
        {TERN_STAT_RX_PRIO4_PAUSE, "rx_prio4_pause"},
        {TERN_STAT_RX_PRIO5_PAUSE, "rx_prio5_pause"},
        {TERN_STAT_RX_PRIO6_PAUSE, "rx_prio6_pause"},
        {TERN_STAT_RX_PRIO7_PAUSE, "rx_prio7_pause"},
};

static_assert(std::size(kStats) == TERN_STAT_COUNT);

std::string_view find(std::span<const Name> names, uint32_t value)
{
	const auto found = std::ranges::find(names, value, &Name::value);
	return found != names.end() ? found->name : "unknown";
}

} // namespace

std::string_view command_name(uint16_t opcode)
{
	return find(kCommands, opcode);
}

std::string_view command_status_name(uint8_t status)
{
	return find(kCommandStatus, status);
}

std::string_view cqe_status_name(uint8_t status)
{
	return find(kCqeStatus, status);
}

std::string_view fatal_name(tern_hw_fatal reason)
{
	return find(kFatal, reason);
}

std::string_view qp_state_name(tern_hw_qp_state state)
{
	return find(kQpStates, state);
}

std::string_view qp_type_name(tern_hw_qp_type type)
{
	return find(kQpTypes, type);
}

std::string_view stat_name(tern_hw_stat which)
{
	return find(kStats, which);
}

} // namespace tern
