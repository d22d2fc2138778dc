# SPDX-License-Identifier: GPL-2.0-or-later
"""Cards that come and go while the machine runs."""

import socket
import struct
import tempfile

from machine import HW, Card, CardTest, PciDevice
from vtd import Vtd


class Hotplug(CardTest):
    # Native hotplug rather than ACPI's: the slot of the root port is all that is to be driven.
    arguments = ("-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
                 "-device", "pcie-root-port,id=rp,chassis=1,addr=3",
                 "-netdev", "hubport,id=net,hubid=0")
    network = {"netdev": "net"}

    def find_card(self):
        port = self.port = PciDevice(self.machine, 0, 3)
        port.write(4, 0x18, 0x00010100)  # the bus behind it is bus 1
        port.write(4, 0x20, 0xfe10fe00)  # memory from 0xfe000000 to 0xfe1fffff
        port.write(4, 0x24, 0xe07fe000)  # prefetchable from 0xe0000000 to 0xe07fffff
        port.write(4, 0x28, 0)
        port.write(4, 0x2c, 0)
        port.write(2, 0x04, 6)
        return None

    def slot_power(self, on):
        control = self.port.capability(0x10) + 0x18
        # power controller off and power indicator: what a guest does on the attention button
        state = 0x0100 if on else 0x0700
        self.port.write(2, control, self.port.read(2, control) & ~0x0700 | state)

    def plug(self):
        self.machine.qmp("device_add", driver="tern", id="card", bus="rp", **self.network)
        self.slot_power(on=True)
        self.card = Card(self.machine, bus=1, slot=0)
        self.card.enable_msix()

    def unplug(self):
        self.machine.qmp("device_del", id="card")
        self.slot_power(on=False)
        self.machine.wait_event("DEVICE_DELETED")

    def test_many_times(self):
        for _ in range(10):
            self.plug()
            self.assertEqual(self.card.reg("LINK"), HW.LINK_UP)
            self.card.enable()
            self.assertEqual(self.card.query_device()[2], HW.AQ_OK)
            self.card.submit(1, HW.AQ_QUERY_DEVICE)  # and leave it under way
            self.unplug()
            self.assertEqual(self.card.read(4, 0), 0xffffffff)

    def test_quit_with_commands_under_way(self):
        self.plug()
        self.card.enable()
        self.card.submit(0, HW.AQ_QUERY_DEVICE)


class BlockedNetdev(Hotplug):
    """A network that takes nothing until the card has gone."""

    SQ, RECORDS, CQ, EQ, FRAME = 0x200000, 0x130000, 0x140000, 0x150000, 0x160000
    LOG_BLOCKS = 10
    FRAMES = 1000

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tern-hotplug-")
        self.addCleanup(folder.cleanup)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{folder.name}/net")
            listener.listen()
            self.arguments = (*self.arguments, "-netdev", "stream,id=blocked,server=off,"
                              f"addr.type=unix,addr.path={folder.name}/net")
            self.network = {"netdev": "blocked"}
            super().setUp()
            self.net, _ = listener.accept()
        self.addCleanup(self.net.close)

    def send_frames(self):
        """More than the socket and the queues to it hold."""
        card, memory = self.card, self.machine.write_memory
        eqn = card.create_eq(0, self.EQ)
        cqn = card.execute(1, HW.AQ_CREATE_CQ,
                           struct.pack("<QBB6xQIIB7x", self.CQ, 0, 0, self.RECORDS + 64, eqn, 0, 4))
        pdn = card.execute(2, HW.AQ_ALLOC_PD)
        qpn = card.execute(3, HW.AQ_CREATE_QP, struct.pack(
            "<QBB6xQIIIIIBBBBB7xII", self.SQ, 0, 0, self.RECORDS, 64 << self.LOG_BLOCKS, pdn,
            cqn, cqn, 0, HW.QPT_ETH, self.LOG_BLOCKS, 4, 4, 0, 0, 0))
        for index, state in enumerate((HW.QPS_INIT, HW.QPS_RTR, HW.QPS_RTS), 4):
            card.execute(index, HW.AQ_MODIFY_QP, struct.pack("<IIB75x", qpn, 1, state))
        memory(self.FRAME, b"\xff" * 12 + b"\x88\xb5" + bytes(1500))
        wqe = struct.pack("<BBBBIII", HW.OP_SEND, 0, 2, 0, 0, 0, 0) + \
            struct.pack("<QII", self.FRAME, 1514, HW.LKEY_LOCAL_DMA)
        memory(self.SQ, wqe.ljust(64, b"\0") * self.FRAMES)
        self.machine.write(8, Card.DOORBELLS + HW.DB_SQ, self.FRAMES << 32 | qpn)

    def test_frame_of_a_card_that_has_gone(self):
        for _ in range(2):
            self.plug()
            self.card.enable()
            self.send_frames()
            for _ in range(1000):
                self.card.reg("STATUS")
            self.unplug()
            self.net.settimeout(1)
            received = 0
            try:
                while part := self.net.recv(1 << 16):
                    received += len(part)
            except TimeoutError:
                pass
            self.assertEqual(self.machine.qmp("query-status")["running"], True)
            self.assertGreater(received, 10 * 1518)
            self.assertLess(received, self.FRAMES * 1518, "it did block")


class BehindIommu(Hotplug):
    """What an IOMMU tells a card goes nowhere when the card has gone."""

    arguments = ("-device", "intel-iommu,device-iotlb=on", *Hotplug.arguments)
    iommu = None

    def plug(self):
        super().plug()
        if not self.iommu:
            self.iommu = Vtd(self.card, device_iotlb=True)
            for page in (Card.AQ, Card.ACQ):
                self.iommu.map(page, page)
        self.card.enable_ats()

    def unplug(self):
        super().unplug()
        self.iommu.invalidate(self.iommu.iotlb(Card.ACQ), self.iommu.device_iotlb(Card.ACQ))
