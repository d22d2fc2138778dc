# SPDX-License-Identifier: GPL-2.0-or-later
"""The admin queue, as the shortest way to DMA and interrupts."""

from machine import COMMAND_MASTER, COMMAND_MEMORY, HW, Card, CardTest

BIOS_ROM = 0xffff0000


class Dma(CardTest):
    def setUp(self):
        super().setUp()
        self.card.enable_msix()

    def fatal_reason(self):
        status = self.card.reg("STATUS")
        if not status & HW.STATUS_FATAL:
            return None
        return (status & HW.STATUS_REASON_MASK) >> HW.STATUS_REASON_SHIFT

    def recover(self):
        self.card.set_reg("CTRL", HW.CTRL_RESET)
        self.card.wait(lambda: not self.card.reg("STATUS") & HW.STATUS_RESETTING)
        self.card.enable()
        self.assertEqual(self.card.query_device()[2], HW.AQ_OK)

    def test_commands_complete_and_interrupt(self):
        self.card.enable()
        self.assertTrue(self.card.reg("STATUS") & HW.STATUS_READY)
        for index in range(40):
            self.machine.write(4, Card.IRQS, 0)
            _, number, status = self.card.query_device(index)
            self.assertEqual((number, status), (index, HW.AQ_OK))
            self.card.wait(lambda: self.machine.read(4, Card.IRQS) == 1)

    def test_a_masked_vector_stays_pending(self):
        self.card.enable()
        self.machine.write(4, Card.MSIX + 12, 1)
        self.card.query_device()
        self.card.wait(lambda: self.machine.read(4, Card.MSIX + 0x800) & 1)
        self.assertEqual(self.machine.read(4, Card.IRQS), 0)
        self.machine.write(4, Card.MSIX + 12, 0)
        self.assertEqual(self.machine.read(4, Card.IRQS), 1)

    def test_bus_mastering_off(self):
        self.card.enable()
        self.card.write(2, 0x04, COMMAND_MEMORY)
        self.card.submit(0, HW.AQ_QUERY_DEVICE)
        self.card.wait(lambda: self.fatal_reason() == HW.FATAL_AQ_DMA)
        self.assertIsNone(self.card.completion(0))
        self.card.write(2, 0x04, COMMAND_MEMORY | COMMAND_MASTER)
        self.recover()

    def test_only_ram_is_reachable(self):
        for place in (Card.REGS, Card.DOORBELLS, Card.MSIX, 0xfee00000, 0xfed00000,
                      0x7fffffff000, 0xfffffffffffff000):
            with self.subTest(queue=hex(place)):
                self.card.enable(aq=place)
                self.card.set_reg("AQ_PI", 1)
                self.card.wait(lambda: self.fatal_reason() is not None)
                self.recover()
                self.card.set_reg("CTRL", HW.CTRL_RESET)
            with self.subTest(completions=hex(place)):
                self.card.enable(acq=place)
                self.card.submit(0, HW.AQ_QUERY_DEVICE)
                self.card.wait(lambda: self.fatal_reason() is not None)
                self.recover()
                self.card.set_reg("CTRL", HW.CTRL_RESET)

    def test_rom_is_not_written(self):
        before = self.machine.read_memory(BIOS_ROM, 4096)
        self.card.enable(acq=BIOS_ROM)
        self.card.submit(0, HW.AQ_QUERY_DEVICE)
        self.card.wait(lambda: self.fatal_reason() is not None)
        self.assertEqual(self.machine.read_memory(BIOS_ROM, 4096), before)

    def test_a_stopped_machine_does_no_dma(self):
        self.card.enable()
        self.machine.qmp("stop")
        self.card.submit(0, HW.AQ_QUERY_DEVICE)
        for _ in range(100):
            self.card.reg("STATUS")
        self.assertIsNone(self.card.completion(0))
        self.machine.qmp("cont")
        self.card.wait(lambda: self.card.completion(0))

    def test_no_event_reaches_a_stopped_machine(self):
        self.card.enable()
        ring = self.card.IRQS + 0x1000
        self.machine.write_memory(ring, bytes(256))
        self.card.create_eq(0, ring)
        self.machine.qmp("stop")
        self.machine.set_cable(False)
        self.card.reg("LINK")  # answered after what was asked for before
        self.assertEqual(self.machine.read_memory(ring, 256), bytes(256))
        self.machine.qmp("cont")
        self.assertEqual(self.card.reg("LINK"), 0)
        self.assertEqual(self.machine.read_memory(ring, 16)[14:], bytes([HW.EVENT_LINK, 1]))

    def test_reset_with_commands_under_way(self):
        for _ in range(50):
            self.card.enable()
            self.card.submit(0, HW.AQ_QUERY_DEVICE)
            self.card.function_level_reset()
            self.card.place()
            self.card.enable_msix()
        self.card.enable()
        self.assertEqual(self.card.query_device()[2], HW.AQ_OK)


class DmaBehindIdleIommu(Dma):
    arguments = ("-device", "intel-iommu", *CardTest.arguments)
