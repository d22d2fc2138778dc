# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's intel-iommu, driven as a guest would: page tables, and what makes it forget them."""

import struct

PAGE = 4096
EVERYTHING = 1 << 52  # pages


class Vtd:
    """For the one device behind it; IOVAs are below 2 MiB."""

    BASE = 0xfed90000
    GLOBAL_COMMAND, ROOT_TABLE, FAULT_STATUS, FAULT_CONTROL = 0x18, 0x20, 0x34, 0x38
    FAULT_DATA, FAULT_ADDRESS, QUEUE_TAIL, QUEUE_ADDRESS = 0x3c, 0x40, 0x88, 0x90
    FAULT_RECORD = 0x220
    TRANSLATE, SET_ROOT, QUEUED = 1 << 31, 1 << 30, 1 << 26

    ROOT, CONTEXT, LEVEL3, LEVEL2, LEVEL1, QUEUE, STATUS = (
        0x200000 + PAGE * i for i in range(7))
    QUEUE_SIZE = 256
    PRESENT, READ, WRITE, DEVICE_IOTLB, ADDRESS_39_BITS = 1, 1, 2, 1 << 2, 1
    DOMAIN = 1
    OF_IOTLB, OF_DEVICE_IOTLB, WAIT = 2, 3, 5
    PAGES, STATUS_WRITE = 3 << 4, 1 << 5

    def __init__(self, device, device_iotlb=False):
        self.machine = machine = device.machine
        self._function = function = device.function
        self._enabled = 0
        self._tail = 0
        self._waits = 0
        for page in (self.ROOT, self.CONTEXT, self.LEVEL3, self.LEVEL2, self.LEVEL1, self.STATUS):
            machine.write_memory(page, bytes(PAGE))
        context = self.CONTEXT + 16 * (function & 0xff)
        for entry, value in (
                (self.ROOT + 16 * (function >> 8), self.CONTEXT | self.PRESENT),
                (context, self.LEVEL3 | device_iotlb * self.DEVICE_IOTLB | self.PRESENT),
                (context + 8, self.DOMAIN << 8 | self.ADDRESS_39_BITS),
                (self.LEVEL3, self.LEVEL2 | self.READ | self.WRITE),
                (self.LEVEL2, self.LEVEL1 | self.READ | self.WRITE)):
            machine.write(8, entry, value)
        self._set(self.FAULT_DATA, 0x41)
        self._set(self.FAULT_ADDRESS, 0xfee00000)
        self._set(self.FAULT_CONTROL, 0)
        self._set(self.ROOT_TABLE, self.ROOT, size=8)
        self._set(self.GLOBAL_COMMAND, self.SET_ROOT)
        self._set(self.QUEUE_ADDRESS, self.QUEUE, size=8)
        self._command(self.QUEUED, on=True)
        self.translate()

    def _set(self, register, value, size=4):
        self.machine.write(size, self.BASE + register, value)

    def _command(self, bit, on):
        self._enabled = self._enabled | bit if on else self._enabled & ~bit
        self._set(self.GLOBAL_COMMAND, self._enabled)

    def translate(self, on=True):
        self._command(self.TRANSLATE, on)

    # ---- page tables

    def map(self, iova, address, pages=1, rights=READ | WRITE):
        """Stores the entries, but does not invalidate the IOMMU's copies of older ones."""
        entries = (address + PAGE * i | rights for i in range(pages))
        self.machine.write_memory(self.LEVEL1 + iova // PAGE * 8,
                                  struct.pack(f"<{pages}Q", *entries))

    def unmap(self, iova, pages=1):
        self.machine.write_memory(self.LEVEL1 + iova // PAGE * 8, bytes(8 * pages))

    # ---- invalidation

    def iotlb(self, iova, pages=1):
        """Returns the descriptor that invalidates the IOMMU's copies of pages. Their number is a
        power of two, and they are aligned to it."""
        return (self.OF_IOTLB | self.PAGES | self.DOMAIN << 16, iova | pages.bit_length() - 1)

    def device_iotlb(self, iova, pages=1):
        """Returns the descriptor that invalidates the device's copies of pages."""
        size = (pages // 2 - 1) * PAGE | 1 if pages > 1 else 0
        return (self.OF_DEVICE_IOTLB | self._function << 32, iova | size)

    def prepare(self, *descriptors):
        """Puts them into the queue and returns the tail with which it begins."""
        self._waits += 1
        wait = self.WAIT | self.STATUS_WRITE | self._waits << 32, self.STATUS
        for descriptor in (*descriptors, wait):
            self.machine.write_memory(self.QUEUE + 16 * self._tail,
                                      struct.pack("<QQ", *descriptor))
            self._tail = (self._tail + 1) % self.QUEUE_SIZE
        return self._tail << 4

    def begin(self, tail):
        self._set(self.QUEUE_TAIL, tail, size=8)
        assert self.machine.read(4, self.STATUS) == self._waits, "the IOMMU does not invalidate"

    def invalidate(self, *descriptors):
        self.begin(self.prepare(*descriptors))

    # ---- faults

    def fault(self):
        """The page that could not be reached, and whether it was to be read; None: no fault."""
        if not self.machine.read(4, self.BASE + self.FAULT_STATUS):
            return None
        page = self.machine.read(8, self.BASE + self.FAULT_RECORD)
        record = self.machine.read(8, self.BASE + self.FAULT_RECORD + 8)
        assert record & 0xffff == self._function, "another device's fault"
        self._set(self.FAULT_RECORD + 8, 1 << 63, size=8)
        return page, bool(record & 1 << 62)
