# SPDX-License-Identifier: GPL-2.0-or-later
"""Registers, resets and the link."""

import time
import unittest

from machine import HW, CardTest


class Registers(CardTest):
    def test_constants(self):
        self.assertEqual(self.card.reg("VERSION") >> 16, HW.HW_MAJOR)
        self.assertEqual(self.card.reg("MAC_LO"), 0x52455402)
        self.assertEqual(self.card.reg("MAC_HI"), 0x0000014e)
        self.assertEqual(self.card.reg("DB_PAGES"), 2048)
        self.assertEqual(self.card.reg("VECTORS"), 8)
        self.assertEqual(self.card.reg("LINK_SPEED"), 100000)
        self.assertEqual(self.card.reg("DM_SIZE"), 1 << 20)

    def test_a_read_sees_the_writes_before_it(self):
        for i in range(1000):
            self.card.set_reg("AQ_BASE_LO", i << 12)
            self.assertEqual(self.card.reg("AQ_BASE_LO"), i << 12)

    def test_other_sizes_and_alignments_do_nothing(self):
        machine, base = self.machine, self.card.REGS + HW.REG_AQ_BASE_LO
        self.card.set_reg("AQ_BASE_LO", 0x5000)
        for size in (1, 2, 8):
            machine.write(size, base, 0x11111111)
            self.assertEqual(machine.read(size, base), (1 << 8 * size) - 1)
        for offset in (1, 2, 3):
            machine.write(4, base + offset, 0x11111111)
        self.assertEqual(self.card.reg("AQ_BASE_LO"), 0x5000)
        self.assertEqual(self.card.reg("AQ_BASE_HI"), 0)

    def test_doorbells_read_as_all_ones(self):
        for size in (1, 2, 4, 8):
            self.assertEqual(self.machine.read(size, self.card.DOORBELLS + 0x1000),
                             (1 << 8 * size) - 1)

    def test_clock(self):
        def now(page=0, size=8):
            address = self.card.DOORBELLS + page * HW.DB_PAGE_SIZE + HW.DB_CLOCK
            return self.machine.read(size, address)

        host = time.monotonic_ns()
        times = [now(page) for page in range(100)]
        self.assertEqual(times, sorted(times))
        self.assertLessEqual(times[-1] - times[0], time.monotonic_ns() - host)
        self.assertGreater(times[-1], times[0])
        self.assertEqual(now(size=4), 0xffffffff)

        self.machine.qmp("stop")
        stopped = now()
        time.sleep(0.05)
        self.assertEqual(now(), stopped)
        host = time.monotonic_ns()
        self.machine.qmp("cont")
        self.assertLess(now() - stopped, time.monotonic_ns() - host, "the stop does not count")
        self.card.set_reg("CTRL", HW.CTRL_RESET)
        self.assertGreater(now(), stopped)

    def test_control_reset(self):
        self.card.set_reg("AQ_BASE_LO", 0x5000)
        self.card.set_reg("CTRL", HW.CTRL_RESET)
        self.card.wait(lambda: not self.card.reg("STATUS") & HW.STATUS_RESETTING)
        self.assertEqual(self.card.reg("AQ_BASE_LO"), 0)

    def test_function_level_reset(self):
        self.card.set_reg("AQ_BASE_LO", 0x5000)
        self.card.function_level_reset()
        self.assertEqual(self.card.read(2, 0x04) & 7, 0, "still decodes")
        self.card.place()
        self.assertEqual(self.card.reg("AQ_BASE_LO"), 0)
        self.assertEqual(self.card.reg("LINK"), HW.LINK_UP)

    def test_resets_of_configuration(self):
        """The power state, and what errors are reported, begin anew."""
        power, express = self.card.capability(0x01) + 4, self.card.capability(0x10) + 8

        def system_reset():
            self.machine.qmp("system_reset")
            self.machine.wait_event("RESET")

        for reset in self.card.function_level_reset, system_reset:
            self.card.write(2, express, 0x000f)
            self.card.write(2, power, 0x0003)
            self.assertEqual(self.card.read(2, express) & 0xf, 0xf)
            self.assertEqual(self.card.read(2, power) & 3, 3)
            reset()
            self.assertEqual(self.card.read(2, express) & 0xf, 0)
            self.assertEqual(self.card.read(2, power) & 3, 0)

    def test_system_reset(self):
        self.card.set_reg("AQ_BASE_LO", 0x5000)
        self.machine.qmp("system_reset")
        self.machine.wait_event("RESET")
        self.card.place()
        self.assertEqual(self.card.reg("AQ_BASE_LO"), 0)

    def test_link(self):
        for _ in range(3):
            self.machine.qmp("set_link", name="net", up=False)
            self.assertEqual(self.card.reg("LINK"), 0)
            self.machine.qmp("set_link", name="net", up=True)
            self.assertEqual(self.card.reg("LINK"), HW.LINK_UP)

    def test_cable(self):
        """Either way of unplugging is enough."""
        for by_link, by_property in ((0, 0), (0, 1), (1, 1), (1, 0), (0, 0), (1, 1)):
            self.machine.qmp("set_link", name="net", up=bool(by_link))
            self.machine.set_cable(bool(by_property))
            self.assertEqual(self.card.reg("LINK") == HW.LINK_UP, by_link and by_property)
        self.machine.hmp("qom-set /machine/peripheral/card link off")
        self.assertEqual(self.card.reg("LINK"), 0)
        self.machine.qmp("system_reset")
        self.machine.wait_event("RESET")
        self.card.place()
        self.assertEqual(self.card.reg("LINK"), 0, "a reset plugs nothing in")

    def test_stop_and_continue(self):
        for _ in range(10):
            self.machine.qmp("stop")
            self.assertEqual(self.card.reg("VECTORS"), 8, "a stopped card answers reads")
            self.machine.qmp("cont")
        self.assertEqual(self.card.reg("VECTORS"), 8)


class Unplugged(CardTest):
    arguments = ("-netdev", "hubport,id=net,hubid=0", "-device",
                 "tern,id=card,netdev=net,addr=4,link=off")

    def test_link(self):
        self.assertEqual(self.card.reg("LINK"), 0)
        self.machine.set_cable(True)
        self.assertEqual(self.card.reg("LINK"), HW.LINK_UP)


class NoNetwork(CardTest):
    arguments = ("-device",
                 "tern,id=card,addr=4,vectors=3,doorbell-pages=16,speed=25000,dm-size=8192")

    def test_link_is_down(self):
        self.assertEqual(self.card.reg("LINK"), 0)
        self.machine.set_cable(True)
        self.assertEqual(self.card.reg("LINK"), 0)

    def test_properties(self):
        self.assertEqual(self.card.reg("VECTORS"), 3)
        self.assertEqual(self.card.reg("DB_PAGES"), 16)
        self.assertEqual(self.card.reg("LINK_SPEED"), 25000)
        self.assertEqual(self.card.reg("DM_SIZE"), 8192)

    def test_device_memory(self):
        self.machine.write(4, self.card.DM + 8188, 0x12345678)
        self.card.set_reg("CTRL", HW.CTRL_RESET)
        self.assertEqual(self.machine.read(4, self.card.DM + 8188), 0x12345678)
        self.assertEqual(self.machine.read(4, self.card.DM), 0)


if __name__ == "__main__":
    unittest.main()
