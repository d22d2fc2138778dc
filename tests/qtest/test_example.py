# SPDX-License-Identifier: GPL-2.0-or-later
"""The example in docs/hardware.md, executed as it is written."""

import re
import unittest

from machine import TOP, Card, CardTest

STEP = re.compile(r"^    (write|read|store|load) +(?:BAR(\d)\+)?([0-9a-f]+)  +([0-9a-f ]+)$", re.M)
BARS = {"0": (Card.REGS, 4), "2": (Card.DOORBELLS, 8)}


def steps():
    """Returns what the page says: [(verb, BAR or None, offset or IOVA, digits)]."""
    page = (TOP / "docs/hardware.md").read_text(encoding="utf-8")
    section = re.search(r"^## \d+\. Example.*?(?=^## )", page, re.M | re.S)[0]
    found = [(verb, bar, int(where, 16), digits.replace(" ", ""))
             for verb, bar, where, digits in STEP.findall(section)]
    assert len(found) == len(re.findall(r"^    ", section, re.M)), "a line cannot be read"
    return found


def execute_all(test, card):
    """@card: of this front end or another one."""
    found = steps()
    test.assertGreater(len(found), 50)
    for step in found:
        with test.subTest(step):
            execute(card, *step)


def execute(card, verb, bar, where, digits):
    machine = card.machine
    if verb == "store":
        machine.write_memory(where, bytes.fromhex(digits))
    elif verb == "load":
        wanted = bytes.fromhex(digits)
        card.wait(lambda: machine.read_memory(where, len(wanted)) == wanted)
    else:
        base, size = BARS[bar]
        assert len(digits) == 2 * size
        value = int(digits, 16)
        if verb == "write":
            machine.write(size, base + where, value)
        else:
            card.wait(lambda: machine.read(size, base + where) == value)


class Example(CardTest):
    def test_as_written(self):
        execute_all(self, Card(self.machine))


if __name__ == "__main__":
    unittest.main()
