// SPDX-License-Identifier: GPL-2.0
/* The attributes of queue pairs: modify and query. */
#include <rdma/ib_addr.h>
#include <rdma/ib_verbs.h>
#include <rdma/tern-abi.h>

#include "compat.h"
#include "ib.h"

/* ---- modify --------------------------------------------------------------------------- */

/* The attributes that the card has. tern_hw.h uses the bits of the verbs. */
#define TERN_QP_MASK_HW                                                                            \
	(IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY | IB_QP_ACCESS_FLAGS |          \
	 IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_TIMEOUT |               \
	 IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_RQ_PSN | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_QKEY |  \
	 IB_QP_MIN_RNR_TIMER | IB_QP_SQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_DEST_QPN |         \
	 IB_QP_RATE_LIMIT)

static_assert(TERN_QP_MASK_HW ==
	      (TERN_QP_STATE | TERN_QP_CUR_STATE | TERN_QP_EN_SQD_ASYNC_NOTIFY |
	       TERN_QP_ACCESS_FLAGS | TERN_QP_PKEY_INDEX | TERN_QP_PORT | TERN_QP_AV |
	       TERN_QP_QKEY | TERN_QP_PATH_MTU | TERN_QP_TIMEOUT | TERN_QP_RETRY_CNT |
	       TERN_QP_RNR_RETRY | TERN_QP_RQ_PSN | TERN_QP_MAX_QP_RD_ATOMIC |
	       TERN_QP_MIN_RNR_TIMER | TERN_QP_SQ_PSN | TERN_QP_MAX_DEST_RD_ATOMIC |
	       TERN_QP_DEST_QPN | TERN_QP_RATE_LIMIT));

#define TERN_QP_ACCESS                                                                             \
	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |                \
	 IB_ACCESS_FLUSH_GLOBAL)

/* Whether @value is in range, if @mask has @bit. */
static bool tern_in_range(int mask, int bit, u32 value, u32 min, u32 max)
{
	return !(mask & bit) || (value >= min && value <= max);
}

static bool tern_qp_attr_in_range(const struct tern_dev *tdev, const struct ib_qp_attr *attr,
				  int mask)
{
	u8 rd_atomic = tdev->attr.max_rd_atomic;

	/*
	 * Rights that only regions have are no error: they have no effect on a QP. Programs pass
	 * what they pass for their regions, and cm_init_qp_init_attr() both kinds of flush.
	 */
	if (mask & IB_QP_ACCESS_FLAGS && attr->qp_access_flags & ~IB_ACCESS_SUPPORTED)
		return false;

	return tern_in_range(mask, IB_QP_PKEY_INDEX, attr->pkey_index, 0, 0) &&
	       tern_in_range(mask, IB_QP_PATH_MTU, attr->path_mtu, IB_MTU_256,
			     tern_active_mtu(tdev)) &&
	       tern_in_range(mask, IB_QP_PORT, attr->port_num, TERN_PORT, TERN_PORT) &&
	       tern_in_range(mask, IB_QP_TIMEOUT, attr->timeout, 0, 31) &&
	       tern_in_range(mask, IB_QP_RETRY_CNT, attr->retry_cnt, 0, 7) &&
	       tern_in_range(mask, IB_QP_RNR_RETRY, attr->rnr_retry, 0, 7) &&
	       tern_in_range(mask, IB_QP_MIN_RNR_TIMER, attr->min_rnr_timer, 0, 31) &&
	       tern_in_range(mask, IB_QP_RQ_PSN, attr->rq_psn, 0, 0xffffff) &&
	       tern_in_range(mask, IB_QP_SQ_PSN, attr->sq_psn, 0, 0xffffff) &&
	       tern_in_range(mask, IB_QP_DEST_QPN, attr->dest_qp_num, 0, 0xffffff) &&
	       tern_in_range(mask, IB_QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic, 0, rd_atomic) &&
	       tern_in_range(mask, IB_QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic, 0,
			     rd_atomic);
}

/* There are no alternate paths, so the state of migration is always MIGRATED. */
static bool tern_qp_attr_supported(const struct ib_qp_attr *attr, int mask)
{
	return !(mask & ~(TERN_QP_MASK_HW | IB_QP_PATH_MIG_STATE)) &&
	       tern_in_range(mask, IB_QP_PATH_MIG_STATE, attr->path_mig_state, IB_MIG_MIGRATED,
			     IB_MIG_MIGRATED);
}

/* ib_modify_qp_is_ok() allows rate limits for raw packet QPs only: hence a check of our own. */
static bool tern_rate_limit_is_ok(const struct tern_qp *qp, const struct ib_qp_attr *attr, int mask,
				  enum ib_qp_state cur, enum ib_qp_state next)
{
	if (!(mask & IB_QP_RATE_LIMIT))
		return true;
	return qp->ibqp.qp_type != IB_QPT_GSI && qp->ibqp.qp_type != IB_QPT_XRC_TGT &&
	       (cur == IB_QPS_RTR || cur == IB_QPS_RTS) && next == IB_QPS_RTS &&
	       attr->rate_limit <= TERN_MAX_RATE_LIMIT;
}

/*
 * The card may have changed the state by itself, so qp->state may be stale. The card checks every
 * transition again.
 */
static int tern_check_modify(struct tern_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_device *ibdev = qp->ibqp.device;
	enum ib_qp_state cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : cur;

	if (mask & ~(IB_QP_ATTR_STANDARD_BITS | IB_QP_RATE_LIMIT))
		return -EOPNOTSUPP;
	if (mask & IB_QP_RATE_LIMIT && !(to_tdev(ibdev)->caps & TERN_CAP_PACING))
		return -EOPNOTSUPP;
	if (!ib_modify_qp_is_ok(cur, next, qp->ibqp.qp_type, mask & ~IB_QP_RATE_LIMIT) ||
	    !tern_rate_limit_is_ok(qp, attr, mask, cur, next))
		return -EINVAL;
	if (!tern_qp_attr_supported(attr, mask))
		return -EOPNOTSUPP;
	if (!tern_qp_attr_in_range(to_tdev(ibdev), attr, mask))
		return -EINVAL;
	if (mask & IB_QP_AV && attr->ah_attr.type != RDMA_AH_ATTR_TYPE_ROCE)
		return -EINVAL;
	return 0;
}

static void tern_av_to_hw(const struct tern_qp *qp, const struct rdma_ah_attr *ah, u32 dest_qpn,
			  struct tern_hw_qp_attr *hw)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);
	u32 flow_label = grh->flow_label & 0xfffff;

	hw->sgid_index = grh->sgid_index;
	memcpy(hw->dgid, grh->dgid.raw, sizeof(hw->dgid));
	memcpy(hw->dmac, ah->roce.dmac, sizeof(hw->dmac));
	hw->traffic_class = grh->traffic_class;
	hw->hop_limit = grh->hop_limit;
	hw->flow_label = cpu_to_le32(flow_label);
	hw->udp_sport = cpu_to_le16(rdma_get_udp_sport(flow_label, qp->core.qpn, dest_qpn));
	hw->sl = rdma_ah_get_sl(ah);
}

/* Attributes that are not in @mask are zero. */
static void tern_attr_to_hw(const struct tern_qp *qp, const struct ib_qp_attr *attr, int mask,
			    const struct tern_modify_qp_cmd *cmd, struct tern_hw_qp_attr *hw)
{
	memset(hw, 0, sizeof(*hw));
	if (mask & IB_QP_STATE)
		hw->state = attr->qp_state;
	if (mask & IB_QP_CUR_STATE)
		hw->cur_state = attr->cur_qp_state;
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		hw->en_sqd_async_notify = !!attr->en_sqd_async_notify;
	if (mask & IB_QP_ACCESS_FLAGS)
		hw->access = tern_hw_access(attr->qp_access_flags & TERN_QP_ACCESS);
	if (mask & IB_QP_PKEY_INDEX)
		hw->pkey_index = cpu_to_le16(attr->pkey_index);
	if (mask & IB_QP_PORT)
		hw->port = attr->port_num;
	if (mask & IB_QP_AV)
		tern_av_to_hw(qp, &attr->ah_attr,
			      mask & IB_QP_DEST_QPN ? attr->dest_qp_num : qp->dest_qpn, hw);
	if (mask & IB_QP_PATH_MTU)
		hw->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		hw->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		hw->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		hw->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER)
		hw->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		hw->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		hw->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_RQ_PSN)
		hw->rq_psn = cpu_to_le32(attr->rq_psn);
	if (mask & IB_QP_SQ_PSN)
		hw->sq_psn = cpu_to_le32(attr->sq_psn);
	if (mask & IB_QP_DEST_QPN)
		hw->dest_qpn = cpu_to_le32(attr->dest_qp_num);
	if (mask & IB_QP_QKEY)
		hw->qkey = cpu_to_le32(attr->qkey);
	if (mask & IB_QP_RATE_LIMIT) {
		hw->rate_limit.rate = cpu_to_le32(attr->rate_limit);
		hw->rate_limit.burst = cpu_to_le32(cmd->max_burst_sz);
		hw->rate_limit.packet = cpu_to_le16(cmd->typical_pkt_sz);
	}
}

/*
 * Moving to ERR succeeds even if the card is dead, since users drain their queues so. To drain a QP
 * with an SRQ, they wait for the event that the card raises after the last receive
 * (__ib_drain_srq()).
 */
static int tern_modify_locked(struct tern_qp *qp, const struct ib_qp_attr *attr, int mask,
			      const struct tern_modify_qp_cmd *cmd)
{
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : qp->state;
	struct tern_dev *tdev = to_tdev(qp->ibqp.device);
	struct tern_hw_qp_attr hw;
	int err;

	err = tern_check_modify(qp, attr, mask);
	if (err)
		return err;

	tern_attr_to_hw(qp, attr, mask, cmd, &hw);
	err = tern_cmd_modify_qp(tdev, qp->core.qpn, mask & TERN_QP_MASK_HW, &hw);
	if (err && !(tern_is_dead(tdev) && next == IB_QPS_ERR))
		return err;

	if (next == IB_QPS_RESET && qp->kernel)
		tern_kverbs_qp_reset(qp);
	/* Pairs with the barrier of tern_qps_died(): one of the two raises the event. */
	smp_store_mb(qp->state, next);
	if (tern_is_dead(tdev))
		tern_ib_qp_died(&qp->core);
	if (mask & IB_QP_DEST_QPN)
		qp->dest_qpn = attr->dest_qp_num;
	if (mask & IB_QP_AV)
		qp->static_rate = rdma_ah_get_static_rate(&attr->ah_attr);
	return 0;
}

/* Only a rate limit has driver data. */
static int tern_modify_qp_cmd(struct ib_udata *udata, int mask, struct tern_modify_qp_cmd *cmd)
{
	int err;

	memset(cmd, 0, sizeof(*cmd));
	if (!(mask & IB_QP_RATE_LIMIT) || !udata || !udata->inlen)
		return tern_udata_no_input(udata);
	if (udata->inlen > sizeof(*cmd) &&
	    !ib_is_udata_cleared(udata, sizeof(*cmd), udata->inlen - sizeof(*cmd)))
		return -EINVAL;
	err = ib_copy_from_udata(cmd, udata, min(sizeof(*cmd), udata->inlen));
	if (err)
		return err;
	return cmd->reserved ? -EINVAL : 0;
}

int tern_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct tern_qp *qp = to_tqp(ibqp);
	struct tern_modify_qp_cmd cmd;
	int err;

	if (ibqp->rwq_ind_tbl) /* has no states */
		return -EOPNOTSUPP;
	err = tern_modify_qp_cmd(udata, mask, &cmd);
	if (err)
		return err;

	mutex_lock(&qp->lock);
	err = tern_modify_locked(qp, attr, mask, &cmd);
	mutex_unlock(&qp->lock);
	return err;
}

/* ---- query ------------------------------------------------------------------------------ */

static void tern_av_from_hw(struct ib_device *ibdev, const struct tern_hw_qp_attr *hw,
			    struct rdma_ah_attr *ah)
{
	union ib_gid dgid;

	ah->type = rdma_ah_find_type(ibdev, TERN_PORT);
	memcpy(dgid.raw, hw->dgid, sizeof(dgid.raw));
	rdma_ah_set_grh(ah, &dgid, le32_to_cpu(hw->flow_label), hw->sgid_index, hw->hop_limit,
			hw->traffic_class);
	rdma_ah_set_port_num(ah, TERN_PORT);
	rdma_ah_set_sl(ah, hw->sl);
	memcpy(ah->roce.dmac, hw->dmac, sizeof(ah->roce.dmac));
}

static void tern_attr_from_hw(struct ib_device *ibdev, const struct tern_hw_qp_attr *hw,
			      struct ib_qp_attr *attr)
{
	attr->qp_state = hw->state;
	attr->cur_qp_state = hw->state;
	attr->path_mtu = hw->path_mtu;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->rq_psn = le32_to_cpu(hw->rq_psn);
	attr->sq_psn = le32_to_cpu(hw->sq_psn);
	attr->dest_qp_num = le32_to_cpu(hw->dest_qpn);
	attr->qkey = le32_to_cpu(hw->qkey);
	attr->qp_access_flags = tern_access_from_hw(hw->access);
	attr->pkey_index = le16_to_cpu(hw->pkey_index);
	attr->en_sqd_async_notify = hw->en_sqd_async_notify;
	attr->sq_draining = hw->sq_draining;
	attr->max_rd_atomic = hw->max_rd_atomic;
	attr->max_dest_rd_atomic = hw->max_dest_rd_atomic;
	attr->min_rnr_timer = hw->min_rnr_timer;
	attr->port_num = TERN_PORT;
	attr->timeout = hw->timeout;
	attr->retry_cnt = hw->retry_cnt;
	attr->rnr_retry = hw->rnr_retry;
	attr->rate_limit = le32_to_cpu(hw->rate_limit.rate);
	tern_av_from_hw(ibdev, hw, &attr->ah_attr);
}

/*
 * ib_core queries each QP to list all QPs, even a QP that is being destroyed, and stops the list at
 * the first error. So this function reports a QP that the card no longer has as a QP in ERR without
 * other attributes.
 */
int tern_query_qp_hw(struct tern_qp *qp, struct tern_hw_qp_attr *hw)
{
	struct tern_dev *tdev = to_tdev(qp->ibqp.device);
	bool lost = true;
	int err = 0;

	if (tern_qp_lock_living(qp)) {
		err = tern_cmd_query_qp(tdev, qp->core.qpn, hw);
		mutex_unlock(&qp->lock);
		lost = err && tern_is_dead(tdev);
	}
	if (!lost)
		return err;
	*hw = (struct tern_hw_qp_attr) { .state = IB_QPS_ERR };
	return 0;
}

int tern_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init)
{
	struct tern_qp *qp = to_tqp(ibqp);
	struct tern_hw_qp_attr hw;
	int err;

	if (ibqp->rwq_ind_tbl)
		return -EOPNOTSUPP;
	err = tern_query_qp_hw(qp, &hw);
	if (err)
		return err;

	memset(attr, 0, sizeof(*attr));
	tern_attr_from_hw(ibqp->device, &hw, attr);
	attr->cap = qp->cap;
	rdma_ah_set_static_rate(&attr->ah_attr, qp->static_rate);

	*init = (struct ib_qp_init_attr) {
		.event_handler = ibqp->event_handler,
		.qp_context = ibqp->qp_context,
		.send_cq = ibqp->send_cq,
		.recv_cq = ibqp->recv_cq,
		.srq = ibqp->srq,
		.xrcd = ibqp->xrcd,
		.cap = qp->cap,
		.sq_sig_type = qp->sig_type,
		.qp_type = ibqp->qp_type,
		.create_flags = qp->create_flags,
		.port_num = TERN_PORT,
	};
	return 0;
}
