// SPDX-License-Identifier: GPL-2.0
/* RSS: tables of WQs, and QPs that spread frames over a table by a hash. */
#include <linux/dma-mapping.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>
#include <rdma/tern-abi.h>

#include "ib.h"

#define TERN_RX_HASH_FUNC_TOEPLITZ	1	/* enum ibv_rx_hash_function_flags */
#define TERN_RX_HASH_FIELDS		GENMASK(7, 0)	/* TERN_HASH_* */

/* The card reads the entries only during the command. */
static int tern_wq_table_create(struct tern_engine *engine, const __le32 *wqns, u8 log_size,
				u32 *id)
{
	size_t size = sizeof(*wqns) << log_size;
	struct device *dev = &engine->tdev->pdev->dev;
	dma_addr_t dma;
	int err;

	dma = dma_map_single(dev, (void *)wqns, size, DMA_TO_DEVICE);
	if (dma_mapping_error(dev, dma))
		return -ENOMEM;
	err = tern_cmd_create_wq_table(engine, dma, log_size, id);
	dma_unmap_single(dev, dma, size, DMA_TO_DEVICE);
	return err;
}

static int tern_create_wq_table(struct ib_rwq_ind_table *ibtable,
				struct ib_rwq_ind_table_init_attr *init, struct ib_udata *udata)
{
	u32 log_size = init->log_ind_tbl_size;
	__le32 *wqns;
	int i, err;

	if (log_size > TERN_MAX_LOG_WQ_TABLE)
		return -EINVAL;
	err = tern_udata_no_input(udata);
	if (err)
		return err;

	wqns = kcalloc(1 << log_size, sizeof(*wqns), GFP_KERNEL);
	if (!wqns)
		return -ENOMEM;
	for (i = 0; i < 1 << log_size; i++)
		wqns[i] = cpu_to_le32(to_twq(init->ind_tbl[i])->core.wqn);
	err = tern_wq_table_create(tern_engine_of_user(ibtable->device, udata), wqns, log_size,
				   &ibtable->ind_tbl_num);
	kfree(wqns);
	return err;
}

static int tern_destroy_wq_table(struct ib_rwq_ind_table *ibtable)
{
	tern_cmd_destroy_wq_table(to_tdev(ibtable->device), ibtable->ind_tbl_num);
	return 0;
}

static int tern_rss_read_cmd(struct ib_udata *udata, struct tern_create_rss_qp_cmd *cmd)
{
	int err;

	static_assert(sizeof(cmd->key) == TERN_HASH_KEY_SIZE);

	err = tern_udata_read(udata, cmd, sizeof(*cmd));
	if (err)
		return err;
	if (memchr_inv(cmd->reserved, 0, sizeof(cmd->reserved)) ||
	    cmd->key_len != TERN_HASH_KEY_SIZE)
		return -EINVAL;
	if (cmd->hash_function != TERN_RX_HASH_FUNC_TOEPLITZ ||
	    cmd->hash_fields & ~TERN_RX_HASH_FIELDS)
		return -EOPNOTSUPP;
	return 0;
}

/* An RSS QP has no queues and no states. The process learns only its number. */
int tern_rss_qp_create(struct tern_qp *qp, const struct ib_qp_init_attr *init,
		       struct ib_udata *udata)
{
	struct tern_dev *tdev = to_tdev(qp->ibqp.device);
	struct tern_create_qp_resp resp = {};
	struct tern_create_rss_qp_cmd cmd;
	struct tern_hw_create_rss_qp hw;
	int err;

	if (!(tdev->caps & TERN_CAP_RSS) || !udata || init->qp_type != IB_QPT_RAW_PACKET ||
	    init->srq || init->create_flags)
		return -EOPNOTSUPP;
	err = tern_rss_read_cmd(udata, &cmd);
	if (err)
		return err;

	/* ib_core cannot list a QP that has no states: one failed query ends the whole list. */
	rdma_restrack_no_track(&qp->ibqp.res);
	hw = (struct tern_hw_create_rss_qp) {
		.pdn = cpu_to_le32(to_tpd(qp->ibqp.pd)->pdn),
		.table = cpu_to_le32(init->rwq_ind_tbl->ind_tbl_num),
		.hash_fields = cpu_to_le32(cmd.hash_fields),
	};
	memcpy(hw.key, cmd.key, sizeof(hw.key));
	err = tern_cmd_create_rss_qp(tdev, &hw, &qp->core.qpn);
	if (err)
		return err;
	resp.qpn = qp->core.qpn;
	err = tern_udata_respond(udata, &resp, sizeof(resp));
	if (err)
		tern_cmd_destroy_qp(tdev, qp->core.qpn);
	return err;
}

const struct ib_device_ops tern_rss_ops = {
	.create_rwq_ind_table = tern_create_wq_table,
	.destroy_rwq_ind_table = tern_destroy_wq_table,

	INIT_RDMA_OBJ_SIZE(ib_rwq_ind_table, tern_wq_table, ibtable),
};
