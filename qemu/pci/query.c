/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cards' state for QEMU's monitors. QMP has the command query-tern. The table of HMP's `info`
 * is constant, so there it is `qom-get PATH state`.
 */
#include "qemu/pci/query.h"

#include "hw/pci/msix.h"
#include "monitor/monitor-internal.h"
#include "qapi/error.h"
#include "qapi/visitor.h"

#include "qemu/pci/device.h"

/* All QPs. */
enum { ALL_QPS = -1 };

static const char *msix_state(PCIDevice *pci)
{
	if (!msix_enabled(pci))
		return "off";
	return pci->msix_function_masked ? "masked" : "on";
}

/* The states of all engines; NULL if one has stopped. */
static QList *engine_states(TernDevice *tern, int64_t qpn)
{
	QList *states = qlist_new();

	for_each_engine(e, tern) {
		char *text = tern_engine_describe(e->engine, qpn);

		if (!text) {
			qobject_unref(states);
			return NULL;
		}
		qlist_append_obj(states, qobject_from_json(text, &error_abort));
		free(text);
	}
	return states;
}

/* The state of a realized card with that of QP @qpn or of all QPs; may drop the BQL meanwhile.
 * NULL, and sets @errp, if the card is being removed. */
static QDict *device_state(Object *card, int64_t qpn, Error **errp)
{
	TernDevice *tern = TERN(card);
	PCIDevice *pci = PCI_DEVICE(tern);
	g_autofree char *path = object_get_canonical_path(card);
	QList *engines = engine_states(tern, qpn);
	QDict *state;

	if (!engines) {
		error_setg(errp, "tern: the device is being removed");
		return NULL;
	}
	state = qdict_new();
	qdict_put_str(state, "path", path);
	qdict_put_bool(state, "running", runstate_is_running());
	qdict_put_bool(state, "bus_master", tern_is_bus_master(pci));
	qdict_put_str(state, "msix", msix_state(pci));
	qdict_put(state, "engines", engines);
	return state;
}

static int add_card(Object *object, void *opaque)
{
	GPtrArray *cards = opaque;

	if (object_dynamic_cast(object, TYPE_TERN) && DEVICE(object)->realized)
		g_ptr_array_add(cards, object_ref(object));
	return 0;
}

/* Their references keep them while device_state() lets others run. */
static GPtrArray *find_cards(void)
{
	GPtrArray *cards = g_ptr_array_new_with_free_func(object_unref);

	object_child_foreach_recursive(object_get_root(), add_card, cards);
	return cards;
}

/* The argument "qpn", which is optional; false if it or another one is wrong. */
static bool parse_qpn(const QDict *arguments, int64_t *qpn, Error **errp)
{
	const QNum *number = qobject_to(QNum, qdict_get(arguments, "qpn"));

	*qpn = ALL_QPS;
	if (!qdict_size(arguments))
		return true;
	if (qdict_size(arguments) == 1 && number && qnum_get_try_int(number, qpn) && *qpn >= 0 &&
	    *qpn <= UINT32_MAX)
		return true;
	error_setg(errp, "query-tern takes qpn, the number of a QP, and nothing else");
	return false;
}

static void query_tern(QDict *arguments, QObject **result, Error **errp)
{
	g_autoptr(GPtrArray) cards = NULL;
	QList *states;
	int64_t qpn;

	if (!parse_qpn(arguments, &qpn, errp))
		return;
	cards = find_cards();
	states = qlist_new();
	for (guint i = 0; i < cards->len; i++) {
		QDict *state = device_state(cards->pdata[i], qpn, NULL);

		if (state) /* else it has just been unplugged */
			qlist_append(states, state);
	}
	*result = QOBJECT(states);
}

static void get_state(Object *object, Visitor *visitor, const char *name, void *opaque,
                      Error **errp)
{
	QDict *state;
	QObject *any;

	if (!DEVICE(object)->realized) {
		error_setg(errp, "tern: the device is not realized");
		return;
	}
	state = device_state(object, ALL_QPS, errp);
	if (!state)
		return;
	any = QOBJECT(state);
	visit_type_any(visitor, name, &any, errp);
	qobject_unref(state);
}

void tern_add_state_property(ObjectClass *class)
{
	object_class_property_add(class, "state", "any", get_state, NULL, NULL, NULL);
	object_class_property_set_description(class, "state", "what the card does and waits for");
}

static void register_command(Notifier *notifier, void *opaque)
{
	qmp_register_command(&qmp_commands, "query-tern", query_tern, 0, 0);
}

static Notifier machine_done = {.notify = register_command};

/* QEMU empties the list of commands when it starts, after it has registered types. */
static void await_machine(void)
{
	qemu_add_machine_init_done_notifier(&machine_done);
}

type_init(await_machine)
