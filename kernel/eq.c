// SPDX-License-Identifier: GPL-2.0
/*
 * Event queues and the interrupts behind them. Vector 0 brings asynchronous events and the
 * completions of admin commands; the others, if there are any, bring completion events.
 */
#include <linux/cpumask.h>
#include <linux/interrupt.h>
#include <linux/slab.h>

#include "hw.h"
#include "netdev.h"
#include "queue.h"

#define TERN_EQ_LOG_SIZE	12
#define TERN_EQ_SIZE		BIT(TERN_EQ_LOG_SIZE)

/* The next event, or NULL. The phase is read before all else of the entry. */
static const struct tern_hw_eqe *tern_eq_next(const struct tern_eq *eq)
{
	u32 index = eq->ci & (TERN_EQ_SIZE - 1);
	const struct tern_hw_eqe *eqe = tern_buf_at(&eq->buf, index * sizeof(*eqe));
	u8 phase = eq->ci & TERN_EQ_SIZE ? 0 : TERN_PHASE;

	if ((READ_ONCE(eqe->phase) & TERN_PHASE) != phase)
		return NULL;
	dma_rmb();
	return eqe;
}

/* Gives the consumed entries back; should there be new ones, the card interrupts at once. */
static void tern_eq_arm(struct tern_eq *eq)
{
	tern_db_ring(eq->tdev, TERN_DB_EQ_ARM, eq->eqn, eq->ci);
}

static void tern_eq_dispatch(struct tern_eq *eq, const struct tern_hw_eqe *eqe)
{
	u32 id = le32_to_cpu(eqe->id);

	switch (eqe->type) {
	case TERN_EVENT_COMP:
		tern_cq_completed(eq->tdev, id);
		break;
	case TERN_EVENT_CQ_ERR:
		tern_cq_failed(eq->tdev, id);
		break;
	case TERN_EVENT_QP_FATAL:
	case TERN_EVENT_QP_REQ_ERR:
	case TERN_EVENT_QP_ACCESS_ERR:
	case TERN_EVENT_COMM_EST:
	case TERN_EVENT_SQ_DRAINED:
	case TERN_EVENT_LAST_WQE:
		tern_qp_event(eq->tdev, id, eqe->type);
		break;
	case TERN_EVENT_PAGE_FAULT:
		tern_qp_page_fault(eq->tdev, id);
		break;
	case TERN_EVENT_SRQ_LIMIT:
	case TERN_EVENT_SRQ_ERR:
		tern_srq_event(eq->tdev, id, eqe->type);
		break;
	case TERN_EVENT_WQ_FATAL:
		tern_wq_event(eq->tdev, id, eqe->type);
		break;
	case TERN_EVENT_LINK:
		tern_netdev_update_link(eq->tdev);
		break;
	default:
		dev_dbg(&eq->tdev->pdev->dev, "unknown event %u\n", eqe->type);
	}
}

/*
 * At most half a ring at a time, so that the card never runs out of free entries because we
 * did not say what we have consumed.
 */
static unsigned int tern_eq_consume(struct tern_eq *eq)
{
	const struct tern_hw_eqe *eqe;
	unsigned int done = 0;

	while (done < TERN_EQ_SIZE / 2 && (eqe = tern_eq_next(eq))) {
		tern_eq_dispatch(eq, eqe);
		eq->ci++;
		done++;
	}
	return done;
}

static irqreturn_t tern_eq_interrupt(int irq, void *data)
{
	struct tern_eq *eq = data;

	if (eq->vector == 0)
		tern_aq_reap(eq->tdev);
	/* An interrupt without events was for admin completions, or is late: still armed. */
	if (tern_eq_consume(eq))
		tern_eq_arm(eq);
	return IRQ_HANDLED;
}

static int tern_eq_request_irq(struct tern_dev *tdev, struct tern_eq *eq)
{
	unsigned int cpu = cpumask_local_spread(eq->vector, dev_to_node(&tdev->pdev->dev));
	int err;

	snprintf(eq->name, sizeof(eq->name), "tern%u@%s", eq->vector, pci_name(tdev->pdev));
	err = request_irq(eq->irq, tern_eq_interrupt, 0, eq->name, eq);
	if (err)
		return err;
	irq_set_affinity_and_hint(eq->irq, cpumask_of(cpu));
	return 0;
}

static int tern_eq_init(struct tern_dev *tdev, struct tern_eq *eq, u16 vector)
{
	struct tern_create_eq_params params = {
		.vector = vector,
		.log_size = TERN_EQ_LOG_SIZE,
	};
	int err;

	eq->tdev = tdev;
	eq->vector = vector;
	eq->irq = pci_irq_vector(tdev->pdev, vector);

	err = tern_buf_init(tdev, &eq->buf, TERN_EQ_SIZE * sizeof(struct tern_hw_eqe), GFP_KERNEL);
	if (err)
		return err;

	tern_table_describe(&eq->buf.table, 0, &params.pages);
	err = tern_cmd_create_eq(tdev, &params, &eq->eqn);
	if (err)
		goto err_buf;

	err = tern_eq_request_irq(tdev, eq);
	if (err)
		goto err_eq;

	tern_eq_arm(eq);
	return 0;

err_eq:
	tern_cmd_destroy_eq(tdev, eq->eqn);
err_buf:
	tern_buf_exit(tdev, &eq->buf);
	return err;
}

static void tern_eq_exit(struct tern_dev *tdev, struct tern_eq *eq)
{
	irq_update_affinity_hint(eq->irq, NULL);
	free_irq(eq->irq, eq);
	tern_cmd_destroy_eq(tdev, eq->eqn);
	tern_buf_exit(tdev, &eq->buf);
}

/* One vector for each CPU and one more, as far as the card and the system have them. */
static int tern_eqs_alloc_vectors(struct tern_dev *tdev)
{
	unsigned int max = tern_reg_read(tdev, TERN_REG_VECTORS);

	max = clamp(max, 1U, num_online_cpus() + 1);
	return pci_alloc_irq_vectors(tdev->pdev, 1, max, PCI_IRQ_MSIX);
}

/* Makes the event queues and lets admin completions come by interrupt. */
int tern_eqs_init(struct tern_dev *tdev)
{
	struct tern_eqs *eqs = &tdev->eqs;
	int vectors = tern_eqs_alloc_vectors(tdev);
	int err;

	if (vectors < 0)
		return vectors;

	eqs->count = 0;
	eqs->eq = kcalloc(vectors, sizeof(*eqs->eq), GFP_KERNEL);
	if (!eqs->eq) {
		err = -ENOMEM;
		goto err_vectors;
	}

	while (eqs->count < vectors) {
		err = tern_eq_init(tdev, &eqs->eq[eqs->count], eqs->count);
		if (err)
			goto err_eqs;
		eqs->count++;
	}
	tern_aq_set_irq(tdev, true);
	return 0;

err_eqs:
	while (eqs->count)
		tern_eq_exit(tdev, &eqs->eq[--eqs->count]);
	kfree(eqs->eq);
err_vectors:
	pci_free_irq_vectors(tdev->pdev);
	return err;
}

void tern_eqs_exit(struct tern_dev *tdev)
{
	struct tern_eqs *eqs = &tdev->eqs;

	tern_aq_set_irq(tdev, false);
	while (eqs->count)
		tern_eq_exit(tdev, &eqs->eq[--eqs->count]);
	kfree(eqs->eq);
	pci_free_irq_vectors(tdev->pdev);
}

unsigned int tern_eqs_comp_vectors(const struct tern_dev *tdev)
{
	return max(tdev->eqs.count - 1, 1U);
}

struct tern_eq *tern_eq_of_comp_vector(struct tern_dev *tdev, unsigned int comp_vector)
{
	const struct tern_eqs *eqs = &tdev->eqs;

	return &eqs->eq[eqs->count == 1 ? 0 : 1 + comp_vector % (eqs->count - 1)];
}

/* Waits for the handlers that may have looked up an object of @eq (NULL for async events only). */
void tern_eqs_synchronize(struct tern_dev *tdev, const struct tern_eq *eq)
{
	synchronize_irq(tdev->eqs.eq[0].irq);
	if (eq)
		synchronize_irq(eq->irq);
}
