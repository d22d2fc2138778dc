// SPDX-License-Identifier: GPL-2.0
/* The names of the card's enums, as tracepoints, debugfs and devlink show them. */
#include <linux/kernel.h>

#include "names.h"
#include "tern/tern_hw.h"

static const char * const tern_aq_op_names[] = {
	[TERN_AQ_QUERY_DEVICE] = "QUERY_DEVICE",
	[TERN_AQ_QUERY_STATS] = "QUERY_STATS",
	[TERN_AQ_CREATE_EQ] = "CREATE_EQ",
	[TERN_AQ_DESTROY_EQ] = "DESTROY_EQ",
	[TERN_AQ_ALLOC_PD] = "ALLOC_PD",
	[TERN_AQ_DEALLOC_PD] = "DEALLOC_PD",
	[TERN_AQ_CREATE_MR] = "CREATE_MR",
	[TERN_AQ_DESTROY_MR] = "DESTROY_MR",
	[TERN_AQ_CREATE_CQ] = "CREATE_CQ",
	[TERN_AQ_DESTROY_CQ] = "DESTROY_CQ",
	[TERN_AQ_CREATE_QP] = "CREATE_QP",
	[TERN_AQ_MODIFY_QP] = "MODIFY_QP",
	[TERN_AQ_QUERY_QP] = "QUERY_QP",
	[TERN_AQ_DESTROY_QP] = "DESTROY_QP",
	[TERN_AQ_CREATE_SRQ] = "CREATE_SRQ",
	[TERN_AQ_RESIZE_SRQ] = "RESIZE_SRQ",
	[TERN_AQ_SET_SRQ_LIMIT] = "SET_SRQ_LIMIT",
	[TERN_AQ_QUERY_SRQ] = "QUERY_SRQ",
	[TERN_AQ_SET_GID] = "SET_GID",
	[TERN_AQ_SET_ETH] = "SET_ETH",
	[TERN_AQ_DESTROY_SRQ] = "DESTROY_SRQ",
	[TERN_AQ_ALLOC_XRCD] = "ALLOC_XRCD",
	[TERN_AQ_DEALLOC_XRCD] = "DEALLOC_XRCD",
	[TERN_AQ_ATTACH_MCAST] = "ATTACH_MCAST",
	[TERN_AQ_DETACH_MCAST] = "DETACH_MCAST",
	[TERN_AQ_CREATE_FLOW] = "CREATE_FLOW",
	[TERN_AQ_DESTROY_FLOW] = "DESTROY_FLOW",
	[TERN_AQ_ALLOC_MW] = "ALLOC_MW",
	[TERN_AQ_DEALLOC_MW] = "DEALLOC_MW",
	[TERN_AQ_CREATE_FAST_MR] = "CREATE_FAST_MR",
	[TERN_AQ_MODIFY_MR] = "MODIFY_MR",
	[TERN_AQ_SYNC_MR] = "SYNC_MR",
	[TERN_AQ_QUERY_FAULT] = "QUERY_FAULT",
	[TERN_AQ_RESUME_QP] = "RESUME_QP",
	[TERN_AQ_RESIZE_CQ] = "RESIZE_CQ",
	[TERN_AQ_MODERATE_CQ] = "MODERATE_CQ",
	[TERN_AQ_CREATE_WQ] = "CREATE_WQ",
	[TERN_AQ_MODIFY_WQ] = "MODIFY_WQ",
	[TERN_AQ_DESTROY_WQ] = "DESTROY_WQ",
	[TERN_AQ_CREATE_WQ_TABLE] = "CREATE_WQ_TABLE",
	[TERN_AQ_DESTROY_WQ_TABLE] = "DESTROY_WQ_TABLE",
	[TERN_AQ_CREATE_RSS_QP] = "CREATE_RSS_QP",
	[TERN_AQ_CREATE_COUNTERS] = "CREATE_COUNTERS",
	[TERN_AQ_DESTROY_COUNTERS] = "DESTROY_COUNTERS",
	[TERN_AQ_READ_COUNTERS] = "READ_COUNTERS",
	[TERN_AQ_SET_ETH_RSS] = "SET_ETH_RSS",
	[TERN_AQ_QUERY_CONGESTION] = "QUERY_CONGESTION",
	[TERN_AQ_SET_CONGESTION] = "SET_CONGESTION",
	[TERN_AQ_CREATE_STATS] = "CREATE_STATS",
	[TERN_AQ_DESTROY_STATS] = "DESTROY_STATS",
	[TERN_AQ_BIND_STATS] = "BIND_STATS",
	[TERN_AQ_CREATE_COMP_COUNTER] = "CREATE_COMP_COUNTER",
	[TERN_AQ_DESTROY_COMP_COUNTER] = "DESTROY_COMP_COUNTER",
	[TERN_AQ_MODIFY_COMP_COUNTER] = "MODIFY_COMP_COUNTER",
	[TERN_AQ_ATTACH_COMP_COUNTER] = "ATTACH_COMP_COUNTER",
};

static const char * const tern_congestion_param_names[] = {
	[TERN_CC_RP_ALGORITHM] = "rp_algorithm",
	[TERN_CC_RP_CLAMP_TGT_RATE] = "rp_clamp_tgt_rate",
	[TERN_CC_RP_CLAMP_TGT_RATE_ATI] = "rp_clamp_tgt_rate_ati",
	[TERN_CC_RP_TIME_RESET] = "rp_time_reset",
	[TERN_CC_RP_BYTE_RESET] = "rp_byte_reset",
	[TERN_CC_RP_THRESHOLD] = "rp_threshold",
	[TERN_CC_RP_AI_RATE] = "rp_ai_rate",
	[TERN_CC_RP_MAX_RATE] = "rp_max_rate",
	[TERN_CC_RP_HAI_RATE] = "rp_hai_rate",
	[TERN_CC_RP_MIN_DEC_FAC] = "rp_min_dec_fac",
	[TERN_CC_RP_MIN_RATE] = "rp_min_rate",
	[TERN_CC_RP_RATE_TO_SET_ON_FIRST_CNP] = "rp_rate_to_set_on_first_cnp",
	[TERN_CC_RP_DCE_TCP_G] = "rp_dce_tcp_g",
	[TERN_CC_RP_DCE_TCP_RTT] = "rp_dce_tcp_rtt",
	[TERN_CC_RP_RATE_REDUCE_MONITOR_PERIOD] = "rp_rate_reduce_monitor_period",
	[TERN_CC_RP_INITIAL_ALPHA_VALUE] = "rp_initial_alpha_value",
	[TERN_CC_RP_GD] = "rp_gd",
	[TERN_CC_RP_TIMER_SLACK] = "rp_timer_slack",
	[TERN_CC_RP_TIMELY_T_LOW] = "rp_timely_t_low",
	[TERN_CC_RP_TIMELY_T_HIGH] = "rp_timely_t_high",
	[TERN_CC_RP_TIMELY_MIN_RTT] = "rp_timely_min_rtt",
	[TERN_CC_RP_TIMELY_BETA] = "rp_timely_beta",
	[TERN_CC_RP_TIMELY_EWMA_ALPHA] = "rp_timely_ewma_alpha",
	[TERN_CC_NP_ENABLE] = "np_enable",
	[TERN_CC_NP_MIN_TIME_BETWEEN_CNPS] = "np_min_time_between_cnps",
	[TERN_CC_NP_CNP_DSCP] = "np_cnp_dscp",
	[TERN_CC_NP_CNP_PRIO_MODE] = "np_cnp_prio_mode",
	[TERN_CC_NP_CNP_PRIO] = "np_cnp_prio",
	[TERN_CC_PFC_ENABLE] = "pfc_enable",
	[TERN_CC_PFC_TRUST_DSCP] = "pfc_trust_dscp",
};

static const char * const tern_aq_status_names[] = {
	[TERN_AQ_OK] = "OK",
	[TERN_AQ_BAD_OPCODE] = "BAD_OPCODE",
	[TERN_AQ_BAD_FIELD] = "BAD_FIELD",
	[TERN_AQ_BAD_OBJECT] = "BAD_OBJECT",
	[TERN_AQ_NO_RESOURCE] = "NO_RESOURCE",
	[TERN_AQ_BUSY] = "BUSY",
	[TERN_AQ_BAD_STATE] = "BAD_STATE",
	[TERN_AQ_DMA_FAULT] = "DMA_FAULT",
};

static const char * const tern_fatal_names[] = {
	[TERN_FATAL_NONE] = "NONE",
	[TERN_FATAL_AQ_CONFIG] = "AQ_CONFIG",
	[TERN_FATAL_AQ_DMA] = "AQ_DMA",
	[TERN_FATAL_AQ_INDEX] = "AQ_INDEX",
	[TERN_FATAL_EQ_DMA] = "EQ_DMA",
};

static const char * const tern_event_names[] = {
	[TERN_EVENT_COMP] = "COMP",
	[TERN_EVENT_CQ_ERR] = "CQ_ERR",
	[TERN_EVENT_QP_FATAL] = "QP_FATAL",
	[TERN_EVENT_QP_REQ_ERR] = "QP_REQ_ERR",
	[TERN_EVENT_QP_ACCESS_ERR] = "QP_ACCESS_ERR",
	[TERN_EVENT_COMM_EST] = "COMM_EST",
	[TERN_EVENT_SQ_DRAINED] = "SQ_DRAINED",
	[TERN_EVENT_LINK] = "LINK",
	[TERN_EVENT_LAST_WQE] = "LAST_WQE",
	[TERN_EVENT_SRQ_LIMIT] = "SRQ_LIMIT",
	[TERN_EVENT_SRQ_ERR] = "SRQ_ERR",
	[TERN_EVENT_PAGE_FAULT] = "PAGE_FAULT",
	[TERN_EVENT_WQ_FATAL] = "WQ_FATAL",
};

static const char * const tern_wc_names[] = {
	[TERN_WC_SUCCESS] = "SUCCESS",
	[TERN_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
	[TERN_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
	[TERN_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
	[TERN_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
	[TERN_WC_MW_BIND_ERR] = "MW_BIND_ERR",
	[TERN_WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
	[TERN_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
	[TERN_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
	[TERN_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
	[TERN_WC_REM_OP_ERR] = "REM_OP_ERR",
	[TERN_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
	[TERN_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
	[TERN_WC_FATAL_ERR] = "FATAL_ERR",
	[TERN_WC_GENERAL_ERR] = "GENERAL_ERR",
	[TERN_WC_TM_ERR] = "TM_ERR",
	[TERN_WC_TM_RNDV_INCOMPLETE] = "TM_RNDV_INCOMPLETE",
};

static const char * const tern_qp_state_names[] = {
	[TERN_QPS_RESET] = "RESET",
	[TERN_QPS_INIT] = "INIT",
	[TERN_QPS_RTR] = "RTR",
	[TERN_QPS_RTS] = "RTS",
	[TERN_QPS_SQD] = "SQD",
	[TERN_QPS_SQE] = "SQE",
	[TERN_QPS_ERR] = "ERR",
};

static const char *tern_name(const char * const *names, u32 count, u32 value)
{
	return value < count && names[value] ? names[value] : "unknown";
}

const char *tern_aq_op_name(u16 opcode)
{
	return tern_name(tern_aq_op_names, ARRAY_SIZE(tern_aq_op_names), opcode);
}

const char *tern_congestion_param_name(u32 param)
{
	return tern_name(tern_congestion_param_names, ARRAY_SIZE(tern_congestion_param_names),
			 param);
}

const char *tern_aq_status_name(u8 status)
{
	return tern_name(tern_aq_status_names, ARRAY_SIZE(tern_aq_status_names), status);
}

const char *tern_fatal_name(u8 reason)
{
	return tern_name(tern_fatal_names, ARRAY_SIZE(tern_fatal_names), reason);
}

const char *tern_event_name(u8 type)
{
	return tern_name(tern_event_names, ARRAY_SIZE(tern_event_names), type);
}

const char *tern_wc_name(u8 status)
{
	return tern_name(tern_wc_names, ARRAY_SIZE(tern_wc_names), status);
}

const char *tern_qp_state_name(u8 state)
{
	return tern_name(tern_qp_state_names, ARRAY_SIZE(tern_qp_state_names), state);
}
