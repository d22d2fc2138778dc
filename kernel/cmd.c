// SPDX-License-Identifier: GPL-2.0
/* One function per admin command, over the transport of aq.c. */
#include <linux/etherdevice.h>

#include "aq.h"
#include "cmd.h"
#include "tern.h"
#include "trace.h"

static struct tern_engine *tern_cmd_engine(struct tern_dev *tdev, __le32 num)
{
	return tern_engine_of(tdev, le32_to_cpu(num));
}

static int tern_cmd(struct tern_engine *engine, u16 opcode, struct tern_hw_aq_cmd *cmd,
		    struct tern_hw_aq_cqe *result)
{
	cmd->opcode = cpu_to_le16(opcode);
	return tern_aq_exec(engine, cmd, result);
}

/* Executes @cmd in every engine, up to the first that refuses it. */
static int tern_cmd_all(struct tern_dev *tdev, u16 opcode, struct tern_hw_aq_cmd *cmd)
{
	int err = 0;
	u32 i;

	for (i = 0; !err && i < tdev->num_engines; i++)
		err = tern_cmd(&tdev->engines[i], opcode, cmd, NULL);
	return err;
}

/* Stops a card that has given a new object @id, which is of another engine or another object. */
void tern_cmd_wrong_number(struct tern_dev *tdev, u32 id)
{
	dev_err(&tdev->pdev->dev, "a new object has the number %#x\n", id);
	tern_dev_fail(tdev, "gives an object a wrong number");
}

/* Whether @engine could have made an object with the number, or the key, @id. */
static bool tern_cmd_id_possible(const struct tern_engine *engine, u16 opcode, u32 id)
{
	bool key = opcode == TERN_AQ_CREATE_MR || opcode == TERN_AQ_CREATE_FAST_MR ||
		   opcode == TERN_AQ_ALLOC_MW;

	return (key ? id >> 8 : id) >> TERN_ENGINE_SHIFT == engine - engine->tdev->engines;
}

static int tern_cmd_create(struct tern_engine *engine, u16 opcode, struct tern_hw_aq_cmd *cmd,
			   u32 *id)
{
	struct tern_hw_aq_cqe result;
	int err = tern_cmd(engine, opcode, cmd, &result);

	if (err)
		return err;
	*id = le32_to_cpu(result.created.id);
	if (!tern_cmd_id_possible(engine, opcode, *id)) {
		tern_cmd_wrong_number(engine->tdev, *id);
		return -EIO;
	}
	trace_tern_create(engine->tdev, opcode, *id);
	return 0;
}

/*
 * Stops a card that refuses to destroy an object, so that the caller may free the object's
 * memory in any case.
 */
static void tern_cmd_destroy_refused(struct tern_dev *tdev, u16 opcode, u32 id, int err)
{
	dev_err(&tdev->pdev->dev, "command %#x of object %#x: %d\n", opcode, id, err);
	tern_dev_fail(tdev, "refuses to destroy an object");
}

static void tern_cmd_destroy_on(struct tern_engine *engine, u16 opcode, u32 id)
{
	struct tern_hw_aq_cmd cmd = { .object.id = cpu_to_le32(id) };
	int err = tern_cmd(engine, opcode, &cmd, NULL);

	trace_tern_destroy(engine->tdev, opcode, id);
	if (err && !tern_is_dead(engine->tdev))
		tern_cmd_destroy_refused(engine->tdev, opcode, id, err);
}

static void tern_cmd_destroy(struct tern_dev *tdev, u16 opcode, u32 num)
{
	tern_cmd_destroy_on(tern_engine_of(tdev, num), opcode, num);
}

int tern_cmd_query_device(struct tern_engine *engine, struct tern_device_attr *attr)
{
	struct tern_hw_aq_cmd cmd = {};
	struct tern_hw_aq_cqe result;
	const struct tern_hw_device_attr *hw = &result.device;
	int err = tern_cmd(engine, TERN_AQ_QUERY_DEVICE, &cmd, &result);

	if (err)
		return err;
	*attr = (struct tern_device_attr) {
		.fw_version = le32_to_cpu(hw->fw_version),
		.max_qp = le32_to_cpu(hw->max_qp),
		.max_cq = le32_to_cpu(hw->max_cq),
		.max_mr = le32_to_cpu(hw->max_mr),
		.max_pd = le32_to_cpu(hw->max_pd),
		.max_gids = le32_to_cpu(hw->max_gids),
		.max_mr_size = le64_to_cpu(hw->max_mr_size),
		.page_size_cap = le64_to_cpu(hw->page_size_cap),
		.max_sq_log_size = hw->max_sq_log_size,
		.max_rq_log_size = hw->max_rq_log_size,
		.max_cq_log_size = hw->max_cq_log_size,
		.max_rd_atomic = hw->max_rd_atomic,
		.local_ca_ack_delay = hw->local_ca_ack_delay,
		.max_mtu = le16_to_cpu(hw->max_mtu),
		.max_send_sge = le16_to_cpu(hw->max_send_sge),
		.max_recv_sge = le16_to_cpu(hw->max_recv_sge),
		.max_inline = le16_to_cpu(hw->max_inline),
		.max_srq = le32_to_cpu(hw->max_srq),
		.max_xrcd = le32_to_cpu(hw->max_xrcd),
		.max_mcast_groups = le32_to_cpu(hw->max_mcast_groups),
		.max_mcast_qps = le32_to_cpu(hw->max_mcast_qps),
		.max_comp_counters = le32_to_cpu(hw->max_comp_counters),
		.max_flows = le32_to_cpu(hw->max_flows),
		.max_srq_log_size = hw->max_srq_log_size,
		.max_log_tags = hw->max_log_tags,
		.max_log_tag_ops = hw->max_log_tag_ops,
		.max_wq = le32_to_cpu(hw->max_wq),
		.max_wq_tables = le32_to_cpu(hw->max_wq_tables),
	};
	return 0;
}

int tern_cmd_query_stats(struct tern_engine *engine, u32 set, dma_addr_t to, u32 count)
{
	struct tern_hw_aq_cmd cmd = {
		.query_stats = {
			.iova = cpu_to_le64(to),
			.count = cpu_to_le32(count),
			.set = cpu_to_le32(set),
		},
	};

	return tern_cmd(engine, TERN_AQ_QUERY_STATS, &cmd, NULL);
}

int tern_cmd_create_stats(struct tern_engine *engine, u32 *set)
{
	struct tern_hw_aq_cmd cmd = {};

	return tern_cmd_create(engine, TERN_AQ_CREATE_STATS, &cmd, set);
}

int tern_cmd_bind_stats(struct tern_dev *tdev, u32 qpn, u32 set)
{
	struct tern_hw_aq_cmd cmd = {
		.bind_stats = {
			.qpn = cpu_to_le32(qpn),
			.set = cpu_to_le32(set),
		},
	};

	return tern_cmd(tern_engine_of(tdev, qpn), TERN_AQ_BIND_STATS, &cmd, NULL);
}

void tern_cmd_destroy_stats(struct tern_dev *tdev, u32 set)
{
	tern_cmd_destroy(tdev, TERN_AQ_DESTROY_STATS, set);
}

int tern_cmd_create_eq(struct tern_engine *engine, const struct tern_hw_create_eq *hw, u32 *eqn)
{
	struct tern_hw_aq_cmd cmd = { .create_eq = *hw };

	return tern_cmd_create(engine, TERN_AQ_CREATE_EQ, &cmd, eqn);
}

void tern_cmd_destroy_eq(struct tern_dev *tdev, u32 eqn)
{
	tern_cmd_destroy(tdev, TERN_AQ_DESTROY_EQ, eqn);
}

int tern_cmd_alloc_pd(struct tern_engine *engine, u32 db_page, u32 *pdn)
{
	struct tern_hw_aq_cmd cmd = { .object.id = cpu_to_le32(db_page) };

	return tern_cmd_create(engine, TERN_AQ_ALLOC_PD, &cmd, pdn);
}

void tern_cmd_dealloc_pd(struct tern_dev *tdev, u32 pdn)
{
	tern_cmd_destroy(tdev, TERN_AQ_DEALLOC_PD, pdn);
}

int tern_cmd_create_mr(struct tern_dev *tdev, const struct tern_hw_create_mr *hw, u32 *key)
{
	struct tern_hw_aq_cmd cmd = { .create_mr = *hw };

	return tern_cmd_create(tern_cmd_engine(tdev, hw->pdn), TERN_AQ_CREATE_MR, &cmd, key);
}

int tern_cmd_modify_mr(struct tern_dev *tdev, const struct tern_hw_modify_mr *hw)
{
	struct tern_hw_aq_cmd cmd = { .modify_mr = *hw };
	struct tern_engine *engine = tern_engine_of_key(tdev, le32_to_cpu(hw->key));

	return tern_cmd(engine, TERN_AQ_MODIFY_MR, &cmd, NULL);
}

int tern_cmd_create_fast_mr(struct tern_dev *tdev, u32 pdn, u32 *key)
{
	struct tern_hw_aq_cmd cmd = { .object.id = cpu_to_le32(pdn) };

	return tern_cmd_create(tern_engine_of(tdev, pdn), TERN_AQ_CREATE_FAST_MR, &cmd, key);
}

/* Processes bind windows without the driver, so a region with windows is no failure. */
int tern_cmd_destroy_mr(struct tern_dev *tdev, u32 key)
{
	struct tern_hw_aq_cmd cmd = { .object.id = cpu_to_le32(key) };
	int err = tern_cmd(tern_engine_of_key(tdev, key), TERN_AQ_DESTROY_MR, &cmd, NULL);

	if (err == -EBUSY)
		return err;
	trace_tern_destroy(tdev, TERN_AQ_DESTROY_MR, key);
	if (!err || tern_is_dead(tdev))
		return 0;
	tern_cmd_destroy_refused(tdev, TERN_AQ_DESTROY_MR, key, err);
	return 0;
}

/* When this returns, the card uses no entry that it has read from the region's tables before. */
int tern_cmd_sync_mr(struct tern_dev *tdev, u32 key)
{
	struct tern_hw_aq_cmd cmd = { .object.id = cpu_to_le32(key) };

	return tern_cmd(tern_engine_of_key(tdev, key), TERN_AQ_SYNC_MR, &cmd, NULL);
}

int tern_cmd_alloc_mw(struct tern_dev *tdev, u32 pdn, u8 type, u8 variant, u32 *key)
{
	struct tern_hw_aq_cmd cmd = {
		.alloc_mw = {
			.pdn = cpu_to_le32(pdn),
			.type = type,
			.variant = variant,
		},
	};

	return tern_cmd_create(tern_engine_of(tdev, pdn), TERN_AQ_ALLOC_MW, &cmd, key);
}

void tern_cmd_dealloc_mw(struct tern_dev *tdev, u32 key)
{
	tern_cmd_destroy_on(tern_engine_of_key(tdev, key), TERN_AQ_DEALLOC_MW, key);
}

int tern_cmd_create_cq(struct tern_dev *tdev, const struct tern_hw_create_cq *hw, u32 *cqn)
{
	struct tern_hw_aq_cmd cmd = { .create_cq = *hw };

	return tern_cmd_create(tern_cmd_engine(tdev, hw->eqn), TERN_AQ_CREATE_CQ, &cmd, cqn);
}

int tern_cmd_resize_cq(struct tern_dev *tdev, const struct tern_hw_resize_cq *hw)
{
	struct tern_hw_aq_cmd cmd = { .resize_cq = *hw };

	return tern_cmd(tern_cmd_engine(tdev, hw->cqn), TERN_AQ_RESIZE_CQ, &cmd, NULL);
}

int tern_cmd_moderate_cq(struct tern_dev *tdev, u32 cqn, u16 count, u16 usecs)
{
	struct tern_hw_aq_cmd cmd = {
		.moderate_cq = {
			.cqn = cpu_to_le32(cqn),
			.count = cpu_to_le16(count),
			.period = cpu_to_le16(usecs),
		},
	};

	return tern_cmd(tern_engine_of(tdev, cqn), TERN_AQ_MODERATE_CQ, &cmd, NULL);
}

void tern_cmd_destroy_cq(struct tern_dev *tdev, u32 cqn)
{
	tern_cmd_destroy(tdev, TERN_AQ_DESTROY_CQ, cqn);
}

/* An XRC target QP has no PD, but an XRC domain. */
int tern_cmd_create_qp(struct tern_dev *tdev, const struct tern_hw_create_qp *hw, u32 *qpn)
{
	struct tern_hw_aq_cmd cmd = { .create_qp = *hw };
	__le32 parent = hw->pdn ? hw->pdn : hw->xrcdn;

	return tern_cmd_create(tern_cmd_engine(tdev, parent), TERN_AQ_CREATE_QP, &cmd, qpn);
}

int tern_cmd_modify_qp(struct tern_dev *tdev, u32 qpn, u32 mask, const struct tern_hw_qp_attr *attr)
{
	struct tern_hw_aq_cmd cmd = {
		.modify_qp = {
			.qpn = cpu_to_le32(qpn),
			.attr_mask = cpu_to_le32(mask),
			.attr = *attr,
		},
	};
	int err = tern_cmd(tern_engine_of(tdev, qpn), TERN_AQ_MODIFY_QP, &cmd, NULL);

	trace_tern_modify_qp(tdev, qpn, mask, attr, err);
	return err;
}

int tern_cmd_query_fault(struct tern_dev *tdev, u32 qpn, struct tern_hw_faults *faults)
{
	struct tern_hw_aq_cmd cmd = { .object.id = cpu_to_le32(qpn) };
	struct tern_hw_aq_cqe result;
	int err = tern_cmd(tern_engine_of(tdev, qpn), TERN_AQ_QUERY_FAULT, &cmd, &result);

	if (!err)
		*faults = result.faults;
	return err;
}

/* @requester and @responder: enum tern_hw_resume */
int tern_cmd_resume_qp(struct tern_dev *tdev, u32 qpn, u8 requester, u8 responder)
{
	struct tern_hw_aq_cmd cmd = {
		.resume_qp = {
			.qpn = cpu_to_le32(qpn),
			.requester = requester,
			.responder = responder,
		},
	};

	return tern_cmd(tern_engine_of(tdev, qpn), TERN_AQ_RESUME_QP, &cmd, NULL);
}

int tern_cmd_query_qp(struct tern_dev *tdev, u32 qpn, struct tern_hw_qp_attr *attr)
{
	struct tern_hw_aq_cmd cmd = { .object.id = cpu_to_le32(qpn) };
	struct tern_hw_aq_cqe result;
	int err = tern_cmd(tern_engine_of(tdev, qpn), TERN_AQ_QUERY_QP, &cmd, &result);

	if (!err)
		*attr = result.qp;
	return err;
}

void tern_cmd_destroy_qp(struct tern_dev *tdev, u32 qpn)
{
	tern_cmd_destroy(tdev, TERN_AQ_DESTROY_QP, qpn);
}

int tern_cmd_create_srq(struct tern_dev *tdev, const struct tern_hw_create_srq *hw, u32 *srqn)
{
	struct tern_hw_aq_cmd cmd = { .create_srq = *hw };

	return tern_cmd_create(tern_cmd_engine(tdev, hw->pdn), TERN_AQ_CREATE_SRQ, &cmd, srqn);
}

int tern_cmd_resize_srq(struct tern_dev *tdev, const struct tern_hw_resize_srq *hw)
{
	struct tern_hw_aq_cmd cmd = { .resize_srq = *hw };

	return tern_cmd(tern_cmd_engine(tdev, hw->srqn), TERN_AQ_RESIZE_SRQ, &cmd, NULL);
}

int tern_cmd_set_srq_limit(struct tern_dev *tdev, u32 srqn, u32 limit)
{
	struct tern_hw_aq_cmd cmd = {
		.set_srq_limit = {
			.srqn = cpu_to_le32(srqn),
			.limit = cpu_to_le32(limit),
		},
	};

	return tern_cmd(tern_engine_of(tdev, srqn), TERN_AQ_SET_SRQ_LIMIT, &cmd, NULL);
}

int tern_cmd_query_srq(struct tern_dev *tdev, u32 srqn, u32 *limit)
{
	struct tern_hw_aq_cmd cmd = { .object.id = cpu_to_le32(srqn) };
	struct tern_hw_aq_cqe result;
	int err = tern_cmd(tern_engine_of(tdev, srqn), TERN_AQ_QUERY_SRQ, &cmd, &result);

	if (!err)
		*limit = le32_to_cpu(result.srq.limit);
	return err;
}

void tern_cmd_destroy_srq(struct tern_dev *tdev, u32 srqn)
{
	tern_cmd_destroy(tdev, TERN_AQ_DESTROY_SRQ, srqn);
}

int tern_cmd_alloc_xrcd(struct tern_engine *engine, u32 db_page, u32 *xrcdn)
{
	struct tern_hw_aq_cmd cmd = { .object.id = cpu_to_le32(db_page) };

	return tern_cmd_create(engine, TERN_AQ_ALLOC_XRCD, &cmd, xrcdn);
}

void tern_cmd_dealloc_xrcd(struct tern_dev *tdev, u32 xrcdn)
{
	tern_cmd_destroy(tdev, TERN_AQ_DEALLOC_XRCD, xrcdn);
}

static int tern_cmd_mcast(struct tern_dev *tdev, u16 opcode, u32 qpn, const u8 *mgid)
{
	struct tern_hw_aq_cmd cmd = { .mcast.qpn = cpu_to_le32(qpn) };

	memcpy(cmd.mcast.mgid, mgid, sizeof(cmd.mcast.mgid));
	return tern_cmd(tern_engine_of(tdev, qpn), opcode, &cmd, NULL);
}

int tern_cmd_create_wq(struct tern_dev *tdev, const struct tern_hw_create_wq *hw, u32 *wqn)
{
	struct tern_hw_aq_cmd cmd = { .create_wq = *hw };

	return tern_cmd_create(tern_cmd_engine(tdev, hw->pdn), TERN_AQ_CREATE_WQ, &cmd, wqn);
}

int tern_cmd_modify_wq(struct tern_dev *tdev, u32 wqn, u8 state)
{
	struct tern_hw_aq_cmd cmd = {
		.modify_wq = {
			.wqn = cpu_to_le32(wqn),
			.state = state,
		},
	};

	return tern_cmd(tern_engine_of(tdev, wqn), TERN_AQ_MODIFY_WQ, &cmd, NULL);
}

void tern_cmd_destroy_wq(struct tern_dev *tdev, u32 wqn)
{
	tern_cmd_destroy(tdev, TERN_AQ_DESTROY_WQ, wqn);
}

int tern_cmd_create_wq_table(struct tern_engine *engine, dma_addr_t wqns, u8 log_size, u32 *id)
{
	struct tern_hw_aq_cmd cmd = {
		.create_wq_table = {
			.iova = cpu_to_le64(wqns),
			.log_size = log_size,
		},
	};

	return tern_cmd_create(engine, TERN_AQ_CREATE_WQ_TABLE, &cmd, id);
}

void tern_cmd_destroy_wq_table(struct tern_dev *tdev, u32 id)
{
	tern_cmd_destroy(tdev, TERN_AQ_DESTROY_WQ_TABLE, id);
}

int tern_cmd_create_rss_qp(struct tern_dev *tdev, const struct tern_hw_create_rss_qp *hw, u32 *qpn)
{
	struct tern_hw_aq_cmd cmd = { .create_rss_qp = *hw };

	return tern_cmd_create(tern_cmd_engine(tdev, hw->pdn), TERN_AQ_CREATE_RSS_QP, &cmd, qpn);
}

int tern_cmd_set_eth_rss(struct tern_dev *tdev, const struct tern_hw_set_eth_rss *hw)
{
	struct tern_hw_aq_cmd cmd = { .set_eth_rss = *hw };

	return tern_cmd(&tdev->engines[0], TERN_AQ_SET_ETH_RSS, &cmd, NULL);
}

/* All engines have the same. */
int tern_cmd_query_congestion(struct tern_dev *tdev, u32 param, u32 *value)
{
	struct tern_hw_aq_cmd cmd = {};
	struct tern_hw_aq_cqe result;
	int err = tern_cmd(&tdev->engines[0], TERN_AQ_QUERY_CONGESTION, &cmd, &result);

	if (!err)
		*value = le32_to_cpu(result.congestion.value[param]);
	return err;
}

int tern_cmd_set_congestion(struct tern_dev *tdev, u32 param, u32 value)
{
	struct tern_hw_aq_cmd cmd = {
		.set_congestion = {
			.param = cpu_to_le32(param),
			.value = cpu_to_le32(value),
		},
	};

	return tern_cmd_all(tdev, TERN_AQ_SET_CONGESTION, &cmd);
}

int tern_cmd_attach_mcast(struct tern_dev *tdev, u32 qpn, const u8 *mgid)
{
	return tern_cmd_mcast(tdev, TERN_AQ_ATTACH_MCAST, qpn, mgid);
}

int tern_cmd_detach_mcast(struct tern_dev *tdev, u32 qpn, const u8 *mgid)
{
	return tern_cmd_mcast(tdev, TERN_AQ_DETACH_MCAST, qpn, mgid);
}

int tern_cmd_create_flow(struct tern_dev *tdev, const struct tern_hw_create_flow *hw, u32 *id)
{
	struct tern_hw_aq_cmd cmd = { .create_flow = *hw };

	return tern_cmd_create(tern_cmd_engine(tdev, hw->qpn), TERN_AQ_CREATE_FLOW, &cmd, id);
}

void tern_cmd_destroy_flow(struct tern_dev *tdev, u32 id)
{
	tern_cmd_destroy(tdev, TERN_AQ_DESTROY_FLOW, id);
}

int tern_cmd_create_counters(struct tern_engine *engine, u32 db_page, u32 *id)
{
	struct tern_hw_aq_cmd cmd = { .object.id = cpu_to_le32(db_page) };

	return tern_cmd_create(engine, TERN_AQ_CREATE_COUNTERS, &cmd, id);
}

int tern_cmd_read_counters(struct tern_dev *tdev, u32 id, u64 *packets, u64 *bytes)
{
	struct tern_hw_aq_cmd cmd = { .object.id = cpu_to_le32(id) };
	struct tern_hw_aq_cqe result;
	int err = tern_cmd(tern_engine_of(tdev, id), TERN_AQ_READ_COUNTERS, &cmd, &result);

	if (err)
		return err;
	*packets = le64_to_cpu(result.counters.packets);
	*bytes = le64_to_cpu(result.counters.bytes);
	return 0;
}

void tern_cmd_destroy_counters(struct tern_dev *tdev, u32 id)
{
	tern_cmd_destroy(tdev, TERN_AQ_DESTROY_COUNTERS, id);
}

int tern_cmd_create_comp_counter(struct tern_engine *engine,
				 const struct tern_hw_create_comp_counter *hw, u32 *id)
{
	struct tern_hw_aq_cmd cmd = { .create_comp_counter = *hw };

	return tern_cmd_create(engine, TERN_AQ_CREATE_COMP_COUNTER, &cmd, id);
}

int tern_cmd_modify_comp_counter(struct tern_dev *tdev,
				 const struct tern_hw_modify_comp_counter *hw)
{
	struct tern_hw_aq_cmd cmd = { .modify_comp_counter = *hw };

	return tern_cmd(tern_engine_of(tdev, le32_to_cpu(hw->id)), TERN_AQ_MODIFY_COMP_COUNTER,
			&cmd, NULL);
}

int tern_cmd_attach_comp_counter(struct tern_dev *tdev,
				 const struct tern_hw_attach_comp_counter *hw)
{
	struct tern_hw_aq_cmd cmd = { .attach_comp_counter = *hw };

	return tern_cmd(tern_engine_of(tdev, le32_to_cpu(hw->qpn)), TERN_AQ_ATTACH_COMP_COUNTER,
			&cmd, NULL);
}

void tern_cmd_destroy_comp_counter(struct tern_dev *tdev, u32 id)
{
	tern_cmd_destroy(tdev, TERN_AQ_DESTROY_COMP_COUNTER, id);
}

int tern_cmd_set_gid(struct tern_dev *tdev, const struct tern_hw_set_gid *hw)
{
	struct tern_hw_aq_cmd cmd = { .set_gid = *hw };

	return tern_cmd_all(tdev, TERN_AQ_SET_GID, &cmd);
}

int tern_cmd_set_mac(struct tern_dev *tdev, const u8 *mac)
{
	struct tern_hw_aq_cmd cmd = { .set_eth.mask = cpu_to_le32(TERN_ETH_MAC) };

	ether_addr_copy(cmd.set_eth.mac, mac);
	return tern_cmd_all(tdev, TERN_AQ_SET_ETH, &cmd);
}

int tern_cmd_set_mtu(struct tern_dev *tdev, u16 mtu)
{
	struct tern_hw_aq_cmd cmd = {
		.set_eth = {
			.mask = cpu_to_le32(TERN_ETH_MTU),
			.mtu = cpu_to_le16(mtu),
		},
	};

	return tern_cmd_all(tdev, TERN_AQ_SET_ETH, &cmd);
}

int tern_cmd_set_rx_mode(struct tern_dev *tdev, u32 rx_mode)
{
	struct tern_hw_aq_cmd cmd = {
		.set_eth = {
			.mask = cpu_to_le32(TERN_ETH_RX_MODE),
			.rx_mode = cpu_to_le32(rx_mode),
		},
	};

	return tern_cmd(&tdev->engines[0], TERN_AQ_SET_ETH, &cmd, NULL);
}
