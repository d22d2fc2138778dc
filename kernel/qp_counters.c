// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of chosen QPs (rdma statistic qp). A counter of ib_core is a set of counters in each
 * engine that has one of its QPs. ib_core adds these counters to those of the port, so the port's
 * own are what the card counts for QPs without a set.
 */
#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>

#include "ib.h"

struct tern_qp_counter {
	u32 sets[TERN_MAX_ENGINES];	/* by engine; 0: none yet */
};

/*
 * Returns the entry of counter->id, or a new entry, or an ERR_PTR. The caller holds counter->lock.
 * Some versions of ib_core keep the counter in a table of their own, under the same id, until after
 * counter_dealloc(). So the driver allocates ids cyclically and does not reuse an id soon.
 */
static struct tern_qp_counter *tern_qp_counter_get(struct tern_ib *ib,
						   struct rdma_counter *counter)
{
	struct tern_qp_counter *qc;
	int err;

	if (counter->id)
		return xa_load(&ib->qp_counters, counter->id);

	qc = kzalloc(sizeof(*qc), GFP_KERNEL);
	if (!qc)
		return ERR_PTR(-ENOMEM);
	err = xa_alloc_cyclic(&ib->qp_counters, &counter->id, qc, xa_limit_31b,
			      &ib->next_qp_counter, GFP_KERNEL);
	if (err < 0) {
		kfree(qc);
		return ERR_PTR(err);
	}
	return qc;
}

/* Takes the entry of the counter away. The caller holds counter->lock, as do those who read it. */
static struct tern_qp_counter *tern_qp_counter_detach_locked(struct tern_ib *ib,
							     struct rdma_counter *counter)
{
	struct tern_qp_counter *qc = xa_erase(&ib->qp_counters, counter->id);

	counter->id = 0;
	return qc;
}

static void tern_qp_counter_free(struct tern_dev *tdev, struct tern_qp_counter *qc)
{
	u32 i;

	for (i = 0; i < tdev->num_engines; i++)
		if (qc->sets[i])
			tern_cmd_destroy_stats(tdev, qc->sets[i]);
	kfree(qc);
}

/* ib_core may have found, by its number, a QP that another thread is destroying. */
static int tern_qp_bind_stats(struct tern_dev *tdev, struct tern_qp *qp, u32 set)
{
	int err;

	if (!tern_qp_lock_living(qp))
		return -ENOENT;
	err = tern_cmd_bind_stats(tdev, qp->core.qpn, set);
	mutex_unlock(&qp->lock);
	return err;
}

static int tern_qp_counter_bind(struct tern_dev *tdev, struct tern_qp_counter *qc,
				struct tern_qp *qp)
{
	struct tern_engine *engine = tern_engine_of(tdev, qp->core.qpn);
	u32 *set = &qc->sets[engine - tdev->engines];
	int err = 0;

	if (!*set)
		err = tern_cmd_create_stats(engine, set);
	return err ?: tern_qp_bind_stats(tdev, qp, *set);
}

static int tern_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp)
{
	struct tern_ib *ib = to_tib(ibqp->device);
	bool is_new = !counter->id;
	struct tern_qp_counter *qc = tern_qp_counter_get(ib, counter);
	int err;

	if (IS_ERR(qc))
		return PTR_ERR(qc);
	err = tern_qp_counter_bind(ib->tdev, qc, to_tqp(ibqp));
	if (!err)
		ibqp->counter = counter;
	else if (is_new) /* ib_core does not release a counter that never had a QP. */
		tern_qp_counter_free(ib->tdev, tern_qp_counter_detach_locked(ib, counter));
	return err;
}

/* Ignores an error of the command: the card is dead then and does not count any more. */
static int tern_counter_unbind_qp(struct ib_qp *ibqp)
{
	tern_qp_bind_stats(to_tdev(ibqp->device), to_tqp(ibqp), 0);
	ibqp->counter = NULL;
	return 0;
}

#ifdef TERN_HAVE_COUNTER_PORT
/* ib_core allocates a counter together with the driver's part, which is empty here. */
struct tern_counter {
	struct rdma_counter counter;
};

/* ib_core calls this function without a check for NULL. */
static void tern_counter_init(struct rdma_counter *counter)
{
}

static int tern_counter_bind_port(struct rdma_counter *counter, struct ib_qp *ibqp, u32 port)
{
	return tern_counter_bind_qp(counter, ibqp);
}

static int tern_counter_unbind_port(struct ib_qp *ibqp, u32 port)
{
	return tern_counter_unbind_qp(ibqp);
}
#else
#define tern_counter_bind_port tern_counter_bind_qp
#define tern_counter_unbind_port tern_counter_unbind_qp
#endif

/* ib_core does not hold the lock here, and some versions may still find the counter to read it. */
static int tern_counter_dealloc(struct rdma_counter *counter)
{
	struct tern_ib *ib = to_tib(counter->device);
	struct tern_qp_counter *qc;

	mutex_lock(&counter->lock);
	qc = tern_qp_counter_detach_locked(ib, counter);
	mutex_unlock(&counter->lock);
	if (qc)
		tern_qp_counter_free(ib->tdev, qc);
	return 0;
}

static struct rdma_hw_stats *tern_counter_alloc_stats(struct rdma_counter *counter)
{
	return tern_port_stats_alloc();
}

static int tern_counter_update_stats(struct rdma_counter *counter)
{
	struct tern_ib *ib = to_tib(counter->device);
	struct tern_qp_counter *qc = xa_load(&ib->qp_counters, counter->id);
	u64 values[TERN_STAT_COUNT] = {};
	int err = 0;
	u32 i;

	if (!qc)
		return -ENOENT;
	for (i = 0; !err && i < ib->tdev->num_engines; i++)
		if (qc->sets[i])
			err = tern_stats_add(&ib->tdev->engines[i], qc->sets[i], values);
	if (!err)
		tern_port_stats_fill(counter->stats, values);
	return err;
}

const struct ib_device_ops tern_qp_counter_ops = {
	.counter_bind_qp = tern_counter_bind_port,
	.counter_unbind_qp = tern_counter_unbind_port,
	.counter_dealloc = tern_counter_dealloc,
	.counter_alloc_stats = tern_counter_alloc_stats,
	.counter_update_stats = tern_counter_update_stats,
#ifdef TERN_HAVE_COUNTER_PORT
	.counter_init = tern_counter_init,

	INIT_RDMA_OBJ_SIZE(rdma_counter, tern_counter, counter),
#endif
};
