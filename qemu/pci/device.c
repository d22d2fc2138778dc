/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PCI device: QEMU's side of the card. It passes register writes, doorbells and received frames
 * to the engine, and passes interrupts and sent frames from the engine to QEMU.
 */
#include "qemu/osdep.h"

#include "hw/pci/msix.h"
#include "hw/qdev-properties-system.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/guest-random.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "qemu/rcu.h"

#include "qemu/pci/device.h"
#include "qemu/pci/query.h"
#include "qemu/pci/trace.h"

enum {
	PM_CAP_OFFSET = 0xc8,
	/* The extended capabilities. */
	ATS_CAP_OFFSET = PCI_CONFIG_SPACE_SIZE,
	AER_CAP_OFFSET = ATS_CAP_OFFSET + 0x10,
	/* Limits of dm-size. The upper one keeps the 32-bit BAR small enough for the space below 4
	 * GiB. */
	MIN_DM_SIZE = 4096,
	MAX_DM_SIZE = 256 << 20,
	MAX_SPEED = 4000000, /* Mb/s; in kb/s it must fit into 32 bits */
	/* Frames sent by one run of the bottom half, so that it does not delay the main loop. */
	SEND_BUDGET = 128,
};

/* The engine with the Ethernet function; only it uses the netdev. */
static struct tern_engine *first_engine(TernDevice *tern)
{
	return tern->engines[0].engine;
}

/* ---- callbacks from the engine's thread ---------------------------------------- */

static void engine_dma_hold(void *opaque)
{
	struct engine *engine = opaque;

	tern_dma_hold(&engine->dma);
}

static void engine_dma_release(void *opaque)
{
	struct engine *engine = opaque;

	tern_dma_release(&engine->dma);
}

static bool engine_dma_read(void *opaque, uint64_t from, void *to, size_t size)
{
	struct engine *engine = opaque;

	return tern_dma_read(&engine->dma, from, to, size);
}

static bool engine_dma_write(void *opaque, uint64_t to, const void *from, size_t size)
{
	struct engine *engine = opaque;

	return tern_dma_write(&engine->dma, to, from, size);
}

static bool engine_dma_store64(void *opaque, uint64_t to, uint64_t value)
{
	struct engine *engine = opaque;

	return tern_dma_store64(&engine->dma, to, value);
}

static bool engine_dma_load32(void *opaque, uint64_t from, uint32_t *value)
{
	struct engine *engine = opaque;

	return tern_dma_load32(&engine->dma, from, value);
}

static size_t engine_dma_find_shared(void *opaque, uint64_t from, size_t size,
                                     struct tern_ram_range *ranges, size_t room)
{
	struct engine *engine = opaque;

	return tern_dma_find_shared(&engine->dma, from, size, ranges, room);
}

static void engine_interrupts_pending(void *opaque)
{
	struct engine *engine = opaque;

	qemu_bh_schedule(engine->tern->interrupt_bh);
}

static void engine_frames_pending(void *opaque)
{
	struct engine *engine = opaque;

	qemu_bh_schedule(engine->tern->send_bh);
}

static void engine_receive_ready(void *opaque)
{
	struct engine *engine = opaque;

	qemu_bh_schedule(engine->tern->receive_bh);
}

static void engine_trace(void *opaque, uint32_t number, const char *event, const char *text)
{
	struct engine *engine = opaque;
	const char *id = DEVICE(engine->tern)->id;

	tern_trace(id ? id : "tern", number, event, text);
}

static void engine_unlock(void)
{
	bql_unlock();
}

static void engine_lock(void)
{
	bql_lock();
}

static const struct tern_engine_ops engine_ops = {
        .dma_hold = engine_dma_hold,
        .dma_release = engine_dma_release,
        .dma_read = engine_dma_read,
        .dma_write = engine_dma_write,
        .dma_store64 = engine_dma_store64,
        .dma_load32 = engine_dma_load32,
        .dma_find_shared = engine_dma_find_shared,
        .interrupts_pending = engine_interrupts_pending,
        .frames_pending = engine_frames_pending,
        .receive_ready = engine_receive_ready,
        .trace = engine_trace,
        .unlock = engine_unlock,
        .lock = engine_lock,
};

static void *engine_thread(void *opaque)
{
	struct engine *engine = opaque;

	rcu_register_thread();
	tern_engine_run(engine->engine);
	rcu_unregister_thread();
	return NULL;
}

/* ---- interrupts, in the main loop ---------------------------------------------- */

static void send_interrupts(void *opaque)
{
	TernDevice *tern = opaque;
	PCIDevice *pci = PCI_DEVICE(tern);

	for (unsigned word = 0; word * 64 < tern->vectors; word++) {
		uint64_t raised = 0;

		for_each_engine(e, tern)
			raised |= tern_engine_take_interrupts(e->engine, word);
		while (raised) {
			const unsigned vector = word * 64 + ctz64(raised);

			raised &= raised - 1;
			if (msix_enabled(pci) && vector < tern->vectors)
				msix_notify(pci, vector);
		}
	}
}

/* ---- network, in the main loop ---------------------------------------------------- */

static void frame_sent(NetClientState *nc, ssize_t result)
{
	TernDevice *tern = qemu_get_nic_opaque(nc);

	tern->sending = false;
	qemu_bh_schedule(tern->send_bh);
}

static void send_frames(void *opaque)
{
	TernDevice *tern = opaque;
	NetClientState *nc = qemu_get_queue(tern->nic);
	const uint8_t *frame;
	size_t size;

	for (unsigned i = 0; i < SEND_BUDGET && !tern->sending; i++) {
		frame = tern_engine_next_frame(first_engine(tern), &size);
		if (!frame)
			return;
		/* Zero: the net layer has queued a copy and accepts no more frames before
		 * frame_sent(). */
		tern->sending = qemu_send_packet_async(nc, frame, size, frame_sent) == 0;
		tern_engine_frame_done(first_engine(tern));
	}
	if (!tern->sending)
		qemu_bh_schedule(tern->send_bh);
}

static bool nic_can_receive(NetClientState *nc)
{
	TernDevice *tern = qemu_get_nic_opaque(nc);

	return tern_engine_can_receive(first_engine(tern));
}

static ssize_t nic_receive(NetClientState *nc, const uint8_t *frame, size_t size)
{
	TernDevice *tern = qemu_get_nic_opaque(nc);

	return tern_engine_receive(first_engine(tern), frame, size) ? size : 0;
}

static void receive_again(void *opaque)
{
	TernDevice *tern = opaque;

	qemu_flush_queued_packets(qemu_get_queue(tern->nic));
}

/* With a netdev, the cable is plugged when both the property "link" and the net client say so. */
static void update_cable(TernDevice *tern)
{
	const NetClientState *nc = tern->nic ? qemu_get_queue(tern->nic) : NULL;
	const bool plugged = tern->link && (tern->wire || (nc && nc->peer && !nc->link_down));

	for_each_engine(e, tern)
		tern_engine_set_cable(e->engine, plugged);
}

static void nic_link_status_changed(NetClientState *nc)
{
	update_cable(qemu_get_nic_opaque(nc));
}

static NetClientInfo nic_info = {
        .type = NET_CLIENT_DRIVER_NIC,
        .size = sizeof(NICState),
        .can_receive = nic_can_receive,
        .receive = nic_receive,
        .link_status_changed = nic_link_status_changed,
};

static void init_nic(TernDevice *tern)
{
	DeviceState *dev = DEVICE(tern);

	tern->nic = qemu_new_nic(&nic_info, &tern->conf, object_get_typename(OBJECT(tern)), dev->id,
	                         &dev->mem_reentrancy_guard, tern);
	qemu_format_nic_info_str(qemu_get_queue(tern->nic), tern->conf.macaddr.a);
}

/* ---- creation, reset and removal ----------------------------------------------------- */

static void pause_engines(TernDevice *tern, bool pause)
{
	for_each_engine(e, tern)
		tern_engine_pause(e->engine, pause);
}

static void vm_state_changed(void *opaque, bool running, RunState state)
{
	pause_engines(opaque, !running);
}

/* Shares the guest RAM that is in shared memfds, so that other hosts can read lent payload. */
static bool connect_wire(struct engine *engine, Error **errp)
{
	tern_dma_share_ram(&engine->dma, engine->engine);
	const char *error = tern_engine_connect(engine->engine);

	if (error)
		error_setg(errp, "tern: wire: %s", error);
	return !error;
}

static bool init_engine(TernDevice *tern, unsigned number, uint64_t card, Error **errp)
{
	struct engine *engine = &tern->engines[number];
	struct tern_engine_config config = {
	        .engine = number,
	        .engines = tern->engine_count,
	        .card = card,
	        .first = number ? first_engine(tern) : NULL,
	        .vectors = tern->vectors,
	        .doorbell_pages = tern->doorbell_pages / tern->engine_count,
	        .link_speed_mbps = tern->speed,
	        .wire_path = tern->wire,
	};

	if (tern->dm_size) {
		config.device_memory = memory_region_get_ram_ptr(&tern->device_memory);
		config.device_memory_size = tern->dm_size;
	}
	memcpy(config.mac, tern->conf.macaddr.a, sizeof(config.mac));
	engine->tern = tern;
	tern_dma_init(&engine->dma, PCI_DEVICE(tern));
	engine->engine = tern_engine_new(&config, &engine_ops, engine);
	if (!engine->engine)
		error_setg(errp, "tern: no file descriptors for an engine");
	if (!engine->engine || (tern->wire && !connect_wire(engine, errp))) {
		tern_dma_exit(&engine->dma);
		return false;
	}
	return true;
}

static bool init_engines(TernDevice *tern, Error **errp)
{
	uint64_t card = 0;

	if (tern->engine_count > 1)
		qemu_guest_getrandom_nofail(&card, sizeof(card));
	for (unsigned number = 0; number < tern->engine_count; number++) {
		if (init_engine(tern, number, card, errp))
			continue;
		while (number--)
			tern_dma_exit(&tern->engines[number].dma);
		return false;
	}
	return true;
}

static bool start_engines(TernDevice *tern, Error **errp)
{
	if (!init_engines(tern, errp))
		return false;
	tern->interrupt_bh = qemu_bh_new(send_interrupts, tern);
	tern->send_bh = qemu_bh_new(send_frames, tern);
	tern->receive_bh = qemu_bh_new(receive_again, tern);
	for_each_engine(e, tern)
		qemu_thread_create(&e->thread, "tern", engine_thread, e, QEMU_THREAD_JOINABLE);
	return true;
}

/* The engines stay, as a vCPU may already have found a BAR and wait for the BQL to access it. */
static void stop_engines(TernDevice *tern)
{
	for_each_engine(e, tern) {
		tern_engine_stop(e->engine);
		qemu_thread_join(&e->thread);
		tern_dma_exit(&e->dma);
	}
}

/* The engines have stopped, so nothing schedules the bottom halves any more but frame_sent(). */
static void exit_nic(TernDevice *tern)
{
	if (tern->nic) {
		/* The frame that the netdev has queued refers to this client. */
		qemu_purge_queued_packets(qemu_get_queue(tern->nic));
		qemu_del_nic(tern->nic);
	}
	qemu_bh_delete(tern->receive_bh);
	qemu_bh_delete(tern->send_bh);
	qemu_bh_delete(tern->interrupt_bh);
}

static bool check_properties(TernDevice *tern, Error **errp)
{
	if (tern->vectors < 1 || tern->vectors > TERN_ENGINE_MAX_VECTORS) {
		error_setg(errp, "tern: vectors must be 1 to %d", TERN_ENGINE_MAX_VECTORS);
		return false;
	}
	if (tern->engine_count < 1 || tern->engine_count > TERN_MAX_ENGINES) {
		error_setg(errp, "tern: engines must be 1 to %d", TERN_MAX_ENGINES);
		return false;
	}
	if (tern->engine_count > 1 && !tern->wire) {
		error_setg(errp, "tern: several engines need a wire of shared memory");
		return false;
	}
	if (!is_power_of_2(tern->doorbell_pages) || tern->doorbell_pages > 65536 ||
	    tern->doorbell_pages < tern->engine_count) {
		error_setg(errp, "tern: doorbell-pages must be a power of two, at most 65536, and "
		                 "one for each engine");
		return false;
	}
	if (tern->dm_size && (!is_power_of_2(tern->dm_size) || tern->dm_size < MIN_DM_SIZE ||
	                      tern->dm_size > MAX_DM_SIZE)) {
		error_setg(errp, "tern: dm-size must be 0 or a power of two, %d to %d", MIN_DM_SIZE,
		           MAX_DM_SIZE);
		return false;
	}
	if (tern->speed < 1 || tern->speed > MAX_SPEED) {
		error_setg(errp, "tern: speed must be 1 to %d Mb/s", MAX_SPEED);
		return false;
	}
	if (tern->wire && tern->conf.peers.ncs[0]) {
		error_setg(errp, "tern: netdev and wire are two ways to the network; give one");
		return false;
	}
	return true;
}

static bool init_capabilities(TernDevice *tern, Error **errp)
{
	PCIDevice *pci = PCI_DEVICE(tern);
	int pm;

	if (msix_init_exclusive_bar(pci, tern->vectors, TERN_BAR_MSIX, errp))
		return false;
	for (unsigned vector = 0; vector < tern->vectors; vector++)
		msix_vector_use(pci, vector);

	if (pcie_endpoint_cap_init(pci, 0) < 0) {
		error_setg(errp, "tern: no room for the PCI Express capability");
		goto no_pcie;
	}
	pcie_cap_flr_init(pci);
	pcie_cap_deverr_init(pci);
	pcie_ats_init(pci, ATS_CAP_OFFSET, true);
	if (pcie_aer_init(pci, PCI_ERR_VER, AER_CAP_OFFSET, PCI_ERR_SIZEOF, errp) < 0)
		goto no_aer;

	pm = pci_add_capability(pci, PCI_CAP_ID_PM, PM_CAP_OFFSET, PCI_PM_SIZEOF, errp);
	if (pm < 0)
		goto no_pm;
	pci_set_word(pci->config + pm + PCI_PM_PMC, 3); /* version 1.2 */
	pci_set_word(pci->config + pm + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
	pci_set_word(pci->wmask + pm + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);
	return true;

no_pm:
	pcie_aer_exit(pci);
no_aer:
	pcie_cap_exit(pci);
no_pcie:
	msix_uninit_exclusive_bar(pci);
	return false;
}

static void exit_capabilities(PCIDevice *pci)
{
	pcie_aer_exit(pci);
	pcie_cap_exit(pci);
	msix_uninit_exclusive_bar(pci);
}

static void tern_realize(PCIDevice *pci, Error **errp)
{
	TernDevice *tern = TERN(pci);

	if (!check_properties(tern, errp))
		return;
	qemu_macaddr_default_if_unset(&tern->conf.macaddr);
	if (!tern_init_device_memory(tern, errp) || !init_capabilities(tern, errp))
		return;
	tern_init_bars(tern);
	if (!start_engines(tern, errp)) {
		exit_capabilities(pci);
		return;
	}
	if (!tern->wire)
		init_nic(tern);
	update_cable(tern);
	tern->vm_state = qdev_add_vm_change_state_handler(DEVICE(tern), vm_state_changed, tern);
	pause_engines(tern, !runstate_is_running());
}

/*
 * Makes the device unreachable for other vCPUs. QEMU has removed its BARs, and removes the device
 * from the bus after tern_exit(). In between stop_engines() gives up the BQL: a vCPU must neither
 * map the BARs again nor eject the device a second time.
 */
static void leave_bus(TernDevice *tern)
{
	PCIDevice *pci = PCI_DEVICE(tern);

	tern->leaving = true;
	for (int i = 0; i < PCI_NUM_REGIONS; i++)
		pci->io_regions[i].addr = PCI_BAR_UNMAPPED;
	pci->partially_hotplugged = true; /* an ejection does nothing then */
}

static void tern_exit(PCIDevice *pci)
{
	TernDevice *tern = TERN(pci);

	leave_bus(tern);
	qemu_del_vm_change_state_handler(tern->vm_state);
	stop_engines(tern);
	exit_nic(tern);
	exit_capabilities(pci);
}

/* System, bus and function level reset. */
static void tern_reset(DeviceState *dev)
{
	TernDevice *tern = TERN(dev);
	PCIDevice *pci = PCI_DEVICE(dev);

	/* QEMU resets neither of these by itself. */
	pcie_cap_deverr_reset(pci);
	pci_word_test_and_clear_mask(pci->config + PM_CAP_OFFSET + PCI_PM_CTRL,
	                             PCI_PM_CTRL_STATE_MASK);
	for_each_engine(e, tern) {
		tern_dma_reset(&e->dma);
		tern_engine_reset(e->engine);
	}
	tern->logged_errors = 0;
}

static void tern_write_config(PCIDevice *pci, uint32_t addr, uint32_t value, int size)
{
	const bool was_bus_master = tern_is_bus_master(pci);

	if (TERN(pci)->leaving)
		return;
	pci_default_write_config(pci, addr, value, size);
	/* When the guest clears bus mastering, wait until no DMA is in progress. */
	for_each_engine(e, TERN(pci)) {
		if (was_bus_master && !tern_is_bus_master(pci))
			tern_engine_flush(e->engine);
		tern_dma_configured(&e->dma);
	}
	pcie_aer_write_config(pci, addr, value, size);
	pcie_cap_flr_write_config(pci, addr, value, size);
}

static bool get_link(Object *object, Error **errp)
{
	return TERN(object)->link;
}

static void set_link(Object *object, bool link, Error **errp)
{
	TernDevice *tern = TERN(object);

	tern->link = link;
	if (DEVICE(object)->realized)
		update_cable(tern);
}

static void tern_init(Object *object)
{
	TERN(object)->link = true;
}

/* No vCPU is in a BAR: their regions refer to the device. */
static void tern_finalize(Object *object)
{
	TernDevice *tern = TERN(object);

	for (unsigned number = 0; number < TERN_MAX_ENGINES; number++)
		tern_engine_free(tern->engines[number].engine);
}

static const Property tern_properties[] = {
        DEFINE_NIC_PROPERTIES(TernDevice, conf),
        DEFINE_PROP_UINT32("engines", TernDevice, engine_count, 1),
        DEFINE_PROP_UINT32("vectors", TernDevice, vectors, 8),
        DEFINE_PROP_UINT32("doorbell-pages", TernDevice, doorbell_pages, 2048),
        DEFINE_PROP_UINT32("dm-size", TernDevice, dm_size, 1 << 20), /* device memory, bytes */
        DEFINE_PROP_STRING("wire", TernDevice, wire), /* a socket of tern-switch --shared */
        DEFINE_PROP_UINT32("speed", TernDevice, speed, 100000), /* Mb/s, as told to the driver */
        TERN_PROPERTIES_END
};

static const VMStateDescription tern_vmstate = {
        .name = TYPE_TERN,
        .unmigratable = 1,
};

static void tern_class_init(ObjectClass *class, void *data)
{
	DeviceClass *dc = DEVICE_CLASS(class);
	PCIDeviceClass *pc = PCI_DEVICE_CLASS(class);

	pc->realize = tern_realize;
	pc->exit = tern_exit;
	pc->config_write = tern_write_config;
	pc->vendor_id = TERN_PCI_VENDOR_ID;
	pc->device_id = TERN_PCI_DEVICE_ID;
	pc->subsystem_vendor_id = TERN_PCI_VENDOR_ID;
	pc->subsystem_id = TERN_PCI_DEVICE_ID;
	pc->revision = TERN_HW_MAJOR;
	pc->class_id = PCI_CLASS_NETWORK_ETHERNET;

	dc->desc = "Tern RDMA network card";
	device_class_set_legacy_reset(dc, tern_reset);
	dc->vmsd = &tern_vmstate;
	device_class_set_props(dc, tern_properties);
	tern_add_state_property(class);
	object_class_property_add_bool(class, "link", get_link, set_link);
	object_class_property_set_description(class, "link",
	                                      "whether a cable is plugged in, at any time");
	set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static const TypeInfo tern_type = {
        .name = TYPE_TERN,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(TernDevice),
        .instance_init = tern_init,
        .instance_finalize = tern_finalize,
        .class_init = tern_class_init,
        .interfaces = (InterfaceInfo[]){{INTERFACE_PCIE_DEVICE}, {}},
};

static void tern_register_type(void)
{
	/* Child processes of QEMU (scripts of -netdev tap) cannot load this object. */
	unsetenv("LD_PRELOAD");
	type_register_static(&tern_type);
}

type_init(tern_register_type)
