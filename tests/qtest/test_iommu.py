# SPDX-License-Identifier: GPL-2.0-or-later
"""DMA behind an IOMMU, and the copies of translations that the card keeps."""

import struct

from machine import COMMAND_MASTER, COMMAND_MEMORY, HW, Card, CardTest
from vtd import EVERYTHING, PAGE, Vtd


class Iommu(CardTest):
    """
    Under TCG a thread that interrupts a processor must hold the big lock. So the card takes that
    lock before an access that may cause an IOMMU fault, and no thread that holds it may wait for
    the card.
    """
    arguments = ("-device", "intel-iommu", *CardTest.arguments)

    def setUp(self):
        super().setUp()
        self.iommu = Vtd(self.card)

    def test_mapped(self):
        self.iommu.map(Card.AQ, Card.AQ)
        self.iommu.map(Card.ACQ, Card.ACQ)
        self.card.enable()
        for index in range(40):
            self.assertEqual(self.card.query_device(index)[2], HW.AQ_OK)

    def test_faults(self):
        self.iommu.map(Card.AQ, Card.AQ)
        for _ in range(20):
            self.card.enable()
            self.card.submit(0, HW.AQ_QUERY_DEVICE)
            self.card.wait(lambda: self.card.reg("STATUS") & HW.STATUS_FATAL)
            self.assertIsNone(self.card.completion(0))
            self.assertEqual(self.iommu.fault(), (Card.ACQ, False))
            self.card.set_reg("CTRL", HW.CTRL_RESET)


class Places(CardTest):
    """Where completions arrive tells by which translation the card has written them."""

    DEVICE_IOTLB = True
    arguments = ("-device", "intel-iommu,device-iotlb=on", *CardTest.arguments)

    IOVA, ONE, OTHER = Card.ACQ, 0x130000, 0x140000
    NOWHERE = "nowhere"

    def setUp(self):
        super().setUp()
        self.new_iommu()
        self.card.enable_ats()
        self.begin()

    def new_iommu(self):
        self.iommu = Vtd(self.card, device_iotlb=self.DEVICE_IOTLB)
        self.iommu.map(Card.AQ, Card.AQ)
        self.iommu.map(self.IOVA, self.ONE)

    def begin(self, aq=Card.AQ, acq=IOVA):
        self.count = 0
        for place in (self.IOVA, self.ONE, self.OTHER):
            self.machine.write_memory(place, bytes(PAGE))
        self.card.set_reg("CTRL", HW.CTRL_RESET)
        self.card.wait(lambda: not self.card.reg("STATUS") & HW.STATUS_RESETTING)
        self.card.enable(aq, acq)

    def place_of_next(self):
        index, self.count = self.count, self.count + 1
        self.assertLess(index, 1 << Card.AQ_LOG_SIZE, "begin() again")

        def place():
            for self.card.ACQ in (self.IOVA, self.ONE, self.OTHER):
                if self.card.completion(index):
                    return self.card.ACQ
            return self.card.reg("STATUS") & HW.STATUS_FATAL and self.NOWHERE

        self.card.submit(index, HW.AQ_QUERY_DEVICE)
        return self.card.wait(place)

    def remap(self, *invalidations, place=OTHER):
        """To another place, of which the IOMMU is told."""
        self.iommu.map(self.IOVA, place)
        self.iommu.invalidate(self.iommu.iotlb(self.IOVA), *invalidations)


class WithoutDeviceIotlb(Places):
    """An IOMMU that never has a device forget anything, whatever the guest enables."""

    DEVICE_IOTLB = False
    arguments = ("-device", "intel-iommu", *CardTest.arguments)

    def test_each_access_is_translated(self):
        self.assertEqual(self.place_of_next(), self.ONE)
        self.remap()
        self.assertEqual(self.place_of_next(), self.OTHER)


class Ats(Places):
    def test_what_is_kept_is_used_until_invalidated(self):
        self.assertEqual(self.place_of_next(), self.ONE)
        self.remap()
        self.assertEqual(self.place_of_next(), self.ONE)
        self.iommu.invalidate(self.iommu.device_iotlb(self.IOVA - PAGE),
                              self.iommu.device_iotlb(self.IOVA + PAGE))
        self.assertEqual(self.place_of_next(), self.ONE)
        self.iommu.invalidate(self.iommu.device_iotlb(self.IOVA))
        self.assertEqual(self.place_of_next(), self.OTHER)

    def test_invalidations_of_many_pages(self):
        for iova, pages in ((self.IOVA, 2), (0x100000, 32), (0x100000, 256), (0, 1 << 13),
                            (0, EVERYTHING)):
            with self.subTest(iova=hex(iova), pages=pages):
                self.assertEqual(self.place_of_next(), self.ONE)
                self.remap(self.iommu.device_iotlb(iova, pages))
                self.assertEqual(self.place_of_next(), self.OTHER)
                self.remap(self.iommu.device_iotlb(self.IOVA), place=self.ONE)

    def test_unmapped(self):
        self.assertEqual(self.place_of_next(), self.ONE)
        self.iommu.unmap(self.IOVA)
        self.iommu.invalidate(self.iommu.iotlb(self.IOVA), self.iommu.device_iotlb(self.IOVA))
        self.assertEqual(self.place_of_next(), self.NOWHERE)
        self.assertEqual(self.iommu.fault(), (self.IOVA, False))
        self.iommu.unmap(Card.AQ)
        self.iommu.map(self.IOVA, self.ONE)
        self.iommu.invalidate(self.iommu.iotlb(Card.AQ), self.iommu.device_iotlb(Card.AQ))
        self.begin()
        self.assertEqual(self.place_of_next(), self.NOWHERE)
        self.assertEqual(self.iommu.fault(), (Card.AQ, True))

    def test_read_only(self):
        """That a page may be read does not let it be written."""
        read_only = Card.AQ + PAGE
        self.iommu.map(read_only, Card.AQ, rights=Vtd.READ)
        self.begin(aq=read_only)
        self.assertEqual(self.place_of_next(), self.ONE)
        self.begin(acq=read_only)
        # QEMU's IOMMU reports no fault here: it, too, has the page in its cache.
        self.assertEqual(self.place_of_next(), self.NOWHERE)

    def test_ats_off(self):
        self.assertEqual(self.place_of_next(), self.ONE)
        self.remap()
        self.card.enable_ats(on=False)
        self.assertEqual(self.place_of_next(), self.OTHER)
        self.remap(place=self.ONE)
        self.assertEqual(self.place_of_next(), self.ONE)

    def test_bus_mastering_off(self):
        self.assertEqual(self.place_of_next(), self.ONE)
        self.remap()
        self.card.write(2, 0x04, COMMAND_MEMORY)
        self.assertEqual(self.place_of_next(), self.NOWHERE)
        self.assertIsNone(self.iommu.fault())
        self.card.write(2, 0x04, COMMAND_MEMORY | COMMAND_MASTER)
        self.begin()
        self.assertEqual(self.place_of_next(), self.OTHER)

    def test_function_level_reset(self):
        self.assertEqual(self.place_of_next(), self.ONE)
        self.remap()
        self.card.function_level_reset()
        self.card.place()
        self.assertFalse(self.card.ats_enabled())
        self.begin()
        self.assertEqual(self.place_of_next(), self.OTHER)

    def test_translation_off_and_on(self):
        for _ in range(3):
            self.assertEqual(self.place_of_next(), self.ONE)
            self.iommu.translate(on=False)
            self.assertEqual(self.place_of_next(), self.IOVA)
            self.iommu.translate()

    def test_machine_reset(self):
        self.assertEqual(self.place_of_next(), self.ONE)
        self.machine.qmp("system_reset")
        self.machine.wait_event("RESET")
        self.card.place()
        self.assertFalse(self.card.ats_enabled())
        self.begin()
        self.assertEqual(self.place_of_next(), self.IOVA)
        self.new_iommu()
        self.card.enable_ats()
        self.assertEqual(self.place_of_next(), self.ONE)

    def test_nothing_arrives_in_a_page_that_was_given_back(self):
        """It is unmapped while the card writes thousands of completions, time after time."""
        pages, place, iova = 32, 0x800000, 0x120000
        self.card.AQ_LOG_SIZE, self.card.ACQ = 10, place
        commands = (1 << self.card.AQ_LOG_SIZE) - 1
        query = struct.pack("<HHI", HW.AQ_QUERY_DEVICE, 0, 0).ljust(HW.AQ_ENTRY, b"\0")
        self.machine.write_memory(Card.AQ, query * commands)
        self.iommu.map(Card.AQ, Card.AQ, pages)

        def completed():
            arrived = self.machine.read_memory(place, PAGE * pages)
            return sum(arrived[HW.AQ_ENTRY - 1::HW.AQ_ENTRY]), arrived

        amid = 0
        for _ in range(1000):
            self.iommu.map(iova, place, pages)
            invalidation = self.iommu.prepare(self.iommu.iotlb(iova, pages),
                                              self.iommu.device_iotlb(iova, pages))
            self.card.set_reg("CTRL", HW.CTRL_RESET)
            self.card.enable(acq=iova)
            self.card.set_reg("AQ_PI", commands)
            self.iommu.unmap(iova, pages)
            self.iommu.begin(invalidation)
            count, before = completed()
            if count == commands:
                continue
            self.card.wait(lambda: self.card.reg("STATUS") & HW.STATUS_FATAL)
            self.assertEqual(completed(), (count, before))
            amid += count > 0
            if amid == 10:
                return
        self.fail("the card was never amid its work")
