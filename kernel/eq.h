/* SPDX-License-Identifier: GPL-2.0 */
/* Event queues. Each engine has one per interrupt vector. */
#ifndef TERN_EQ_H
#define TERN_EQ_H

#include "pages.h"

struct tern_dev;
struct tern_engine;

struct tern_vector {
	struct tern_dev *tdev;
	u16 index;
	int irq;
	char name[32];
};

struct tern_eq {
	struct tern_dev *tdev;
	const struct tern_vector *vector;
	struct tern_buf buf;
	u32 eqn;
	u32 ci;
};

int tern_eqs_init(struct tern_dev *tdev);
void tern_eqs_exit(struct tern_dev *tdev);
unsigned int tern_eqs_comp_vectors(const struct tern_dev *tdev);
struct tern_eq *tern_eq_of_comp_vector(struct tern_engine *engine, unsigned int comp_vector);
u32 tern_eq_pending(const struct tern_eq *eq);
void tern_eqs_synchronize(struct tern_dev *tdev);

#endif
