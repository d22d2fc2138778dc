# SPDX-License-Identifier: GPL-2.0-or-later
"""A card of several engines: each a card by itself, behind one PCI function."""

import re
import struct
import unittest

from machine import HEADERS, HW, Card, Machine
from test_wire import Switch, WireTest

# Names of the counters, in their order.
STATS = re.findall(r"^\tTERN_STAT_(\w+),", HEADERS, re.M)
STATS_AT = 0x130000  # in RAM


class Engine(Card):
    """One of a card's, with admin rings of its own."""

    def __init__(self, machine, number):
        self.REGS = Card.REGS + number * HW.REGS_SIZE
        self.AQ = Card.AQ + number * 0x2000
        self.ACQ = Card.ACQ + number * 0x2000
        self.number = number
        super().__init__(machine)

    def place(self):
        """The first one's are those of all."""
        if self.number == 0:
            super().place()

    def start(self):
        self.enable(self.AQ, self.ACQ)
        self.commands = 0

    def command(self, opcode, body=b""):
        """Returns what it created, and the status."""
        self.submit(self.commands, opcode, body)
        self.commands += 1
        body, _, status = self.wait(lambda: self.completion(self.commands - 1))
        return int.from_bytes(body[:4], "little"), status

    def stat(self, name):
        body = struct.pack("<QI", STATS_AT, len(STATS) - 1)  # the last is their number
        _, status = self.command(HW.AQ_QUERY_STATS, body)
        assert status == HW.AQ_OK
        return struct.unpack("<Q", self.machine.read_memory(STATS_AT + 8 * STATS.index(name), 8))[0]


class Refusals(WireTest):
    def refused(self, properties, message):
        with self.assertRaisesRegex(RuntimeError, message):
            Machine("-device", f"tern,{properties}")

    def test_number(self):
        for number in (0, HW.MAX_ENGINES + 1):
            self.refused(f"engines={number},wire=/x", "engines must be 1 to 16")

    def test_without_shared_memory(self):
        self.refused("engines=2", "need a wire of shared memory")

    def test_no_page_for_each(self):
        self.refused("engines=4,doorbell-pages=2,wire=/x", "one for each engine")

    def test_no_wire(self):
        self.refused(f"engines=3,wire={self.folder}/none", "No such file")


class Engines(WireTest):
    def start(self, engines):
        self.switch = Switch(self.folder)
        self.machine = Machine(
            "-device", f"tern,id=card,wire={self.switch.path},engines={engines},"
            "mac=02:54:45:52:4e:01,addr=4")
        self.addCleanup(self.end)
        return [Engine(self.machine, number) for number in range(engines)]

    def end(self):
        log = self.machine.log()
        self.assertEqual(self.machine.quit(), 0, log)
        self.switch.kill()

    def test_each_is_a_card(self):
        engines = self.start(HW.MAX_ENGINES)
        for number, engine in enumerate(engines):
            self.assertEqual(engine.reg("ENGINES"), len(engines))
            self.assertEqual(engine.reg("DB_PAGES"), 2048 // len(engines))
            self.assertEqual(engine.reg("MAC_LO"), 0x52455402)
            self.assertEqual(engine.reg("DM_SIZE"), 1 << 20)
            engine.start()
            engine.wait(lambda e=engine: e.reg("LINK") == HW.LINK_UP)
            pd, status = engine.command(HW.AQ_ALLOC_PD)
            self.assertEqual((pd, status), (number << HW.ENGINE_SHIFT | 1, 0))
        # Of another engine
        self.assertEqual(engines[2].command(HW.AQ_DEALLOC_PD, (1).to_bytes(4, "little"))[1],
                         HW.AQ_BAD_OBJECT)

    def test_reset_of_one(self):
        one, other = self.start(2)
        one.start()
        other.start()
        other.set_reg("CTRL", HW.CTRL_RESET)
        self.assertEqual(other.reg("STATUS"), 0)
        self.assertEqual(one.command(HW.AQ_ALLOC_PD), (1, 0))
        other.start()
        self.assertEqual(other.command(HW.AQ_ALLOC_PD)[1], 0)

    def test_reset_of_all(self):
        engines = self.start(3)
        for engine in engines:
            engine.start()
        engines[0].function_level_reset()
        engines[0].place()
        self.assertEqual([engine.reg("STATUS") for engine in engines], [0, 0, 0])

    def test_no_more_registers_than_engines(self):
        engines = self.start(3)
        self.assertEqual(engines[2].reg("VERSION") >> 16, HW.HW_MAJOR)
        beyond = Card.REGS + 3 * HW.REGS_SIZE
        self.machine.write(4, beyond + HW.REG_CTRL, HW.CTRL_ENABLE)
        self.assertEqual(self.machine.read(4, beyond), 0xffffffff)

    def test_each_has_its_pages(self):
        """A doorbell reaches the engine of its page, where there is no such queue."""
        engines = self.start(2)
        for engine in engines:
            engine.start()
        for page in (1, 3, 5, 2):
            self.machine.write(8, Card.DOORBELLS + page * HW.DB_PAGE_SIZE + HW.DB_CQ_ARM, 1)
        self.assertEqual([engine.stat("DB_DROPPED") for engine in engines], [1, 3])

    def test_clock_of_each_page(self):
        self.start(2)
        pages = [Card.DOORBELLS + page * HW.DB_PAGE_SIZE + HW.DB_CLOCK for page in range(4)]
        for page in pages:
            first = self.machine.read(8, page)
            self.assertGreater(self.machine.read(8, page), first)

    def test_links(self):
        """Of all engines, by cable and switch."""
        engines = self.start(3)

        def await_links(up):
            for engine in engines:
                engine.wait(lambda: engine.reg("LINK") == (HW.LINK_UP if up else 0))

        await_links(True)
        for plugged in (False, True):
            self.machine.set_cable(plugged)
            await_links(plugged)
        for _ in range(3):
            self.switch.kill()
            await_links(False)
            self.switch = Switch(self.folder)
            await_links(True)


if __name__ == "__main__":
    unittest.main()
