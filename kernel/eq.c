// SPDX-License-Identifier: GPL-2.0
/*
 * Event queues and their interrupts. Vector 0 is for asynchronous events and for completions of
 * admin commands, the others, if any, for completion events. All engines raise the same vectors,
 * so a handler serves one queue of each engine.
 */
#include <linux/cpumask.h>
#include <linux/interrupt.h>
#include <linux/slab.h>

#include "aq.h"
#include "cmd.h"
#include "eq.h"
#include "hw.h"
#include "ring.h"
#include "trace.h"

#define TERN_EQ_LOG_SIZE	12
#define TERN_EQ_SIZE		BIT(TERN_EQ_LOG_SIZE)

/* The next event, or NULL. Reads the phase before the rest of the entry. */
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

/* Publishes the consumer index and arms. If there are new events, the interrupt comes at once. */
static void tern_eq_arm(struct tern_eq *eq)
{
	tern_db_ring(eq->tdev, TERN_DB_EQ_ARM, eq->eqn, eq->ci);
}

static void tern_eq_dispatch(struct tern_eq *eq, const struct tern_hw_eqe *eqe)
{
	struct tern_dev *tdev = eq->tdev;
	u8 type = READ_ONCE(eqe->type);
	u32 num = le32_to_cpu(READ_ONCE(eqe->id));

	trace_tern_event(tdev, eq->eqn, type, num);
	if (type < TERN_EVENT_TYPES && tdev->upcalls->event[type])
		tdev->upcalls->event[type](tdev, num, type);
}

/*
 * Consumes at most half a ring, so that the consumer index is published before the card runs out
 * of free entries.
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
	const struct tern_vector *vector = data;
	struct tern_dev *tdev = vector->tdev;
	u32 i;

	if (vector->index == 0)
		tern_aqs_reap(tdev);
	for (i = 0; i < tdev->num_engines; i++) {
		struct tern_eq *eq = &tdev->engines[i].eqs[vector->index];

		/* A queue without events is still armed. */
		if (tern_eq_consume(eq))
			tern_eq_arm(eq);
	}
	return IRQ_HANDLED;
}

/* ---- the queues of an engine ------------------------------------------------------- */

static int tern_eq_init(struct tern_engine *engine, struct tern_eq *eq,
			const struct tern_vector *vector)
{
	struct tern_hw_create_eq hw = {
		.vector = cpu_to_le32(vector->index),
		.log_size = TERN_EQ_LOG_SIZE,
	};
	struct tern_dev *tdev = engine->tdev;
	int err;

	eq->tdev = tdev;
	eq->vector = vector;
	err = tern_buf_init(tdev, &eq->buf, TERN_EQ_SIZE * sizeof(struct tern_hw_eqe), GFP_KERNEL);
	if (err)
		return err;

	tern_table_describe(&eq->buf.table, 0, &hw.pages);
	err = tern_cmd_create_eq(engine, &hw, &eq->eqn);
	if (err)
		tern_buf_exit(tdev, &eq->buf);
	return err;
}

static void tern_eq_exit(struct tern_eq *eq)
{
	tern_cmd_destroy_eq(eq->tdev, eq->eqn);
	tern_buf_exit(eq->tdev, &eq->buf);
}

/* Frees the first @count queues of @engine. */
static void tern_engine_free_eqs(struct tern_engine *engine, unsigned int count)
{
	while (count)
		tern_eq_exit(&engine->eqs[--count]);
	kfree(engine->eqs);
}

static int tern_engine_make_eqs(struct tern_engine *engine)
{
	const struct tern_dev *tdev = engine->tdev;
	unsigned int i;
	int err;

	engine->eqs = kcalloc(tdev->num_vectors, sizeof(*engine->eqs), GFP_KERNEL);
	if (!engine->eqs)
		return -ENOMEM;
	for (i = 0; i < tdev->num_vectors; i++) {
		err = tern_eq_init(engine, &engine->eqs[i], &tdev->vectors[i]);
		if (err) {
			tern_engine_free_eqs(engine, i);
			return err;
		}
	}
	return 0;
}

/* ---- vectors ------------------------------------------------------------------------- */

/* Allocates vector 0 and one per CPU, or as many as card and system have. */
static int tern_vectors_alloc(struct tern_dev *tdev)
{
	unsigned int max = tern_reg_read(&tdev->engines[0], TERN_REG_VECTORS);
	int i, count;

	max = clamp(max, 1U, num_online_cpus() + 1);
	count = pci_alloc_irq_vectors(tdev->pdev, 1, max, PCI_IRQ_MSIX);
	if (count < 0)
		return count;

	tdev->num_vectors = count;
	tdev->vectors = kcalloc(count, sizeof(*tdev->vectors), GFP_KERNEL);
	if (!tdev->vectors) {
		pci_free_irq_vectors(tdev->pdev);
		return -ENOMEM;
	}
	for (i = 0; i < count; i++) {
		tdev->vectors[i].tdev = tdev;
		tdev->vectors[i].index = i;
		tdev->vectors[i].irq = pci_irq_vector(tdev->pdev, i);
	}
	return 0;
}

static void tern_vectors_free(struct tern_dev *tdev)
{
	kfree(tdev->vectors);
	pci_free_irq_vectors(tdev->pdev);
}

static int tern_vector_request(struct tern_vector *vector)
{
	struct pci_dev *pdev = vector->tdev->pdev;
	unsigned int cpu = cpumask_local_spread(vector->index, dev_to_node(&pdev->dev));
	int err;

	snprintf(vector->name, sizeof(vector->name), "tern%u@%s", vector->index, pci_name(pdev));
	err = request_irq(vector->irq, tern_eq_interrupt, 0, vector->name, vector);
	if (err)
		return err;
	irq_set_affinity_and_hint(vector->irq, cpumask_of(cpu));
	return 0;
}

/* Releases the first @count vectors. */
static void tern_vectors_release(struct tern_dev *tdev, unsigned int count)
{
	while (count) {
		struct tern_vector *vector = &tdev->vectors[--count];

		irq_update_affinity_hint(vector->irq, NULL);
		free_irq(vector->irq, vector);
	}
}

static int tern_vectors_request(struct tern_dev *tdev)
{
	unsigned int i;
	int err;

	for (i = 0; i < tdev->num_vectors; i++) {
		err = tern_vector_request(&tdev->vectors[i]);
		if (err) {
			tern_vectors_release(tdev, i);
			return err;
		}
	}
	return 0;
}

/* ---- all of them --------------------------------------------------------------------- */

static void tern_eqs_arm(struct tern_dev *tdev)
{
	unsigned int i, vector;

	for (i = 0; i < tdev->num_engines; i++)
		for (vector = 0; vector < tdev->num_vectors; vector++)
			tern_eq_arm(&tdev->engines[i].eqs[vector]);
}

/* Creates the event queues, then lets admin completions raise interrupts. */
int tern_eqs_init(struct tern_dev *tdev)
{
	u32 count;
	int err;

	err = tern_vectors_alloc(tdev);
	if (err)
		return err;
	for (count = 0; count < tdev->num_engines; count++) {
		err = tern_engine_make_eqs(&tdev->engines[count]);
		if (err)
			goto err_eqs;
	}
	err = tern_vectors_request(tdev);
	if (err)
		goto err_eqs;

	tern_eqs_arm(tdev);
	tern_aqs_set_irq(tdev, true);
	return 0;

err_eqs:
	while (count)
		tern_engine_free_eqs(&tdev->engines[--count], tdev->num_vectors);
	tern_vectors_free(tdev);
	return err;
}

void tern_eqs_exit(struct tern_dev *tdev)
{
	u32 i;

	tern_aqs_set_irq(tdev, false);
	tern_vectors_release(tdev, tdev->num_vectors);
	for (i = 0; i < tdev->num_engines; i++)
		tern_engine_free_eqs(&tdev->engines[i], tdev->num_vectors);
	tern_vectors_free(tdev);
}

unsigned int tern_eqs_comp_vectors(const struct tern_dev *tdev)
{
	return max(tdev->num_vectors - 1, 1U);
}

struct tern_eq *tern_eq_of_comp_vector(struct tern_engine *engine, unsigned int comp_vector)
{
	unsigned int count = engine->tdev->num_vectors;

	return &engine->eqs[count == 1 ? 0 : 1 + comp_vector % (count - 1)];
}

/* The events that no handler has seen yet. */
u32 tern_eq_pending(const struct tern_eq *eq)
{
	return tern_ring_pending(&eq->buf, TERN_EQ_LOG_SIZE, sizeof(struct tern_hw_eqe),
				 READ_ONCE(eq->ci));
}

/*
 * Waits for handlers that may have found an object which is no longer in its table. All of them,
 * because a card that does not keep to the rules may write any event to any queue.
 */
void tern_eqs_synchronize(struct tern_dev *tdev)
{
	unsigned int i;

	for (i = 0; i < tdev->num_vectors; i++)
		synchronize_irq(tdev->vectors[i].irq);
}
