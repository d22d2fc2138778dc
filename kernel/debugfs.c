// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/tern/DEVICE: the indices of queues as card and host see them, the admin
 * commands under way, and the parameters of congestion control. Only the file QPs and these
 * parameters query the card, so the other files work while the card does not answer.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "aq.h"
#include "cmd.h"
#include "eq.h"
#include "main.h"
#include "names.h"
#include "object.h"
#include "tern.h"

static struct dentry *tern_debugfs_root;

/* ---- the files ------------------------------------------------------------------------ */

/* Prints QPNs, PSNs and free-running indices in hex. Fields that a QP does not have are zero. */
static void tern_show_qp(struct seq_file *file, struct tern_dev *tdev, u32 qpn)
{
	struct tern_hw_qp_attr attr = {};
	struct tern_hw_faults faults = {};
	struct tern_qp_view view = {};
	bool asked = !tern_cmd_query_qp(tdev, qpn, &attr);

	tern_qp_core_view(tdev, qpn, &view);
	if (tdev->caps & TERN_CAP_ODP)
		tern_cmd_query_fault(tdev, qpn, &faults);
	seq_printf(file, "%06x %-7s %8u %8x %8x %8u %8x %6x %6x %8x %s%s\n", qpn,
		   asked ? tern_qp_state_name(attr.state) : "-", view.sq_blocks, view.sq_pi,
		   view.sq_event, view.rq_wqes, view.rq_pi, le32_to_cpu(attr.sq_psn),
		   le32_to_cpu(attr.rq_psn), le32_to_cpu(attr.dest_qpn),
		   faults.requester.length ? "requester " : "",
		   faults.responder.length ? "responder" : "");
}

/*
 * There may be many QPs and CQs, so a file of them is read line by line: a read ends early if its
 * process is killed, and makes at most one line that does not fit and is made again. Position 0 is
 * the header, and object N is at position N + 1.
 */
static void *tern_objects_start(struct xarray *objects, loff_t *pos)
{
	unsigned long number = *pos - 1;

	if (!*pos)
		return pos;
	if (!xa_find(objects, &number, ULONG_MAX, XA_PRESENT))
		return NULL;
	*pos = number + 1;
	return pos;
}

static void *tern_objects_next(struct xarray *objects, loff_t *pos)
{
	++*pos;
	return tern_objects_start(objects, pos);
}

static void tern_objects_stop(struct seq_file *file, void *pos)
{
}

static void *tern_qps_start(struct seq_file *file, loff_t *pos)
{
	struct tern_dev *tdev = file->private;

	return tern_objects_start(&tdev->qps, pos);
}

static void *tern_qps_next(struct seq_file *file, void *at, loff_t *pos)
{
	struct tern_dev *tdev = file->private;

	return tern_objects_next(&tdev->qps, pos);
}

static int tern_qps_show(struct seq_file *file, void *at)
{
	loff_t pos = *(loff_t *)at;

	if (pos)
		tern_show_qp(file, file->private, pos - 1);
	else
		seq_puts(file, "qpn    state    sq_size    sq_pi sq_event  rq_size    rq_pi sq_psn rq_psn dest_qpn waits_for_pages\n");
	return 0;
}

static const struct seq_operations tern_qps_sops = {
	.start = tern_qps_start,
	.next = tern_qps_next,
	.stop = tern_objects_stop,
	.show = tern_qps_show,
};
DEFINE_SEQ_ATTRIBUTE(tern_qps);

static void *tern_cqs_start(struct seq_file *file, loff_t *pos)
{
	struct tern_dev *tdev = file->private;

	return tern_objects_start(&tdev->cqs, pos);
}

static void *tern_cqs_next(struct seq_file *file, void *at, loff_t *pos)
{
	struct tern_dev *tdev = file->private;

	return tern_objects_next(&tdev->cqs, pos);
}

static int tern_cqs_show(struct seq_file *file, void *at)
{
	struct tern_dev *tdev = file->private;
	loff_t pos = *(loff_t *)at;
	struct tern_cq_view view;
	u32 cqn = pos - 1;

	if (!pos)
		seq_puts(file, "cqn        size       ci       pi   eqn\n");
	else if (tern_cq_core_view(tdev, cqn, &view))
		seq_printf(file, "%06x %8u %8x %8x %5x\n", cqn, view.cqes, view.ci, view.pi,
			   view.eqn);
	return 0;
}

static const struct seq_operations tern_cqs_sops = {
	.start = tern_cqs_start,
	.next = tern_cqs_next,
	.stop = tern_objects_stop,
	.show = tern_cqs_show,
};
DEFINE_SEQ_ATTRIBUTE(tern_cqs);

static int tern_eqs_show(struct seq_file *file, void *unused)
{
	struct tern_dev *tdev = file->private;
	u32 i, vector;

	seq_puts(file, "eqn    vector irq      ci       pi\n");
	for (i = 0; i < tdev->num_engines; i++) {
		for (vector = 0; vector < tdev->num_vectors; vector++) {
			const struct tern_eq *eq = &tdev->engines[i].eqs[vector];
			u32 ci = READ_ONCE(eq->ci);

			seq_printf(file, "%06x %6u %3d %7x %8x\n", eq->eqn, vector,
				   eq->vector->irq, ci, ci + tern_eq_pending(eq));
		}
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(tern_eqs);

static int tern_commands_show(struct seq_file *file, void *unused)
{
	struct tern_aq_command commands[TERN_AQ_SIZE];
	struct tern_dev *tdev = file->private;
	u32 i, n, count;

	seq_puts(file, "engine id command          under way for\n");
	for (i = 0; i < tdev->num_engines; i++) {
		count = tern_aq_list(&tdev->engines[i], commands);
		for (n = 0; n < count; n++)
			seq_printf(file, "%6u %2u %-16s %lld us\n", i, commands[n].id,
				   tern_aq_op_name(commands[n].opcode), commands[n].usecs);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(tern_commands);

/* ---- cc_params: congestion control, as mlx5 shows it ---------------------------------------- */

struct tern_cc_param {
	struct tern_dev *tdev;
	u32 param;		/* enum tern_hw_congestion_param */
};

static int tern_cc_param_get(void *data, u64 *value)
{
	struct tern_cc_param *file = data;
	u32 now = 0;
	int err = tern_cmd_query_congestion(file->tdev, file->param, &now);

	*value = now;
	return err;
}

static int tern_cc_param_set(void *data, u64 value)
{
	struct tern_cc_param *file = data;
	int err;

	if (value > U32_MAX)
		return -EINVAL;
	err = tern_cmd_set_congestion(file->tdev, file->param, value);
	/* mlx5 does the same: a priority that is set is used. */
	if (!err && file->param == TERN_CC_NP_CNP_PRIO)
		err = tern_cmd_set_congestion(file->tdev, TERN_CC_NP_CNP_PRIO_MODE, 0);
	return err;
}
DEFINE_DEBUGFS_ATTRIBUTE(tern_cc_param_fops, tern_cc_param_get, tern_cc_param_set, "%llu\n");

static void tern_cc_params_add(struct tern_dev *tdev)
{
	struct tern_cc_param *files = tdev->cc_params;
	struct dentry *folder;
	u32 i;

	if (!files)
		files = devm_kcalloc(&tdev->pdev->dev, TERN_CC_COUNT, sizeof(*files), GFP_KERNEL);
	if (!files)
		return;
	tdev->cc_params = files;
	folder = debugfs_create_dir("cc_params", tdev->debugfs);
	for (i = 0; i < TERN_CC_COUNT; i++) {
		files[i] = (struct tern_cc_param) { .tdev = tdev, .param = i };
		debugfs_create_file(tern_congestion_param_name(i), 0600, folder, &files[i],
				    &tern_cc_param_fops);
	}
}

/* ---- the folders ------------------------------------------------------------------------ */

void tern_debugfs_add(struct tern_dev *tdev)
{
	struct dentry *folder = debugfs_create_dir(pci_name(tdev->pdev), tern_debugfs_root);

	tdev->debugfs = folder;
	debugfs_create_file("QPs", 0400, folder, tdev, &tern_qps_fops);
	debugfs_create_file("CQs", 0400, folder, tdev, &tern_cqs_fops);
	debugfs_create_file("EQs", 0400, folder, tdev, &tern_eqs_fops);
	debugfs_create_file("commands", 0400, folder, tdev, &tern_commands_fops);
	if (tdev->caps & TERN_CAP_CONGESTION)
		tern_cc_params_add(tdev);
}

/* Waits for readers. */
void tern_debugfs_remove(struct tern_dev *tdev)
{
	debugfs_remove_recursive(tdev->debugfs);
}

void tern_debugfs_init(void)
{
	tern_debugfs_root = debugfs_create_dir(TERN_DRV_NAME, NULL);
}

void tern_debugfs_exit(void)
{
	debugfs_remove_recursive(tern_debugfs_root);
}
