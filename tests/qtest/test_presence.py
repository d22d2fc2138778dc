# SPDX-License-Identifier: GPL-2.0-or-later
"""The card as PCI software finds it, and how QEMU refuses what cannot be."""

import subprocess
import unittest

from machine import TOP, HW, CardTest, Machine


class Presence(CardTest):
    def test_identity(self):
        self.assertEqual(self.card.read(2, 0x00), HW.PCI_VENDOR_ID)
        self.assertEqual(self.card.read(2, 0x02), HW.PCI_DEVICE_ID)
        self.assertEqual(self.card.read(2, 0x0a), 0x0200, "not an Ethernet controller")

    def test_bars(self):
        sizes = {}
        for bar in range(6):
            offset = 0x10 + 4 * bar
            self.card.write(4, offset, 0xffffffff)
            sizes[bar] = self.card.read(4, offset)
        self.assertEqual(sizes[HW.BAR_REGS], 0xfffff000, "4 KiB, 32 bits")
        self.assertEqual(sizes[HW.BAR_DOORBELLS], 0xff80000c, "8 MiB, 64 bits, prefetchable")
        self.assertEqual(sizes[3], 0xffffffff, "the upper half of BAR 2")
        self.assertEqual(sizes[HW.BAR_MSIX] & 0xf, 0)
        self.assertEqual(sizes[1], 0)
        self.assertEqual(sizes[HW.BAR_DM], 0xfff00008, "1 MiB, 32 bits, prefetchable")

    def test_capabilities(self):
        express = self.card.capability(0x10)
        self.assertTrue(self.card.read(4, express + 4) & 1 << 28, "no function level reset")
        msix = self.card.capability(0x11)
        self.assertEqual(self.card.read(2, msix + 2) & 0x7ff, 8 - 1)
        self.assertEqual(self.card.read(4, msix + 4) & 7, HW.BAR_MSIX)
        self.assertIsNotNone(self.card.capability(0x01), "no power management")

    def test_info_pci(self):
        self.assertIn("1234:7e44", self.machine.hmp("info pci"))

    def test_cannot_migrate(self):
        answer = self.machine.hmp("savevm x")
        self.assertIn("Error", answer)
        with self.assertRaisesRegex(RuntimeError, "tern"):
            self.machine.qmp("migrate", uri="exec:cat >/dev/null")


class Refusals(unittest.TestCase):
    def refused(self, options, message):
        with self.assertRaisesRegex(RuntimeError, message):
            Machine("-device", f"tern,{options}")

    def test_vectors(self):
        self.refused("vectors=0", "vectors must be")
        self.refused("vectors=257", "vectors must be")

    def test_doorbell_pages(self):
        self.refused("doorbell-pages=0", "power of two")
        self.refused("doorbell-pages=3", "power of two")

    def test_device_memory(self):
        for size in (3 << 20, 2048, 512 << 20):
            self.refused(f"dm-size={size}", "dm-size must be")
        self.assertEqual(Machine("-device", "tern,dm-size=0").quit(), 0)

    def test_speed(self):
        for speed in 0, 4000001:
            self.refused(f"speed={speed}", "speed must be 1 to 4000000 Mb/s")
        for speed in 1, 4000000:
            self.assertEqual(Machine("-device", f"tern,speed={speed}").quit(), 0)

    def test_most_vectors(self):
        self.assertEqual(Machine("-device", "tern,vectors=256").quit(), 0)

    def test_wrapper_names_another_qemu(self):
        ended = subprocess.run([TOP / "scripts/tern-qemu", "--version"], check=False,
                               env={"PATH": "/usr/bin:/bin", "TERN_QEMU": "true"},
                               capture_output=True, text=True)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("tern-qemu:", ended.stderr)
