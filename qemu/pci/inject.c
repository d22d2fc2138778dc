/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults that people inject, for programs and drivers to be tried with: the commands tern-fail-qp,
 * tern-slow-qp, tern-hold-commands, tern-refuse-command and tern-falsify of QMP.
 */
#include "qemu/osdep.h"

#include "monitor/monitor-internal.h"
#include "qapi/error.h"

#include "qemu/pci/device.h"
#include "tern/tern_hw.h"

enum { MAX_QPN = 0xffffff };

/* The number @name of @arguments, at most @most. */
static bool take_number(const QDict *arguments, const char *name, uint32_t most, uint32_t *number,
                        Error **errp)
{
	const QNum *value = qobject_to(QNum, qdict_get(arguments, name));
	int64_t wide;

	if (!value || !qnum_get_try_int(value, &wide) || wide < 0 || wide > most) {
		error_setg(errp, "%s: a number from 0 to %u is needed", name, most);
		return false;
	}
	*number = wide;
	return true;
}

/* A new reference to the card that "path" names; NULL, and sets @errp, if nothing can happen to
 * it now. */
static TernDevice *take_card(const QDict *arguments, Error **errp)
{
	const char *path = qdict_get_try_str(arguments, "path");
	Object *card = path ? object_resolve_path_type(path, TYPE_TERN, NULL) : NULL;

	if (!card || !DEVICE(card)->realized) {
		error_setg(errp, "path: the path of a card is needed");
		return NULL;
	}
	/* The event would be written to the memory of a stopped machine. */
	if (!runstate_is_running()) {
		error_setg(errp, "the machine is stopped");
		return NULL;
	}
	return TERN(object_ref(card));
}

static bool have_count(const QDict *arguments, size_t count, Error **errp)
{
	if (qdict_size(arguments) == count)
		return true;
	error_setg(errp, "%zu arguments are needed", count);
	return false;
}

static void fail_qp(QDict *arguments, QObject **result, Error **errp)
{
	TernDevice *tern;
	uint32_t qpn;
	bool done = false;

	if (!have_count(arguments, 2, errp) ||
	    !take_number(arguments, "qpn", MAX_QPN, &qpn, errp))
		return;
	tern = take_card(arguments, errp);
	if (!tern)
		return;
	for_each_engine(e, tern)
		done = done || tern_engine_fail_qp(e->engine, qpn);
	if (!done)
		error_setg(errp, "the card has no QP %u that could fail", qpn);
	object_unref(OBJECT(tern));
}

static void slow_qp(QDict *arguments, QObject **result, Error **errp)
{
	TernDevice *tern;
	uint32_t qpn, rate;
	bool done = false;

	if (!have_count(arguments, 3, errp) ||
	    !take_number(arguments, "qpn", MAX_QPN, &qpn, errp) ||
	    !take_number(arguments, "rate", TERN_MAX_RATE_LIMIT, &rate, errp))
		return;
	tern = take_card(arguments, errp);
	if (!tern)
		return;
	for_each_engine(e, tern)
		done = done || tern_engine_slow_qp(e->engine, qpn, rate);
	if (!done)
		error_setg(errp, "the card has no QP %u", qpn);
	object_unref(OBJECT(tern));
}

static void hold_commands(QDict *arguments, QObject **result, Error **errp)
{
	const QObject *hold = qdict_get(arguments, "hold");
	TernDevice *tern;
	uint32_t answers;

	if (!have_count(arguments, 3, errp) ||
	    !take_number(arguments, "answers", UINT32_MAX, &answers, errp))
		return;
	if (!hold || qobject_type(hold) != QTYPE_QBOOL) {
		error_setg(errp, "hold: true or false is needed");
		return;
	}
	tern = take_card(arguments, errp);
	if (!tern)
		return;
	for_each_engine(e, tern)
		tern_engine_hold_commands(e->engine, qdict_get_bool(arguments, "hold"), answers);
	object_unref(OBJECT(tern));
}

static void refuse_command(QDict *arguments, QObject **result, Error **errp)
{
	TernDevice *tern;
	uint32_t nth;

	if (!have_count(arguments, 2, errp) ||
	    !take_number(arguments, "nth", UINT32_MAX, &nth, errp))
		return;
	tern = take_card(arguments, errp);
	if (!tern)
		return;
	for_each_engine(e, tern)
		tern_engine_refuse_command(e->engine, nth);
	object_unref(OBJECT(tern));
}

static void falsify(QDict *arguments, QObject **result, Error **errp)
{
	TernDevice *tern;
	uint32_t every, seed;

	if (!have_count(arguments, 3, errp) ||
	    !take_number(arguments, "every", UINT32_MAX, &every, errp) ||
	    !take_number(arguments, "seed", UINT32_MAX, &seed, errp))
		return;
	tern = take_card(arguments, errp);
	if (!tern)
		return;
	for_each_engine(e, tern)
		tern_engine_falsify(e->engine, every, seed);
	object_unref(OBJECT(tern));
}

static void register_commands(Notifier *notifier, void *opaque)
{
	qmp_register_command(&qmp_commands, "tern-fail-qp", fail_qp, 0, 0);
	qmp_register_command(&qmp_commands, "tern-slow-qp", slow_qp, 0, 0);
	qmp_register_command(&qmp_commands, "tern-hold-commands", hold_commands, 0, 0);
	qmp_register_command(&qmp_commands, "tern-refuse-command", refuse_command, 0, 0);
	qmp_register_command(&qmp_commands, "tern-falsify", falsify, 0, 0);
}

static Notifier machine_done = {.notify = register_commands};

/* As the registration of query-tern. */
static void await_machine(void)
{
	qemu_add_machine_init_done_notifier(&machine_done);
}

type_init(await_machine)
